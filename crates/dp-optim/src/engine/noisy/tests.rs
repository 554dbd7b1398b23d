use dp_accountant::certificate::NoiseMode;
use dp_accountant::{ReplaceOne, ZeroOut};
use dp_data::{Block, Examples};
use dp_losses::{LinearModel, Logistic, Real, Softmax, SoftmaxModel, Squared};
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::continual::{Factor, MatrixFactorisation, Participation};
use dp_mechanisms::{Gaussian, SeededRng};
use rand::RngExt;

use super::super::step_sum::Contributions;
use super::super::{BatchLaw, BatchSizes, GradientEstimate, Piece};
use super::rows::BatchRows;
use super::*;
use crate::float::FloatKind;

/// A standard deviation so small that double precision rounds the noise away.
const NO_NOISE: f64 = 1e-30;

/// Batches of all examples of the sum, for many steps.
fn all(sum: StepSum) -> StepBatches {
    let n = sum.examples;
    StepBatches::Passes { n, sizes: BatchSizes::Equal(n as usize), passes: 100_000 }
}

/// Starts a run with noise so small that it is rounded away.
fn start<'r, F: Real, M: Model<F>, A: Adjacency>(
    model: &M,
    sum: StepSum,
    std_dev: f64,
    rng: &'r mut SeededRng,
) -> NoisyGradient<'r, F, M, A, SeededRng> {
    let sensitivity = L2Sensitivity::new(sum.sensitivity(A::KIND).unwrap()).unwrap();
    let noise =
        Gaussian::from_std_dev(sensitivity, std_dev).unwrap().with_noise_mode(NoiseMode::Rounded).unwrap().into();
    NoisyGradient::start(model, all(sum), sum, noise, &mut EventLog::new(), rng).unwrap()
}

/// Adds the gradients of a whole batch.
fn add<F, M, A>(gradient: &mut NoisyGradient<'_, F, M, A, SeededRng>, model: &M, parameters: &[F], batch: Block<'_, F>)
where
    F: Real,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: Adjacency,
{
    gradient.add_rows(model, parameters, &BatchRows::Block(batch), &mut BlockBuffer::default(), true).unwrap();
}

fn clipped(norm: f64, examples: u64, microbatch: u64, float: FloatKind) -> StepSum {
    StepSum {
        contributions: Contributions::Clipped(ClippingNorm::new(norm).unwrap().into()),
        examples,
        microbatch,
        float,
        plain_microbatch: None,
        in_float: false,
    }
}

fn unit_rows(count: usize, dim: usize, rng: &mut SeededRng) -> Vec<f64> {
    let mut values = Vec::new();
    for _ in 0..count {
        let row: Vec<f64> = (0..dim).map(|_| rng.random_range(-1.0..1.0)).collect();
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt() * (1.0 + 1e-7);
        values.extend(row.iter().map(|x| x / norm));
    }
    values
}

fn norm(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(&a, &b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// Checks that the computed sums of neighbouring batches differ by at most the sensitivity, in either float type, with
/// gradients clipped or not, in one microbatch or several. Returns the largest ratio of difference to sensitivity.
fn neighbours<F: Real>(float: FloatKind, trials: usize) -> f64 {
    let mut rng = SeededRng::new(3);
    let mut most = 0f64;
    for trial in 0..trials {
        let (count, dim) = (rng.random_range(1..80usize), rng.random_range(1..9usize));
        let microbatch = if trial % 2 == 0 { count } else { rng.random_range(1..=count) };
        let narrow = |values: &[f64]| -> Vec<F> { values.iter().map(|&x| convert(x)).collect() };
        // Repeating the same row repeats the same rounding.
        let rows =
            if trial % 3 == 0 { unit_rows(1, dim, &mut rng).repeat(count) } else { unit_rows(count, dim, &mut rng) };
        let targets: Vec<f64> = (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
        let reach = 10f64.powf(rng.random_range(-2.0..6.0));
        let parameters: Vec<f64> = (0..dim).map(|_| reach * rng.random_range(-1.0..1.0)).collect();
        let (mut other_rows, mut other_targets) = (rows.clone(), targets.clone());
        let at = rng.random_range(0..count);
        let null = rng.random_bool(0.5);
        let replacement: Vec<f64> =
            if null { vec![0.0; dim] } else { rows[at * dim..][..dim].iter().map(|x| -x).collect() };
        other_rows[at * dim..][..dim].copy_from_slice(&replacement);
        other_targets[at] = if null { 0.0 } else { -targets[at] };
        let sum = clipped(0.7, count as u64, microbatch as u64, float);
        let model = LinearModel::<F, Squared>::new(dim, Squared);
        let parameters = narrow(&parameters);
        let computed = |rows: &[f64], targets: &[f64]| {
            let examples = Examples::dense(narrow(rows), narrow(targets), dim).unwrap();
            let mut rng = SeededRng::new(0);
            let mut gradient = start::<F, _, ReplaceOne>(&model, sum, NO_NOISE, &mut rng);
            add(&mut gradient, &model, &parameters, examples.block());
            gradient.release_in_double().unwrap()
        };
        let apart = norm(&computed(&rows, &targets), &computed(&other_rows, &other_targets));
        let relation = if null { ZeroOut::KIND } else { ReplaceOne::KIND };
        let claimed = sum.sensitivity(relation).unwrap();
        assert!(apart <= claimed, "{apart} above {claimed}: {count} of {dim}, {float:?}");
        most = most.max(apart / claimed);
    }
    most
}

/// Microbatches of a large batch are summed by any thread and added up in order: no bit depends on the number of threads, with
/// and without clipping, in either float type, with null records and with a short last microbatch.
#[test]
fn the_number_of_threads_changes_no_bit() {
    fn sums<F: Real>(float: FloatKind) {
        let (count, dim) = (5000usize, 60usize);
        let mut rng = SeededRng::new(9);
        let narrow = |values: &[f64]| -> Vec<F> { values.iter().map(|&x| convert(x)).collect() };
        let examples =
            Examples::dense(narrow(&unit_rows(count, dim, &mut rng)), narrow(&vec![1.0; count]), dim).unwrap();
        let valid: Vec<bool> = (0..count).map(|i| i % 7 != 3).collect();
        let (model, parameters) = (LinearModel::<F, Logistic>::new(dim, Logistic), narrow(&vec![0.3; dim]));
        let bounded = Contributions::Bounded { lipschitz: 1.0, difference: 2.0 };
        for sum in [clipped(0.2, count as u64, 1024, float), StepSum::whole(bounded, count as u64, float)] {
            for valid in [None, Some(&valid[..])] {
                let with = |threads: usize| {
                    let mut rng = SeededRng::new(0);
                    let mut gradient = start::<F, _, ReplaceOne>(&model, sum, NO_NOISE, &mut rng);
                    gradient.workers = Workers::new(threads.try_into().unwrap());
                    add(&mut gradient, &model, &parameters, Block { valid, ..examples.block() });
                    gradient.release_in_double().unwrap()
                };
                let one = with(1);
                assert!(norm(&one, &vec![0.0; dim]) > 1.0 && [2, 3, 8].iter().all(|&threads| with(threads) == one));
            }
        }
    }
    sums::<f64>(FloatKind::F64);
    sums::<f32>(FloatKind::F32);
}

/// Selected rows give the bits of the same rows copied as one batch, on any number of threads: dense and sparse, with null
/// records, positions that occur twice, none, one, and several microbatches.
#[test]
fn selected_rows_give_the_bits_of_copied_ones() {
    let (count, dim) = (4000usize, 40usize);
    let mut rng = SeededRng::new(9);
    let mut rows = unit_rows(count, dim, &mut rng);
    rows.chunks_exact_mut(dim).step_by(7).for_each(|row| row[3] = f64::NAN);
    let offsets = (0..=count).map(|i| i * dim).collect();
    let indices = (0..count * dim).map(|k| (k % dim) as u32).collect();
    let dense = Examples::dense(rows.clone(), vec![1.0; count], dim).unwrap();
    let sparse = Examples::sparse(offsets, indices, rows, vec![1.0; count], dim).unwrap();
    let (model, parameters) = (LinearModel::<f64, Logistic>::new(dim, Logistic), vec![0.3; dim]);
    for mut examples in [dense, sparse] {
        examples.enforce_bounds(1.0, 1.0);
        for drawn in [0, 1, 2, 900, 3500] {
            let positions: Vec<u32> = (0..drawn).map(|i| (i * i * 31 % count) as u32).collect();
            let copied = examples.gather(&positions).unwrap();
            let sum = clipped(0.2, count as u64, 1024, FloatKind::F64);
            let released = |threads: usize, selected: bool| {
                let mut rng = SeededRng::new(0);
                let mut gradient = start::<f64, _, ReplaceOne>(&model, sum, NO_NOISE, &mut rng);
                gradient.workers = Workers::new(threads.try_into().unwrap());
                if selected {
                    let selection = examples.select(&positions).unwrap();
                    let (rows, buffer) = (BatchRows::Selected(selection), &mut BlockBuffer::default());
                    gradient.add_rows(&model, &parameters, &rows, buffer, true).unwrap();
                } else {
                    add(&mut gradient, &model, &parameters, copied.block());
                }
                gradient.release_in_double().unwrap()
            };
            let expected = released(1, false);
            assert_eq!(norm(&expected, &vec![0.0; dim]) > 0.1, drawn > 1);
            assert!([1, 2, 3].iter().all(|&threads| released(threads, true) == expected), "{drawn} drawn");
        }
    }
}

/// A batch gives the same bits in any pieces and on any number of threads, with and without null records: microbatches are cut
/// from the records that count.
#[test]
fn pieces_give_the_bits_of_a_whole_batch() {
    let (count, dim) = (9000usize, 40usize);
    let mut rng = SeededRng::new(9);
    let rows = unit_rows(count, dim, &mut rng);
    let (model, parameters) = (LinearModel::<f64, Logistic>::new(dim, Logistic), vec![0.3; dim]);
    for nulls in [false, true] {
        let mut rows = rows.clone();
        if nulls {
            rows.chunks_exact_mut(dim).step_by(7).for_each(|row| row[3] = f64::NAN);
        }
        let mut examples = Examples::dense(rows, vec![1.0; count], dim).unwrap();
        examples.enforce_bounds(1.0, 1.0);
        let released = |threads: usize, pieces: &[usize]| {
            let mut rng = SeededRng::new(0);
            let sum = clipped(0.2, count as u64, 1024, FloatKind::F64);
            let mut gradient = start::<f64, _, ReplaceOne>(&model, sum, NO_NOISE, &mut rng);
            gradient.workers = Workers::new(threads.try_into().unwrap());
            let (mut start, mut lengths) = (0, pieces.iter().cycle());
            while start < count {
                let end = count.min(start + lengths.next().unwrap());
                let rows = BatchRows::Block(examples.block().slice(start..end));
                gradient.add_rows(&model, &parameters, &rows, &mut BlockBuffer::default(), end == count).unwrap();
                start = end;
            }
            gradient.release_in_double().unwrap()
        };
        let expected = released(1, &[count]);
        for pieces in [&[count][..], &[1], &[1024], &[1500, 3], &[8000, 1], &[7], &[1024, 2048, 30]] {
            assert!((1..3).all(|threads| released(threads, pieces) == expected), "{pieces:?} {nulls}");
        }
    }
}

#[test]
fn no_record_moves_a_sum_further_than_its_sensitivity() {
    assert!(neighbours::<f64>(FloatKind::F64, 3000) > 0.9999);
    assert!(neighbours::<f32>(FloatKind::F32, 3000) > 0.9999);
}

/// Sums of single-precision gradients equal those in double precision; a plain sum of them in single precision exceeds the
/// allowance thousands of times.
#[test]
fn sums_of_single_precision_are_in_double_precision() {
    let count = 5000usize;
    let model = LinearModel::<f32, Logistic>::new(1, Logistic);
    let examples = Examples::dense(vec![0.7f32; count], vec![1.0; count], 1).unwrap();
    let contributions = Contributions::Bounded { lipschitz: 1.0, difference: 2.0 };
    let sum = StepSum::whole(contributions, count as u64, FloatKind::F32);
    let mut rng = SeededRng::new(0);
    let mut gradient = start::<f32, _, ReplaceOne>(&model, sum, NO_NOISE, &mut rng);
    let mut sum_of = |count: usize| {
        add(&mut gradient, &model, &[0.1], examples.block().slice(0..count));
        gradient.release_in_double().unwrap()[0]
    };
    let (all, each) = (sum_of(count), sum_of(1));
    let allowed = 0.5 * (sum.sensitivity(ReplaceOne::KIND).unwrap() - 2.0);
    assert!((all - each * count as f64).abs() <= allowed, "{all} {each} {allowed}");
    let plain = (0..count).fold(0f32, |sum, _| sum + each as f32);
    assert!((f64::from(plain) - all).abs() > 1000.0 * allowed);
}

/// The allowance for rounding does not grow with the number of parameters. In single precision it used to take the whole norm
/// from 2^24 parameters on, and 4.7% at 795,010.
#[test]
fn clipping_leaves_the_norm_to_many_parameters() {
    for dim in [1000usize, 795_010, 1 << 24] {
        // One sparse row that is clipped, and then one as long as the norm.
        let columns: Vec<u32> = vec![0, dim as u32 / 2, dim as u32 - 1];
        let examples = Examples::sparse(vec![0, 3], columns, vec![0.6f32, 0.6, 0.5], vec![1.0], dim).unwrap();
        let model = LinearModel::<f32, Logistic>::new(dim, Logistic);
        let mut sum = clipped(0.25, 1, 1, FloatKind::F32).start::<f32, _, ReplaceOne>(&model, 0.0).unwrap();
        let (mut pass, mut norms, mut length) = (model.pass(1), [0.0f32], 0.0);
        let parameters = vec![0.0; dim];
        model.forward(&parameters, examples.block(), &mut pass);
        model.backward(&parameters, examples.block(), &mut pass);
        model.squared_norms(examples.block(), &mut pass, &mut norms);
        sum.add(&norms, |coefficients, sum| {
            model.add_weighted_in_double(examples.block(), &mut pass, coefficients, sum);
            length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        })
        .unwrap();
        assert!(length <= 0.25 && length > 0.25 * (1.0 - 1e-5), "{dim}: {length}");
    }
}

/// A model that declares rounding above an eighth of its norms is refused before anything is logged.
#[test]
fn norms_that_are_mostly_rounding_are_refused() {
    let model = LinearModel::<f64, Logistic>::new(1 << 22, Logistic);
    let sum = clipped(1.0, 50, 50, FloatKind::F64);
    assert!(sum.start::<f64, _, ReplaceOne>(&model, 0.0).is_ok());
    let refused = ClippedSum::<f32, ReplaceOne>::new(4, 1, ClippingNorm::new(1.0).unwrap(), 17e6, 50, 50);
    assert!(matches!(refused, Err(dp_mechanisms::Error::OutOfRange { .. })));
}

/// Overflowing and infinite derivatives contribute nothing; huge ones are clipped.
#[test]
fn any_gradient_is_clipped() {
    let model = LinearModel::<f64, Squared>::new(2, Squared);
    let examples = Examples::dense(vec![0.6, 0.8, 1.0, 0.0], vec![1.0, -1.0], 2).unwrap();
    let mut rng = SeededRng::new(0);
    let mut gradient = start::<f64, _, ReplaceOne>(&model, clipped(1.0, 2, 2, FloatKind::F64), NO_NOISE, &mut rng);
    for size in [0.0, 1.0, 1e30, 1e150, 1e160, 1e300, f64::MAX, f64::INFINITY, f64::NAN] {
        gradient.add(&model, &[size, -size], examples.block(), 2).unwrap();
        let total = gradient.release_in_double().unwrap();
        assert!(total[0].hypot(total[1]) <= 2.0, "{size}: {total:?}");
    }
}

#[test]
fn an_empty_step_is_noise_alone_and_too_many_examples_are_refused() {
    let model = LinearModel::<f64, Logistic>::new(2, Logistic);
    let mut rng = SeededRng::new(1);
    let mut gradient = start::<f64, _, ReplaceOne>(&model, clipped(1.0, 3, 2, FloatKind::F64), 1e-6, &mut rng);
    let mut total = [0.0; 2];
    gradient.release(&mut total).unwrap();
    assert!(total.iter().all(|&noise| noise != 0.0 && noise.abs() < 1e-4));
    let empty = Examples::<f64>::dense(Vec::new(), Vec::new(), 2).unwrap();
    assert!(
        gradient.estimate(&model, &[0.0; 2], empty.block(), Piece::whole(0), &mut total).is_err(),
        "no loop drives it"
    );
    let (n, sizes) = (3, &BatchSizes::Equal(3));
    gradient.begin(&Driven { batches: Batched::Passes { n, sizes, one_order: true }, workers: Workers::ONE }).unwrap();
    gradient.estimate(&model, &[0.0; 2], empty.block(), Piece::whole(0), &mut total).unwrap();
    assert!(total.iter().all(|&noise| noise != 0.0 && noise.abs() < 1e-4));
    let examples = Examples::dense(vec![0.5; 8], vec![1.0; 4], 2).unwrap();
    let block: Block<'_, f64> = examples.block();
    assert!(gradient.add(&model, &[0.0; 2], block.slice(0..3), 3).is_err(), "beyond a microbatch");
    gradient.add(&model, &[0.0; 2], block.slice(0..2), 2).unwrap();
    assert!(gradient.add(&model, &[0.0; 2], block.slice(2..4), 2).is_err(), "beyond a step");
    gradient.add(&model, &[0.0; 2], block.slice(2..3), 1).unwrap();
    gradient.release(&mut total).unwrap();
    gradient.add(&model, &[0.0; 2], block.slice(0..2), 2).unwrap();
}

#[test]
fn noise_for_less_than_the_sensitivity_is_refused_and_nothing_is_logged() {
    let model = LinearModel::<f64, Logistic>::new(2, Logistic);
    let sum = clipped(1.0, 50, 50, FloatKind::F64);
    let noise =
        |sensitivity| Gaussian::from_std_dev(L2Sensitivity::<ReplaceOne>::new(sensitivity).unwrap(), 1.0).unwrap();
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(1));
    for (sum, sensitivity) in [(sum, 2.0), (sum, 1.0), (StepSum { float: FloatKind::F32, ..sum }, 3.0)] {
        let started = NoisyGradient::start(&model, all(sum), sum, noise(sensitivity).into(), &mut log, &mut rng);
        assert!(started.is_err() && log.entries().is_empty());
    }
    let enough = noise(2.0 + 1e-9).into();
    let gradient = NoisyGradient::start(&model, all(sum), sum, enough, &mut log, &mut rng).unwrap();
    assert_eq!(log.entries().len(), 1);
    gradient.finish((), &mut log).unwrap();
    assert!(!log.is_private());
}

/// A null record, wherever it lies in a batch of several microbatches, leaves the bits of the sum unchanged.
#[test]
fn a_null_record_that_is_drawn_leaves_no_trace() {
    const COUNT: usize = 300;
    const DIM: usize = 5;
    const CLASSES: usize = 3;
    let model = SoftmaxModel::<f64>::new(DIM, Softmax::new(CLASSES as u32).unwrap());
    let contributions = Contributions::Clipped(ClippingNorm::new(0.7).unwrap().into());
    let sum = StepSum {
        contributions,
        examples: 1000,
        microbatch: 64,
        float: FloatKind::F64,
        plain_microbatch: None,
        in_float: false,
    };
    let (mut draws, mut rng) = (SeededRng::new(5), SeededRng::new(6));
    let mut gradient = start::<f64, _, ZeroOut>(&model, sum, NO_NOISE, &mut rng);

    let rows: Vec<f64> = (0..COUNT * DIM).map(|_| draws.random_range(-0.4..0.4)).collect();
    let targets: Vec<f64> = (0..COUNT).map(|_| f64::from(draws.random_range(0..CLASSES as u32))).collect();
    let parameters: Vec<f64> = (0..DIM * CLASSES).map(|_| draws.random_range(-3.0..3.0)).collect();
    let mut sum_of = |rows: &[f64], targets: &[f64], valid: Option<&[bool]>| {
        let examples = Examples::dense(rows.to_vec(), targets.to_vec(), DIM).unwrap();
        add(&mut gradient, &model, &parameters, Block { valid, ..examples.block() });
        gradient.release_in_double().unwrap()
    };
    let without = sum_of(&rows, &targets, None);
    for at in [0, 1, 63, 64, 150, COUNT] {
        let (mut rows, mut targets, mut valid) = (rows.clone(), targets.clone(), vec![true; COUNT]);
        rows.splice(at * DIM..at * DIM, [0.0; DIM]);
        targets.insert(at, 0.0);
        valid.insert(at, false);
        assert_eq!(sum_of(&rows, &targets, Some(&valid)), without, "{at}");
    }
    assert!(sum_of(&rows, &targets, Some(&[false; COUNT])).iter().all(|sum| sum.abs() < 1e-20));
}

/// The logged batches are those that run: batches of another law, size, number or order than paid for are refused, among them
/// batches of half of the records when one in a hundred was logged.
#[test]
fn other_batches_than_those_paid_for_are_refused() {
    let model = LinearModel::<f64, Logistic>::new(2, Logistic);
    let (n, law) = (20_000, BatchLaw::Poisson { mean_darts: 200 });
    let sum = clipped(1.0, n, 1024, FloatKind::F64);
    let sensitivity = L2Sensitivity::<ZeroOut>::new(sum.sensitivity(ZeroOut::KIND).unwrap()).unwrap();
    let noise = || Gaussian::from_std_dev(sensitivity, 1.0).unwrap().into();
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(1));
    let drawn = StepBatches::Drawn { n, law, steps: 50 };
    let mut gradient = NoisyGradient::<f64, _, _, _>::start(&model, drawn, sum, noise(), &mut log, &mut rng).unwrap();
    let sizes = &BatchSizes::Equal(200);
    let other = |n, law, steps| Driven { batches: Batched::Drawn { n, law, steps }, workers: Workers::ONE };
    for driven in [
        other(n, BatchLaw::Poisson { mean_darts: 10_000 }, 50),
        other(n, BatchLaw::FixedSize { size: 200 }, 50),
        other(n, law, 51),
        other(n - 1, law, 50),
        Driven { batches: Batched::Passes { n, sizes, one_order: true }, workers: Workers::ONE },
    ] {
        assert!(matches!(gradient.begin(&driven), Err(Error::NotProved { .. })), "{driven:?}");
    }
    gradient.begin(&other(n, law, 50)).unwrap();
    // Batches after the end of the loop do not belong to it.
    GradientEstimate::<f64, LinearModel<f64, Logistic>>::end(&mut gradient);
    let empty = Examples::<f64>::dense(Vec::new(), Vec::new(), 2).unwrap();
    assert!(gradient.estimate(&model, &[0.0; 2], empty.block(), Piece::whole(0), &mut [0.0; 2]).is_err());
    // The remaining steps are fresh draws, whenever they are made.
    gradient.begin(&other(n, law, 50)).unwrap();
    drop(gradient);

    // A sum for fewer examples than a batch may hold.
    let few = StepSum { examples: 100, ..sum };
    let (logged, drawn) = (log.entries().len(), StepBatches::Drawn { n, law, steps: 50 });
    assert!(NoisyGradient::<f64, _, _, _>::start(&model, drawn, few, noise(), &mut log, &mut rng).is_err());
    let none = StepBatches::Passes { n, sizes: BatchSizes::Equal(0), passes: 1 };
    assert!(NoisyGradient::<f64, _, _, _>::start(&model, none, sum, noise(), &mut log, &mut rng).is_err());
    assert_eq!(log.entries().len(), logged);

    let passes = StepBatches::Passes { n, sizes: BatchSizes::Equal(200), passes: 2 };
    let mut gradient = NoisyGradient::<f64, _, _, _>::start(&model, passes, sum, noise(), &mut log, &mut rng).unwrap();
    let smaller = &BatchSizes::Equal(100);
    assert!(
        gradient
            .begin(&Driven { batches: Batched::Passes { n, sizes: smaller, one_order: true }, workers: Workers::ONE })
            .is_err()
    );
    let whole = Driven { batches: Batched::Passes { n, sizes, one_order: false }, workers: Workers::ONE };
    gradient.begin(&whole).unwrap();
    // An interrupted pass does not start again: its first records would take part twice.
    GradientEstimate::<f64, LinearModel<f64, Logistic>>::end(&mut gradient);
    assert!(matches!(gradient.begin(&whole), Err(Error::NotProved { .. })));
}

/// Correlated noise requires batches in the same order in each pass: in another order a record could take part again sooner
/// than was paid for.
#[test]
fn correlated_noise_is_refused_for_passes_in_other_orders() {
    let (n, model) = (20, LinearModel::<f64, Logistic>::new(2, Logistic));
    let sum = clipped(1.0, 5, 5, FloatKind::F64);
    let each = L2Sensitivity::<ZeroOut>::new(sum.sensitivity(ZeroOut::KIND).unwrap()).unwrap();
    let stream = |participation| {
        let factor = Factor::banded_square_root(8, 4).unwrap();
        MatrixFactorisation::from_std_dev(factor, participation, each, 2, 1.0).unwrap()
    };
    let passes = || StepBatches::Passes { n, sizes: BatchSizes::Equal(5), passes: 2 };
    let (mut rng, sizes) = (SeededRng::new(1), &BatchSizes::Equal(5));
    // The participation is twice, four steps apart: neither once nor at any distance.
    for other in [Participation::repeated(1, 8), Participation::repeated(8, 1)] {
        let started = NoisyGradient::start_stream(&model, passes(), sum, &stream(other.unwrap()), &mut rng);
        assert!(matches!(started, Err(Error::NotProved { .. })));
    }
    let paid = stream(Participation::repeated(2, 4).unwrap());
    let mut gradient = NoisyGradient::start_stream(&model, passes(), sum, &paid, &mut rng).unwrap();
    let driven = |one_order| Driven { batches: Batched::Passes { n, sizes, one_order }, workers: Workers::ONE };
    assert!(matches!(gradient.begin(&driven(false)), Err(Error::NotProved { .. })));
    gradient.begin(&driven(true)).unwrap();
}
