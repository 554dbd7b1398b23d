//! Phased stochastic gradient descent: every record is read once, and the model is released at the end of each phase.
//!
//! ```text
//! phase 1: n/2 records, step η/4    w̄_1 + N(0, σ_1²)  ─▶  phase 2: n/4 records, step η/16  ─▶ ... ─▶  w_k
//! ```
//!
//! # Formula
//! Phase `i` starts at `w⁰ = Π_R(w_{i-1})`, takes a projected gradient step of size `η_i` on each of its `n_i` records, and
//! releases the average of the points *before* each step,
//! ```text
//! w̄_i = (1/n_i) Σ_{t < n_i} w^t,        w_i = w̄_i + N(0, σ_i² I),    σ_i = Δ_i / ρ
//! ```
//! A step of at most `2/β` does not drive two points apart, so one record moves `w̄_i` by `Δ_i <= (1 - 1/n_i) G η_i` (the last
//! record of a phase moves none of the averaged points and is not read; a phase of one record would release its start
//! again and is left out). The [growth recursion](crate::growth) gives the exact bound, contraction by the regulariser
//! and rounding included.
//!
//! # References
//! Feldman, Koren, Talwar, "Private stochastic convex optimization: optimal rates in linear time", STOC 2020, arXiv
//! 2005.04763, Algorithm 2 and Theorem 4.1; there `σ_i = 4Lη_i/ρ`, twice what the sensitivity asks for.

mod derivation;
mod plan;
mod training;

#[cfg(test)]
mod tests;

pub use derivation::PhasedSgdDerivation;
pub use plan::Plan;

use dp_accountant::certificate::NoiseMode;
use dp_losses::LossKind;

use crate::error::Error;
use crate::growth::Arithmetic;
use crate::recipes::phases::Inputs;
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency, check_copies};

const RECIPE: &str = "phased-sgd";

/// A Phased-SGD recipe: public parameters only.
///
/// It reads each record once, so that it costs one pass, and reaches the optimal rate of the population loss,
/// `O(DL(1/√n + √d/(ρn)))`, for smooth convex losses.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, PhasedSgd, Planned};
///
/// let recipe = PhasedSgd::new(LossKind::Logistic, 5.0); // over the ball of radius 5
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-6)? };
/// let plan = recipe.plan::<ReplaceOne>(10_000, 5, budget)?; // before any data
/// assert_eq!(plan.phases().len(), 12); // a thirteenth would have one record
/// // The noise that stays is that of the last phase.
/// assert!(plan.noise_norm() < 1e-7);
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PhasedSgd {
    /// The loss; smooth.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`; may be 0.
    pub lambda: f64,
    /// R: the iterates, and the released model, are projected onto the ball of this radius.
    pub radius: f64,
    /// D: bound on the distance from the origin to the best point, for the step size alone; `None` is the radius.
    pub distance: Option<f64>,
    /// η: the phases' steps are `η/4^i`; `None` is [`Problem::step`](crate::recipes::phases::Problem::step), at most
    /// `8/β`.
    pub step: Option<f64>,
    /// Run in stages that use the regulariser's strong convexity
    /// ([`Reduction`](crate::recipes::phases::Reduction)); needs λ > 0.
    pub restarts: bool,
    /// The rows are read as the source holds them, in an order that the curator vouches for as independent of their
    /// values; else in a random order under a secret key.
    pub declared_order: bool,
    /// How the noise is drawn.
    pub noise_mode: NoiseMode,
    /// How the iterate is carried.
    pub arithmetic: Arithmetic,
    /// Bound on the rows' L2 norm, which the source enforces.
    pub row_norm: f64,
    /// Bound on the targets' size, which the source enforces; at most 1 for the losses of two classes, the largest class
    /// index for softmax.
    pub target_bound: f64,
}

impl Recipe for PhasedSgd {
    type Plan<A: RecordAdjacency> = Plan<A>;

    fn plan_copies<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Plan<A>, Error> {
        check_copies(copies)?;
        Plan::new(self, n, dim, budget, copies)
    }
}

impl PhasedSgd {
    /// With the theorem's step size, over the ball of this radius.
    pub fn new(loss: LossKind, radius: f64) -> Self {
        Self {
            loss,
            lambda: 0.0,
            radius,
            distance: None,
            step: None,
            restarts: false,
            declared_order: false,
            noise_mode: NoiseMode::Exact,
            arithmetic: Arithmetic::Scaled,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Derives the phases, their sensitivities and noise, and the guarantee, for `n` records of `dim` features, before any
    /// data is read.
    ///
    /// # Privacy
    /// `n` and `dim` are public under both relations. The end of each phase is a release; all of them may be known.
    ///
    /// # Errors
    /// Parameters outside their range or outside what is proved ([`Error::NotProved`]: a loss that is not smooth, steps
    /// above `8/β`, delta = 0), fewer than 4 records, and a budget that no noise reaches.
    pub fn plan<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget) -> Result<Plan<A>, Error> {
        Plan::new(self, n, dim, budget, 1)
    }

    fn inputs(&self) -> Inputs {
        Inputs {
            recipe: RECIPE,
            loss: self.loss,
            lambda: self.lambda,
            radius: self.radius,
            distance: self.distance,
            step: self.step,
            restarts: self.restarts,
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            noise_mode: self.noise_mode,
            declared_order: self.declared_order,
        }
    }
}
