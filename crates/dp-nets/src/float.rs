//! The two float types of a network, and a hyperbolic tangent without branches.

use dp_losses::Real;
use nalgebra::convert;

/// `f32` or `f64`, as activations, gradients and parameters of a network. Sealed, as [`Real`] is.
pub trait Float: Real {
    /// Returns the number in double precision.
    fn wide(self) -> f64;

    /// Returns the nearest number of this type.
    fn narrow(x: f64) -> Self;

    /// Returns `tanh x` without branches, so that a loop over it vectorises.
    ///
    /// # Formula
    /// ```text
    /// |x| < 0.55    x (135135 + 17325 x² + 378 x⁴ + x⁶) / (135135 + 62370 x² + 3150 x⁴ + 28 x⁶)
    /// otherwise     (e^{2|x|} - 1) / (e^{2|x|} + 1) with the sign of x
    /// ```
    /// The first line is the 7th convergent of Lambert's continued fraction, whose error is below `3e-16` there, relatively.
    /// The error of the result is at most 4 units in the last place in `f32`, and at most `2e-15`, relatively, in `f64` (tested
    /// over a dense grid). `tanh(±∞) = ±1`; NaN for NaN.
    ///
    /// # Examples
    /// ```
    /// use dp_nets::Float;
    /// assert!((0.3_f64.hyperbolic_tangent() - 0.3_f64.tanh()).abs() < 1e-15);
    /// assert_eq!(f32::NEG_INFINITY.hyperbolic_tangent(), -1.0);
    /// ```
    fn hyperbolic_tangent(self) -> Self;
}

impl Float for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    fn narrow(x: f64) -> Self {
        x as Self
    }

    #[inline(always)]
    fn hyperbolic_tangent(self) -> Self {
        tanh(self, 10.0)
    }
}

impl Float for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    #[inline(always)]
    fn narrow(x: f64) -> Self {
        x
    }

    #[inline(always)]
    fn hyperbolic_tangent(self) -> Self {
        tanh(self, 20.0)
    }
}

/// Returns `tanh x`; beyond `limit` it is ±1 after rounding.
#[inline(always)]
fn tanh<F: Real>(x: F, limit: F) -> F {
    let c = |value: f64| convert::<f64, F>(value);
    // Comparisons rather than `abs` and `min`: NaN stays NaN.
    let size = if x < F::zero() { -x } else { x };
    let size = if size > limit { limit } else { size };
    let square = size * size;
    let p = size * (c(135_135.0) + square * (c(17_325.0) + square * (c(378.0) + square)));
    let q = c(135_135.0) + square * (c(62_370.0) + square * (c(3_150.0) + square * c(28.0)));
    let power = (size + size).exponential();
    let is_small = size < c(0.55);
    let numerator = if is_small { p } else { power - F::one() };
    let denominator = if is_small { q } else { power + F::one() };
    let result = numerator / denominator;
    if x < F::zero() { -result } else { result }
}

/// Returns the number of unit roundoffs of `F` in one of double precision: 1 for `f64`, `2^-29` for `f32`.
pub(crate) fn double_roundoff<F: Float>() -> f64 {
    f64::EPSILON / F::default_epsilon().wide()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_of_f32_is_within_4_units_over_a_dense_grid() {
        let (mut worst, mut x) = (0.0_f64, 1e-6_f32);
        while x < 12.0 {
            let want = f64::from(x).tanh();
            let unit = f64::from((want as f32).next_up()) - f64::from(want as f32);
            let unit = if want as f32 == 1.0 { 2f64.powi(-24) } else { unit };
            worst = worst.max((f64::from(x.hyperbolic_tangent()) - want).abs() / unit);
            assert_eq!((-x).hyperbolic_tangent(), -x.hyperbolic_tangent());
            assert!(x.hyperbolic_tangent() <= 1.0);
            x = x * 1.000_01 + 1e-7;
        }
        assert!(worst > 0.5 && worst <= 4.0, "worst error {worst} units in the last place");
    }

    #[test]
    fn tanh_of_f64_is_within_2e_15_over_a_dense_grid() {
        let (mut worst, mut x) = (0.0_f64, 1e-9_f64);
        while x < 25.0 {
            worst = worst.max((x.hyperbolic_tangent() / x.tanh() - 1.0).abs());
            x = x * 1.000_02 + 1e-9;
        }
        assert!(worst > 0.0 && worst <= 2e-15, "worst relative error {worst}");
    }

    #[test]
    fn tanh_at_the_ends_of_the_range() {
        assert_eq!([0.0_f64, f64::INFINITY, -1e300].map(Float::hyperbolic_tangent), [0.0, 1.0, -1.0]);
        assert_eq!([0.0_f32, f32::INFINITY, -1e30].map(Float::hyperbolic_tangent), [0.0, 1.0, -1.0]);
        assert_eq!(1e-40_f32.hyperbolic_tangent(), 1e-40);
        assert!(f32::NAN.hyperbolic_tangent().is_nan() && f64::NAN.hyperbolic_tangent().is_nan());
    }

    #[test]
    fn one_double_roundoff_in_each_type() {
        assert_eq!((double_roundoff::<f64>(), double_roundoff::<f32>()), (1.0, 2f64.powi(-29)));
    }
}
