//! Phased empirical risk minimisation: each phase minimises a regularised risk, so that losses need not be smooth.
//!
//! # Formula
//! Phase `i` minimises over its own `n_i` records, around the last released point `v = Π_R(w_{i-1})`,
//! ```text
//! F_i(w) = (1/n_i) Σ ℓ(⟨w, x_j⟩, y_j) + (λ/2) ‖w‖² + (λ_i/2) ‖w - v‖²,      λ_i = 2/(η_i n_i)
//! w_i = ŵ_i + N(0, σ_i² I),    ‖ŵ_i - argmin F_i‖ <= τ_i,    σ_i = Δ_i / ρ,    Δ_i = G/((λ + λ_i) n_i) + 2τ_i
//! ```
//! The minimiser is over the whole space; the released points are projected onto the ball, which costs nothing. If a
//! `(λ + λ_i)`-strongly convex function changes by `(ℓ_j - ℓ_j')/n_i`, its minimiser moves by at most `G/((λ + λ_i) n_i)`,
//! with `G` the largest difference of the two losses' subgradients: at the minimiser of one function the other has a
//! subgradient of norm at most `G/n_i`. The distance of `ŵ_i` from the minimiser is [certified][dual_ascent] for every data
//! set, not in expectation, so that no failure probability is added to delta.
//!
//! # References
//! Feldman, Koren, Talwar, "Private stochastic convex optimization: optimal rates in linear time", STOC 2020, arXiv
//! 2005.04763, section 4.2; there `τ_i = Lη_i`, so that `Δ_i` is three times the minimisers' distance `Lη_i`
//! ([`PhasedErm::slack`] 2), here 1.01 times.
//!
//! [dual_ascent]: crate::engine::dual_ascent

#[cfg(test)]
mod tests;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::LossKind;

use crate::engine::dual_ascent::{Shape, Terms};
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::phases::{Inputs, Method, NoiseMultiplier, Objective, PhasedRun, Reach, noise_multiplier};
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;

const RECIPE: &str = "phased-erm";

/// A Phased-ERM recipe: public parameters only.
///
/// For losses with bounded slopes: logistic, Huber's two losses, and the losses with kinks (hinge and absolute). Each phase's
/// records are read many times; the source is read once, and half of it is held in memory.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, PhasedErm, Recipe};
///
/// let recipe = PhasedErm { step: Some(0.1), ..PhasedErm::new(LossKind::Hinge, 5.0) };
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = recipe.plan::<ReplaceOne>(10_000, 5, budget)?; // before any data
/// // L η_1 = 0.025, plus a hundredth for the distance from the minimiser.
/// assert!((plan.run().sensitivities()[0] - 1.01 * 0.025).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PhasedErm {
    /// The loss, with bounded slopes.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²` of the objective itself; may be 0.
    pub lambda: f64,
    /// R: every phase's release is projected onto the ball of this radius.
    pub radius: f64,
    /// D: bound on the distance from the origin to the best point, used for the step size only; `None` is the radius.
    pub distance: Option<f64>,
    /// η: phase `i` has `λ_i = 2 · 4^i/(η n_i)`; `None` is [`PhasedProblem::step`](crate::recipes::phases::PhasedProblem::step).
    pub step: Option<f64>,
    /// Relative increase of the sensitivity over the minimisers' distance due to the tolerances, unless double precision
    /// requires more. A larger value needs fewer rounds and more noise.
    pub slack: f64,
    /// Run in stages that use the regulariser's strong convexity ([`Reduction`](crate::recipes::phases::Reduction)); needs λ >
    /// 0.
    pub restarts: bool,
    /// True if rows are read in the source's order, which the curator declares independent of their values; otherwise the
    /// order is random under a secret key.
    pub declared_order: bool,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

impl Algorithm for PhasedErm {
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
}

impl PhasedErm {
    /// Creates the recipe with the theorem's step size and slack 0.01, over the ball of this radius.
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

    fn inputs(&self) -> Inputs {
        let Self { lambda, radius, distance, step, restarts, declared_order, .. } = *self;
        Inputs { recipe: RECIPE, lambda, radius, distance, step, restarts, declared_order }
    }

    /// Returns the run: the phases with their objectives and sensitivities.
    fn run(&self, problem: &Problem, noise_multiplier: f64) -> Result<PhasedRun, Error> {
        let inputs = self.inputs();
        inputs.check()?;
        positive("slack", self.slack)?;
        let shape = Shape::of(self.loss, self.target_bound, RECIPE)?;
        let rho = 1.0 / positive("noise multiplier", noise_multiplier)?;
        let phases = inputs.phases(problem, rho, Reach::Anywhere)?;
        if phases.is_empty() {
            return Err(Error::Count { name: "number of records", value: problem.n, range: "2 or more in each stage" });
        }
        let mut objectives = Vec::with_capacity(phases.len());
        let mut sensitivities = Vec::with_capacity(phases.len());
        for phase in &phases {
            let records = phase.records as f64;
            let own = positive("strong convexity of a phase", 2.0 / (phase.step * records))?;
            let modulus = own + self.lambda;
            // λ‖w* - v‖ is at most the data's gradient at w*; and λ/2 ‖w* - v‖² is at most the risk at v, which is at most the
            // loss at 0 plus the increase that R allows.
            let by_slope = self.row_norm / modulus;
            let by_value = (2.0 * (shape.at_zero + self.row_norm * self.radius) / modulus).sqrt();
            let reach = by_slope.min(by_value) * (1.0 + 1e-12);
            let (_, gradient_difference) = inputs.constants(problem, Some((self.radius + reach) * (1.0 + 1e-12)))?;
            let apart = gradient_difference / (modulus * records) * (1.0 + 8.0 * f64::EPSILON);
            let terms = Terms {
                n: phase.records,
                dim: problem.dim,
                modulus,
                row_norm: self.row_norm,
                slopes: shape.slopes,
                offset: shape.offset,
                centre_norm: self.radius * (1.0 + 1e-12),
                reach,
            };
            let tolerance = (0.5 * self.slack * apart).max(terms.least_tolerance());
            let certificate = terms.certificate(tolerance)?;
            objectives.push(Objective { modulus, centre: own / modulus, certificate });
            sensitivities.push((apart + 2.0 * tolerance) * (1.0 + 4.0 * f64::EPSILON));
        }
        let method = Method::Minimisation(objectives);
        Ok(PhasedRun { inputs, problem: *problem, phases, sensitivities, noise_multiplier, method })
    }
}
