mod adaptive;
mod losses;

use core::ops::Range;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, EventLog, ZeroOut};
use dp_data::{Samples, SourceError, Workers};
use dp_losses::{ChoosesFrom, LinearModel, Logistic, Model, ParameterBlock};
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::{Gaussian, L2Sensitivity, SeededRng};
use nalgebra::{RealField, convert};

use super::super::{Drive, NoisyGradient};
use crate::averaging::Averaging;
use crate::engine::{
    BatchKey, BatchLaw, Batched, Buffered, Contributions, Control, Driven, GradientDescent, GradientEstimate,
    PlainGradient, SampledRun, SamplesGradient, StepBatches, StepSum,
};
use crate::error::Error;
use crate::float::FloatKind;
use crate::schedule::Schedule;

/// Vectors that are their own gradients.
struct Vectors<F> {
    values: Vec<F>,
    dim: usize,
    null: Range<u32>,
}

#[derive(Clone, Copy)]
struct Chosen<'a, F> {
    vectors: &'a Vectors<F>,
    positions: &'a [u32],
}

impl<F: Copy> Chosen<'_, F> {
    fn each(&self) -> impl Iterator<Item = &[F]> {
        let dim = self.vectors.dim;
        self.positions.iter().map(move |&position| &self.vectors.values[position as usize * dim..][..dim])
    }
}

impl<F: Sync> Samples for Vectors<F> {
    fn count(&self) -> u64 {
        (self.values.len() / self.dim) as u64
    }

    fn is_null(&self, position: u32) -> bool {
        self.null.contains(&position)
    }
}

impl<F: RealField + Copy> ChoosesFrom<F, Vectors<F>> for Inner {
    fn choose<'a>(&self, vectors: &'a Vectors<F>, positions: &'a [u32]) -> Chosen<'a, F> {
        Chosen { vectors, positions }
    }
}

/// The loss `⟨w, x⟩`.
struct Inner(Vec<ParameterBlock>);

impl Inner {
    fn new(dim: usize) -> Self {
        Self(vec![ParameterBlock { name: "weights".into(), range: 0..dim }])
    }
}

impl<F: RealField + Copy> Model<F> for Inner {
    type Batch<'a> = Chosen<'a, F>;
    type Pass = ();

    fn blocks(&self) -> &[ParameterBlock] {
        &self.0
    }

    fn pass(&self, _: usize) {}

    fn forward(&self, _: &[F], _: Chosen<'_, F>, (): &mut ()) {}

    fn losses(&self, _: Chosen<'_, F>, (): &(), _: &mut [F]) {}

    fn backward(&self, _: &[F], _: Chosen<'_, F>, (): &mut ()) {}

    fn squared_norms(&self, batch: Chosen<'_, F>, (): &mut (), out: &mut [F]) {
        for (out, vector) in out.iter_mut().zip(batch.each()) {
            *out = vector.iter().fold(F::zero(), |sum, &x| sum + x * x);
        }
    }

    fn add_weighted(&self, batch: Chosen<'_, F>, (): &mut (), coefficients: &[F], sum: &mut [F]) {
        for (&c, vector) in coefficients.iter().zip(batch.each()).filter(|(c, _)| !c.is_zero()) {
            sum.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += c * x);
        }
    }

    fn add_weighted_in_double(&self, batch: Chosen<'_, F>, (): &mut (), coefficients: &[F], sum: &mut [f64]) {
        let wide = |x: F| -> f64 { x.to_subset_unchecked() };
        for (&c, vector) in coefficients.iter().zip(batch.each()).filter(|(c, _)| !c.is_zero()) {
            sum.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += wide(c) * wide(x));
        }
    }
}

/// Returns the sums of batches as computed, with noise so small that it is rounded away.
fn sums<F: RealField + Copy>(vectors: &Vectors<F>, sum: StepSum, batches: &[&[u32]], threads: usize) -> Vec<Vec<f64>> {
    noisy_sums(vectors, sum, batches, threads, (NoiseMode::Rounded, 1e-30))
}

/// Returns the noisy sums of batches.
fn noisy_sums<F: RealField + Copy>(
    vectors: &Vectors<F>,
    sum: StepSum,
    batches: &[&[u32]],
    threads: usize,
    (mode, std_dev): (NoiseMode, f64),
) -> Vec<Vec<f64>> {
    let model = Inner::new(vectors.dim);
    let sensitivity = L2Sensitivity::<ZeroOut>::new(sum.sensitivity(AdjacencyKind::ZeroOut).unwrap()).unwrap();
    let noise = Gaussian::from_std_dev(sensitivity, std_dev).unwrap().with_noise_mode(mode).unwrap();
    let law = BatchLaw::Poisson { mean_darts: 1 };
    let paid = StepBatches::Drawn { n: vectors.count(), law, steps: 100 };
    let mut rng = SeededRng::new(1);
    let mut log = EventLog::new();
    let mut gradient =
        NoisyGradient::<F, _, ZeroOut, _>::start(&model, paid, sum, noise.into(), &mut log, &mut rng).unwrap();
    let batches_of_run = Batched::Drawn { n: vectors.count(), law, steps: 100 };
    let workers = Workers::new(threads.try_into().unwrap());
    gradient.begin_run(&Driven { batches: batches_of_run, workers }).unwrap();
    let of_batch = |batch: &&[u32]| {
        let mut sum = vec![F::zero(); vectors.dim];
        gradient.estimate(&model, &vec![F::zero(); vectors.dim], vectors, batch, &mut sum).unwrap();
        sum.iter().map(|&x| x.to_subset_unchecked()).collect()
    };
    batches.iter().map(of_batch).collect()
}

fn norm_of_difference(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// Vectors of which small ones are lost after a large one and not before it; the first is the opposite of the large ones.
fn lost_after_large(count: u32) -> Vectors<f32> {
    let value = |i: u32| match i {
        0 => -0.57,
        _ => {
            if i.is_multiple_of(32) {
                0.57
            } else {
                2.9e-8
            }
        }
    };
    let values = (0..count).flat_map(|i| [value(i); 3]).collect();
    Vectors { values, dim: 3, null: 0..0 }
}

/// A record more moves no other record to another microbatch: the difference of two sums is within the sensitivity, which allows for
/// the rounding of two microbatches and not for that of all.
#[test]
fn one_record_changes_the_rounding_of_few() {
    let vectors = lost_after_large(1 << 14);
    let norm = ClippingNorm::new(1.0).unwrap();
    let sum = StepSum::in_float(norm, 1 << 14, 32, FloatKind::F32);
    let sensitivity = sum.sensitivity(AdjacencyKind::ZeroOut).unwrap();
    assert!(sensitivity < 1.0002, "{sensitivity}");
    let all: Vec<u32> = (0..1 << 14).collect();
    let found = sums(&vectors, sum, &[&all, &all[1..]], 1);
    let apart = norm_of_difference(&found[0], &found[1]);
    let alone = 0.57f64.hypot(0.57).hypot(0.57);
    // Cut every 32 records, the second batch loses 4e-4 less.
    assert!(apart - alone < sensitivity - 1.0 && apart > alone - 1e-4, "{apart} {alone}");
}

/// Threads draw noise while they wait for gradients; it is the noise of one thread, also for an empty batch and for one part.
#[test]
fn noise_does_not_depend_on_the_number_of_threads() {
    let norm = ClippingNorm::new(0.4).unwrap();
    for (dim, mode) in
        [(70_000, NoiseMode::Exact), (300, NoiseMode::Exact), (300, NoiseMode::Rounded), (3, NoiseMode::Exact)]
    {
        let vectors = Vectors { values: (0..8 * dim as u32).map(|i| (i as f32).sin()).collect(), dim, null: 0..0 };
        let batches: [&[u32]; 4] = [&[0, 1, 2, 3, 6, 7], &[], &[4], &[1, 5, 6]];
        let sum = StepSum::in_float(norm, 8, 2, FloatKind::F32);
        let of_threads = |threads| noisy_sums(&vectors, sum, &batches, threads, (mode, 0.5));
        let of_one = of_threads(1);
        assert!(of_one[1].iter().any(|&noise| noise.abs() > 0.01));
        for threads in [2, 3, 8] {
            assert!(of_threads(threads) == of_one, "{dim} {mode:?} {threads}");
        }
    }
}

#[test]
fn no_bit_depends_on_the_number_of_threads() {
    let values: Vec<f64> = (0..3000u32).map(|i| f64::from(i).sin() / 3.0).collect();
    let single = Vectors { values: values.iter().map(|&x| x as f32).collect(), dim: 3, null: 0..0 };
    let double = Vectors { values, dim: 3, null: 0..0 };
    let positions: Vec<u32> = (0..1000).filter(|i| i % 7 != 3).collect();
    let batches = [&positions[..], &[], &positions[..1], &positions[100..]];
    let norm = ClippingNorm::new(0.4).unwrap();
    for in_float in [true, false] {
        let sum = |float| StepSum { in_float, ..StepSum::in_float(norm, 1000, 20, float) };
        let of_one = (sums(&single, sum(FloatKind::F32), &batches, 1), sums(&double, sum(FloatKind::F64), &batches, 1));
        for threads in [2, 3, 8] {
            assert_eq!(sums(&single, sum(FloatKind::F32), &batches, threads), of_one.0, "{threads}");
            assert_eq!(sums(&double, sum(FloatKind::F64), &batches, threads), of_one.1, "{threads}");
        }
        // Clipped and added by hand.
        for (batch, found) in batches.iter().zip(&of_one.1) {
            let mut expected = vec![0.0; 3];
            for &i in *batch {
                let vector = &double.values[3 * i as usize..][..3];
                let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
                let c = (0.4 / norm).min(1.0);
                expected.iter_mut().zip(vector).for_each(|(sum, x)| *sum += c * x);
            }
            assert!(norm_of_difference(&expected, found) < 1e-12, "{expected:?} {found:?}");
        }
    }
}

/// Records the positions that it is given.
#[derive(Default)]
struct Spy(Vec<Vec<u32>>);

impl SamplesGradient<f64, Inner, Vectors<f64>> for &mut Spy {
    fn estimate(
        &mut self,
        _: &Inner,
        _: &[f64],
        _: &Vectors<f64>,
        positions: &[u32],
        sum: &mut [f64],
    ) -> Result<(), Error> {
        self.0.push(positions.to_vec());
        sum.fill(1.0);
        Ok(())
    }
}

fn run(law: BatchLaw, n: u64, updates: u64) -> SampledRun {
    SampledRun {
        n,
        law,
        updates,
        divisor: law.mean_size(n).unwrap(),
        steps: Schedule::Constant { step: 0.5 }.prepare(updates).unwrap(),
        weights: Averaging::Last.prepare(updates).unwrap(),
    }
}

#[test]
fn batches_ascend_without_null_records_and_an_empty_one_makes_a_step() {
    let vectors = Vectors { values: vec![1.0; 20], dim: 2, null: 4..6 };
    let rule = GradientDescent { lambda: 0.0, radius: None };
    for (law, updates) in [(BatchLaw::FixedSize { size: 10 }, 5), (BatchLaw::Poisson { mean_darts: 1 }, 300)] {
        let run = run(law, 10, updates);
        let mut spy = Spy::default();
        let mut iterate = Buffered::new(vec![0.0; 2], false, &mut spy, rule);
        let model = Inner::new(2);
        let key = BatchKey::of([5; 32]);
        run.run_on_samples(&model, &vectors, &mut iterate, key, &mut Control::default(), &mut |_| ()).unwrap();
        let moved = iterate.parameters()[0];
        assert!((moved + 0.5 * updates as f64 / run.divisor).abs() < 1e-9, "{moved}");
        assert_eq!(spy.0.len() as u64, updates);
        for batch in &spy.0 {
            assert!(batch.is_sorted() && batch.iter().all(|&i| i < 10 && !vectors.is_null(i)));
        }
        let sizes: Vec<usize> = spy.0.iter().map(Vec::len).collect();
        match law {
            BatchLaw::FixedSize { .. } => assert!(sizes.iter().all(|&size| size == 8), "{sizes:?}"),
            BatchLaw::Poisson { .. } => assert!(sizes.iter().filter(|&&size| size == 0).count() > 60, "{sizes:?}"),
        }
    }
}

#[test]
fn only_what_was_paid_for_runs() {
    let vectors = Vectors { values: vec![0.1; 20], dim: 2, null: 0..0 };
    let (model, law) = (Inner::new(2), BatchLaw::Poisson { mean_darts: 3 });
    let sum = StepSum::in_float(ClippingNorm::new(1.0).unwrap(), 10, 4, FloatKind::F64);
    let sensitivity = L2Sensitivity::<ZeroOut>::new(sum.sensitivity(AdjacencyKind::ZeroOut).unwrap()).unwrap();
    let noise = Gaussian::from_std_dev(sensitivity, 1.0).unwrap();
    let outcome = |n, law, updates, samples: &Vectors<f64>| {
        let mut rng = SeededRng::new(1);
        let paid = StepBatches::Drawn { n: 10, law: BatchLaw::Poisson { mean_darts: 3 }, steps: 20 };
        let mut log = EventLog::new();
        let gradient =
            NoisyGradient::<f64, _, _, _>::start(&model, paid, sum, noise.into(), &mut log, &mut rng).unwrap();
        let mut iterate = Buffered::new(vec![0.0; 2], false, gradient, GradientDescent { lambda: 0.0, radius: None });
        let key = BatchKey::of([5; 32]);
        run(law, n, updates).run_on_samples(&model, samples, &mut iterate, key, &mut Control::default(), &mut |_| ())
    };
    outcome(10, law, 20, &vectors).unwrap();
    for (n, law, updates) in [(10, law, 21), (10, BatchLaw::Poisson { mean_darts: 4 }, 20)] {
        assert!(matches!(outcome(n, law, updates, &vectors), Err(Error::NotProved { .. })), "{law:?} {updates}");
    }
    let more = Vectors { values: vec![0.1; 22], dim: 2, null: 0..0 };
    let error = outcome(10, law, 20, &more).unwrap_err();
    assert!(matches!(error, Error::Source(SourceError::CountChanged { expected: 10, found: 11 })), "{error}");
    // Rows are not cut at fixed positions, and contributions without clipping have no bound in single precision.
    let model = LinearModel::<f64, Logistic>::new(2, Logistic);
    let mut rng = SeededRng::new(1);
    let paid = StepBatches::Drawn { n: 10, law, steps: 20 };
    let mut gradient =
        NoisyGradient::<f64, _, _, _>::start(&model, paid, sum, noise.into(), &mut EventLog::new(), &mut rng).unwrap();
    let batches = Batched::Drawn { n: 10, law, steps: 20 };
    let driven = Driven { batches, workers: Workers::ONE };
    assert!(matches!(GradientEstimate::begin(&mut gradient, &driven), Err(Error::NotProved { .. })));
    let bounded = StepSum { contributions: Contributions::Bounded { lipschitz: 1.0, difference: 1.0 }, ..sum };
    assert!(matches!(bounded.sensitivity(AdjacencyKind::ZeroOut), Err(Error::NotProved { .. })));
}

#[test]
fn plain_sums_are_those_of_all_samples() {
    let vectors = Vectors { values: (0..2000).map(f64::from).collect(), dim: 2, null: 0..0 };
    let model = Inner::new(2);
    let mut plain = PlainGradient::new(&model, 1);
    let mut sum = [7.0; 2];
    let positions: Vec<u32> = (0..1000).collect();
    SamplesGradient::estimate(&mut plain, &model, &[0.0; 2], &vectors, &positions, &mut sum).unwrap();
    assert_eq!(sum, [999_000.0, 1_000_000.0]);
    let none: [f64; 2] = [convert(0.0), convert(0.0)];
    SamplesGradient::estimate(&mut plain, &model, &none, &vectors, &[], &mut sum).unwrap();
    assert_eq!(sum, [0.0; 2]);
}
