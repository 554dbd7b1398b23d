//! DP-SVRG: gradient steps whose noise shrinks with the distance from a snapshot, at which the gradient of all records is
//! known.
//!
//! ```text
//! repeat, epoch after epoch:
//!     w̃ <- w
//!     g̃ <- ( Σ_i clip_C ∇ℓ_i(w̃) + N(0, σ_g² I) ) / n                                 all records
//!     m times:
//!         B  each record by itself with probability q                 (or a random set of fixed size)
//!         D <- min(C, β ‖w - w̃‖)
//!         v <- g̃ + D ( Σ_{i in B} clip_1( (∇ℓ_i(w) - ∇ℓ_i(w̃)) / D ) + N(0, σ² I) ) / qn
//!         w <- Π_R( (1 - ηλ) w - η v )
//! ```
//! # The differences
//! Both gradients of a record are multiples of its row, and so is their difference, `(ℓ'(⟨w, x⟩) - ℓ'(⟨w̃, x⟩)) x`, of norm at
//! most `β ‖w - w̃‖` for a loss of smoothness β. w and w̃ are released, so this is a *public* bound D: divided by it, a
//! difference has norm at most 1, clipping changes nothing, and the noise on the sum is proportional to the distance from the
//! snapshot. For losses with kinks, or if the bound exceeds C, differences are clipped to C (which the gradients of a monotone
//! loss with values up to C do not exceed either).
//!
//! # Privacy
//! Every sum is released with Gaussian noise calibrated to one record's contribution: C for the sum of all records, 1 for the
//! sum of a batch in units of D. This holds for any w, w̃ and D, which are functions of earlier releases. The event is the
//! adaptive composition of all sums, `epochs` Gaussians and `epochs · m` sampled ones, for which both noises are calibrated
//! together: [`full_share`](DpSvrg::full_share) of the cost is spent on the gradients of all records, the rest on the steps.
//!
//! # References
//! Johnson, Zhang, "Accelerating stochastic gradient descent using predictive variance reduction", NIPS 2013; Wang, Ye, Xu,
//! "Differentially private empirical risk minimization revisited: faster and more general", NIPS 2017, for SVRG with noise;
//! Chen 2020 (dissertation, University of Georgia) compares it as DP-SVRG, with differences clipped to C.

mod defaults;
mod training;

#[cfg(test)]
mod tests;

#[cfg(feature = "audit")]
pub use training::Observation;
pub use training::SvrgRun;

use dp_accountant::DpEvent;
use dp_accountant::certificate::NoiseMode;
use dp_losses::{L2, LossKind};
use dp_mechanisms::clip::ClippingNorm;

use super::algorithm::Algorithm;
use super::noisy_run::{Length, NoisyRun, Parts, Sampling};
use super::noisy_sums::NoisySums;
use super::problem::{Problem, Setting};
use super::recipe::{Budget, least_scale, repeated};
use crate::averaging::Averaging;
use crate::descent::Descent;
use crate::engine::{Contributions, MICROBATCH, StepSum, Summation};
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::schedule::Schedule;

const RECIPE: &str = "dp-svrg";

/// The recipe of DP-SVRG: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, DpSvrg, Planned, Recipe};
///
/// let recipe = DpSvrg { batch_size: 500, epochs: 4, ..DpSvrg::new(LossKind::Logistic) };
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = recipe.plan::<ZeroOut>(100_000, 20, budget)?; // before any data
/// assert_eq!(plan.run().steps(), 4 * 200);
/// // Noise on four sums of all records and on the sums of 800 batches, in units of a record's contribution to each.
/// assert!(plan.run().noises().full_std_dev > plan.run().noises().std_dev);
/// assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.99);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DpSvrg {
    /// The loss; it need be neither smooth nor convex.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`, which is public and carries no noise.
    pub lambda: f64,
    /// The sampling of the records of a step: [`Sampling::Poisson`], or under replace-one [`Sampling::FixedSize`].
    pub sampling: Sampling,
    /// b: records per batch, on average under [`Sampling::Poisson`]; capped at the number of records.
    pub batch_size: u64,
    /// Number of snapshots, each with a gradient of all records.
    pub epochs: u64,
    /// m: steps from each snapshot; `None` is `⌈n/b⌉`.
    pub epoch_steps: Option<u64>,
    /// Share of the cost spent on the gradients of all records, in (0, 1).
    pub full_share: f64,
    /// The step sizes; `None` is the constant `1/√T`, with T the steps of all epochs.
    pub schedule: Option<Schedule>,
    /// C: clipping norm of each record's gradient, and of its difference from the snapshot's; `None` uses the loss's own
    /// bound.
    pub clipping: Option<ClippingNorm>,
    /// R: radius of the ball onto which every iterate is projected.
    pub radius: Option<f64>,
    /// The combination of the iterates of all epochs that is released. All iterates may be published.
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

/// The result of calibration: the noise of both kinds of sums.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct TwoNoises {
    /// σ_g: standard deviation of the noise on each coordinate of the sum of all records' gradients.
    pub full_std_dev: f64,
    /// σ: standard deviation of the noise on each coordinate of a batch's sum of differences, in units of D.
    pub std_dev: f64,
}

impl Algorithm for DpSvrg {
    const NAME: &'static str = RECIPE;

    type Calibrated = TwoNoises;
    type Run = SvrgRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, float, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(float) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(TwoNoises, SvrgRun), Error> {
        let run = self.run(problem)?;
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let (of_full, of_step) = (run.full_sensitivity()?, run.steps.sensitivity()?);
        // Invalid events count as non-private.
        let unstated = |_| DpEvent::NonPrivate;
        // The noise on full gradients for the whole budget, scaled to their share of the cost.
        let alone = least_scale(budget, copies, |multiplier| {
            run.event_of_full(multiplier * of_full).map_or_else(unstated, |event| run.under_relation(event))
        })?;
        let full_std_dev = alone * of_full / self.full_share.sqrt();
        let multiplier = least_scale(budget, copies, |multiplier| {
            run.event(full_std_dev, multiplier * of_step).unwrap_or_else(unstated)
        })?;
        let noises = TwoNoises { full_std_dev, std_dev: multiplier * of_step };
        Ok((noises, self.with_noises(run, noises)?))
    }

    fn resolve(&self, problem: &Problem, noises: &TwoNoises) -> Result<SvrgRun, Error> {
        self.with_noises(self.run(problem)?, *noises)
    }

    fn lattice(&self, _: &Problem, _: &TwoNoises) -> Result<ReleaseLattice, Error> {
        Ok(ReleaseLattice::ANYWHERE.within(self.radius).in_precision(self.float))
    }
}

impl DpSvrg {
    /// Creates the usual recipe: ten epochs in Poisson batches of 256.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: 0.0,
            sampling: Sampling::Poisson,
            batch_size: 256,
            epochs: defaults::EPOCHS,
            epoch_steps: None,
            full_share: defaults::FULL_SHARE,
            schedule: None,
            clipping: None,
            radius: None,
            averaging: Averaging::Last,
            noise_mode: NoiseMode::Exact,
            float: FloatKind::F64,
            summation: Summation::Compensated,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    fn steps_of_epoch(&self, n: u64) -> u64 {
        self.epoch_steps.unwrap_or_else(|| n.div_ceil(self.batch_size.clamp(1, n.max(1)))).max(1)
    }

    fn run(&self, problem: &Problem) -> Result<Svrg, Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: RECIPE, why });
        if self.sampling == Sampling::Passes {
            return not_proved("its steps are on batches that are drawn, poisson or fixed");
        }
        if self.epochs > 1 && matches!(self.averaging, Averaging::Restarts { .. }) {
            return not_proved("it restarts at each snapshot, and not from means of iterates");
        }
        if !(self.full_share > 0.0 && self.full_share < 1.0) {
            let (name, value) = ("share of full gradients", self.full_share);
            return Err(Error::OutOfRange { name, value, range: "(0, 1)" });
        }
        for (name, value) in [("epochs", self.epochs), ("steps of an epoch", self.epoch_steps.unwrap_or(1))] {
            if value == 0 {
                return Err(Error::Count { name, value, range: "1 or more" });
            }
        }
        let epoch_steps = self.steps_of_epoch(problem.n);
        let parts = Parts {
            recipe: RECIPE,
            problem,
            // Differences are clipped to 1, in units of D.
            clipping: Some(ClippingNorm::new(1.0)?),
            radius: self.radius,
            lambda: self.lambda,
            sampling: self.sampling,
            batch_size: self.batch_size,
            length: Length::Steps(self.epochs.saturating_mul(epoch_steps)),
            descent: Descent::Plain,
            penalty: None,
            intercept: false,
            declared_order: false,
            summation: self.summation,
        };
        let steps = NoisyRun::new(parts)?;
        let domain = problem.domain(self.radius)?;
        let contributions = match self.clipping {
            Some(norm) => Contributions::Clipped(norm.into()),
            None => Contributions::of_loss(&self.loss, &domain, problem.dim, self.float)?,
        };
        let n = problem.n;
        let full = StepSum::whole(contributions, n, self.float).added_up(self.summation, n.min(MICROBATCH));
        let smoothness = self.loss.constants(L2::NONE, &domain).smoothness;
        Ok(Svrg { steps, full, epochs: self.epochs, epoch_steps, bound: contributions.bound(), smoothness })
    }

    fn with_noises(&self, run: Svrg, noises: TwoNoises) -> Result<SvrgRun, Error> {
        let updates = run.steps.updates();
        let steps = self.schedule.clone().unwrap_or_else(|| Schedule::usual(updates)).prepare(updates)?;
        let weights = self.averaging.prepare(updates)?;
        let TwoNoises { full_std_dev, std_dev } = noises;
        positive("standard deviation of full gradients", full_std_dev)?;
        positive("standard deviation", std_dev)?;
        run.steps.check_range(&steps, run.largest_sum(full_std_dev, std_dev), std_dev)?;
        Ok(SvrgRun { run, noises, noise_mode: self.noise_mode, steps, weights })
    }
}

/// The public numbers of a run of DP-SVRG.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Svrg {
    /// The steps of all epochs, on differences of norm 1.
    pub(crate) steps: NoisyRun,
    /// The sum of all records' gradients.
    full: StepSum,
    epochs: u64,
    epoch_steps: u64,
    /// C.
    bound: f64,
    /// β of the loss.
    smoothness: f64,
}

/// Minimum of D/C, since rounding may leave a difference between equal points.
const LEAST_REACH: f64 = 1e-9;

impl Svrg {
    /// Returns D at this distance from the snapshot.
    fn reach(&self, distance: f64) -> f64 {
        let by_curvature = if self.smoothness.is_finite() { self.smoothness * distance } else { self.bound };
        // NaN becomes C.
        by_curvature.min(self.bound).max(LEAST_REACH * self.bound)
    }

    /// Returns the L2 sensitivity of the sum of all records' gradients.
    fn full_sensitivity(&self) -> Result<f64, Error> {
        self.full.sensitivity(self.steps.sums.relation_of_steps)
    }

    /// Returns the event of all sums of all records, with noise of this standard deviation.
    fn event_of_full(&self, std_dev: f64) -> Result<DpEvent, Error> {
        let std_dev = positive("standard deviation of full gradients", std_dev)?;
        Ok(repeated(DpEvent::Gaussian { std_dev, sensitivity: self.full_sensitivity()? }, self.epochs))
    }

    fn event(&self, full_std_dev: f64, std_dev: f64) -> Result<DpEvent, Error> {
        let std_dev = positive("standard deviation", std_dev)?;
        let step = DpEvent::Gaussian { std_dev, sensitivity: self.steps.sensitivity()? };
        let events = vec![self.event_of_full(full_std_dev)?, self.steps.sums.plan.event(step)];
        Ok(self.under_relation(DpEvent::Composed { events }))
    }

    /// Returns the event under the release's relation.
    fn under_relation(&self, event: DpEvent) -> DpEvent {
        let NoisySums { relation, relation_of_steps, .. } = self.steps.sums;
        if relation == relation_of_steps { event } else { DpEvent::AddRemoveTwice { event: Box::new(event) } }
    }
}
