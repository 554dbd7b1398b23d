//! Lines for laws with rare large losses, to the left of the sharp rise of the moment function.
//!
//! If most of a law's mass has small losses and rare losses are many times larger, as in DP-SGD with a tiny sampling rate and
//! little noise, the moment function is close to 1 up to some `c` and then rises sharply. The saddle point lies in the rise. On a
//! line through it the large losses weigh most, the aliases to the right need a wide window, and the sum has many points. On a
//! line to the left of the rise the window is short, and delta is known nearly as well, since the cumulant is close to 0 on both.
//! It is tried if the usual line leaves the ends of many releases far apart, and with up to some seconds of work if the loss
//! distributions are not promising.
//!
//! Any line gives certified ends; their proof does not depend on the choice of the line.

use super::law::Law;
use super::line::{Effort, Line, LogDelta};
use super::search::{Saddle, Search};
use super::{Closeness, lower_end, root, supremum, upper_end};
use crate::exact::ends::Ends;

/// Maximum number of lines tried, each at [`PART`] of the previous `c`.
const MOST_LINES: i32 = 12;

/// Ratio of successive `c`; see [`MOST_LINES`].
const PART: f64 = 0.85;

/// Largest logarithm of the ratio of the integrand to that on the saddle point's line; precision is lost by this factor.
const MOST_LOST: f64 = 12.0;

/// Largest acceptable ratio of a window to the shortest one.
const SHORT_ENOUGH: f64 = 1.5;

/// Relative distance of the ends at which no second line is needed.
const CLOSE: f64 = 1e-4;

/// Returns epsilon for a delta between `e^low` and `e^high`.
pub(super) fn epsilon_eased(
    laws: &[(Law, f64)],
    low: f64,
    high: f64,
    effort: Effort,
) -> (Option<Ends>, Option<Closeness>) {
    let mut search = Search::new(laws);
    let (mut found, mut kept) = (None::<Ends>, None);
    let Some(saddle) = search.for_delta(low) else { return (found, kept) };
    let cap = supremum(laws);
    let mut epsilon = saddle.epsilon.max(0.0);
    for _ in 0..2 {
        let Some(line) = eased(&mut search, &saddle, epsilon, low, effort) else { break };
        let Some(center) = root(&line, epsilon, 1.0, low) else { break };
        let ends = Ends { lower: lower_end(&line, center, high), upper: upper_end(&line, center, low).min(cap) };
        found = Some(found.map_or(ends, |before| before.both(ends)));
        kept = Some(Closeness::new(line, center, low));
        if ends.upper - ends.lower <= CLOSE * ends.upper {
            break;
        }
        epsilon = center;
    }
    (found, kept)
}

/// Returns the logarithm of delta at `epsilon`.
pub(super) fn log_delta_eased(laws: &[(Law, f64)], epsilon: f64, effort: Effort) -> (Option<Ends>, Option<Closeness>) {
    let mut search = Search::new(laws);
    let (mut found, mut kept) = (None::<Ends>, None);
    let Some(saddle) = search.for_epsilon(epsilon) else { return (found, kept) };
    // The approximation may be far off; the first line gives the magnitude of delta.
    let mut log_delta = saddle.log_delta_at(epsilon).min(0.0);
    for _ in 0..2 {
        let Some(line) = eased(&mut search, &saddle, epsilon, log_delta, effort) else { break };
        let LogDelta { lower, upper, estimate, .. } = line.log_delta(epsilon);
        let ends = Ends { lower, upper };
        found = Some(found.map_or(ends, |before| before.both(ends)));
        kept = Some(Closeness { line, epsilon, log_delta: estimate, width: upper - lower });
        if upper - lower <= CLOSE * upper.abs().max(1.0) || !estimate.is_finite() {
            break;
        }
        log_delta = estimate.min(0.0);
    }
    (found, kept)
}

/// Returns a line to the left of a saddle point whose window is short: of those short enough, the nearest one, which loses the
/// least precision.
fn eased(search: &mut Search<'_>, saddle: &Saddle, epsilon: f64, log_delta: f64, effort: Effort) -> Option<Line> {
    let height = |saddle: &Saddle| saddle.cumulant[0] - saddle.c * epsilon;
    let mut tried = Vec::new();
    for power in 0..MOST_LINES {
        let Some(candidate) = search.saddle(saddle.c * PART.powi(power)) else { break };
        if height(&candidate) > height(saddle) + MOST_LOST {
            break;
        }
        if let Some(window) = search.window(&candidate, epsilon, log_delta, effort.margin) {
            tried.push((window.width, candidate));
        }
    }
    let shortest = tried.iter().map(|(width, _)| *width).fold(f64::INFINITY, f64::min);
    let (_, chosen) = tried.into_iter().find(|(width, _)| *width <= SHORT_ENOUGH * shortest)?;
    Line::new(search, &chosen, epsilon, log_delta, effort)
}
