//! DP-SVRG without tuning, from public numbers alone.

use dp_accountant::AdjacencyKind;
use dp_losses::{Domain, L2, LossKind};

use super::DpSvrg;
use crate::averaging::Averaging;
use crate::defaults::Defaults;
use crate::error::Error;
use crate::recipes::DpSgd;
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

/// Default number of snapshots, unless steps of `1/β` need more.
pub(super) const EPOCHS: u64 = 10;
/// Maximum number of recommended epochs.
const MOST_EPOCHS: u64 = 200;
/// Share of the cost for full gradients, whose noise is common to all steps of an epoch.
pub(super) const FULL_SHARE: f64 = 0.7;
/// Ratio of the total step to that of output perturbation.
const TOTAL_STEP: f64 = crate::recipes::dp_sgd::defaults::TOTAL_STEP;

impl DpSvrg {
    /// Returns the recommended recipe for `n` records of `dim` features: batches as in [`DpSgd::recommended`], about one pass
    /// in each epoch, and enough epochs (10 to 200) that steps of at most `1/β` add up to twice the total step of
    /// [`defaults`](crate::defaults).
    ///
    /// # Errors
    /// As [`DpSgd::recommended`].
    pub fn recommended(
        loss: LossKind,
        n: u64,
        dim: u64,
        budget: Budget,
        relation: AdjacencyKind,
    ) -> Result<Self, Error> {
        let batch_size = DpSgd::recommended(loss, n, dim, budget, relation)?.batch_size;
        let recipe = Self { batch_size, ..Self::new(loss) };
        let total = TOTAL_STEP * Defaults::new(loss, n, loss.parameters(dim), budget, relation)?.total_step();
        let smoothness = loss.constants(L2::NONE, &Domain::unit_rows()).smoothness;
        let epochs = total * smoothness / recipe.steps_of_epoch(n) as f64;
        // A loss with kinks does not bound the steps; NaN becomes 0.
        let epochs = if smoothness.is_finite() { epochs.ceil() as u64 } else { 0 };
        Self { epochs: epochs.clamp(EPOCHS, MOST_EPOCHS), ..recipe }.with_suited_steps(n, dim, budget, relation)
    }

    /// Sets the step size and the average that suit the recipe's number of steps.
    ///
    /// # Errors
    /// As [`recommended`](Self::recommended).
    pub fn with_suited_steps(self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Self, Error> {
        let defaults = Defaults::new(self.loss, n, self.loss.parameters(dim), budget, relation)?;
        let updates = self.epochs.saturating_mul(self.steps_of_epoch(n)).max(1);
        let step = TOTAL_STEP * defaults.total_step() / updates as f64;
        let smoothness = self.loss.constants(L2::new(self.lambda)?, &Domain::unit_rows()).smoothness;
        let step = if smoothness.is_finite() { step.min(1.0 / smoothness) } else { step };
        let averaging = Averaging::Suffix { updates: (updates / 2).max(1) };
        Ok(Self { schedule: Some(Schedule::Constant { step }), averaging, ..self })
    }
}
