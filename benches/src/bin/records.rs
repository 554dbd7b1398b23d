//! The cost of rounding by number of records: plans only, without data.
//!
//! ```text
//! cargo run --release -p benches --bin records -- [--dim 9] [--epsilon 1]
//! ```
//!
//! For 10^5 to 10^9 records, logistic loss, add-remove, it prints: the choice of `auto` without a delta and at 1e-10, its
//! expected cost, and the standard deviation per weight of the noise that hides the solver (only objective perturbation adds
//! it); the sensitivity of the sum of all gradients (`dp-gd`) and of bolt-on's model (`lambda` .001, batches of 50), both
//! relative to exact arithmetic.
#![allow(clippy::print_stdout)]

use std::error::Error;

use dp_accountant::{AdjacencyKind, Delta, Epsilon, ZeroOut};
use dp_losses::LossKind;
use dp_optim::recipes::AnyDerivation;
use dp_optim::recipes::{AnyRecipe, BoltOn, Budget, DpSgd, Planned, Recipe, Sampling};
use dp_optim::{Auto, Schedule};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str, usual: f64| -> Result<f64, Box<dyn Error>> {
        let at = arguments.iter().position(|argument| argument == flag);
        Ok(at.and_then(|at| arguments.get(at + 1)).map_or(Ok(usual), |text| text.parse())?)
    };
    let (dim, epsilon) = (number("--dim", 9.0)? as u64, Epsilon::new(number("--epsilon", 1.0)?)?);
    println!("{dim} features, epsilon {}", epsilon.get());
    println!("| records | auto, delta 0 | auto, delta 1e-10 | dp-gd | bolt-on |");
    println!("|---|---|---|---|---|");
    let mut of_bolt_on = None;
    for exponent in 5..=9 {
        let n = 10u64.pow(exponent);
        let mut cells = vec![format!("1e{exponent}")];
        for delta in [0.0, 1e-10] {
            cells.push(chosen(n, dim, Budget { epsilon, delta: Delta::new(delta)? })?);
        }
        let budget = Budget { epsilon, delta: Delta::new(1e-10)? };
        let all = DpSgd {
            sampling: Sampling::Passes,
            batch_size: n,
            passes: 20,
            schedule: Some(Schedule::Constant { step: 1.0 }),
            ..DpSgd::new(LossKind::Logistic)
        };
        cells.push(ratio(sensitivity(all.plan::<ZeroOut>(n, dim, budget)?.summary().sensitivity)));
        let model = BoltOn::strongly_convex(LossKind::Logistic, 0.001);
        let arithmetic = model.arithmetic.for_records(n, model.passes, model.batch_size, None);
        let model = BoltOn { arithmetic, ..model };
        let scaled = sensitivity(model.plan::<ZeroOut>(n, dim, budget)?.summary().sensitivity) * n as f64;
        // Exact sensitivities decrease as 1/n.
        cells.push(ratio(scaled / *of_bolt_on.get_or_insert(scaled)));
        println!("| {} |", cells.join(" | "));
    }
    Ok(())
}

/// Returns the algorithm, its expected cost, and the noise that hides the solver.
fn chosen(n: u64, dim: u64, budget: Budget) -> Result<String, Box<dyn Error>> {
    let choice = Auto::new(LossKind::Logistic).choose(n, dim, budget, AdjacencyKind::ZeroOut)?;
    let plan = choice.recipe.plan_copies::<ZeroOut>(n, dim, budget, 1)?;
    let hidden = match plan.derivation() {
        AnyDerivation::ObjPert(derivation) => format!("{:.1e}", derivation.calibrated.release.coordinate_std_dev(dim)),
        _ => "none".to_owned(),
    };
    let name = match choice.recipe {
        AnyRecipe::ObjPert(_) => "obj-pert",
        AnyRecipe::DpSgd(_) => "dp-sgd",
        AnyRecipe::Scs13(_) => "scs13",
        AnyRecipe::BoltOn(_) => "bolt-on",
        _ => "another",
    };
    Ok(format!("{name}, cost {:.1e}, noise {hidden}", choice.expected_cost.share))
}

fn sensitivity(found: Option<f64>) -> f64 {
    found.unwrap_or(f64::NAN)
}

fn ratio(value: f64) -> String {
    format!("{value:.6}")
}
