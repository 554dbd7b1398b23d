//! The meaning of an epsilon for an attacker: bounds on what can be inferred from the output with any other knowledge.
//!
//! Everything here follows from the privacy curve. Each function has a version for one pair `(epsilon, delta)` and, in
//! `of_curve`, one for a whole curve `delta(epsilon)` given as a closure (such as
//! [`Evaluator::delta`](crate::calibrate::Evaluator::delta) of an event), which gives tighter bounds. Results are rounded towards
//! the attacker.
//!
//! | quantity | function |
//! |---|---|
//! | membership advantage over a random guess | [`advantage`] |
//! | true-positive rate at a given false-positive rate | [`true_positive_rate`] |
//! | posterior belief for a prior belief `prior` | [`posterior`], with [`bayes_factor`] |
//! | probability that the output raises the odds by more than a factor | [`odds_beyond`] |
//! | probability of guessing a secret that is guessed without the output with probability `baseline` | [`reconstruction`] |
//! | number of whole records that delta alone allows to publish | [`whole_records`] |
//!
//! [`Protection`] evaluates them together for the release that an event describes.
//!
//! # Examples
//! ```
//! use dp_accountant::calibrate::Evaluator;
//! use dp_accountant::{Delta, DpEvent, Epsilon, semantics};
//!
//! // For one pair, an attacker with 1 % false positives detects the record in at most 2.7 % of the cases ...
//! let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-5)?);
//! assert!((semantics::true_positive_rate(0.01, epsilon, delta)? - 0.02719).abs() < 1e-5);
//! // ... and for the curve of the Gaussian mechanism with this pair, in at most 1.9 %.
//! let event = DpEvent::Gaussian { std_dev: 3.730631634815942, sensitivity: 1.0 };
//! let curve = |epsilon| Evaluator::Tightest.delta(&event, epsilon);
//! let rate = semantics::of_curve::true_positive_rate(0.01, curve)?;
//! assert!(rate > 0.0190 && rate < 0.0200);
//! # Ok::<(), dp_accountant::Error>(())
//! ```

use crate::error::{Error, non_negative};
use crate::params::{Delta, Epsilon};
use crate::trade_off::TradeOff;

/// Factor that covers the rounding of a few operations.
const ROUND_UP: f64 = 1.0 + 8.0 * f64::EPSILON;

/// Returns the largest membership advantage: the true-positive rate minus the false-positive rate of the best attacker, which is
/// the total variation distance. An attacker who sees either of two neighbours with equal probability is right with probability
/// at most `(1 + advantage)/2`.
///
/// # Formula
/// ```text
/// (e^epsilon - 1 + 2 delta)/(e^epsilon + 1)
/// ```
/// The value at which both `TPR <= e^epsilon FPR + delta` and `1 - FPR <= e^epsilon (1 - TPR) + delta` are equalities.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, semantics};
/// let advantage = semantics::advantage(Epsilon::new(1.0)?, Delta::ZERO);
/// assert!((advantage - 0.5f64.tanh()).abs() < 1e-14);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Kairouz, Oh and Viswanath 2015, "The composition theorem for differential privacy", Theorem 2.1 and Remark A.1 (the
/// region of both errors), arXiv:1311.0776; the definition by Yeom, Giacomelli, Fredrikson and Jha 2018,
/// arXiv:1709.01604.
pub fn advantage(epsilon: Epsilon, delta: Delta) -> f64 {
    let half = 0.5 * epsilon.get();
    // delta 2/(e^epsilon + 1) = delta (1 - tanh(epsilon/2)).
    ((half.tanh() + delta.get() * (1.0 - half.tanh())) * ROUND_UP).min(1.0)
}

/// Returns the largest true-positive rate of any attacker whose false-positive rate is at most `false_positive_rate`.
///
/// # Formula
/// ```text
/// min{ 1, e^epsilon FPR + delta, 1 - e^-epsilon (1 - delta - FPR) }
/// ```
///
/// # Errors
/// `false_positive_rate` outside `[0, 1]`.
///
/// # References
/// Wasserman and Zhou 2010, Theorem 2.4, arXiv:0811.2501; Kairouz, Oh and Viswanath 2015, Theorem 2.1.
pub fn true_positive_rate(false_positive_rate: f64, epsilon: Epsilon, delta: Delta) -> Result<f64, Error> {
    let rate = probability("false-positive rate", false_positive_rate)?;
    let (epsilon, delta) = (epsilon.get(), delta.get());
    // Not computed as 1 minus the type II error, which would lose the digits of a small rate.
    let steep = (epsilon.exp() * rate + delta) * ROUND_UP;
    let missed = TradeOff::from_pairs(&[(epsilon, delta)])?.type_two_error(rate)?;
    Ok(steep.min((1.0 - missed).next_up()).min(1.0))
}

/// Returns the largest probability of guessing a secret from the output, if it can be guessed without the output with probability
/// `baseline`.
///
/// A record is drawn from any prior and added to the others, which the attacker knows. A guess counts as right by any rule that
/// depends on record and guess (equal, or close enough). `baseline` is the best probability of a right guess without the output.
/// The relation must be add/remove or zero-out, under which the neighbour holds nothing of the record.
///
/// # Formula
/// ```text
/// 1 - f(baseline),   f the trade-off function: true_positive_rate(baseline).
/// ```
/// Proof: let `E_z` be the outputs for which the guess is right about `z`, `P_z` the law with `z` and `Q` the law without, which
/// does not depend on `z`. So `E_z[Q(E_z)] <= baseline`, because under `Q` the output does not help. And `P_z(E_z) <= 1 -
/// f(Q(E_z))`, where `1 - f` is concave and increasing; Jensen's inequality gives the claim.
///
/// # Errors
/// `baseline` outside `[0, 1]`.
///
/// # References
/// Balle, Cherubin and Hayes 2022, "Reconstructing training data with informed adversaries", arXiv:2201.04845 (the
/// attack); Hayes, Mahloujifar and Balle 2023, "Bounding training data reconstruction in DP-SGD", arXiv:2302.07225 (the
/// bound); Kaissis, Hayes, Ziller and Rueckert 2023, arXiv:2307.03928 (by the trade-off function).
pub fn reconstruction(baseline: f64, epsilon: Epsilon, delta: Delta) -> Result<f64, Error> {
    true_positive_rate(probability("baseline", baseline)?, epsilon, delta)
}

/// Returns a bound on an observer's posterior probability after seeing the output, for the prior probability `prior` and a Bayes
/// factor in favour of at most `e^log_factor`.
///
/// # Formula
/// ```text
/// prior e^s / (1 - prior + prior e^s),   s = log_factor
/// ```
///
/// # Privacy
/// Under pure `epsilon`-DP every output has a Bayes factor of at most `e^epsilon` between neighbours, so `log_factor` = epsilon.
/// With a positive delta no factor holds for every output: see [`bayes_factor`].
///
/// # Errors
/// `prior` outside `[0, 1]`; `log_factor` negative or NaN (infinity is accepted and gives 1).
///
/// # Examples
/// ```
/// use dp_accountant::semantics;
/// assert!((semantics::posterior(0.5, 1.0)? - 0.7310585786300049).abs() < 1e-14);
/// assert_eq!(semantics::posterior(0.0, 5.0)?, 0.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Dwork, McSherry, Nissim and Smith 2006, "Calibrating noise to sensitivity", Appendix A.
pub fn posterior(prior: f64, log_factor: f64) -> Result<f64, Error> {
    let prior = probability("prior", prior)?;
    if log_factor != f64::INFINITY {
        non_negative("log_factor", log_factor)?;
    }
    if prior == 0.0 {
        return Ok(0.0);
    }
    Ok((prior / (prior + (1.0 - prior) * (-log_factor).exp()) * ROUND_UP).min(1.0))
}

/// Returns the logarithm of a Bayes factor that an output exceeds with probability at most `failure`, if it comes from the
/// neighbour favoured by the factor; infinite if there is no such factor.
///
/// # Formula
/// ```text
/// s = epsilon - ln(1 - delta/failure)   for failure > delta
/// ```
/// Proof: let `B` be the outputs with `P > e^s Q`. Then `P(B) <= e^epsilon Q(B) + delta <= e^(epsilon - s) P(B) + delta`,
/// so `P(B) <= delta/(1 - e^(epsilon - s))`.
///
/// # Errors
/// `failure` outside `[0, 1]`.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, semantics};
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let log_factor = semantics::bayes_factor(1e-4, epsilon, delta)?;
/// assert!((log_factor - 1.01005).abs() < 1e-5);
/// // Except with probability 1e-4, a prior of 1 % becomes at most 2.7 %.
/// assert!((semantics::posterior(0.01, log_factor)? - 0.026994).abs() < 1e-5);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Kasiviswanathan and Smith 2014, "On the 'semantics' of differential privacy: a Bayesian formulation",
/// arXiv:0803.3946, who take `s = 2 epsilon`.
pub fn bayes_factor(failure: f64, epsilon: Epsilon, delta: Delta) -> Result<f64, Error> {
    let failure = probability("failure", failure)?;
    Ok(log_factor(failure, epsilon.get(), delta.get()))
}

fn log_factor(failure: f64, epsilon: f64, delta: f64) -> f64 {
    if delta == 0.0 {
        return epsilon;
    }
    let share = delta / failure * ROUND_UP;
    // NaN, at 0/0, fails the comparison.
    if share < 1.0 { (epsilon - (-share).ln_1p()) * ROUND_UP } else { f64::INFINITY }
}

/// Returns the largest probability with which the output raises the odds of one neighbour against the other by a factor above
/// `e^log_factor`, for outputs of either neighbour and for anything computed from the output.
///
/// At `log_factor = epsilon` this is *not* delta: no multiple of delta bounds it.
///
/// # Formula
/// ```text
/// min{ 1, delta/(1 - e^(epsilon - t)), (e^epsilon - 1 + delta)/(e^epsilon - e^-t) },   t = log_factor,
/// ```
/// where the first fraction is for `t > epsilon`. Proof: let `B` be the outputs with `P > e^t Q`, so that `Q(B) <= e^-t P(B)`;
/// the fractions are the solutions for `P(B)` of `P(B) <= e^epsilon Q(B) + delta` and of the same for `1 - Q(B)` and `1 - P(B)`.
/// Under `Q` the probability of `B` is smaller.
///
/// # Errors
/// `log_factor` negative or NaN.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, gaussian, semantics};
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// // One pair gives a weak bound at its own epsilon, ...
/// assert!(semantics::odds_beyond(1.0, epsilon, delta)? > 0.7);
/// // ... and the curve of the Gaussian mechanism with this pair gives 3.8e-5: 38 times delta.
/// let mu = gaussian::noise_multiplier(epsilon, delta)?.get().recip();
/// let beyond = semantics::of_curve::odds_beyond(1.0, |epsilon| gaussian::delta(mu, epsilon))?;
/// assert!(beyond > 2e-5 && beyond < 6e-5, "{beyond}");
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn odds_beyond(log_factor: f64, epsilon: Epsilon, delta: Delta) -> Result<f64, Error> {
    let factor = log_factor_at_least_zero(log_factor)?;
    let (epsilon, delta) = (epsilon.get(), delta.get());
    Ok(beyond_by_first(factor, epsilon, delta).min(beyond_by_second(factor, epsilon, delta)).min(1.0))
}

fn log_factor_at_least_zero(log_factor: f64) -> Result<f64, Error> {
    if log_factor == f64::INFINITY { Ok(log_factor) } else { non_negative("log_factor", log_factor) }
}

/// Returns `delta/(1 - e^(epsilon - t))`.
fn beyond_by_first(factor: f64, epsilon: f64, delta: f64) -> f64 {
    // exp_m1 of a difference loses digits if both are close, but then the difference is exact (Sterbenz).
    let room = -(epsilon - factor).exp_m1();
    if room > 0.0 { delta / room * ROUND_UP } else { f64::INFINITY }
}

/// Returns `(e^epsilon - 1 + delta)/(e^epsilon - e^-t)`, computed with both divided by `e^epsilon`.
fn beyond_by_second(factor: f64, epsilon: f64, delta: f64) -> f64 {
    let room = -(-factor - epsilon).exp_m1();
    if room > 0.0 { (delta * (-epsilon).exp() - (-epsilon).exp_m1()) / room * ROUND_UP } else { f64::INFINITY }
}

/// Returns the number of whole records, drawn at random from `records`, that can be published under any guarantee with this
/// delta. It is positive if delta is at least `1/records`, so such a delta is no protection by itself.
///
/// # Formula
/// ```text
/// floor(delta records)
/// ```
/// Each record is among `k` that are drawn with probability `k/records`, so that publishing them is
/// `(0, k/records)`-differentially private.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, semantics};
/// assert_eq!(semantics::whole_records(Delta::new(1e-6)?, 50_000), 0);
/// assert_eq!(semantics::whole_records(Delta::new(0.01)?, 50_000), 500);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Dwork and Roth 2014, "The algorithmic foundations of differential privacy", section 2.3: deltas of the order of
/// one over the number of records "are very dangerous".
pub fn whole_records(delta: Delta, records: u64) -> u64 {
    // A product that rounds up to a whole number is taken as that number; the cast saturates.
    (delta.get() * records as f64) as u64
}

fn probability(name: &'static str, value: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(Error::OutOfRange { name, value, range: "[0, 1]" }) }
}

/// The same bounds from a whole privacy curve: `delta_at` gives an upper bound on delta at each epsilon.
pub mod of_curve {
    use super::{ROUND_UP, beyond_by_first, beyond_by_second, log_factor, log_factor_at_least_zero, probability};
    use crate::error::Error;
    use crate::trade_off;

    /// False-positive rate below which the true-positive rate itself is minimised.
    const SMALL_RATE: f64 = 0.01;

    /// Logarithm of the largest factor; larger ones are not distinguished.
    const LARGEST_FACTOR: f64 = 700.0;

    /// Probability below which the odds are raised in the steep half of the curve.
    const SMALL_PROBABILITY: f64 = 0.25;

    /// Returns the largest membership advantage: `delta(0)`, which is the total variation distance; see
    /// [`advantage`](super::advantage).
    ///
    /// # Errors
    /// The errors of `delta_at`.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{gaussian, semantics};
    /// let advantage = semantics::of_curve::advantage(|epsilon| gaussian::delta(0.5, epsilon))?;
    /// assert!((advantage - 0.19741265).abs() < 1e-8); // 2 Phi(1/4) - 1
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    pub fn advantage(delta_at: impl Fn(f64) -> Result<f64, Error>) -> Result<f64, Error> {
        Ok(delta_at(0.0)?.min(1.0))
    }

    /// Returns the largest true-positive rate of any attacker whose false-positive rate is at most `false_positive_rate`: 1 minus
    /// the [type II error](trade_off::type_two_error).
    ///
    /// # Errors
    /// `false_positive_rate` outside `[0, 1]`, and the errors of `delta_at`.
    pub fn true_positive_rate(
        false_positive_rate: f64,
        delta_at: impl Fn(f64) -> Result<f64, Error>,
    ) -> Result<f64, Error> {
        let rate = probability("false-positive rate", false_positive_rate)?;
        // Not computed as 1 minus the type II error if this would lose the digits of a small rate.
        if rate > 0.0 && rate < SMALL_RATE {
            let steep = |epsilon: f64| Ok(-(delta_at(epsilon)? + epsilon.exp() * rate) * ROUND_UP);
            let (epsilon, negated) = trade_off::largest(0.0, -rate.ln(), steep)?;
            if epsilon > 0.0 && negated.is_finite() {
                return Ok((-negated).min(1.0));
            }
        }
        Ok((1.0 - trade_off::type_two_error(rate, delta_at)?).next_up().min(1.0))
    }

    /// Returns the largest probability of guessing a secret that can be guessed without the output with probability `baseline`;
    /// see [`reconstruction`](super::reconstruction).
    ///
    /// # Errors
    /// `baseline` outside `[0, 1]`, and the errors of `delta_at`.
    pub fn reconstruction(baseline: f64, delta_at: impl Fn(f64) -> Result<f64, Error>) -> Result<f64, Error> {
        true_positive_rate(probability("baseline", baseline)?, delta_at)
    }

    /// Returns the logarithm of a Bayes factor that is exceeded with probability at most `failure`; see
    /// [`bayes_factor`](super::bayes_factor).
    ///
    /// # Formula
    /// ```text
    /// min over epsilon with delta(epsilon) < failure of epsilon - ln(1 - delta(epsilon)/failure)
    /// ```
    ///
    /// # Errors
    /// `failure` outside `[0, 1]`, and the errors of `delta_at`.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{gaussian, semantics};
    /// let log_factor = semantics::of_curve::bayes_factor(1e-4, |epsilon| gaussian::delta(0.2, epsilon))?;
    /// // The loss is N(0.02, 0.04): its exact upper quantile is 0.02 + 0.2 * 3.719.
    /// assert!(log_factor > 0.7638 && log_factor < 0.8107);
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    pub fn bayes_factor(failure: f64, delta_at: impl Fn(f64) -> Result<f64, Error>) -> Result<f64, Error> {
        let failure = probability("failure", failure)?;
        let factor = |epsilon: f64| Ok(log_factor(failure, epsilon, delta_at(epsilon)?));
        let at_zero = factor(0.0)?;
        // Once the factor is finite, it is larger than epsilon; so the least is at an epsilon below its first finite value.
        let mut end = 1.0;
        let mut first = factor(end)?;
        while first == f64::INFINITY {
            if end > 1e6 {
                return Ok(at_zero);
            }
            end *= 2.0;
            first = factor(end)?;
        }
        // Where it is infinite, delta guides the search, with values beyond any finite one.
        let (_, least) = trade_off::largest(0.0, first, |epsilon| {
            let delta = delta_at(epsilon)?;
            let factor = log_factor(failure, epsilon, delta);
            Ok(-(if factor < f64::INFINITY { factor } else { 1e3 * (1.0 + delta) + first }))
        })?;
        Ok((-least).min(at_zero).min(first))
    }

    /// Returns the largest probability with which the output raises the odds by a factor above `e^log_factor`; see
    /// [`odds_beyond`](super::odds_beyond).
    ///
    /// # Formula
    /// ```text
    /// min over epsilon in [0, t) of delta(epsilon)/(1 - e^(epsilon - t)),
    /// min over epsilon >= 0 of (e^epsilon - 1 + delta(epsilon))/(e^epsilon - e^-t),   t = log_factor
    /// ```
    /// The bound is tight: choose a threshold such that the event "the likelihood ratio is above it" alone changes the odds by
    /// `e^t`. An observer who sees only whether this event occurs sees it with this probability. The probability that the
    /// privacy loss of the output itself is above `t` is smaller, but does not bound that of post-processed outputs.
    ///
    /// # Errors
    /// `log_factor` negative or NaN, and the errors of `delta_at`.
    pub fn odds_beyond(log_factor: f64, delta_at: impl Fn(f64) -> Result<f64, Error>) -> Result<f64, Error> {
        let factor = log_factor_at_least_zero(log_factor)?;
        // As functions of e^epsilon both are a convex function over a linear one, with one minimum. Logarithms keep small values
        // accurate.
        let first = |epsilon: f64| Ok(-beyond_by_first(factor, epsilon, delta_at(epsilon)?).ln());
        let second = |epsilon: f64| Ok(-beyond_by_second(factor, epsilon, delta_at(epsilon)?).ln());
        let (at, least) = trade_off::largest(0.0, factor.min(LARGEST_FACTOR), first)?;
        // The minimum itself, not the exponential of its logarithm.
        let by_first = if least > 0.0 { beyond_by_first(factor, at, delta_at(at)?) } else { 1.0 };
        if by_first < SMALL_PROBABILITY {
            return Ok(by_first);
        }
        // Epsilons at which the second fraction would exceed the least value so far even with delta 0 are skipped.
        let mut end = factor.clamp(1.0, LARGEST_FACTOR);
        let mut found = beyond_by_second(factor, end, delta_at(end)?);
        while end < LARGEST_FACTOR && beyond_by_second(factor, end, 0.0) < found {
            end *= 2.0;
            found = found.min(beyond_by_second(factor, end, delta_at(end)?));
        }
        let (at, _) = trade_off::largest(0.0, end, second)?;
        let by_second = beyond_by_second(factor, at, delta_at(at)?);
        Ok(by_first.min(by_second).min(1.0))
    }
}

mod protection;

pub use protection::{Belief, Detection, Protection};

#[cfg(test)]
mod tests;
