//! DP-ADMM: parties with separate records agree on a model, each with noise on its own gradients. It is DP-SGD with steps by
//! [`ConsensusAdmm`](crate::engine::ConsensusAdmm).
//!
//! ```text
//! each round, each party:   g   <- ( Σ_{its records} clip_C ∇ℓ_j(w_i) + N(0, σ² I) ) / n_i + λ w_i
//!                           w_i <- ( w_i/η + ρ w + γ_i - g ) / ( 1/η + ρ )
//! then all:                 w   <- prox_{P/ρ}( mean_i (w_i - γ_i/ρ) )         γ_i <- γ_i - ρ (w_i - w)
//! ```
//! # Privacy
//! The parts are formed before any value is read: from the positions of a secret order, or of the order as held, in which a
//! null record keeps its place. A record belongs to one party, the same in all rounds, and all other sums depend on it only
//! through earlier releases. So a round costs as much as one party's noisy sum, not the sum over parties (parallel
//! composition, adaptively), and the rounds compose. w, w_i and γ_i are functions of released sums: all of them may be
//! published. The noise of a step on w_i is that on the gradient times `η/(n_i (1 + ηρ))`.
//!
//! Each of N parties' mean gradients has N times the noise of all records' mean, so their mean has √N times as much: parties
//! that trust one another should pool their records.
//!
//! # References
//! Huang, Hu, Guo, Chan-Tin, Gong, "DP-ADMM: ADMM-based distributed learning with differential privacy", IEEE TIFS 2020;
//! Chen 2020 (dissertation, University of Georgia), chapter 5, compares it with two parties and steps `1/√k`.

use dp_accountant::AdjacencyKind;
use dp_losses::{Domain, L2, LossKind};

use super::defaults::TOTAL_STEP;
use super::{DpSgd, Sampling};
use crate::averaging::Averaging;
use crate::defaults::Defaults;
use crate::descent::Descent;
use crate::error::Error;
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

/// The default number of parties.
pub const PARTIES: u64 = 2;
/// The default ρ.
pub const RHO: f64 = 0.05;

impl DpSgd {
    /// Creates dp-admm with this many parties: ten rounds with a constant step. The final consensus model is released.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::ZeroOut;
    /// use dp_losses::LossKind;
    /// use dp_optim::recipes::{Budget, DpSgd, Recipe};
    ///
    /// let budget = Budget::new(1.0, 1e-8)?;
    /// let plan = |parties| DpSgd::dp_admm(LossKind::Logistic, parties).plan::<ZeroOut>(40_000, 20, budget);
    /// // A record belongs to one party: the noise on a sum does not depend on their number.
    /// assert!((plan(2)?.run().std_dev() / plan(8)?.run().std_dev() - 1.0).abs() < 1e-6); // up to rounding
    /// assert_eq!((plan(8)?.run().steps(), plan(8)?.run().divisor()), (80, 5000.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dp_admm(loss: LossKind, parties: u64) -> Self {
        Self {
            sampling: Sampling::Passes,
            batch_size: u64::MAX,
            passes: 10,
            schedule: Some(Schedule::Constant { step: 1.0 }),
            descent: Descent::Consensus { rho: RHO, parties },
            ..Self::new(loss)
        }
    }

    /// Sets the rounds and the step that suit this many records, given the noise of the mean gradient over N parties: as many
    /// rounds as [gradient descent](Self::full_gradient) has steps, and the mean of the second half.
    ///
    /// # Errors
    /// As [`recommended`](Self::recommended).
    pub fn with_suited_rounds(
        self,
        rounds: Option<u64>,
        n: u64,
        dim: u64,
        budget: Budget,
        relation: AdjacencyKind,
    ) -> Result<Self, Error> {
        let Descent::Consensus { rho, parties } = self.descent else { return Ok(self) };
        // √N times the noise corresponds to fewer records.
        let fewer = ((n as f64 / (parties.max(1) as f64).sqrt()) as u64).max(1);
        let passes = match rounds {
            Some(rounds) => rounds,
            None => Self::full_gradient(self.loss, fewer, dim, budget, relation)?.passes,
        };
        let defaults = Defaults::new(self.loss, fewer, self.loss.parameters(dim), budget, relation)?;
        let smoothness = self.loss.constants(L2::new(self.lambda)?, &Domain::unit_rows()).smoothness;
        let longest = if smoothness.is_finite() { 1.0 / smoothness } else { 1.0 };
        // η/(1 + ηρ) is the effective step of the consensus model.
        let moved = TOTAL_STEP * defaults.total_step() / passes.max(1) as f64;
        let step = if moved * rho < 1.0 { moved / (1.0 - moved * rho) } else { longest };
        let updates = passes.saturating_mul(parties).max(2);
        Ok(Self {
            passes,
            schedule: Some(Schedule::Constant { step: step.min(longest) }),
            averaging: Averaging::Suffix { updates: updates / 2 },
            ..self
        })
    }
}
