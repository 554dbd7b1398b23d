//! Bolt-on training compared with the same training without privacy: the cost of plan, secret order and noise.
//!
//! `cargo bench -p benches --bench bolt_on` prints criterion's figures, then processor milliseconds of both and their ratio,
//! best of 15 turns, one thread. Each private turn plans, trains and releases.

use dp_optim::recipes::Recipe;
use std::hint::black_box;

use benches::ratio::best_of;
use criterion::{BenchmarkId, Criterion};
use dp_accountant::ReplaceOne;
use dp_data::Examples;
use dp_losses::LossKind;
use dp_mechanisms::{OsSeeded, SeededRng};
use dp_optim::engine::Control;
use dp_optim::growth::Arithmetic;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::{BoltOn, Budget, Convexity, train_without_privacy};
use dp_optim::{Error, MemorySource};
use rand::{Rng, RngExt};

/// A training: name, records, whether sparse, batch size, algorithm, delta.
struct Case {
    name: &'static str,
    sparse: bool,
    batch_size: u64,
    algorithm: Convexity,
    delta: f64,
}

const CASES: [Case; 6] = [
    Case { name: "dense 200k x 50, batch 50", sparse: false, batch_size: 50, algorithm: Convexity::Convex, delta: 0.0 },
    Case {
        name: "dense, strongly convex, delta 1e-9",
        sparse: false,
        batch_size: 50,
        algorithm: Convexity::StronglyConvex,
        delta: 1e-9,
    },
    Case { name: "dense, batch 1", sparse: false, batch_size: 1, algorithm: Convexity::Convex, delta: 1e-9 },
    Case {
        name: "sparse 14 of 123, batch 50",
        sparse: true,
        batch_size: 50,
        algorithm: Convexity::Convex,
        delta: 1e-9,
    },
    Case {
        name: "sparse, strongly convex",
        sparse: true,
        batch_size: 50,
        algorithm: Convexity::StronglyConvex,
        delta: 0.0,
    },
    Case { name: "sparse, batch 1", sparse: true, batch_size: 1, algorithm: Convexity::StronglyConvex, delta: 1e-9 },
];

const LAMBDA: f64 = 1e-3;
const N: usize = 200_000;
const PASSES: u64 = 5;

fn source(sparse: bool) -> Option<MemorySource<f64>> {
    let mut rng = SeededRng::new(1);
    let targets = (0..N).map(|_| if rng.random_bool(0.5) { 1.0 } else { -1.0 }).collect();
    let examples = if sparse {
        let mut indices = Vec::with_capacity(N * 14);
        for _ in 0..N {
            // One column from each of 14 groups, as for one-hot encoded categories.
            indices.extend((0..14).map(|group| group * 8 + rng.next_u32() % 8));
        }
        let offsets = (0..=N).map(|i| i * 14).collect();
        Examples::sparse(offsets, indices, vec![0.26; N * 14], targets, 123)
    } else {
        Examples::dense((0..N * 50).map(|_| rng.random_range(-0.14..0.14)).collect(), targets, 50)
    };
    Some(MemorySource::new(examples.ok()?, 1.0, 1.0))
}

fn private(case: &Case, source: &mut MemorySource<f64>) -> Result<f64, Error> {
    let budget = Budget::new(0.5, case.delta)?;
    let recipe = match case.algorithm {
        Convexity::Convex => BoltOn::convex(LossKind::Logistic),
        Convexity::StronglyConvex => BoltOn::strongly_convex(LossKind::Logistic, LAMBDA),
    };
    let arithmetic = Arithmetic::suited_to(case.sparse, case.batch_size);
    let recipe = BoltOn { passes: PASSES, batch_size: case.batch_size, arithmetic, ..recipe };
    let plan = recipe.plan::<ReplaceOne>(N as u64, source.examples().dim() as u64, budget)?;
    let trained = plan.train::<f64>(source, &mut OsSeeded::new()?, &mut Control::default())?;
    Ok(trained.weights.get()[0])
}

fn baseline(case: &Case, source: &mut MemorySource<f64>) -> Result<f64, Error> {
    let lambda = match case.algorithm {
        Convexity::Convex => 0.0,
        Convexity::StronglyConvex => LAMBDA,
    };
    let recipe = NonPrivateDerivation {
        passes: PASSES,
        batch_size: case.batch_size,
        arithmetic: Arithmetic::suited_to(case.sparse, case.batch_size),
        ..NonPrivateDerivation::new(LossKind::Logistic, lambda)
    };
    // A fresh order, as in the private run.
    let mut key = [0; 32];
    OsSeeded::new()?.fill_bytes(&mut key);
    let trained = train_without_privacy::<f64>(&recipe, source, key, &mut Control::default())?;
    Ok(trained.expose_without_any_guarantee()[0])
}

#[allow(clippy::print_stdout)]
fn main() {
    let (Some(mut dense), Some(mut sparse)) = (source(false), source(true)) else {
        return;
    };
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let mut group = criterion.benchmark_group("bolt-on");
    for case in &CASES {
        let source = if case.sparse { &mut sparse } else { &mut dense };
        group.bench_function(BenchmarkId::new("private", case.name), |b| b.iter(|| black_box(private(case, source))));
        group.bench_function(BenchmarkId::new("baseline", case.name), |b| b.iter(|| black_box(baseline(case, source))));
    }
    group.finish();

    println!("\n{:<36}{:>12}{:>14}{:>8}", "", "private ms", "baseline ms", "ratio");
    for case in &CASES {
        let rows = if case.sparse { &mut sparse } else { &mut dense };
        if let Err(error) = private(case, rows).and_then(|_| baseline(case, rows)) {
            println!("{}: {error}", case.name);
            continue;
        }
        let shared = core::cell::RefCell::new(rows);
        let (ours, theirs) = best_of(
            15,
            || {
                black_box(private(case, &mut shared.borrow_mut()).is_ok());
            },
            || {
                black_box(baseline(case, &mut shared.borrow_mut()).is_ok());
            },
        );
        println!("{:<36}{:>12.2}{:>14.2}{:>8.3}", case.name, ours * 1e3, theirs * 1e3, ours / theirs);
    }
}
