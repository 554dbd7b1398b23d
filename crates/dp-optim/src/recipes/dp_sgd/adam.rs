//! DP-SGD with steps by [`Adam`](crate::engine::Adam): DP-Adam, and DP-AdamBC, which subtracts the noise's variance from the
//! mean squares.
//!
//! With noise of variance Φ on each coordinate of the mean gradient, far above the gradient itself, Adam divides every
//! weight's step by about √Φ: it is DP-SGD with momentum. DP-AdamBC subtracts Φ first, with the result bounded below by a
//! fraction of Φ: by chance alone v̂ deviates from Φ by `Φ √(2 (1 - β₂)/(1 + β₂))`, 3% of it for β₂ = 0.999, so that a tenth
//! is three standard deviations. (The paper's floor is an absolute number; here it is a fraction of Φ, independent of the
//! loss's scale.)
//!
//! # Privacy
//! That of [DP-SGD](super): Φ is public, and moments are functions of released sums.
//!
//! # References
//! Tang, Shpilevskiy, Lécuyer, "DP-AdamBC: your DP-Adam is actually DP-SGD (unless you apply bias correction)", AAAI 2024,
//! arXiv 2312.14334; Kingma and Ba, ICLR 2015.

use dp_accountant::AdjacencyKind;
use dp_losses::LossKind;

use super::DpSgd;
use crate::descent::Descent;
use crate::error::Error;
use crate::recipes::problem::Problem;
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

/// β₁.
pub const FIRST_DECAY: f64 = 0.9;
/// β₂.
pub const SECOND_DECAY: f64 = 0.999;
/// ε of DP-Adam.
pub const EPSILON: f64 = 1e-8;
/// φ of DP-AdamBC: lower bound of the corrected mean square, as a fraction of the noise's variance.
pub const FLOOR: f64 = 0.1;
/// The norm of the mean gradient for which step sizes are chosen.
const USUAL_GRADIENT: f64 = 0.3;

impl DpSgd {
    /// Creates DP-Adam with the usual decays.
    pub fn adam(loss: LossKind) -> Self {
        let descent = Descent::Adam { first_decay: FIRST_DECAY, second_decay: SECOND_DECAY, epsilon: EPSILON };
        Self { descent, ..Self::new(loss) }
    }

    /// Creates DP-AdamBC with the usual decays.
    pub fn adam_bc(loss: LossKind) -> Self {
        let descent = Descent::AdamBc { first_decay: FIRST_DECAY, second_decay: SECOND_DECAY, floor: FLOOR };
        Self { descent, ..Self::new(loss) }
    }

    /// Sets the step size with which Adam's steps are about as long as those that suit plain descent
    /// ([`with_suited_steps`](Self::with_suited_steps)), and the same average.
    ///
    /// # Formula
    /// With η of plain descent, p parameters and Φ the noise's variance on the mean gradient,
    /// ```text
    /// η √(Φ + 0.3²/p)      Adam         η √(φΦ + 0.3²/p)      without the noise's part
    /// ```
    ///
    /// # Errors
    /// As [`with_suited_steps`](Self::with_suited_steps) and [`Recipe::plan`](crate::recipes::Recipe::plan).
    pub fn with_adaptive_steps(self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Self, Error> {
        let run = self.run(&Problem::new(&self, n, dim, relation)?)?;
        let noise = run.least_std_dev(budget, 1)? / run.divisor;
        let share = match self.descent {
            Descent::AdamBc { floor, .. } => floor,
            _ => 1.0,
        };
        let usual = USUAL_GRADIENT * USUAL_GRADIENT / self.loss.parameters(dim) as f64;
        let length = (share * noise * noise + usual).sqrt();
        let suited = self.with_suited_steps(n, dim, budget, relation)?;
        Ok(match suited.schedule {
            Some(Schedule::Constant { step }) => {
                Self { schedule: Some(Schedule::Constant { step: step * length }), ..suited }
            }
            _ => suited,
        })
    }
}
