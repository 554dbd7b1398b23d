//! Snowball-SGD: noisy steps on growing batches; every record is read once, and the last iterate is released.
//!
//! Noise of the size of a gradient, `L/√d` per coordinate, is added to every mean gradient: no more than the sampling error,
//! so that the steps are those of ordinary stochastic gradient descent. Early records are hidden by the noise of all later
//! steps; later ones, with few noisy steps to follow, by sharing their step with more records.
//!
//! # References
//! Feldman, Koren, Talwar, "Private stochastic convex optimization: optimal rates in linear time", STOC 2020, arXiv
//! 2005.04763, Algorithm 1 with Theorems 3.5 and 3.6.

mod schedule;

pub use super::last_iterate::{DescentRun, Updates};
pub use schedule::{Snowball, SnowballSteps};

use dp_accountant::DpEvent;
use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::LossKind;

use crate::derivation::RELEASE;
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::last_iterate::{Descent, Inputs};
use crate::recipes::pnsgd::USUAL_DISTANCE;
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::{Budget, least_scale};

const RECIPE: &str = "snowball-sgd";

/// A Snowball-SGD recipe: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, Recipe, SnowballSgd};
///
/// let recipe = SnowballSgd::new(LossKind::Logistic);
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = recipe.plan::<ReplaceOne>(10_000, 20, budget)?; // before any data
/// let (first, last) = (plan.run().updates().first().unwrap(), plan.run().updates().last().unwrap());
/// assert!(first.batch_size == 1 && last.batch_size > 30);
/// // The noise is about as long as a gradient.
/// assert!((plan.run().std_dev() * 20f64.sqrt() - 1.0).abs() < 0.02);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SnowballSgd {
    /// The loss; smooth.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`; may be 0.
    pub lambda: f64,
    /// The step sizes.
    pub steps: SnowballSteps,
    /// D: bound on the distance of the best parameters from the origin; it determines the step sizes.
    pub distance: f64,
    /// R: radius of the ball onto which the iterates and the released model are projected.
    pub radius: Option<f64>,
    /// True if rows are read in the source's order, which the curator declares independent of their values; otherwise the
    /// order is random under a secret key, on which the guarantee does not rely.
    pub declared_order: bool,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

/// The result of calibration: the number of updates, the batches, and the noise.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SnowballNoise {
    /// T: number of updates.
    pub updates: u64,
    /// ρ for which the batches were made: their cost under noise of exactly `L/√d`.
    pub rho: f64,
    /// σ: standard deviation of the noise on each batch's mean gradient; about `L/√d`.
    pub std_dev: f64,
}

impl Algorithm for SnowballSgd {
    const NAME: &'static str = RECIPE;

    type Calibrated = SnowballNoise;
    type Run = DescentRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(FloatKind::F64) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(SnowballNoise, DescentRun), Error> {
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        // First the batches for the largest mu that the budget allows, then the noise for the batches.
        let rho = 1.0 / least_scale(budget, copies, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: 1.0 })?;
        let (descent, updates) = self.descent(problem, rho, None)?;
        let std_dev = descent.least_noise(budget, copies)?;
        Ok((SnowballNoise { updates, rho, std_dev }, DescentRun::new(descent, std_dev)?))
    }

    fn resolve(&self, problem: &Problem, calibrated: &SnowballNoise) -> Result<DescentRun, Error> {
        let &SnowballNoise { updates, rho, std_dev } = calibrated;
        DescentRun::new(self.descent(problem, rho, Some(updates))?.0, std_dev)
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        problem.setting.assumptions_in(self.declared_order)
    }

    fn lattice(&self, problem: &Problem, calibrated: &SnowballNoise) -> Result<ReleaseLattice, Error> {
        let &SnowballNoise { updates, rho, std_dev } = calibrated;
        self.descent(problem, rho, Some(updates))?.0.lattice(std_dev)
    }

    fn work(&self, _: &Problem, calibrated: &Self::Calibrated) -> u64 {
        RELEASE.saturating_add(calibrated.updates.saturating_mul(32))
    }
}

impl SnowballSgd {
    /// Creates the recipe with constant steps for parameters of the usual norm.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: 0.0,
            steps: SnowballSteps::Constant,
            distance: USUAL_DISTANCE,
            radius: None,
            declared_order: false,
            noise_mode: NoiseMode::Exact,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    fn inputs(&self) -> Inputs {
        let Self { lambda, radius, declared_order, .. } = *self;
        Inputs { recipe: RECIPE, lambda, radius, declared_order }
    }

    /// Returns the descent without its noise, for batches that cost `rho`, and its number of updates: `updates` if given,
    /// otherwise as many as the records allow.
    fn descent(&self, problem: &Problem, rho: f64, updates: Option<u64>) -> Result<(Descent, u64), Error> {
        let inputs = self.inputs();
        let (terms, n) = (inputs.terms(problem)?, problem.n);
        positive("distance", self.distance)?;
        let lipschitz = positive("Lipschitz constant", terms.constants.data_lipschitz)?;
        let ratio = terms.gradient_difference / lipschitz;
        let weight = ratio * ratio * problem.parameters() as f64;
        let snowball = match updates {
            Some(updates) if updates > n => {
                return Err(Error::Count { name: "updates", value: updates, range: "at most the number of records" });
            }
            Some(updates) => Snowball::new(self.steps, updates)?,
            None => Snowball::longest(self.steps, n, weight, rho)?.0,
        };
        let batches = snowball.batch_sizes(weight, rho)?;
        let used = batches.iter().fold(0u64, |sum, &batch| sum.saturating_add(batch));
        if used > n {
            return Err(Error::Count {
                name: "sum of the batch sizes",
                value: used,
                range: "at most the number of records",
            });
        }
        let runs = snowball.runs(&batches, snowball.first_step(lipschitz, self.distance));
        Ok((Descent::new(inputs, terms, problem, 1, runs)?, snowball.updates()))
    }
}
