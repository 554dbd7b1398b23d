//! The accountant's engines on one training run: certified epsilon, its Renyi bound, delta, and the closed Gaussian.
//!
//! `cargo bench -p benches --bench accountant` prints criterion's figures; nothing is cached between evaluations.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use dp_accountant::rdp::RdpCurve;
use dp_accountant::{Delta, DpEvent, Epsilon, PrivacyCurve, gaussian};

/// Name, sampling rate, noise multiplier, steps, delta.
const RUNS: [(&str, f64, f64, u64, f64); 4] = [
    ("q=.01 s=1 T=1e4", 0.01, 1.0, 10_000, 1e-5),
    ("q=.01 s=4 T=1e4 d=1e-10", 0.01, 4.0, 10_000, 1e-10),
    ("q=1e-4 s=.8 T=1e6", 1e-4, 0.8, 1_000_000, 1e-8),
    ("q=.9 s=30 T=200", 0.9, 30.0, 200, 1e-5),
];

fn dp_sgd(sampling_rate: f64, std_dev: f64, count: u64) -> DpEvent {
    let gaussian = Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 });
    DpEvent::SelfComposed { event: Box::new(DpEvent::PoissonSampled { sampling_rate, event: gaussian }), count }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("accountant");
    for (name, rate, noise, steps, delta) in RUNS {
        let (event, Ok(delta)) = (dp_sgd(rate, noise, steps), Delta::new(delta)) else {
            continue;
        };
        group.bench_function(BenchmarkId::new("certified epsilon", name), |b| {
            b.iter(|| PrivacyCurve::new(black_box(&event)).and_then(|curve| curve.epsilon(delta)));
        });
        group.bench_function(BenchmarkId::new("certified delta at 1", name), |b| {
            b.iter(|| PrivacyCurve::new(black_box(&event)).and_then(|curve| curve.delta(1.0)));
        });
        group.bench_function(BenchmarkId::new("renyi epsilon", name), |b| {
            b.iter(|| RdpCurve::new(black_box(&event)).map(|curve| curve.epsilon(delta)));
        });
    }
    if let (Ok(epsilon), Ok(delta)) = (Epsilon::new(1.0), Delta::new(1e-6)) {
        group.bench_function("gaussian noise multiplier", |b| {
            b.iter(|| gaussian::noise_multiplier(black_box(epsilon), black_box(delta)));
        });
    }
    group.finish();
    criterion.final_summary();
}
