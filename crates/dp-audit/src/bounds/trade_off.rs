//! Refutation of a whole claimed trade-off curve.
//!
//! A claim with trade-off function `f` states that an attack with false-positive rate `alpha` on the other input has type II
//! error at least `f(alpha)` on the accused one. Rates are known only up to limits: with probability `1 - a` the true rates
//! satisfy `alpha <= q` and `beta <= 1 - p`. As `f` is decreasing, `beta >= f(alpha) >= f(q)`; so `1 - p < f(q)` refutes the
//! claim. For this, `f` may be replaced by any lower bound: it is computed from the certified *upper* ends of delta, the
//! larger of both directions.

use dp_accountant::{DpEvent, bound, trade_off};

use super::clopper_pearson::Limits;
use crate::error::Error;

/// Margin by which the type II error must be below the claimed curve; it covers rounding.
pub const TOLERANCE: f64 = 1e-12;

/// Returns the least type II error that `event` allows an attack with this type I error, rounded down.
///
/// # Errors
/// A number in the event that is out of range, or `type_one` outside `[0, 1]`.
///
/// # Examples
/// ```
/// use dp_accountant::DpEvent;
/// let gaussian = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
/// assert!((dp_audit::bounds::trade_off::least_type_two(&gaussian, 0.05)? - 0.74048897).abs() < 1e-8);
/// # Ok::<(), dp_audit::Error>(())
/// ```
///
/// # References
/// J. Dong, A. Roth, W. J. Su, 2019, Proposition 2.12.
pub fn least_type_two(event: &DpEvent, type_one: f64) -> Result<f64, Error> {
    Ok(trade_off::type_two_error(type_one, |epsilon| Ok(bound::delta(event, epsilon)?.value))?)
}

/// Returns whether the limits refute a curve whose value at the upper limit of the false-positive rate is `least_type_two`.
pub fn refutes(limits: &Limits, least_type_two: f64) -> bool {
    limits.type_two_upper() < least_type_two - TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Rate;

    /// Computes `Phi(-x)`.
    fn upper(x: f64) -> f64 {
        0.5 * libm::erfc(x / core::f64::consts::SQRT_2)
    }

    #[test]
    fn the_curves_of_closed_laws_are_reached_from_below() {
        let near_and_below = |found: f64, expected: f64| {
            assert!(found <= expected && found >= expected * (1.0 - 1e-6) - 1e-9, "{found}, {expected}");
        };
        for step in 1..40 {
            let z = f64::from(step) / 8.0 - 2.5;
            let type_one = upper(z);
            for mu in [0.3f64, 1.0, 2.5] {
                let gaussian = DpEvent::Gaussian { std_dev: 1.0 / mu, sensitivity: 1.0 };
                near_and_below(least_type_two(&gaussian, type_one).unwrap(), upper(mu - z));
                // Two laws at distance mu in units of the scale.
                let laplace = DpEvent::Laplace { scale: 1.0 / mu, sensitivity: 1.0 };
                let expected = if type_one < 0.5 * (-mu).exp() {
                    1.0 - mu.exp() * type_one
                } else if type_one <= 0.5 {
                    (-mu).exp() / (4.0 * type_one)
                } else {
                    (-mu).exp() * (1.0 - type_one)
                };
                near_and_below(least_type_two(&laplace, type_one).unwrap(), expected);
                let approximate = DpEvent::ApproximateDp { epsilon: mu, delta: 0.01 };
                let lines = (0.99 - mu.exp() * type_one).max((-mu).exp() * (0.99 - type_one)).max(0.0);
                near_and_below(least_type_two(&approximate, type_one).unwrap(), lines);
            }
        }
    }

    #[test]
    fn what_is_missed_less_often_than_the_curve_allows_refutes_it() {
        let rate = |value| Rate { value, complement: 1.0 - value };
        let limits = Limits { true_positive: rate(0.7), false_positive: rate(0.1) };
        assert!(refutes(&limits, 0.301) && refutes(&limits, 0.3 + 1e-11));
        assert!(!refutes(&limits, 0.3) && !refutes(&limits, 0.299) && !refutes(&limits, f64::NAN));
    }
}
