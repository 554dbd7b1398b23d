//! Published formulas that are wrong, or larger than necessary. No guarantee follows from them, and no recipe uses them. Each
//! wrong one has a test in which two runs on neighbouring data end further apart than it allows.

use crate::averaging::Averaging;
use crate::error::Error;
use crate::growth::{Growth, Sensitivity};
use crate::schedule::Schedule;

/// Algorithm 3.3, line 8: the sensitivities for steps `η₀/s` in pass `s`, claimed for a run that takes `η₀/h` with `h` counted
/// from each restart, as in the text. Wrong if there is a restart: the actual steps are longer.
///
/// `run` is the run whose sensitivity is claimed.
///
/// # Errors
/// As [`Growth::formula`].
pub fn without_the_schedule_s_restart(run: &Growth, first_step: f64) -> Result<Sensitivity, Error> {
    let schedule = Schedule::PerPass { step: first_step, updates_per_pass: run.updates_per_pass() };
    Growth { schedule, ..run.clone() }.formula()
}

/// Algorithm 3.3 as a claim about its restarts: the sensitivities without averages.
///
/// # Errors
/// As [`Growth::formula`].
pub fn without_averages(run: &Growth) -> Result<Sensitivity, Error> {
    Growth { averaging: Averaging::Last, ..run.clone() }.formula()
}

/// Theorem 3.2: the weights `1/m` of `m` positions. Wrong if the batches differ in size: a record is in batch `j` with
/// probability `b_j/n`.
pub fn equal_weights(positions: usize) -> Vec<f64> {
    vec![1.0 / positions as f64; positions]
}

/// OutPert-GD for convex losses: `3 R T η / n`. Correct: at most `2 R T η / n`.
pub fn convex_gradient_descent(n: u64, passes: u64, step: f64, gradient_bound: f64) -> f64 {
    3.0 * gradient_bound * passes as f64 * step / n as f64
}

/// OutPert-GD for μ-strongly convex and L-smooth losses: `5 R (L + μ) / (n μ L)`. Correct, with the step `2/(L + μ)`: at most
/// `2 R / (n μ)`, less than half.
pub fn strongly_convex_gradient_descent(n: u64, smoothness: f64, strong_convexity: f64, gradient_bound: f64) -> f64 {
    5.0 * gradient_bound * (smoothness + strong_convexity) / (n as f64 * strong_convexity * smoothness)
}
