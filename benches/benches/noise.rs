//! Bulk noise: a release of each mechanism, exact and rounded, compared with the raw generator (ChaCha20 and the ziggurat,
//! plain floats), and the exact samplers of single numbers.
//!
//! `cargo bench -p benches --bench noise` prints criterion's figures, then nanoseconds per coordinate and the ratio to
//! the raw generator at the same dimension, both in processor time, best of 30 turns, one thread.

use core::num::NonZeroUsize;
use std::hint::black_box;
use std::time::Instant;

use benches::ratio::best_of;
use chacha20::ChaCha20Rng;
use criterion::{BenchmarkId, Criterion, Throughput};
use dp_accountant::certificate::NoiseMode;
use dp_accountant::{EventLog, ReplaceOne};
use dp_mechanisms::exact;
use dp_mechanisms::steps::{NoisySteps, StepPlan};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, LaplaceBall, Mechanism, OsSeeded};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

const DIMENSIONS: [usize; 4] = [1, 50, 1_000, 1_000_000];

/// The minimum cost of every sampler of this kind: a fresh vector of normals, scaled and added.
fn raw(dim: usize, rng: &mut ChaCha20Rng) -> Vec<f64> {
    StandardNormal.sample_iter(rng).take(dim).map(|normal: f64| 0.5 + 3.0 * normal).collect()
}

/// Releases a vector of `dim` coordinates.
fn released<M>(mechanism: &M, bound: L2Sensitivity<ReplaceOne>, dim: usize, rng: &mut OsSeeded) -> Vec<f64>
where
    M: Mechanism<Vec<f64>, ReplaceOne, Norm = dp_mechanisms::L2, Output = Vec<f64>>,
{
    let value = Bounded::with_proven_sensitivity(vec![0.5; dim], bound);
    let released = mechanism.release(value, &mut EventLog::new(), rng);
    released.map(dp_mechanisms::Released::into_inner).unwrap_or_default()
}

#[allow(clippy::print_stdout)]
fn main() {
    let (Ok(bound), Ok(mut rng)) = (L2Sensitivity::<ReplaceOne>::new(1.0), OsSeeded::new()) else {
        return;
    };
    let Ok(gaussian) = Gaussian::from_std_dev(bound, 3.0) else {
        return;
    };
    let Ok(rounded) = gaussian.with_noise_mode(NoiseMode::Rounded) else {
        return;
    };
    let mut raw_rng = ChaCha20Rng::from_seed([7; 32]);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("noise");
    for dim in DIMENSIONS {
        let Ok(ball) = LaplaceBall::from_scale(bound, 3.0, dim as u64) else {
            continue;
        };
        group.throughput(Throughput::Elements(dim as u64));
        group.bench_function(BenchmarkId::new("raw", dim), |b| b.iter(|| raw(dim, &mut raw_rng)));
        group.bench_function(BenchmarkId::new("gaussian", dim), |b| {
            b.iter(|| released(&gaussian, bound, dim, &mut rng));
        });
        group.bench_function(BenchmarkId::new("gaussian-rounded", dim), |b| {
            b.iter(|| released(&rounded, bound, dim, &mut rng));
        });
        group.bench_function(BenchmarkId::new("laplace-ball", dim), |b| {
            b.iter(|| released(&ball, bound, dim, &mut rng));
        });
    }
    group.finish();

    println!("\n{:>9}  {:<22}{:>8}{:>8}{:>8}", "dim", "release", "ns", "raw ns", "ratio");
    for dim in DIMENSIONS {
        let Ok(ball) = LaplaceBall::from_scale(bound, 3.0, dim as u64) else {
            continue;
        };
        let mut line = |name: &str, release: &mut dyn FnMut() -> Vec<f64>| {
            let repeat = (200_000 / dim).max(1);
            let (ours, baseline) = best_of(
                30,
                || (0..repeat).for_each(|_| drop(black_box(release()))),
                || (0..repeat).for_each(|_| drop(black_box(raw(dim, &mut raw_rng)))),
            );
            let nanoseconds = |seconds: f64| seconds * 1e9 / (repeat * dim) as f64;
            let (ours, raw) = (nanoseconds(ours), nanoseconds(baseline));
            println!("{dim:>9}  {name:<22}{ours:>8.2}{raw:>8.2}{:>8.2}", ours / raw);
        };
        line("gaussian", &mut || released(&gaussian, bound, dim, &mut rng));
        line("gaussian-rounded", &mut || released(&rounded, bound, dim, &mut rng));
        line("laplace-ball", &mut || released(&ball, bound, dim, &mut rng));
        if let Ok(ball) = ball.with_noise_mode(NoiseMode::Rounded) {
            line("laplace-ball-rounded", &mut || released(&ball, bound, dim, &mut rng));
        }
    }

    println!("\n{:<34}{:>8}{:>8}", "a step of 795,010 f32, wall time", "ns", "ratio");
    for (name, noise) in [("exact", gaussian), ("rounded", rounded)] {
        let plan = StepPlan::AllRecords { steps: u64::MAX };
        let Ok(mut steps) = NoisySteps::start(noise.into(), plan, &mut EventLog::new(), &mut rng) else {
            return;
        };
        let mut sum = vec![0.5f32; 795_010];
        let mut one = 0.0;
        for threads in [1, 2] {
            steps.set_threads(NonZeroUsize::MIN.saturating_add(threads - 1));
            let seconds = (0..60).fold(f64::INFINITY, |least, _| {
                let start = Instant::now();
                let bounded = Bounded::with_proven_sensitivity(&mut sum[..], bound);
                assert!(steps.add(black_box(bounded), &mut rng).is_ok());
                start.elapsed().as_secs_f64().min(least)
            });
            if threads == 1 {
                one = seconds;
            }
            let name = format!("{name}, {threads} thread{}", if threads == 1 { "" } else { "s" });
            println!("{name:<34}{:>8.2}{:>8.2}", seconds * 1e9 / sum.len() as f64, seconds / one);
        }
    }

    println!("\n{:<34}{:>8}{:>8}", "exact sampler", "ns", "ratio");
    let mut line = |name: &str, draw: &mut dyn FnMut() -> bool| {
        const REPEAT: usize = 50_000;
        let (ours, baseline) = best_of(
            30,
            || (0..REPEAT).for_each(|_| assert!(black_box(draw()))),
            || drop(black_box(raw(REPEAT, &mut raw_rng))),
        );
        println!("{name:<34}{:>8.2}{:>8.2}", ours * 1e9 / REPEAT as f64, ours / baseline);
    };
    line("bernoulli_exp(1, 3)", &mut || exact::bernoulli_exp(1, 3, &mut rng).is_ok());
    line("uniform_below(1000)", &mut || exact::uniform_below(1000, &mut rng).is_ok());
    line("discrete_laplace(1000, 1)", &mut || exact::discrete_laplace(1000, 1, &mut rng).is_ok());
    line("discrete_gaussian(1000000, 1)", &mut || exact::discrete_gaussian(1_000_000, 1, &mut rng).is_ok());
    line("discrete_gaussian(2^60, 1)", &mut || exact::discrete_gaussian(1 << 60, 1, &mut rng).is_ok());
    line("standard_normal, rounded", &mut || {
        exact::standard_normal(&mut rng).and_then(|real| real.round(1 << 30, 0.25, &mut rng)).is_ok()
    });
}
