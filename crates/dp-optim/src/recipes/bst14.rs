//! Noisy stochastic gradient descent on random batches, after Bassily, Smith and Thakurta (BST14), with passes, batches
//! and strong convexity as the Bolt-on paper extended it.
//!
//! ```text
//! T = ⌊kn/b⌋ steps, each on b random records:
//!     w <- Π_R( w - η_t ( Σ_{i in batch} ∇f_i(w) + N(0, σ² I) ) )
//!     η_t = 2R / (Γ √t) convex,   1 / (b λ t) strongly convex,   Γ² = d σ² + b² L²
//! ```
//! `Γ²` bounds the expected squared norm of the noisy sum, `f_i` is the loss with its regulariser and `L` its Lipschitz
//! constant within the ball. This update and its step sizes are those of the papers. The noise is the least that the
//! accountant certifies for the run; the papers' noise, from an older composition theorem, is in [`as_published`].
//!
//! # References
//! Bassily, Smith, Thakurta, "Private empirical risk minimization: efficient algorithms and tight error bounds", FOCS 2014,
//! arXiv 1405.7085, Algorithm 1; Wu et al., "Bolt-on differential privacy for scalable stochastic gradient descent-based
//! analytics", SIGMOD 2017, arXiv 1606.04722, Algorithms 4 and 5. The step size is that of Shamir and Zhang, ICML 2013,
//! for the last iterate.

pub mod as_published;

#[cfg(test)]
mod tests;

pub use super::bolt_on::Convexity;

use dp_accountant::certificate::NoiseMode;
use dp_losses::{L2, LossKind};

use super::algorithm::Algorithm;
use super::noise_scale::StdDev;
use super::noisy_run::{Batching, Length, NoisyRun, Parts, Sampling, StepsRun};
use super::problem::{Problem, Setting};
use super::recipe::Budget;
use crate::averaging::Averaging;
use crate::descent::Descent;
use crate::engine::{BatchLaw, Summation};
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::schedule::Schedule;
use as_published::{Bst14Constants, Bst14Input, Inversion};

const RECIPE: &str = "bst14";

/// The calibration of the noise to the budget.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
pub enum Bst14Calibration {
    /// The least noise with which the accountant certifies the run.
    #[default]
    Accountant,
    /// The [published](as_published) noise. The guarantee is the accountant's, not the papers' claim; if it exceeds the
    /// budget, the plan is refused.
    AsPublished {
        /// ι: the papers' factor on the variance, 1 for the logistic loss.
        iota: f64,
    },
}

/// The recipe of BST14: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Bst14, Bst14Calibration, Budget, Planned, Recipe, Sampling};
///
/// let recipe = Bst14 { batch_size: 50, ..Bst14::convex(LossKind::Logistic, 10.0) };
/// let budget = Budget::new(0.2, 1.0 / 60_000f64.powi(2))?;
/// let plan = recipe.plan::<ReplaceOne>(60_000, 50, budget)?; // before any data
/// let calibration = Bst14Calibration::AsPublished { iota: 1.0 };
/// let published = Bst14 { calibration, sampling: Sampling::FixedSize, ..recipe };
/// let published = published.plan::<ReplaceOne>(60_000, 50, budget)?;
/// // The published noise is twelve times the necessary one, and its guarantee is stronger than the paper's.
/// assert!(published.run().std_dev() / plan.run().std_dev() > 12.0 && published.reached().epsilon < 0.2 / 4.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Bst14 {
    /// The algorithm, which determines the step sizes.
    pub algorithm: Convexity,
    /// The loss; it need not be smooth.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`; positive for the strongly convex algorithm.
    pub lambda: f64,
    /// R: radius of the ball onto which every iterate is projected.
    pub radius: f64,
    /// k: passes, `⌊kn/b⌋` steps in all.
    pub passes: u64,
    /// b: records in a batch, on average under [`Sampling::Poisson`].
    pub batch_size: u64,
    /// The selection of the records of a step. The papers draw batches of fixed size.
    pub sampling: Sampling,
    /// The calibration of the noise to the budget.
    pub calibration: Bst14Calibration,
    /// The released combination of the iterates; the last one in the papers.
    pub averaging: Averaging,
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

impl Algorithm for Bst14 {
    const NAME: &'static str = RECIPE;

    type Calibrated = StdDev;
    type Run = StepsRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, float, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(float) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(StdDev, StepsRun), Error> {
        let run = self.run(problem)?;
        let std_dev = match self.calibration {
            Bst14Calibration::Accountant => run.least_std_dev(budget, copies)?,
            Bst14Calibration::AsPublished { .. } if copies != 1 => {
                let why = "the published noise is that of one release: calibrate by the accountant for several";
                return Err(Error::NotProved { recipe: RECIPE, why });
            }
            Bst14Calibration::AsPublished { iota } => {
                let input = Bst14Input {
                    n: problem.n,
                    passes: self.passes,
                    batch_size: self.batch_size.min(problem.n),
                    dim: run.parameters(),
                    epsilon: budget.epsilon,
                    delta: budget.delta,
                    lipschitz: self.lipschitz(problem)?,
                    iota,
                };
                Bst14Constants::new(&input, Inversion::Linear)?.std_dev()
            }
        };
        Ok((StdDev { std_dev }, self.with_noise(problem, run, std_dev)?))
    }

    fn resolve(&self, problem: &Problem, calibrated: &StdDev) -> Result<StepsRun, Error> {
        self.with_noise(problem, self.run(problem)?, calibrated.std_dev)
    }

    fn lattice(&self, _: &Problem, _: &StdDev) -> Result<ReleaseLattice, Error> {
        Ok(ReleaseLattice::ANYWHERE.within(Some(self.radius)).in_precision(self.float))
    }
}

impl Bst14 {
    /// Creates the convex algorithm in a ball of this radius: ten passes in batches of 50, as in the papers' experiments.
    pub fn convex(loss: LossKind, radius: f64) -> Self {
        Self {
            algorithm: Convexity::Convex,
            loss,
            lambda: 0.0,
            radius,
            passes: 10,
            batch_size: 50,
            sampling: Sampling::Poisson,
            calibration: Bst14Calibration::Accountant,
            averaging: Averaging::Last,
            noise_mode: NoiseMode::Exact,
            float: FloatKind::F64,
            summation: Summation::Compensated,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Creates the strongly convex algorithm in the ball of radius `1/λ`, which contains the minimiser of a loss of slope 1.
    pub fn strongly_convex(loss: LossKind, lambda: f64) -> Self {
        Self { algorithm: Convexity::StronglyConvex, lambda, ..Self::convex(loss, 1.0 / lambda) }
    }

    fn run(&self, problem: &Problem) -> Result<NoisyRun, Error> {
        if self.algorithm == Convexity::StronglyConvex && !(self.lambda > 0.0) {
            let range = "(0, inf) when strongly convex";
            return Err(Error::OutOfRange { name: "lambda", value: self.lambda, range });
        }
        if self.sampling == Sampling::Passes {
            let why = "batches are drawn, not cut from passes: choose Poisson batches or a fixed size";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
        if self.passes == 0 || self.passes >= 1 << 24 {
            return Err(Error::Count { name: "passes", value: self.passes, range: "1 to 2^24" });
        }
        let n = problem.n;
        let steps = self.passes.saturating_mul(n) / self.batch_size.clamp(1, n);
        NoisyRun::new(Parts {
            recipe: RECIPE,
            problem,
            clipping: None,
            radius: Some(self.radius),
            lambda: self.lambda,
            sampling: self.sampling,
            batch_size: self.batch_size,
            length: Length::Steps(steps),
            descent: Descent::Plain,
            penalty: None,
            intercept: false,
            declared_order: false,
            summation: self.summation,
        })
    }

    fn with_noise(&self, problem: &Problem, run: NoisyRun, std_dev: f64) -> Result<StepsRun, Error> {
        let schedule = self.schedule(problem, &run, std_dev)?;
        StepsRun::new(run, &schedule, &self.averaging, std_dev, self.noise_mode)
    }

    /// Returns L, the Lipschitz constant of the regularised loss within the ball.
    pub(crate) fn lipschitz(&self, problem: &Problem) -> Result<f64, Error> {
        let constants = self.loss.constants(L2::new(self.lambda)?, &problem.domain(Some(self.radius))?);
        Ok(constants.data_lipschitz + self.lambda * self.radius)
    }

    /// Returns the step sizes on the mean gradient, which the engine forms by dividing the sum by `D`: `2RD/(Γ√t)` or
    /// `1/(λt)`.
    fn schedule(&self, problem: &Problem, run: &NoisyRun, std_dev: f64) -> Result<Schedule, Error> {
        match self.algorithm {
            Convexity::Convex => {
                let size = run.divisor;
                // E[B²] for a Poisson batch is at most D² + D.
                let squared_size = match run.batching {
                    Batching::Drawn(BatchLaw::Poisson { .. }) => size * size + size,
                    _ => size * size,
                };
                let lipschitz = positive("Lipschitz constant", self.lipschitz(problem)?)?;
                let squared = run.parameters() as f64 * std_dev * std_dev + squared_size * lipschitz * lipschitz;
                Ok(Schedule::InverseSqrt { step: 2.0 * self.radius * size / squared.sqrt() })
            }
            Convexity::StronglyConvex => {
                // No cap: min(1/λ, 1/(λt)) is 1/(λt).
                Ok(Schedule::StronglyConvex { smoothness: self.lambda, strong_convexity: self.lambda })
            }
        }
    }
}
