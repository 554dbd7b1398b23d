//! Calibration of the largest epsilon of a repetition with which the whole stays within the budget.

use dp_accountant::Epsilon;

use crate::error::Error;

/// Maximum number of evaluations, after which the best result so far is used.
const MOST_EVALUATIONS: u32 = 24;
/// Fraction of the budget below which the search is given up.
const LEAST_SHARE: f64 = 1e-4;

/// Searches the largest epsilon by evaluation: `attempt(epsilon)` plans at that epsilon and returns the cost of the whole.
///
/// The search takes secants in logarithms, and bisects where these do not halve the interval. It starts at `first`, and ends where the cost is at least `close` times the budget, or
/// where the ends of its interval have this ratio. If no plan meets the budget, the error states the range `reachable`. The
/// returned plan met the budget when it was evaluated, however the search proceeds.
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
    let mut last = None;
    let mut width = f64::INFINITY;
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
        // Aim slightly below the budget, within the interval that is not yet excluded. Costs grow about linearly.
        let power = last.map_or(1.0, |(epsilon, before): (f64, f64)| (cost / before).ln() / (next / epsilon).ln());
        let power = if power.is_finite() { power.clamp(0.25, 4.0) } else { 1.0 };
        let share = if cost.is_finite() { goal * (0.8 + 0.2 * close) / cost } else { 0.25 };
        let aimed = next * share.powf(1.0 / power);
        last = Some((next, cost));
        next = match (below > 0.0, above.is_finite()) {
            (true, true) => {
                let before = core::mem::replace(&mut width, (above / below).ln());
                let margin = (0.01 * width).exp();
                // Bisection, if the last step did not halve the interval: the cost may leap over the budget.
                if width <= 0.5 * before { aimed.clamp(below * margin, above / margin) } else { (below * above).sqrt() }
            }
            (false, _) => aimed.clamp(next / 8.0, next * 0.999),
            (true, false) => aimed.clamp(next, next * 4.0),
        };
    }
    best.ok_or(Error::OutOfRange { name: "epsilon", value: goal, range: reachable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_that_grow_by_a_power_are_met_in_a_few_evaluations() {
        for power in [0.6, 0.9, 1.0, 1.1, 1.7, 3.0] {
            for first in [0.01, 0.3, 0.9] {
                let close = 1.0 - 1e-4;
                let mut evaluations = 0;
                let cost = |epsilon: f64| 2.0 * (epsilon / 0.35).powf(power);
                let attempt = |epsilon: Epsilon| {
                    evaluations += 1;
                    Ok((epsilon.get(), cost(epsilon.get())))
                };
                let (planned, found) = largest(Epsilon::new(2.0).unwrap(), first, close, "", attempt).unwrap();
                assert_eq!(planned, found);
                assert!(cost(found) <= 2.0 && cost(found) >= 2.0 * close, "{power} {first}: {found}");
                assert!(evaluations <= 5, "{power} {first}: {evaluations}");
            }
        }
    }

    #[test]
    fn costs_that_leap_over_the_budget_are_met_as_closely() {
        let target = Epsilon::new(1.0).unwrap();
        let close = 1.0 - 1e-4;
        let search = |cost: fn(f64) -> f64| {
            let attempt = |epsilon: Epsilon| Ok(((), cost(epsilon.get())));
            largest(target, 0.3, close, "a range", attempt).map(|(_, epsilon)| epsilon)
        };
        let costs: [fn(f64) -> f64; 4] = [
            |epsilon| if epsilon < 0.5 { 0.9 } else { 1.5 },
            |epsilon| if epsilon < 0.5 { 0.9 } else { f64::INFINITY },
            |epsilon| if epsilon < 0.5 { 0.9 } else { f64::NAN },
            |epsilon| if epsilon < 0.5 { epsilon } else { epsilon + 0.6 },
        ];
        for cost in costs {
            let found = search(cost).unwrap();
            assert!((close * 0.5..0.5).contains(&found), "{found}");
        }
        assert!(search(|_| 0.0).is_ok());
        assert!(matches!(search(|_| 2.0), Err(Error::OutOfRange { range: "a range", .. })));
    }
}
