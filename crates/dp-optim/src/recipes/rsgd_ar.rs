//! RSGD-AR, NSGD and OutPert-GD: gradient descent on a regularised loss, with Gaussian noise on the final model.
//!
//! ```text
//! permute the records once, cut them into m batches
//! for s in 1..=T:                                            h = s, counted anew after each restart
//!     for j in 1..=m:  w <- w - η₀/h ( ∇̄_j(w) + λw )         ∇̄_j the mean gradient of batch j
//!     if τ divides s:  w <- mean of the last mτ iterates     the average that gives the algorithm its name
//! release w + N(0, σ² I)
//! ```
//! | | batches | step | averages | the record's position |
//! |---|---|---|---|---|
//! | [RSGD-AR](RsgdAr::new) | many | `η₀/h` | every τ passes | hidden |
//! | [NSGD](RsgdAr::nsgd) | many | `η₀/s` | none | the worst one |
//! | [OutPert-GD](RsgdAr::full_gradient) | one | constant | none | there is one |
//!
//! All three are [`BoltOn`] with other step sizes and averages. The sensitivity, one number for each position, comes from the
//! [growth recursion](crate::growth) over the schedule of the run. Hiding the position only requires that the order is secret
//! and used for all passes.
//!
//! # References
//! Chen 2020 (dissertation, University of Georgia), chapter 3, Algorithms 3.1 to 3.3 and Theorems 3.1 and
//! 3.2; in place of Theorem 3.2 the exact Gaussian curve is averaged over the positions. Zhang, Zheng, Mou, Wang, "Efficient
//! private ERM for smooth objectives", IJCAI 2017 (OutPert-GD). Published formulas that are wrong are in [`as_published`].

pub mod as_published;

#[cfg(test)]
mod tests;

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::{Domain, L2, LossKind};

use crate::averaging::Averaging;
use crate::defaults::{Defaults, SQUARED_RADIUS};
use crate::error::Error;
use crate::float::FloatKind;
use crate::growth::{Arithmetic, Divisor};
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::bolt_on::{BoltOn, OutputNoise, OutputNoiseScale, OutputRun};
use crate::recipes::noise_scale::{NoiseScale, OneNoise};
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

const RECIPE: &str = "rsgd-ar";

/// The change of the step size from pass to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum PassSteps {
    /// `η₀/h`, with `h` the passes since the last restart: steps are long again after each restart.
    #[default]
    Restarted,
    /// `η₀/s`, with `s` the passes since the beginning, regardless of restarts.
    Falling,
    /// `η₀`.
    Constant,
}

/// The recipe of RSGD-AR and its relatives: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, Planned, Recipe, RsgdAr};
///
/// let recipe = RsgdAr { batch_size: 4000, ..RsgdAr::new(LossKind::Logistic, 1e-3) };
/// let budget = Budget::new(1.0, 1e-8)?;
/// let plan = recipe.plan::<ReplaceOne>(36_000, 100, budget)?; // before any data
/// // The first of nine batches affects the model most, the last one least: averaging over the hidden position needs
/// // less noise than the worst position.
/// assert!((plan.run().sensitivity() - 1.712e-3).abs() < 1e-6);
/// let worst = RsgdAr { hide_position: false, ..recipe }.plan::<ReplaceOne>(36_000, 100, budget)?;
/// assert!(plan.run().noise().scale() < 0.97 * worst.run().noise().scale());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RsgdAr {
    /// The loss, smooth.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`.
    pub lambda: f64,
    /// T: passes over the data.
    pub passes: u64,
    /// Records per batch, capped at the number of records.
    pub batch_size: u64,
    /// η₀: the first step size.
    pub step: f64,
    /// The change of the step size from pass to pass.
    pub steps: PassSteps,
    /// τ: after every τ passes the run continues from the mean of their iterates. If passes remain at the end, the last
    /// iterate is the output. `None` never restarts.
    pub restart_every: Option<u64>,
    /// Averages over the record's secret position in the permutation if that needs less noise. Costs nothing.
    pub hide_position: bool,
    /// The divisor of a batch's gradient sum.
    pub divisor: Divisor,
    /// R: radius of the ball onto which the iterates and the released model are projected.
    pub radius: Option<f64>,
    /// The noise mode: [`Exact`](NoiseMode::Exact), or [`Rounded`](NoiseMode::Rounded), an idealisation that the certificate
    /// names.
    pub noise_mode: NoiseMode,
    /// The floating-point type of training.
    pub float: FloatKind,
    /// The representation of the iterate; [`Arithmetic::suited_to`] returns the faster one.
    pub arithmetic: Arithmetic,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

impl Algorithm for RsgdAr {
    const NAME: &'static str = RECIPE;

    type Calibrated = OneNoise<OutputNoiseScale>;
    type Run = OutputRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, float, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(float) }
    }

    fn calibrate(
        &self,
        problem: &Problem,
        budget: Budget,
        copies: u64,
    ) -> Result<(OneNoise<OutputNoiseScale>, OutputRun), Error> {
        self.check()?;
        self.as_bolt_on(problem.n).calibrate(problem, budget, copies)
    }

    fn resolve(&self, problem: &Problem, calibrated: &OneNoise<OutputNoiseScale>) -> Result<OutputRun, Error> {
        self.check()?;
        if matches!(calibrated.noise, OutputNoiseScale::LaplaceBall { .. }) {
            return Err(Error::NotProved { recipe: RECIPE, why: "its noise is Gaussian" });
        }
        self.as_bolt_on(problem.n).resolve(problem, calibrated)
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        self.as_bolt_on(problem.n).assumptions(problem)
    }

    fn lattice(&self, problem: &Problem, calibrated: &OneNoise<OutputNoiseScale>) -> Result<ReleaseLattice, Error> {
        self.as_bolt_on(problem.n).lattice(problem, calibrated)
    }

    fn weight_noise(&self, calibrated: &OneNoise<OutputNoiseScale>) -> Option<NoiseScale> {
        self.as_bolt_on(1).weight_noise(calibrated)
    }

    fn work(&self, problem: &Problem, calibrated: &Self::Calibrated) -> u64 {
        self.as_bolt_on(problem.n).work(problem, calibrated)
    }
}

impl RsgdAr {
    /// Creates RSGD-AR: ten passes in batches of 50, a restart after five passes, initial step size 1.
    pub fn new(loss: LossKind, lambda: f64) -> Self {
        Self {
            loss,
            lambda,
            passes: 10,
            batch_size: 50,
            step: 1.0,
            steps: PassSteps::Restarted,
            restart_every: Some(5),
            hide_position: true,
            divisor: Divisor::Nominal,
            radius: None,
            noise_mode: NoiseMode::Exact,
            float: FloatKind::F64,
            arithmetic: Arithmetic::Buffered,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Creates NSGD: no average, and the noise for the worst position.
    pub fn nsgd(loss: LossKind, lambda: f64) -> Self {
        Self { steps: PassSteps::Falling, restart_every: None, hide_position: false, ..Self::new(loss, lambda) }
    }

    /// Creates OutPert-GD: a hundred equal steps on all records.
    pub fn full_gradient(loss: LossKind, lambda: f64) -> Self {
        Self { batch_size: u64::MAX, passes: 100, steps: PassSteps::Constant, ..Self::nsgd(loss, lambda) }
    }

    /// Sets the step size that suits these public numbers: all steps add up to the total step of
    /// [`defaults`](crate::defaults), and none is longer than `1/β`.
    ///
    /// # Errors
    /// As [`Defaults::new`]; a loss that refuses `lambda`.
    pub fn with_suited_steps(self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Self, Error> {
        let defaults = Defaults::new(self.loss, n, dim, budget, relation)?;
        let shape = Self { step: 1.0, ..self.clone() };
        let per_pass = self.updates_per_pass(n);
        let passes = self.passes.clamp(1, MOST_PASSES_SUMMED);
        // The first update of each pass represents the whole pass.
        let steps = shape.schedule(1).prepare(passes)?;
        let total: f64 = (1..=passes).map(|pass| steps.at(pass)).sum::<f64>() * per_pass as f64;
        let radius = self.radius.or(matches!(self.loss, LossKind::Squared).then_some(SQUARED_RADIUS));
        let smoothness = self.loss.constants(L2::new(self.lambda)?, &Domain::unit_rows()).smoothness;
        let step = defaults.total_step() / total;
        let step = if smoothness.is_finite() { step.min(1.0 / smoothness) } else { step };
        Ok(Self { step, radius, ..self })
    }

    fn updates_per_pass(&self, n: u64) -> u64 {
        n.div_ceil(self.batch_size.clamp(1, n.max(1))).max(1)
    }

    fn schedule(&self, updates_per_pass: u64) -> Schedule {
        let step = self.step;
        let falling = Schedule::PerPass { step, updates_per_pass };
        match (self.steps, self.restart_every) {
            (PassSteps::Constant, _) => Schedule::Constant { step },
            (PassSteps::Restarted, Some(passes)) => {
                Schedule::Restarted { every: passes.saturating_mul(updates_per_pass), schedule: falling.into() }
            }
            (PassSteps::Restarted, None) | (PassSteps::Falling, _) => falling,
        }
    }

    /// Returns the run as a bolt-on recipe: one object for the sensitivity and for the training.
    fn as_bolt_on(&self, n: u64) -> BoltOn {
        let updates_per_pass = self.updates_per_pass(n);
        let averaging = match self.restart_every {
            Some(passes) => Averaging::Restarts { updates: passes.saturating_mul(updates_per_pass) },
            None => Averaging::Last,
        };
        BoltOn {
            lambda: self.lambda,
            passes: self.passes,
            batch_size: self.batch_size,
            schedule: Some(self.schedule(updates_per_pass)),
            radius: self.radius,
            averaging,
            divisor: self.divisor,
            output_noise: OutputNoise::Gaussian,
            noise_mode: self.noise_mode,
            hide_position: self.hide_position,
            float: self.float,
            arithmetic: self.arithmetic,
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            ..BoltOn::convex(self.loss)
        }
    }

    /// Rejects parameters that the run itself would accept.
    fn check(&self) -> Result<(), Error> {
        match self.restart_every {
            Some(0) => Err(Error::Count { name: "passes between restarts", value: 0, range: "1 or more" }),
            _ => Ok(()),
        }
    }
}

/// Maximum number of passes whose steps are summed: runs with more are refused elsewhere.
const MOST_PASSES_SUMMED: u64 = 1 << 24;
