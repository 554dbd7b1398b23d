//! The cost of privacy per step, as in figure 5 of the Bolt-on paper: the same training without privacy, with noise once at
//! the end (bolt-on), and with noise in every step (SCS13 with both laws; BST14 and DP-SGD with random batches; both noise
//! modes).
//!
//! `cargo bench -p benches --bench overhead` prints criterion's figures for whole passes, then two tables, in processor time,
//! best of several turns, one thread, 50 features.
//!
//! 1. From memory: nanoseconds per step. A step without privacy on one row takes less time than a single draw of noise, so
//!    noise in every step is compared with that step plus `d` draws at the bulk cost of a draw, in a vector of a million
//!    coordinates, measured in the same run.
//! 2. Rows streamed from a spool, as the paper streams them from a database: the ratio of private to non-private.

use std::cell::RefCell;
use std::hint::black_box;
use std::io::Write;

use benches::ratio::best_of;
use criterion::{BenchmarkId, Criterion};
use dp_accountant::certificate::NoiseMode;
use dp_accountant::{EventLog, ReplaceOne};
use dp_data::read::{CsvOptions, Input};
use dp_data::spool::{Held, Room};
use dp_data::{
    DataError, Description, Encoder, Encoding, Examples, Order, PassRequest, RowSource, RowStream, Schema, SourceError,
};
use dp_losses::LossKind;
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, LaplaceBall, Mechanism, OsSeeded, SeededRng};
use dp_optim::engine::Control;
use dp_optim::growth::Arithmetic;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::scs13::StepLaw;
use dp_optim::recipes::{
    AnyPlan, AnyRecipe, BoltOn, Bst14, Budget, DpSgd, Plan, Planned, Recipe, Sampling, Scs13, train_without_privacy,
};
use dp_optim::{Error, MemorySource, Schedule};
use rand::RngExt;

const DIM: usize = 50;
const ROWS: usize = 20_000;
const BATCHES: [u64; 4] = [1, 10, 50, 500];
/// The laws and modes of noise in every step.
const FORMS: [(&str, StepLaw, NoiseMode); 4] = [
    ("gaussian, exact", StepLaw::Gaussian, NoiseMode::Exact),
    ("gaussian, rounded", StepLaw::Gaussian, NoiseMode::Rounded),
    ("ball, exact", StepLaw::LaplaceBall, NoiseMode::Exact),
    ("ball, rounded", StepLaw::LaplaceBall, NoiseMode::Rounded),
];
const STEP: Schedule = Schedule::Constant { step: 0.01 };
const TURNS: usize = 9;

fn budget() -> Result<Budget, Error> {
    Ok(Budget::new(1.0, 1e-6)?)
}

/// One pass without privacy.
fn without_privacy<S: RowSource<f64>>(batch_size: u64, source: &mut S) -> Result<f64, Error> {
    let recipe = NonPrivateDerivation {
        passes: 1,
        batch_size,
        schedule: Some(STEP),
        arithmetic: Arithmetic::suited_to(false, batch_size),
        ..NonPrivateDerivation::new(LossKind::Logistic, 0.0)
    };
    let trained = train_without_privacy::<f64>(&recipe, source, [7; 32], &mut Control::default())?;
    Ok(trained.expose_without_any_guarantee()[0])
}

fn bolt_on_plan(n: u64, batch_size: u64) -> Result<Plan<BoltOn, ReplaceOne>, Error> {
    let arithmetic = Arithmetic::suited_to(false, batch_size);
    let recipe = BoltOn {
        passes: 1,
        batch_size,
        arithmetic,
        declared_order: true,
        schedule: Some(STEP),
        ..BoltOn::convex(LossKind::Logistic)
    };
    recipe.plan(n, DIM as u64, budget()?)
}

fn scs13_plan(n: u64, batch_size: u64, law: StepLaw, noise_mode: NoiseMode) -> Result<Plan<Scs13, ReplaceOne>, Error> {
    let schedule = Some(STEP);
    let declared_order = true;
    let recipe =
        Scs13 { passes: 1, batch_size, law, noise_mode, schedule, declared_order, ..Scs13::new(LossKind::Logistic) };
    recipe.plan(n, DIM as u64, budget()?)
}

/// Returns the plans of algorithms with random batches: BST14 with batches of fixed size, for which finding the noise takes
/// no time, and DP-SGD.
fn sampled_plans(n: u64, batch_size: u64, mode: NoiseMode) -> Result<Vec<(&'static str, AnyPlan<ReplaceOne>)>, Error> {
    let bst14 = Bst14 {
        passes: 1,
        batch_size,
        sampling: Sampling::FixedSize,
        noise_mode: mode,
        ..Bst14::convex(LossKind::Logistic, 10.0)
    };
    let dp_sgd = DpSgd {
        passes: 1,
        batch_size,
        sampling: Sampling::Poisson,
        schedule: Some(STEP),
        noise_mode: mode,
        ..DpSgd::new(LossKind::Logistic)
    };
    let recipes = [("bst14 fixed size", AnyRecipe::from(bst14)), ("dp-sgd poisson", AnyRecipe::from(dp_sgd))];
    let plan = |(name, recipe): (_, AnyRecipe)| Ok((name, recipe.plan_copies(n, DIM as u64, budget()?, 1)?));
    recipes.into_iter().map(plan).collect()
}

fn memory() -> Result<MemorySource<f64>, Box<dyn std::error::Error>> {
    let mut rng = SeededRng::new(1);
    let targets = (0..ROWS).map(|_| if rng.random_bool(0.5) { 1.0 } else { -1.0 }).collect();
    let values = (0..ROWS * DIM).map(|_| rng.random_range(-0.14..0.14)).collect();
    Ok(MemorySource::new(Examples::dense(values, targets, DIM)?, 1.0, 1.0))
}

/// Returns the nanoseconds of one draw in a vector of a million coordinates.
fn bulk(law: StepLaw, mode: NoiseMode) -> Result<f64, Error> {
    const COUNT: usize = 1_000_000;
    let bound = L2Sensitivity::<ReplaceOne>::new(1.0)?;
    let gaussian = Gaussian::from_std_dev(bound, 3.0)?.with_noise_mode(mode)?;
    let ball = LaplaceBall::from_scale(bound, 3.0, COUNT as u64)?.with_noise_mode(mode)?;
    let mut rng = OsSeeded::new()?;
    let mut draw = || {
        let value = Bounded::with_proven_sensitivity(vec![0.5; COUNT], bound);
        let released = match law {
            StepLaw::LaplaceBall => ball.release(value, &mut EventLog::new(), &mut rng),
            StepLaw::Gaussian | StepLaw::Least => gaussian.release(value, &mut EventLog::new(), &mut rng),
        };
        black_box(released.is_ok());
    };
    let (seconds, _) = best_of(7, &mut draw, || {});
    Ok(seconds * 1e9 / COUNT as f64)
}

/// A wrapper that passes over a source in its own order, ignoring the requested order.
struct InOrder<S>(S);

impl<S: RowSource<f64>> RowSource<f64> for InOrder<S> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.0.describe()
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.0.open_pass(&PassRequest { order: Order::Declared, ..*request })
    }
}

#[allow(clippy::print_stdout)]
fn from_memory(criterion: &mut Criterion) -> Result<(), Box<dyn std::error::Error>> {
    let mut source = InOrder(memory()?);
    let n = ROWS as u64;
    let mut group = criterion.benchmark_group("overhead");
    for batch_size in BATCHES {
        group.bench_function(BenchmarkId::new("without privacy", batch_size), |b| {
            b.iter(|| black_box(without_privacy(batch_size, &mut source).is_ok()));
        });
        for (name, law, mode) in FORMS {
            let plan = scs13_plan(n, batch_size, law, mode)?;
            let mut rng = OsSeeded::new()?;
            group.bench_function(BenchmarkId::new(name, batch_size), |b| {
                b.iter(|| plan.train::<f64>(&mut source, &mut rng, &mut Control::default()).is_ok());
            });
        }
    }
    group.finish();

    println!("\nfrom memory, d = {DIM}, nanoseconds per step; the batches of bst14 and dp-sgd are gathered at random");
    println!("{:>5}  {:<20}{:>10}{:>12}{:>8}{:>10}{:>12}", "b", "", "private", "without", "ratio", "draw", "overhead");
    let source = RefCell::new(source);
    for batch_size in BATCHES {
        let steps = n.div_ceil(batch_size) as f64;
        let base = || {
            black_box(without_privacy(batch_size, &mut *source.borrow_mut()).is_ok());
        };
        let plan = bolt_on_plan(n, batch_size)?;
        let mut rng = OsSeeded::new()?;
        let bolt_on = || {
            black_box(plan.train::<f64>(&mut *source.borrow_mut(), &mut rng, &mut Control::default()).is_ok());
        };
        let (ours, theirs) = best_of(TURNS, bolt_on, base);
        let (ours, theirs) = (ours * 1e9 / steps, theirs * 1e9 / steps);
        println!("{batch_size:>5}  {:<20}{ours:>10.1}{theirs:>12.1}{:>8.3}", "bolt-on", ours / theirs);
        for (name, law, mode) in FORMS {
            let plan = scs13_plan(n, batch_size, law, mode)?;
            let mut rng = OsSeeded::new()?;
            let train = || {
                black_box(plan.train::<f64>(&mut *source.borrow_mut(), &mut rng, &mut Control::default()).is_ok());
            };
            let (ours, theirs) = best_of(TURNS, train, base);
            let (ours, theirs) = (ours * 1e9 / steps, theirs * 1e9 / steps);
            let draw = bulk(law, mode)?;
            println!(
                "{batch_size:>5}  scs13 {name:<20}{ours:>4.0}{theirs:>12.1}{:>8.2}{draw:>10.2}{:>12.3}",
                ours / theirs,
                ours / (theirs + DIM as f64 * draw)
            );
        }
        for (noise, mode) in [("exact", NoiseMode::Exact), ("rounded", NoiseMode::Rounded)] {
            let draw = bulk(StepLaw::Gaussian, mode)?;
            for (name, plan) in sampled_plans(n, batch_size, mode)? {
                let mut rng = OsSeeded::new()?;
                let mut fine = true;
                let train = || {
                    fine &= plan.train::<f64>(&mut source.borrow_mut().0, &mut rng, &mut Control::default()).is_ok();
                };
                let (ours, theirs) = best_of(TURNS, train, base);
                let (ours, theirs) = (ours * 1e9 / steps, theirs * 1e9 / steps);
                let said = if fine { "" } else { " (failed)" };
                let name = format!("{name}, {noise}{said}");
                println!(
                    "{batch_size:>5}  {name:<26}{ours:>4.0}{theirs:>12.1}{:>8.2}{draw:>10.2}{:>12.3}",
                    ours / theirs,
                    ours / (theirs + DIM as f64 * draw)
                );
            }
        }
    }
    Ok(())
}

/// Writes a CSV file with as many rows, numbers in [0, 1] with six digits.
fn file() -> Result<std::path::PathBuf, std::io::Error> {
    let path = std::env::temp_dir().join(format!("overhead-{}.csv", std::process::id()));
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path)?);
    let names: Vec<String> = (0..DIM).map(|j| format!("x{j}")).collect();
    writeln!(out, "{},y", names.join(","))?;
    let mut rng = SeededRng::new(2);
    for i in 0..ROWS {
        for _ in 0..DIM {
            write!(out, "{:.6},", rng.random_range(0.0..1.0f64))?;
        }
        writeln!(out, "{}", if i % 2 == 0 { "yes" } else { "no" })?;
    }
    out.flush()?;
    Ok(path)
}

fn schema() -> Result<Schema, DataError> {
    let mut text = String::from("label = { column = 'y', positive = 'yes', negative = 'no' }\n");
    for j in 0..DIM - 1 {
        text.push_str(&format!("columns.x{j} = {{ type = 'numeric', min = 0, max = 1 }}\n"));
    }
    Schema::parse("overhead.toml", &text)
}

#[allow(clippy::print_stdout)]
fn from_a_file(path: &str) -> Result<(), Box<dyn std::error::Error>> {
    // 49 columns and the intercept.
    let encoder = Encoder::new(&schema()?, Encoding::UNIT_ROWS)?;
    let room = Room { memory: 0, ..Room::default() };
    let (Held::Spool(spool), _) = Held::<f64>::read(Input::open(path)?, &encoder, &CsvOptions::default(), &room)?
    else {
        return Err("the rows are in memory".into());
    };
    let source = RefCell::new(InOrder(*spool));
    let n = ROWS as u64;
    println!("\nfrom a spool, d = {}, nanoseconds per step", encoder.dim());
    println!("{:>5}  {:<26}{:>10}{:>12}{:>8}", "b", "", "private", "without", "ratio");
    for batch_size in BATCHES {
        let steps = n.div_ceil(batch_size) as f64;
        let base = || {
            black_box(without_privacy(batch_size, &mut *source.borrow_mut()).is_ok());
        };
        for (name, law, mode) in FORMS {
            let plan = scs13_plan(n, batch_size, law, mode)?;
            let mut rng = OsSeeded::new()?;
            let mut fine = true;
            let train = || {
                fine &= plan.train::<f64>(&mut *source.borrow_mut(), &mut rng, &mut Control::default()).is_ok();
            };
            let (ours, theirs) = best_of(5, train, base);
            let (ours, theirs) = (ours * 1e9 / steps, theirs * 1e9 / steps);
            let said = if fine { "" } else { " (failed)" };
            println!("{batch_size:>5}  scs13 {name:<20}{ours:>10.0}{theirs:>12.0}{:>8.3}{said}", ours / theirs);
        }
    }
    Ok(())
}

#[allow(clippy::print_stdout)]
fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    if let Err(error) = from_memory(&mut criterion) {
        println!("{error}");
    }
    match file() {
        Ok(path) => {
            if let Err(error) = from_a_file(&path.to_string_lossy()) {
                println!("{error}");
            }
            let _ = std::fs::remove_file(path);
        }
        Err(error) => println!("{error}"),
    }
}
