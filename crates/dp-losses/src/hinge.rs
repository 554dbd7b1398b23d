//! The hinge loss of support vector machines.

use nalgebra::convert;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::loss::Loss;
use crate::real::Real;

/// The hinge loss of a margin, for targets -1 and +1. It has a kink, so its smoothness constant is infinite;
/// [`HuberSvm`](crate::HuberSvm) is its smooth version.
///
/// # Formula
/// ```text
/// s = y·p        value  max(0, 1 - s)        derivative  -y for s < 1, else 0        curvature  unbounded
/// ```
/// At the kink the subgradient 0 is used.
///
/// # Examples
/// ```
/// use dp_losses::{Hinge, Loss};
/// assert_eq!(Hinge.value(-2.0_f64, 1.0), 3.0);
/// assert_eq!((Hinge.derivative(0.5_f64, 1.0), Hinge.derivative(1.0_f64, 1.0)), (-1.0, 0.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hinge;

impl<F: Real> Loss<F> for Hinge {
    #[inline(always)]
    fn value(&self, prediction: F, target: F) -> F {
        let shortfall = F::one() - prediction * target;
        if shortfall > F::zero() { shortfall } else { F::zero() }
    }

    #[inline(always)]
    fn derivative(&self, prediction: F, target: F) -> F {
        if prediction * target < F::one() { -target } else { F::zero() }
    }

    #[inline(always)]
    fn curvature_bound(&self) -> F {
        convert(f64::INFINITY)
    }
}

impl LossBounds for Hinge {
    /// # Formula
    /// ```text
    /// Lipschitz   X        smoothness  ∞        gradient difference  2 X
    /// ```
    /// The difference is attained for every radius: two opposite rows orthogonal to `w`.
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
    use crate::golden;

    #[test]
    fn golden_margins() {
        let cases = golden::erm_cases("loss_margin");
        for case in cases.iter().filter(|case| case["in"]["loss"] == "hinge") {
            let (margin, rtol) = (case["in"]["z"].as_f64().unwrap(), case["rtol"].as_f64().unwrap());
            golden::assert_close(&case["id"], "value", Hinge.value(margin, 1.0), &case["out"]["value"], rtol);
            golden::assert_close(&case["id"], "dz", Hinge.derivative(margin, 1.0), &case["out"]["dz"], rtol);
        }
    }

    #[test]
    fn extreme_margins_give_numbers() {
        for y in [-1.0_f64, 1.0] {
            for size in [1e308, f64::MAX, f64::INFINITY] {
                assert_eq!((Hinge.value(-size * y, y), Hinge.derivative(-size * y, y)), (size, -y));
                assert_eq!((Hinge.value(size * y, y), Hinge.derivative(size * y, y)), (0.0, 0.0));
            }
        }
        assert_eq!((Hinge.value(-f32::MAX, 1.0), Hinge.derivative(f32::MAX, 1.0)), (f32::MAX, 0.0));
    }

    proptest! {
        #[test]
        fn derivative_is_the_slope_of_the_value(p in -4.0..4.0_f64, positive: bool) {
            let (y, step) = (if positive { 1.0 } else { -1.0 }, 1e-5);
            prop_assume!((1.0 - p * y).abs() > step);
            let slope = (Hinge.value(p + step, y) - Hinge.value(p - step, y)) / (2.0 * step);
            prop_assert!((Hinge.derivative(p, y) - slope).abs() < 1e-9);
        }

        #[test]
        fn the_derivative_supports_the_value_from_below(p in -4.0..4.0_f64, q in -4.0..4.0_f64, positive: bool) {
            let y = if positive { 1.0 } else { -1.0 };
            let tangent = Hinge.value(p, y) + Hinge.derivative(p, y) * (q - p);
            prop_assert!(Hinge.value(q, y) >= tangent - 1e-14);
        }

        #[test]
        fn f32_agrees_with_f64(p in -80.0_f32..80.0, positive: bool) {
            let y = if positive { 1.0 } else { -1.0_f32 };
            let (want, got) = (Hinge.value(f64::from(p), f64::from(y)), Hinge.value(p, y));
            prop_assert!((f64::from(got) - want).abs() <= 2e-7 * want.abs().max(1.0));
            prop_assert_eq!(f64::from(Hinge.derivative(p, y)), Hinge.derivative(f64::from(p), f64::from(y)));
        }
    }
}
