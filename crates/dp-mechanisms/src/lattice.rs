//! The integer lattice for the decisions of selection mechanisms and the sparse vector technique.
//!
//! Comparisons of floating-point numbers inherit the problems of floating-point noise. Here a score (or a query) is first
//! converted to an integer, and after that nothing is rounded: the result has exactly the stated law, and the stated law is
//! exactly private.
//!
//! # Formula
//! ```text
//! g = 2^(floor(log2 D) - 30),   t(u) = floor(u / g) clamped to ±2^120,   S = ceil(D / g)   (D the sensitivity)
//! |u - u'| <= D   implies   |t(u) - t(u')| <= S
//! ```
//! For `u <= u' <= u + D`, `t(u') <= floor(u/g + D/g) <= t(u) + ceil(D/g)`; clamping increases no distance. Rounding to the
//! nearest integer with ties to even would not work: it maps 1/2 and 3/2, one step apart, to 0 and 2. If `D` is a multiple of `g`
//! (every `D` with at most 31 significant bits) nothing is lost; otherwise `S g` exceeds it by less than a relative `2^-30`. The
//! floor preserves order, so scores that are monotonic between neighbours remain so. It is computed from the binary
//! representation, exactly, for every finite double.

use crate::rounding::{exponent, scale_by_power_of_two};

/// Number of bits of the step below the sensitivity.
pub(crate) const BITS: i32 = 30;

/// Scores and queries beyond `2^LARGEST_BITS` steps are clamped.
const LARGEST_BITS: u32 = 120;

/// A lattice determined by a sensitivity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lattice {
    /// Base-2 logarithm of the step, which may be below the range of doubles.
    power: i32,
    /// The sensitivity in steps.
    sensitivity: u64,
}

impl Lattice {
    /// Creates the lattice for a sensitivity, which must be a positive normal number.
    pub(crate) fn new(sensitivity: f64) -> Self {
        let power = exponent(sensitivity) - BITS;
        // In [2^30, 2^31): converting its ceiling is exact.
        let steps = scale_by_power_of_two(sensitivity, -power).ceil();
        Self { power, sensitivity: steps as u64 }
    }

    /// Returns the sensitivity of numbers on the lattice, in steps.
    pub(crate) fn sensitivity(self) -> u64 {
        self.sensitivity
    }

    /// Returns `floor(x / step)`, clamped; `x` must be finite.
    pub(crate) fn floor(self, x: f64) -> i128 {
        debug_assert!(x.is_finite());
        let bits = x.to_bits();
        let (biased, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        // |x| = mantissa · 2^(power_of_unit); subnormal numbers have no hidden bit.
        let mantissa = u128::from(if biased == 0 { fraction } else { fraction | (1 << 52) });
        let power_of_unit = biased.max(1) as i32 - 1075;
        let shift = power_of_unit - self.power;
        if mantissa == 0 {
            return 0;
        }
        let negative = x < 0.0;
        let magnitude = if shift >= 0 {
            let bits = 128 - mantissa.leading_zeros() + shift as u32;
            if bits > LARGEST_BITS { 1 << LARGEST_BITS } else { mantissa << shift }
        } else {
            let right = (-shift) as u32;
            // The floor of a negative number is the ceiling of its magnitude.
            if right >= 64 {
                u128::from(negative)
            } else if negative {
                (mantissa + ((1u128 << right) - 1)) >> right
            } else {
                mantissa >> right
            }
        };
        if negative { -(magnitude as i128) } else { magnitude as i128 }
    }

    /// Returns a positive length in steps, rounded up; infinite if that overflows.
    pub(crate) fn length_up(self, length: f64) -> f64 {
        // Exact unless it over- or underflows: underflow is below one step.
        scale_by_power_of_two(length, -self.power).ceil().max(1.0)
    }

    /// Returns the number represented by a number of steps, rounded once; never infinite.
    pub(crate) fn value(self, steps: i128) -> f64 {
        scale_by_power_of_two(steps as f64, self.power).clamp(-f64::MAX, f64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    /// Returns `x · 2^1200` exactly.
    fn big(x: f64) -> BigInt {
        let bits = x.to_bits();
        let (biased, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        let mantissa = if biased == 0 { fraction } else { fraction | (1 << 52) };
        let magnitude = BigInt::from(mantissa) << (biased.max(1) as i64 - 1075 + 1200);
        if x < 0.0 { -magnitude } else { magnitude }
    }

    fn finite() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>().prop_filter("finite", |x| x.is_finite()), -100.0..100.0f64]
    }

    #[test]
    fn values() {
        let lattice = Lattice::new(1.0);
        assert_eq!(lattice.sensitivity(), 1 << 30);
        assert_eq!(lattice.floor(1.0), 1 << 30);
        assert_eq!(lattice.floor(-0.0), 0);
        assert_eq!(lattice.floor(-1e-300), -1);
        assert_eq!(lattice.floor(5e-324), 0);
        assert_eq!(lattice.floor(f64::MAX), 1 << 120);
        assert_eq!(lattice.floor(-f64::MAX), -(1 << 120));
        assert_eq!(lattice.value(3 << 29), 1.5);
        // A sensitivity that is not a multiple of the step is rounded up.
        assert_eq!(Lattice::new(1.0 + f64::EPSILON).sensitivity(), (1 << 30) + 1);
        assert_eq!(Lattice::new(f64::MAX).sensitivity(), 1 << 31);
        assert_eq!(Lattice::new(f64::MAX).floor(f64::MAX), (1 << 31) - 1);
        assert_eq!(Lattice::new(f64::MIN_POSITIVE).floor(f64::MIN_POSITIVE), 1 << 30);
        assert_eq!(Lattice::new(f64::MAX).value(1 << 40), f64::MAX);
    }

    proptest! {
        /// Compared with rational arithmetic.
        #[test]
        fn floors_are_exact(
            x in finite(), sensitivity in 1e-290f64..1e290, scaled in -1e3f64..1e3, steps in -(1i64 << 40)..1 << 40,
        ) {
            let lattice = Lattice::new(sensitivity);
            let point = lattice.value(i128::from(steps));
            prop_assert_eq!(lattice.floor(point), i128::from(steps));
            for x in [x, scaled * sensitivity, point.next_down(), point.next_up()] {
                let unit = BigInt::from(1) << (i64::from(lattice.power) + 1200) as u64;
                let (x_big, floor) = (big(x), lattice.floor(x));
                if floor.unsigned_abs() == 1 << 120 {
                    prop_assert!(x.abs() >= lattice.value(1 << 120));
                } else {
                    let below = BigInt::from(floor) * &unit;
                    prop_assert!(below <= x_big && x_big < below + &unit, "{x} {sensitivity} {floor}");
                }
            }
        }

        /// The property on which the privacy of these mechanisms rests.
        #[test]
        fn neighbours_are_within_the_sensitivity(
            x in -1e4f64..1e4, sensitivity in 1e-3f64..1e3, share in -1.0f64..=1.0,
        ) {
            let lattice = Lattice::new(sensitivity);
            let mut neighbour = x + share * sensitivity;
            while (big(neighbour) - big(x)).magnitude() > big(sensitivity).magnitude() {
                neighbour = if neighbour > x { neighbour.next_down() } else { neighbour.next_up() };
            }
            let moved = (lattice.floor(neighbour) - lattice.floor(x)).unsigned_abs();
            prop_assert!(moved <= u128::from(lattice.sensitivity()));
            prop_assert!(moved == 0 || (neighbour > x) == (lattice.floor(neighbour) > lattice.floor(x)));
        }
    }
}
