//! Test accuracy of the bolt-on algorithms by cross-validation, compared with the majority class and training without
//! privacy.
//!
//! ```text
//! cargo run --release -p benches --bin accuracy -- TABLE.csv.gz LABEL POSITIVE [--drop COL]... [--scale unit]
//!     [--epsilons 0.05,0.1,0.4,1] [--repeats 4] [--adjacency replace-one|add-remove]
//! ```
//!
//! Five folds, fold(i) = i mod 5. Ranges and categories come from the table (assumed public), hyper-parameters from the
//! data-independent defaults. Prints one Markdown row per budget: the mean accuracy over folds and repeats and its
//! standard error over all runs.
#![allow(clippy::print_stdout)]

use dp_optim::recipes::Recipe;
use std::error::Error;
use std::time::Instant;

use benches::cross_validation::{Table, folds, mean_and_error};
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_data::Encoding;
use dp_losses::LossKind;
use dp_mechanisms::SeededRng;
use dp_optim::MemorySource;
use dp_optim::defaults::Defaults;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::{Budget, Convexity, train_without_privacy};

struct Options {
    epsilons: Vec<f64>,
    repeats: u64,
    adjacency: AdjacencyKind,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut positional = Vec::new();
    let mut drop = Vec::new();
    let mut encoding = Encoding::default();
    let mut options = Options { epsilons: vec![0.05, 0.1, 0.4, 1.0], repeats: 4, adjacency: AdjacencyKind::ReplaceOne };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--drop" => drop.push(value()?),
            "--scale" => {
                encoding = if value()? == "unit" {
                    Encoding::unit_scale(dp_data::encode::RowNorm::Unit)
                } else {
                    Encoding::default()
                };
            }
            "--epsilons" => options.epsilons = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--repeats" => options.repeats = value()?.parse()?,
            "--adjacency" => {
                options.adjacency =
                    AdjacencyKind::from_words(&value()?, true).ok_or("replace-one or add-remove is expected")?;
            }
            _ => positional.push(argument),
        }
    }
    let [path, label, positive] = positional.as_slice() else {
        return Err("TABLE LABEL POSITIVE are expected".into());
    };
    let table = Table::load(path, label, positive, &drop, encoding)?;
    report(path, &table, &options)
}

fn report(path: &str, table: &Table, options: &Options) -> Result<(), Box<dyn Error>> {
    let (n, dim) = (table.examples.len(), table.examples.dim());
    println!("{path}: {n} rows, {dim} dimensions, majority {:.4}", table.majority());
    let mut plain = Vec::new();
    for (train, test) in folds(&table.examples)? {
        let recipe = NonPrivateDerivation::minimiser(LossKind::Logistic, 1e-3);
        let weights = train_without_privacy(
            &recipe,
            &mut MemorySource::new(train, 1.0, 1.0),
            [7; 32],
            &mut dp_optim::engine::Control::default(),
        )?
        .expose_without_any_guarantee();
        plain.push(Table::accuracy(&test, &weights));
    }
    let (mean, error) = mean_and_error(&plain);
    println!("non-private, lambda 0.001: {mean:.4} +- {error:.4}\n");
    println!("| epsilon | delta | convex | strongly convex | seconds |\n|---|---|---|---|---|");
    for &epsilon in &options.epsilons {
        for pure in [true, false] {
            let n_train = (n - n.div_ceil(5)) as u64;
            let delta = if pure { 0.0 } else { (n_train as f64).powi(-2) };
            let budget = Budget::new(epsilon, delta)?;
            let start = Instant::now();
            let mut cells = Vec::new();
            for algorithm in [Convexity::Convex, Convexity::StronglyConvex] {
                let mut found = Vec::new();
                for repeat in 0..options.repeats {
                    for (fold, (train, test)) in folds(&table.examples)?.into_iter().enumerate() {
                        let recipe = Defaults::new(
                            LossKind::Logistic,
                            train.len() as u64,
                            dim as u64,
                            budget,
                            options.adjacency,
                        )?
                        .recipe(algorithm)?;
                        let mut source = MemorySource::new(train, 1.0, 1.0);
                        let mut rng = SeededRng::new(1 + repeat * 5 + fold as u64);
                        let mut control = dp_optim::engine::Control::default();
                        let (n, dim) = (source.examples().len() as u64, dim as u64);
                        let weights: Vec<f64> = match options.adjacency {
                            AdjacencyKind::ZeroOut => {
                                let plan = recipe.plan::<ZeroOut>(n, dim, budget)?;
                                plan.train(&mut source, &mut rng, &mut control)?.weights.into_inner()
                            }
                            _ => {
                                let plan = recipe.plan::<ReplaceOne>(n, dim, budget)?;
                                plan.train(&mut source, &mut rng, &mut control)?.weights.into_inner()
                            }
                        };
                        found.push(Table::accuracy(&test, &weights));
                    }
                }
                let (mean, error) = mean_and_error(&found);
                cells.push(format!("{mean:.4} +- {error:.4}"));
            }
            println!(
                "| {epsilon} | {} | {} | {} | {:.1} |",
                if pure { "0".to_owned() } else { format!("{delta:.1e}") },
                cells[0],
                cells[1],
                start.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}
