//! ADMM by objective perturbation: the x of each iteration is the certified minimiser of a perturbed objective around earlier
//! releases.
//!
//! ```text
//! T times:   b ~ N(0, σ² I)
//!            x <- argmin Σ ℓ_i(x) + n ( (λ/2)‖x‖² + ⟨y, x⟩ + (ρ/2)‖x - z‖² ) + ⟨b, x⟩,   approximated, + a little noise
//!            z <- prox_{P/ρ}( x + y/ρ )
//!            y <- y + ρ (x - z)
//! ```
//! The objective of x is that of [`obj_pert`](crate::recipes::obj_pert) with `Λ = n (λ + ρ)` around the centre
//! `c = (ρz - y)/(λ + ρ)`, projected onto a ball so large that the projection changes nothing in practice. The penalty acts on
//! z by its proximal map, so that the released model is sparse.
//!
//! # Privacy
//! Given the earlier releases, c is public, and an iteration is one release by objective perturbation, whose bound holds for
//! every centre. The event is the T-fold composition of that release (of the exact minimiser, and of the noise that hides the
//! solver's error), each charged for both directions at once; noise is calibrated for the composition. Composed releases are
//! expensive for small Λ, so the recommended ρ keeps `Λ >= 3/ε'`, ε' the part of an iteration. z and y are functions of the
//! released x and cost nothing.
//!
//! The published algorithm perturbs the objective for pure ε in every iteration (Chaudhuri et al. 2011), without the noise
//! that an approximate minimiser needs for privacy: see [`as_published`].
//!
//! # References
//! Chen 2020 (dissertation, University of Georgia) compares it as ADMM-objP; Zhang, Khalili, Liu, "Improving the privacy
//! and accuracy of ADMM-based distributed algorithms", ICML 2018, for perturbed subproblems.

pub mod as_published;
mod run;

#[cfg(test)]
mod tests;

pub use run::{AdmmObjPertRun, AdmmPerturbation};

use dp_accountant::certificate::NoiseMode;
use dp_losses::penalty::Layout;
use dp_losses::{LossKind, Penalty, ProximalMap};

use super::algorithm::Algorithm;
use super::obj_pert::ObjPert;
use super::problem::{Problem, Setting};
use super::recipe::Budget;
use crate::engine::AdmmOutput;
use crate::error::{Error, non_negative};
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::recipes::bolt_on::OutputNoise;
use crate::recipes::linear::size;

const RECIPE: &str = "admm-obj-pert";

/// The default number of iterations.
pub const ITERATIONS: u64 = 3;

/// A recipe of ADMM by objective perturbation: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_losses::{LossKind, Penalty};
/// use dp_optim::recipes::{AdmmObjPert, Budget, OutputNoise, Planned, Recipe};
///
/// let budget = Budget::new(1.0, 1e-6)?;
/// let l1 = Penalty::L1 { lambda: 0.001 };
/// let recipe = AdmmObjPert { law: OutputNoise::Gaussian, ..AdmmObjPert::new(LossKind::Logistic, l1) };
/// let plan = recipe.plan::<ZeroOut>(10_000, 5, budget)?; // before any data
/// assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.99);
/// // Three releases, each with about √3 times the noise of one.
/// let one = AdmmObjPert { iterations: 1, ..recipe }.plan::<ZeroOut>(10_000, 5, budget)?;
/// let ratio = plan.run().noise().coordinate_std_dev(5) / one.run().noise().coordinate_std_dev(5);
/// assert!(ratio > 1.5 && ratio < 2.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct AdmmObjPert {
    /// The loss: logistic, softmax, Huber's support vector machine or Huber's regression.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖x‖²` of the mean loss.
    pub lambda: f64,
    /// P: the penalty of the mean loss.
    pub penalty: Penalty,
    /// True if the last feature is an intercept, which no penalty counts or shrinks.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "core::ops::Not::not"))]
    pub intercept: bool,
    /// T: number of iterations.
    pub iterations: u64,
    /// ρ; `None` is the recommended value.
    pub rho: Option<f64>,
    /// The copy of the model that is released at the end; the other one may be published too.
    #[cfg_attr(feature = "serde", serde(default))]
    pub output: AdmmOutput,
    /// The law of the noise in the objective.
    #[cfg_attr(feature = "serde", serde(default))]
    pub law: OutputNoise,
    /// The noise mode, of the objectives and of the releases.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

impl Algorithm for AdmmObjPert {
    const NAME: &'static str = RECIPE;
    const MOST_ROW_NORM: f64 = f64::MAX;

    type Calibrated = AdmmPerturbation;
    type Run = AdmmObjPertRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(FloatKind::F64) }
    }

    fn calibrate(
        &self,
        problem: &Problem,
        budget: Budget,
        copies: u64,
    ) -> Result<(AdmmPerturbation, AdmmObjPertRun), Error> {
        let run = AdmmObjPertRun::calibrated(self, problem, budget, copies)?;
        Ok((run.found(), run))
    }

    fn resolve(&self, problem: &Problem, found: &AdmmPerturbation) -> Result<AdmmObjPertRun, Error> {
        AdmmObjPertRun::new(self, problem, *found)
    }

    fn lattice(&self, _: &Problem, found: &AdmmPerturbation) -> Result<ReleaseLattice, Error> {
        match self.output {
            // The output of the penalty's proximal map.
            AdmmOutput::Sparse => Ok(ReleaseLattice::ANYWHERE),
            AdmmOutput::Smooth => Ok(ReleaseLattice::on_grid(found.release.grid()?.step())),
        }
    }
}

impl AdmmObjPert {
    /// Creates a recipe of three iterations with the recommended ρ, which releases the sparse copy.
    pub fn new(loss: LossKind, penalty: Penalty) -> Self {
        Self {
            loss,
            lambda: 0.0,
            penalty,
            intercept: false,
            iterations: ITERATIONS,
            rho: None,
            output: AdmmOutput::Sparse,
            law: OutputNoise::Least,
            noise_mode: NoiseMode::Exact,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Returns the recipe of each iteration's objective, without its numbers.
    fn each(&self) -> ObjPert {
        ObjPert {
            law: self.law,
            noise_mode: self.noise_mode,
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            ..ObjPert::new(self.loss)
        }
    }

    fn check(&self) -> Result<(), Error> {
        self.each().check()?;
        non_negative("lambda", self.lambda)?;
        if !(1..=MOST_ITERATIONS).contains(&self.iterations) {
            return Err(Error::Count { name: "steps", value: self.iterations, range: "1 to 10000" });
        }
        Ok(())
    }

    /// Returns the penalty's proximal map for this ρ.
    fn map(&self, dim: u64, rho: f64) -> Result<ProximalMap, Error> {
        let layout = Layout {
            features: size("dimension", dim)?,
            outputs: self.loss.outputs() as usize,
            intercept: self.intercept,
        };
        self.penalty.check_layout(layout)?;
        if !(1e-12..=1e12).contains(&rho) {
            return Err(Error::OutOfRange { name: "rho", value: rho, range: "[1e-12, 1e12]" });
        }
        Ok(ProximalMap::new(self.penalty.clone(), layout, 1.0 / rho)?)
    }
}

/// Maximum number of iterations: each costs a minimisation.
const MOST_ITERATIONS: u64 = 10_000;
