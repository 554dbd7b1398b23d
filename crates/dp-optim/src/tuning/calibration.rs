//! Calibration of the largest epsilon of a repetition with which the whole stays within the budget.

use dp_accountant::Epsilon;

use crate::error::Error;

/// Maximum number of evaluations, after which the best result so far is used.
const MOST_EVALUATIONS: u32 = 24;
/// Fraction of the budget below which the search is given up.
const LEAST_SHARE: f64 = 1e-4;

/// Searches the largest epsilon by evaluation: `attempt(epsilon)` plans at that epsilon and returns the cost of the whole.
///
/// The search starts at `first`, and ends where the cost is at least `close` times the budget, or where the ends of its interval have
/// this ratio. If no plan meets the budget, the error states the range `reachable`. The returned plan met the budget when it was evaluated, however the search proceeds.
pub(crate) fn largest<T>(
    target: Epsilon,
    first: f64,
    close: f64,
    reachable: &'static str,
    mut attempt: impl FnMut(Epsilon) -> Result<(T, f64), Error>,
) -> Result<(T, f64), Error> {
    let goal = target.get();
    let mut best: Option<(T, f64)> = None;
    let mut above = f64::INFINITY;
    let mut next = first;
    for _ in 0..MOST_EVALUATIONS {
        let (found, cost) = attempt(Epsilon::new(next)?)?;
        let below = best.as_ref().map_or(0.0, |&(_, epsilon)| epsilon);
        if cost <= goal && next > below {
            best = Some((found, next));
            if cost >= close * goal {
                break;
            }
        } else if !(cost <= goal) {
            above = above.min(next);
        }
        let below = best.as_ref().map_or(0.0, |&(_, epsilon)| epsilon);
        if below >= close * above || above < LEAST_SHARE * goal {
            break;
        }
        // Costs grow about linearly: aim slightly below the budget, within the interval that is not yet excluded.
        let aimed = if cost.is_finite() { next * goal / cost * (0.8 + 0.2 * close) } else { next / 4.0 };
        next = match (below > 0.0, above.is_finite()) {
            (true, true) => aimed.clamp(below * (above / below).powf(0.1), above * (below / above).powf(0.1)),
            (false, _) => aimed.clamp(next / 8.0, next * 0.9),
            (true, false) => aimed.clamp(next * 1.02, next * 4.0),
        };
    }
    best.ok_or(Error::OutOfRange { name: "epsilon", value: goal, range: reachable })
}
