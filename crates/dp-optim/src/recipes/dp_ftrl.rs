//! DP-FTRL: gradient descent on records in a known order, with noise that is correlated over the steps.
//!
//! ```text
//! release  Cf G + Z  row by row,   G_t = Σ_{i in batch t} clip_C ∇ℓ_i(w_{t-1}),   Z independent, N(0, σ² I)
//! w_t = -(η/b) (prefix sum of all that was released) = -(η/b) (G_1 + ... + G_t + (B Z)_t),    B = A Cf⁻¹
//! ```
//! What a linear model learns is the *sum* of its gradients so far. Noise of its own in each of `T` gradients adds up to `√T`
//! times as much in their sum; noise that is taken back in part at later steps to `ln T` times as much. So batches need not be
//! drawn at random: there is no amplification here, and none is needed.
//!
//! # Privacy
//! Each record takes part once in a pass, in the batch that its *position* says, whatever it holds: positions may be known to
//! the adversary, and the order is a curator's (a stream in time) or a random one, the same in every pass. In `k` passes over
//! batches of `b` a record is in `k` steps, `⌈n/b⌉` apart ([`Participation`]), and
//! moves `Cf G` by at most the [factor's sensitivity](dp_mechanisms::continual::FactorSensitivity) times what it moves one
//! sum: C, or a loss's own bound, under zero-out, twice that (or the loss's bound on differences) under replace-one. The
//! whole training is one Gaussian release of that sensitivity, every iterate included, since inputs may depend on what was
//! released before ([`continual`](dp_mechanisms::continual)).
//!
//! The number of records is public, as in all recipes with batches of fixed size: a record that is added would move all later
//! ones to other batches. Under zero-out it is replaced by a null one in its place.
//!
//! # The factor
//! The first `bands` diagonals of the square root of the matrix of prefix sums. Where a record takes part more than once,
//! fewer bands have less sensitivity and more error; [`bands`](DpFtrl::bands) is chosen where their product is least, from
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
/// The most steps of a stream.
const MOST_STEPS: u64 = 1 << 20;
/// The most bands that are chosen unless more are asked for.
const MOST_BANDS: u64 = 1 << 10;
/// The most numbers that a stream has to remember unless more are asked for: bands times parameters.
const MOST_REMEMBERED: u64 = 1 << 23;
/// The most work in choosing: steps times bands.
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
/// // In the sum of a thousand gradients there is no more than 3.3 times the noise of one release.
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
    /// b: records in a batch; more than there are means as many as there are.
    pub batch_size: u64,
    /// k: passes over the records, in one order.
    pub passes: u64,
    /// Diagonals of the factor, from the main one on; `None` takes as many as serve best. One is noise of its own for each
    /// step.
    pub bands: Option<u64>,
    /// The step sizes; `None` is the constant `1/√T`.
    pub schedule: Option<Schedule>,
    /// C: each record's gradient is scaled to this norm at most; `None` takes the loss's own bound, and nothing is
    /// clipped.
    pub clipping: Option<ClippingNorm>,
    /// R: every iterate is projected onto the ball of this radius.
    pub radius: Option<f64>,
    /// Which combination of the iterates is released. All of them might be.
    pub averaging: Averaging,
    /// Whether steps are taken straight, or with momentum; it costs no privacy.
    pub descent: Descent,
    /// The rows are read as the source holds them, as a stream that may be known to anyone; else in a random order, the same
    /// in each pass. The guarantee is the same.
    pub declared_order: bool,
    /// How the noise is drawn.
    pub noise_mode: NoiseMode,
    /// The floating-point type of training. Noise is planned for what either type may round.
    pub float: FloatKind,
    /// How sums of gradients are added up. A serialised recipe that does not say adds up plainly.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Summation::is_plain"))]
    pub summation: Summation,
    /// Bound on the rows' L2 norm, which the source enforces.
    pub row_norm: f64,
    /// Bound on the targets' size, which the source enforces; at most 1 for the losses of two classes.
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
        let mut assumptions = problem.setting.assumptions();
        if self.declared_order {
            assumptions.push(Assumption::DeclaredOrder);
        }
        assumptions
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
    /// One pass in batches of 256, in a random order; the last iterate.
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

    /// The run as public numbers, with this many bands.
    fn run(&self, problem: &Problem, bands: u64) -> Result<NoisyRun, Error> {
        let run = self.uncorrelated(problem)?;
        if !(1..=run.updates()).contains(&bands) || self.bands.is_some_and(|asked| asked.min(run.updates()) != bands) {
            return Err(Error::Count {
                name: "bands",
                value: bands,
                range: "1 up to the number of steps, as asked for",
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
                range: "those of at most 2^20 steps in all",
            });
        }
        Ok(run)
    }

    /// The bands that were asked for, at most as many as there are steps; or those whose sums have the least noise.
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

/// What calibration found: how many bands, and the noise of each.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct BandedNoise {
    /// Diagonals of the factor.
    pub bands: u64,
    /// Standard deviation of a row's noise, of which a step's is a combination.
    pub std_dev: f64,
}

/// A number of bands, and the noise of the last sum with them.
#[derive(Debug, Clone, Copy)]
struct Bands {
    bands: u64,
    /// Its standard deviation where a record moves one step's sum by 1, and a single release of it has noise of 1.
    error: f64,
}

impl Bands {
    fn new(steps: u64, bands: u64, participation: Participation) -> Result<Self, Error> {
        let factor = Factor::banded_square_root(size("steps", steps)?, size("bands", bands)?)?;
        Ok(Self { bands, error: factor.sensitivity(participation)?.value * factor.largest_error() })
    }
}

/// Of 1, 2, 4, ... bands, of as many as a pass has steps, and of all, those with the least noise in the last sum.
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
