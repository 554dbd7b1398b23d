//! DP-FTRL without tuning, from public numbers alone.

use dp_accountant::AdjacencyKind;
use dp_losses::{Domain, L2, LossKind};

use super::{DpFtrl, best_factor};
use crate::auto::CURVATURE_OF_KINKS;
use crate::averaging::Averaging;
use crate::defaults::Defaults;
use crate::error::Error;
use crate::recipes::problem::Problem;
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

/// Recommended number of passes over the records.
pub const PASSES: u64 = 10;
/// Ratio of the total step to that of output perturbation, whose noise is not averaged.
pub const TOTAL_STEP: f64 = 4.0;

impl DpFtrl {
    /// Returns the recommended recipe for `n` records of `dim` features.
    ///
    /// # Formula
    /// With β the loss's curvature (1/2 for losses with kinks), `a` the noise of the sum of all gradients relative to that of
    /// a single release of one pass's sum, and S four times the total step of [`defaults`](crate::defaults),
    /// ```text
    /// S' = S a^(-2/3)      T = ⌈β S'⌉      b = ⌈k n/T⌉      η = min(S'/T, 1/β)      output: mean of the last T/2 iterates
    /// ```
    /// The total step balances noise and bias as in [`defaults`](crate::defaults), with `a` times the noise. The number of
    /// steps is the least that keeps each within 1/β, since `a` grows with it.
    ///
    /// # Errors
    /// As [`Defaults::new`].
    pub fn recommended(
        loss: LossKind,
        n: u64,
        dim: u64,
        budget: Budget,
        relation: AdjacencyKind,
    ) -> Result<Self, Error> {
        Self { passes: PASSES, ..Self::new(loss) }.with_suited_batches(n, dim, budget, relation)
    }

    /// Sets the batch size, the step size and the average that suit the recipe's passes.
    ///
    /// # Errors
    /// As [`recommended`](Self::recommended).
    pub fn with_suited_batches(self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Self, Error> {
        let mut recipe = Self { batch_size: n.max(1), ..self };
        // Less noise calls for more steps, and more steps have more noise: this converges quickly.
        for _ in 0..3 {
            let longest = recipe.longest_step()?;
            // NaN becomes 0.
            let steps = (recipe.total_step(n, dim, budget, relation)? / longest).ceil() as u64;
            let records = n.saturating_mul(recipe.passes);
            recipe.batch_size = records.div_ceil(steps.clamp(1, super::MOST_STEPS / 2)).clamp(1, n.max(1));
        }
        recipe.with_suited_steps(n, dim, budget, relation)
    }

    /// Sets the step size and the average that suit the recipe's number of steps.
    ///
    /// # Errors
    /// As [`recommended`](Self::recommended).
    pub fn with_suited_steps(self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Self, Error> {
        let steps = self.uncorrelated(&Problem::new(&self, n, dim, relation)?)?.updates();
        let step = (self.total_step(n, dim, budget, relation)? / steps as f64).min(self.longest_step()?);
        let averaging = Averaging::Suffix { updates: (steps / 2).max(1) };
        Ok(Self { schedule: Some(Schedule::Constant { step }), averaging, ..self })
    }

    /// Returns S' for the recipe's number of steps.
    fn total_step(&self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<f64, Error> {
        let defaults = Defaults::new(self.loss, n, self.loss.parameters(dim), budget, relation)?;
        let run = self.uncorrelated(&Problem::new(self, n, dim, relation)?)?;
        let error = match self.bands {
            Some(bands) => super::Bands::new(run.updates(), bands.min(run.updates()), run.participation()?)?.error,
            None => best_factor(run.updates(), run.participation()?, run.parameters())?.error,
        };
        let relative = (error / self.passes as f64).max(1.0);
        Ok(TOTAL_STEP * defaults.total_step() * relative.powf(-2.0 / 3.0))
    }

    /// Returns 1/β.
    fn longest_step(&self) -> Result<f64, Error> {
        let smoothness = self.loss.constants(L2::new(self.lambda)?, &Domain::unit_rows()).smoothness;
        Ok(1.0 / if smoothness.is_finite() { smoothness } else { CURVATURE_OF_KINKS })
    }
}
