//! The result of an audit.

use dp_accountant::trade_off::{Errors, TradeOff};
use dp_accountant::{DpEvent, bound};

use crate::bounds::{Hits, Limits, credible};
use crate::error::Error;
use crate::subject::{Side, Statistic};

/// The outcome for the claim: refuted or not. An audit never shows more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Verdict {
    /// Not refuted at this confidence by this attack on this pair; others may refute it.
    NotRefuted,
    /// The claim is false, except with the audit's failure probability.
    Refuted,
}

/// The bound that refutes a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BoundKind {
    /// Epsilon at the claim's delta, from Clopper-Pearson limits.
    Epsilon,
    /// The claim's whole trade-off curve.
    TradeOff,
    /// Mu, for a Gaussian claim.
    Mu,
}

/// The evidence against a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Conviction {
    /// The bound.
    pub bound: BoundKind,
    /// The index of the test in [`Audit::tests`]: the direction of the pair, and the event or threshold.
    pub test: usize,
}

/// One test: an event that accuses one of the inputs, with its counts.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Test {
    /// The input that the event accuses.
    pub accused: Side,
    /// The event in words.
    pub event: String,
    /// Its counts on the evaluation half.
    pub hits: Hits,
    /// The confidence limits of both rates.
    pub limits: Limits,
    /// Lower bound on epsilon at the claim's delta.
    pub epsilon_lower: f64,
    /// Lower bound on mu, for claims of Gaussian differential privacy.
    pub mu_lower: f64,
    /// The least type II error that the claim allows at the upper limit of the false-positive rate; `None` if the test is no
    /// better than guessing. The claim is refuted if the upper limit of the type II error is below it.
    pub least_type_two: Option<f64>,
}

/// A Gaussian claim with the audit's bound on mu.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GaussianComparison {
    /// The claim.
    pub claimed_mu: f64,
    /// The lower bound on mu.
    pub mu_lower: f64,
    /// Epsilon, at the claim's delta, of a Gaussian mechanism with mu equal to the bound.
    pub epsilon: f64,
}

/// A point of the observed trade-off curve, estimated on the evaluation half.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Point {
    /// Share of the other input's runs that were accused.
    pub type_one: f64,
    /// Share of the accused input's runs that were missed.
    pub type_two: f64,
}

/// The simultaneous confidence band of a curve's estimates, in either coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Band {
    /// Half width of the band.
    pub half_width: f64,
    /// Upper bound on the probability that some point is outside the band; separate from that of the verdict.
    pub failure_probability: f64,
}

/// The trade-off curve observed for the attack's score: for a picture, not for the verdict.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Reached {
    /// The points, ordered by type I error.
    pub points: Vec<Point>,
    /// Their simultaneous band.
    pub band: Band,
}

/// The record of one audit.
///
/// Serialised with the `serde` feature; JSON writes a number that is not finite as `null`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Audit {
    /// Name of the subject.
    pub subject: String,
    /// The pair of inputs.
    pub pair: String,
    /// The use of the features.
    pub statistic: Statistic,
    /// The claimed event.
    pub event: DpEvent,
    /// The delta at which epsilon is stated.
    pub delta: f64,
    /// The claimed epsilon at `delta`, an upper bound; infinite if the claim has none.
    pub claimed_epsilon: f64,
    /// The lower bound on epsilon at `delta`: the maximum over all tests.
    pub epsilon_lower: f64,
    /// The comparison in terms of mu, for Gaussian claims.
    pub gaussian: Option<GaussianComparison>,
    /// All tests.
    pub tests: Vec<Test>,
    /// The observed trade-off curve.
    pub reached: Reached,
    /// Upper bound on the probability that an audit of a sound subject refutes it: one minus the confidence.
    pub failure_probability: f64,
    /// The seed.
    pub seed: u64,
    /// Runs on each input.
    pub trials: u64,
    /// Number of counted runs; the others selected the attack.
    pub counted: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The evidence, if the claim is refuted.
    pub conviction: Option<Conviction>,
}

impl Audit {
    /// Returns the lower bound divided by the claim: near 1 for a tight analysis and a strong attack, above 1 for a false
    /// claim; 0 if nothing was found or the claim has no epsilon at its delta.
    pub fn ratio(&self) -> f64 {
        if self.epsilon_lower > 0.0 && self.claimed_epsilon < f64::INFINITY {
            self.epsilon_lower / self.claimed_epsilon
        } else {
            0.0
        }
    }

    /// Returns the ratio of the lower bound to the claim, the larger of that of epsilon and that of mu for a Gaussian claim.
    pub fn best_ratio(&self) -> f64 {
        self.gaussian.map_or(self.ratio(), |gaussian| self.ratio().max(gaussian.mu_lower / gaussian.claimed_mu))
    }

    /// Returns one minus the failure probability.
    pub fn confidence(&self) -> f64 {
        1.0 - self.failure_probability
    }

    /// Returns the test with the largest bound on epsilon.
    pub fn strongest(&self) -> Option<&Test> {
        self.tests.iter().max_by(|a, b| a.epsilon_lower.total_cmp(&b.epsilon_lower))
    }

    /// Returns the credible interval of epsilon at the claim's delta, of posterior probability `probability`, from the
    /// [`strongest`](Self::strongest) test. It describes the observations and is not used for verdicts: see [`credible`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a probability outside (0, 1).
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::DpEvent;
    /// use dp_audit::{Auditor, Claim, Side, Statistic, subject};
    /// use rand::RngExt;
    ///
    /// let claim = Claim::new(DpEvent::PureDp { epsilon: 1.0 })?;
    /// let coin = subject::from_fn("coin", "heads or tails", claim, Statistic::Event, |side, rng, features| {
    ///     let honest = rng.random::<f64>() < 0.7310585; // e / (1 + e)
    ///     features.push(f64::from((side == Side::Neighbour) == honest));
    ///     Ok(())
    /// });
    /// let audit = Auditor::exactly(2000)?.audit(&coin)?;
    /// let (low, high) = audit.credible_interval(0.95)?;
    /// assert!(audit.epsilon_lower < low && low < 1.0 && 1.0 < high && high < 1.2);
    /// # Ok::<(), dp_audit::Error>(())
    /// ```
    pub fn credible_interval(&self, probability: f64) -> Result<(f64, f64), Error> {
        match self.strongest() {
            Some(test) => credible::interval(test.hits, self.delta, probability),
            None => Ok((0.0, f64::INFINITY)),
        }
    }

    /// Returns `count` points of the claimed trade-off curve, to be drawn beside the [`reached`](Self::reached) one.
    ///
    /// # Errors
    /// `count` below 2.
    pub fn claimed_curve(&self, count: usize) -> Result<Vec<Errors>, Error> {
        // The lines of a pure claim come from few epsilons, those of a composition from many: with 200 the error is too small
        // to be visible.
        let curve = TradeOff::new(|epsilon| Ok(bound::delta(&self.event, epsilon)?.value), 200)?;
        Ok(curve.points(count)?)
    }
}
