//! All semantic bounds for one release.

use super::{bayes_factor, odds_beyond, of_curve, posterior, true_positive_rate};
use crate::adjacency::AdjacencyKind;
use crate::bound;
use crate::error::Error;
use crate::evaluator::{Evaluation, Evaluator};
use crate::event::DpEvent;
use crate::params::{Delta, Epsilon};

/// False-positive rates for which the true-positive rate is bounded.
const FALSE_POSITIVE_RATES: [f64; 3] = [0.001, 0.01, 0.1];

/// Prior beliefs for which the posterior beliefs are bounded.
const PRIORS: [f64; 2] = [0.01, 0.5];

/// Ratio to delta of the probability with which a Bayes factor may exceed the stated bound.
const FAILURE_OVER_DELTA: f64 = 10.0;

/// Upper bounds on what an attacker can infer from one release, from its whole privacy curve.
///
/// The attacker knows everything except the noise and one unit's data: all other records, the settings and the algorithm.
///
/// # Examples
/// ```
/// use dp_accountant::semantics::Protection;
/// use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon};
///
/// let event = DpEvent::Gaussian { std_dev: 4.224_678_7, sensitivity: 1.0 };
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let protection = Protection::of_event(&event, AdjacencyKind::ReplaceOne, epsilon, delta)?;
/// assert!((protection.advantage - 0.094_212).abs() < 1e-5); // 2 Phi(mu/2) - 1
/// let detection = protection.true_positive_rates[1]; // Phi(mu - 2.3263)
/// assert!(detection.false_positive_rate == 0.01 && (detection.at_most - 0.018_3).abs() < 1e-3);
/// assert!(protection.odds_beyond_epsilon > 2e-5); // delta is 1e-6
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Protection {
    /// Epsilon of the guarantee.
    pub epsilon: f64,
    /// Delta of the guarantee.
    pub delta: f64,
    /// True-positive rate minus false-positive rate of the best attack: see [`advantage`](super::advantage()).
    pub advantage: f64,
    /// True-positive rates at given false-positive rates: see [`true_positive_rate`](super::true_positive_rate).
    pub true_positive_rates: Vec<Detection>,
    /// The probability that the odds rise by a factor above `e^epsilon`: see [`odds_beyond`](super::odds_beyond).
    pub odds_beyond_epsilon: f64,
    /// The logarithm of the largest factor by which the odds rise, except with probability [`failure`](Self::failure); infinite
    /// if there is no bound: see [`bayes_factor`](super::bayes_factor).
    pub log_bayes_factor: f64,
    /// The probability with which the odds may rise by more: 0 for a pure guarantee, otherwise ten times delta.
    pub failure: f64,
    /// Posterior beliefs, with the same exception: see [`posterior`](super::posterior).
    pub posteriors: Vec<Belief>,
}

/// A bound on an attack's true-positive rate at a false-positive rate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Detection {
    /// The false-positive rate.
    pub false_positive_rate: f64,
    /// Upper bound on the true-positive rate.
    pub at_most: f64,
}

/// A bound on a posterior belief.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Belief {
    /// The prior probability.
    pub prior: f64,
    /// Upper bound on the posterior probability.
    pub at_most: f64,
}

impl Protection {
    /// Returns the bounds for the release that `event` describes and that is `(epsilon, delta)`-DP, from the tightest curve of
    /// this crate: the exact one if there is one, otherwise [`bound::delta`].
    ///
    /// # Errors
    /// A number in the tree that is out of range, and [`Error::NotUnderRelation`].
    pub fn of_event(event: &DpEvent, relation: AdjacencyKind, epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        let evaluation = Evaluation::new(Evaluator::Tightest, event, relation)?;
        let delta_at = |epsilon: f64| Ok(evaluation.delta(epsilon)?.upper.min(1.0));
        let largest_loss = bound::epsilon(event, Delta::ZERO)?.value;
        Self::of_curve(epsilon.get(), delta.get(), largest_loss, delta_at)
    }

    /// Returns the bounds for a release that is `(epsilon, delta)`-DP, with `largest_loss` as its epsilon at delta 0 (infinite if
    /// there is none) and at most `delta_at` at any epsilon. An infinite epsilon or a delta of 1 gives no bound by itself.
    ///
    /// # Errors
    /// `epsilon` or `largest_loss` negative or NaN, `delta` outside `[0, 1]`, and the errors of `delta_at`.
    pub fn of_curve(
        epsilon: f64,
        delta: f64,
        largest_loss: f64,
        delta_at: impl Fn(f64) -> Result<f64, Error>,
    ) -> Result<Self, Error> {
        let delta = super::probability("delta", delta)?;
        let largest_loss = super::log_factor_at_least_zero(largest_loss)?;
        // The guarantee itself and the largest loss are points of the curve, which a search along it may miss slightly.
        let mut pairs = Vec::new();
        for (epsilon, delta) in [(epsilon, delta), (largest_loss, 0.0)] {
            if let (Ok(epsilon), Ok(delta)) = (Epsilon::new(epsilon), Delta::new(delta)) {
                pairs.push((epsilon, delta));
            }
        }
        let best = |by_curve: f64, by_pair: &dyn Fn(Epsilon, Delta) -> Result<f64, Error>| {
            pairs
                .iter()
                .try_fold(by_curve, |best, &(epsilon, delta)| Ok::<_, Error>(best.min(by_pair(epsilon, delta)?)))
        };
        let detection = |false_positive_rate| {
            let by_curve = of_curve::true_positive_rate(false_positive_rate, &delta_at)?;
            let at_most = best(by_curve, &|epsilon, delta| true_positive_rate(false_positive_rate, epsilon, delta))?;
            Ok::<_, Error>(Detection { false_positive_rate, at_most })
        };
        let odds_beyond_epsilon = if largest_loss <= epsilon {
            0.0
        } else {
            let by_curve = of_curve::odds_beyond(epsilon, &delta_at)?;
            best(by_curve, &|of_pair, delta| odds_beyond(epsilon, of_pair, delta))?
        };
        let failure = if largest_loss <= epsilon { 0.0 } else { (FAILURE_OVER_DELTA * delta).min(1.0) };
        let log_bayes_factor = match failure {
            0.0 => largest_loss,
            failure => {
                let by_curve = of_curve::bayes_factor(failure, &delta_at)?;
                best(by_curve, &|epsilon, delta| bayes_factor(failure, epsilon, delta))?
            }
        };
        let belief = |prior| Ok::<_, Error>(Belief { prior, at_most: posterior(prior, log_bayes_factor)? });
        let by_curve = of_curve::advantage(&delta_at)?;
        Ok(Self {
            epsilon,
            delta,
            advantage: best(by_curve, &|epsilon, delta| Ok(super::advantage(epsilon, delta)))?,
            true_positive_rates: FALSE_POSITIVE_RATES.into_iter().map(detection).collect::<Result<_, _>>()?,
            odds_beyond_epsilon,
            log_bayes_factor,
            failure,
            posteriors: PRIORS.into_iter().map(belief).collect::<Result<_, _>>()?,
        })
    }
}
