//! The gradient estimate of training that releases every step: the batch's noisy sum.

use core::ops::Range;

use dp_accountant::{Adjacency, EventLog};
use dp_data::{Block, BlockBuffer, OutOfMemory, Selection, Workers};
use dp_losses::{Differences, Model};
use dp_mechanisms::clip::ClippedSum;
use dp_mechanisms::continual::{MatrixFactorisation, MatrixSession, Participation, StreamRelease};
use dp_mechanisms::steps::{NoisySteps, StepNoise, StepPlan};
use dp_mechanisms::{L2Sensitivity, ReleaseRng, Released};
use nalgebra::{RealField, convert};

use super::batches::{Piece, Pieces};
use super::chunks::{Divided, each_chunk, workers_for};
use super::gradient::GradientEstimate;
use super::rows::gathered;
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
    noise: Noise<A>,
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
    Stream(Box<Stream<A>>),
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
                let Stream { log: own, last, .. } = *stream;
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
        let started = Self::empty(model, &batches, sum, noise.sensitivity())?;
        let noise = Noise::Steps(NoisySteps::start(noise, batches.plan()?, log, rng)?);
        Ok(Self::with(model, batches, started, noise, rng))
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
        let started = Self::empty(model, &batches, sum, stream.each())?;
        let takes_part = match batches.plan()? {
            StepPlan::DisjointBatches { passes, steps_per_pass } => Participation::repeated(passes, steps_per_pass)?,
            plan => Participation::repeated(plan.steps(), 1)?,
        };
        if stream.participation() != takes_part {
            return Err(OTHER_BATCHES);
        }
        let mut log = EventLog::new();
        let session = stream.start(&mut log, rng);
        let noise = Noise::Stream(Box::new(Stream { session, log, last: None }));
        Ok(Self::with(model, batches, started, noise, rng))
    }

    /// Returns an empty sum and its microbatch size; the noise must be calibrated to its sensitivity.
    fn empty(
        model: &M,
        batches: &StepBatches,
        sum: StepSum,
        made_for: L2Sensitivity<A>,
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
        let microbatch = usize::try_from(sum.microbatch.min(sum.examples).max(1)).unwrap_or(usize::MAX);
        Ok((sum.start(model)?, microbatch))
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
            noise,
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

impl<F, M, A, R> NoisyGradient<'_, F, M, A, R>
where
    F: RealField + Copy,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: Adjacency,
    R: ReleaseRng + ?Sized,
{
    /// Adds the gradients of rows of the step's batch, which may be many microbatches; several threads sum those of many rows.
    /// Selected rows are copied microbatch by microbatch: into `buffer`, or by each thread into its own.
    ///
    /// Null records are omitted before the batch is cut into microbatches, so that a drawn null record leaves the same bits as
    /// one that is not drawn. Amplification by sampling requires this: with a null record in a neighbour, the sum has one
    /// distribution, not two that differ by the boundaries of the microbatches. For the same reason the boundaries do not
    /// depend on the pieces in which the batch comes.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    fn add_rows(
        &mut self,
        model: &M,
        parameters: &[F],
        rows: &BatchRows<'_, F>,
        buffer: &mut BlockBuffer<F>,
        ends: bool,
    ) -> Result<(), Error> {
        self.each_microbatch(rows, buffer, ends, |gradient, rows, buffer| {
            gradient.add_microbatches(model, parameters, rows, buffer)
        })
    }

    /// As [`add_differences`](Self::add_differences), for rows cut as in [`add_rows`](Self::add_rows).
    ///
    /// # Errors
    /// As [`add_differences`](Self::add_differences).
    pub(crate) fn add_differences_of_rows(
        &mut self,
        model: &M,
        between: Between<'_, F>,
        there: &mut M::Pass,
        rows: Block<'_, F>,
        ends: bool,
    ) -> Result<(), Error>
    where
        M: Differences<F>,
    {
        self.each_microbatch(&BatchRows::Block(rows), &mut BlockBuffer::default(), ends, |gradient, rows, buffer| {
            gradient.each_piece(rows, buffer, |gradient, piece| {
                gradient.add_differences(model, between, there, piece, piece.len())
            })
        })
    }

    /// Passes the rows that count to `add`, as whole microbatches of the step's batch. The rest is kept for the next rows of the
    /// batch; where the batch ends, it is the last microbatch.
    fn each_microbatch(
        &mut self,
        rows: &BatchRows<'_, F>,
        buffer: &mut BlockBuffer<F>,
        ends: bool,
        mut add: impl FnMut(&mut Self, &BatchRows<'_, F>, &mut BlockBuffer<F>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut positions = core::mem::take(&mut self.positions);
        let mut carry = core::mem::take(&mut self.carry);
        let (rows, microbatch) = (rows.valid(&mut positions)?, self.microbatch);
        let (length, mut start) = (rows.rows(), 0);
        if carry.rows() > 0 {
            start = length.min(microbatch - carry.rows());
            rows.part(0..start).append_to(&mut carry)?;
            if ends || carry.rows() == microbatch {
                add(self, &BatchRows::Block(carry.block(rows.dim())), buffer)?;
                carry.clear();
            }
        }
        let whole = if ends { length } else { start + (length - start) / microbatch * microbatch };
        if start < whole {
            add(self, &rows.part(start..whole), buffer)?;
        }
        if whole < length {
            rows.part(whole..length).append_to(&mut carry)?;
        }
        (self.positions, self.carry) = (positions, carry);
        Ok(())
    }

    /// Adds the gradients of rows that all count, from the start of a microbatch on.
    fn add_microbatches(
        &mut self,
        model: &M,
        parameters: &[F],
        rows: &BatchRows<'_, F>,
        buffer: &mut BlockBuffer<F>,
    ) -> Result<(), Error> {
        if rows.rows() <= self.microbatch || workers_for(rows, self.workers) == Workers::ONE {
            return self
                .each_piece(rows, buffer, |gradient, piece| gradient.add(model, parameters, piece, piece.len()));
        }
        let (microbatch, microbatches) = (self.microbatch, self.sum.microbatches());
        let buffers = || (model.pass(microbatch), Vec::new(), Vec::new(), BlockBuffer::default());
        let of_chunk = |(pass, squared_norms, coefficients, buffer): &mut (M::Pass, Vec<F>, Vec<F>, BlockBuffer<F>),
                        piece: BatchRows<'_, F>| {
            let piece = piece.block(buffer)?;
            model.forward(parameters, piece, pass);
            model.backward(parameters, piece, pass);
            set_squared_norms(model, piece, piece.len(), microbatches.clips(), pass, squared_norms);
            Ok::<_, Error>(microbatches.sum(squared_norms, coefficients, |coefficients, sum| {
                model.add_weighted_in_double(piece, pass, coefficients, sum);
            }))
        };
        let chunks = (microbatch, model.parameters());
        each_chunk(rows, chunks, self.workers, buffers, of_chunk, |part| Ok(self.sum.append(part??)?))
    }

    /// Passes rows that all count to `add`, microbatch by microbatch.
    fn each_piece(
        &mut self,
        rows: &BatchRows<'_, F>,
        buffer: &mut BlockBuffer<F>,
        mut add: impl FnMut(&mut Self, Block<'_, F>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for start in (0..rows.rows()).step_by(self.microbatch.max(1)) {
            let piece = rows.part(start..rows.rows().min(start.saturating_add(self.microbatch)));
            add(self, piece.block(buffer)?)?;
        }
        Ok(())
    }
}

/// Rows of a batch, which a model reads one microbatch at a time.
#[derive(Clone, Copy)]
enum BatchRows<'a, F> {
    Block(Block<'a, F>),
    Selected(Selection<'a, F>),
}

impl<'a, F: Copy> BatchRows<'a, F> {
    fn dim(&self) -> usize {
        match self {
            Self::Block(block) => block.dim(),
            Self::Selected(rows) => rows.dim(),
        }
    }

    /// Returns those that count; `positions` is used if some do not.
    fn valid<'b>(&self, positions: &'b mut Vec<u32>) -> Result<BatchRows<'b, F>, OutOfMemory>
    where
        'a: 'b,
    {
        match self {
            Self::Block(block) => Ok(match block.valid(positions)? {
                None => BatchRows::Block(*block),
                Some(rows) => BatchRows::Selected(rows),
            }),
            Self::Selected(rows) => rows.valid(positions).map(BatchRows::Selected),
        }
    }

    /// Returns them as a block; selected rows are copied into `buffer`.
    fn block<'b>(&'b self, buffer: &'b mut BlockBuffer<F>) -> Result<Block<'b, F>, OutOfMemory> {
        match self {
            Self::Block(block) => Ok(*block),
            Self::Selected(rows) => gathered(rows, buffer),
        }
    }

    fn append_to(&self, buffer: &mut BlockBuffer<F>) -> Result<(), OutOfMemory> {
        match self {
            Self::Block(block) => buffer.push(block),
            Self::Selected(rows) => (0..rows.len()).try_for_each(|i| buffer.push(&rows.example(i))),
        }
    }
}

impl<F: Copy + Sync> Divided for BatchRows<'_, F> {
    fn rows(&self) -> usize {
        match self {
            Self::Block(block) => block.rows(),
            Self::Selected(rows) => rows.rows(),
        }
    }

    fn entries(&self) -> usize {
        match self {
            Self::Block(block) => block.entries(),
            Self::Selected(rows) => rows.entries(),
        }
    }

    fn part(&self, range: Range<usize>) -> Self {
        match self {
            Self::Block(block) => Self::Block(block.part(range)),
            Self::Selected(rows) => Self::Selected(rows.part(range)),
        }
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

impl<F, M, A, R> GradientEstimate<F, M> for NoisyGradient<'_, F, M, A, R>
where
    F: RealField + Copy,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: Adjacency,
    R: ReleaseRng + ?Sized,
{
    fn begin(&mut self, driven: &Driven<'_>) -> Result<(), Error> {
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

    fn end(&mut self) {
        self.drive = Drive::Ended;
    }

    fn pieces(&self) -> Pieces {
        Pieces::MultiplesOf(1)
    }

    #[inline]
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: Block<'_, F>,
        piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error> {
        self.expect_driven()?;
        self.add_rows(model, parameters, &BatchRows::Block(batch), &mut BlockBuffer::default(), piece.ends)?;
        if piece.ends { self.release(sum) } else { Ok(()) }
    }

    fn estimate_selected(
        &mut self,
        model: &M,
        parameters: &[F],
        rows: &Selection<'_, F>,
        buffer: &mut BlockBuffer<F>,
        piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error> {
        self.expect_driven()?;
        self.add_rows(model, parameters, &BatchRows::Selected(*rows), buffer, piece.ends)?;
        if piece.ends { self.release(sum) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
