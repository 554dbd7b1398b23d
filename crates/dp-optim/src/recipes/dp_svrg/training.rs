//! The run itself: epochs of a full gradient and of steps from there.

use core::marker::PhantomData;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{DpEvent, EventLog, ZeroOut};
use dp_data::{Block, Order, SampleSource};
use dp_losses::{Differences, Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::{Gaussian, L2Sensitivity, ReleaseRng, Released};
use nalgebra::convert;

use super::Svrg;
use crate::averaging::AveragingWeights;
use crate::engine::{
    BatchKey, BatchSizes, Batches, Between, Buffered, Control, Driven, GradientDescent, GradientEstimate, Iterate,
    NoisyGradient, Pace, RowBatches, SampledRun, StepBatches, Visit, expect_rows,
};
use crate::error::Error;
use crate::recipes::linear::size;
use crate::recipes::noisy_run::Batching;
use crate::recipes::recipe::{Expected, RecordAdjacency};
use crate::schedule::StepSizes;

/// What a training releases, as an attacker sees it.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "audit"), expect(dead_code, reason = "for audits"))]
pub(crate) enum Observation<'o, F> {
    /// The noisy sum of all records' gradients.
    Full {
        /// Where they are taken.
        snapshot: &'o [F],
        /// Gradients and noise.
        noisy_sum: &'o [F],
    },
    /// The noisy sum of a batch's differences.
    Step {
        /// Where the step is taken.
        point: &'o [F],
        /// Where the gradients of all records are known.
        snapshot: &'o [F],
        /// D: what differences are divided by before they are clipped.
        reach: F,
        /// Differences and noise, in units of `reach`.
        noisy_sum: &'o [F],
    },
}

/// Whoever looks on.
pub(super) type Observer<'o, F> = dyn FnMut(Observation<'_, F>) + 'o;

/// What a training follows beside the run: noises, step sizes, average.
pub(super) struct Following<'t> {
    pub(super) full_std_dev: f64,
    pub(super) std_dev: f64,
    pub(super) noise_mode: NoiseMode,
    pub(super) steps: &'t StepSizes,
    pub(super) weights: &'t AveragingWeights,
}

impl Svrg {
    /// What bounds a step's estimate times the divisor.
    pub(super) fn largest_sum(&self, full_std_dev: f64, std_dev: f64) -> f64 {
        let n = self.steps.n as f64;
        let of_batch = self.bound * (self.steps.sum.examples as f64 + self.steps.largest_noise(std_dev));
        let of_all = self.bound * n + self.steps.largest_noise(full_std_dev);
        of_batch + self.steps.divisor / n * of_all
    }

    /// Trains and returns the released output with the log of the planned event.
    pub(super) fn train<F, A, S, R>(
        &self,
        following: &Following<'_>,
        event: &DpEvent,
        source: &mut S,
        rng: &mut R,
        control: &mut Control<'_>,
        observe: &mut Observer<'_, F>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error>
    where
        F: Real,
        A: RecordAdjacency,
        S: SampleSource<F> + ?Sized,
        R: ReleaseRng + ?Sized,
    {
        let run = &self.steps;
        run.float.expect::<F>()?;
        let (row_norm, target_bound) = (run.row_norm, run.target_bound);
        Expected { n: run.n, dim: run.dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        let released = if run.relation == run.relation_of_steps {
            self.train_under::<F, A, S, R>(following, source, rng, control, observe)?
        } else {
            self.train_under::<F, ZeroOut, S, R>(following, source, rng, control, observe)?
        };
        // What the releases cost together is the event's to say.
        let mut log = EventLog::new();
        log.record(event.clone(), 1);
        if !rng.is_secret() {
            log.mark_not_private();
        }
        Ok((released, log))
    }

    fn train_under<F, A, S, R>(
        &self,
        following: &Following<'_>,
        source: &mut S,
        rng: &mut R,
        control: &mut Control<'_>,
        observe: &mut Observer<'_, F>,
    ) -> Result<Released<Vec<F>>, Error>
    where
        F: Real,
        A: RecordAdjacency,
        S: SampleSource<F> + ?Sized,
        R: ReleaseRng + ?Sized,
    {
        let training: Training<'_, '_, '_, F, A, S, R> =
            Training { run: self, following, source, rng, control, observe, relation: PhantomData };
        self.steps.loss.visit_model(size("dimension", self.steps.dim)?, training)
    }
}

/// Receives the model as a type.
struct Training<'t, 'c, 'o, F, A, S: ?Sized, R: ?Sized> {
    run: &'t Svrg,
    following: &'t Following<'t>,
    source: &'t mut S,
    rng: &'t mut R,
    control: &'t mut Control<'c>,
    observe: &'t mut Observer<'o, F>,
    relation: PhantomData<A>,
}

impl<F, A, S, R> ModelVisitor<F> for Training<'_, '_, '_, F, A, S, R>
where
    F: Real,
    A: RecordAdjacency,
    S: SampleSource<F> + ?Sized,
    R: ReleaseRng + ?Sized,
{
    type Output = Result<Released<Vec<F>>, Error>;

    fn visit<M>(mut self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let (run, following) = (self.run, self.following);
        let zeros = || vec![F::zero(); model.parameters()];
        let averaged = !following.weights.is_last();
        let (mut point, mut average) = (zeros(), zeros());
        let Batching::Drawn(law) = run.steps.batching else {
            return Err(Error::NotProved { recipe: super::RECIPE, why: "its batches are drawn" });
        };
        let sampled = SampledRun {
            n: run.steps.n,
            law,
            updates: run.steps.updates(),
            divisor: run.steps.divisor,
            steps: following.steps.clone(),
            weights: following.weights.clone(),
        };
        let noise = run.steps.noise::<A>(following.std_dev, following.noise_mode)?;
        // Each session's own account: what the releases cost together is the caller's to log.
        let mut log = EventLog::<A>::new();
        let mut released = None;
        for epoch in 0..run.epochs {
            let mut full = self.full_gradient(&model, &point, &mut log)?;
            let share: F = convert(run.steps.divisor / run.steps.n as f64);
            full.iter_mut().for_each(|entry| *entry *= share);
            // A key of its own for each epoch's batches: independent of the noise and of other epochs.
            let key = BatchKey::draw(&mut *self.rng);
            let batches = StepBatches::Drawn { n: run.steps.n, law, steps: run.epoch_steps };
            let gradient =
                NoisyGradient::start(&model, batches, run.steps.sum, noise.into(), &mut log, &mut *self.rng)?;
            let there = model.pass(0);
            let observe = &mut *self.observe;
            let estimate = Corrected { run, gradient, there, snapshot: &point, full: &full, observe };
            let rule = GradientDescent { lambda: run.steps.lambda, radius: run.steps.radius };
            let mut iterate = Buffered::new(point.clone(), averaged, estimate, rule);
            let before = epoch * run.epoch_steps;
            let updates = before + 1..=before + run.epoch_steps;
            sampled.run_part(updates, &model, &mut *self.source, &mut iterate, key, self.control)?;
            let last = Iterate::<F, M>::current(&mut iterate).to_vec();
            let (output, estimate) = iterate.into_parts();
            if averaged {
                average.iter_mut().zip(&output).for_each(|(sum, &part)| *sum += part);
            }
            let output = if averaged { average.clone() } else { output };
            released = Some(estimate.gradient.finish(output, &mut log)?);
            point = last;
        }
        self.source.finish()?;
        released.ok_or(Error::Count { name: "epochs", value: 0, range: "1 or more" })
    }
}

impl<F, A, S, R> Training<'_, '_, '_, F, A, S, R>
where
    F: Real,
    A: RecordAdjacency,
    S: SampleSource<F> + ?Sized,
    R: ReleaseRng + ?Sized,
{
    /// The noisy sum of all records' gradients at `point`.
    fn full_gradient<M>(&mut self, model: &M, point: &[F], log: &mut EventLog<A>) -> Result<Vec<F>, Error>
    where
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let Svrg { steps, full, .. } = self.run;
        let sensitivity = L2Sensitivity::<A>::new(self.run.full_sensitivity()?)?;
        let noise = Gaussian::from_std_dev(sensitivity, self.following.full_std_dev)?;
        let noise = noise.with_noise_mode(self.following.noise_mode)?;
        let once = StepBatches::Passes { n: steps.n, sizes: BatchSizes::Equal(size("records", steps.n)?), passes: 1 };
        let mut gradient = NoisyGradient::start(model, once, *full, noise.into(), log, &mut *self.rng)?;
        let mut sum = vec![F::zero(); model.parameters()];
        let sizes = BatchSizes::Equal(size("examples at a time", full.microbatch)?);
        let pace = Pace::quiet(self.control);
        let mut visit = FullSum { gradient: &mut gradient, model, point, pace };
        // A sum of all records has the same sensitivity in any order.
        let rows = RowBatches::new(&mut *self.source, Order::Declared).pass(0, &sizes, &mut visit)?;
        expect_rows(steps.n, rows)?;
        gradient.release(&mut sum)?;
        (self.observe)(Observation::Full { snapshot: point, noisy_sum: &sum });
        Ok(gradient.finish(sum, log)?.into_inner())
    }
}

/// Adds up the gradients of a pass.
struct FullSum<'s, 'g, 'c, F, M: Model<F>, A: RecordAdjacency, R: ?Sized> {
    gradient: &'s mut NoisyGradient<'g, F, M, A, R>,
    model: &'s M,
    point: &'s [F],
    pace: Pace<'s, 'c>,
}

impl<F, M, A, R> Visit<F, M> for FullSum<'_, '_, '_, F, M, A, R>
where
    F: Real,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: RecordAdjacency,
    R: ReleaseRng + ?Sized,
{
    fn batch(&mut self, batch: Block<'_, F>, examples: usize) -> Result<(), Error> {
        self.gradient.add(self.model, self.point, batch, examples)?;
        self.pace.advance(examples)
    }
}

/// The gradient of all records at the snapshot, and what a batch says of how it has changed since.
struct Corrected<'c, 'r, 'o, F, M: Model<F>, A: RecordAdjacency, R: ?Sized> {
    run: &'c Svrg,
    gradient: NoisyGradient<'r, F, M, A, R>,
    /// The pass at the snapshot.
    there: M::Pass,
    snapshot: &'c [F],
    /// Its noisy gradient, as the sum of a batch.
    full: &'c [F],
    observe: &'c mut Observer<'o, F>,
}

impl<F, M, A, R> GradientEstimate<F, M> for Corrected<'_, '_, '_, F, M, A, R>
where
    F: Real,
    M: Differences<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: RecordAdjacency,
    R: ReleaseRng + ?Sized,
{
    fn begin(&mut self, driven: &Driven<'_>) -> Result<(), Error> {
        self.gradient.begin(driven)
    }

    fn end(&mut self) {
        self.gradient.end();
    }

    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: Block<'_, F>,
        _examples: usize,
        sum: &mut [F],
    ) -> Result<(), Error> {
        let wide = |x: F| -> f64 { x.to_subset_unchecked() };
        let moved = parameters.iter().zip(self.snapshot).map(|(&here, &there)| wide(here) - wide(there));
        let reach = self.run.reach(moved.fold(0.0, f64::hypot));
        let (scale, reach): (F, F) = (convert(reach.recip()), convert(reach));
        let between = Between { here: parameters, there: self.snapshot, scale };
        self.gradient.add_differences_of_rows(model, between, &mut self.there, batch)?;
        self.gradient.release(sum)?;
        let snapshot = self.snapshot;
        (self.observe)(Observation::Step { point: parameters, snapshot, reach, noisy_sum: sum });
        sum.iter_mut().zip(self.full).for_each(|(sum, &full)| *sum = full + reach * *sum);
        Ok(())
    }
}
