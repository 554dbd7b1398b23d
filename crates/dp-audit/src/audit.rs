//! What an audit found.

use dp_accountant::trade_off::{Errors, TradeOff};
use dp_accountant::{DpEvent, bound};

use crate::bounds::{Hits, Limits, credible};
use crate::error::Error;
use crate::subject::{Side, Statistic};

/// Whether the claim survived. An audit never says more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Verdict {
    /// Not refuted at this confidence by this attack on this pair; others may refute it.
    NotRefuted,
    /// The claim is false, but for the audit's failure probability.
    Refuted,
}

/// Which bound a claim did not survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BoundKind {
    /// Epsilon at the claim's delta, from Clopper-Pearson limits.
    Epsilon,
    /// The claim's whole trade-off curve.
    TradeOff,
    /// Mu of a Gaussian claim.
    Mu,
}

/// What convicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Conviction {
    /// The bound.
    pub bound: BoundKind,
    /// The index of the test in [`Audit::tests`]: the direction of the pair, and the event or threshold.
    pub test: usize,
}

/// One test: an event that accuses one of the inputs, and how often it was seen.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Test {
    /// The input that the event accuses.
    pub accused: Side,
    /// The event, in words.
    pub event: String,
    /// Its counts on the evaluation half.
    pub hits: Hits,
    /// Both rates' limits.
    pub limits: Limits,
    /// Lower bound of epsilon at the claim's delta.
    pub epsilon_lower: f64,
    /// Lower bound of mu for claims of Gaussian differential privacy.
    pub mu_lower: f64,
    /// The least type II error that the claim allows at the upper limit of the false-positive rate; none where the test
    /// does not beat guessing. The claim is refuted where the limit of the missed share is below it.
    pub least_type_two: Option<f64>,
}

/// A Gaussian claim and what was found of it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GaussianComparison {
    /// The claim.
    pub claimed_mu: f64,
    /// The lower bound.
    pub mu_lower: f64,
    /// Epsilon, at the claim's delta, of a Gaussian mechanism with that bound as its mu.
    pub epsilon: f64,
}

/// A point of the reached trade-off curve: shares of the evaluation half, estimates.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Point {
    /// Share of the other input's runs that were accused.
    pub type_one: f64,
    /// Share of the accused input's runs that were missed.
    pub type_two: f64,
}

/// How far the estimates of a curve may all be from the truth, in either coordinate, at once.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Band {
    /// Half the band's width.
    pub half_width: f64,
    /// Probability that some point of it is wrong, at most; beside the verdict's own.
    pub failure_probability: f64,
}

/// The trade-off curve that the attack's score reached: for a picture, not for the verdict.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Reached {
    /// Points by type I error.
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
    /// How features were used.
    pub statistic: Statistic,
    /// What is claimed.
    pub event: DpEvent,
    /// Where epsilon is stated.
    pub delta: f64,
    /// The claimed epsilon there, an upper bound; infinite where the claim has none.
    pub claimed_epsilon: f64,
    /// The lower bound of epsilon there: the largest of all tests'.
    pub epsilon_lower: f64,
    /// The same in terms of mu, for Gaussian claims.
    pub gaussian: Option<GaussianComparison>,
    /// Every test that was made.
    pub tests: Vec<Test>,
    /// The reached trade-off curve.
    pub reached: Reached,
    /// Probability that an audit of a sound subject refutes it, at most: one minus the confidence.
    pub failure_probability: f64,
    /// The seed.
    pub seed: u64,
    /// Runs on each input.
    pub trials: u64,
    /// Those of them that were counted; the others chose the attack.
    pub counted: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// What convicts, where the claim is refuted.
    pub conviction: Option<Conviction>,
}

impl Audit {
    /// The lower bound over the claim: near 1 for a tight analysis and a strong attack, above 1 for a false claim; 0 where
    /// nothing was found, or the claim has no epsilon at its delta.
    pub fn ratio(&self) -> f64 {
        if self.epsilon_lower > 0.0 && self.claimed_epsilon < f64::INFINITY {
            self.epsilon_lower / self.claimed_epsilon
        } else {
            0.0
        }
    }

    /// The lower bound's ratio to the claim in whatever terms it is largest: epsilon, or mu of a Gaussian claim.
    pub fn best_ratio(&self) -> f64 {
        self.gaussian.map_or(self.ratio(), |gaussian| self.ratio().max(gaussian.mu_lower / gaussian.claimed_mu))
    }

    /// One minus the failure probability.
    pub fn confidence(&self) -> f64 {
        1.0 - self.failure_probability
    }

    /// The test of the largest bound of epsilon.
    pub fn strongest(&self) -> Option<&Test> {
        self.tests.iter().max_by(|a, b| a.epsilon_lower.total_cmp(&b.epsilon_lower))
    }

    /// Credible interval of epsilon at the claim's delta, of posterior probability `probability`, from the
    /// [`strongest`](Self::strongest) test. A description of what was seen, which no verdict uses: see [`credible`].
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

    /// `count` points of the claimed trade-off curve, to be drawn beside the [`reached`](Self::reached) one.
    ///
    /// # Errors
    /// `count` below 2.
    pub fn claimed_curve(&self, count: usize) -> Result<Vec<Errors>, Error> {
        // Lines of a pure claim come from few epsilons, those of a composition from many: 200 are below the curve by less
        // than a picture shows.
        let curve = TradeOff::new(|epsilon| Ok(bound::delta(&self.event, epsilon)?.value), 200)?;
        Ok(curve.points(count)?)
    }
}
