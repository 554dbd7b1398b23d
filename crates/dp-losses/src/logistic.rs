//! The logistic loss.

use nalgebra::convert;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::gradient_spread::logistic_gradient_difference;
use crate::loss::Loss;
use crate::real::Real;
use crate::rounding::{inflate, product_up, sum_up};

/// The logistic loss of a margin, for targets -1 and +1.
///
/// # Formula
/// ```text
/// s = y·p        value       ln(1 + e^-s) = max(-s, 0) + ln(1 + e^-|s|)
///                derivative  -y / (1 + e^s)          curvature <= 1/4
/// ```
/// The exponential is computed only of `-|s|`, so nothing overflows: the value at a margin of -1e308 is 1e308 and the derivative
/// lies exactly in [-1, 1].
///
/// # Examples
/// ```
/// use dp_losses::{Logistic, Loss};
/// assert!((Logistic.value(0.0_f64, 1.0) - core::f64::consts::LN_2).abs() < 1e-15);
/// assert_eq!(Logistic.derivative(-1e308_f64, 1.0), -1.0);
/// assert_eq!(Logistic.derivative(1e308_f64, 1.0), 0.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Logistic;

impl<F: Real> Loss<F> for Logistic {
    #[inline(always)]
    fn value(&self, prediction: F, target: F) -> F {
        let margin = prediction * target;
        let hinge = if margin < F::zero() { -margin } else { F::zero() };
        hinge + (-margin.abs()).exponential().ln_1p()
    }

    #[inline(always)]
    fn derivative(&self, prediction: F, target: F) -> F {
        let margin = prediction * target;
        let tail = (-margin.abs()).exponential(); // in [0, 1]
        let numerator = if margin < F::zero() { F::one() } else { tail };
        -target * (numerator / (F::one() + tail))
    }

    #[inline(always)]
    fn curvature_bound(&self) -> F {
        convert(0.25)
    }
}

impl Logistic {
    /// Returns the smoothness used by Wu et al. (2017, section 4.4), `row_norm²`: valid, and four times the least.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(dp_losses::Logistic.smoothness_as_published(1.0), 1.0);
    /// ```
    ///
    /// # References
    /// Wu, Li, Kumar, Chaudhuri, Jha, Naughton, "Bolt-on differential privacy for scalable stochastic gradient
    /// descent-based analytics", SIGMOD 2017.
    pub fn smoothness_as_published(&self, row_norm: f64) -> f64 {
        product_up(row_norm, row_norm)
    }
}

impl LossBounds for Logistic {
    /// # Formula
    /// ```text
    /// Lipschitz   sup |x| / (1 + e^s)  = X / (1 + e^{-R X})     (X when there is no radius)
    /// smoothness  sup |x|² σ'(s)       = X² / 4
    /// gradient difference                X · G_log(R X), see `logistic_gradient_difference`
    /// ```
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        let reach = domain.radius().map_or(f64::INFINITY, |radius| product_up(radius, row_norm));
        let steepest = inflate(1.0 / (1.0 + (-reach).exp())).min(1.0);
        DataConstants {
            lipschitz: product_up(row_norm, steepest),
            smoothness: product_up(row_norm, row_norm) / 4.0,
            gradient_difference: product_up(row_norm, logistic_gradient_difference(reach)),
        }
    }

    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        DataConstants {
            lipschitz: row_norm,
            smoothness: product_up(row_norm, row_norm) / 4.0,
            gradient_difference: sum_up(row_norm, row_norm),
        }
    }
}

#[cfg(test)]
mod tests;
