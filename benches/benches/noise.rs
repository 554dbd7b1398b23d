//! Bulk noise: a release of each mechanism beside the raw generator (ChaCha20 and the ziggurat, plain floats).
//!
//! `cargo bench -p benches --bench noise` prints criterion's figures, then nanoseconds per coordinate and the ratio to
//! the raw generator at the same dimension, both in processor time, best of 30 turns, one thread.

use std::hint::black_box;

use benches::ratio::best_of;
use chacha20::ChaCha20Rng;
use criterion::{BenchmarkId, Criterion, Throughput};
use dp_accountant::{EventLog, ReplaceOne};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, LaplaceBall, Mechanism, OsSeeded};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

const DIMENSIONS: [usize; 4] = [1, 50, 1_000, 1_000_000];

/// What every sampler of this kind costs at least: a fresh vector of normals, scaled and added.
fn raw(dim: usize, rng: &mut ChaCha20Rng) -> Vec<f64> {
    StandardNormal.sample_iter(rng).take(dim).map(|normal: f64| 0.5 + 3.0 * normal).collect()
}

/// One release of a vector of `dim` coordinates.
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
        group.bench_function(BenchmarkId::new("laplace-ball", dim), |b| {
            b.iter(|| released(&ball, bound, dim, &mut rng));
        });
    }
    group.finish();

    println!("\n{:>9}  {:<14}{:>8}{:>8}{:>8}", "dim", "release", "ns", "raw ns", "ratio");
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
            println!("{dim:>9}  {name:<14}{ours:>8.2}{raw:>8.2}{:>8.2}", ours / raw);
        };
        line("gaussian", &mut || released(&gaussian, bound, dim, &mut rng));
        line("laplace-ball", &mut || released(&ball, bound, dim, &mut rng));
    }
}
