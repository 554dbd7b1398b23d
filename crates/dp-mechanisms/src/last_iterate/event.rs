//! The event of a run, from the parameters of its iterates. Every rounding is towards a higher cost.

use dp_accountant::DpEvent;

use super::Iterates;

/// Factor beyond which contractions are not used: the remaining shift then costs almost nothing, and nothing underflows.
const LEAST_SHRINK: f64 = 1e-9;

/// Maximum number of iterates in an event; longer lists are shortened by raising sensitivities by less than [`STRETCH`].
const MOST_STAIRS: usize = 1000;

/// Largest factor by which a step's sensitivity is overstated so that earlier steps with slightly larger ones cost no more.
const STRETCH: f64 = 1.001;

/// Returns the event of `passes` passes over `stages`, each with the step of its grid, in `dim` dimensions.
pub(super) fn of_passes(stages: &[(Iterates, f64)], dim: u64, passes: u64) -> DpEvent {
    let of_pass = deviations(stages, dim, passes);
    let last = last_pass(stages, of_pass);
    if passes == 1 {
        return last;
    }
    // A turn lies in two passes.
    let turn = worst_turn(stages, 2f64.sqrt().next_up() * of_pass);
    let turns = if passes == 2 { turn } else { DpEvent::SelfComposed { event: Box::new(turn), count: passes - 1 } };
    DpEvent::Composed { events: vec![turns, last] }
}

/// Returns a factor that covers the rounding of `operations` sums, products and roots, each of at most two units.
fn slack(operations: f64) -> f64 {
    1.0 + 2.0 * f64::EPSILON * (operations + 16.0)
}

fn iterates(stages: &[(Iterates, f64)]) -> f64 {
    stages.iter().map(|(stage, _)| stage.count as f64).sum()
}

/// Returns `E` of one pass: the deviations of the updates and the rounding to the grid of the iterates from which they start, in
/// units of the noise.
fn deviations(stages: &[(Iterates, f64)], dim: u64, passes: u64) -> f64 {
    let root_of_dim = (dim as f64).sqrt();
    // The first update of a later pass starts from the last iterate of the pass before.
    let mut grid_before = if passes == 1 { 0.0 } else { stages.last().map_or(0.0, |(_, grid)| *grid) };
    let mut total: f64 = 0.0;
    for (stage, grid) in stages {
        // Half a step in each coordinate for each of the two runs.
        let apart = stage.deviation + grid.max(grid_before) * root_of_dim;
        total = total.hypot(apart / stage.std_dev * (stage.count as f64).sqrt());
        grid_before = *grid;
    }
    total * slack(4.0 * stages.len() as f64)
}

/// Returns the remaining shift `shrink` one contraction earlier, rounded up.
fn shrunk(shrink: f64, contraction: f64) -> f64 {
    (shrink * contraction).next_up().max(LEAST_SHRINK).min(shrink)
}

/// Returns the noise of steps that contract the shift, from the last to the first, until the remaining shift is negligible: the
/// root of the sum of squares, rounded down; the contraction before them, rounded up; and the number of steps.
fn shrinking(count: u64, contraction: f64, shrink: f64) -> (f64, f64, u64) {
    let log = contraction.ln();
    let steps = ((LEAST_SHRINK / shrink).ln() / log).floor().min(count as f64);
    if !(steps >= 2.0) {
        return (shrink, shrunk(shrink, contraction), 1);
    }
    // The exponents are at most 50, for which the exponential is accurate to 1e-14.
    let noise = shrink * ((2.0 * steps * log).exp_m1() / (2.0 * log).exp_m1()).sqrt() * (1.0 - 1e-13);
    let next = shrink * (steps * log).exp() * (1.0 + 1e-13);
    (noise, next.max(LEAST_SHRINK).min(shrink), steps as u64)
}

/// Returns the event of the last appearance of a record, protected by the noise up to the end.
fn last_pass(stages: &[(Iterates, f64)], deviations: f64) -> DpEvent {
    let mut stairs = staircase(stages, 1.0);
    if stairs.len() > MOST_STAIRS {
        stairs = staircase(stages, STRETCH);
    }
    let slack = slack(stairs.len() as f64);
    let mut noise: f64 = 0.0;
    for (sensitivity, std_dev) in &mut stairs {
        noise = noise.hypot(*std_dev);
        if deviations > 0.0 {
            *sensitivity = (*sensitivity + deviations * noise * slack).next_up();
        }
    }
    let (sensitivities, std_devs) = stairs.into_iter().rev().unzip();
    DpEvent::AmplifiedByIteration { sensitivities, std_devs, contraction: 1.0 }
}

/// Returns the steps that cost more than every later one, from the last to the first, with sensitivity and noise as propagated to
/// the end; the noise of the others is merged into that of the one before. `stretch` above 1 gives fewer steps.
fn staircase(stages: &[(Iterates, f64)], stretch: f64) -> Vec<(f64, f64)> {
    let slack = slack(8.0 * stages.len() as f64);
    let mut stairs = Vec::new();
    let (mut merged, mut highest, mut shrink) = (0.0f64, 0.0f64, 1.0f64);
    for (stage, _) in stages.iter().rev() {
        let Iterates { mut count, sensitivity, contraction, std_dev, .. } = *stage;
        if sensitivity > highest {
            highest = sensitivity * stretch;
            // Products with 1 are exact.
            let (up, down) = if shrink == 1.0 && stretch == 1.0 { (1.0, 1.0) } else { (slack, 1.0 / slack) };
            let noise = std_dev * shrink * down;
            let noise = if merged > 0.0 { noise.hypot(merged) / slack } else { noise };
            merged = 0.0;
            stairs.push((highest * shrink * up, noise));
            count -= 1;
            shrink = if contraction == 1.0 { shrink } else { shrunk(shrink, contraction) };
        }
        if contraction < 1.0 && count > 0 && shrink > LEAST_SHRINK {
            let (noise, next, taken) = shrinking(count, contraction, shrink);
            merged = merged.hypot(std_dev * noise);
            shrink = next;
            count -= taken;
        }
        merged = merged.hypot(std_dev * shrink * (count as f64).sqrt());
    }
    stairs
}

/// Returns the costliest stretch from one appearance of a record to just before its next, in the following pass.
fn worst_turn(stages: &[(Iterates, f64)], deviations: f64) -> DpEvent {
    let slack = slack(4.0 * iterates(stages));
    // Noise of the next pass up to each step, in units of the end of this pass.
    let mut of_next_pass = Vec::new();
    let (mut noise, mut shrink) = (0.0f64, 1.0f64);
    for (stage, _) in stages {
        for _ in 0..stage.count {
            of_next_pass.push(noise);
            shrink = if stage.contraction == 1.0 { shrink } else { shrunk(shrink, stage.contraction) };
            noise = noise.hypot(stage.std_dev / shrink);
        }
    }
    let (mut worst, mut of_worst) = (0.0, (0.0, 1.0));
    let (mut noise, mut shrink) = (0.0f64, 1.0f64);
    for (stage, _) in stages.iter().rev() {
        for _ in 0..stage.count {
            noise = noise.hypot(stage.std_dev * shrink);
            let all = noise.hypot(of_next_pass.pop().unwrap_or(0.0)) / shrink / slack;
            if stage.sensitivity / all > worst {
                (worst, of_worst) = (stage.sensitivity / all, (stage.sensitivity, all));
            }
            shrink = if stage.contraction == 1.0 { shrink } else { shrunk(shrink, stage.contraction) };
        }
    }
    let (sensitivity, std_dev) = of_worst;
    let sensitivity = (sensitivity + deviations * std_dev * slack * slack).next_up();
    DpEvent::AmplifiedByIteration { sensitivities: vec![sensitivity], std_devs: vec![std_dev], contraction: 1.0 }
}
