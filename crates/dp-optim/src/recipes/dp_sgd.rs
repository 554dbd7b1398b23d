//! DP-SGD for linear models: each step sums the clipped gradients of a random batch (dp-gd: of all records), and releases the sum
//! with Gaussian noise.
//!
//! ```text
//! for t in 1..=T:
//!     B_t   each record by itself with probability q        (or a random set of fixed size, or a piece of a pass)
//!     w <- Π_R( (1 - η_t λ) w - (η_t / qn) ( Σ_{i in B_t} clip_C ∇ℓ_i(w) + N(0, σ² I) ) )
//! ```
//! The size of a Poisson batch is secret: the sum is divided by its mean `qn`, and an empty batch makes a step like any other.
//! The gradient of a linear model is a multiple of the row, so that clipping is one multiplication per example; losses with
//! bounded gradients need no clipping.
//!
//! All computations on the noisy sum are post-processing: momentum, [Adam](adam), proximal maps of a [penalty](DpSgd::penalty)
//! and [linearised ADMM](admm) have the same event and the same noise.
//!
//! # References
//! Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang, "Deep learning with differential privacy", CCS 2016, Algorithm
//! 1; Mironov, Talwar, Zhang, "Rényi differential privacy of the sampled Gaussian mechanism", 2019, arXiv 1908.10530. The
//! noise is calibrated by the tightest bound that the accountant has for the run.

pub mod adam;
pub mod admm;
pub mod consensus;
pub(super) mod defaults;

#[cfg(test)]
mod tests;

pub use super::noisy_run::Sampling;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::{LossKind, Penalty};
use dp_mechanisms::clip::ClippingNorm;

use super::algorithm::Algorithm;
use super::noise_scale::StdDev;
use super::noisy_run::{Length, NoisyRun, Parts, StepsRun};
use super::problem::{Problem, Setting};
use super::recipe::Budget;
use crate::averaging::Averaging;
use crate::descent::Descent;
use crate::engine::{AdmmOutput, Summation};
use crate::error::Error;
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::schedule::Schedule;

const RECIPE: &str = "dp-sgd";

/// The recipe of DP-SGD: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{ReplaceOne, ZeroOut};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, DpSgd, Planned, Recipe};
///
/// let recipe = DpSgd { batch_size: 500, passes: 10, ..DpSgd::new(LossKind::Logistic) };
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = recipe.plan::<ZeroOut>(100_000, 20, budget)?; // before any data
/// // A record's gradient has norm at most 1, and the noise on each of 2000 sums is 1.2 times that.
/// assert!((plan.run().sensitivity() - 1.0).abs() < 1e-7 && (plan.run().std_dev() - 1.2022).abs() < 1e-3);
/// assert!(plan.reached().epsilon <= 1.0);
/// // A replacement is a removal and an addition.
/// let replaced = recipe.plan::<ReplaceOne>(100_000, 20, budget)?;
/// assert!(replaced.run().std_dev() / plan.run().std_dev() < 1.85);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DpSgd {
    /// The loss; it need be neither smooth nor convex.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`, which is public and carries no noise.
    pub lambda: f64,
    /// The selection of the records of a step.
    pub sampling: Sampling,
    /// b: records per batch, on average under [`Sampling::Poisson`]; capped at the number of records.
    pub batch_size: u64,
    /// Passes over the data: `⌈n/b⌉` steps each, also for drawn batches.
    pub passes: u64,
    /// T: number of steps, instead of passes, for drawn batches.
    pub steps: Option<u64>,
    /// The step sizes; `None` is the constant `1/√T`.
    pub schedule: Option<Schedule>,
    /// C: clipping norm of each record's gradient; `None` uses the loss's own bound, without clipping.
    pub clipping: Option<ClippingNorm>,
    /// R: radius of the ball onto which every iterate is projected.
    pub radius: Option<f64>,
    /// The released combination of the iterates. All iterates may be published.
    pub averaging: Averaging,
    /// The descent method, such as momentum, which costs no privacy; plain if a serialised recipe omits it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Descent::is_plain"))]
    pub descent: Descent,
    /// P: a penalty that makes the model sparse or simple. Its proximal map is applied after each step, or to the copy of
    /// [`Descent::Admm`]; it costs no privacy. A serialised recipe without this field has none.
    ///
    /// The last iterate is the output of the map, and is sparse. A mean of sparse iterates is not sparse, so the map is
    /// applied once more, with a step of `1/β`, the inverse smoothness of the loss and its regulariser (or the longest step of
    /// the run, if there is no smoothness or the penalty is not convex). With this step the map moves a weight as far as the
    /// penalty moves a minimiser where the curvature is largest; with the much shorter steps of the run, hardly any weight
    /// would be zero.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub penalty: Option<Penalty>,
    /// True if the last feature is an intercept, which no penalty counts or shrinks.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "core::ops::Not::not"))]
    pub intercept: bool,
    /// With [`Sampling::Passes`]: true if rows are read in the source's order, which the curator declares independent of their
    /// values; otherwise the order is random.
    pub declared_order: bool,
    /// The noise mode: [`Exact`](NoiseMode::Exact), or [`Rounded`](NoiseMode::Rounded), an idealisation that the certificate
    /// names.
    pub noise_mode: NoiseMode,
    /// The floating-point type of training. The noise allows for the rounding of either type.
    pub float: FloatKind,
    /// The summation of gradients; plain if a serialised recipe omits it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Summation::is_plain"))]
    pub summation: Summation,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

impl Algorithm for DpSgd {
    const NAME: &'static str = RECIPE;

    type Calibrated = StdDev;
    type Run = StepsRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, float, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(float) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(StdDev, StepsRun), Error> {
        let run = self.run(problem)?;
        let std_dev = run.least_std_dev(budget, copies)?;
        Ok((StdDev { std_dev }, self.with_noise(run, std_dev)?))
    }

    fn resolve(&self, problem: &Problem, calibrated: &StdDev) -> Result<StepsRun, Error> {
        self.with_noise(self.run(problem)?, calibrated.std_dev)
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        problem.setting.assumptions_in(self.declared_order && self.sampling == Sampling::Passes)
    }

    fn lattice(&self, _: &Problem, _: &StdDev) -> Result<ReleaseLattice, Error> {
        // The mean of iterates in a ball lies in it; the output of a penalty's map or a mean of copies may not.
        let in_ball = match self.descent {
            Descent::Plain
            | Descent::Accelerated { .. }
            | Descent::HeavyBall { .. }
            | Descent::Adam { .. }
            | Descent::AdamBc { .. }
            | Descent::Admm { output: AdmmOutput::Smooth, .. } => self.radius,
            Descent::Admm { output: AdmmOutput::Sparse, .. } | Descent::Consensus { .. } => None,
        };
        Ok(ReleaseLattice::ANYWHERE.within(in_ball).in_precision(self.float))
    }
}

impl DpSgd {
    /// Creates the usual recipe: twenty passes in Poisson batches of 256, the mean of the second half of the iterates.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: 0.0,
            sampling: Sampling::Poisson,
            batch_size: 256,
            passes: 20,
            steps: None,
            schedule: None,
            clipping: None,
            radius: None,
            averaging: Averaging::Last,
            descent: Descent::Plain,
            penalty: None,
            intercept: false,
            declared_order: false,
            noise_mode: NoiseMode::Exact,
            float: FloatKind::F64,
            summation: Summation::Compensated,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    fn run(&self, problem: &Problem) -> Result<NoisyRun, Error> {
        NoisyRun::new(Parts {
            recipe: RECIPE,
            problem,
            clipping: self.clipping,
            radius: self.radius,
            lambda: self.lambda,
            sampling: self.sampling,
            batch_size: self.batch_size,
            length: self.steps.map_or(Length::Passes(self.passes), Length::Steps),
            descent: self.descent,
            penalty: self.penalty.clone(),
            intercept: self.intercept,
            declared_order: self.declared_order,
            summation: self.summation,
        })
    }

    fn with_noise(&self, run: NoisyRun, std_dev: f64) -> Result<StepsRun, Error> {
        let schedule = self.schedule.clone().unwrap_or_else(|| Schedule::usual(run.updates()));
        StepsRun::new(run, &schedule, &self.averaging, std_dev, self.noise_mode)
    }
}
