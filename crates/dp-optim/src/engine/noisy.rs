//! The gradient estimate of training that releases every step: the batch's sum, with noise.

use dp_accountant::{Adjacency, EventLog};
use dp_losses::{Differences, Model};
use dp_mechanisms::clip::{ClippingNorm, clip_coefficient};
use dp_mechanisms::continual::{MatrixFactorisation, MatrixSession, StreamRelease};
use dp_mechanisms::steps::{NoisySteps, StepNoise, StepPlan};
use dp_mechanisms::{Bounded, L2Sensitivity, ReleaseRng, Released};
use nalgebra::{RealField, convert};

use super::gradient::GradientEstimate;
use super::step_sum::{Contributions, StepSum};
use crate::error::Error;
use crate::float::FloatKind;

/// The sum of a batch's gradients, each clipped where the loss does not bound it, with noise that was paid for when the
/// run started.
///
/// What comes out is released: iterates that move by such estimates alone may all be published. Clipping is one
/// multiplication per example, as per-example gradients are never stored.
///
/// A driver with batches of its own (empty ones, ones that come in pieces) calls [`add`](Self::add) for each piece, then
/// [`release`](Self::release); the [`GradientEstimate`] does both for a whole batch.
///
/// # Privacy
/// The noise must have been made for at least the [sensitivity](StepSum::sensitivity) of the sum:
/// [`start`](Self::start) refuses it otherwise. A model must keep the laws of [`Model`], add each example with one
/// product and one addition per coordinate, and report squared norms off by at most `dim + 4` roundings.
pub struct NoisyGradient<'r, F, M: Model<F>, A: Adjacency, R: ?Sized> {
    pass: M::Pass,
    coefficients: Vec<F>,
    squared_norms: Vec<F>,
    /// The sum of a microbatch that is not the first.
    part: Vec<F>,
    clipping: Option<Clipping>,
    sum: StepSum,
    /// Examples added up since the last release.
    added: u64,
    /// Whether the last of them were the step's first.
    first: bool,
    sensitivity: L2Sensitivity<A>,
    noise: Noise<A>,
    rng: &'r mut R,
}

/// What puts noise on the sums, paid for.
enum Noise<A: Adjacency> {
    /// Noise of its own for each.
    Steps(NoisySteps<A>),
    /// Noise that is correlated over the steps, so that it nearly cancels in sums of them.
    Stream(Box<Stream<A>>),
}

/// A stream in progress.
struct Stream<A: Adjacency> {
    session: MatrixSession<A>,
    /// What was started, as the session wants to be shown.
    log: EventLog<A>,
    last: Option<Released<StreamRelease>>,
}

impl<A: Adjacency> Noise<A> {
    /// Puts noise on a step's sum, in place.
    fn add<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &mut self,
        sum: &mut [F],
        sensitivity: L2Sensitivity<A>,
        rng: &mut R,
    ) -> Result<(), Error> {
        match self {
            Self::Steps(steps) => Ok(steps.add(Bounded::with_proven_sensitivity(sum, sensitivity), rng)?),
            Self::Stream(stream) => {
                let input = Bounded::with_proven_sensitivity(sum.to_vec(), sensitivity);
                let released = stream.session.step(input, &mut stream.log, rng)?;
                sum.iter_mut().zip(&released.get().increment).for_each(|(sum, &noisy)| *sum = convert(noisy));
                stream.last = Some(released);
                Ok(())
            }
        }
    }

    /// Declares `output` released, which is a function of noisy sums.
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

/// Two points, and what differences of gradients between them are multiplied by.
#[derive(Debug, Clone, Copy)]
pub struct Between<'p, F> {
    /// Where gradients are taken.
    pub here: &'p [F],
    /// Where the gradients are taken that are subtracted.
    pub there: &'p [F],
    /// The factor.
    pub scale: F,
}

/// Clipping in a floating-point type.
#[derive(Clone, Copy)]
struct Clipping {
    norm: ClippingNorm,
    /// The dimension, in double precision's roundings: each of single precision counts for `2^29`.
    roundings: usize,
}

impl<'r, F: RealField + Copy, M: Model<F>, A: Adjacency, R: ReleaseRng + ?Sized> NoisyGradient<'r, F, M, A, R> {
    /// Logs the cost of all steps of `plan` and begins.
    ///
    /// # Errors
    /// Noise for a smaller sensitivity than that of `sum`, a float type other than its, and what [`StepSum::sensitivity`]
    /// and [`NoisySteps::start`] refuse. Nothing is logged then.
    pub fn start(
        model: &M,
        sum: StepSum,
        noise: StepNoise<A>,
        plan: StepPlan,
        log: &mut EventLog<A>,
        rng: &'r mut R,
    ) -> Result<Self, Error> {
        sum.float.expect::<F>()?;
        let sensitivity = covered(&sum, noise.sensitivity())?;
        let noise = Noise::Steps(NoisySteps::start(noise, plan, log, rng)?);
        Ok(Self::with(model, sum, sensitivity, noise, rng))
    }

    /// Begins a stream of steps whose noise is correlated. What it costs, and all that it takes on trust, comes into the log
    /// of [`finish`](Self::finish): nothing may leave before.
    ///
    /// # Errors
    /// A stream for smaller contributions than `sum` has, a float type other than its, and what [`StepSum::sensitivity`]
    /// refuses.
    pub fn start_stream(
        model: &M,
        sum: StepSum,
        stream: &MatrixFactorisation<A>,
        rng: &'r mut R,
    ) -> Result<Self, Error> {
        sum.float.expect::<F>()?;
        let sensitivity = covered(&sum, stream.each())?;
        let mut log = EventLog::new();
        let session = stream.start(&mut log, rng);
        let noise = Noise::Stream(Box::new(Stream { session, log, last: None }));
        Ok(Self::with(model, sum, sensitivity, noise, rng))
    }

    fn with(model: &M, sum: StepSum, sensitivity: L2Sensitivity<A>, noise: Noise<A>, rng: &'r mut R) -> Self {
        let microbatch = usize::try_from(sum.microbatch.min(sum.examples)).unwrap_or(usize::MAX);
        let clipping = match sum.contributions {
            Contributions::Bounded { .. } => None,
            Contributions::Clipped(norm) => Some(Clipping {
                norm,
                roundings: match sum.float {
                    FloatKind::F64 => model.parameters(),
                    FloatKind::F32 => model.parameters().saturating_add(8).saturating_mul(1 << 29),
                },
            }),
        };
        // A plain sum has ones for coefficients, for good.
        let ones = if clipping.is_none() { microbatch.min(1 << 16) * model.blocks().len() } else { 0 };
        Self {
            pass: model.pass(microbatch.min(1 << 16)),
            coefficients: vec![F::one(); ones],
            squared_norms: Vec::new(),
            part: Vec::new(),
            clipping,
            sum,
            added: 0,
            first: true,
            sensitivity,
            noise,
            rng,
        }
    }

    /// Adds the gradients of some of the step's examples to `sum`, which must hold zeros before the first of them.
    ///
    /// # Errors
    /// More examples than the sensitivity allows for.
    pub fn add(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: M::Batch<'_>,
        examples: usize,
        sum: &mut [F],
    ) -> Result<(), Error> {
        self.count(examples)?;
        model.forward(parameters, batch, &mut self.pass);
        model.backward(parameters, batch, &mut self.pass);
        self.add_up(model, batch, examples, sum);
        Ok(())
    }

    /// Adds, for some of the step's examples, a multiple of the difference of an example's gradients at two points, each
    /// difference clipped as gradients are; `there` is a pass of the model's own.
    ///
    /// # Privacy
    /// What a record adds is bounded by the clipping norm, whatever the points and the scale: these must be public or
    /// released.
    ///
    /// # Errors
    /// As [`add`](Self::add); contributions that are not clipped, since only a loss's own gradients are bounded.
    pub fn add_differences(
        &mut self,
        model: &M,
        between: Between<'_, F>,
        there: &mut M::Pass,
        batch: M::Batch<'_>,
        examples: usize,
        sum: &mut [F],
    ) -> Result<(), Error>
    where
        M: Differences<F>,
    {
        if self.clipping.is_none() {
            let why = "differences of gradients have to be clipped";
            return Err(Error::NotProved { recipe: "noise in every step", why });
        }
        self.count(examples)?;
        for (point, pass) in [(between.here, &mut self.pass), (between.there, &mut *there)] {
            model.forward(point, batch, pass);
            model.backward(point, batch, pass);
        }
        model.difference(between.scale, there, &mut self.pass);
        self.add_up(model, batch, examples, sum);
        Ok(())
    }

    /// Counts some of the step's examples.
    fn count(&mut self, examples: usize) -> Result<(), Error> {
        let added = self.added + examples as u64;
        if examples as u64 > self.sum.microbatch || added > self.sum.examples {
            return Err(Error::Count {
                name: "examples of a step",
                value: added,
                range: "at most as many as its noise was planned for",
            });
        }
        self.first = self.added == 0;
        self.added = added;
        Ok(())
    }

    /// Adds up what the pass holds.
    fn add_up(&mut self, model: &M, batch: M::Batch<'_>, examples: usize, sum: &mut [F]) {
        let count = examples * model.blocks().len();
        match self.clipping {
            None if self.coefficients.len() < count => self.coefficients.resize(count, F::one()),
            None => {}
            Some(clipping) => self.clip(clipping, model, batch, count),
        }
        let coefficients = &self.coefficients[..count];
        if self.first {
            model.add_weighted(batch, &mut self.pass, coefficients, sum);
        } else {
            self.part.clear();
            self.part.resize(sum.len(), F::zero());
            model.add_weighted(batch, &mut self.pass, coefficients, &mut self.part);
            sum.iter_mut().zip(&self.part).for_each(|(sum, &part)| *sum += part);
        }
    }

    /// Sets the coefficient of each example: the same for all of a model's blocks.
    fn clip(&mut self, clipping: Clipping, model: &M, batch: M::Batch<'_>, count: usize) {
        let blocks = model.blocks().len().max(1);
        self.squared_norms.resize(count, F::zero());
        model.squared_norms(batch, &mut self.pass, &mut self.squared_norms);
        self.coefficients.clear();
        for norms in self.squared_norms.chunks_exact(blocks) {
            let squared = norms.iter().fold(F::zero(), |sum, &norm| sum + norm);
            let squared: f64 = squared.to_subset_unchecked();
            let coefficient = clip_coefficient(squared, clipping.norm, clipping.roundings);
            self.coefficients.extend(core::iter::repeat_n(convert::<f64, F>(coefficient), blocks));
        }
    }

    /// Puts noise on the step's sum, in place, and ends the step: an empty one too, whose sum is zero.
    ///
    /// # Errors
    /// Those of [`NoisySteps::add`] and of [`MatrixSession::step`].
    #[inline]
    pub fn release(&mut self, sum: &mut [F]) -> Result<(), Error> {
        self.added = 0;
        self.noise.add(sum, self.sensitivity, self.rng)
    }

    /// Ends the run and declares `output` released.
    ///
    /// # Privacy
    /// `output` must be computed from noisy sums and public numbers alone: an iterate, or an average of iterates, that
    /// started at a public point.
    ///
    /// # Errors
    /// Another log than that of the start.
    pub fn finish<T>(self, output: T, log: &mut EventLog<A>) -> Result<Released<T>, Error> {
        self.noise.finish(output, log)
    }
}

/// The sensitivity of the sum, which the noise must have been made for.
fn covered<A: Adjacency>(sum: &StepSum, made_for: L2Sensitivity<A>) -> Result<L2Sensitivity<A>, Error> {
    let sensitivity = L2Sensitivity::new(sum.sensitivity(A::KIND)?)?;
    let (found, built_for) = (sensitivity.get(), made_for.get());
    if found <= built_for {
        Ok(sensitivity)
    } else {
        Err(dp_mechanisms::Error::SensitivityExceeded { found, built_for }.into())
    }
}

impl<F, M, A, R> GradientEstimate<F, M> for NoisyGradient<'_, F, M, A, R>
where
    F: RealField + Copy,
    M: Model<F>,
    A: Adjacency,
    R: ReleaseRng + ?Sized,
{
    #[inline]
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: M::Batch<'_>,
        examples: usize,
        sum: &mut [F],
    ) -> Result<(), Error> {
        sum.fill(F::zero());
        self.add(model, parameters, batch, examples, sum)?;
        self.release(sum)
    }
}

#[cfg(test)]
mod tests;
