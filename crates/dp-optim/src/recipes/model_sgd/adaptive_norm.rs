//! A clipping norm that follows a quantile of the gradients' norms.
//!
//! ```text
//! S       <- Σ_{i in B} clip_C ∇ℓ_i(w) + (C/C_0) N(0, σ² I)
//! count   <- Σ_{i in B} (1[‖∇ℓ_i(w)‖ <= C] - 1/2) + N(0, s²)
//! C       <- C exp(-rate (count/b + 1/2 - quantile))
//! ```
//! Computed as the sum of gradients divided by `C/C_0` and clipped to the first norm `C_0`, whose noise is the same in every step.
//!
//! # Privacy
//! Sum and count of a step are one release from one batch: a sample moves `S/(C/C_0)` by at most `C_0` and the count by 1/2, so that
//! both together are one Gaussian, which sampling amplifies once. The next norm is a function of released counts. Null samples are
//! not counted, and the count is divided by the mean size of a batch, which is public.
//!
//! # References
//! Andrew, Thakkar, McMahan, Ramaswamy, "Differentially private learning with adaptive clipping", NeurIPS 2021, Algorithm 1,
//! arXiv 1905.03871.

use dp_accountant::{AdjacencyKind, DpEvent};
use dp_mechanisms::clip::GradientClipping;

use crate::descent::Descent;
use crate::error::{Error, positive};

/// The rule by which the clipping norm follows a quantile: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ZeroOut};
/// use dp_mechanisms::clip::ClippingNorm;
/// use dp_optim::recipes::{AdaptiveNorm, Budget, ModelSgd};
///
/// let fixed = ModelSgd::new(ClippingNorm::new(1.0)?);
/// let adaptive = ModelSgd { adaptive_norm: Some(AdaptiveNorm::new(fixed.batch_size)), ..fixed.clone() };
/// let budget = Budget { epsilon: Epsilon::new(2.0)?, delta: Delta::new(1e-5)? };
/// let noise = |recipe: &ModelSgd| Ok::<_, dp_optim::Error>(recipe.plan::<ZeroOut>(60_000, 1000, budget)?.noise_multiplier());
/// // The count of 2048 samples has noise of 102, and costs next to nothing.
/// let ratio = noise(&adaptive)? / noise(&fixed)?;
/// assert!(ratio > 1.0 && ratio < 1.0001);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct AdaptiveNorm {
    /// The share of gradients that the norm should leave unchanged.
    pub quantile: f64,
    /// The rate of adaptation: a step changes the norm by at most about this share.
    pub rate: f64,
    /// s: standard deviation of the noise on the count.
    pub count_std_dev: f64,
}

impl AdaptiveNorm {
    /// Creates the rule of the paper for batches of this mean size: the median, rate 0.2, noise of a twentieth of the batch.
    pub fn new(batch_size: u64) -> Self {
        Self { quantile: 0.5, rate: 0.2, count_std_dev: (batch_size as f64 / 20.0).max(1.0) }
    }

    /// Returns the sensitivity of the count under the relation of a step's noise.
    pub(in crate::recipes) fn sensitivity(relation: AdjacencyKind) -> f64 {
        if relation == AdjacencyKind::ReplaceOne { 1.0 } else { 0.5 }
    }

    pub(in crate::recipes) fn event(&self, relation: AdjacencyKind) -> DpEvent {
        DpEvent::Gaussian { std_dev: self.count_std_dev, sensitivity: Self::sensitivity(relation) }
    }

    pub(super) fn check(&self, clipping: GradientClipping, descent: Descent) -> Result<(), Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: super::RECIPE, why });
        if !matches!(clipping, GradientClipping::Flat(_)) {
            return not_proved("an adaptive norm is for flat clipping");
        }
        if matches!(descent, Descent::AdamBc { .. }) {
            return not_proved("DP-AdamBC subtracts the variance of noise that an adaptive norm changes");
        }
        if !(self.quantile > 0.0 && self.quantile < 1.0) {
            return Err(Error::OutOfRange { name: "quantile", value: self.quantile, range: "(0, 1)" });
        }
        if !(positive("rate of adaptation", self.rate)? <= 1.0) {
            return Err(Error::OutOfRange { name: "rate of adaptation", value: self.rate, range: "(0, 1]" });
        }
        if !(1e-3..=1e12).contains(&positive("noise of the count", self.count_std_dev)?) {
            let value = self.count_std_dev;
            return Err(Error::OutOfRange { name: "noise of the count", value, range: "[1e-3, 1e12]" });
        }
        Ok(())
    }
}
