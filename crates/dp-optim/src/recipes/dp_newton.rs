//! Newton's method with noisy Hessians: few steps, each on a released quadratic model of the objective.
//!
//! ```text
//! each step:   release  g = Σ a_i x_i,  H_t = Σ a'_i x_i x_iᵀ   (with one noise on all their numbers)
//!              H = mean of H_1 .. H_t
//!              w <- w - η_t (H₊ + (Λ + 0.3 σ_H √(d/t)) I)⁻¹ (g + Λ w)
//!
//! once:        release  M = Σ x xᵀ,  v = Σ x y                  (noisy moments, whose least squares is the start)
//!   each step: release  g = Σ a_i x_i
//!              w <- w - η_t (β M₊ + (Λ + 0.3 β σ_M √d) I)⁻¹ (g + Λ w)
//! ```
//! `H₊` is H with its negative eigenvalues set to 0. The Hessians of all steps so far are averaged: they differ by less than
//! their noise, and a mean of `t` has `1/√t` of the noise. The Hessians of the first steps are the largest, so that steps tend
//! to be too short rather than too long. With the full Hessian no step size has to be tuned, and directions with little
//! curvature converge as fast as others. `β M` is an upper bound of the Hessian at every point, so that, apart from noise,
//! such a step never overshoots.
//!
//! # Privacy
//! A record's part of `g` has norm `a ‖x‖` and its part of `H` Frobenius norm `a' ‖x‖²`, both from *one* slope `a` in [0, 1].
//! For the logistic loss `a' = a (1 - a)`: where one part is large the other is small. So both are released as one vector
//! `(g, ω H)`, whose [sensitivity](Joint) is that of the gradient alone as long as `ω² X² <= (11 + 5√5)/2`, about 11.09: up to
//! a [share](DpNewton::share) of 0.409 the Hessian costs nothing. All releases of a training are one composition of Gaussian
//! mechanisms, which costs the same as one Gaussian; the point of the next sums is computed from released values. Sums are
//! exact ([`ExactSum`](dp_mechanisms::clip::ExactSum), [`MomentSum`](dp_mechanisms::clip::MomentSum)), so that rounding does
//! not affect the sensitivity.
//!
//! # Steps and noise
//! With `T` steps the noise of one is `√T` times that of a single release. `η_t = min(1, 2/t)` compensates for it: near the
//! minimum the last iterate is a weighted mean of `T` noisy minimisers, whose variance is at most a third above that of a
//! single release of a gradient.
//!
//! # References
//! Ganesh, Haghifam, Steinke, Guha Thakurta, "Faster differentially private convex optimization via second-order methods",
//! NeurIPS 2023: noisy Newton steps, the clipping of eigenvalues and upper bounds of the Hessian. The joint release of
//! gradient and curvature at the gradient's cost, and the bounds under replacement, are derived here ([`Joint`]).

mod joint;
mod model;
mod run;
mod sums;

#[cfg(test)]
mod tests;

pub use joint::Joint;
pub use run::{NewtonNoise, NewtonRun};

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;
use dp_losses::LossKind;
use joint::Margin;

use crate::derivation::RELEASE;
use crate::error::{Error, non_negative, positive};
use crate::recipes::algorithm::Algorithm;
use crate::recipes::noisy_moments::stage::Stage;
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;

const RECIPE: &str = "dp-newton";
/// Maximum number of features: the eigenvectors of their Hessian take half a gigabyte.
const MOST_FEATURES: u64 = 8192;
const MOST_STEPS: u64 = 1 << 16;

/// The source of the curvature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Curvature {
    /// The Hessian at each step's point, released with the gradient.
    #[default]
    EachStep,
    /// Second moments times the loss's largest curvature, released once: one pass over `d²` numbers instead of one in each
    /// step.
    Once,
}

/// The recipe of Newton's method with noisy Hessians: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ZeroOut, gaussian};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, DpNewton, Planned, Recipe};
///
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let recipe = DpNewton { steps: 4, ..DpNewton::new(LossKind::Logistic) };
/// let plan = recipe.plan::<ZeroOut>(10_000, 5, Budget { epsilon, delta })?; // before any data
/// // Four gradients at twice the noise of one; the Hessians cost nothing.
/// let one = gaussian::noise_multiplier(epsilon, delta)?.get();
/// assert!((plan.run().std_dev() / (2.0 * one) - 1.0).abs() < 1e-4);
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DpNewton {
    /// The loss: logistic, or Huber's support vector machine.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²` of the mean loss, which is public and carries no noise; `None` uses
    /// `Λ = 0.3 n q^{3/2}`, with `q` the norm of the noise of a single release of the mean gradient.
    pub lambda: Option<f64>,
    /// T: number of steps, each a pass over the records.
    pub steps: u64,
    /// The source of the curvature.
    pub curvature: Curvature,
    /// f in (0, 1): the curvature's share of the squared sensitivity, or of the cost.
    ///
    /// In each step `ω` is such that the curvature alone would have `f/(1 - f)` times the squared sensitivity of the gradient;
    /// for the logistic loss this costs nothing up to 0.409. If released once, the moments get this share of the cost.
    pub share: f64,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1.
    pub target_bound: f64,
}

impl Algorithm for DpNewton {
    const NAME: &'static str = RECIPE;

    type Calibrated = NewtonNoise;
    type Run = NewtonRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: None }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(NewtonNoise, NewtonRun), Error> {
        let run = NewtonRun::calibrated(self, problem, budget, copies)?;
        Ok((run.noise(), run))
    }

    fn resolve(&self, problem: &Problem, noise: &NewtonNoise) -> Result<NewtonRun, Error> {
        NewtonRun::resolved(self, problem, *noise)
    }

    fn work(&self, problem: &Problem, _: &Self::Calibrated) -> u64 {
        RELEASE.saturating_add(problem.dim.saturating_mul(problem.dim).saturating_mul(8))
    }
}

impl DpNewton {
    /// Creates a recipe with the Hessian at each step's point.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: None,
            steps: 12,
            curvature: Curvature::EachStep,
            share: 0.4,
            noise_mode: NoiseMode::Exact,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Creates a recipe with an upper bound of the Hessian, released once.
    pub fn with_one_curvature(loss: LossKind) -> Self {
        Self { curvature: Curvature::Once, share: 0.2, steps: 6, ..Self::new(loss) }
    }

    /// Returns the sensitivity of the joint sums of a step, for the curvature at each step's point.
    ///
    /// # Errors
    /// Parameters outside their range, or a loss for which the bound is not derived.
    pub fn joint(&self) -> Result<Joint, Error> {
        self.check(&self.problem(1, 1, AdjacencyKind::ZeroOut)?)
    }

    fn check(&self, problem: &Problem) -> Result<Joint, Error> {
        let dim = problem.dim;
        if !(1..=MOST_FEATURES).contains(&dim) {
            return Err(Error::Count { name: "dimension", value: dim, range: "1 to 8192, for matrices of its square" });
        }
        if !(1..=MOST_STEPS).contains(&self.steps) {
            return Err(Error::Count { name: "steps", value: self.steps, range: "1 to 2^16" });
        }
        if !(self.row_norm > 1e-100 && self.row_norm <= 1.0) {
            return Err(Error::OutOfRange { name: "row norm", value: self.row_norm, range: "(1e-100, 1]" });
        }
        if !(positive("target bound", self.target_bound)? <= 1.0) {
            return Err(Error::OutOfRange { name: "target bound", value: self.target_bound, range: "(0, 1]" });
        }
        if let Some(lambda) = self.lambda {
            non_negative("lambda", lambda)?;
        }
        if !(self.share >= 1e-6 && self.share <= 1.0 - 1e-6) {
            return Err(Error::OutOfRange { name: "share of the curvature", value: self.share, range: "(0, 1)" });
        }
        Ok(Joint::new(Margin::of(self.loss)?, self.row_norm, self.share))
    }

    /// Returns the stage of the moments from which the upper bound of the Hessian is computed.
    fn stage(&self, n: u64, dim: u64) -> Stage {
        Stage { loss: self.loss, n, dim, row_norm: self.row_norm, target_bound: self.target_bound }
    }
}
