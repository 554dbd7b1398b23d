//! The absolute loss.

use nalgebra::convert;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::loss::Loss;
use crate::real::Real;

/// The absolute residual, for real targets: regression to the median. It has a kink, so its smoothness constant is infinite;
/// [`HuberRegression`](crate::HuberRegression) is its smooth version.
///
/// # Formula
/// ```text
/// value  |p - y|        derivative  sign(p - y), 0 at 0        curvature  unbounded
/// ```
/// The gradient is bounded for all parameters, unlike that of the squared loss: no radius is needed.
///
/// # Examples
/// ```
/// use dp_losses::{Absolute, Loss};
/// assert_eq!(Absolute.value(-2.0_f64, 1.0), 3.0);
/// assert_eq!((Absolute.derivative(-2.0_f64, 1.0), Absolute.derivative(1.0_f64, 1.0)), (-1.0, 0.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Absolute;

impl<F: Real> Loss<F> for Absolute {
    #[inline(always)]
    fn value(&self, prediction: F, target: F) -> F {
        (prediction - target).abs()
    }

    #[inline(always)]
    fn derivative(&self, prediction: F, target: F) -> F {
        // Compares the two numbers, because their difference may vanish or overflow.
        let above = if prediction > target { F::one() } else { F::zero() };
        if prediction < target { -F::one() } else { above }
    }

    #[inline(always)]
    fn is_of_residual(&self) -> bool {
        true
    }

    #[inline(always)]
    fn curvature_bound(&self) -> F {
        convert(f64::INFINITY)
    }
}

impl LossBounds for Absolute {
    /// # Formula
    /// ```text
    /// Lipschitz   X        smoothness  ∞        gradient difference  2 X
    /// ```
    /// The difference is attained with targets of both signs: one row orthogonal to `w`, targets `Y` and `-Y`.
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        DataConstants { lipschitz: row_norm, smoothness: f64::INFINITY, gradient_difference: 2.0 * row_norm }
    }

    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants {
        self.data_constants(domain)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn extreme_residuals_give_numbers() {
        for size in [1e308, f64::MAX, f64::INFINITY] {
            assert_eq!((Absolute.value(size, 0.0), Absolute.derivative(size, 1.0)), (size, 1.0));
            assert_eq!((Absolute.value(-size, 0.0), Absolute.derivative(-size, 1.0)), (size, -1.0));
            assert_eq!(Absolute.derivative(-size, size), -1.0);
        }
        assert_eq!((Absolute.value(f32::MAX, 0.0), Absolute.derivative(f32::MIN, 1.0)), (f32::MAX, -1.0));
        assert_eq!(Absolute.derivative(f64::from_bits(1), 0.0), 1.0);
        assert_eq!(Absolute.derivative(0.3, 0.3), 0.0);
    }

    proptest! {
        #[test]
        fn derivative_is_the_slope_of_the_value(p in -10.0..10.0_f64, y in -3.0..3.0_f64) {
            let step = 1e-5;
            prop_assume!((p - y).abs() > step);
            let slope = (Absolute.value(p + step, y) - Absolute.value(p - step, y)) / (2.0 * step);
            prop_assert!((Absolute.derivative(p, y) - slope).abs() < 1e-9);
        }

        #[test]
        fn f32_agrees_with_f64(p in -80.0_f32..80.0, y in -1.0_f32..1.0) {
            let (wide_p, wide_y) = (f64::from(p), f64::from(y));
            prop_assert!((f64::from(Absolute.value(p, y)) - Absolute.value(wide_p, wide_y)).abs() <= 1e-5);
            prop_assert_eq!(f64::from(Absolute.derivative(p, y)), Absolute.derivative(wide_p, wide_y));
        }
    }
}
