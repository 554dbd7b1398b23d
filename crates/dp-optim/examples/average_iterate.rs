//! The last iterate of noisy gradient descent is private, the average of the iterates is not.
//!
//! Both come from one run, and optimisation theory usually recommends the average. Here the first record is read in a small
//! batch: its own step's noise hides it badly, and the guarantee relies on the noise of all later steps. But the later records
//! push the iterate to the boundary of the ball and keep it there. The last iterate then reveals nothing about the first
//! record; the average is the first iterate plus a known number, with no more noise than that of one step.
//!
//! ```text
//! cargo run --release -p dp-optim --example average_iterate
//! ```
#![allow(clippy::print_stdout)]

use dp_accountant::ReplaceOne;
use dp_data::Examples;
use dp_losses::{HuberSvm, LossKind};
use dp_mechanisms::SeededRng;
use dp_optim::engine::Control;
use dp_optim::recipes::pnsgd::Batching;
use dp_optim::recipes::{Budget, Planned, Pnsgd, Recipe};
use dp_optim::{MemorySource, Schedule};
use rand::RngExt;

const RADIUS: f64 = 0.05;
const STEPS: [f64; 9] = [0.05, 0.39, 0.39, 0.39, 0.39, 0.39, 0.39, 0.39, 0.39];
const RUNS: u64 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = vec![2, 32, 32, 32, 32, 32, 32, 32, 32];
    let n: u64 = sizes.iter().sum();
    let recipe = Pnsgd {
        radius: Some(RADIUS),
        batching: Batching::Listed { sizes },
        schedule: Some(Schedule::Steps { values: STEPS.to_vec() }),
        declared_order: true,
        // In a ball this small every margin is on the linear part of the loss: the gradient is -y x.
        ..Pnsgd::new(LossKind::HuberSvm(HuberSvm::USUAL))
    };
    let budget = Budget::new(2.0, 1e-6)?;
    let plan = recipe.plan::<ReplaceOne>(n, 1, budget)?;
    println!("claimed for the last iterate: epsilon {:.3} at delta 1e-6", plan.reached().epsilon);

    // The data sets differ in the label of the first record; every later record pulls to the right.
    let source = |label: f64| -> Result<MemorySource<f64>, Box<dyn std::error::Error>> {
        let rows = [vec![1.0, 0.0], vec![1.0; n as usize - 2]].concat();
        let labels = [vec![label], vec![1.0; n as usize - 1]].concat();
        Ok(MemorySource::new(Examples::dense(rows, labels, 1)?, 1.0, 1.0))
    };
    let mut rng = SeededRng::new(2020);
    let mut on_the_boundary = [0u64; 2];
    for (count, label) in on_the_boundary.iter_mut().zip([1.0, -1.0]) {
        let mut source = source(label)?;
        for _ in 0..RUNS {
            let trained = plan.train::<f64>(&mut source, &mut rng, &mut Control::default())?;
            *count += u64::from((trained.weights.get()[0] - RADIUS).abs() < 1e-12);
        }
    }
    println!("last iterate on the boundary, by data set: {on_the_boundary:?} of {RUNS} runs");

    // The library does not release averages of such runs, so the run is repeated here by hand.
    let mut right = [0u64; 2];
    for (count, label) in right.iter_mut().zip([1.0, -1.0]) {
        for _ in 0..RUNS {
            let (mut w, mut average) = (0.0f64, 0.0);
            for (t, step) in STEPS.iter().enumerate() {
                let mean = if t == 0 { label / 2.0 } else { 1.0 };
                w = (w + step * (mean + plan.run().std_dev() * normal(&mut rng))).clamp(-RADIUS, RADIUS);
                average += w / STEPS.len() as f64;
            }
            // The attacker subtracts the contribution of the eight iterates on the boundary and uses the sign.
            let first = average * STEPS.len() as f64 - 8.0 * RADIUS;
            *count += u64::from((first > 0.0) == (label > 0.0));
        }
    }
    println!("data set told from the average: {right:?} of {RUNS} runs right");
    // (epsilon, delta) allows at most `wrong >= e^-epsilon (right - delta)`; the estimate has a margin of one run.
    let [right, other] = right.map(|count| count as f64 / RUNS as f64);
    let wrong = (1.0 - other).max(1.0 / RUNS as f64);
    let epsilon = ((right - 1e-6) / wrong).ln();
    println!("epsilon of the average is at least about {epsilon:.1}");
    assert!(epsilon > 2.0 * plan.reached().epsilon);
    Ok(())
}

/// A standard normal deviate, by the Box-Muller method.
fn normal(rng: &mut SeededRng) -> f64 {
    let (radius, angle): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (core::f64::consts::TAU * angle).cos()
}
