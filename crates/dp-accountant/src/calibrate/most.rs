//! The search for the largest count that meets the target; the result is exact.

use crate::error::Error;

/// Number of trials after which every trial halves the bracket.
const INTERPOLATED_TRIALS: u32 = 40;

/// The result of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Most {
    /// This count meets the target and the next one does not; both were evaluated. If the excess is not monotone, only the first
    /// statement is certain.
    At(u64),
    /// The limit still meets the target.
    Unlimited,
    /// A count of 0 does not meet the target.
    NotEvenNone,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    count: u64,
    excess: f64,
}

/// Returns the largest count up to `limit` with `excess(count) <= 0`, for an excess that does not decrease with the count.
///
/// Takes secant steps in the logarithm of the count inside a bracket. The bracket ends with adjacent counts, both evaluated: the
/// lower one meets the target and the upper one does not.
pub(super) fn most(limit: u64, start: u64, mut excess: impl FnMut(u64) -> Result<f64, Error>) -> Result<Most, Error> {
    let (mut fits, mut exceeds): (Option<u64>, Option<u64>) = (None, None);
    let mut recent: Vec<Trial> = Vec::new();
    let mut factor: u64 = 64;
    // Doubled while steps to an adjacent count do not close the bracket.
    let mut stride: u64 = 1;
    let mut count = start;
    let mut trials = 0u32;
    loop {
        let trial = Trial { count, excess: excess(count)? };
        trials += 1;
        if trial.excess <= 0.0 {
            fits = Some(fits.map_or(count, |fits| fits.max(count)));
        } else {
            exceeds = Some(exceeds.map_or(count, |exceeds| exceeds.min(count)));
        }
        if trial.excess.is_finite() && count > 0 {
            if recent.len() == 2 {
                recent.remove(0);
            }
            recent.push(trial);
        }
        let aim = interpolated(&recent);
        count = match (fits, exceeds) {
            (Some(fits), _) if fits >= limit => return Ok(Most::Unlimited),
            (_, Some(0)) => return Ok(Most::NotEvenNone),
            // If the excess is not monotone, a count that meets the target may lie above one that does not: it was evaluated and
            // is valid.
            (Some(fits), Some(exceeds)) if exceeds <= fits.saturating_add(1) => return Ok(Most::At(fits)),
            (Some(fits), Some(exceeds)) => {
                let middle = fits + (exceeds - fits) / 2;
                let next = match aim {
                    _ if trials > INTERPOLATED_TRIALS => middle,
                    Some(aim) if aim <= fits => fits + stride,
                    Some(aim) if aim >= exceeds => exceeds.saturating_sub(stride),
                    Some(aim) => aim,
                    None => middle,
                };
                stride = if aim.is_some_and(|aim| aim > fits && aim < exceeds) { 1 } else { stride.saturating_mul(2) };
                next.clamp(fits + 1, exceeds - 1)
            }
            (Some(fits), None) => {
                let farthest = fits.max(1).saturating_mul(factor).min(limit);
                factor = factor.saturating_mul(factor);
                aim.unwrap_or(farthest).clamp((fits + 1).min(farthest), farthest)
            }
            (None, Some(exceeds)) => {
                let nearest = exceeds / factor;
                factor = factor.saturating_mul(factor);
                aim.unwrap_or(nearest).clamp(nearest, exceeds - 1)
            }
            (None, None) => 0,
        };
    }
}

/// Returns the count at which the line through the last two trials is zero, rounded down.
fn interpolated(recent: &[Trial]) -> Option<u64> {
    let (slope, last) = match recent {
        [.., a, b] if a.count != b.count => {
            ((b.excess - a.excess) / ((b.count as f64).ln() - (a.count as f64).ln()), b)
        }
        // Epsilon grows like a power of the count between the square root and linear.
        [.., last] => (0.6, last),
        [] => return None,
    };
    let aim = (last.count as f64).ln() - last.excess / slope;
    // The conversion saturates; NaN becomes 0, which the caller clamps.
    (slope > 0.0).then(|| aim.exp() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, f: impl Fn(f64) -> f64) -> (Most, u32) {
        let mut trials = 0;
        let found = most(1 << 53, start, |count| {
            trials += 1;
            Ok(f(count as f64))
        });
        (found.unwrap(), trials)
    }

    #[test]
    fn exact_for_any_power_from_any_start() {
        for power in [0.5, 0.73, 1.0] {
            for root in [1.5f64, 7.01, 999.999, 123_456.5, 9.876_543_215e8] {
                for start in [1, 1000, 1 << 40] {
                    let (found, trials) = run(start, |count| power * (count / root).ln());
                    assert_eq!(found, Most::At(root as u64), "{power} {root} {start}");
                    assert!(trials <= 10, "{power} {root} {start}: {trials}");
                }
            }
        }
    }

    #[test]
    fn curved_functions_need_few_trials() {
        for root in [55.5f64, 14_062.2, 3.3e8] {
            let cost = |count: f64| (0.3 * count / root + 1.7 * (count / root).sqrt() + (count / root).powi(2)).ln();
            let exact = (1..).map(|i| root * 0.999_f64.powi(i)).find(|count| cost(*count) < 0.0).unwrap();
            let (found, trials) = run(1000, cost);
            let Most::At(found) = found else { panic!("{found:?}") };
            assert!(cost(found as f64) <= 0.0 && cost(found as f64 + 1.0) > 0.0);
            assert!((found as f64 - exact).abs() < 1.0 + 0.002 * exact && trials <= 11, "{root}: {trials}");
        }
    }

    #[test]
    fn where_the_excess_falls_the_answer_still_fits() {
        for start in [1, 300, 1000, 5000] {
            // Fits up to 500, and again from 900 to 2000.
            let f = |count: f64| if count <= 500.0 || (900.0..=2000.0).contains(&count) { -0.1 } else { 0.1 };
            let (found, trials) = run(start, f);
            let Most::At(found) = found else { panic!("{found:?}") };
            assert!(f(found as f64) <= 0.0 && trials < 110, "{start}: {found} {trials}");
        }
    }

    #[test]
    fn ends_of_the_range_and_jumps() {
        assert_eq!(run(1000, |_| -1.0).0, Most::Unlimited);
        assert_eq!(run(1000, |_| f64::NEG_INFINITY).0, Most::Unlimited);
        assert_eq!(run(1000, |_| f64::NAN).0, Most::NotEvenNone);
        assert_eq!(run(1000, |_| 1.0).0, Most::NotEvenNone);
        assert_eq!(run(1000, |count| if count == 0.0 { -1.0 } else { 2.0 }).0, Most::At(0));
        for jump in [1.0, 3.0, 1000.0, 5e8] {
            for (below, above) in [(-1.0, 1.0), (f64::NEG_INFINITY, f64::INFINITY), (-1e-9, 1e-9)] {
                let (found, trials) = run(1000, |count| if count <= jump { below } else { above });
                assert_eq!(found, Most::At(jump as u64), "{jump} {below}");
                assert!(trials < 110, "{jump} {below}: {trials}");
            }
        }
    }
}
