//! Long binary arithmetic, as a reference for tests.

use num_bigint::BigInt;

/// Binary digits after the point.
const DIGITS: usize = 400;

/// A number with `DIGITS` binary digits after the point.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Long(BigInt);

impl Long {
    pub(super) fn new(number: f64) -> Self {
        let bits = number.abs().to_bits();
        let (exponent, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
        if number == 0.0 {
            return Self(BigInt::ZERO);
        }
        let shift = exponent - 1075 + DIGITS as i64;
        let mantissa = BigInt::from(fraction | 1 << 52);
        let size = if shift >= 0 { mantissa << shift } else { mantissa >> -shift };
        Self(if number < 0.0 { -size } else { size })
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self(&self.0 + &other.0)
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self((&self.0 * &other.0) >> DIGITS)
    }

    pub(super) fn over(&self, other: &Self) -> Self {
        Self((&self.0 << DIGITS) / &other.0)
    }

    /// Returns `e^x` for `x <= 700`: the series at `x / 2^k`, squared k times.
    pub(super) fn exponential(&self) -> Self {
        if self.value() < -300.0 {
            return Self(BigInt::ZERO); // below the last digit
        }
        let halvings = 20;
        let small = Self(&self.0 >> halvings);
        let (mut sum, mut term) = (Self::new(1.0), Self::new(1.0));
        for k in 1..60 {
            term = Self(term.times(&small).0 / k);
            sum = sum.plus(&term);
        }
        for _ in 0..halvings {
            sum = sum.times(&sum);
        }
        sum
    }

    pub(super) fn value(&self) -> f64 {
        let shift = self.0.bits().saturating_sub(100);
        let leading = i128::try_from(&self.0 >> shift).unwrap() as f64;
        leading * 2f64.powi(shift as i32 - DIGITS as i32)
    }

    pub(super) fn square_root(&self) -> Self {
        Self((&self.0 << DIGITS).sqrt())
    }
}
