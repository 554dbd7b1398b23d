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
use crate::float::FloatKind;

/// The rule by which the clipping norm follows a quantile: public parameters only.
///
/// The norm stays between `2^-20` and `2^10` times the first one.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_mechanisms::clip::ClippingNorm;
/// use dp_optim::recipes::{Budget, ModelSgd, QuantileClipping};
///
/// let fixed = ModelSgd::new(ClippingNorm::new(1.0)?);
/// let adaptive = ModelSgd { adaptive_norm: Some(QuantileClipping::new()), ..fixed.clone() };
/// let budget = Budget::new(2.0, 1e-5)?;
/// let noise = |recipe: &ModelSgd| Ok::<_, dp_optim::Error>(recipe.plan::<ZeroOut>(60_000, 1000, budget)?.noise_multiplier());
/// let ratio = noise(&adaptive)? / noise(&fixed)?;
/// assert!((ratio - 1.005).abs() < 1e-3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct QuantileClipping {
    /// The share of gradients that the norm should leave unchanged.
    pub quantile: f64,
    /// The rate of adaptation: without noise a step multiplies the norm by `e^(rate quantile)` at most, and divides it by
    /// `e^(rate (1 - quantile))` at most.
    pub rate: f64,
    /// Share of a step's zCDP that is the count's: both together need `1/√(1 - share)` times the noise.
    pub share: f64,
}

impl QuantileClipping {
    /// Creates the rule for the median, at rate 0.2 and a hundredth of the cost.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { quantile: 0.5, rate: 0.2, share: 0.01 }
    }

    /// Returns the sensitivity of the count under the relation of a step's noise, and the standard deviation of its noise in steps
    /// whose sum has this noise multiplier.
    pub(crate) fn count(&self, relation: AdjacencyKind, multiplier: f64) -> (f64, f64) {
        let sensitivity = if relation == AdjacencyKind::ReplaceOne { 1.0 } else { 0.5 };
        (sensitivity, sensitivity * multiplier * ((1.0 - self.share) / self.share).sqrt())
    }

    pub(in crate::recipes) fn event(&self, relation: AdjacencyKind, multiplier: f64) -> DpEvent {
        let (sensitivity, std_dev) = self.count(relation, multiplier);
        DpEvent::Gaussian { std_dev, sensitivity }
    }

    pub(super) fn check(&self, clipping: GradientClipping, descent: Descent, float: FloatKind) -> Result<(), Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: super::RECIPE, why });
        let GradientClipping::Flat(first) = clipping else {
            return not_proved("an adaptive norm is for flat clipping");
        };
        if matches!(descent, Descent::AdamBc { .. }) {
            return not_proved("DP-AdamBC subtracts the variance of noise that an adaptive norm changes");
        }
        // Squares of the smallest and of the largest norm must be well inside the range of single precision.
        if float == FloatKind::F32 && !(1e-9..=1e12).contains(&first.get()) {
            let range = "[1e-9, 1e12] for a norm that adapts in single precision";
            return Err(Error::OutOfRange { name: "clipping norm", value: first.get(), range });
        }
        for (name, value) in [("quantile", self.quantile), ("share of the count", self.share)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(Error::OutOfRange { name, value, range: "(0, 1)" });
            }
        }
        if !(positive("rate of adaptation", self.rate)? <= 1.0) {
            return Err(Error::OutOfRange { name: "rate of adaptation", value: self.rate, range: "(0, 1]" });
        }
        Ok(())
    }
}
