//! Confidence limits of an attack's rates, and their bound on epsilon at one delta.

use super::binomial::Rate;
use crate::error::{self, Error};

/// Largest number of trials per side: counts that doubles represent exactly.
pub(crate) const MOST_TRIALS: u64 = 1 << 53;

/// Counts of an attack: hits on the accused input and on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Hits {
    /// Hits on the accused input.
    pub true_positives: u64,
    /// Runs on the accused input.
    pub positives: u64,
    /// Hits on the other input.
    pub false_positives: u64,
    /// Runs on the other input.
    pub negatives: u64,
}

/// A lower limit of the true-positive rate and an upper limit of the false-positive rate, holding simultaneously.
///
/// # Formula
/// ```text
/// true_positive  = Beta^-1(a/2; TP, n1 - TP + 1)        (0 at TP = 0)
/// false_positive = Beta^-1(1 - a/2; FP + 1, n0 - FP)    (1 at FP = n0)
/// ```
///
/// # Examples
/// ```
/// use dp_audit::bounds::{Hits, Limits};
/// let hits = Hits { true_positives: 900, positives: 1000, false_positives: 50, negatives: 1000 };
/// let limits = Limits::new(hits, 0.05)?;
/// assert!((limits.true_positive.value - 0.8797120635).abs() < 1e-9);
/// assert!((limits.false_positive.value - 0.0653904879).abs() < 1e-9);
/// assert!((limits.epsilon_lower(0.0)? - 2.5992178502).abs() < 1e-9);
/// # Ok::<(), dp_audit::Error>(())
/// ```
///
/// # References
/// C. Clopper, E. Pearson, 1934. M. Jagielski, J. Ullman, A. Oprea, "Auditing differentially private machine learning",
/// 2020, arXiv 2006.07709.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Limits {
    /// Lower limit of the hit rate on the accused input.
    pub true_positive: Rate,
    /// Upper limit of the hit rate on the other input.
    pub false_positive: Rate,
}

impl Limits {
    /// Computes limits that fail, either of them, with probability at most `failure`; each takes half of it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a side without runs or with more than 2^53, for more hits than runs, and for a `failure`
    /// outside (0, 1).
    pub fn new(hits: Hits, failure: f64) -> Result<Self, Error> {
        let failure = error::failure_probability(failure)?;
        for (name, runs, of) in [
            ("true positives", hits.true_positives, hits.positives),
            ("false positives", hits.false_positives, hits.negatives),
        ] {
            if !(1..=MOST_TRIALS).contains(&of) {
                return Err(Error::OutOfRange { name: "runs of a side", value: of as f64, range: "[1, 2^53]" });
            }
            if runs > of {
                return Err(Error::OutOfRange { name, value: runs as f64, range: "[0, number of runs]" });
            }
        }
        Ok(Self {
            true_positive: Rate::lower_limit(hits.true_positives, hits.positives, 0.5 * failure),
            false_positive: Rate::upper_limit(hits.false_positives, hits.negatives, 0.5 * failure),
        })
    }

    /// Returns a lower bound on epsilon at `delta`; 0 if the attack shows nothing, infinite if no epsilon is possible.
    ///
    /// # Formula
    /// ```text
    /// max{ 0, ln((p - delta) / q), ln((1 - q - delta) / (1 - p)) },   p = true_positive, q = false_positive
    /// ```
    /// The second term belongs to the complementary event, in the opposite direction. It uses the same two limits, so both
    /// share one failure probability. Rounded down.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a delta outside [0, 1).
    pub fn epsilon_lower(&self, delta: f64) -> Result<f64, Error> {
        let delta = error::delta(delta)?;
        let (p, q) = (self.true_positive, self.false_positive);
        Ok(log_ratio(p.value, delta, q.value).max(log_ratio(q.complement, delta, p.complement)))
    }

    /// Returns the upper limit of the attack's type II error: the share of the accused input's runs that is missed.
    pub fn type_two_upper(&self) -> f64 {
        self.true_positive.complement
    }
}

/// Computes `ln((more - delta) / less)`, rounded down, if positive.
fn log_ratio(more: f64, delta: f64, less: f64) -> f64 {
    let numerator = more - delta;
    if !(numerator > less) {
        return 0.0;
    }
    if less == 0.0 {
        return f64::INFINITY;
    }
    // Rounding of the difference, the quotient and the logarithm.
    let rounding = f64::EPSILON * (4.0 + more / numerator);
    let ratio = (numerator / less).ln();
    (ratio - rounding - 2.0 * f64::EPSILON * ratio.abs()).max(0.0)
}

#[cfg(test)]
mod tests;
