//! Ratios of integers: the scales of exact integer noise.

/// A positive fraction of 64-bit integers, not necessarily in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// Base-2 logarithm of the largest denominator of a ratio that represents a double.
const LARGEST_SHIFT: i32 = 62;

impl Ratio {
    /// Returns the ratio, or `None` if either number is 0.
    pub(crate) const fn new(numerator: u64, denominator: u64) -> Option<Self> {
        if numerator == 0 || denominator == 0 { None } else { Some(Self { numerator, denominator }) }
    }

    /// Returns the least multiple of `2^-62` that is at least `x`: `x` itself from `2^-10` on. `None` unless `x` is a positive
    /// double below `2^63`.
    pub(crate) fn at_least(x: f64) -> Option<Self> {
        if !(x > 0.0 && x < 2f64.powi(63)) {
            return None;
        }
        if x >= 2f64.powi(52) {
            return Self::new(x as u64, 1); // an integer already
        }
        // Exact: x is below 2^52, so that the product with a power of two does not overflow; if it is not an integer after 62
        // doublings it is rounded up, to at most 2^53.
        let (mut scaled, mut shift) = (x, 0);
        while shift < LARGEST_SHIFT && scaled.fract() != 0.0 {
            scaled *= 2.0;
            shift += 1;
        }
        Self::new(scaled.ceil() as u64, 1 << shift)
    }

    pub(crate) const fn numerator(self) -> u64 {
        self.numerator
    }

    pub(crate) const fn denominator(self) -> u64 {
        self.denominator
    }

    /// Returns the largest double that is not above it.
    pub(crate) fn rounded_down(self) -> f64 {
        // An error of at most a few units: two conversions and a division.
        let mut quotient = self.numerator as f64 / self.denominator as f64;
        while !self.is_at_least(quotient) {
            quotient = quotient.next_down();
        }
        while self.is_at_least(quotient.next_up()) {
            quotient = quotient.next_up();
        }
        quotient
    }

    /// Returns whether it is at least `x`, exactly, for a positive double within a factor of 2 of it.
    fn is_at_least(self, x: f64) -> bool {
        let bits = x.to_bits();
        let mantissa = u128::from((bits & ((1 << 52) - 1)) | (1 << 52));
        let exponent = crate::rounding::exponent(x) - 52;
        // mantissa · 2^exponent · denominator <= numerator: at most 53 + 64 bits on the left, and one more on the right.
        let left = mantissa * u128::from(self.denominator);
        let right = u128::from(self.numerator);
        if exponent >= 0 { left << exponent <= right } else { left <= right << -exponent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    #[test]
    fn doubles_become_ratios() {
        let ratio = |x| Ratio::at_least(x).map(|ratio| (ratio.numerator, ratio.denominator));
        assert_eq!(ratio(1.0), Some((1, 1)));
        assert_eq!(ratio(0.75), Some((3, 4)));
        assert_eq!(ratio(2f64.powi(62)), Some((1 << 62, 1)));
        assert_eq!(ratio(2f64.powi(63).next_down()), Some(((1 << 63) - 1024, 1)));
        assert_eq!(ratio(2f64.powi(-62)), Some((1, 1 << 62)));
        assert_eq!(ratio(2f64.powi(-62).next_up()), Some((2, 1 << 62)));
        assert_eq!(ratio(1e-300), Some((1, 1 << 62)));
        for refused in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, 2f64.powi(63)] {
            assert_eq!(ratio(refused), None);
        }
        assert!(Ratio::new(0, 1).is_none() && Ratio::new(1, 0).is_none());
    }

    #[test]
    fn extreme_ratios_round_down() {
        let down = |numerator, denominator| Ratio::new(numerator, denominator).unwrap().rounded_down();
        assert_eq!(down(1, 3), 1.0 / 3.0); // which is below a third
        assert_eq!(down(1, 10), 0.1f64.next_down()); // 0.1 is above a tenth
        assert_eq!(down(u64::MAX, 1), 2f64.powi(64).next_down());
        assert_eq!(down(1, u64::MAX), 2f64.powi(-64));
        assert_eq!(down(u64::MAX, u64::MAX), 1.0);
        assert_eq!(down(u64::MAX - 1, u64::MAX), 1f64.next_down());
    }

    proptest! {
        #[test]
        fn never_below_the_double(x in 1e-12f64..1e18) {
            let ratio = Ratio::at_least(x).unwrap();
            prop_assert!(ratio.rounded_down() >= x);
            prop_assert!(ratio.rounded_down() <= x * (1.0 + 2f64.powi(-20)));
            if x >= 2f64.powi(-10) {
                prop_assert_eq!(ratio.rounded_down(), x);
            }
        }

        #[test]
        fn rounding_down_is_the_nearest_from_below(numerator in 1u64.., denominator in 1u64..) {
            let down = Ratio::new(numerator, denominator).unwrap().rounded_down();
            // x <= n/d as x · 2^k · d <= n · 2^k for a k that makes x · 2^k an integer.
            let is_below = |x: f64| {
                let power = 52 - crate::rounding::exponent(x);
                let mantissa = BigUint::from((x.to_bits() & ((1 << 52) - 1)) | (1 << 52)) << 64;
                let left = mantissa * denominator;
                let right = BigUint::from(numerator) << (64 + power) as u64;
                left <= right
            };
            prop_assert!(is_below(down) && !is_below(down.next_up()));
        }
    }
}
