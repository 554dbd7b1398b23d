//! Held-out accuracy of `auto` compared with the algorithms that it might have chosen, and its regret.
//!
//! ```text
//! cargo run --release -p benches --bin auto -- [--data FILE LABEL POSITIVE | --libsvm FILE]... [--drop COLUMN]...
//!     [--rows 50000] [--losses logistic,hinge] [--epsilons 0.1,0.4,1.6] [--deltas 1e-8,0] [--seeds 5]
//!     [--adjacency add-remove|replace-one] [--algorithms dp-sgd,obj-pert,..]
//! ```
//!
//! Files are tables of two classes; `--drop` applies to the preceding file, `--rows` takes that many rows evenly spread over
//! each. Without files, tables are generated: two classes, five classes (softmax), and numbers with a tenth of gross errors.
//! Run `s` tests fold `s mod 5` of five (record i is in fold i mod 5). Ranges and categories come from the table (assumed
//! public). A cell is the mean over the runs with its standard error: accuracy, or the explained share of variance for
//! numbers; for other methods of auto followed by the measured and the expected cost. `regret` is the best of the others, selected on these figures, minus `auto`; `cost` is the measured share that is
//! lost of the possible gain over the largest class or the mean (without privacy: its figure), followed by the expected
//! share.
#![allow(clippy::print_stdout)]

use std::error::Error;

use benches::cross_validation::{Fold, Table, folds, mean_and_error, quality};
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_data::encode::LibsvmFormat;
use dp_data::read::{Input, load_libsvm};
use dp_data::{Encoding, Examples};
use dp_losses::LossKind;
use dp_mechanisms::{ReleaseRng, SeededRng};
use dp_optim::auto::Method;
use dp_optim::defaults::Defaults;
use dp_optim::engine::Control;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::{
    AnyRecipe, Bst14, Budget, Convexity, DpFtrl, DpNewton, DpSgd, NoisyMoments, ObjPert, PhasedErm, Recipe, Scs13,
    TrainsAny, train_without_privacy,
};
use dp_optim::{Auto, MemorySource};
use rand::RngExt;

/// λ without privacy.
const LAMBDA: f64 = 1e-4;
/// The radius for recipes that need one.
const RADIUS: f64 = 10.0;

/// A table and the losses to train on it.
struct Task {
    name: String,
    examples: Examples<f64>,
    losses: Vec<LossKind>,
}

struct Options {
    epsilons: Vec<f64>,
    deltas: Vec<f64>,
    seeds: u64,
    relation: AdjacencyKind,
    /// Names of the algorithms compared with `auto`; all if empty.
    algorithms: Vec<String>,
}

/// A file as named on the command line.
struct File {
    path: String,
    /// Label and positive class of a CSV file.
    label: Option<(String, String)>,
    drop: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut files: Vec<File> = Vec::new();
    let mut losses = vec![LossKind::Logistic];
    let mut rows = usize::MAX;
    let mut options = Options {
        epsilons: vec![0.1, 0.4, 1.6],
        deltas: vec![1e-8, 0.0],
        seeds: 5,
        relation: AdjacencyKind::ZeroOut,
        algorithms: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--data" => {
                files.push(File { path: value()?, label: Some((value()?, value()?)), drop: Vec::new() });
            }
            "--libsvm" => files.push(File { path: value()?, label: None, drop: Vec::new() }),
            "--drop" => files.last_mut().ok_or("--drop follows --data")?.drop.push(value()?),
            "--rows" => rows = value()?.parse()?,
            "--losses" => losses = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--epsilons" => options.epsilons = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--deltas" => options.deltas = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--seeds" => options.seeds = value()?.parse()?,
            "--algorithms" => options.algorithms = value()?.split(',').map(str::to_owned).collect(),
            "--adjacency" => {
                options.relation =
                    AdjacencyKind::from_words(&value()?, true).ok_or("replace-one or add-remove is expected")?;
            }
            other => return Err(format!("{other} is not known; the source says what is").into()),
        }
    }
    let names: Vec<&str> = candidates(LossKind::Logistic, &options).iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = options.algorithms.iter().find(|name| !names.contains(&name.as_str())) {
        let known = candidates(LossKind::Logistic, &Options { algorithms: Vec::new(), ..options });
        let known: Vec<&str> = known.iter().skip(1).map(|(name, _)| *name).collect();
        return Err(format!("{unknown} is none of {}", known.join(", ")).into());
    }
    println!(
        "| data | loss | epsilon | delta | {} | non-private | regret | cost, expected |\n|{}",
        names.join(" | "),
        "---|".repeat(names.len() + 7)
    );
    if files.is_empty() {
        for task in generated()? {
            report(&task, &options)?;
        }
    }
    for file in files {
        let name = file.path.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default().to_owned();
        let examples = thinned(file.load()?, rows)?;
        report(&Task { name, examples, losses: losses.clone() }, &options)?;
    }
    Ok(())
}

impl File {
    fn load(&self) -> Result<Examples<f64>, Box<dyn Error>> {
        match &self.label {
            Some((label, positive)) => {
                Ok(Table::load(&self.path, label, positive, &self.drop, Encoding::UNIT_ROWS)?.examples)
            }
            None => {
                let input = Input::open(&self.path)?;
                Ok(load_libsvm::<f64>(input, &LibsvmFormat::default(), Encoding::UNIT_ROWS)?.1.examples)
            }
        }
    }
}

/// Returns at most `rows` of the examples, evenly spread.
fn thinned(examples: Examples<f64>, rows: usize) -> Result<Examples<f64>, Box<dyn Error>> {
    let n = examples.len();
    if rows >= n {
        return Ok(examples);
    }
    let positions: Vec<u32> =
        (0..rows).map(|i| u32::try_from((i as u128 * n as u128 / rows as u128) as u64)).collect::<Result<_, _>>()?;
    Ok(examples.gather(&positions)?)
}

/// Prints one row of the table for each loss and budget.
fn report(task: &Task, options: &Options) -> Result<(), Box<dyn Error>> {
    let folds = folds(&task.examples)?;
    for &loss in &task.losses {
        let base = mean_over(&folds, options.seeds.min(5), |(_, test), _| Ok(Some(trivial(loss, test))))?;
        let plain = mean_over(&folds, options.seeds.min(5), |fold, _| without_privacy(loss, fold))?;
        for &epsilon in &options.epsilons {
            for &delta in &options.deltas {
                let budget = Budget::new(epsilon, delta)?;
                let mut found = Vec::new();
                let candidates = candidates(loss, options);
                for (_, candidate) in &candidates {
                    found.push(mean_over(&folds, options.seeds, |fold, seed| {
                        with_privacy(candidate, loss, fold, budget, options.relation, seed)
                    })?);
                }
                let (n, dim) = (folds[0].0.len() as u64, folds[0].0.dim() as u64);
                let expected = Auto::new(loss).choose(n, dim, budget, options.relation)?.expected_cost.share;
                let forecasts = Auto::new(loss).forecasts(n, dim, budget, options.relation)?;
                let auto = found[0].map_or(f64::NAN, |(mean, _)| mean);
                let best = found[1..].iter().flatten().map(|(mean, _)| *mean).fold(f64::NEG_INFINITY, f64::max);
                let (base, most) = (base.map_or(0.0, |(mean, _)| mean), plain.map_or(f64::NAN, |(mean, _)| mean));
                let mut cells: Vec<String> = found.iter().map(shown).collect();
                for ((name, _), (cell, mean)) in candidates.iter().zip(cells.iter_mut().zip(&found)) {
                    let forecast = forecasts.iter().find(|forecast| method(name) == Some(forecast.method));
                    if let (Some(forecast), Some((mean, _))) = (forecast, mean) {
                        let cost = (most - mean) / (most - base);
                        cell.push_str(&format!(" {cost:.3}, {:.3}", forecast.expected_cost.share));
                    }
                }
                cells.push(shown(&plain));
                println!(
                    "| {} | {loss} | {epsilon} | {delta} | {} | {:+.4} | {:.2}, {expected:.2} |",
                    task.name,
                    cells.join(" | "),
                    best - auto,
                    (most - auto) / (most - base),
                );
            }
        }
    }
    Ok(())
}

/// Returns the method of a candidate, where its cost is forecast.
fn method(candidate: &str) -> Option<Method> {
    match candidate {
        "accelerated" => Some(Method::AcceleratedDescent),
        "bolt-on-convex" => Some(Method::OutputPerturbation),
        _ => None,
    }
}

fn shown(cell: &Option<(f64, f64)>) -> String {
    cell.map_or("-".to_owned(), |(mean, error)| format!("{mean:.4} ({error:.4})"))
}

/// Returns mean and standard error over the runs; `None` if the recipe refuses.
fn mean_over(
    folds: &[Fold],
    seeds: u64,
    mut run: impl FnMut(&Fold, u64) -> Result<Option<f64>, Box<dyn Error>>,
) -> Result<Option<(f64, f64)>, Box<dyn Error>> {
    let mut values = Vec::new();
    for seed in 0..seeds {
        match run(&folds[seed as usize % folds.len()], seed)? {
            Some(value) => values.push(value),
            None => return Ok(None),
        }
    }
    Ok(Some(mean_and_error(&values)))
}

/// A map from loss, shape and budget to a recipe, `None` if there is none.
type Candidate = Box<dyn Fn(u64, u64, Budget, AdjacencyKind) -> Option<AnyRecipe>>;

/// Returns `auto`, then the requested algorithms.
fn candidates(loss: LossKind, options: &Options) -> Vec<(&'static str, Candidate)> {
    let bolt_on = move |algorithm| -> Candidate {
        Box::new(move |n, dim, budget, relation| {
            Some(Defaults::new(loss, n, dim, budget, relation).ok()?.recipe(algorithm).ok()?.into())
        })
    };
    let fixed = move |recipe: AnyRecipe| -> Candidate { Box::new(move |_, _, _, _| Some(recipe.clone())) };
    let radius = (loss == LossKind::Squared).then_some(dp_optim::defaults::SQUARED_RADIUS);
    let all: Vec<(&str, Candidate)> = vec![
        (
            "auto",
            Box::new(move |n, dim, budget, relation| {
                Some(Auto::new(loss).choose(n, dim, budget, relation).ok()?.recipe)
            }),
        ),
        (
            "dp-sgd",
            Box::new(move |n, dim, budget, relation| {
                Some(DpSgd { radius, ..DpSgd::recommended(loss, n, dim, budget, relation).ok()? }.into())
            }),
        ),
        (
            "accelerated",
            Box::new(move |n, dim, budget, relation| {
                Some(Auto::new(loss).choose_descent(n, dim, budget, relation).ok()?.recipe)
            }),
        ),
        ("obj-pert", fixed(ObjPert::new(loss).into())),
        ("obj-pert-centred", fixed(ObjPert::new(loss).centred().into())),
        (
            "dp-ftrl",
            Box::new(move |n, dim, budget, relation| {
                Some(DpFtrl { radius, ..DpFtrl::recommended(loss, n, dim, budget, relation).ok()? }.into())
            }),
        ),
        ("dp-newton", fixed(DpNewton::new(loss).into())),
        ("dp-newton-once", fixed(DpNewton::with_one_curvature(loss).into())),
        ("noisy-moments", fixed(NoisyMoments::new(loss).into())),
        ("bolt-on-convex", bolt_on(Convexity::Convex)),
        ("bolt-on-strongly-convex", bolt_on(Convexity::StronglyConvex)),
        ("scs13", fixed(Scs13 { passes: 1, radius, ..Scs13::new(loss) }.into())),
        ("bst14-convex", fixed(Bst14 { batch_size: 500, ..Bst14::convex(loss, radius.unwrap_or(RADIUS)) }.into())),
        ("phased-erm", fixed(PhasedErm::new(loss, RADIUS).into())),
    ];
    let wanted = |name: &str| {
        name == "auto" || options.algorithms.is_empty() || options.algorithms.iter().any(|wanted| wanted == name)
    };
    all.into_iter().filter(|(name, _)| wanted(name)).collect()
}

fn with_privacy(
    candidate: &Candidate,
    loss: LossKind,
    (train, test): &Fold,
    budget: Budget,
    relation: AdjacencyKind,
    seed: u64,
) -> Result<Option<f64>, Box<dyn Error>> {
    let (n, dim) = (train.len() as u64, train.dim() as u64);
    let Some(recipe) = candidate(n, dim, budget, relation) else { return Ok(None) };
    let mut source = MemorySource::new(train.clone(), 1.0, loss.usual_target_bound());
    let (mut rng, mut control) = (SeededRng::new(1 + seed), Control::default());
    let weights: Vec<f64> = match relation {
        AdjacencyKind::ZeroOut => {
            let Ok(plan) = recipe.plan_copies::<ZeroOut>(n, dim, budget, 1) else { return Ok(None) };
            ZeroOut::train_any(&plan, &mut source, &mut rng.lend(), &mut control)?.weights.into_inner()
        }
        _ => {
            let Ok(plan) = recipe.plan_copies::<ReplaceOne>(n, dim, budget, 1) else { return Ok(None) };
            ReplaceOne::train_any(&plan, &mut source, &mut rng.lend(), &mut control)?.weights.into_inner()
        }
    };
    Ok(Some(quality(loss, test, &weights)))
}

fn without_privacy(loss: LossKind, (train, test): &Fold) -> Result<Option<f64>, Box<dyn Error>> {
    let recipe = NonPrivateDerivation::minimiser(loss, LAMBDA);
    let mut source = MemorySource::new(train.clone(), 1.0, loss.usual_target_bound());
    match train_without_privacy(&recipe, &mut source, [7; 32], &mut Control::default()) {
        Ok(weights) => Ok(Some(quality(loss, test, &weights.expose_without_any_guarantee()))),
        Err(_) => Ok(None),
    }
}

/// Returns the figure reached without features: the share of the largest class; for numbers 0, as their mean explains
/// nothing.
fn trivial(loss: LossKind, test: &Examples<f64>) -> f64 {
    let Some(classes) = loss.classes() else { return 0.0 };
    let count = |class: f64| test.targets().iter().filter(|&&y| y == class).count();
    let most = (-1..classes as i64).map(|class| count(class as f64)).max().unwrap_or(0);
    most as f64 / test.len() as f64
}

/// Generates tables: rows of norm 1 with an intercept.
fn generated() -> Result<Vec<Task>, Box<dyn Error>> {
    const N: usize = 10_000;
    const DIM: usize = 13;
    let mut rng = SeededRng::new(2024);
    let (mut rows, mut scores) = (Vec::new(), Vec::new());
    let directions: Vec<[f64; DIM]> = (0..5).map(|_| core::array::from_fn(|_| rng.random_range(-1.0..1.0))).collect();
    for _ in 0..N {
        let mut row: [f64; DIM] = core::array::from_fn(|_| rng.random_range(-1.0..1.0));
        row[DIM - 1] = 1.0;
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
        let of = |direction: &[f64; DIM]| direction.iter().zip(&row).map(|(a, b)| a * b).sum::<f64>();
        scores.push(directions.iter().map(of).collect::<Vec<f64>>());
        rows.extend(row);
    }
    let mut task = |name: &str, losses: &[&str], target: &mut dyn FnMut(&[f64], &mut SeededRng) -> f64| {
        let targets = scores.iter().map(|scores| target(scores, &mut rng)).collect();
        let losses = losses.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
        let examples = Examples::dense(rows.clone(), targets, DIM)?;
        Ok::<_, Box<dyn Error>>(Task { name: name.to_owned(), examples, losses })
    };
    Ok(vec![
        task("two classes", &["logistic", "huber-svm", "hinge"], &mut |scores, rng| {
            if rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-8.0 * scores[0]).exp()) { 1.0 } else { -1.0 }
        })?,
        task("five classes", &["softmax:5"], &mut |scores, _| {
            scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0.0, |(class, _)| class as f64)
        })?,
        task("numbers", &["huber-regression:0.5", "log-cosh:0.5", "absolute", "squared"], &mut |scores, rng| {
            let wild = rng.random_range(0.0..1.0) < 0.1;
            let noise = if wild { rng.random_range(-1.0..1.0) } else { rng.random_range(-0.1..0.1) };
            (0.8 * scores[0] + noise).clamp(-1.0, 1.0)
        })?,
    ])
}
