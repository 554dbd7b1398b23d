//! Phased empirical risk minimisation: each phase minimises a regularised risk, so that losses need not be smooth.
//!
//! # Formula
//! Phase `i` minimises over its own `n_i` records, around the point `v = Π_R(w_{i-1})` that was released last,
//! ```text
//! F_i(w) = (1/n_i) Σ ℓ(⟨w, x_j⟩, y_j) + (λ/2) ‖w‖² + (λ_i/2) ‖w - v‖²,      λ_i = 2/(η_i n_i)
//! w_i = ŵ_i + N(0, σ_i² I),    ‖ŵ_i - argmin F_i‖ <= τ_i,    σ_i = Δ_i / ρ,    Δ_i = G/((λ + λ_i) n_i) + 2τ_i
//! ```
//! The minimum is that of the whole space; the released points are projected onto the ball, which costs nothing. A
//! function that is `(λ + λ_i)`-strongly convex and changes by `(ℓ_j - ℓ_j')/n_i` has minimisers no farther apart than
//! `G/((λ + λ_i) n_i)`, `G` the largest difference of the two losses' subgradients: at the one minimiser the other
//! function has a subgradient of norm `G/n_i`. That `ŵ_i` is near the minimiser is [certified][dual_ascent] for every data
//! set, not in expectation: no failure probability joins delta.
//!
//! # References
//! Feldman, Koren, Talwar, "Private stochastic convex optimization: optimal rates in linear time", STOC 2020, arXiv
//! 2005.04763, section 4.2; there `τ_i = Lη_i`, so that `Δ_i` is three times the minimisers' distance `Lη_i`
//! ([`PhasedErm::slack`] 2), where here it is 1.01 times it.
//!
//! [dual_ascent]: crate::engine::dual_ascent

mod derivation;
mod plan;
mod training;

#[cfg(test)]
mod tests;

pub use derivation::PhasedErmDerivation;
pub use plan::Plan;

use dp_accountant::certificate::NoiseMode;
use dp_losses::LossKind;

use crate::error::Error;
use crate::recipes::phases::Inputs;
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency, check_copies};

const RECIPE: &str = "phased-erm";

/// A Phased-ERM recipe: public parameters only.
///
/// For losses of bounded slopes: logistic, the two of Huber, and those with kinks, hinge and absolute. Each phase's records
/// are read often; the source is read once, and half of it is held in memory.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, PhasedErm};
///
/// let recipe = PhasedErm { step: Some(0.1), ..PhasedErm::new(LossKind::Hinge, 5.0) };
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-6)? };
/// let plan = recipe.plan::<ReplaceOne>(10_000, 5, budget)?; // before any data
/// // L η_1 = 0.025, and a hundredth for the distance from the minimiser.
/// assert!((plan.sensitivities()[0] - 1.01 * 0.025).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PhasedErm {
    /// The loss; its slopes are bounded.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²` of the objective itself; may be 0.
    pub lambda: f64,
    /// R: every phase's release is projected onto the ball of this radius.
    pub radius: f64,
    /// D: bound on the distance from the origin to the best point, for the step size alone; `None` is the radius.
    pub distance: Option<f64>,
    /// η: phase `i` has `λ_i = 2 · 4^i/(η n_i)`; `None` is [`Problem::step`](crate::recipes::phases::Problem::step).
    pub step: Option<f64>,
    /// By what share of the minimisers' distance the tolerances raise the sensitivity, unless double precision cannot
    /// certify so much. A larger share needs fewer rounds and more noise.
    pub slack: f64,
    /// Run in stages that use the regulariser's strong convexity
    /// ([`Reduction`](crate::recipes::phases::Reduction)); needs λ > 0.
    pub restarts: bool,
    /// The rows are read as the source holds them, in an order that the curator vouches for as independent of their
    /// values; else in a random order under a secret key.
    pub declared_order: bool,
    /// How the noise is drawn.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, which the source enforces.
    pub row_norm: f64,
    /// Bound on the targets' size, which the source enforces; at most 1 for the losses of two classes.
    pub target_bound: f64,
}

impl Recipe for PhasedErm {
    type Plan<A: RecordAdjacency> = Plan<A>;

    fn plan_copies<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Plan<A>, Error> {
        check_copies(copies)?;
        Plan::new(self, n, dim, budget, copies)
    }
}

impl PhasedErm {
    /// With the theorem's step size and a hundredth of slack, over the ball of this radius.
    pub fn new(loss: LossKind, radius: f64) -> Self {
        Self {
            loss,
            lambda: 0.0,
            radius,
            distance: None,
            step: None,
            slack: 0.01,
            restarts: false,
            declared_order: false,
            noise_mode: NoiseMode::Exact,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Derives the phases, their sensitivities and noise, and the guarantee, for `n` records of `dim` features, before any
    /// data is read.
    ///
    /// # Privacy
    /// `n` and `dim` are public under both relations. The end of each phase is a release; all of them may be known. How
    /// long training takes depends on the data and is not covered.
    ///
    /// # Errors
    /// Parameters outside their range or outside what is proved ([`Error::NotProved`]: a loss whose slopes are not
    /// bounded, delta = 0), fewer than 2 records, and a budget that no noise reaches.
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
