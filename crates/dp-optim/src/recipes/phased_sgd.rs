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
//! A step of at most `2/β` is non-expansive, so one record moves `w̄_i` by `Δ_i <= (1 - 1/n_i) G η_i`. (The last record of a
//! phase affects none of the averaged points and is not read; a phase of one record would release its start again and is
//! omitted.) The [growth recursion](crate::growth) gives the exact bound, including rounding and the contraction by the
//! regulariser.
//!
//! # References
//! Feldman, Koren, Talwar, "Private stochastic convex optimization: optimal rates in linear time", STOC 2020, arXiv
//! 2005.04763, Algorithm 2 and Theorem 4.1; there `σ_i = 4Lη_i/ρ`, twice what the sensitivity requires.

#[cfg(test)]
mod tests;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::LossKind;

use crate::averaging::Averaging;
use crate::derivation::RELEASE;
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::growth::{Arithmetic, Divisor, Growth, OrderPolicy, Rounding};
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::phases::{Inputs, Method, NoiseMultiplier, Phase, PhasedRun, Reach, noise_multiplier};
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

const RECIPE: &str = "phased-sgd";

/// A Phased-SGD recipe: public parameters only.
///
/// It reads each record once, in a single pass, and reaches the optimal rate of the population loss, `O(DL(1/√n + √d/(ρn)))`,
/// for smooth convex losses.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, PhasedSgd, Planned, Recipe};
///
/// let recipe = PhasedSgd::new(LossKind::Logistic, 5.0); // over the ball of radius 5
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = recipe.plan::<ReplaceOne>(10_000, 5, budget)?; // before any data
/// assert_eq!(plan.run().phases().len(), 12); // a thirteenth would have one record
/// // The remaining noise is that of the last phase.
/// assert!(plan.run().noise_norm() < 1e-7);
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
    /// R: radius of the ball onto which the iterates and the released model are projected.
    pub radius: f64,
    /// D: bound on the distance from the origin to the best point, used for the step size only; `None` is the radius.
    pub distance: Option<f64>,
    /// η: the phases' steps are `η/4^i`; `None` is [`PhasedProblem::step`](crate::recipes::phases::PhasedProblem::step), at most
    /// `8/β`.
    pub step: Option<f64>,
    /// Run in stages that use the regulariser's strong convexity ([`Reduction`](crate::recipes::phases::Reduction)); needs λ >
    /// 0.
    pub restarts: bool,
    /// True if rows are read in the source's order, which the curator declares independent of their values; otherwise the
    /// order is random under a secret key.
    pub declared_order: bool,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// The representation of the iterate.
    pub arithmetic: Arithmetic,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses, the largest class index for
    /// softmax.
    pub target_bound: f64,
}

impl Algorithm for PhasedSgd {
    const NAME: &'static str = RECIPE;

    type Calibrated = NoiseMultiplier;
    type Run = PhasedRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(FloatKind::F64) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(NoiseMultiplier, PhasedRun), Error> {
        let noise_multiplier = noise_multiplier(RECIPE, budget, copies)?;
        Ok((NoiseMultiplier { noise_multiplier }, self.run(problem, noise_multiplier)?))
    }

    fn resolve(&self, problem: &Problem, calibrated: &NoiseMultiplier) -> Result<PhasedRun, Error> {
        self.run(problem, calibrated.noise_multiplier)
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        problem.setting.assumptions_in(self.declared_order)
    }

    fn lattice(&self, problem: &Problem, calibrated: &NoiseMultiplier) -> Result<ReleaseLattice, Error> {
        self.resolve(problem, calibrated)?.lattice()
    }

    fn work(&self, problem: &Problem, _: &Self::Calibrated) -> u64 {
        RELEASE.saturating_add(problem.n)
    }
}

impl PhasedSgd {
    /// Creates the recipe with the theorem's step size, over the ball of this radius.
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

    fn inputs(&self) -> Inputs {
        let Self { lambda, radius, distance, step, restarts, declared_order, .. } = *self;
        Inputs { recipe: RECIPE, lambda, radius, distance, step, restarts, declared_order }
    }

    /// Returns the run: the phases with their sensitivities.
    fn run(&self, problem: &Problem, noise_multiplier: f64) -> Result<PhasedRun, Error> {
        let inputs = self.inputs();
        inputs.check()?;
        let (constants, gradient_difference) = inputs.constants(problem, Some(self.radius))?;
        if !constants.smoothness.is_finite() {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "gradient steps on a loss with a kink drive two runs apart: use phased-erm, or a smooth loss",
            });
        }
        let rho = 1.0 / positive("noise multiplier", noise_multiplier)?;
        let mut phases = inputs.phases(problem, rho, Reach::Ball)?;
        // A phase of one record would release its start again.
        phases.retain(|phase| phase.records > 1);
        if phases.is_empty() {
            return Err(Error::Count { name: "number of records", value: problem.n, range: "4 or more in each stage" });
        }
        if !phases.iter().all(|phase| phase.step * constants.smoothness <= 2.0) {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "steps above 2/smoothness drive two runs apart: choose a step size of at most 8/smoothness",
            });
        }
        let unit = f64::EPSILON / 2.0;
        let sensitivity = |phase: &Phase| -> Result<f64, Error> {
            let growth = Growth {
                n: phase.records - 1,
                batch_size: 1,
                passes: 1,
                schedule: Schedule::Constant { step: phase.step },
                averaging: Averaging::Uniform,
                order: OrderPolicy::Fixed,
                divisor: Divisor::Nominal,
                smoothness: constants.smoothness,
                strong_convexity: self.lambda,
                gradient_difference,
                radius: Some(self.radius),
                rounding: Some(Rounding {
                    unit_roundoff: unit,
                    dim: problem.parameters(),
                    outputs: u64::from(self.loss.outputs()),
                    data_lipschitz: constants.data_lipschitz,
                    arithmetic: self.arithmetic,
                }),
            };
            let moved = growth.bound_from(self.radius)?;
            // The average of all points, the start included; its two products and its sum are rounded.
            let start_weight = 1.0 / phase.records as f64;
            Ok(moved * (1.0 - start_weight) * (1.0 + 8.0 * unit) + 2.0 * 4.0 * unit * self.radius)
        };
        let sensitivities = phases.iter().map(sensitivity).collect::<Result<_, _>>()?;
        let method = Method::Descent(self.arithmetic);
        Ok(PhasedRun { inputs, problem: *problem, phases, sensitivities, noise_multiplier, method })
    }
}
