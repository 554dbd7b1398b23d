//! A loss outside of this crate: smoothed quantile regression. Two private models give an interval that covers about 80%
//! of targets.
//!
//! ```sh
//! cargo run --release -p dp-optim --example own_loss
//! ```
//!
//! # References
//! Koenker, Bassett, "Regression quantiles", Econometrica 46, 1978.

#![allow(clippy::print_stdout)]

use dp_accountant::ReplaceOne;
use dp_accountant::guarantee::Unit;
use dp_data::Examples;
use dp_losses::{CustomLoss, LossKind, RegisteredLoss};
use dp_mechanisms::{OsSeeded, SeededRng};
use dp_optim::MemorySource;
use dp_optim::engine::Control;
use dp_optim::recipes::{Budget, DpSgd, Recipe};
use rand::RngExt;

/// The quantile loss with its kink smoothed.
///
/// ```text
/// φ(r) = √(h² + r²)/2 + (1/2 - level) r,     |φ'| <= max(level, 1 - level),     φ'' <= 1/(2h)
/// ```
#[derive(Debug)]
struct Quantile {
    name: &'static str,
    level: f64,
}

/// The half width h of the smoothing.
const H: f64 = 0.005;

impl CustomLoss for Quantile {
    fn name(&self) -> &'static str {
        self.name
    }
    fn is_classification(&self) -> bool {
        false
    }
    fn value(&self, r: f64) -> f64 {
        0.5 * H.hypot(r) + (0.5 - self.level) * r
    }
    fn derivative(&self, r: f64) -> f64 {
        0.5 * r / H.hypot(r) + 0.5 - self.level
    }
    fn slope(&self) -> f64 {
        self.level.max(1.0 - self.level)
    }
    fn curvature(&self) -> f64 {
        0.5 / H
    }
    fn relative_curvature(&self) -> f64 {
        // 1 / (3 √3)
        0.19246
    }
}

static LOWER: Quantile = Quantile { name: "quantile-10", level: 0.1 };
static UPPER: Quantile = Quantile { name: "quantile-90", level: 0.9 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The target's spread grows with the first feature; the second is an intercept.
    let (n, mut rng) = (20_000, SeededRng::new(1));
    let xs: Vec<f64> = (0..n).map(|_| rng.random_range(0.0..0.7)).collect();
    let targets: Vec<f64> = xs.iter().map(|x| 0.5 * x + x * rng.random_range(-0.5..0.5)).collect();
    let rows: Vec<f64> = xs.iter().flat_map(|&x| [x, 0.7]).collect();
    let mut source = MemorySource::new(Examples::dense(rows.clone(), targets.clone(), 2)?, 1.0, 1.0);

    // Half of the budget for each end of the interval.
    let budget = Budget::new(0.5, 1e-6)?;
    let mut ends = Vec::new();
    for loss in [&LOWER, &UPPER] {
        let loss = LossKind::Custom(RegisteredLoss::new(loss)?);
        let plan = DpSgd { batch_size: 500, passes: 20, ..DpSgd::new(loss) }.plan::<ReplaceOne>(n as u64, 2, budget)?;
        let trained = plan.train::<f64>(&mut source, &mut OsSeeded::new()?, &mut Control::default())?;
        let certificate =
            trained.certificate(Unit::Record, Vec::new(), "of the model file".to_owned(), Default::default());
        println!("{loss}, verified: {:?}", certificate.verify()?);
        ends.push(trained.weights.get().clone());
    }
    let predicted = |weights: &[f64], row: &[f64]| weights[0] * row[0] + weights[1] * row[1];
    let inside = rows
        .chunks(2)
        .zip(&targets)
        .filter(|(row, target)| (predicted(&ends[0], row)..=predicted(&ends[1], row)).contains(target));
    println!("{:.3} of targets are in the interval (for the curator's eyes only)", inside.count() as f64 / n as f64);
    Ok(())
}
