//! Least squares on noisy second moments: one pass, one release, no steps.
//!
//! ```text
//! release  M = Σ x xᵀ,  v = Σ x yᵀ   with one noise on all of their numbers
//! w = (M₊ + (λn + 0.4 σ √d) I)⁻¹ v,   M₊ without negative eigenvalues and of a trace that n rows can have
//! ```
//! The noise is on `d(d+1)/2 + d` numbers for any model, so this suits few features and small budgets: with a quarter of the
//! budget of a training with noise in its steps it gives a fair model, which [objective
//! perturbation](crate::recipes::obj_pert) can use as its centre.
//!
//! Under the squared loss the result is the model. For classification losses the weights are scaled to match the loss at small
//! predictions (twice least squares on -1 and +1 for the logistic loss, `C` times for softmax): a fair classifier, but not a
//! calibrated probability.
//!
//! # Privacy
//! [`MomentSum`](dp_mechanisms::clip::MomentSum) bounds the joint sensitivity of all moments and sums exactly; solving the
//! released system is post-processing. The noise is Gaussian, or for delta = 0 that of the Laplace ball.
//!
//! # References
//! Vu, Slavkovic, ICDMW 2009; Wang, "Revisiting differentially private linear regression", UAI 2018; Sheffet, "Differentially
//! private ordinary least squares", ICML 2017, for the ridge that keeps the noisy matrix positive.

mod run;
pub(crate) mod stage;

#[cfg(test)]
mod tests;

pub use run::MomentsRun;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_losses::LossKind;
use stage::Stage;

use crate::derivation::RELEASE;
use crate::error::{Error, non_negative, positive};
use crate::recipes::algorithm::Algorithm;
use crate::recipes::noise_scale::{NoiseScale, OneNoise};
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::{Budget, least_scale};

const RECIPE: &str = "noisy-moments";

/// A recipe of least squares on noisy moments: public parameters only.
///
/// Refuses more moments than noise can be drawn for, those of about 90,000 features.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne, gaussian};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, NoisyMoments, Planned, Recipe};
///
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let plan = NoisyMoments::new(LossKind::Squared).plan::<ReplaceOne>(10_000, 5, Budget { epsilon, delta })?;
/// let std_dev = gaussian::noise_multiplier(epsilon, delta)?.get() * 4.5f64.sqrt();
/// assert!((plan.run().noise().scale() / std_dev - 1.0).abs() < 1e-4);
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct NoisyMoments {
    /// The loss of the released model.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²` of the mean of `(⟨w, x⟩ - y)²/2`, in addition to the ridge that the noise
    /// needs.
    pub lambda: f64,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source.
    pub target_bound: f64,
}

impl Algorithm for NoisyMoments {
    const NAME: &'static str = RECIPE;

    const MOST_ROW_NORM: f64 = f64::MAX;
    const MOST_CLASS_TARGET: f64 = f64::MAX;

    type Calibrated = OneNoise;
    type Run = MomentsRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: None }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(OneNoise, MomentsRun), Error> {
        let (stage, sensitivity) = self.moments(problem)?;
        let unit = NoiseScale::new(!(budget.delta.get() > 0.0), 1.0);
        let at = |multiplier: f64| unit.with_scale(multiplier * sensitivity);
        let multiplier = least_scale(budget, copies, |multiplier| at(multiplier).event(sensitivity, stage.moments()))?;
        let noise = at(multiplier);
        Ok((OneNoise { noise }, self.with_noise(stage, sensitivity, noise)?))
    }

    fn resolve(&self, problem: &Problem, &OneNoise { noise }: &OneNoise) -> Result<MomentsRun, Error> {
        let (stage, sensitivity) = self.moments(problem)?;
        self.with_noise(stage, sensitivity, noise)
    }

    fn work(&self, problem: &Problem, _: &Self::Calibrated) -> u64 {
        RELEASE.saturating_add(Stage::of(problem).moments().saturating_mul(8))
    }
}

impl NoisyMoments {
    /// Creates the recipe without a regulariser other than the ridge that the noise needs.
    pub fn new(loss: LossKind) -> Self {
        Self { loss, lambda: 0.0, noise_mode: NoiseMode::Exact, row_norm: 1.0, target_bound: loss.usual_target_bound() }
    }

    /// Returns the stage of the moments, and its L2 sensitivity.
    fn moments(&self, problem: &Problem) -> Result<(Stage, f64), Error> {
        positive("target bound", self.target_bound)?;
        non_negative("lambda", self.lambda)?;
        let stage = Stage::of(problem);
        let sensitivity = match problem.relation {
            AdjacencyKind::ZeroOut => stage.sensitivity::<ZeroOut>()?,
            AdjacencyKind::ReplaceOne => stage.sensitivity::<ReplaceOne>()?,
            adjacency => return Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        };
        Ok((stage, sensitivity))
    }

    fn with_noise(&self, stage: Stage, sensitivity: f64, noise: NoiseScale) -> Result<MomentsRun, Error> {
        noise.check()?;
        let Self { lambda, noise_mode, .. } = *self;
        Ok(MomentsRun { stage, lambda, sensitivity, noise, noise_mode })
    }
}
