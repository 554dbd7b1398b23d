//! Least squares on noisy second moments: one pass, one release, no steps.
//!
//! ```text
//! release  M = Σ x xᵀ,  v = Σ x yᵀ   with one noise on all of their numbers
//! w = (M₊ + (λn + 0.3 σ √d) I)⁻¹ v
//! ```
//! The noise is on `d(d+1)/2 + d` numbers whatever the model, so that this is for few features and small budgets: a quarter
//! of the budget of a training with noise in its steps gives a fair model, of which
//! [objective perturbation](crate::recipes::obj_pert) makes its centre.
//!
//! Under the squared loss it is the model; for the losses of classes the weights are scaled to what the loss would have at
//! small predictions (twice least squares on -1 and +1 for the logistic loss, `C` times for softmax), which is a fair
//! classifier and no calibrated probability.
//!
//! # Privacy
//! [`MomentSum`](dp_mechanisms::clip::MomentSum) bounds how far a record moves all moments together, and sums exactly; what
//! is solved from the released numbers costs nothing more.
//!
//! # References
//! Vu, Slavkovic, ICDMW 2009; Wang, "Revisiting differentially private linear regression", UAI 2018; Sheffet, "Differentially
//! private ordinary least squares", ICML 2017, for the ridge that keeps the noisy matrix positive.

mod derivation;
mod plan;
pub(crate) mod stage;

#[cfg(test)]
mod tests;

pub use derivation::NoisyMomentsDerivation;
pub use plan::Plan;
pub use stage::RIDGE;

use dp_accountant::certificate::NoiseMode;
use dp_losses::LossKind;

use crate::error::{Error, non_negative, positive};
use crate::recipes::noise_scale::check_noise_mode;
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency, check_copies};
use stage::Stage;

const RECIPE: &str = "noisy-moments";

/// A recipe of least squares on noisy moments: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne, gaussian};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, NoisyMoments, Planned};
///
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let plan = NoisyMoments::new(LossKind::Squared).plan::<ReplaceOne>(10_000, 5, Budget { epsilon, delta })?;
/// let std_dev = gaussian::noise_multiplier(epsilon, delta)?.get() * 4.5f64.sqrt();
/// assert!((plan.noise().scale() / std_dev - 1.0).abs() < 1e-4);
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct NoisyMoments {
    /// The loss whose model is released.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²` of the mean of `(⟨w, x⟩ - y)²/2`, beside the ridge that the noise
    /// needs.
    pub lambda: f64,
    /// How noise is drawn.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, which the source enforces.
    pub row_norm: f64,
    /// Bound on the targets' size, which the source enforces.
    pub target_bound: f64,
}

impl Recipe for NoisyMoments {
    type Plan<A: RecordAdjacency> = Plan<A>;

    fn plan_copies<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Plan<A>, Error> {
        check_copies(copies)?;
        Plan::new(self, n, dim, budget, copies)
    }
}

impl NoisyMoments {
    /// Without a regulariser besides the ridge that the noise needs.
    pub fn new(loss: LossKind) -> Self {
        Self { loss, lambda: 0.0, noise_mode: NoiseMode::Exact, row_norm: 1.0, target_bound: loss.usual_target_bound() }
    }

    /// Derives noise, event and guarantee for `n` records of `dim` features, before any data is read: Gaussian noise, or
    /// for delta = 0 that of the Laplace ball.
    ///
    /// # Errors
    /// Parameters outside their range, more moments than noise is drawn for (about 90,000 features), and a budget that no
    /// noise reaches.
    pub fn plan<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget) -> Result<Plan<A>, Error> {
        Plan::new(self, n, dim, budget, 1)
    }

    /// Refuses parameters outside their range.
    fn check(&self, n: u64, dim: u64) -> Result<(), Error> {
        for (name, value) in [("number of records", n), ("dimension", dim)] {
            if value == 0 {
                return Err(Error::Count { name, value, range: "1 or more" });
            }
        }
        positive("row norm", self.row_norm)?;
        positive("target bound", self.target_bound)?;
        non_negative("lambda", self.lambda)?;
        check_noise_mode(RECIPE, self.noise_mode)
    }

    fn stage(&self, n: u64, dim: u64) -> Stage {
        Stage { loss: self.loss, n, dim, row_norm: self.row_norm, target_bound: self.target_bound }
    }
}
