//! DP-FTRL: gradient descent on records in a known order, with noise correlated over the steps.
//!
//! ```text
//! release  Cf G + Z  row by row,   G_t = Σ_{i in batch t} clip_C ∇ℓ_i(w_{t-1}),   Z independent, N(0, σ² I)
//! w_t = -(η/b) (prefix sum of all that was released) = -(η/b) (G_1 + ... + G_t + (B Z)_t),    B = A Cf⁻¹
//! ```
//! A linear model is a function of the *sum* of its gradients so far. Independent noise in each of `T` gradients grows like
//! `√T` in their sum; correlated noise, partly cancelled in later steps, grows like `ln T`. So batches need not be drawn at
//! random: the guarantee uses no amplification.
//!
//! # Privacy
//! Each record takes part once in a pass, in the batch that its *position* determines, whatever its values. Positions may be
//! known to the adversary, and the order is the curator's (a stream in time) or random, the same in every pass. In `k` passes
//! over batches of `b` a record is in `k` steps, `⌈n/b⌉` apart ([`Participation`]), and moves `Cf G` by at most the [factor's
//! sensitivity](dp_mechanisms::continual::FactorSensitivity) times the sensitivity of one sum: C, or the loss's own bound,
//! under zero-out; twice that (or the loss's bound on differences) under replace-one. The whole training, every iterate
//! included, is one Gaussian release of that sensitivity, since inputs may depend on earlier releases
//! ([`continual`](dp_mechanisms::continual)).
//!
//! The number of records is public, as in all recipes with batches of fixed size: an added record would move all later ones to
//! other batches. Under zero-out a record is replaced by a null record in its place.
//!
//! # The factor
//! The first `bands` diagonals of the square root of the matrix of prefix sums. If a record takes part more than once, fewer
//! bands have less sensitivity and more error; by default [`bands`](DpFtrl::bands) minimises their product, computed from
//! public numbers.
//!
//! # References
//! Kairouz, McMahan, Song, Thakkar, Thakurta, Xu, "Practical and private (deep) learning without sampling or shuffling", ICML
//! 2021, arXiv 2103.00039 (DP-FTRL, by trees). Denisov, McMahan, Rush, Smith, Thakurta, NeurIPS 2022; Choquette-Choo et al.,
//! NeurIPS 2023, arXiv 2306.08153; Kalinin, Lampert, NeurIPS 2024, arXiv 2405.13763 (banded square roots).

mod defaults;

#[cfg(test)]
mod tests;

pub use defaults::{PASSES, TOTAL_STEP};

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::LossKind;
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::continual::{Factor, Participation};

use super::algorithm::Algorithm;
use super::noisy_run::{Length, NoisyRun, Parts, Sampling, StepsRun};
use super::problem::{Problem, Setting};
use super::recipe::Budget;
use crate::averaging::Averaging;
use crate::derivation::RELEASE;
use crate::descent::Descent;
use crate::engine::Summation;
use crate::error::Error;
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::recipes::linear::size;
use crate::schedule::Schedule;

const RECIPE: &str = "dp-ftrl";
/// Maximum number of steps of a stream.
const MOST_STEPS: u64 = 1 << 20;
/// Maximum number of bands chosen by default.
const MOST_BANDS: u64 = 1 << 10;
/// Maximum number of values that a stream stores by default: bands times parameters.
const MOST_REMEMBERED: u64 = 1 << 23;
/// Maximum work of the choice: steps times bands.
const MOST_WORK: u64 = 1 << 24;

/// The recipe of DP-FTRL: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ZeroOut, gaussian};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, DpFtrl, Planned, Recipe};
///
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let recipe = DpFtrl { batch_size: 100, ..DpFtrl::new(LossKind::Logistic) };
/// let plan = recipe.plan::<ZeroOut>(100_000, 20, Budget { epsilon, delta })?; // before any data
/// // The sum of a thousand gradients has at most 3.3 times the noise of a single release.
/// let one = gaussian::noise_multiplier(epsilon, delta)?.get();
/// assert!((plan.run().error_of_sums() / one - 3.27).abs() < 0.01);
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DpFtrl {
    /// The loss; it need be neither smooth nor convex.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`, which is public and carries no noise.
    pub lambda: f64,
    /// b: records per batch, capped at the number of records.
    pub batch_size: u64,
    /// k: passes over the records, in one order.
    pub passes: u64,
    /// Number of diagonals of the factor, from the main one on; `None` chooses the best number. One band is independent noise
    /// for each step.
    pub bands: Option<u64>,
    /// The step sizes; `None` is the constant `1/√T`.
    pub schedule: Option<Schedule>,
    /// C: clipping norm of each record's gradient; `None` uses the loss's own bound, without clipping.
    pub clipping: Option<ClippingNorm>,
    /// R: radius of the ball onto which every iterate is projected.
    pub radius: Option<f64>,
    /// The released combination of the iterates. All iterates may be published.
    pub averaging: Averaging,
    /// The descent method, such as momentum, which costs no privacy.
    pub descent: Descent,
    /// True if rows are read in the source's order, a stream that may be known to anyone; otherwise the order is random, the
    /// same in each pass. The guarantee is the same.
    pub declared_order: bool,
    /// The noise mode.
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

impl Algorithm for DpFtrl {
    const NAME: &'static str = RECIPE;

    type Calibrated = BandedNoise;
    type Run = StepsRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, float, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(float) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(BandedNoise, StepsRun), Error> {
        let bands = self.resolved_bands(problem)?;
        let run = self.run(problem, bands)?;
        let std_dev = run.least_std_dev(budget, copies)?;
        Ok((BandedNoise { bands, std_dev }, self.with_noise(run, std_dev)?))
    }

    fn resolve(&self, problem: &Problem, calibrated: &BandedNoise) -> Result<StepsRun, Error> {
        self.with_noise(self.run(problem, calibrated.bands)?, calibrated.std_dev)
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        problem.setting.assumptions_in(self.declared_order)
    }

    fn lattice(&self, _: &Problem, _: &BandedNoise) -> Result<ReleaseLattice, Error> {
        Ok(ReleaseLattice::ANYWHERE.within(self.radius).in_precision(self.float))
    }

    fn work(&self, problem: &Problem, _: &Self::Calibrated) -> u64 {
        let n = problem.n;
        let steps = n.saturating_mul(self.passes) / self.batch_size.clamp(1, n.max(1));
        RELEASE.saturating_add(steps.saturating_mul(self.passes.saturating_add(64)))
    }
}

impl DpFtrl {
    /// Creates a recipe of one pass in batches of 256, in a random order, that releases the last iterate.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: 0.0,
            batch_size: 256,
            passes: 1,
            bands: None,
            schedule: None,
            clipping: None,
            radius: None,
            averaging: Averaging::Last,
            descent: Descent::Plain,
            declared_order: false,
            noise_mode: NoiseMode::Exact,
            float: FloatKind::F64,
            summation: Summation::Compensated,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    fn run(&self, problem: &Problem, bands: u64) -> Result<NoisyRun, Error> {
        let run = self.uncorrelated(problem)?;
        if !(1..=run.updates()).contains(&bands) || self.bands.is_some_and(|asked| asked.min(run.updates()) != bands) {
            return Err(Error::Count {
                name: "bands",
                value: bands,
                range: "from 1 to the number of steps; the requested number, if given",
            });
        }
        let factor = Factor::banded_square_root(size("steps", run.updates())?, size("bands", bands)?)?;
        run.correlated(factor)
    }

    fn uncorrelated(&self, problem: &Problem) -> Result<NoisyRun, Error> {
        if !matches!(self.descent, Descent::Plain | Descent::Accelerated { .. }) {
            let why = "steps are plain or accelerated: what adapts to single gradients would see all their noise";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
        let run = NoisyRun::new(Parts {
            recipe: RECIPE,
            problem,
            clipping: self.clipping,
            radius: self.radius,
            lambda: self.lambda,
            sampling: Sampling::Passes,
            batch_size: self.batch_size,
            length: Length::Passes(self.passes),
            descent: self.descent,
            penalty: None,
            intercept: false,
            declared_order: self.declared_order,
            summation: self.summation,
        })?;
        if run.updates() > MOST_STEPS {
            return Err(Error::Count {
                name: "passes",
                value: self.passes,
                range: "few enough for at most 2^20 steps in all",
            });
        }
        Ok(run)
    }

    /// Returns the requested number of bands, at most the number of steps; by default that with the least noise in the sums.
    fn resolved_bands(&self, problem: &Problem) -> Result<u64, Error> {
        let run = self.uncorrelated(problem)?;
        let steps = run.updates();
        match self.bands {
            Some(bands) => Ok(bands.min(steps)),
            None => Ok(best_factor(steps, run.participation()?, run.parameters())?.bands),
        }
    }

    fn with_noise(&self, run: NoisyRun, std_dev: f64) -> Result<StepsRun, Error> {
        let schedule = self.schedule.clone().unwrap_or_else(|| Schedule::usual(run.updates()));
        StepsRun::new(run, &schedule, &self.averaging, std_dev, self.noise_mode)
    }
}

/// The result of calibration: the number of bands, and the noise.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct BandedNoise {
    /// Number of diagonals of the factor.
    pub bands: u64,
    /// Standard deviation of the noise on a row; a step's noise is a combination of several rows'.
    pub std_dev: f64,
}

/// A number of bands, and the resulting noise of the last sum.
#[derive(Debug, Clone, Copy)]
struct Bands {
    bands: u64,
    /// Standard deviation of that noise, for sensitivity 1 of a step's sum, relative to the noise of a single release of it.
    error: f64,
}

impl Bands {
    fn new(steps: u64, bands: u64, participation: Participation) -> Result<Self, Error> {
        let factor = Factor::banded_square_root(size("steps", steps)?, size("bands", bands)?)?;
        Ok(Self { bands, error: factor.sensitivity(participation)?.value * factor.largest_error() })
    }
}

/// Returns the best number of bands, with the least noise in the last sum, among 1, 2, 4, ..., the number of steps of a pass,
/// and the maximum.
fn best_factor(steps: u64, participation: Participation, parameters: u64) -> Result<Bands, Error> {
    let most = steps.min(MOST_BANDS).min(MOST_REMEMBERED / parameters.max(1)).min(MOST_WORK / steps.max(1)).max(1);
    let powers = core::iter::successors(Some(1u64), |bands| bands.checked_mul(2)).take_while(|bands| *bands < most);
    let mut best = Bands::new(steps, 1, participation)?;
    for bands in powers.skip(1).chain([participation.separation().min(most), most]) {
        let candidate = Bands::new(steps, bands, participation)?;
        if candidate.error < best.error {
            best = candidate;
        }
    }
    Ok(best)
}
