//! The number of passes of objective perturbation over a table, and its time.
//!
//! ```text
//! cargo run --release -p benches --bin passes -- TABLE.csv.gz LABEL POSITIVE [--drop COL]... [--epsilon 1] [--delta 1e-6]
//!     [--repeats 5]
//! ```
//!
//! Logistic loss, add-remove, ranges and categories from the table (assumed public). Passes, including the certifying ones,
//! and seconds of a training are medians over repeats: both depend on the records and are for the curator alone. The seconds
//! of ten passes of bolt-on private SGD are printed for comparison.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use benches::cross_validation::Table;
use dp_accountant::ZeroOut;
use dp_data::{Block, Description, Encoding, PassRequest, RowSource, RowStream, SourceError};
use dp_losses::LossKind;
use dp_mechanisms::SeededRng;
use dp_optim::MemorySource;
use dp_optim::defaults::Defaults;
use dp_optim::recipes::{AnyRecipe, Budget, Convexity, ObjPert, Planned, Recipe};

/// Counts the passes over a source in memory.
struct Counted(MemorySource<f64>, usize);

impl RowSource<f64> for Counted {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.0.describe()
    }
    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.1 += 1;
        self.0.open_pass(request)
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, f64>, SourceError> {
        self.0.gather(positions)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut positional, mut drop) = (Vec::new(), Vec::new());
    let (mut epsilon, mut delta, mut repeats) = (1.0, 1e-6, 5u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--drop" => drop.push(value()?),
            "--epsilon" => epsilon = value()?.parse()?,
            "--delta" => delta = value()?.parse()?,
            "--repeats" => repeats = value()?.parse()?,
            _ => positional.push(argument),
        }
    }
    let [path, label, positive] = positional.as_slice() else {
        return Err("TABLE LABEL POSITIVE are expected".into());
    };
    let table = Table::load(path, label, positive, &drop, Encoding::default())?;
    let (n, dim) = (table.examples.len() as u64, table.examples.dim() as u64);
    let budget = Budget::new(epsilon, delta)?;
    println!("{path}: {n} rows, {dim} features, epsilon {epsilon}, delta {delta}");
    let defaults = Defaults::new(LossKind::Logistic, n, dim, budget, dp_accountant::AdjacencyKind::ZeroOut)?;
    let recipes = [
        ("obj-pert", AnyRecipe::from(ObjPert::new(LossKind::Logistic))),
        ("bolt-on-convex", AnyRecipe::from(defaults.recipe(Convexity::Convex)?)),
    ];
    println!("| | passes | seconds | accuracy |");
    println!("|---|---|---|---|");
    for (name, recipe) in recipes {
        let plan = recipe.plan_copies::<ZeroOut>(n, dim, budget, 1)?;
        let (mut passes, mut seconds, mut right) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..repeats {
            let mut source = Counted(MemorySource::new(table.examples.clone(), 1.0, 1.0), 0);
            let started = Instant::now();
            let trained = plan.train(&mut source, &mut SeededRng::new(seed), &mut Default::default())?;
            seconds.push(started.elapsed().as_secs_f64());
            passes.push(source.1 as f64);
            right.push(Table::accuracy(&table.examples, trained.weights.get()));
        }
        println!("| {name} | {} | {:.3} | {:.4} |", median(passes), median(seconds), median(right));
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
