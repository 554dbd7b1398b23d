use dp_accountant::{ReplaceOne, ZeroOut};
use dp_data::{Block, Examples};
use dp_losses::{LinearModel, Logistic, Real, Squared};
use dp_mechanisms::{Gaussian, SeededRng};
use rand::RngExt;

use super::*;

const PLAN: StepPlan = StepPlan::AllRecords { steps: 100_000 };

/// Without noise, by adding alone, and with noise for exactly the sensitivity.
fn start<'r, F: Real, M: Model<F>, A: Adjacency>(
    model: &M,
    sum: StepSum,
    rng: &'r mut SeededRng,
) -> NoisyGradient<'r, F, M, A, SeededRng> {
    let sensitivity = L2Sensitivity::new(sum.sensitivity(A::KIND).unwrap()).unwrap();
    let noise = Gaussian::from_std_dev(sensitivity, 1e-6).unwrap().into();
    NoisyGradient::start(model, sum, noise, PLAN, &mut EventLog::new(), rng).unwrap()
}

fn clipped(norm: f64, examples: u64, microbatch: u64, float: FloatKind) -> StepSum {
    StepSum { contributions: Contributions::Clipped(ClippingNorm::new(norm).unwrap()), examples, microbatch, float }
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

fn norm<F: Real>(one: &[F], other: &[F]) -> f64 {
    let wide = |x: F| -> f64 { x.to_subset_unchecked() };
    one.iter().zip(other).map(|(&a, &b)| (wide(a) - wide(b)).powi(2)).sum::<f64>().sqrt()
}

/// The sums of neighbouring batches, as computed, are never further apart than the sensitivity, in either float type,
/// clipped or not, in one piece or in several; and rounding alone moves what no record does.
fn neighbours<F: Real>(float: FloatKind, trials: usize) -> f64 {
    let mut rng = SeededRng::new(3);
    let mut most = 0f64;
    for trial in 0..trials {
        let (count, dim) = (rng.random_range(1..80usize), rng.random_range(1..9usize));
        let microbatch = if trial % 2 == 0 { count } else { rng.random_range(1..=count) };
        let narrow = |values: &[f64]| -> Vec<F> { values.iter().map(|&x| convert(x)).collect() };
        // The same row again and again rounds the same way again and again.
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
            let mut gradient = start::<F, _, ReplaceOne>(&model, sum, &mut rng);
            let mut total = vec![F::zero(); dim];
            let block = examples.block();
            for from in (0..count).step_by(microbatch) {
                let part = from..(from + microbatch).min(count);
                gradient.add(&model, &parameters, block.slice(part.clone()), part.len(), &mut total).unwrap();
            }
            total
        };
        let apart = norm(&computed(&rows, &targets), &computed(&other_rows, &other_targets));
        let relation = if null { ZeroOut::KIND } else { ReplaceOne::KIND };
        let claimed = sum.sensitivity(relation).unwrap();
        assert!(apart <= claimed, "{apart} above {claimed}: {count} of {dim}, {float:?}");
        most = most.max(apart / claimed);
    }
    most
}

#[test]
fn no_record_moves_a_sum_further_than_its_sensitivity() {
    assert!(neighbours::<f64>(FloatKind::F64, 3000) > 0.9999);
    assert!(neighbours::<f32>(FloatKind::F32, 3000) > 0.99);
}

/// Rounding is worth its allowance: sums in single precision of many equal numbers are off by more than double precision
/// would allow for, and by less than single precision does.
#[test]
fn single_precision_needs_its_allowance() {
    let (count, dim) = (2000usize, 1usize);
    let model = LinearModel::<f32, Logistic>::new(dim, Logistic);
    let examples = Examples::dense(vec![0.7f32; count], vec![1.0; count], dim).unwrap();
    let contributions = Contributions::Bounded { lipschitz: 1.0, difference: 2.0 };
    let sum = StepSum::whole(contributions, count as u64, FloatKind::F32);
    let mut rng = SeededRng::new(0);
    let mut gradient = start::<f32, _, ReplaceOne>(&model, sum, &mut rng);
    let mut total = [0.0f32];
    gradient.add(&model, &[0.1], examples.block(), count, &mut total).unwrap();
    let each = {
        let mut one = [0.0f32];
        gradient.added = 0;
        gradient.add(&model, &[0.1], examples.block().slice(0..1), 1, &mut one).unwrap();
        f64::from(one[0])
    };
    let off = (f64::from(total[0]) - each * count as f64).abs();
    let allowed = 0.5 * (sum.sensitivity(ReplaceOne::KIND).unwrap() - 2.0);
    let in_double = StepSum { float: FloatKind::F64, ..sum }.sensitivity(ReplaceOne::KIND).unwrap() - 2.0;
    assert!(off > 100.0 * in_double && off < allowed, "{off} {allowed} {in_double}");
}

/// Derivatives that overflow, and infinite ones, contribute nothing; huge ones are clipped.
#[test]
fn any_gradient_is_clipped() {
    let model = LinearModel::<f64, Squared>::new(2, Squared);
    let examples = Examples::dense(vec![0.6, 0.8, 1.0, 0.0], vec![1.0, -1.0], 2).unwrap();
    let mut rng = SeededRng::new(0);
    let mut gradient = start::<f64, _, ReplaceOne>(&model, clipped(1.0, 2, 2, FloatKind::F64), &mut rng);
    for size in [0.0, 1.0, 1e30, 1e150, 1e160, 1e300, f64::MAX, f64::INFINITY, f64::NAN] {
        let mut total = [0.0; 2];
        gradient.added = 0;
        gradient.add(&model, &[size, -size], examples.block(), 2, &mut total).unwrap();
        assert!(total[0].hypot(total[1]) <= 2.0, "{size}: {total:?}");
    }
}

#[test]
fn an_empty_step_is_noise_alone_and_too_many_examples_are_refused() {
    let model = LinearModel::<f64, Logistic>::new(2, Logistic);
    let mut rng = SeededRng::new(1);
    let mut gradient = start::<f64, _, ReplaceOne>(&model, clipped(1.0, 3, 2, FloatKind::F64), &mut rng);
    let mut total = [0.0; 2];
    gradient.release(&mut total).unwrap();
    assert!(total.iter().all(|&noise| noise != 0.0 && noise.abs() < 1e-4));
    let empty = Examples::<f64>::dense(Vec::new(), Vec::new(), 2).unwrap();
    gradient.estimate(&model, &[0.0; 2], empty.block(), 0, &mut total).unwrap();
    assert!(total.iter().all(|&noise| noise != 0.0 && noise.abs() < 1e-4));
    let examples = Examples::dense(vec![0.5; 8], vec![1.0; 4], 2).unwrap();
    let block: Block<'_, f64> = examples.block();
    assert!(gradient.add(&model, &[0.0; 2], block.slice(0..3), 3, &mut total).is_err(), "beyond a microbatch");
    gradient.add(&model, &[0.0; 2], block.slice(0..2), 2, &mut total).unwrap();
    assert!(gradient.add(&model, &[0.0; 2], block.slice(2..4), 2, &mut total).is_err(), "beyond a step");
    gradient.add(&model, &[0.0; 2], block.slice(2..3), 1, &mut total).unwrap();
    gradient.release(&mut total).unwrap();
    gradient.add(&model, &[0.0; 2], block.slice(0..2), 2, &mut total).unwrap();
}

#[test]
fn noise_for_less_than_the_sensitivity_is_refused_and_nothing_is_logged() {
    let model = LinearModel::<f64, Logistic>::new(2, Logistic);
    let sum = clipped(1.0, 50, 50, FloatKind::F64);
    let noise =
        |sensitivity| Gaussian::from_std_dev(L2Sensitivity::<ReplaceOne>::new(sensitivity).unwrap(), 1.0).unwrap();
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(1));
    for (sum, sensitivity) in [(sum, 2.0), (sum, 1.0), (StepSum { float: FloatKind::F32, ..sum }, 3.0)] {
        let started = NoisyGradient::start(&model, sum, noise(sensitivity).into(), PLAN, &mut log, &mut rng);
        assert!(started.is_err() && log.entries().is_empty());
    }
    let enough = noise(2.0 + 1e-9).into();
    let gradient = NoisyGradient::start(&model, sum, enough, PLAN, &mut log, &mut rng).unwrap();
    assert_eq!(log.entries().len(), 1);
    gradient.finish((), &mut log).unwrap();
    assert!(!log.is_private());
}
