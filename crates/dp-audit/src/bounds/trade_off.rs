//! Refutation of a whole claimed trade-off curve.
//!
//! A claim with trade-off function `f` states that an attack with false-positive rate `alpha` on the other input has type II
//! error at least `f(alpha)` on the accused one. Rates are known only up to limits: with probability `1 - a` the true rates
//! satisfy `alpha <= q` and `beta <= 1 - p`. As `f` is decreasing, `beta >= f(alpha) >= f(q)`; so `1 - p < f(q)` refutes the
//! claim. For this, `f` may be replaced by any lower bound: it is computed from the certified *upper* ends of delta, the
//! larger of both directions.

use core::cell::OnceCell;

use dp_accountant::exact::PrivacyCurve;
use dp_accountant::{Delta, DpEvent, bound, trade_off};

use super::clopper_pearson::Limits;
use crate::error::Error;

/// Margin by which the type II error must be below the claimed curve; it covers rounding.
pub const TOLERANCE: f64 = 1e-12;

/// The curve of a claimed event, for several evaluations, which share one exact [`PrivacyCurve`].
///
/// # Examples
/// ```
/// use dp_accountant::DpEvent;
/// use dp_audit::bounds::trade_off::ClaimedCurve;
///
/// let gaussian = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
/// assert!((ClaimedCurve::new(&gaussian).least_type_two(0.05)? - 0.74048897).abs() < 1e-8);
/// # Ok::<(), dp_audit::Error>(())
/// ```
#[derive(Debug)]
pub struct ClaimedCurve<'a> {
    event: &'a DpEvent,
    /// Prepared on demand; `None` if there is none.
    exact: OnceCell<Option<PrivacyCurve>>,
}

impl<'a> ClaimedCurve<'a> {
    /// Returns the curve of `event`. Nothing is computed yet.
    pub fn new(event: &'a DpEvent) -> Self {
        Self { event, exact: OnceCell::new() }
    }

    fn exact(&self) -> Option<&PrivacyCurve> {
        self.exact.get_or_init(|| PrivacyCurve::new(self.event).ok()).as_ref()
    }

    /// Returns the least known delta at `epsilon`: [`bound::delta`].
    ///
    /// # Errors
    /// A number in the event that is out of range, and `epsilon` negative, NaN or infinite.
    pub fn delta(&self, epsilon: f64) -> Result<f64, dp_accountant::Error> {
        let known = self.exact().and_then(|curve| curve.delta(epsilon).ok());
        Ok(bound::delta_beside(self.event, epsilon, known)?.value)
    }

    /// Returns the least known epsilon at `delta`: [`bound::epsilon`].
    ///
    /// # Errors
    /// A number in the event that is out of range.
    pub fn epsilon(&self, delta: Delta) -> Result<f64, dp_accountant::Error> {
        let known = self.exact().and_then(|curve| curve.epsilon(delta).ok());
        Ok(bound::epsilon_beside(self.event, delta, known)?.value)
    }

    /// Returns the least type II error that the event allows an attack with this type I error, rounded down.
    ///
    /// # Errors
    /// A number in the event that is out of range, or `type_one` outside `[0, 1]`.
    ///
    /// # References
    /// J. Dong, A. Roth, W. J. Su, 2019, Proposition 2.12.
    pub fn least_type_two(&self, type_one: f64) -> Result<f64, Error> {
        Ok(trade_off::type_two_error(type_one, |epsilon| self.delta(epsilon))?)
    }
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
                near_and_below(ClaimedCurve::new(&gaussian).least_type_two(type_one).unwrap(), upper(mu - z));
                // Two laws at distance mu in units of the scale.
                let laplace = DpEvent::Laplace { scale: 1.0 / mu, sensitivity: 1.0 };
                let expected = if type_one < 0.5 * (-mu).exp() {
                    1.0 - mu.exp() * type_one
                } else if type_one <= 0.5 {
                    (-mu).exp() / (4.0 * type_one)
                } else {
                    (-mu).exp() * (1.0 - type_one)
                };
                near_and_below(ClaimedCurve::new(&laplace).least_type_two(type_one).unwrap(), expected);
                let approximate = DpEvent::ApproximateDp { epsilon: mu, delta: 0.01 };
                let lines = (0.99 - mu.exp() * type_one).max((-mu).exp() * (0.99 - type_one)).max(0.0);
                near_and_below(ClaimedCurve::new(&approximate).least_type_two(type_one).unwrap(), lines);
            }
        }
    }

    #[test]
    fn bounds_of_a_kept_curve_are_those_of_fresh_ones() {
        let sampled = DpEvent::PoissonSampled {
            sampling_rate: 0.05,
            event: Box::new(DpEvent::Gaussian { std_dev: 1.5, sensitivity: 1.0 }),
        };
        let steps = DpEvent::SelfComposed { event: Box::new(sampled), count: 40 };
        let beside = vec![steps.clone(), DpEvent::ApproximateDp { epsilon: 0.3, delta: 1e-7 }];
        let events = [
            DpEvent::Group { size: 3, event: Box::new(steps.clone()) },
            steps,
            DpEvent::Composed { events: beside },
            DpEvent::PureDp { epsilon: 0.7 },
            DpEvent::Zcdp { rho: 0.1 },
            DpEvent::NonPrivate,
        ];
        let same = |kept: f64, fresh: f64| kept == fresh || (kept - fresh).abs() <= 1e-9 * fresh;
        for event in &events {
            let curve = ClaimedCurve::new(event);
            for epsilon in [0.0, 0.1, 0.6, 2.0] {
                let (kept, fresh) = (curve.delta(epsilon).unwrap(), bound::delta(event, epsilon).unwrap().value);
                assert!(same(kept, fresh), "{event:?} {epsilon}: {kept}, {fresh}");
            }
            for delta in [0.0, 1e-6, 1e-2].map(|delta| Delta::new(delta).unwrap()) {
                let (kept, fresh) = (curve.epsilon(delta).unwrap(), bound::epsilon(event, delta).unwrap().value);
                assert!(same(kept, fresh), "{event:?} {delta}: {kept}, {fresh}");
            }
            assert!(curve.delta(-1.0).is_err() && curve.delta(f64::NAN).is_err());
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
