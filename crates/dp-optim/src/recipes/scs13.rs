//! Stochastic gradient descent with noise in every update (SCS13): each batch's gradient is released, so that every iterate
//! may be published.
//!
//! ```text
//! for each pass, each batch B of the permutation:
//!     w <- Π_R( (1 - η_t λ) w - (η_t / |B|) (Σ_{i in B} ∇ℓ_i(w) + Z_t) )
//! ```
//! A record takes part in one step of each pass, and the other steps depend on it only through releases. So a pass costs as
//! much as one noisy sum (parallel composition, adaptively), and the passes compose. Noise is added to the *sum*, with one
//! scale for all batches: a short last batch divides its noise by the same number as its gradients.
//!
//! The loss only needs bounded gradients, or a clipping norm: neither convexity nor smoothness nor a bound on the steps is
//! required.
//!
//! # References
//! Song, Chaudhuri, Sarwate, "Stochastic gradient descent with differentially private updates", GlobalSIP 2013:
//! single-point and mini-batch updates. Wu et al., "Bolt-on differential privacy for scalable stochastic gradient
//! descent-based analytics", SIGMOD 2017, arXiv 1606.04722, section 4: several passes, Gaussian noise. Here the gradients'
//! difference replaces twice the Lipschitz constant, and all passes are calibrated together.

pub mod as_published;
mod noise;
mod run;
mod training;

#[cfg(test)]
mod tests;

pub use super::noise_scale::NoiseScale;
pub use run::UpdatesRun;
pub use training::Observation;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::{Domain, LossKind};
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::steps::StepPlan;

use crate::averaging::{Averaging, AveragingWeights};
use crate::descent::{Descent, Range};
use crate::engine::{Contributions, StepSum, Summation};
use crate::error::{Error, non_negative};
use crate::float::FloatKind;
use crate::growth::{Divisor, OrderPolicy};
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::noise_scale::OneNoise;
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;
use crate::schedule::{Schedule, StepSizes};

const RECIPE: &str = "scs13";

/// The law of the noise of each update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum StepLaw {
    /// The law with the smaller expected squared norm; the Gaussian if they are within a hundredth of each other. The Laplace
    /// ball is smaller for delta = 0 and, composed tightly, up to a few hundred dimensions. The choice depends on public
    /// numbers only.
    #[default]
    Least,
    /// The L2 Laplace ball.
    LaplaceBall,
    /// The Gaussian; requires delta > 0.
    Gaussian,
}

/// The calibration of the noise to the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum StepCalibration {
    /// The least noise with which the accountant certifies all passes together.
    #[default]
    Joint,
    /// The [published](as_published) noise: each pass gets `(ε/k, δ/k)` by basic composition, gradients differ by twice the
    /// Lipschitz constant that the paper tabulates, and the Gaussian is the classical one. Sound, but more noise than needed.
    AsPublished,
}

/// The recipe of SCS13: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, Planned, Recipe, Scs13};
///
/// let recipe = Scs13 { passes: 1, ..Scs13::new(LossKind::Logistic) };
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
/// let plan = recipe.plan::<ReplaceOne>(10_000, 5, budget)?; // before any data
/// // Two records' gradients differ by at most 2, for any batch size.
/// assert!((plan.run().sensitivity() - 2.0).abs() < 1e-11);
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Scs13 {
    /// The loss.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`, which is public and carries no noise.
    pub lambda: f64,
    /// Passes over the data, at least 1.
    pub passes: u64,
    /// Records per batch, capped at the number of records.
    pub batch_size: u64,
    /// The step sizes; `None` is `1/√t`.
    pub schedule: Option<Schedule>,
    /// R: radius of the ball onto which every iterate is projected.
    pub radius: Option<f64>,
    /// Clipping norm of each record's gradient; `None` uses the loss's own bound.
    pub clipping: Option<ClippingNorm>,
    /// The released combination of the iterates. All iterates may be published.
    pub averaging: Averaging,
    /// The descent method, such as momentum, which costs no privacy; plain if a serialised recipe omits it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Descent::is_plain"))]
    pub descent: Descent,
    /// One permutation for all passes, or one for each.
    pub order: OrderPolicy,
    /// True if rows are read in the source's order, which the curator declares independent of their values; otherwise the
    /// order is random.
    pub declared_order: bool,
    /// The divisor of a batch's noisy sum.
    pub divisor: Divisor,
    /// The law of the noise.
    pub law: StepLaw,
    /// The calibration of the noise to the budget.
    pub calibration: StepCalibration,
    /// The noise mode: [`Exact`](NoiseMode::Exact), or [`Rounded`](NoiseMode::Rounded), an idealisation that the certificate
    /// names.
    pub noise_mode: NoiseMode,
    /// The floating-point type of training. The noise allows for the rounding of either type.
    pub float: FloatKind,
    /// The summation of gradients; plain if a serialised recipe omits it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Summation::is_plain"))]
    pub summation: Summation,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses, the largest class index for
    /// softmax.
    pub target_bound: f64,
}

impl Algorithm for Scs13 {
    const NAME: &'static str = RECIPE;

    type Calibrated = OneNoise;
    type Run = UpdatesRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, float, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(float) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(OneNoise, UpdatesRun), Error> {
        let terms = self.terms(problem)?;
        let noise = noise::Calibrated::new(self, &terms, budget, copies)?;
        Ok((OneNoise { noise: noise.scale }, UpdatesRun::new(self, problem, terms, noise)?))
    }

    fn resolve(&self, problem: &Problem, calibrated: &OneNoise) -> Result<UpdatesRun, Error> {
        UpdatesRun::new(self, problem, self.terms(problem)?, noise::Calibrated { scale: calibrated.noise })
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        problem.setting.assumptions_in(self.declared_order)
    }

    fn lattice(&self, _: &Problem, _: &OneNoise) -> Result<ReleaseLattice, Error> {
        Ok(ReleaseLattice::ANYWHERE.within(self.radius).in_precision(self.float))
    }
}

impl Scs13 {
    /// Creates the usual recipe: ten passes, batches of 50, step `1/√t`, the last iterate, the least noise.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: 0.0,
            passes: 10,
            batch_size: 50,
            schedule: None,
            radius: None,
            clipping: None,
            averaging: Averaging::Last,
            descent: Descent::Plain,
            order: OrderPolicy::Fixed,
            declared_order: false,
            divisor: Divisor::Actual,
            law: StepLaw::Least,
            calibration: StepCalibration::Joint,
            noise_mode: NoiseMode::Exact,
            float: FloatKind::F64,
            summation: Summation::Compensated,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.passes == 0 {
            return Err(Error::Count { name: "passes", value: 0, range: "1 or more: without any the model is 0" });
        }
        if self.passes >= 1 << 24 {
            return Err(Error::Count { name: "passes", value: self.passes, range: "below 2^24" });
        }
        if self.batch_size == 0 {
            return Err(Error::Count { name: "batch size", value: 0, range: "1 or more" });
        }
        non_negative("lambda", self.lambda)?;
        self.descent.check()?;
        if !self.descent.is_straight() {
            let why = "it takes plain and accelerated steps; for others choose dp-sgd";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
        Ok(())
    }

    /// Returns all numbers that follow from the recipe and the public shape of the data.
    fn terms(&self, problem: &Problem) -> Result<Terms, Error> {
        self.check()?;
        let n = problem.n;
        let domain = problem.domain(self.radius)?;
        let contributions = match self.clipping {
            Some(norm) => Contributions::Clipped(norm.into()),
            None => Contributions::of_loss(&self.loss, &domain, problem.dim, self.float)?,
        };
        let batch_size = self.batch_size.min(n);
        let sum = StepSum::whole(contributions, batch_size, self.float).added_up(self.summation, batch_size);
        let sensitivity = sum.sensitivity(problem.relation)?;
        let updates_per_pass = n.div_ceil(batch_size);
        let updates = updates_per_pass.checked_mul(self.passes).filter(|&updates| updates < 1 << 53);
        let Some(updates) = updates else {
            return Err(Error::Count { name: "updates per pass", value: updates_per_pass, range: "below 2^53 in all" });
        };
        Ok(Terms {
            sum,
            sensitivity,
            domain,
            dim: problem.parameters(),
            batch_size,
            last_batch: n - (updates_per_pass - 1) * batch_size,
            steps: StepPlan::DisjointBatches { passes: self.passes, steps_per_pass: updates_per_pass },
            step_sizes: self.resolved_schedule().prepare(updates)?,
            weights: self.averaging.prepare(updates)?,
        })
    }

    fn resolved_schedule(&self) -> Schedule {
        self.schedule.clone().unwrap_or(Schedule::InverseSqrt { step: 1.0 })
    }

    /// Rejects runs whose iterates could exceed the range of the float type, where they might fail depending on the data.
    ///
    /// # Formula
    /// With `K` a bound on the norm of a step's noise, a step's noisy sum has norm at most `bC + K`; [`Descent::check_range`]
    /// bounds how far such steps lead. `K` is 1000 times the noise's expected norm, which it exceeds with probability below
    /// `e^-900`.
    fn check_range(&self, terms: &Terms, noise_size: f64) -> Result<(), Error> {
        let least_divisor = match self.divisor {
            Divisor::Nominal => terms.batch_size,
            Divisor::Actual => terms.last_batch,
        };
        self.descent.check_range(&Range {
            recipe: RECIPE,
            steps: &terms.step_sizes,
            updates: terms.steps.steps(),
            sum: terms.sum.contributions.bound() * terms.batch_size as f64 + 1000.0 * noise_size,
            divisor: least_divisor as f64,
            lambda: self.lambda,
            radius: self.radius,
            penalty: None,
            parameters: terms.dim,
            std_dev: noise_size,
            float: self.float,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Terms {
    pub(crate) sum: StepSum,
    /// The sensitivity of a batch's sum of gradients.
    sensitivity: f64,
    domain: Domain,
    /// Number of parameters.
    dim: u64,
    batch_size: u64,
    last_batch: u64,
    steps: StepPlan,
    step_sizes: StepSizes,
    weights: AveragingWeights,
}
