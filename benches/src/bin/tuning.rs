//! The benefit of tuning: test accuracy of the recommended settings, of the four ways of selecting regularisation and
//! passes, and of the best candidate in hindsight.
//!
//! ```text
//! cargo run --release -p benches --bin tuning -- TABLE.csv.gz LABEL POSITIVE [--drop COL]... [--scale unit]
//!     [--epsilons 0.1,0.4,1.6] [--repeats 2]
//! ```
//!
//! Five folds, fold(i) = i mod 5; replace-one, delta 1/n²; the strongly convex bolt-on algorithm. Eight candidates: lambda
//! from 1e-4 to 1e-1 by factors of ten, 5 or 20 passes. Public tuning removes a tenth of the training records and spends the
//! budget on the rest. "In hindsight" is the candidate with the best mean over all folds, each trained on all records with
//! the whole budget: the result of a selection without cost. Prints one Markdown row per budget: mean accuracy and its
//! standard error over all runs.
#![allow(clippy::print_stdout)]

use std::error::Error;

use benches::cross_validation::{Table, folds, mean_and_error};
use dp_accountant::{AdjacencyKind, ReplaceOne};
use dp_data::{Encoding, Examples};
use dp_losses::LossKind;
use dp_mechanisms::SeededRng;
use dp_optim::MemorySource;
use dp_optim::defaults::Defaults;
use dp_optim::engine::Control;
use dp_optim::recipes::{AnyRecipe, BoltOn, Budget, Convexity, Planned, Recipe};
use dp_optim::tuning::composition::Candidate;
use dp_optim::tuning::{Composition, Portions, RandomStopping, public};

const LAMBDAS: [f64; 4] = [1e-4, 1e-3, 1e-2, 1e-1];
const PASSES: [u64; 2] = [5, 20];

fn main() -> Result<(), Box<dyn Error>> {
    let (mut positional, mut drop, mut encoding) = (Vec::new(), Vec::new(), Encoding::default());
    let (mut epsilons, mut repeats) = (vec![0.1, 0.4, 1.6], 2u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--drop" => drop.push(value()?),
            "--scale" if value()? == "unit" => encoding = Encoding::unit_scale(dp_data::encode::RowNorm::Unit),
            "--scale" => {}
            "--epsilons" => epsilons = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--repeats" => repeats = value()?.parse()?,
            _ => positional.push(argument),
        }
    }
    let [path, label, positive] = positional.as_slice() else {
        return Err("TABLE LABEL POSITIVE are expected".into());
    };
    let table = Table::load(path, label, positive, &drop, encoding)?;
    let (n, dim) = (table.examples.len(), table.examples.dim());
    println!("{path}: {n} rows, {dim} dimensions, majority {:.4}\n", table.majority());
    println!(
        "| epsilon | default | portions | composition | random stopping | public | in hindsight |\n|---|---|---|---|---|---|---|"
    );
    for epsilon in epsilons {
        println!("{}", row(&table, epsilon, repeats)?);
    }
    Ok(())
}

fn grid() -> Vec<AnyRecipe> {
    let of = |lambda, passes| BoltOn { passes, ..BoltOn::strongly_convex(LossKind::Logistic, lambda) }.into();
    LAMBDAS.iter().flat_map(|&lambda| PASSES.iter().map(move |&passes| of(lambda, passes))).collect()
}

/// Splits off every tenth example.
fn split(examples: &Examples<f64>) -> Result<[Examples<f64>; 2], Box<dyn Error>> {
    let n = u32::try_from(examples.len())?;
    let (few, rest): (Vec<u32>, Vec<u32>) = (0..n).partition(|i| i % 10 == 0);
    Ok([examples.gather(&few)?, examples.gather(&rest)?])
}

fn row(table: &Table, epsilon: f64, repeats: u64) -> Result<String, Box<dyn Error>> {
    let candidates = grid();
    let mut found = vec![Vec::new(); 5];
    let mut each = vec![Vec::new(); candidates.len()];
    for repeat in 0..repeats {
        for (fold, (train, test)) in folds(&table.examples)?.into_iter().enumerate() {
            let (n, dim) = (train.len() as u64, train.dim() as u64);
            let delta = (n as f64).powi(-2);
            let budget = Budget::new(epsilon, delta)?;
            let rng = &mut SeededRng::new(1 + 5 * repeat + fold as u64);
            let mut accuracy = |recipe: &AnyRecipe, train: &Examples<f64>| -> Result<f64, Box<dyn Error>> {
                let plan = recipe.plan_copies::<ReplaceOne>(train.len() as u64, dim, budget, 1)?;
                let mut source = MemorySource::new(train.clone(), 1.0, 1.0);
                let trained = plan.train::<f64>(&mut source, rng, &mut Control::default())?;
                Ok(Table::accuracy(&test, trained.weights.get()))
            };
            let defaults = Defaults::new(LossKind::Logistic, n, dim, budget, AdjacencyKind::ReplaceOne)?;
            found[0].push(accuracy(&defaults.recipe(Convexity::StronglyConvex)?.into(), &train)?);
            found[1].push(accuracy(&Portions::new(candidates.clone()).into(), &train)?);
            let composed = Composition::new(candidates.iter().cloned().map(Candidate::new));
            found[2].push(accuracy(&composed.into(), &train)?);
            let stopping = RandomStopping::new(candidates.clone(), 2.0 * candidates.len() as f64);
            found[3].push(accuracy(&stopping.into(), &train)?);
            for (candidate, found) in candidates.iter().zip(&mut each) {
                found.push(accuracy(candidate, &train)?);
            }
            let [few, rest] = split(&train)?;
            let (private, mut few) = (rest.len() as u64, MemorySource::new(few, 1.0, 1.0));
            let of_choice = &mut SeededRng::new(1000 + 5 * repeat + fold as u64);
            let control = Control::default();
            let chosen =
                public::choose::<ReplaceOne, f64>(&candidates, &mut few, private, budget, 3, of_choice, &control)?;
            found[4].push(accuracy(&candidates[chosen], &rest)?);
        }
    }
    let best = each.into_iter().max_by(|a, b| mean_and_error(a).0.total_cmp(&mean_and_error(b).0)).unwrap_or_default();
    found.push(best);
    let cells = found.iter().map(|accuracies| {
        let (mean, error) = mean_and_error(accuracies);
        format!(" {mean:.4} ± {error:.4} |")
    });
    Ok(format!("| {epsilon} |{}", cells.collect::<String>()))
}
