//! The training: epochs of a full gradient and of steps from its snapshot.

use core::marker::PhantomData;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{DpEvent, EventLog, ZeroOut};
use dp_data::{Block, Order, RowSource};
use dp_losses::{Differences, Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::{Gaussian, L2Sensitivity, LentRng, Prepaid, ReleaseRng, Released};
use nalgebra::convert;

use super::{Svrg, TwoNoises};
use crate::averaging::AveragingWeights;
use crate::engine::{
    BatchKey, BatchSizes, Batches, Between, Buffered, Control, Driven, GradientDescent, GradientEstimate, Iterate,
    NoisyGradient, Pace, Piece, Pieces, RowBatches, SampledRun, StepBatches, Visit, expect_rows,
};
use crate::error::Error;
use crate::recipes::algorithm::Run;
use crate::recipes::linear::size;
use crate::recipes::noisy_run::Batching;
use crate::recipes::problem::Admitted;
use crate::recipes::recipe::{RecordAdjacency, Summary};
use crate::schedule::StepSizes;

/// The releases of a training, as an attacker sees them.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "audit"), expect(dead_code, reason = "for audits"))]
pub enum Observation<'o, F> {
    /// The noisy sum of all records' gradients.
    Full {
        /// The point of the gradients.
        snapshot: &'o [F],
        /// The noisy sum of the gradients.
        noisy_sum: &'o [F],
    },
    /// The noisy sum of a batch's differences.
    Step {
        /// The point of the step.
        point: &'o [F],
        /// The point of the last full gradient.
        snapshot: &'o [F],
        /// D: the divisor of differences before clipping.
        reach: F,
        /// The noisy sum of the differences, in units of `reach`.
        noisy_sum: &'o [F],
    },
}

/// A callback that receives each release.
pub(super) type Observer<'o, F> = dyn FnMut(Observation<'_, F>) + 'o;

/// A training by DP-SVRG: the run with both noises, step sizes and average.
#[derive(Debug, Clone, PartialEq)]
pub struct SvrgRun {
    pub(crate) run: Svrg,
    pub(super) noises: TwoNoises,
    pub(super) noise_mode: NoiseMode,
    pub(super) steps: StepSizes,
    pub(super) weights: AveragingWeights,
}

impl Svrg {
    /// Returns a bound on a step's estimate times the divisor.
    pub(super) fn largest_sum(&self, full_std_dev: f64, std_dev: f64) -> f64 {
        let n = self.steps.n as f64;
        let of_batch = self.bound * (self.steps.sums.sum.examples as f64 + self.steps.largest_noise(std_dev));
        let of_all = self.bound * n + self.steps.largest_noise(full_std_dev);
        of_batch + self.steps.divisor / n * of_all
    }
}

impl SvrgRun {
    /// Returns the L2 sensitivity of the sum of all records' gradients, rounding included.
    ///
    /// # Errors
    /// None for a run that was planned.
    pub fn full_sensitivity(&self) -> Result<f64, Error> {
        self.run.full_sensitivity()
    }

    /// Returns the L2 sensitivity of a batch's sum of differences in units of D, rounding included: to a record's presence
    /// under Poisson sampling, otherwise to the relation's change of a record.
    ///
    /// # Errors
    /// None for a run that was planned.
    pub fn sensitivity(&self) -> Result<f64, Error> {
        self.run.steps.sensitivity()
    }

    /// Returns the noise of both kinds of sums.
    pub fn noises(&self) -> TwoNoises {
        self.noises
    }

    /// Returns the number of steps of all epochs.
    pub fn steps(&self) -> u64 {
        self.run.steps.updates()
    }

    /// Returns the divisor of a batch's sum, the mean number of records in it.
    pub fn divisor(&self) -> f64 {
        self.run.steps.divisor
    }

    /// As [`Run::train`], passing each release to `observe`.
    pub(crate) fn train_observing<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        observe: &mut Observer<'_, F>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let steps = &self.run.steps;
        // Each epoch has two sessions: the full gradient, and the steps.
        let releases = self.run.epochs.saturating_mul(2);
        if steps.sums.relation == steps.sums.relation_of_steps {
            let (weights, epochs) = self.train_under::<F, A>(source, rng, control, observe)?;
            return Ok(epochs.finish(weights, releases)?);
        }
        let (weights, epochs) = self.train_under::<F, ZeroOut>(source, rng, control, observe)?;
        Ok(epochs.finish(weights, releases)?)
    }

    fn train_under<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        observe: &mut Observer<'_, F>,
    ) -> Result<(Released<Vec<F>>, Prepaid<A>), Error> {
        let training: Training<'_, '_, '_, '_, F, A> =
            Training { svrg: self, source, rng, control, observe, relation: PhantomData };
        self.run.steps.loss.visit_model(size("dimension", self.run.steps.dim)?, training)
    }
}

impl Run for SvrgRun {
    fn event(&self) -> Result<DpEvent, Error> {
        self.run.event(self.noises.full_std_dev, self.noises.std_dev)
    }

    fn summary(&self) -> Summary {
        let TwoNoises { full_std_dev, std_dev } = self.noises;
        let (run, root) = (&self.run, (self.run.steps.parameters() as f64).sqrt());
        Summary {
            sensitivity: None,
            rows: run.steps.n.saturating_mul(run.epochs).saturating_add(run.steps.rows()),
            text: format!(
                "{} gradients of all records with noise of norm {:.4e}, {} with noise of norm {:.4e} times the bound on a \
                 record's difference, lambda {:e}",
                run.epochs,
                full_std_dev * root,
                run.steps.describe_batches(),
                std_dev * root,
                run.steps.lambda,
            ),
        }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        self.train_observing(source, rng, control, &mut |_| {})
    }
}

struct Training<'t, 'c, 'o, 'r, F, A> {
    svrg: &'t SvrgRun,
    source: &'t mut dyn RowSource<F>,
    rng: &'t mut LentRng<'r>,
    control: &'t mut Control<'c>,
    observe: &'t mut Observer<'o, F>,
    relation: PhantomData<A>,
}

impl<F: Real, A: RecordAdjacency> ModelVisitor<F> for Training<'_, '_, '_, '_, F, A> {
    type Output = Result<(Released<Vec<F>>, Prepaid<A>), Error>;

    fn visit<M>(mut self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let svrg = self.svrg;
        let run = &svrg.run;
        let zeros = || vec![F::zero(); model.parameters()];
        let averaged = !svrg.weights.is_last();
        let (mut point, mut average) = (zeros(), zeros());
        let Batching::Drawn(law) = run.steps.batching else {
            return Err(Error::NotProved { recipe: super::RECIPE, why: "its batches are drawn" });
        };
        let sampled = SampledRun {
            n: run.steps.n,
            law,
            updates: run.steps.updates(),
            divisor: run.steps.divisor,
            steps: svrg.steps.clone(),
            weights: svrg.weights.clone(),
        };
        let noise = run.steps.sums.noise::<A>(svrg.noises.std_dev, svrg.noise_mode)?;
        let mut epochs = Prepaid::<A>::new(svrg.event()?);
        let mut released = None;
        for epoch in 0..run.epochs {
            let mut full = self.full_gradient(&model, &point, epochs.log())?;
            let share: F = convert(run.steps.divisor / run.steps.n as f64);
            full.iter_mut().for_each(|entry| *entry *= share);
            // A fresh key for each epoch's batches, independent of the noise and of other epochs.
            let key = BatchKey::draw(&mut *self.rng);
            let batches = StepBatches::Drawn { n: run.steps.n, law, steps: run.epoch_steps };
            let gradient =
                NoisyGradient::start(&model, batches, run.steps.sums.sum, noise.into(), epochs.log(), &mut *self.rng)?;
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
            released = Some(estimate.gradient.finish(output, epochs.log())?);
            point = last;
        }
        let released = released.ok_or(Error::Count { name: "epochs", value: 0, range: "1 or more" })?;
        Ok((released, epochs))
    }
}

impl<F: Real, A: RecordAdjacency> Training<'_, '_, '_, '_, F, A> {
    /// Returns the noisy sum of all records' gradients at `point`.
    fn full_gradient<M>(&mut self, model: &M, point: &[F], log: &mut EventLog<A>) -> Result<Vec<F>, Error>
    where
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let Svrg { steps, full, .. } = &self.svrg.run;
        let sensitivity = L2Sensitivity::<A>::new(self.svrg.run.full_sensitivity()?)?;
        let noise = Gaussian::from_std_dev(sensitivity, self.svrg.noises.full_std_dev)?;
        let noise = noise.with_noise_mode(self.svrg.noise_mode)?;
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
    fn batch(&mut self, batch: Block<'_, F>, piece: Piece) -> Result<(), Error> {
        self.gradient.add(self.model, self.point, batch, piece.examples)?;
        self.pace.advance(piece.examples)
    }
}

/// The gradient of all records at the snapshot, corrected by a batch's differences since.
struct Corrected<'c, 'r, 'o, F, M: Model<F>, A: RecordAdjacency, R: ?Sized> {
    run: &'c Svrg,
    gradient: NoisyGradient<'r, F, M, A, R>,
    /// The model's pass at the snapshot.
    there: M::Pass,
    snapshot: &'c [F],
    /// The noisy full gradient at the snapshot, scaled to the sum of a batch.
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

    fn pieces(&self) -> Pieces {
        self.gradient.pieces()
    }

    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: Block<'_, F>,
        piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error> {
        self.gradient.expect_driven()?;
        let wide = |x: F| -> f64 { x.to_subset_unchecked() };
        let moved = parameters.iter().zip(self.snapshot).map(|(&here, &there)| wide(here) - wide(there));
        let reach = self.run.reach(moved.fold(0.0, f64::hypot));
        let (scale, reach): (F, F) = (convert(reach.recip()), convert(reach));
        let between = Between { here: parameters, there: self.snapshot, scale };
        self.gradient.add_differences_of_rows(model, between, &mut self.there, batch, piece.ends)?;
        if !piece.ends {
            return Ok(());
        }
        self.gradient.release(sum)?;
        let snapshot = self.snapshot;
        (self.observe)(Observation::Step { point: parameters, snapshot, reach, noisy_sum: sum });
        sum.iter_mut().zip(self.full).for_each(|(sum, &full)| *sum = full + reach * *sum);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::{AdjacencyKind, ReplaceOne};
    use dp_data::Examples;
    use dp_losses::{LinearModel, Logistic, LossKind};
    use dp_mechanisms::SeededRng;

    use super::*;
    use crate::MemorySource;
    use crate::averaging::Averaging;
    use crate::engine::BatchLaw;
    use crate::recipes::DpSvrg;
    use crate::recipes::noisy_run::Sampling;
    use crate::recipes::problem::Problem;
    use crate::schedule::Schedule;

    /// The noise of the steps is paid for under one law and number of batches. A loop that draws others, or more, makes no
    /// step, and neither does a call without a loop. D follows from the distance to the snapshot.
    #[test]
    fn an_estimate_is_refused_outside_the_batches_that_were_paid_for() {
        const N: u64 = 20;
        let recipe = DpSvrg {
            sampling: Sampling::FixedSize,
            batch_size: 5,
            epochs: 1,
            epoch_steps: Some(4),
            ..DpSvrg::new(LossKind::Logistic)
        };
        let run = recipe.run(&Problem::new(&recipe, N, 2, AdjacencyKind::ReplaceOne).unwrap()).unwrap();
        let model = LinearModel::new(2, Logistic);
        let examples = Examples::dense([0.6f64, -0.8].repeat(N as usize), vec![1.0; N as usize], 2).unwrap();
        let five = examples.block().slice(0..5);
        let paid = BatchLaw::FixedSize { size: 5 };
        let others = [(BatchLaw::FixedSize { size: 6 }, 4), (BatchLaw::Poisson { mean_darts: 5 }, 4), (paid, 5)];
        for (law, updates) in [(paid, 4)].into_iter().chain(others) {
            let (mut log, mut rng, mut steps) = (EventLog::<ReplaceOne>::new(), SeededRng::new(1), 0);
            let key = BatchKey::draw(&mut rng);
            let noise = run.steps.sums.noise(1.0, NoiseMode::Exact).unwrap();
            let batches = StepBatches::Drawn { n: N, law: paid, steps: 4 };
            let gradient =
                NoisyGradient::start(&model, batches, run.steps.sums.sum, noise.into(), &mut log, &mut rng).unwrap();
            let (there, start, snapshot, full) = (model.pass(0), [0.1, 0.3], [0.25, -0.5], [0.0; 2]);
            let mut observe = |step: Observation<'_, f64>| {
                let Observation::Step { point, snapshot: from, reach, .. } = step else { panic!("{step:?}") };
                assert_eq!(from, snapshot);
                let distance = (point[0] - from[0]).hypot(point[1] - from[1]);
                assert!((reach / run.reach(distance) - 1.0).abs() < 1e-15, "{reach} {distance}");
                steps += 1;
            };
            let mut estimate =
                Corrected { run: &run, gradient, there, snapshot: &snapshot, full: &full, observe: &mut observe };
            assert!(matches!(
                estimate.estimate(&model, &start, five, Piece::whole(5), &mut [0.0; 2]),
                Err(Error::NotProved { .. })
            ));

            let rule = GradientDescent { lambda: 0.0, radius: None };
            let mut iterate = Buffered::new(start.to_vec(), false, estimate, rule);
            let sampled = SampledRun {
                n: N,
                law,
                updates,
                divisor: 5.0,
                steps: Schedule::Constant { step: 0.1 }.prepare(updates).unwrap(),
                weights: Averaging::Last.prepare(updates).unwrap(),
            };
            let mut source = MemorySource::new(examples.clone(), 1.0, 1.0);
            let ran = sampled.run(&model, &mut source, &mut iterate, key, &mut Control::default());
            let (_, mut estimate) = iterate.into_parts();
            assert!(matches!(
                estimate.estimate(&model, &start, five, Piece::whole(5), &mut [0.0; 2]),
                Err(Error::NotProved { .. })
            ));
            let is_paid = (law, updates) == (paid, 4);
            assert_eq!((ran.is_ok(), steps), (is_paid, if is_paid { 4 } else { 0 }), "{law:?} {updates}");
        }
    }
}
