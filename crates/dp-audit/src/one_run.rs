//! Audits with a single run: many canaries, each in or out of the data by an independent coin.
//!
//! If one run takes hours, thousands of them are infeasible. Instead, the auditor tosses a fair coin for each of many canary
//! records, runs the subject once on the included ones, and guesses the coins from the release. Under a guarantee for adding
//! or removing one record, no guesser is right more often than [`bounds::one_run`](crate::bounds::one_run) allows.
//!
//! It is weaker than the many runs of an [`Auditor`](crate::Auditor): with `m` coins the bound is at most about `ln m`, and a
//! claim with a delta costs `m` times that delta. Use it when many runs are too expensive.
//!
//! # Privacy
//! The bound is valid under [`AddRemoveOne`](dp_accountant::AddRemoveOne) and [`ZeroOut`](dp_accountant::ZeroOut), where each
//! canary alone is one unit of privacy, present or not; other relations are rejected. The coins are independent and fair
//! because the auditor draws them from a separate stream, which the subject's generator does not share. The guesses depend on
//! the coins through the release alone, because [`Canaries::scores`] receives nothing else; and their number is fixed before
//! the run.
//!
//! # References
//! T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", 2023, Algorithm 1 and Theorem 5.2,
//! arXiv 2305.08846.

use dp_accountant::{AdjacencyKind, Delta, DpEvent, bound};
use dp_mechanisms::{Purpose, ReleaseRng, SeededRng};
use rand::RngExt;

use crate::audit::Verdict;
use crate::auditor::{FALSE_ALARM_RATE, TOLERANCE};
use crate::bounds::one_run::{Guesses, epsilon_lower};
use crate::error::{self, Error};
use crate::subject::Claim;
use crate::trials::name_hash;

/// A mechanism or a recipe with canary records, each of which can be omitted.
///
/// Release and scoring are separate methods, so that scoring cannot know which canaries were included.
pub trait Canaries {
    /// The release of one run.
    type Output;

    /// Returns its name.
    fn name(&self) -> &str;

    /// Returns the number of canaries.
    fn count(&self) -> usize;

    /// Returns the claim for one run, with the delta at which epsilon is stated.
    fn claim(&self) -> &Claim;

    /// Returns the neighbouring relation of the claim.
    fn relation(&self) -> AdjacencyKind;

    /// Runs once on the data with the included canaries; all randomness comes from `rng`.
    ///
    /// # Errors
    /// Only for parameters that the subject rejects, never for what was drawn.
    fn release(&self, included: &[bool], rng: &mut SeededRng) -> Result<Self::Output, Error>;

    /// Returns a score for each canary, computed from the release alone, that increases with the likelihood of its inclusion.
    fn scores(&self, output: &Self::Output) -> Vec<f64>;
}

/// An auditor that runs its subject once.
///
/// # Examples
/// A noisy sum of clipped records, with canaries that are orthogonal to each other; then one that forgets to clip.
/// ```
/// use dp_accountant::{AdjacencyKind, EventLog, ZeroOut};
/// use dp_audit::{Canaries, Claim, Error, OneRun, SeededRng, Verdict};
/// use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, Mechanism, PrivacyEvent};
///
/// struct NoisySum {
///     gaussian: Gaussian<ZeroOut>,
///     claim: Claim,
///     /// Of each canary, along a coordinate of its own.
///     clipped_length: f64,
/// }
///
/// impl Canaries for NoisySum {
///     type Output = Vec<f64>;
///     fn name(&self) -> &str {
///         "noisy sum"
///     }
///     fn count(&self) -> usize {
///         2000
///     }
///     fn claim(&self) -> &Claim {
///         &self.claim
///     }
///     fn relation(&self) -> AdjacencyKind {
///         AdjacencyKind::ZeroOut
///     }
///     fn release(&self, included: &[bool], rng: &mut SeededRng) -> Result<Vec<f64>, Error> {
///         let sum = included.iter().map(|&included| if included { self.clipped_length } else { 0.0 }).collect();
///         let bounded = Bounded::with_proven_sensitivity(sum, self.gaussian.sensitivity());
///         Ok(self.gaussian.release(bounded, &mut EventLog::new(), rng)?.into_inner())
///     }
///     fn scores(&self, output: &Vec<f64>) -> Vec<f64> {
///         output.clone()
///     }
/// }
///
/// let gaussian = Gaussian::from_std_dev(L2Sensitivity::new(1.0)?, 2.0)?;
/// let claim = Claim::new(gaussian.event())?;
/// let sound = NoisySum { gaussian, claim: claim.clone(), clipped_length: 1.0 };
/// let auditor = OneRun::new(400)?; // of 2000 coins, the 200 that look most like heads, and like tails
/// let audit = auditor.audit(&sound)?;
/// assert_eq!(audit.verdict, Verdict::NotRefuted);
/// assert!(audit.epsilon_lower > 0.2 && audit.epsilon_lower < audit.claimed_epsilon);
///
/// let broken = NoisySum { gaussian, claim, clipped_length: 12.0 };
/// assert_eq!(auditor.audit(&broken)?.verdict, Verdict::Refuted);
/// # Ok::<(), dp_audit::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneRun {
    guesses: u64,
    failure: f64,
    seed: u64,
}

/// The result of a one-run audit.
///
/// Serialised with the `serde` feature; JSON writes a number that is not finite as `null`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct OneRunAudit {
    /// Name of the subject.
    pub subject: String,
    /// The neighbouring relation of the claim.
    pub relation: AdjacencyKind,
    /// The claimed event.
    pub event: DpEvent,
    /// The delta at which epsilon is stated.
    pub delta: f64,
    /// The claimed epsilon at `delta`, an upper bound; infinite if the claim has none.
    pub claimed_epsilon: f64,
    /// The lower bound on epsilon at `delta`.
    pub epsilon_lower: f64,
    /// The guesses, with the number of correct ones.
    pub guesses: Guesses,
    /// Upper bound on the probability that an audit of a sound subject refutes it: one minus the confidence.
    pub failure_probability: f64,
    /// The seed.
    pub seed: u64,
    /// The verdict.
    pub verdict: Verdict,
}

impl OneRunAudit {
    /// Returns the lower bound divided by the claim; 0 if nothing was found or the claim has no epsilon at its delta.
    pub fn ratio(&self) -> f64 {
        if self.epsilon_lower > 0.0 && self.claimed_epsilon < f64::INFINITY {
            self.epsilon_lower / self.claimed_epsilon
        } else {
            0.0
        }
    }
}

/// Key derivation purposes of the two streams, distinct from those of trials.
const COINS: Purpose = Purpose::Custom(5);
const RUN: Purpose = Purpose::Custom(6);

impl OneRun {
    /// Sets the number of guesses: half of them, rounded up, guess that the canaries with the highest scores are in; the
    /// other half guess that those with the lowest scores are out. The attacker abstains on all others. Confidence 99.9 %,
    /// seed 0.
    ///
    /// Few guesses are more reliable, many show more: start with a tenth of the canaries, or with all of them if scores
    /// separate perfectly.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for zero guesses.
    pub fn new(guesses: u64) -> Result<Self, Error> {
        if guesses == 0 {
            return Err(Error::OutOfRange { name: "guesses", value: 0.0, range: "[1, canaries]" });
        }
        Ok(Self { guesses, failure: FALSE_ALARM_RATE, seed: 0 })
    }

    /// Sets the upper bound on the probability that an audit of a sound subject refutes it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a probability outside (0, 1).
    pub fn with_failure_probability(self, failure: f64) -> Result<Self, Error> {
        Ok(Self { failure: error::failure_probability(failure)?, ..self })
    }

    /// Sets the seed of the coins and of the run.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Tosses the coins, runs the subject once, guesses, and evaluates the guesses.
    ///
    /// # Errors
    /// [`Error::Relation`] for a claim under a relation other than adding or removing a record; [`Error::OutOfRange`] for
    /// more guesses than canaries; [`Error::Trial`] if the number of scores is not that of the canaries; errors of the
    /// subject, and a claim that the accountant rejects.
    pub fn audit<S: Canaries + ?Sized>(&self, subject: &S) -> Result<OneRunAudit, Error> {
        let (relation, count) = (subject.relation(), subject.count());
        if !matches!(relation, AdjacencyKind::AddRemoveOne | AdjacencyKind::ZeroOut) {
            return Err(Error::Relation { subject: subject.name().to_owned(), relation });
        }
        if self.guesses > count as u64 {
            return Err(Error::OutOfRange { name: "guesses", value: self.guesses as f64, range: "[1, canaries]" });
        }
        let claim = subject.claim();
        let delta = Delta::new(error::delta(claim.delta)?)?;
        let claimed_epsilon = bound::epsilon(&claim.event, delta)?.value;

        let seeded = SeededRng::new(self.seed);
        let block = name_hash(subject.name());
        let mut coins = seeded.stream(COINS, block, 0);
        let included: Vec<bool> = (0..count).map(|_| coins.random()).collect();
        let output = subject.release(&included, &mut seeded.stream(RUN, block, 0))?;
        let scores = subject.scores(&output);
        if scores.len() != count {
            let reason = format!("{} scores of {count} canaries", scores.len());
            return Err(Error::Trial { subject: subject.name().to_owned(), reason });
        }
        let guesses = Guesses {
            canaries: count as u64,
            guesses: self.guesses,
            correct: correct_guesses(&scores, &included, self.guesses),
        };
        let epsilon_lower = epsilon_lower(guesses, claim.delta, self.failure)?;
        let refuted = epsilon_lower > claimed_epsilon * (1.0 + TOLERANCE) + f64::MIN_POSITIVE;
        Ok(OneRunAudit {
            subject: subject.name().to_owned(),
            relation,
            event: claim.event.clone(),
            delta: claim.delta,
            claimed_epsilon,
            epsilon_lower,
            guesses,
            failure_probability: self.failure,
            seed: self.seed,
            verdict: if refuted { Verdict::Refuted } else { Verdict::NotRefuted },
        })
    }
}

/// Returns the number of correct guesses. Equal scores are ranked by the order of the canaries, which is independent of the
/// coins; a NaN score is the largest.
fn correct_guesses(scores: &[f64], included: &[bool], guesses: u64) -> u64 {
    // Normalises the sign of zero and the pattern of NaN, so that ties are detected.
    let key = |i: usize| if scores[i].is_nan() { f64::NAN } else { scores[i] + 0.0 };
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&i, &j| key(i).total_cmp(&key(j)));
    let low = (guesses / 2) as usize;
    let high = (guesses - guesses / 2) as usize;
    let out = order.iter().take(low).filter(|&&i| !included[i]).count();
    let inside = order.iter().rev().take(high).filter(|&&i| included[i]).count();
    (out + inside) as u64
}

#[cfg(test)]
mod tests;
