//! DP-SGD without tuning, from public numbers alone.

use dp_accountant::{AdjacencyKind, gaussian};
use dp_losses::{Domain, L2, LossKind};

use super::{DpSgd, Sampling};
use crate::auto::{CURVATURE_OF_KINKS, MOST_STEPS};
use crate::averaging::Averaging;
use crate::defaults::Defaults;
use crate::descent::Descent;
use crate::error::Error;
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

/// Recommended number of passes over the records.
pub const PASSES: u64 = 20;
/// Minimum batch size: smaller batches cost more time than they reduce noise.
pub const LEAST_BATCH: u64 = 256;
/// `c` of the batch size `c μ² n / passes`.
pub const BATCH: f64 = 4.0;
/// Ratio of the total step to that of output perturbation, whose noise is not averaged.
pub const TOTAL_STEP: f64 = 2.0;

impl DpSgd {
    /// Returns the recommended recipe for `n` records of `dim` features.
    ///
    /// # Formula
    /// With μ the parameter of Gaussian differential privacy that corresponds to the budget, and `k` passes,
    /// ```text
    /// b = max(256, c μ² n / k)      T = k ⌈n/b⌉      η = min(S/T, 1/β)      output: mean of the last T/2 iterates
    /// ```
    /// The noise multiplier σ follows `q²T (e^(1/σ²) - 1) ≈ μ²` with `q = b/n`, `qT ≈ k`. While σ is well above 1 the noise in
    /// the model depends on the total step `S` alone, neither on `b` nor on `T`, and smaller batches only cost time; for σ
    /// below 1 a step costs exponentially more. The rule keeps `σ² ≈ kq/μ² >= c`. The total step balances noise and bias as in
    /// [`defaults`](crate::defaults), from whose `S` it differs by a constant.
    ///
    /// # Errors
    /// As [`Defaults::new`]; delta = 0.
    pub fn recommended(
        loss: LossKind,
        n: u64,
        dim: u64,
        budget: Budget,
        relation: AdjacencyKind,
    ) -> Result<Self, Error> {
        let recipe = Self { averaging: Averaging::Last, passes: PASSES, ..Self::new(loss) };
        let multiplier = if budget.delta.get() > 0.0 {
            gaussian::noise_multiplier(budget.epsilon, budget.delta)?.get()
        } else {
            return Err(Error::NotProved { recipe: super::RECIPE, why: "Gaussian noise needs delta > 0" });
        };
        let batch = (BATCH * n as f64 / (recipe.passes as f64 * multiplier * multiplier)) as u64;
        Self { batch_size: batch.clamp(LEAST_BATCH, n.max(LEAST_BATCH)), ..recipe }
            .with_suited_steps(n, dim, budget, relation)
    }

    /// Sets the step size and the average that suit the recipe's number of steps.
    ///
    /// # Errors
    /// As [`recommended`](Self::recommended).
    pub fn with_suited_steps(self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Self, Error> {
        let defaults = Defaults::new(self.loss, n, self.loss.parameters(dim), budget, relation)?;
        let updates = self.updates(n);
        let step = TOTAL_STEP * defaults.total_step() / updates as f64;
        let smoothness = self.loss.constants(L2::new(self.lambda)?, &Domain::unit_rows()).smoothness;
        let step = if smoothness.is_finite() { step.min(1.0 / smoothness) } else { step };
        let averaging = Averaging::Suffix { updates: (updates / 2).max(1) };
        Ok(Self { schedule: Some(Schedule::Constant { step }), averaging, ..self })
    }

    /// Returns the recipe of gradient descent on all records at each step, with noise on each sum.
    ///
    /// # Formula
    /// With β the loss's curvature (1/2 for losses with kinks) and S twice the total step of [`defaults`](crate::defaults),
    /// ```text
    /// T = min(⌈β S⌉, 200)      η = min(S/T, 1/β)      output: mean of the last T/2 iterates
    /// ```
    /// For a given total step the noise in the model does not depend on T: its variance on each sum grows with T, and `T η²`
    /// shrinks in proportion. So T is the least for which no step is longer than 1/β. It follows from public numbers.
    ///
    /// # Errors
    /// As [`Defaults::new`].
    ///
    /// # References
    /// Bassily, Smith, Thakurta, FOCS 2014, for noisy gradients of all records; Zhang, Zheng, Mou, Wang, "Efficient private
    /// ERM for smooth objectives", IJCAI 2017, for their horizon.
    pub fn full_gradient(
        loss: LossKind,
        n: u64,
        dim: u64,
        budget: Budget,
        relation: AdjacencyKind,
    ) -> Result<Self, Error> {
        let defaults = Defaults::new(loss, n, loss.parameters(dim), budget, relation)?;
        let smoothness = loss.constants(L2::NONE, &Domain::unit_rows()).smoothness;
        let smoothness = if smoothness.is_finite() { smoothness } else { CURVATURE_OF_KINKS };
        // NaN becomes 0.
        let passes = ((TOTAL_STEP * defaults.total_step() * smoothness).ceil() as u64).clamp(1, MOST_STEPS);
        let recipe = Self { sampling: Sampling::Passes, batch_size: u64::MAX, passes, ..Self::new(loss) };
        recipe.with_suited_steps(n, dim, budget, relation)
    }

    pub(super) fn updates(&self, n: u64) -> u64 {
        if let Descent::Consensus { parties, .. } = self.descent {
            return parties.saturating_mul(self.passes).max(1);
        }
        match (self.steps, self.sampling) {
            (Some(steps), Sampling::Poisson | Sampling::FixedSize) => steps.max(1),
            _ => n.div_ceil(self.batch_size.clamp(1, n.max(1))).saturating_mul(self.passes).max(1),
        }
    }
}
