//! Trains a private classifier on generated records and prints its certificate.
//!
//! ```sh
//! cargo run --release -p dp-optim --features serde --example certificate
//! ```

#![allow(clippy::print_stdout)]

use dp_optim::recipes::Recipe;
use std::collections::BTreeMap;

use dp_accountant::ZeroOut;
use dp_accountant::guarantee::Unit;
use dp_data::Examples;
use dp_losses::LossKind;
use dp_mechanisms::{OsSeeded, SeededRng};
use dp_optim::MemorySource;
use dp_optim::engine::Control;
use dp_optim::recipes::{BoltOn, Budget};
use rand::RngExt;

/// Records in the unit ball, labelled by a noisy linear rule.
fn generate(n: usize, dim: usize) -> Result<Examples<f64>, Box<dyn std::error::Error>> {
    let mut rng = SeededRng::new(1);
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let row: Vec<f64> = (0..dim).map(|_| rng.random_range(-1.0..1.0)).collect();
        let score: f64 = row.iter().enumerate().map(|(j, x)| x * (j as f64 - 1.5)).sum::<f64>() + 0.4;
        targets.push(if score + rng.random_range(-1.0..1.0) > 0.0 { 1.0 } else { -1.0 });
        values.extend(row.iter().map(|x| x / (dim as f64).sqrt()));
    }
    Ok(Examples::dense(values, targets, dim)?)
}

fn accuracy(weights: &[f64], examples: &Examples<f64>) -> f64 {
    let dp_data::Rows::Dense { values, dim } = examples.block().rows else { return f64::NAN };
    let right = values.chunks(dim).zip(examples.targets()).filter(|(row, y)| {
        let score: f64 = row.iter().zip(weights).map(|(x, w)| x * w).sum();
        score * **y > 0.0
    });
    right.count() as f64 / examples.len() as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (n, dim) = (20_000, 5);
    let mut source = MemorySource::new(generate(n, dim)?, 1.0, 1.0);

    // Plan before any data: the guarantee follows from public parameters alone.
    let recipe = BoltOn::strongly_convex(LossKind::Logistic, 1e-3);
    let budget = Budget::new(0.5, 1e-9)?;
    let plan = recipe.plan::<ZeroOut>(n as u64, dim as u64, budget)?;
    println!("sensitivity {:.3e}, noise {:.3e}", plan.run().sensitivity(), plan.run().noise_norm());

    let trained = plan.train::<f64>(&mut source, &mut OsSeeded::new()?, &mut Control::default())?;
    println!(
        "training accuracy {:.4} (for the curator's eyes only)",
        accuracy(trained.weights.get(), source.examples())
    );

    let certificate = trained.certificate(Unit::Record, Vec::new(), "of the model file".to_owned(), BTreeMap::new());
    let verified = certificate.verify()?;
    println!("verified: {verified:?}");
    #[cfg(feature = "serde")]
    println!("{}", serde_json::to_string_pretty(&certificate)?);
    Ok(())
}
