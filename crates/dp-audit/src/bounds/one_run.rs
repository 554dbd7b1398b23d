//! A lower bound from a single run with many canaries.
//!
//! Each of `canaries` records is in or out of the data by an independent fair coin. The run is observed once. The attacker
//! guesses the coins of `guesses` canaries, and `correct` of the guesses are right. Under an `(epsilon, delta)` guarantee
//! for adding or removing one record,
//!
//! ```text
//! P(correct >= v) <= P(W >= v) + 2 m delta max_(1 <= i <= v) P(v - i <= W < v) / i,   W ~ Binomial(r, 1/(1 + e^-epsilon)),
//! ```
//!
//! with `m` canaries and `r` guesses, for every attacker and every dependence between the guesses. An epsilon at which the
//! right side is below the failure probability is refuted. This needs no monotonicity in epsilon: a true epsilon below the
//! refuted one would imply the refuted guarantee too.
//!
//! # Privacy
//! Valid for adding or removing a record, with independent fair coins, and a number of guesses fixed beforehand (or at most
//! `guesses`). Weaker than many runs: report it as such.
//!
//! # References
//! T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", 2023, Theorem 5.2 and appendix D,
//! arXiv 2305.08846.

use super::binomial::log_upper_tail;
use super::clopper_pearson::MOST_TRIALS;
use crate::error::{self, Error};

/// The guesses of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Guesses {
    /// Number of records whose presence was decided by a coin.
    pub canaries: u64,
    /// Number of guessed canaries; the attacker abstains on the others.
    pub guesses: u64,
    /// Number of correct guesses.
    pub correct: u64,
}

/// Largest number of canaries; more would make the sum over masses too slow.
const MOST_CANARIES: u64 = 100_000_000;

/// Largest epsilon of the search.
const LARGEST_EPSILON: f64 = 700.0;

/// Returns the lower bound on epsilon at `delta` that is wrong with probability at most `failure`.
///
/// # Errors
/// [`Error::OutOfRange`] for more guesses than canaries, more correct ones than guesses, more than 10^8 canaries, and for a
/// delta or a failure probability out of range.
///
/// # Examples
/// ```
/// use dp_audit::bounds::one_run::{Guesses, epsilon_lower};
/// let all = Guesses { canaries: 1000, guesses: 1000, correct: 1000 };
/// assert!((epsilon_lower(all, 0.0, 0.05)? - 5.8090683385).abs() < 1e-8);
/// assert!(epsilon_lower(all, 1e-5, 0.05)? < 5.8);
/// # Ok::<(), dp_audit::Error>(())
/// ```
pub fn epsilon_lower(guesses: Guesses, delta: f64, failure: f64) -> Result<f64, Error> {
    let Guesses { canaries, guesses: made, correct } = guesses;
    let delta = error::delta(delta)?;
    let failure = error::failure_probability(failure)?;
    let most = if delta == 0.0 { MOST_TRIALS } else { MOST_CANARIES };
    if canaries > most {
        return Err(Error::OutOfRange { name: "canaries", value: canaries as f64, range: "[0, 10^8]" });
    }
    if made > canaries {
        return Err(Error::OutOfRange { name: "guesses", value: made as f64, range: "[0, canaries]" });
    }
    if correct > made {
        return Err(Error::OutOfRange { name: "correct guesses", value: correct as f64, range: "[0, guesses]" });
    }
    let refuted = |epsilon: f64| p_value(guesses, delta, epsilon) < failure;
    // Chance gives half of the guesses right.
    if correct == 0 || !refuted(0.0) {
        return Ok(0.0);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while refuted(high) {
        low = high;
        high *= 2.0;
        if high > LARGEST_EPSILON {
            return Ok(low);
        }
    }
    // Invariant: `low` is refuted.
    while high - low > 1e-11 * high {
        let middle = 0.5 * (low + high);
        if refuted(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// Returns an upper bound on the probability of at least this number of correct guesses under `(epsilon, delta)`.
pub fn p_value(guesses: Guesses, delta: f64, epsilon: f64) -> f64 {
    let Guesses { canaries, guesses: made, correct } = guesses;
    let tail = log_upper_tail(correct, made, epsilon).exp() * (1.0 + 4.0 * f64::EPSILON);
    if delta == 0.0 || !(tail < 1.0) {
        return tail.min(1.0);
    }
    // Masses below `correct`, one by one from the top: P(W = v - i) by its ratio to the previous one. The average over i is
    // largest where the mass equals it, at the latest where the masses begin to fall.
    let p = 1.0 / (1.0 + (-epsilon).exp());
    let (trials, odds) = (made as f64, epsilon.exp());
    let mut log_mass = log_mass(correct, made, epsilon);
    let (mut sum, mut largest) = (0.0f64, 0.0f64);
    for i in 1..=correct {
        let k = (correct - i) as f64;
        // mass(k) = mass(k + 1) (k + 1) / ((r - k) odds)
        log_mass += ((k + 1.0) / ((trials - k) * odds)).ln();
        let mass = log_mass.exp();
        sum += mass;
        largest = largest.max(sum / i as f64);
        if k < trials * p && mass < sum / i as f64 {
            break;
        }
    }
    // Covers the rounding of the first mass, a difference of log-factorials, and of the ratios after it.
    let rounding = 1e-9 + 8.0 * f64::EPSILON * (trials * (1.0 + trials.ln()));
    (tail + 2.0 * canaries as f64 * delta * largest * (1.0 + rounding)).min(1.0)
}

/// Returns the logarithm of a binomial mass, from log-factorials.
fn log_mass(hits: u64, trials: u64, log_odds: f64) -> f64 {
    use statrs::function::gamma::ln_gamma;
    let (k, n) = (hits as f64, trials as f64);
    let success = -(-log_odds).exp().ln_1p();
    let miss = -log_odds.exp().ln_1p();
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
        + if hits == 0 { 0.0 } else { k * success }
        + if hits == trials { 0.0 } else { (n - k) * miss }
}

#[cfg(test)]
mod tests;
