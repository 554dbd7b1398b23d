//! The same answer for everyone: the mean of the targets, by one noisy sum. What any other model has to beat.
//!
//! ```text
//! m = clamp((Σ y_i + Laplace) / n, ±Y)        weights 0 but for the intercept, the last feature
//! ```
//! For two classes `m` has the sign of the majority; the logistic loss takes its log-odds. Replacing a record moves the
//! sum by at most `2 Y`, taking its place by a null record by at most `Y`, `Y` the bound on the targets.

mod derivation;
mod plan;

#[cfg(test)]
mod tests;

pub use derivation::MajorityDerivation;
pub use plan::Plan;

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;
use dp_losses::LossKind;

use crate::error::{Error, positive};
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency, check_copies};

const RECIPE: &str = "majority";

/// The recipe of the constant answer: public parameters only.
///
/// The last feature has to be the intercept, positive in every row that counts, as the encoder of `dp-data` has it.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, Majority};
/// let budget = Budget { epsilon: Epsilon::new(0.5)?, delta: Delta::ZERO };
/// let plan = Majority::new(LossKind::Logistic).plan::<ReplaceOne>(1000, 5, budget)?;
/// assert!((plan.scale() - 4.0).abs() < 1e-9); // 2/ε
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Majority {
    /// The loss, of one prediction: it says what the answer means.
    pub loss: LossKind,
    /// How the noise is drawn: [`Exact`](NoiseMode::Exact), or [`Rounded`](NoiseMode::Rounded), an idealisation that
    /// the certificate names.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, which the source enforces. Nothing depends on it.
    pub row_norm: f64,
    /// Y: bound on the targets' size, which the source enforces; at most 1 for the losses of two classes.
    pub target_bound: f64,
}

impl Recipe for Majority {
    type Plan<A: RecordAdjacency> = Plan<A>;

    fn plan_copies<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Plan<A>, Error> {
        check_copies(copies)?;
        Plan::new(self, n, dim, budget, copies)
    }
}

impl Majority {
    /// For rows of norm at most 1.
    pub fn new(loss: LossKind) -> Self {
        Self { loss, noise_mode: NoiseMode::Exact, row_norm: 1.0, target_bound: loss.usual_target_bound() }
    }

    /// Derives the noise and the guarantee for `n` records of `dim` features, before any data is read.
    ///
    /// # Privacy
    /// `n` and `dim` are public under both relations.
    ///
    /// # Errors
    /// Parameters outside their range, a loss of several predictions ([`Error::NotProved`]).
    pub fn plan<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget) -> Result<Plan<A>, Error> {
        Plan::new(self, n, dim, budget, 1)
    }

    fn check(&self, n: u64, dim: u64) -> Result<(), Error> {
        for (name, value) in [("number of records", n), ("dimension", dim)] {
            if value == 0 {
                return Err(Error::Count { name, value, range: "1 or more" });
            }
        }
        positive("row norm", self.row_norm)?;
        positive("target bound", self.target_bound)?;
        if self.loss.is_classification() && self.target_bound > 1.0 {
            return Err(Error::OutOfRange {
                name: "target bound",
                value: self.target_bound,
                range: "at most 1 for a loss of two classes",
            });
        }
        let not_proved = |why| Err(Error::NotProved { recipe: RECIPE, why });
        if self.loss.outputs() > 1 {
            return not_proved("it takes losses of one prediction: for several classes, one model for each");
        }
        if !matches!(self.noise_mode, NoiseMode::Exact | NoiseMode::Rounded) {
            return not_proved("without noise there is no guarantee: choose exact or rounded noise");
        }
        Ok(())
    }

    /// How far one record moves the sum of the targets, in units of their bound.
    fn sensitivity(relation: AdjacencyKind) -> Result<f64, Error> {
        match relation {
            AdjacencyKind::ReplaceOne => Ok(2.0),
            AdjacencyKind::ZeroOut => Ok(1.0),
            adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        }
    }

    /// Whether a noisy sum on the grid of this step, of `n` targets in units of their bound, gives this answer; up to the
    /// rounding of other hardware's logarithm, and of single precision.
    pub(crate) fn can_answer(&self, weight: f64, n: u64, step: f64) -> bool {
        let single = f64::from(weight as f32) == weight;
        let tolerance = 8.0 * if single { f64::from(f32::EPSILON) } else { f64::EPSILON } * weight.abs();
        let gives = |mean: f64| (self.answer(mean, n) - weight).abs() <= tolerance;
        let mean = match self.loss {
            LossKind::Logistic => (0.5 * weight).tanh(),
            _ => weight / self.target_bound,
        };
        let nearest = (mean * n as f64 / step).round();
        let near = (-16..=16).any(|k| gives((nearest + f64::from(k)) * step / n as f64));
        near || gives(1.0) || gives(-1.0)
    }

    /// The intercept's weight, given the mean target in units of their bound.
    pub(crate) fn answer(&self, mean: f64, n: u64) -> f64 {
        let mean = mean.clamp(-1.0, 1.0) * self.target_bound;
        match self.loss {
            LossKind::Logistic => {
                // As many as one record's worth short of certainty.
                let most = 1.0 - 1.0 / (n as f64 + 1.0);
                let mean = mean.clamp(-most, most);
                ((1.0 + mean) / (1.0 - mean)).ln()
            }
            _ => mean,
        }
    }
}
