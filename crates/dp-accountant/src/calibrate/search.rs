//! The search for a real value: few evaluations of a costly function, with a result that was evaluated and found safe.

use crate::error::Error;

/// Distance of the result from the boundary on the logarithmic scale.
const TOLERANCE: f64 = 1e-10;

/// From this number of trials on, interpolation is given up: each trial halves the bracket,
const PATIENCE: u32 = 24;

/// and this tolerance suffices.
const LOOSE_TOLERANCE: f64 = 1e-6;

/// Largest distance between points whose slope is trusted.
const NEAR: f64 = 0.02;

/// Largest length of the first step from a guess, and from the result of a search with coarse evaluations; each later step may be
/// twice as long as the one before.
pub(super) const FROM_A_GUESS: f64 = 12.0;
pub(super) const FROM_A_RESULT: f64 = 0.25;

/// Maximum number of trials, far above need: after a few dozen, every trial halves the bracket.
const MAX_TRIALS: u32 = 300;

/// The range of the search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The start of the search, with a guess of the slope of the excess there and the largest length of the first step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) x: f64,
    pub(super) slope: f64,
    pub(super) reach: f64,
}

/// The result of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Found {
    /// The least safe point.
    At(f64),
    /// The low end of the range is safe.
    EverywhereSafe,
    /// The high end of the range is not safe.
    NowhereSafe,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    x: f64,
    excess: f64,
}

/// Returns the least `x` in `range` with `excess(x) <= 0`, for an excess that does not increase with `x`.
///
/// Uses inverse interpolation through the last three points (a line through two points, the guessed slope from one), aimed a
/// quarter of the tolerance to the safe side, so that typically the last evaluation is the result and the bracket need not be
/// closed from both sides. The search ends when a safe point's distance from the boundary is below the tolerance, measured by a
/// slope between *nearby* points or by an unsafe point. If interpolation makes no progress, a known bracket is halved, so that
/// the search ends for any function. An infinite excess only tells on which side a point lies.
pub(super) fn least_safe(
    range: Range,
    start: Start,
    mut excess: impl FnMut(f64) -> Result<f64, Error>,
) -> Result<Found, Error> {
    let mut search = Search { range, slope: start.slope, reach: start.reach, ..Search::default() };
    let mut x = start.x.clamp(range.low, range.high);
    for _ in 0..MAX_TRIALS {
        search.record(Trial { x, excess: excess(x)? });
        if let Some(found) = search.finished() {
            return Ok(found);
        }
        x = search.next();
    }
    Ok(search.safe.map_or(Found::NowhereSafe, |trial| Found::At(trial.x)))
}

#[derive(Debug)]
struct Search {
    range: Range,
    slope: f64,
    /// The largest point known to be unsafe, and the least known to be safe.
    unsafe_: Option<Trial>,
    safe: Option<Trial>,
    /// The latest finite trials, the newest last.
    recent: Vec<Trial>,
    reach: f64,
    least_excess: f64,
    stalled: u32,
    trials: u32,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            range: Range { low: 0.0, high: 0.0 },
            slope: -1.0,
            unsafe_: None,
            safe: None,
            recent: Vec::new(),
            reach: FROM_A_GUESS,
            least_excess: f64::INFINITY,
            stalled: 0,
            trials: 0,
        }
    }
}

impl Search {
    fn is_patient(&self) -> bool {
        self.trials < PATIENCE
    }

    fn record(&mut self, trial: Trial) {
        self.trials += 1;
        if trial.excess <= 0.0 {
            if self.safe.is_none_or(|safe| trial.x < safe.x) {
                self.safe = Some(trial);
            }
        } else if self.unsafe_.is_none_or(|low| trial.x > low.x) {
            self.unsafe_ = Some(trial);
        }
        if trial.excess.is_finite() {
            if self.recent.len() == 3 {
                self.recent.remove(0);
            }
            self.recent.push(trial);
        }
        if trial.excess.abs() <= 0.5 * self.least_excess {
            self.least_excess = trial.excess.abs();
            self.stalled = 0;
        } else {
            self.stalled += 1;
        }
    }

    fn finished(&self) -> Option<Found> {
        if self.unsafe_.is_some_and(|low| low.x >= self.range.high) {
            return Some(Found::NowhereSafe);
        }
        let safe = self.safe?;
        if safe.x <= self.range.low {
            return Some(Found::EverywhereSafe);
        }
        let tolerance = if self.is_patient() { TOLERANCE } else { LOOSE_TOLERANCE };
        let bracketed = self.unsafe_.is_some_and(|low| safe.x - low.x <= tolerance);
        let near = self.recent.iter().filter(|other| other.x != safe.x && (other.x - safe.x).abs() <= NEAR);
        let slope = near.map(|other| (other.excess - safe.excess) / (other.x - safe.x)).next_back();
        let close = slope.is_some_and(|slope| slope < 0.0 && safe.excess / slope <= tolerance);
        (bracketed || close).then_some(Found::At(safe.x))
    }

    fn next(&mut self) -> f64 {
        let Range { low: first, high: last } = self.range;
        let aim = self.interpolated().map(|x| x + 0.25 * TOLERANCE);
        let x = match (self.unsafe_, self.safe) {
            (Some(low), Some(safe)) => {
                let middle = 0.5 * (low.x + safe.x);
                // The ends are moved by less than the tolerance, so that a zero next to them closes the bracket.
                let edge = (0.9 * TOLERANCE).min(0.25 * (safe.x - low.x));
                // An aim outside of the bracket comes from points that are far from its ends.
                let aim = aim.filter(|aim| (low.x - TOLERANCE..=safe.x + TOLERANCE).contains(aim));
                match aim {
                    Some(aim) if self.stalled < 3 && self.is_patient() => aim.clamp(low.x + edge, safe.x - edge),
                    _ => {
                        self.stalled = 0;
                        middle
                    }
                }
            }
            (Some(low), None) => {
                let farthest = low.x + self.reach;
                self.reach *= 2.0;
                aim.map_or(farthest, |aim| aim.clamp(low.x + TOLERANCE, farthest))
            }
            (None, Some(safe)) => {
                let farthest = safe.x - self.reach;
                self.reach *= 2.0;
                aim.map_or(farthest, |aim| aim.clamp(farthest, safe.x - 0.9 * TOLERANCE))
            }
            (None, None) => first,
        };
        x.clamp(first, last)
    }

    /// Returns the interpolated zero of the excess; `None` if the points do not decrease.
    fn interpolated(&self) -> Option<f64> {
        let (&c, rest) = self.recent.split_last()?;
        let Some((&b, rest)) = rest.split_last() else {
            return Some(c.x - c.excess / self.slope);
        };
        let line = |a: Trial, b: Trial| {
            let slope = (b.excess - a.excess) / (b.x - a.x);
            (slope < 0.0).then(|| b.x - b.excess / slope)
        };
        let secant = line(b, c);
        let Some(&a) = rest.last() else { return secant };
        let parts = [(a, b, c), (b, c, a), (c, a, b)]
            .map(|(p, q, r)| p.x * (q.excess / (p.excess - q.excess)) * (r.excess / (p.excess - r.excess)));
        let inverse: f64 = parts.iter().sum();
        let falls = line(a, b).is_some() && line(a, c).is_some();
        // The parabola is not used beyond twice the secant's step.
        secant.map(|secant| {
            let trusted = falls && (inverse - secant).abs() <= (secant - c.x).abs();
            if trusted { inverse } else { secant }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range { low: -276.0, high: 276.0 };

    fn run(start: Start, f: impl Fn(f64) -> f64) -> (Found, u32) {
        let mut trials = 0;
        let found = least_safe(RANGE, start, |x| {
            trials += 1;
            Ok(f(x))
        });
        (found.unwrap(), trials)
    }

    fn at(found: Found) -> f64 {
        match found {
            Found::At(x) => x,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn smooth_functions_need_few_trials_and_end_on_the_safe_side() {
        let functions: [(&dyn Fn(f64) -> f64, f64); 5] = [
            (&|x| 3.0 - x, 3.0),
            (&|x: f64| (4.0 - x) * (1.0 + 0.1 * (4.0 - x).tanh()), 4.0),
            (&|x: f64| (-x).exp_m1() + 0.3, -(0.7f64.ln())),
            (&|x: f64| -(x + 5.0).sinh() / 20.0, -5.0),
            (&|x: f64| ((-2.0 * x).exp() + (-x).exp()).ln() - 1.0, {
                let e = core::f64::consts::E;
                -((0.25 + e).sqrt() - 0.5).ln()
            }),
        ];
        for (i, (f, root)) in functions.into_iter().enumerate() {
            let (found, trials) = run(Start { x: 0.0, slope: -1.0, reach: FROM_A_GUESS }, f);
            let x = at(found);
            assert!(f(x) <= 0.0 && (x - root).abs() <= 2.0 * TOLERANCE, "{i}: {x} {root}");
            assert!(trials <= 9, "{i}: {trials}");
        }
    }

    #[test]
    fn jumps_infinities_and_plateaus_end() {
        let (found, trials) = run(Start { x: 0.0, slope: -1.0, reach: FROM_A_GUESS }, |x| {
            if x < 40.0 { f64::INFINITY } else { -f64::INFINITY }
        });
        assert!((at(found) - 40.0).abs() <= LOOSE_TOLERANCE && at(found) >= 40.0 && trials < 60, "{trials}");
        let (found, trials) =
            run(Start { x: 0.0, slope: -1.0, reach: FROM_A_GUESS }, |x| if x < -40.0 { 1.0 } else { -1.0 });
        assert!((at(found) + 40.0).abs() <= LOOSE_TOLERANCE && at(found) >= -40.0 && trials < 60, "{trials}");
        // Flat on both sides of a steep slope.
        let (found, trials) =
            run(Start { x: 50.0, slope: -1.0, reach: FROM_A_GUESS }, |x| 0.7 - (100.0 * (x - 7.0)).tanh());
        let root = 7.0 + 0.7f64.atanh() / 100.0;
        assert!((at(found) - root).abs() <= LOOSE_TOLERANCE && trials < 60, "{trials}");
        assert_eq!(run(Start { x: 1.0, slope: -1.0, reach: FROM_A_GUESS }, |_| f64::NAN).0, Found::NowhereSafe);
        assert_eq!(run(Start { x: 1.0, slope: -1.0, reach: FROM_A_GUESS }, |_| 0.2).0, Found::NowhereSafe);
        assert_eq!(run(Start { x: 1.0, slope: -1.0, reach: FROM_A_GUESS }, |_| -0.2).0, Found::EverywhereSafe);
        assert_eq!(
            run(Start { x: 1.0, slope: -1.0, reach: FROM_A_GUESS }, |_| f64::NEG_INFINITY).0,
            Found::EverywhereSafe
        );
    }

    #[test]
    fn an_asymptote_below_the_target_is_not_mistaken_for_the_boundary() {
        // The excess tends to -1e-11: closeness in value says nothing about closeness in x.
        let (found, _) = run(Start { x: 8.0, slope: -1.0, reach: FROM_A_GUESS }, |x| (-x).exp() - 1e-11);
        assert!((at(found) - 1e11f64.ln()).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_noisy_function_ends_at_a_safe_point() {
        let noisy = |x: f64| 1.0 - x + 1e-8 * (1e13 * x).sin();
        let (found, trials) = run(Start { x: 0.0, slope: -0.7, reach: FROM_A_GUESS }, noisy);
        assert!(noisy(at(found)) <= 0.0 && (at(found) - 1.0).abs() < 1e-6 && trials < 60, "{found:?} {trials}");
    }
}
