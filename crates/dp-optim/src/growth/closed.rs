//! Upper bounds in closed form for the two schedules whose recursion telescopes, for fast planning of long runs.

use super::rounding::Sums;
use super::{Checked, expansion};
use crate::schedule::Schedule;

/// Upper bounds on the results of the recursion.
pub(super) struct Terms {
    pub(super) distance: f64,
    pub(super) rounding: Sums,
    /// Lower bound on the sensitivity of 99 of 100 positions, relative to the largest: near 1, hiding the position gains
    /// nothing.
    pub(super) evenness: f64,
}

/// Covers the roundings of the few products, powers and quotients below, and of the telescoped factors: each `ρ_t` of the
/// second case has relative error `4υ/(t - 1)`, their product at most `4υ (1 + ln 2^53)`.
const INFLATION: f64 = 1.0 + 1e-13;

/// Returns the closed bound if there is one: last iterate, and a constant or strongly convex schedule that does not expand.
///
/// In both cases the contributions `c_t` do not decrease with `t`, so that the worst position is the last of the pass, for
/// fixed and for fresh permutations: `Δ = Σ_j c_{(j+1)u}`.
///
/// Constant: `c_t = (ηG/b) ρ^{T-t}` with `ρ ≤ 1`. Strongly convex: the step is the cap `1/β` up to some `t₀` and
/// `1/(γt)` after it, where `ρ_t = 1 - 1/t` telescopes: `A_t = t/T` and `c_t = G/(γbT)` for `t > t₀`, and
/// `A_t = (t₀/T) (1 - γ/β)^{t₀-t}` before. Without a capped step this is Lemma 8 of Wu et al. 2017, `G/(γn)`; with many
/// of them it is far smaller.
pub(super) fn terms(checked: &Checked<'_>) -> Option<Terms> {
    let growth = checked.growth;
    if !checked.weights.is_last() || growth.passes == 0 {
        return None;
    }
    let per_gradient = growth.gradient_difference / checked.last_divisor;
    let (updates, per_pass) = (checked.updates as f64, checked.updates_per_pass as f64);
    if let Some(step) = checked.steps.constant() {
        let rho = expansion(step, growth.smoothness, growth.strong_convexity);
        let rho = rho + 3.0 * f64::EPSILON * (1.0 + step * growth.smoothness);
        // A convex run at η <= 2/β has ρ = 1 up to the slack, whose power below is a relative error of 1e-15 T.
        if !(rho <= 1.0 + 10.0 * f64::EPSILON) {
            return None;
        }
        let over_pass = rho.powf(per_pass) * (1.0 + 4.0 * f64::EPSILON);
        // If the slack raises ρ above 1, the first position may be the worst, by at most one pass's growth.
        let passes = powers(over_pass, growth.passes) * over_pass.max(1.0);
        let reach = if rho < 1.0 { updates.min(1.0 / (1.0 - rho)) } else { updates * rho.powf(updates) };
        return Some(Terms {
            distance: step * per_gradient * passes * INFLATION,
            rounding: Sums { reach, step_times_reach: step * reach, steps: step * updates, handed_on: 0.0 }
                .scaled(INFLATION),
            evenness: rho.powf(per_pass - 1.0),
        });
    }
    let Schedule::StronglyConvex { smoothness, strong_convexity } = growth.schedule else { return None };
    // Another γ or a cap beyond 2/(β + γ) would break the telescoping.
    if strong_convexity != growth.strong_convexity || !(smoothness >= growth.smoothness) {
        return None;
    }
    let gamma = strong_convexity;
    let cap = checked.steps.at(1);
    let capped = last_capped(checked, cap);
    let shrink = (1.0 - cap * gamma + 3.0 * f64::EPSILON).min(1.0);
    // A at the last capped update: the later factors telescope, or there are none.
    let reach_at_cap = if capped == checked.updates { 1.0 } else { capped as f64 / updates };
    let contribution = |t: u64| {
        if t > capped { 1.0 / (gamma * updates) } else { cap * reach_at_cap * shrink.powf((capped - t) as f64) }
    };
    let (mut moved, mut moved_early) = (0.0, 0.0);
    for pass in 0..growth.passes {
        let before = pass * checked.updates_per_pass;
        moved += contribution(before + checked.updates_per_pass);
        moved_early += contribution(before + 1 + checked.updates_per_pass / 100);
    }
    let decaying = (checked.updates - capped) as f64;
    let capped_steps = cap * capped as f64;
    Some(Terms {
        distance: per_gradient * moved * (1.0 + 4.0 * f64::EPSILON * growth.passes as f64) * INFLATION,
        rounding: Sums {
            reach: updates,
            step_times_reach: capped_steps * reach_at_cap + decaying / (gamma * updates),
            steps: capped_steps + (1.0 + updates.ln()) / gamma,
            handed_on: 0.0,
        }
        .scaled(INFLATION),
        evenness: moved_early / moved,
    })
}

/// Returns `Σ_{i < count} x^i`.
fn powers(x: f64, count: u64) -> f64 {
    let mut sum = 0.0;
    let mut power = 1.0;
    for _ in 0..count {
        sum += power;
        power *= x;
    }
    sum * (1.0 + 4.0 * f64::EPSILON * count as f64)
}

/// Returns the last update whose step is the cap. Step sizes do not increase with `t`, so bisection finds it.
fn last_capped(checked: &Checked<'_>, cap: f64) -> u64 {
    if checked.steps.at(checked.updates) == cap {
        return checked.updates;
    }
    let (mut capped, mut below) = (1, checked.updates);
    while below - capped > 1 {
        let middle = capped + (below - capped) / 2;
        if checked.steps.at(middle) == cap {
            capped = middle;
        } else {
            below = middle;
        }
    }
    capped
}

#[cfg(test)]
mod tests;
