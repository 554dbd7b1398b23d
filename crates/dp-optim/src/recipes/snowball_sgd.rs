//! Snowball-SGD: noisy steps on batches that grow towards the end, every record read once, the last iterate released.
//!
//! Noise of the size of a gradient, `L/√d` per coordinate, goes on every mean gradient: no more than sampling adds anyway,
//! so that the steps are those of ordinary stochastic gradient descent. Early records are hidden by the noise of all later
//! steps; later ones, with little noise to come, by sharing their step with more records.
//!
//! # References
//! Feldman, Koren, Talwar, "Private stochastic convex optimization: optimal rates in linear time", STOC 2020, arXiv
//! 2005.04763, Algorithm 1 with Theorems 3.5 and 3.6.

mod plan;
mod schedule;

pub use plan::{Plan, SnowballSgdDerivation};
pub use schedule::{Snowball, SnowballSteps};

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;
use dp_losses::LossKind;

use crate::error::{Error, positive};
use crate::recipes::last_iterate::{Descent, Inputs};
use crate::recipes::pnsgd::USUAL_DISTANCE;
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency, check_copies};

const RECIPE: &str = "snowball-sgd";

/// A Snowball-SGD recipe: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, SnowballSgd};
///
/// let recipe = SnowballSgd::new(LossKind::Logistic);
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-6)? };
/// let plan = recipe.plan::<ReplaceOne>(10_000, 20, budget)?; // before any data
/// let (first, last) = (plan.updates().first().unwrap(), plan.updates().last().unwrap());
/// assert!(first.batch_size == 1 && last.batch_size > 30);
/// // About as much noise as gradient.
/// assert!((plan.std_dev() * 20f64.sqrt() - 1.0).abs() < 0.02);
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
    /// D: bound on how far from the origin the best parameters lie; it sets the step sizes.
    pub distance: f64,
    /// R: the iterates, and the released model, are projected onto the ball of this radius.
    pub radius: Option<f64>,
    /// The rows are read as the source holds them, in an order that the curator vouches for as independent of their
    /// values; else in a random order under a secret key, which the guarantee does not count on.
    pub declared_order: bool,
    /// How the noise is drawn.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, which the source enforces.
    pub row_norm: f64,
    /// Bound on the targets' size, which the source enforces; at most 1 for the losses of two classes.
    pub target_bound: f64,
}

impl Recipe for SnowballSgd {
    type Plan<A: RecordAdjacency> = Plan<A>;

    fn plan_copies<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Plan<A>, Error> {
        check_copies(copies)?;
        Plan::new(self, n, dim, budget, copies)
    }
}

impl SnowballSgd {
    /// With constant steps for parameters of about the usual length.
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

    /// Derives the schedule, the noise and the guarantee for `n` records of `dim` features, before any data is read.
    ///
    /// # Privacy
    /// `n` and `dim` are public under both relations.
    ///
    /// # Errors
    /// Parameters outside their range or outside what is proved ([`Error::NotProved`], [`Error::StepTooLong`]: a loss that
    /// is not smooth, or not smooth enough for `D/(L√(2T)) <= 2/β`, delta = 0), too few records for one update, and a
    /// budget that no noise reaches.
    pub fn plan<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget) -> Result<Plan<A>, Error> {
        Plan::new(self, n, dim, budget, 1)
    }

    fn inputs(&self) -> Inputs {
        Inputs {
            recipe: RECIPE,
            loss: self.loss,
            lambda: self.lambda,
            radius: self.radius,
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            noise_mode: self.noise_mode,
            declared_order: self.declared_order,
        }
    }

    /// Everything but the noise, for batches that cost `rho`; of `updates` updates, or of as many as the records allow.
    fn descent(
        &self,
        n: u64,
        dim: u64,
        relation: AdjacencyKind,
        rho: f64,
        updates: Option<u64>,
    ) -> Result<(Descent, Snowball), Error> {
        let inputs = self.inputs();
        let terms = inputs.terms(n, dim, relation)?;
        positive("distance", self.distance)?;
        let lipschitz = positive("Lipschitz constant", terms.constants.data_lipschitz)?;
        let ratio = terms.gradient_difference / lipschitz;
        let weight = ratio * ratio * self.loss.parameters(dim) as f64;
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
        Ok((Descent::new(inputs, terms, n, dim, 1, runs)?, snowball))
    }
}
