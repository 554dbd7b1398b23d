//! The gradient estimate of training that releases every step: the batch's noisy sum.

mod rows;
mod samples;
#[cfg(test)]
mod tests;

use dp_accountant::{Adjacency, EventLog};
use dp_data::{BlockBuffer, Workers};
use dp_losses::{Differences, Model};
use dp_mechanisms::clip::ClippedSum;
use dp_mechanisms::continual::{MatrixFactorisation, MatrixSession, Participation, StreamRelease};
use dp_mechanisms::steps::{NoisySteps, StepNoise, StepPlan};
use dp_mechanisms::{L2Sensitivity, ReleaseRng, Released};
use nalgebra::{RealField, convert};

use super::norm_follower::Beside;
use super::step_batches::{Batched, Driven, StepBatches};
use super::step_sum::StepSum;
use crate::error::Error;

/// The noisy sum of a batch's gradients, each clipped unless the loss bounds it. The noise was paid for when the run started.
///
/// Each estimate is released: iterates computed from such estimates alone may all be published. Clipping is one multiplication
/// per example, as per-example gradients are never stored.
///
/// Only the engine's loops drive it: [`SampledRun`](super::SampledRun) and [`Run`](super::Run) pass it their batches' law, and
/// it refuses all but the [`StepBatches`] whose cost it logged.
///
/// # Privacy
/// The noise must be calibrated to at least the [sensitivity](StepSum::sensitivity) of the sum; [`start`](Self::start) refuses
/// it otherwise. A model must satisfy the laws of [`Model`]; the rest is proved for [`ClippedSum`].
pub struct NoisyGradient<'r, F, M: Model<F>, A: Adjacency, R: ?Sized> {
    /// The batches that were paid for.
    batches: StepBatches,
    drive: Drive,
    pass: M::Pass,
    squared_norms: Vec<F>,
    sum: ClippedSum<F, A>,
    /// The maximum number of examples added at a time.
    microbatch: usize,
    /// The examples of a microbatch that a piece of the batch did not fill.
    carry: BlockBuffer<F>,
    /// The positions of the examples that count.
    positions: Vec<u32>,
    workers: Workers,
    spare: samples::Spare<F, M::Pass>,
    noise: Noise<A>,
    /// The release of each step beside its sum, paid for with the noise.
    beside: Beside<A>,
    /// The factor on the clipping norm, which follows released counts: gradients are divided by it, and noisy sums multiplied.
    norm_scale: f64,
    rng: &'r mut R,
}

/// The state of the loop: whether one with the paid batches is driving.
#[derive(Clone, Copy, PartialEq)]
enum Drive {
    Waiting,
    Running,
    /// A loop has ended or was interrupted. Passes do not start again: the records of the first batches would take part once
    /// more than was paid for.
    Ended,
}

/// The noise on the sums, already paid for.
enum Noise<A: Adjacency> {
    /// Independent noise for each sum.
    Steps(NoisySteps<A>),
    /// Noise correlated over the steps, which nearly cancels in sums of them.
    Stream(Stream<A>),
}

struct Stream<A: Adjacency> {
    session: MatrixSession<A>,
    /// The log of the stream's start, which the session checks.
    log: EventLog<A>,
    last: Option<Released<StreamRelease>>,
}

impl<A: Adjacency> Noise<A> {
    /// Returns the noisy sum of a step. Noise is added in double precision, the precision of the sum.
    fn add<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &mut self,
        sum: &mut ClippedSum<F, A>,
        rng: &mut R,
    ) -> Result<Vec<f64>, Error> {
        match self {
            Self::Steps(steps) => Ok(steps.noisy(sum.finish(), rng)?),
            Self::Stream(stream) => {
                let released = stream.session.step(sum.finish(), &mut stream.log, rng)?;
                let increment = released.get().increment.clone();
                stream.last = Some(released);
                Ok(increment)
            }
        }
    }

    /// Declares `output`, a function of noisy sums, released.
    fn finish<T>(self, output: T, log: &mut EventLog<A>) -> Result<Released<T>, Error> {
        match self {
            Self::Steps(steps) => Ok(steps.finish(output, log)?),
            Self::Stream(stream) => {
                let Stream { log: own, last, .. } = stream;
                log.record_all(own);
                let nothing = Error::Count { name: "steps", value: 0, range: "1 or more" };
                Ok(last.ok_or(nothing)?.map(|_| output))
            }
        }
    }
}

/// The error for batches other than those logged.
pub(super) const OTHER_BATCHES: Error =
    Error::NotProved { recipe: "noise in every step", why: "the batches are not those that the noise was paid for" };

/// Two points, and the factor on differences of gradients between them.
#[derive(Debug, Clone, Copy)]
pub struct Between<'p, F> {
    /// The point of the first gradients.
    pub here: &'p [F],
    /// The point of the gradients that are subtracted.
    pub there: &'p [F],
    /// The factor.
    pub scale: F,
}

impl<'r, F: RealField + Copy, M: Model<F>, A: Adjacency, R: ReleaseRng + ?Sized> NoisyGradient<'r, F, M, A, R> {
    /// Logs the cost of all steps on `batches` and starts the run.
    ///
    /// # Errors
    /// Noise calibrated to less than the sensitivity of `sum`, batches of more examples than `sum` allows for, a float type
    /// other than that of `sum`, and errors of [`StepSum::sensitivity`] and [`NoisySteps::start`]. Nothing is logged then.
    pub fn start(
        model: &M,
        batches: StepBatches,
        sum: StepSum,
        noise: StepNoise<A>,
        log: &mut EventLog<A>,
        rng: &'r mut R,
    ) -> Result<Self, Error> {
        Self::start_beside(model, batches, sum, noise, Beside::Nothing, log, rng)
    }

    /// As [`start`](Self::start), with one more release from the batch of each step.
    pub(crate) fn start_beside(
        model: &M,
        batches: StepBatches,
        sum: StepSum,
        noise: StepNoise<A>,
        beside: Beside<A>,
        log: &mut EventLog<A>,
        rng: &'r mut R,
    ) -> Result<Self, Error> {
        let started = Self::empty(model, &batches, sum, noise.sensitivity(), beside.roundings())?;
        let plan = batches.plan()?;
        let steps = match beside.event() {
            None => NoisySteps::start(noise, plan, log, rng)?,
            Some(event) => NoisySteps::start_beside(noise, event, plan, log, rng)?,
        };
        Ok(Self { beside, ..Self::with(model, batches, started, Noise::Steps(steps), rng) })
    }

    /// Starts a stream of steps with correlated noise. Its cost and its assumptions enter the log in [`finish`](Self::finish);
    /// nothing may be released before.
    ///
    /// # Errors
    /// A stream for contributions smaller than those of `sum` or for another participation, a float type other than that of
    /// `sum`, and errors of [`StepSum::sensitivity`].
    pub fn start_stream(
        model: &M,
        batches: StepBatches,
        sum: StepSum,
        stream: &MatrixFactorisation<A>,
        rng: &'r mut R,
    ) -> Result<Self, Error> {
        let started = Self::empty(model, &batches, sum, stream.each(), 0.0)?;
        let takes_part = match batches.plan()? {
            StepPlan::DisjointBatches { passes, steps_per_pass } => Participation::repeated(passes, steps_per_pass)?,
            plan => Participation::repeated(plan.steps(), 1)?,
        };
        if stream.participation() != takes_part {
            return Err(OTHER_BATCHES);
        }
        let mut log = EventLog::new();
        let session = stream.start(&mut log, rng);
        let noise = Noise::Stream(Stream { session, log, last: None });
        Ok(Self::with(model, batches, started, noise, rng))
    }

    /// Returns an empty sum and its microbatch size; the noise must be calibrated to its sensitivity.
    fn empty(
        model: &M,
        batches: &StepBatches,
        sum: StepSum,
        made_for: L2Sensitivity<A>,
        roundings: f64,
    ) -> Result<(ClippedSum<F, A>, usize), Error> {
        sum.float.expect::<F>()?;
        let most = batches.most_examples()?;
        if most > sum.examples {
            return Err(Error::Count {
                name: "examples of a step",
                value: most,
                range: "at most as many as its sum allows for",
            });
        }
        let (found, built_for) = (sum.sensitivity(A::KIND)?, made_for.get());
        if !(found <= built_for) {
            return Err(dp_mechanisms::Error::SensitivityExceeded { found, built_for }.into());
        }
        Ok((sum.start(model, roundings)?, sum.microbatch()))
    }

    fn with(
        model: &M,
        batches: StepBatches,
        (sum, microbatch): (ClippedSum<F, A>, usize),
        noise: Noise<A>,
        rng: &'r mut R,
    ) -> Self {
        Self {
            batches,
            drive: Drive::Waiting,
            pass: model.pass(microbatch.min(1 << 16)),
            squared_norms: Vec::new(),
            sum,
            microbatch,
            carry: BlockBuffer::default(),
            positions: Vec::new(),
            workers: Workers::ONE,
            spare: samples::Spare::default(),
            noise,
            beside: Beside::Nothing,
            norm_scale: 1.0,
            rng,
        }
    }

    /// Adds the gradients of at most one microbatch of the step's examples.
    ///
    /// # Errors
    /// More examples than the sensitivity allows for.
    pub(crate) fn add(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: M::Batch<'_>,
        examples: usize,
    ) -> Result<(), Error> {
        model.forward(parameters, batch, &mut self.pass);
        model.backward(parameters, batch, &mut self.pass);
        self.add_up(model, batch, examples)
    }

    /// Adds, for some of the step's examples, a multiple of the difference of the example's gradients at two points, clipped
    /// like a gradient; `there` is a separate pass of the model.
    ///
    /// # Privacy
    /// The clipping norm bounds a record's contribution for any points and scale; these must be public or released.
    ///
    /// # Errors
    /// As [`add`](Self::add); also contributions that are not clipped, since the bound holds for the loss's gradients only.
    pub(crate) fn add_differences(
        &mut self,
        model: &M,
        between: Between<'_, F>,
        there: &mut M::Pass,
        batch: M::Batch<'_>,
        examples: usize,
    ) -> Result<(), Error>
    where
        M: Differences<F>,
    {
        if !self.sum.clips() {
            let why = "differences of gradients have to be clipped";
            return Err(Error::NotProved { recipe: "noise in every step", why });
        }
        for (point, pass) in [(between.here, &mut self.pass), (between.there, &mut *there)] {
            model.forward(point, batch, pass);
            model.backward(point, batch, pass);
        }
        model.difference(between.scale, there, &mut self.pass);
        self.add_up(model, batch, examples)
    }

    fn add_up(&mut self, model: &M, batch: M::Batch<'_>, examples: usize) -> Result<(), Error> {
        let Self { pass, squared_norms, sum, .. } = self;
        set_squared_norms(model, batch, examples, sum.clips(), pass, squared_norms);
        Ok(sum.add(squared_norms, |coefficients, sum| {
            model.add_weighted_in_double(batch, pass, coefficients, sum);
        })?)
    }

    /// Returns the step's noisy sum and ends the step. An empty batch has the sum zero plus noise.
    ///
    /// # Errors
    /// Those of [`NoisySteps::add`] and of [`MatrixSession::step`].
    #[inline]
    pub(crate) fn release(&mut self, noisy_sum: &mut [F]) -> Result<(), Error> {
        let noisy = self.release_in_double()?;
        noisy_sum.iter_mut().zip(&noisy).for_each(|(out, &noisy)| *out = convert(noisy));
        self.sum.reuse(noisy);
        Ok(())
    }

    /// As [`release`](Self::release), before rounding to `F`.
    pub(crate) fn release_in_double(&mut self) -> Result<Vec<f64>, Error> {
        self.noise.add(&mut self.sum, self.rng)
    }

    /// Starts the loop with these batches, if they are those that were paid for.
    fn begin_run(&mut self, driven: &Driven<'_>) -> Result<(), Error> {
        let is_paid_for = match (&self.noise, &driven.batches) {
            (_, Batched::Passes { .. }) if self.drive == Drive::Ended => false,
            (Noise::Stream(_), Batched::Passes { one_order, .. }) => *one_order,
            _ => true,
        };
        if !(is_paid_for && driven.are(&self.batches)) {
            return Err(OTHER_BATCHES);
        }
        // Remains of a loop that was interrupted within a batch.
        self.carry.clear();
        drop(self.sum.finish());
        self.drive = Drive::Running;
        self.workers = driven.workers;
        if let Noise::Steps(steps) = &mut self.noise {
            steps.set_threads(driven.workers.into());
        }
        Ok(())
    }

    /// Ends the loop.
    fn end_run(&mut self) {
        self.drive = Drive::Ended;
    }

    /// Rejects a step outside the loop passed to [`begin`](GradientEstimate::begin), whose batch may not have been paid for.
    pub(crate) fn expect_driven(&self) -> Result<(), Error> {
        if self.drive == Drive::Running { Ok(()) } else { Err(OTHER_BATCHES) }
    }

    /// Ends the run and declares `output` released.
    ///
    /// # Privacy
    /// `output` must be computed from noisy sums and public numbers alone: an iterate, or an average of iterates, from a
    /// public start.
    ///
    /// # Errors
    /// A log other than that of the start.
    pub fn finish<T>(self, output: T, log: &mut EventLog<A>) -> Result<Released<T>, Error> {
        self.noise.finish(output, log)
    }
}

/// Sets the squared norms of the examples of a pass; without clipping, only their number.
fn set_squared_norms<F: RealField + Copy, M: Model<F>>(
    model: &M,
    batch: M::Batch<'_>,
    examples: usize,
    clips: bool,
    pass: &mut M::Pass,
    squared_norms: &mut Vec<F>,
) {
    squared_norms.resize(examples * model.blocks().len(), F::zero());
    if clips {
        model.squared_norms(batch, pass, squared_norms);
    }
}
