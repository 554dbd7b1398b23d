//! DP-ADMM: parties with records of their own agree on a model, each with noise on its own gradients. It is DP-SGD that steps
//! by [`ConsensusAdmm`](crate::engine::ConsensusAdmm).
//!
//! ```text
//! each round, each party:   g   <- ( Σ_{its records} clip_C ∇ℓ_j(w_i) + N(0, σ² I) ) / n_i + λ w_i
//!                           w_i <- ( w_i/η + ρ w + γ_i - g ) / ( 1/η + ρ )
//! then all:                 w   <- prox_{P/ρ}( mean_i (w_i - γ_i/ρ) )         γ_i <- γ_i - ρ (w_i - w)
//! ```
//! # Privacy
//! The parts are made before anything is looked at: of the positions of a secret order, or of the order as held, in which a
//! null record keeps its place; a record is one party's, the same in all rounds, and everyone else's sums depend on it only
//! through what was released. So a round costs what its own party's noisy sum costs, not the sum over parties (parallel
//! composition, adaptively), and the rounds compose. w, w_i and γ_i are functions of released sums: all of them might be
//! published, by and to everyone. A step's noise on w_i is that on the gradient times `η/(n_i (1 + ηρ))`.
//!
//! The mean over N parties of noise that is N times as large as that of all records' mean is √N times as large: parties that
//! trust one another are better off together.
//!
//! # References
//! Huang, Hu, Guo, Chan-Tin, Gong, "DP-ADMM: ADMM-based distributed learning with differential privacy", IEEE TIFS 2020; the
//! dissertation behind the crate's list of errata, chapter 5, compares it with two parties and steps `1/√k`.

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

/// Parties.
pub const PARTIES: u64 = 2;
/// ρ.
pub const RHO: f64 = 0.05;

impl DpSgd {
    /// dp-admm of so many parties: ten rounds with a constant step; what they agree on in the end is released.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, Epsilon, ZeroOut};
    /// use dp_losses::LossKind;
    /// use dp_optim::recipes::{Budget, DpSgd, Recipe};
    ///
    /// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-8)? };
    /// let plan = |parties| DpSgd::dp_admm(LossKind::Logistic, parties).plan::<ZeroOut>(40_000, 20, budget);
    /// // A record is one party's: the noise on a sum does not depend on how many there are.
    /// assert!((plan(2)?.run().std_dev() / plan(8)?.run().std_dev() - 1.0).abs() < 1e-6); // but for rounding
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

    /// The same recipe with rounds and a step that suit so many records, by the noise of the mean gradient that N parties
    /// amount to: as many rounds as [gradient descent](Self::full_gradient) has steps, and the mean of the second half.
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
        // √N times the noise is what fewer records have.
        let fewer = ((n as f64 / (parties.max(1) as f64).sqrt()) as u64).max(1);
        let passes = match rounds {
            Some(rounds) => rounds,
            None => Self::full_gradient(self.loss, fewer, dim, budget, relation)?.passes,
        };
        let defaults = Defaults::new(self.loss, fewer, self.loss.parameters(dim), budget, relation)?;
        let smoothness = self.loss.constants(L2::new(self.lambda)?, &Domain::unit_rows()).smoothness;
        let longest = if smoothness.is_finite() { 1.0 / smoothness } else { 1.0 };
        // η/(1 + ηρ) is what moves all.
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
