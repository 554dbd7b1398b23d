//! The squared loss.

use nalgebra::convert;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::gradient_spread::squared_gradient_difference;
use crate::loss::Loss;
use crate::real::Real;
use crate::rounding::{product_up, sum_up};

/// Half the squared residual, for real targets with a public bound `|y| <= Y`.
///
/// # Formula
/// ```text
/// value  (p - y)² / 2        derivative  p - y        curvature  1
/// ```
/// The value overflows to infinity if the square does (residuals above 1.8e154 in `f64`).
///
/// # Examples
/// ```
/// use dp_losses::{Loss, Squared};
/// assert_eq!(Squared.value(3.0_f64, 1.0), 2.0);
/// assert_eq!(Squared.derivative(3.0_f64, 1.0), 2.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Squared;

impl<F: Real> Loss<F> for Squared {
    #[inline(always)]
    fn value(&self, prediction: F, target: F) -> F {
        let residual = prediction - target;
        residual * convert::<f64, F>(0.5) * residual
    }

    #[inline(always)]
    fn derivative(&self, prediction: F, target: F) -> F {
        prediction - target
    }

    #[inline(always)]
    fn is_of_residual(&self) -> bool {
        true
    }

    #[inline(always)]
    fn curvature_bound(&self) -> F {
        F::one()
    }
}

impl LossBounds for Squared {
    /// # Formula
    /// ```text
    /// Lipschitz   X (R X + Y)       smoothness  X²
    /// gradient difference           X · G_sq(R X, Y), see `squared_gradient_difference`
    /// ```
    /// Without a radius the Lipschitz constant and the gradient difference are infinite.
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        let reach = domain.radius().map_or(f64::INFINITY, |radius| product_up(radius, row_norm));
        DataConstants {
            lipschitz: product_up(row_norm, sum_up(reach, domain.target_bound())),
            smoothness: product_up(row_norm, row_norm),
            gradient_difference: product_up(row_norm, squared_gradient_difference(reach, domain.target_bound())),
        }
    }

    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants {
        let tight = self.data_constants(domain);
        DataConstants { gradient_difference: 2.0 * tight.lipschitz, ..tight }
    }
}

#[cfg(test)]
mod tests;
