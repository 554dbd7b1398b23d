//! Excess population loss and time against n and d, for tasks with known optimum and population loss.
//!
//! ```text
//! cargo run --release -p benches --bin excess_loss -- [--records 1000,10000,100000] [--most 1000000] [--seeds 4]
//!     [--dims 10,100]
//! ```
//!
//! A record is a coordinate vector, each of the d equally likely, so that the population loss is a mean of d functions of one
//! weight each and known exactly:
//! - `logistic`: the target is +1 with probability 1/(1 + e^(-w*)) for w* = ±D/√d;
//! - `absolute`: the target is ±D/√d, of the likelier sign with probability 3/4; the loss has kinks.
//!
//! Each row gives the mean excess loss over the seeds with its standard error, and its ratio to the optimal rate `DL (1/√n +
//! √d/(ρn))` without its constant. Each algorithm then has a fitted slope of log excess in log n (-1/2 where sampling
//! dominates, -1 where noise does), and one of log time.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use benches::cross_validation::mean_and_error;
use dp_accountant::certificate::NoiseMode;
use dp_accountant::{ReplaceOne, gaussian};
use dp_data::Examples;
use dp_losses::LossKind;
use dp_mechanisms::SeededRng;
use dp_optim::MemorySource;
use dp_optim::engine::Control;
use dp_optim::recipes::{
    AnyRecipe, BoltOn, Budget, OutputNoise, PhasedErm, PhasedSgd, Planned, Pnsgd, Recipe, SnowballSgd,
};
use rand::RngExt;

/// D: norm of the optimal weights.
const DISTANCE: f64 = 1.0;

/// Largest number of records for Phased-ERM, which for more takes longer than all others together.
const MOST_MINIMISED: usize = 100_000;

/// A task with known population loss.
#[derive(Clone, Copy)]
struct Task {
    loss: LossKind,
    dim: usize,
}

impl Task {
    /// Returns the size of each of the optimal weights.
    fn weight(&self) -> f64 {
        DISTANCE / (self.dim as f64).sqrt()
    }

    /// Returns the sign of the optimal weight of a coordinate.
    fn sign(coordinate: usize) -> f64 {
        if coordinate.is_multiple_of(3) { -1.0 } else { 1.0 }
    }

    /// Returns the probability that the target has that sign.
    fn likelier(&self) -> f64 {
        match self.loss {
            LossKind::Absolute => 0.75,
            _ => 1.0 / (1.0 + (-self.weight()).exp()),
        }
    }

    /// Returns the loss at a weight that is `w` in the direction of the sign.
    fn population(&self, w: f64) -> f64 {
        let (p, c) = (self.likelier(), self.weight());
        match self.loss {
            LossKind::Absolute => p * (w - c).abs() + (1.0 - p) * (w + c).abs(),
            _ => p * (-w).exp().ln_1p() + (1.0 - p) * w.exp().ln_1p(),
        }
    }

    fn excess(&self, weights: &[f64]) -> f64 {
        let best = self.population(self.weight());
        let each = weights.iter().enumerate().map(|(j, w)| self.population(w * Self::sign(j)) - best);
        each.sum::<f64>() / self.dim as f64
    }

    fn draw(&self, n: usize, rng: &mut SeededRng) -> Result<Examples<f64>, Box<dyn Error>> {
        let size = if self.loss == LossKind::Absolute { self.weight() } else { 1.0 };
        let (mut indices, mut targets) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for _ in 0..n {
            let j = rng.random_range(0..self.dim);
            let likelier = rng.random_bool(self.likelier());
            indices.push(j as u32);
            targets.push(if likelier { Self::sign(j) } else { -Self::sign(j) } * size);
        }
        Ok(Examples::sparse((0..=n).collect(), indices, vec![1.0; n], targets, self.dim)?)
    }

    fn algorithms(&self) -> Vec<(&'static str, AnyRecipe)> {
        let (loss, noise_mode) = (self.loss, NoiseMode::Rounded);
        let erm = PhasedErm { noise_mode, distance: Some(DISTANCE), ..PhasedErm::new(loss, 2.0 * DISTANCE) };
        if !loss.is_smooth() {
            return vec![("phased-erm", erm.into())];
        }
        let radius = Some(2.0 * DISTANCE);
        let bolt_on = BoltOn {
            noise_mode,
            radius,
            passes: 1,
            batch_size: 1,
            output_noise: OutputNoise::Gaussian,
            ..BoltOn::convex(loss)
        };
        vec![
            ("bolt-on, 1 pass", bolt_on.clone().into()),
            ("bolt-on, 10 passes", BoltOn { passes: 10, batch_size: 50, ..bolt_on }.into()),
            ("pnsgd", Pnsgd { noise_mode, distance: DISTANCE, radius, ..Pnsgd::new(loss) }.into()),
            ("snowball-sgd", SnowballSgd { noise_mode, distance: DISTANCE, radius, ..SnowballSgd::new(loss) }.into()),
            (
                "phased-sgd",
                PhasedSgd { noise_mode, distance: Some(DISTANCE), ..PhasedSgd::new(loss, 2.0 * DISTANCE) }.into(),
            ),
            ("phased-erm", erm.into()),
        ]
    }
}

/// Mean excess and time of one algorithm at one n.
struct Point {
    n: usize,
    excess: f64,
    seconds: f64,
}

/// Returns the slope of log y in log x by least squares.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let count = points.clone().count() as f64;
    let logs = points.map(|(x, y)| (x.ln(), y.ln()));
    let (mean_x, mean_y) = logs.clone().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / count, b + y / count));
    let (above, below) = logs.fold((0.0, 0.0), |(above, below), (x, y)| {
        (above + (x - mean_x) * (y - mean_y), below + (x - mean_x) * (x - mean_x))
    });
    above / below
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut records = vec![1000, 10_000, 100_000];
    let (mut most, mut seeds, mut dims) = (1_000_000, 4u64, vec![10, 100]);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        let list = |text: &str| text.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
        match argument.as_str() {
            "--records" => records = list(&value)?,
            "--most" => most = value.parse()?,
            "--seeds" => seeds = value.parse()?,
            "--dims" => dims = list(&value)?,
            _ => return Err(format!("{argument} is unknown").into()),
        }
    }
    if !records.contains(&most) {
        records.push(most);
    }
    let budget = Budget::new(1.0, 1e-6)?;
    let rho = 1.0 / gaussian::noise_multiplier(budget.epsilon, budget.delta)?.get();
    println!("epsilon 1, delta 1e-6 (rho {rho:.4}), D = {DISTANCE}, L = 1, {seeds} seeds, noise rounded\n");
    for loss in [LossKind::Logistic, LossKind::Absolute] {
        for &dim in &dims {
            table(Task { loss, dim }, &records, seeds, budget, rho)?;
        }
    }
    Ok(())
}

fn table(task: Task, records: &[usize], seeds: u64, budget: Budget, rho: f64) -> Result<(), Box<dyn Error>> {
    let Task { loss, dim } = task;
    println!("### {loss}, d = {dim}; the origin's excess is {:.4}\n", task.excess(&vec![0.0; dim]));
    println!("| algorithm | n | excess loss | over the rate | seconds |");
    println!("|---|---:|---:|---:|---:|");
    let mut slopes = Vec::new();
    for (name, recipe) in task.algorithms() {
        let mut points = Vec::new();
        for &n in records.iter().filter(|&&n| name != "phased-erm" || n <= MOST_MINIMISED) {
            let (mut excesses, mut seconds) = (Vec::new(), 0.0);
            for seed in 0..seeds {
                let mut rng = SeededRng::new(1000 * seed + n as u64);
                let mut source = MemorySource::new(task.draw(n, &mut rng)?, 1.0, 1.0);
                let begun = Instant::now();
                // Too few records for the smallest batches of the method: no row.
                let Ok(plan) = recipe.plan_copies::<ReplaceOne>(n as u64, dim as u64, budget, 1) else { break };
                let trained = plan.train::<f64>(&mut source, &mut rng, &mut Control::default())?;
                seconds += begun.elapsed().as_secs_f64() / seeds as f64;
                excesses.push(task.excess(trained.weights.get()));
            }
            if excesses.is_empty() {
                continue;
            }
            let (mean, error) = mean_and_error(&excesses);
            let size = n as f64;
            let rate = DISTANCE * (1.0 / size.sqrt() + (dim as f64).sqrt() / (rho * size));
            println!("| {name} | {n} | {mean:.2e} ± {error:.1e} | {:.2} | {seconds:.3} |", mean / rate);
            points.push(Point { n, excess: mean, seconds });
        }
        if points.len() > 1 {
            let of = |figure: fn(&Point) -> f64| slope(points.iter().map(move |point| (point.n as f64, figure(point))));
            slopes.push((name, of(|point| point.excess), of(|point| point.seconds)));
        }
    }
    println!("\n| algorithm | slope of the excess | slope of the time |");
    println!("|---|---:|---:|");
    for (name, excess, time) in slopes {
        println!("| {name} | {excess:.2} | {time:.2} |");
    }
    println!();
    Ok(())
}
