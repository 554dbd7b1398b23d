//! Noise in every step: many noisy sums at one cost, which is logged before the first is drawn.
//!
//! Training that releases each of its steps draws noise thousands of times per second from one law. [`NoisySteps`] is the
//! mechanism of such a run: [`start`](NoisySteps::start) logs the joint cost of all steps of a [`StepPlan`],
//! [`add`](NoisySteps::add) adds noise to one step's sum in place, without a log entry, an allocation or any other overhead, and
//! [`finish`](NoisySteps::finish) marks the result computed from the noisy sums as released.
//!
//! Noise is added to the *sum* of a step's contributions, with one scale for all steps. Any later division, by the batch size for
//! instance, is post-processing.

use core::fmt;
use core::num::NonZeroUsize;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{Adjacency, DpEvent, EventLog, LogId, SamplingRate};
use nalgebra::RealField;

use crate::additive;
use crate::bounded::Bounded;
use crate::error::Error;
use crate::gaussian::Gaussian;
use crate::laplace_ball::LaplaceBall;
use crate::mechanism::PrivacyEvent;
use crate::noise::Drawing;
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::{ReleaseRng, refuse_stuck};
use crate::sensitivity::L2Sensitivity;

/// The law of the noise of each step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum StepNoise<A: Adjacency> {
    /// Normal noise in each coordinate.
    Gaussian(Gaussian<A>),
    /// Noise of density proportional to `exp(-‖z‖₂ / scale)`.
    LaplaceBall(LaplaceBall<A>),
}

impl<A: Adjacency> StepNoise<A> {
    /// Returns the largest accepted sensitivity of a step's sum.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        match self {
            Self::Gaussian(gaussian) => gaussian.sensitivity(),
            Self::LaplaceBall(ball) => ball.sensitivity(),
        }
    }

    /// Returns the noise mode.
    pub fn noise_mode(&self) -> NoiseMode {
        match self {
            Self::Gaussian(gaussian) => gaussian.noise_mode(),
            Self::LaplaceBall(ball) => ball.noise_mode(),
        }
    }

    /// Returns a typical size of one coordinate's noise.
    fn spread(&self) -> f64 {
        match self {
            Self::Gaussian(gaussian) => gaussian.std_dev(),
            Self::LaplaceBall(ball) => ball.spread(),
        }
    }
}

impl<A: Adjacency> PrivacyEvent for StepNoise<A> {
    /// Returns the event of one step, for a record that takes part in it.
    fn event(&self) -> DpEvent {
        match self {
            Self::Gaussian(gaussian) => gaussian.event(),
            Self::LaplaceBall(ball) => ball.event(),
        }
    }
}

impl<A: Adjacency> From<Gaussian<A>> for StepNoise<A> {
    fn from(gaussian: Gaussian<A>) -> Self {
        Self::Gaussian(gaussian)
    }
}

impl<A: Adjacency> From<LaplaceBall<A>> for StepNoise<A> {
    fn from(ball: LaplaceBall<A>) -> Self {
        Self::LaplaceBall(ball)
    }
}

/// The records used by the steps of a run, which determine the cost of all steps from the cost of one.
///
/// All iterates may be released: no iterate needs to be hidden.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum StepPlan {
    /// Each pass divides the records among its steps, by a rule that does not depend on their values: a record takes part in one
    /// step of each pass. The sums of other steps depend on that record only through earlier releases, so that a pass costs as
    /// much as the one step (parallel composition, adaptively), and the passes compose.
    DisjointBatches {
        /// Number of passes over the records.
        passes: u64,
        /// Number of steps of each pass.
        steps_per_pass: u64,
    },
    /// Each step sums over a fresh random subset that holds every record independently with the same probability and is never
    /// published.
    PoissonSampled {
        /// The sampling probability.
        sampling_rate: SamplingRate,
        /// Number of steps.
        steps: u64,
    },
    /// Poisson sampling under a relation that replaces a record in place: besides the sensitivity, a contribution has norm at
    /// most `radius`, so that a sample without the record is no farther away than that. For Gaussian noise.
    PoissonSampledReplacement {
        /// The sampling probability.
        sampling_rate: SamplingRate,
        /// Largest L2 norm of a contribution: from half of the sensitivity to all of it.
        radius: f64,
        /// Number of steps.
        steps: u64,
    },
    /// Each step sums over a fresh uniformly random subset of fixed size, which is never published.
    SampledWithoutReplacement {
        /// The subset's size divided by the number of records.
        sampling_rate: SamplingRate,
        /// Number of steps.
        steps: u64,
    },
    /// Each step sums over all records.
    AllRecords {
        /// Number of steps.
        steps: u64,
    },
}

impl StepPlan {
    /// Returns the number of steps, at most `2^64 - 1`.
    pub fn steps(&self) -> u64 {
        match *self {
            Self::DisjointBatches { passes, steps_per_pass } => passes.saturating_mul(steps_per_pass),
            Self::PoissonSampled { steps, .. }
            | Self::PoissonSampledReplacement { steps, .. }
            | Self::SampledWithoutReplacement { steps, .. }
            | Self::AllRecords { steps } => steps,
        }
    }

    /// Returns the event of all steps, given the event of one step for a record that takes part in it.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::DpEvent;
    /// use dp_mechanisms::steps::StepPlan;
    /// let step = DpEvent::PureDp { epsilon: 0.5 };
    /// let plan = StepPlan::DisjointBatches { passes: 2, steps_per_pass: 1000 };
    /// assert_eq!(plan.event(step.clone()), DpEvent::SelfComposed { event: Box::new(step), count: 2 });
    /// ```
    pub fn event(&self, step: DpEvent) -> DpEvent {
        let (step, count) = match *self {
            Self::DisjointBatches { passes, steps_per_pass } => (step, if steps_per_pass == 0 { 0 } else { passes }),
            Self::PoissonSampled { sampling_rate, steps } => {
                (DpEvent::PoissonSampled { sampling_rate: sampling_rate.get(), event: Box::new(step) }, steps)
            }
            Self::PoissonSampledReplacement { sampling_rate, radius, steps } => {
                let sampling_rate = sampling_rate.get();
                let step = match step {
                    DpEvent::Gaussian { std_dev, sensitivity: distance } => {
                        DpEvent::PoissonSampledReplacement { sampling_rate, std_dev, distance, radius }
                    }
                    // No better event is known; this one does not hold under replacement.
                    other => DpEvent::PoissonSampled { sampling_rate, event: Box::new(other) },
                };
                (step, steps)
            }
            Self::SampledWithoutReplacement { sampling_rate, steps } => (
                DpEvent::SampledWithoutReplacement { sampling_rate: sampling_rate.get(), event: Box::new(step) },
                steps,
            ),
            Self::AllRecords { steps } => (step, steps),
        };
        match count {
            0 => DpEvent::NoOp,
            1 => step,
            count => DpEvent::SelfComposed { event: Box::new(step), count },
        }
    }
}

/// A run that adds noise to the sum of every step, paid for when it starts.
///
/// # Privacy
/// The event holds for all noisy sums together, as if each were published. The caller claims that the steps use the records as
/// the plan states, as for a sensitivity in [`Bounded::with_proven_sensitivity`]. The sum of a step may depend on the noisy sums
/// of all earlier steps.
///
/// # Examples
/// ```
/// use dp_accountant::{EventLog, ZeroOut};
/// use dp_mechanisms::steps::{NoisySteps, StepPlan};
/// use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, OsSeeded};
///
/// let sensitivity = L2Sensitivity::<ZeroOut>::new(1.0)?;
/// let noise = Gaussian::from_std_dev(sensitivity, 4.0)?;
/// let plan = StepPlan::DisjointBatches { passes: 1, steps_per_pass: 2 };
/// let (mut log, mut rng) = (EventLog::new(), OsSeeded::new()?);
///
/// let mut steps = NoisySteps::start(noise.into(), plan, &mut log, &mut rng)?;
/// let mut w = [0.0f64; 2];
/// for mut sum in [[0.6, 0.8], [-1.0, 0.0]] {
///     steps.add(Bounded::with_proven_sensitivity(&mut sum[..], sensitivity), &mut rng)?;
///     w.iter_mut().zip(sum).for_each(|(w, noisy)| *w -= 0.1 * noisy);
/// }
/// let released = steps.finish(w, &mut log)?;
/// assert!(released.get()[0] != -0.04);
/// assert_eq!(log.entries().len(), 1);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub struct NoisySteps<A: Adjacency> {
    noise: StepNoise<A>,
    paid_in: LogId,
    left: u64,
    most: u64,
    /// The event of the release beside each sum, if any.
    beside: Option<DpEvent>,
    /// True if the last step's release beside its sum is still to be made.
    beside_is_due: bool,
    /// The assumptions of the sums' sensitivities.
    assumptions: Vec<Assumption>,
    secret: bool,
    drawing: Drawing,
}

impl<A: Adjacency> fmt::Debug for NoisySteps<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.most - self.left;
        f.debug_struct("NoisySteps").field("noise", &self.noise).field("taken", &taken).finish_non_exhaustive()
    }
}

impl<A: Adjacency> NoisySteps<A> {
    /// Logs the cost of all steps and starts the run.
    ///
    /// # Errors
    /// [`Error::Accountant`] if the plan's theorem does not hold under `A` or a number is out of its range;
    /// [`Error::StuckGenerator`]. In these cases nothing is logged.
    pub fn start<R: ReleaseRng + ?Sized>(
        noise: StepNoise<A>,
        plan: StepPlan,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Self, Error> {
        Self::start_with(noise, None, plan, log, rng)
    }

    /// As [`start`](Self::start), for steps that make one more release each, of this event, from the records of the step: see
    /// [`beside`](Self::beside). The cost of a step is that of both together, and sampling amplifies it once.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{DpEvent, Epsilon, EventLog, ZeroOut};
    /// use dp_mechanisms::scores::Scores;
    /// use dp_mechanisms::steps::{NoisySteps, StepPlan};
    /// use dp_mechanisms::{Bounded, Exponential, Gaussian, L2Sensitivity, LInfSensitivity, Mechanism, OsSeeded, PrivacyEvent};
    ///
    /// let sensitivity = L2Sensitivity::<ZeroOut>::new(1.0)?;
    /// let noise = Gaussian::from_std_dev(sensitivity, 4.0)?;
    /// let choice = Exponential::new(LInfSensitivity::<ZeroOut>::new(1.0)?, Epsilon::new(0.1)?)?;
    /// let (mut log, mut rng) = (EventLog::new(), OsSeeded::new()?);
    /// let plan = StepPlan::AllRecords { steps: 1 };
    /// let mut steps = NoisySteps::start_beside(noise.into(), choice.event(), plan, &mut log, &mut rng)?;
    /// let noisy = steps.noisy(Bounded::with_proven_sensitivity(vec![0.5f64], sensitivity), &mut rng)?;
    /// let best = steps.beside(&mut rng, |log, rng| {
    ///     let scores = Bounded::with_proven_sensitivity(Scores::new(vec![3.0, 1.0])?, choice.sensitivity());
    ///     Ok::<_, dp_mechanisms::Error>(choice.release(scores, log, rng)?.into_inner())
    /// })?;
    /// assert!(noisy[0] != 0.5 && best < 2);
    /// assert_eq!(log.to_event(), DpEvent::Composed { events: vec![noise.event(), choice.event()] });
    /// # Ok::<(), dp_mechanisms::Error>(())
    /// ```
    pub fn start_beside<R: ReleaseRng + ?Sized>(
        noise: StepNoise<A>,
        beside: DpEvent,
        plan: StepPlan,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Self, Error> {
        Self::start_with(noise, Some(beside), plan, log, rng)
    }

    fn start_with<R: ReleaseRng + ?Sized>(
        noise: StepNoise<A>,
        beside: Option<DpEvent>,
        plan: StepPlan,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Self, Error> {
        let event = plan.event(step_event(noise.event(), beside.clone()));
        let relations = event.relations()?;
        if !relations.contains(A::KIND) {
            let (event, holds_under, found) = (event_name(&plan), relations, A::KIND);
            return Err(dp_accountant::Error::NotUnderRelation { event, holds_under, found }.into());
        }
        refuse_stuck(rng)?;
        release::record(Cost { event, noise: noise.noise_mode(), assumptions: Vec::new() }, log, rng);
        let most = plan.steps();
        let (paid_in, drawing) = (log.id(), Drawing::default());
        let (assumptions, beside_is_due) = (Vec::new(), false);
        Ok(Self { noise, paid_in, left: most, most, beside, beside_is_due, assumptions, secret: true, drawing })
    }

    /// Draws the Gaussian noise of sums of 65,536 coordinates or more on this many threads: one by default. The noise is the same
    /// for any number.
    pub fn set_threads(&mut self, threads: NonZeroUsize) {
        self.drawing.threads = threads;
    }

    /// Begins the noise of the next step, whose sum will have `dim` coordinates: [`draw_some`](Self::draw_some) then draws parts of it
    /// while the sum is computed. The noise of such a sum is the same without this call. Returns false, and does nothing, where
    /// nothing can be drawn ahead: for noise other than exact Gaussian, for fewer than 65,536 coordinates, and after the last step.
    ///
    /// # Privacy
    /// The noise is used for the next sum if that has `dim` coordinates, and otherwise discarded.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{EventLog, ZeroOut};
    /// use dp_mechanisms::steps::{NoisySteps, StepPlan};
    /// use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, OsSeeded};
    ///
    /// let sensitivity = L2Sensitivity::<ZeroOut>::new(1.0)?;
    /// let noise = Gaussian::from_std_dev(sensitivity, 4.0)?;
    /// let (mut log, mut rng) = (EventLog::new(), OsSeeded::new()?);
    /// let mut steps = NoisySteps::start(noise.into(), StepPlan::AllRecords { steps: 1 }, &mut log, &mut rng)?;
    ///
    /// assert!(steps.draw_ahead(100_000, &mut rng)?);
    /// while steps.draw_some() {} // On any thread, between other work.
    /// let noisy = steps.noisy(Bounded::with_proven_sensitivity(vec![0.0f64; 100_000], sensitivity), &mut rng)?;
    /// assert!(noisy.iter().any(|&x| x > 4.0));
    /// # Ok::<(), dp_mechanisms::Error>(())
    /// ```
    pub fn draw_ahead<R: ReleaseRng + ?Sized>(&mut self, dim: usize, rng: &mut R) -> Result<bool, Error> {
        let StepNoise::Gaussian(gaussian) = &self.noise else { return Ok(false) };
        if self.left == 0 || !gaussian.can_draw_ahead(dim) {
            return Ok(false);
        }
        // Noise that has begun is kept after a sum was refused.
        if !self.drawing.has_begun(dim) {
            refuse_stuck(rng)?;
            self.secret &= rng.is_secret();
            self.drawing.begin(dim, rng)?;
        }
        Ok(true)
    }

    /// Draws a part of the noise that has [begun](Self::draw_ahead), 4,096 coordinates, on the calling thread; returns false if nothing
    /// is left to draw. At most 2^22 coordinates (32 MB) are drawn ahead.
    pub fn draw_some(&self) -> bool {
        self.drawing.draw_block()
    }

    /// Adds noise to the sum of the next step in place; the result may be published.
    ///
    /// # Errors
    /// [`Error::SessionOver`] after the last step of the plan; [`Error::SensitivityExceeded`]; [`Error::ScaleOverflow`] if the
    /// float type cannot represent the noise; [`Error::NonFiniteInput`] and, for a ball, [`Error::DimensionMismatch`]. In these
    /// cases the step is not taken. After [`Error::StuckGenerator`] the contents of the sum, and anything computed from them,
    /// must not be published.
    #[inline]
    pub fn add<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &mut self,
        sum: Bounded<&mut [F], A>,
        rng: &mut R,
    ) -> Result<(), Error> {
        if self.left == 0 {
            return Err(Error::SessionOver { what: "steps", most: self.most });
        }
        release::check_sensitivity(&sum, self.noise.sensitivity())?;
        additive::check_range::<F>(self.noise.spread())?;
        let (value, assumptions) = sum.open();
        additive::check_vector(value)?;
        if let StepNoise::LaplaceBall(ball) = &self.noise {
            ball.check_dimension(value)?;
        }
        if !self.drawing.has_begun(value.len()) {
            refuse_stuck(rng)?;
        }
        assumptions.into_iter().for_each(|assumption| self.assume(assumption));
        self.left -= 1;
        self.beside_is_due = self.beside.is_some();
        self.secret &= rng.is_secret();
        match &self.noise {
            StepNoise::Gaussian(gaussian) => gaussian.add_noise_with(&mut self.drawing, value, rng),
            StepNoise::LaplaceBall(ball) => ball.add_noise(value, rng),
        }
    }

    /// Returns the sum of the next step with noise, which may be published: [`add`](Self::add) for an owned sum.
    ///
    /// # Errors
    /// Those of [`add`](Self::add); the sum is then lost.
    pub fn noisy<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &mut self,
        sum: Bounded<Vec<F>, A>,
        rng: &mut R,
    ) -> Result<Vec<F>, Error> {
        let sensitivity = sum.sensitivity();
        let (mut value, assumptions) = sum.open();
        let bounded = Bounded::with_proven_sensitivity(&mut value[..], sensitivity);
        self.add(assumptions.into_iter().fold(bounded, Bounded::assuming), rng)?;
        Ok(value)
    }

    fn assume(&mut self, assumption: Assumption) {
        if !self.assumptions.contains(&assumption) {
            self.assumptions.push(assumption);
        }
    }

    /// Makes the release beside the sum of the step that was taken last: `release` records it in the log that it is given, and its
    /// result may be published.
    ///
    /// # Privacy
    /// The release must use the records of the step only. It may depend on all earlier noisy sums, that of the step included.
    ///
    /// # Errors
    /// [`Error::NotPrepaid`] if the step has no such release left, or if `release` records anything but one release of the
    /// event that was paid for: then nothing must be published. Errors of `release`.
    pub fn beside<T, E: From<Error>, R: ReleaseRng + ?Sized>(
        &mut self,
        rng: &mut R,
        release: impl FnOnce(&mut EventLog<A>, &mut R) -> Result<T, E>,
    ) -> Result<T, E> {
        if !core::mem::replace(&mut self.beside_is_due, false) {
            return Err(Error::NotPrepaid { prepaid: 0, found: 1 }.into());
        }
        let mut own = EventLog::new();
        let output = release(&mut own, rng)?;
        if Some(own.to_event()) != self.beside {
            let found = own.entries().iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
            return Err(Error::NotPrepaid { prepaid: 1, found }.into());
        }
        own.assumptions().iter().for_each(|assumption| self.assume(assumption.clone()));
        self.secret &= own.is_private();
        Ok(output)
    }

    /// Returns the number of steps left.
    pub fn steps_left(&self) -> u64 {
        self.left
    }

    /// Returns the noise of each step.
    pub fn noise(&self) -> &StepNoise<A> {
        &self.noise
    }

    /// Ends the run and marks `output` as released. Steps that were not taken stay paid for.
    ///
    /// # Privacy
    /// `output` must be a function of noisy sums and of public numbers only; no type can enforce this. The log must be that of
    /// the start: the assumptions of the sums' sensitivities are added to it, and the mark of a generator that is not secret.
    ///
    /// # Errors
    /// [`Error::OtherLog`] for any log other than that of the start, including copies of it.
    pub fn finish<T>(self, output: T, log: &mut EventLog<A>) -> Result<Released<T>, Error> {
        if log.id() != self.paid_in {
            return Err(Error::OtherLog);
        }
        for assumption in self.assumptions {
            log.assume(assumption);
        }
        if !self.secret {
            log.mark_not_private();
        }
        Ok(Released::new(output))
    }
}

/// Returns the event of a step's sum and of the release beside it.
fn step_event(sum: DpEvent, beside: Option<DpEvent>) -> DpEvent {
    match beside {
        None => sum,
        Some(beside) => DpEvent::Composed { events: vec![sum, beside] },
    }
}

/// Returns the name of the event in which a plan wraps steps.
fn event_name(plan: &StepPlan) -> &'static str {
    match plan {
        StepPlan::PoissonSampled { .. } => "poisson-sampled",
        StepPlan::PoissonSampledReplacement { .. } => "poisson-sampled-replacement",
        StepPlan::SampledWithoutReplacement { .. } => "sampled-without-replacement",
        StepPlan::DisjointBatches { .. } | StepPlan::AllRecords { .. } => "self-composed",
    }
}

#[cfg(test)]
mod tests;
