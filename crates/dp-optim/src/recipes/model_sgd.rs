//! DP-SGD for models of any kind, such as networks, from any public start: each step draws a random batch of samples, sums the
//! clipped gradients, and releases the sum with Gaussian noise.
//!
//! ```text
//! w <- public start
//! for t in 1..=T:
//!     B_t   each sample by itself with probability q        (or a random set of fixed size)
//!     w <- rule( w, (Σ_{i in B_t} clip_C ∇ℓ_i(w) + N(0, σ² I)) / qn )
//! ```
//! The size of each step is that of a schedule, or is chosen by a private line search ([`StepSearch`], DP-BLSGD).
//! [`DpSgd`](super::DpSgd) is the recipe for the losses of linear models, whose gradients may be bounded without clipping. This one
//! knows the number of parameters only. The rule is plain descent, momentum, Adam or Adam without the noise's part: see
//! [`Descent`].
//!
//! # Privacy
//! A sample's clipped gradient has norm at most `C` for any model that keeps the laws of [`Model`](dp_losses::Model). Noise, sampling
//! and composition are those of [`DpSgd`](super::DpSgd). All iterates may be published, and so may what is computed from them
//! alone: the noise was paid for when the training started.
//!
//! # References
//! Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang, "Deep learning with differential privacy", CCS 2016, Algorithm 1.

mod adaptive_norm;
mod derivation;
mod plain;
mod run;
mod step_search;
#[cfg(test)]
mod tests;

pub use adaptive_norm::QuantileClipping;
pub use derivation::ModelDerivation;
pub use plain::NonPrivateSgd;
pub use run::ModelPlan;
pub use step_search::StepSearch;

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;
use dp_mechanisms::clip::GradientClipping;

use super::noisy_run::Sampling;
use super::noisy_sums::{Beside, NoisySums};
use super::promise::Promise;
use super::recipe::{Budget, RecordAdjacency};
use crate::averaging::Averaging;
use crate::descent::{Descent, Range};
use crate::engine::norm_follower::SCALES;
use crate::engine::{BatchLaw, StepBatches, StepSum};
use crate::error::{Error, non_negative};
use crate::float::FloatKind;
use crate::schedule::Schedule;
use run::Resolved;

const RECIPE: &str = "dp-sgd of a model";

/// The recipe of DP-SGD for a model of any kind: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_mechanisms::clip::ClippingNorm;
/// use dp_optim::recipes::{Budget, ModelSgd};
///
/// let recipe = ModelSgd { batch_size: 2048, steps: 600, ..ModelSgd::new(ClippingNorm::new(0.1)?) };
/// let budget = Budget::new(2.0, 1e-5)?;
/// let plan = recipe.plan::<ZeroOut>(60_000, 102_550, budget)?; // before any data
/// assert!((plan.noise_multiplier() - 1.856).abs() < 0.001);
/// assert!(plan.reached().epsilon <= 2.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ModelSgd {
    /// The selection of the samples of a step: Poisson or of fixed size. Passes are refused.
    pub sampling: Sampling,
    /// b: mean number of samples in a step, slightly less for Poisson batches (see [`BatchLaw`]).
    pub batch_size: u64,
    /// T: number of steps.
    pub steps: u64,
    /// The clipping of each sample's gradient, to the norm C.
    pub clipping: GradientClipping,
    /// Maximum number of samples whose gradients are summed at a time. It determines memory, speed and, where sums are
    /// [`in_float`](Self::in_float), how much of the noise is for rounding.
    pub microbatch: u64,
    /// True if microbatches are summed in the floating-point type of the training, otherwise in double precision.
    pub in_float: bool,
    /// The descent method; ADMM and consensus are refused.
    pub descent: Descent,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`, which is public and carries no noise.
    pub lambda: f64,
    /// The step sizes; with a search, the longest candidates.
    pub schedule: Schedule,
    /// The private choice of each step's size among shorter ones; `None` takes the schedule's.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub search: Option<StepSearch>,
    /// The rule by which the clipping norm follows a quantile of the gradients' norms, from that of `clipping` on; `None` keeps it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub adaptive_norm: Option<QuantileClipping>,
    /// The released combination of the iterates. All iterates may be published.
    pub averaging: Averaging,
    /// The noise mode: [`Exact`](NoiseMode::Exact), or [`Rounded`](NoiseMode::Rounded), an idealisation that the certificate
    /// names.
    pub noise_mode: NoiseMode,
    /// The floating-point type of training.
    pub float: FloatKind,
}

/// Checks a descent, which must be one for models of any kind.
fn check_descent(descent: Descent) -> Result<(), Error> {
    descent.check()?;
    match descent {
        Descent::Admm { .. } | Descent::Consensus { .. } => {
            let why = "ADMM and consensus are for penalties of linear models";
            Err(Error::NotProved { recipe: RECIPE, why })
        }
        _ => Ok(()),
    }
}

impl ModelSgd {
    /// Creates a recipe with Poisson batches of 2048, 600 steps of size 0.5, Nesterov's momentum 0.9 and the last iterate, in single
    /// precision.
    pub fn new(clipping: impl Into<GradientClipping>) -> Self {
        Self {
            sampling: Sampling::Poisson,
            batch_size: 2048,
            steps: 600,
            clipping: clipping.into(),
            microbatch: 256,
            in_float: true,
            descent: Descent::Accelerated { momentum: 0.9 },
            lambda: 0.0,
            schedule: Schedule::Constant { step: 0.5 },
            search: None,
            adaptive_norm: None,
            averaging: Averaging::Last,
            noise_mode: NoiseMode::Exact,
            float: FloatKind::F32,
        }
    }

    /// Derives sensitivity, noise, event and guarantee for `n` samples and a model of `parameters` parameters, before any data is
    /// read.
    ///
    /// # Privacy
    /// Both numbers are public under both relations.
    ///
    /// # Errors
    /// Parameters outside their range or outside the proof ([`Error::NotProved`]), sums whose rounding would outweigh a sample
    /// ([`Error::Mechanism`]), and a budget that no noise can meet.
    pub fn plan<A: RecordAdjacency>(&self, n: u64, parameters: u64, budget: Budget) -> Result<ModelPlan<A>, Error> {
        let std_dev = self.sums(n, A::KIND)?.1.least_std_dev(budget, 1)?;
        let derivation = ModelDerivation { recipe: self.clone(), relation: A::KIND, n, parameters, std_dev };
        let resolved = derivation.resolve()?;
        let promise = Promise::new(resolved.sums.event(std_dev)?, budget, 1)?;
        Ok(ModelPlan::new(derivation, resolved, promise))
    }

    /// Returns the standard deviation of the noise over the clipping norm.
    pub(crate) fn noise_multiplier(&self, n: u64, relation: AdjacencyKind, budget: Budget) -> Result<f64, Error> {
        Ok(self.sums(n, relation)?.1.least_std_dev(budget, 1)? / self.clipping.norm().get())
    }

    /// Returns the batches and sums of all steps.
    fn sums(&self, n: u64, relation: AdjacencyKind) -> Result<(BatchLaw, NoisySums), Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: RECIPE, why });
        if !matches!(self.noise_mode, NoiseMode::Exact | NoiseMode::Rounded) {
            return not_proved("without noise there is no guarantee: choose exact or rounded noise");
        }
        if !matches!(relation, AdjacencyKind::ReplaceOne | AdjacencyKind::ZeroOut) {
            return Err(Error::Adjacency { recipe: RECIPE, adjacency: relation });
        }
        if !(1..1 << 48).contains(&self.steps) {
            return Err(Error::Count { name: "steps", value: self.steps, range: "1 or more, and below 2^48" });
        }
        let law = match self.sampling {
            Sampling::Poisson => BatchLaw::Poisson { mean_darts: self.batch_size },
            Sampling::FixedSize if relation == AdjacencyKind::ZeroOut => {
                return not_proved(
                    "batches of fixed size are proved for replace-one; under add-remove choose Poisson batches",
                );
            }
            Sampling::FixedSize => BatchLaw::FixedSize { size: self.batch_size },
            Sampling::Passes => {
                return not_proved("its batches are drawn: choose Poisson batches or those of fixed size");
            }
        };
        let batches = StepBatches::Drawn { n, law, steps: self.steps };
        let plan = batches.plan()?;
        let sum = StepSum {
            in_float: self.in_float,
            ..StepSum::in_float(self.clipping, batches.most_examples()?, self.microbatch, self.float)
        };
        let beside = match (self.search, self.adaptive_norm) {
            (None, None) => None,
            (Some(search), None) => {
                search.check()?;
                Some(Beside::Search(search))
            }
            (None, Some(norm)) => {
                norm.check(self.clipping, self.descent, self.float)?;
                Some(Beside::Count(norm))
            }
            (Some(_), Some(_)) => return not_proved("a step has either a line search or an adaptive norm"),
        };
        let sums = NoisySums { beside, ..NoisySums::new(RECIPE, plan, sum, relation) };
        sums.sensitivity()?;
        Ok((law, sums))
    }

    /// Returns all numbers of the run with this noise.
    fn resolve(&self, derivation: &ModelDerivation) -> Result<Resolved, Error> {
        let ModelDerivation { relation, n, parameters, std_dev, .. } = *derivation;
        if parameters == 0 {
            return Err(Error::Count { name: "number of parameters", value: 0, range: "1 or more" });
        }
        let (law, sums) = self.sums(n, relation)?;
        let lambda = non_negative("lambda", self.lambda)?;
        check_descent(self.descent)?;
        let (steps, weights) = (self.schedule.prepare(self.steps)?, self.averaging.prepare(self.steps)?);
        let divisor = law.mean_size(n)?;
        // A thousand times the expected norm of the noise, which it exceeds with probability below e^-900.
        let noise = 1000.0 * std_dev * (parameters as f64).sqrt();
        let largest = if self.adaptive_norm.is_some() { SCALES.1 } else { 1.0 };
        self.descent.check_range(&Range {
            recipe: RECIPE,
            steps: &steps,
            updates: self.steps,
            sum: largest * (self.clipping.norm().get() * sums.sum.examples as f64 + noise),
            divisor,
            lambda,
            radius: None,
            penalty: None,
            parameters,
            std_dev,
            float: self.float,
        })?;
        Ok(Resolved { law, sums, divisor, steps, weights })
    }
}
