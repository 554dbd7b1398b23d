//! Objective perturbation without delta: the linear term has density proportional to `exp(-|b|/scale)`.

use super::{check, log_one_plus, softmax_determinant};
use crate::error::{Error, positive};
use crate::event::MarginLoss;

/// Returns epsilon of one release by objective perturbation whose `b` has density proportional to `exp(-|b|/scale)`, rounded up.
///
/// # Formula
/// ```text
/// Logistic        max over a in [0, 1] of  a/scale + ln(1 + a(1-a)/regularization)
///                 = 1/scale  where regularization >= scale
/// HuberSvm        1/scale + ln(1 + 1/(2 width regularization))
/// LogCosh         max over a in [0, 1] of  a/scale + ln(1 + (1-a²)/(width regularization))
///                 = 1/scale  where width regularization >= 2 scale
/// BoundedSlope    slope/scale + ln(1 + curvature/regularization)
/// Softmax         sqrt 2/scale + (C - 1) ln(1 + 1/(C regularization))
/// ```
///
/// # Privacy
/// For one record more or fewer, in either direction; rows of norm at most 1; the minimiser must be exact. For an output `w`, `b`
/// is a function of `w` and of the data (see the [module](crate::objective_perturbation)). One additional record changes it by
/// the record's gradient, whose length `a` is at most the slope, so that the ratio of the densities of `b` is at most
/// `e^(a/scale)`. The determinants' ratio is at least 1 and at most one plus the curvature over the regulariser, at the same `a`
/// for the logistic loss and log-cosh. The largest sum over `a` bounds the privacy loss. For these two losses it is concave in
/// `a`, and still increasing at `a = 1` if `regularization >= scale`, or twice that over the width: then the release costs as
/// much as one Laplace release of the gradient.
///
/// # Errors
/// A parameter not positive or not finite.
///
/// # Examples
/// ```
/// use dp_accountant::{MarginLoss, objective_perturbation::pure_epsilon};
/// // A regulariser of 1/epsilon suffices for the cost of one Laplace release ...
/// assert!(pure_epsilon(2.0, 2.0, MarginLoss::Logistic)? < 0.5 + 1e-12);
/// // ... and half of it does not.
/// assert!(pure_epsilon(2.0, 1.0, MarginLoss::Logistic)? > 0.52);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Chaudhuri, Monteleoni and Sarwate, JMLR 2011, Theorem 9, whose bound `2 ln(1 + c/(n lambda))` for the determinants does not
/// relate slope and curvature.
pub fn pure_epsilon(scale: f64, regularization: f64, loss: MarginLoss) -> Result<f64, Error> {
    check(positive("scale", scale)?, regularization, loss)?;
    let inverse = scale.recip().next_up();
    let total = match loss {
        MarginLoss::Logistic => logistic(inverse, regularization),
        MarginLoss::HuberSvm { width } => inverse + log_one_plus(0.5 / (width * regularization)),
        MarginLoss::LogCosh { width } => log_cosh(inverse, width * regularization),
        MarginLoss::BoundedSlope { slope, curvature } => slope * inverse + log_one_plus(curvature / regularization),
        MarginLoss::Softmax { classes } => {
            core::f64::consts::SQRT_2 * inverse + softmax_determinant(classes, regularization)
        }
    };
    Ok(total * (1.0 + 8.0 * f64::EPSILON))
}

/// Returns the maximum over `a`, where the derivative `inverse + (1 - 2a)/(lambda + a(1-a))` is 0: `a² - a (1 - 2/inverse) -
/// lambda - 1/inverse = 0`.
fn logistic(inverse: f64, lambda: f64) -> f64 {
    if lambda * inverse >= 1.0 {
        return inverse;
    }
    let half = 0.5 - 1.0 / inverse;
    let a = (half + (half * half + lambda + 1.0 / inverse).sqrt()).clamp(0.5, 1.0);
    let at = |a: f64| a * inverse + log_one_plus(a * (1.0 - a) / lambda);
    // Flat at the maximum: a rounding error of the position has an effect of second order.
    at(a).max(inverse) * (1.0 + 1e-13)
}

/// Returns the maximum over `a`, where the derivative `inverse - 2a/(l + 1 - a²)`, `l = width lambda`, is 0: `a² + 2a/inverse -
/// (1 + l) = 0`.
fn log_cosh(inverse: f64, flatness: f64) -> f64 {
    if flatness * inverse >= 2.0 {
        return inverse;
    }
    let scale = inverse.recip();
    // The root with the larger sum, which avoids a difference of nearly equal numbers.
    let a = ((1.0 + flatness) / (scale + (scale * scale + 1.0 + flatness).sqrt())).clamp(0.0, 1.0);
    let at = |a: f64| a * inverse + log_one_plus((1.0 - a * a) / flatness);
    // Flat at the maximum: a rounding error of the position has an effect of second order.
    at(a).max(inverse) * (1.0 + 1e-13)
}
