//! The recursion, in ordinary arithmetic and rounded up.

use super::rounding::Sums;
use super::{Checked, OrderPolicy, expansion};
use crate::error::Error;

/// Unit roundoff of f64.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Lower bound for a shrinking reach: an upper bound on the exact value that avoids subnormal numbers, whose arithmetic takes
/// twenty times as long.
const LEAST_REACH: f64 = 1e-280;

pub(super) struct Run {
    /// The bound over all positions.
    pub(super) distance: f64,
    /// The bound for each position, the same in every pass.
    pub(super) by_position: Vec<f64>,
    /// The sums for the allowance for rounding in the training run.
    pub(super) rounding: Sums,
}

/// Runs the recursion in ordinary arithmetic.
pub(super) fn nearest(checked: &Checked<'_>) -> Result<Run, Error> {
    run(checked, 0.0)
}

/// Runs the recursion with an upper bound on its exact value as the result.
///
/// With `υ` the unit roundoff, the computed factor `ρ` is off by at most `3υ (1 + ηβ)` (one product and one difference of
/// numbers of at most `1 + ηβ`), which is added to it. All other operations are sums and products of non-negative numbers,
/// with at most five roundings for each of the `T` steps, two for each term of a position's sum and eight at the ends: the
/// result is multiplied by `1 + 2υ (5T + 2k + 16)`, twice their maximum.
pub(super) fn certified(checked: &Checked<'_>) -> Result<Run, Error> {
    let mut run = run(checked, 3.0 * UNIT)?;
    let roundings = 5.0 * checked.updates as f64 + 2.0 * checked.growth.passes as f64 + 16.0;
    let inflation = 1.0 + 2.0 * UNIT * roundings;
    run.distance *= inflation;
    run.by_position.iter_mut().for_each(|value| *value *= inflation);
    run.rounding.scale(inflation);
    Ok(run)
}

/// Runs the recursion with `slack` times `1 + ηβ` added to every expansion factor.
fn run(checked: &Checked<'_>, slack: f64) -> Result<Run, Error> {
    let growth = checked.growth;
    let (beta, gamma) = (growth.smoothness, growth.strong_convexity);
    let positions = checked.updates_per_pass;
    if !growth.recursion_is_feasible() {
        return Err(Error::Count {
            name: "updates",
            value: checked.updates,
            range: "at most 2^31 in all and 2^27 per pass for this schedule and average; raise the batch size",
        });
    }
    let last = positions as usize - 1;
    let over_divisor = growth.gradient_difference / checked.divisor;
    let over_last_divisor = growth.gradient_difference / checked.last_divisor;
    let mut by_position = vec![0.0f64; positions as usize];
    let mut fresh = 0.0;
    let mut sums = Sums::default();

    // `ahead` is A_{t+1} and `factor` is ρ(η_{t+1}); nothing follows the last update. `handed_on` is the final effect of a
    // difference of the stretch's average.
    let (mut ahead, mut factor) = (0.0f64, 0.0f64);
    let mut handed_on = 1.0f64;
    for pass in (0..growth.passes).rev() {
        let first = pass * positions + 1;
        let mut worst = 0.0f64;
        let mut worst_last = 0.0;
        for (position, total) in by_position.iter_mut().enumerate().rev() {
            let t = first + position as u64;
            let step = checked.steps.at(t);
            let mut straight = factor * ahead;
            if checked.weights.restarts_after(t) {
                handed_on = straight;
                sums.handed_on += straight;
                straight = 0.0;
            }
            let reach = checked.weights.at(t).abs() * handed_on + straight;
            let reach = if reach > 0.0 { reach.max(LEAST_REACH) } else { reach };
            let moved = step * reach;
            *total += moved;
            if position == last {
                worst_last = moved;
            } else {
                worst = worst.max(moved);
            }
            sums.reach += reach;
            sums.step_times_reach += moved;
            sums.steps += step;
            ahead = reach;
            factor = expansion(step, beta, gamma) + slack * (1.0 + step * beta);
        }
        fresh += (worst * over_divisor).max(worst_last * over_last_divisor);
    }
    for (position, total) in by_position.iter_mut().enumerate() {
        *total *= if position == last { over_last_divisor } else { over_divisor };
    }
    let distance = match growth.order {
        OrderPolicy::Fixed => by_position.iter().copied().fold(0.0, f64::max),
        OrderPolicy::Fresh => fresh,
    };
    if !distance.is_finite() {
        return Err(Error::Sensitivity { value: distance, why: "the steps are so long that it overflows" });
    }
    Ok(Run { distance, by_position, rounding: sums })
}

#[cfg(test)]
mod tests;
