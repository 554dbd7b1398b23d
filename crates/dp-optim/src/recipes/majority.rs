//! A constant prediction, the mean of the targets from two noisy counts: a baseline for all other models.
//!
//! ```text
//! p, q = Σ (1 ± y_i/Y)/2 + noise          over the records that count
//! m    = Y (p - q)/(p + q)                p and q at least 0; 0 if both are 0
//! ```
//! All weights are 0 but that of the intercept, the last feature. For two classes, `p` and `q` are the numbers of their records,
//! and `m` has the sign of the majority; the logistic loss uses its log-odds. Null records are in neither count, so the mean is
//! that of the others. Its predictions are constant where the intercept is.
//!
//! # Privacy
//! A record's share of the counts is on the line from `(0, 1)` to `(1, 0)`, and a null record's is the origin: replacing a record
//! moves them by at most `√2` in L2 norm, and by at most 1 if one of the two is a null record. The noise has a density
//! proportional to `exp(-|z|/scale)`.

mod run;

#[cfg(test)]
mod tests;

pub use run::AnswerRun;

use core::f64::consts::SQRT_2;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{AdjacencyKind, Delta, Epsilon, ReplaceOne, bound};
use dp_losses::LossKind;
use dp_mechanisms::{L2Sensitivity, LaplaceBall, PrivacyEvent};

use crate::engine::grid_sum::GridSum;
use crate::error::{Error, positive};
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::{Budget, repeated};

const RECIPE: &str = "majority";

/// The recipe of the constant prediction: public parameters only.
///
/// The last feature must be the intercept, positive in every row that counts, as the encoder of `dp-data` creates it.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, Majority, Recipe};
/// let budget = Budget { epsilon: Epsilon::new(0.5)?, delta: Delta::ZERO };
/// let plan = Majority::new(LossKind::Logistic).plan::<ReplaceOne>(1000, 5, budget)?;
/// assert!((plan.run().scale() - 2.0 * 2.0_f64.sqrt()).abs() < 1e-9); // √2/ε
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Majority {
    /// The loss, of one prediction, which determines the meaning of the answer.
    pub loss: LossKind,
    /// The noise mode: [`Exact`](NoiseMode::Exact), or [`Rounded`](NoiseMode::Rounded), an idealisation that the certificate
    /// names.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source. Nothing depends on it.
    pub row_norm: f64,
    /// Y: bound on the targets' size, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

/// The result of calibration: the noise on the counts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SumNoise {
    /// Scale of the noise on the counts.
    pub scale: f64,
}

impl Algorithm for Majority {
    const NAME: &'static str = RECIPE;

    const MOST_ROW_NORM: f64 = f64::MAX;

    type Calibrated = SumNoise;
    type Run = AnswerRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: None }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(SumNoise, AnswerRun), Error> {
        self.check(problem)?;
        // The noise is the same under either relation.
        let sensitivity = L2Sensitivity::<ReplaceOne>::new(sensitivity(problem)?)?;
        let mut noise = LaplaceBall::new(sensitivity, Epsilon::new(budget.epsilon.get() / copies as f64)?, 2)?;
        // The accountant rounds the quotient up: increase the scale by ulps until it agrees.
        for _ in 0..8 {
            if bound::epsilon(&repeated(noise.event(), copies), Delta::ZERO)?.value <= budget.epsilon.get() {
                break;
            }
            noise = LaplaceBall::from_scale(sensitivity, noise.scale() * (1.0 + 4.0 * f64::EPSILON), 2)?;
        }
        let noise = SumNoise { scale: noise.scale() };
        Ok((noise, self.resolve(problem, &noise)?))
    }

    fn resolve(&self, problem: &Problem, noise: &SumNoise) -> Result<AnswerRun, Error> {
        self.check(problem)?;
        positive("noise scale", noise.scale)?;
        Ok(AnswerRun {
            recipe: self.clone(),
            n: problem.n,
            dim: problem.dim,
            sensitivity: sensitivity(problem)?,
            noise: *noise,
        })
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        let mut assumptions = problem.setting.assumptions();
        // The answer does not depend on the rows.
        assumptions.retain(|assumption| !matches!(assumption, Assumption::RowNorm { .. }));
        assumptions
    }

    fn lattice(&self, _: &Problem, _: &SumNoise) -> Result<ReleaseLattice, Error> {
        Ok(ReleaseLattice::CONSTANT)
    }
}

impl Majority {
    /// Creates the recipe for rows of norm at most 1.
    pub fn new(loss: LossKind) -> Self {
        Self { loss, noise_mode: NoiseMode::Exact, row_norm: 1.0, target_bound: loss.usual_target_bound() }
    }

    fn check(&self, problem: &Problem) -> Result<(), Error> {
        positive("target bound", self.target_bound)?;
        if self.loss.outputs() > 1 {
            let why = "it takes losses of one prediction: for several classes, one model for each";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
        GridSum::new(problem.n)?;
        Ok(())
    }

    /// Returns the intercept's weight for noisy counts.
    fn answer(&self, counts: &[f64], n: u64) -> f64 {
        let [p, q] = [0, 1].map(|i| counts.get(i).copied().unwrap_or(0.0).max(0.0));
        let mean = if p + q > 0.0 { (p - q) / (p + q) } else { 0.0 };
        match self.loss {
            LossKind::Logistic => {
                // One record short of certainty.
                let most = 1.0 - 1.0 / (n as f64 + 1.0);
                let mean = mean.clamp(-most, most);
                ((1.0 + mean) / (1.0 - mean)).ln()
            }
            _ => mean * self.target_bound,
        }
    }
}

/// Returns the L2 sensitivity of the two counts.
fn sensitivity(problem: &Problem) -> Result<f64, Error> {
    match problem.relation {
        // The nearest double is above the root.
        AdjacencyKind::ReplaceOne => Ok(SQRT_2),
        AdjacencyKind::ZeroOut => Ok(1.0),
        adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
    }
}
