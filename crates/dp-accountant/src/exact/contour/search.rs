//! The choice of the line: the saddle point of the integrand, found by its cumulant function. Nothing here is certified, nor need
//! it be: any line gives sound bounds, and a good one gives close bounds.

use core::f64::consts::PI;

use super::law::{Law, SearchGrid};
use super::supremum;
use crate::normal::LN_SQRT_2_PI;
use crate::work;

/// Maximum number of steps of the search once the root is between two lines.
const MAX_STEPS: usize = 60;

/// The laws of a direction with their counts, and the grids of the search.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) laws: &'a [(Law, f64)],
    grids: Vec<SearchGrid>,
    /// The work count at which the search's allowance is exhausted.
    last: f64,
}

/// A line with its saddle-point approximation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Saddle {
    pub(super) c: f64,
    /// `K`, `K'`, `K''` at `c`.
    pub(super) cumulant: [f64; 3],
    /// The epsilon whose saddle point this is.
    pub(super) epsilon: f64,
}

impl Saddle {
    /// Returns the approximation of `ln delta` at the saddle's own epsilon.
    fn log_delta(&self) -> f64 {
        self.log_delta_at(self.epsilon)
    }

    /// Returns the approximation at an epsilon nearby.
    pub(super) fn log_delta_at(&self, epsilon: f64) -> f64 {
        let (value, c) = (self.cumulant[0], self.c);
        value - c * epsilon - c.ln() - (c + 1.0).ln() - 0.5 * self.bend().ln() - LN_SQRT_2_PI
    }

    /// Returns the second derivative of the integrand's logarithm.
    pub(super) fn bend(&self) -> f64 {
        self.cumulant[2] + 1.0 / (self.c * self.c) + 1.0 / ((self.c + 1.0) * (self.c + 1.0))
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(laws: &'a [(Law, f64)]) -> Self {
        let last = work::spent() + work::allowance();
        Self { laws, grids: vec![SearchGrid::default(); laws.len()], last }
    }

    /// Returns whether the search's allowance is exhausted; results found so far remain valid.
    pub(super) fn is_over(&self) -> bool {
        let is_over = work::spent() > self.last;
        if is_over {
            work::cut_short();
        }
        is_over
    }

    /// Returns `K`, `K'` and `K''` at `c`; `None` if they cannot be computed.
    pub(super) fn cumulant(&mut self, c: f64) -> Option<[f64; 3]> {
        if self.is_over() {
            return None;
        }
        let mut total = [0.0; 3];
        for ((law, count), grid) in self.laws.iter().zip(&mut self.grids) {
            for (sum, part) in total.iter_mut().zip(law.cumulant(c, grid)?) {
                *sum += count * part;
            }
        }
        total.iter().all(|value| value.is_finite()).then_some(total)
    }

    /// Returns `ln M(c)` of each law.
    pub(super) fn log_moments(&mut self, c: f64) -> Option<Vec<f64>> {
        self.laws.iter().zip(&mut self.grids).map(|((law, _), grid)| Some(law.cumulant(c, grid)?[0])).collect()
    }

    pub(super) fn saddle(&mut self, c: f64) -> Option<Saddle> {
        let cumulant = self.cumulant(c)?;
        Some(Saddle { c, cumulant, epsilon: cumulant[1] - 1.0 / c - 1.0 / (c + 1.0) })
    }

    /// Returns the line for `delta`, or that for epsilon = 0 if `delta` is reached there.
    pub(super) fn for_delta(&mut self, log_delta: f64) -> Option<Saddle> {
        let found = self.solve(|saddle| log_delta - saddle.log_delta(), 0.2)?;
        if found.epsilon >= 0.0 { self.not_too_far_left(found) } else { self.for_epsilon(0.0) }
    }

    /// Returns the line for `epsilon`.
    pub(super) fn for_epsilon(&mut self, epsilon: f64) -> Option<Saddle> {
        // In units of the integrand's width.
        let found = self.solve(|saddle| (saddle.epsilon - epsilon) / saddle.bend().sqrt(), 0.1)?;
        self.not_too_far_left(found)
    }

    /// Moves a line away from the pole at 0: near it nothing is gained, and the window would have to be wide.
    fn not_too_far_left(&mut self, found: Saddle) -> Option<Saddle> {
        let least = 0.3 / found.cumulant[2].sqrt();
        if found.c < least && least.is_finite() { self.saddle(least) } else { Some(found) }
    }

    /// Finds the root of an increasing function of the line on a logarithmic scale: brackets it by growing steps, then uses false
    /// position (Illinois). Stops if the function is small or the bracket is too narrow to be useful. If a line is too far to the
    /// right to be computed, the function counts as infinite.
    fn solve(&mut self, f: impl Fn(&Saddle) -> f64, tolerance: f64) -> Option<Saddle> {
        let mut at = |s: f64| {
            let saddle = self.saddle(s.exp());
            let value = saddle.as_ref().map_or(f64::INFINITY, &f);
            (saddle, if value.is_nan() { f64::INFINITY } else { value })
        };
        let mut s = 0.0f64;
        let (mut found, mut value) = at(s);
        let direction = if value > 0.0 { -1.0 } else { 1.0 };
        let mut step = 1.0;
        let (mut left, mut right);
        loop {
            if value.abs() <= tolerance {
                return found;
            }
            let before = (s, value);
            s += direction * step;
            if !(s.abs() < 60.0) {
                return None;
            }
            (found, value) = at(s);
            if (value > 0.0) == (direction > 0.0) {
                (left, right) = if direction > 0.0 { (before, (s, value)) } else { ((s, value), before) };
                break;
            }
            step *= 1.6;
        }
        let mut best = None;
        for _ in 0..MAX_STEPS {
            if found.is_some() {
                best = found;
            }
            if value.abs() <= tolerance || right.0 - left.0 < 1e-9 {
                break;
            }
            let secant = (left.0 * right.1 - right.0 * left.1) / (right.1 - left.1);
            let inside = |part: f64| (1.0 - part) * left.0 + part * right.0;
            s = if secant.is_finite() { secant.clamp(inside(0.05), inside(0.95)) } else { inside(0.5) };
            (found, value) = at(s);
            if value > 0.0 {
                right = (s, value);
                left.1 *= 0.5;
            } else {
                left = (s, value);
                right.1 *= 0.5;
            }
        }
        best
    }

    /// Returns a distance `2 pi / h` of the aliases such that they add less than `e^-margin` of delta, and the line that shows
    /// this for the aliases to the right.
    ///
    /// To the left `e^(epsilon - (c+1) W)` must be small, or `e^(-c W)` itself; the latter must not be so large that subtracting
    /// it cancels. To the right, by the Chernoff bound on the line `c'`, `K(c') - c' epsilon - (c' - c) W` must be below `ln
    /// delta`; a few `c'` are tried. A window that reaches beyond the largest loss needs no such bound at this epsilon.
    pub(super) fn window(&mut self, saddle: &Saddle, epsilon: f64, log_delta: f64, margin: f64) -> Option<Window> {
        let c = saddle.c;
        let small_difference = ((epsilon - log_delta + margin) / (c + 1.0)).max((-log_delta - 3.0) / c);
        let left = small_difference.min((margin - log_delta) / c);
        // Beyond the largest loss, rounded up, delta is 0.
        let cap = (supremum(self.laws) - epsilon) * (1.0 + 1e-9) + 1e-300;
        let excess = |search: &mut Self, distance: f64| {
            let other = c + distance;
            let value = search.cumulant(other)?[0];
            Some((value - other * epsilon - log_delta + margin) / distance)
        };
        // The distance for a Gaussian cumulant.
        let mut distance = (2.0 * margin / saddle.cumulant[2].max(1e-300)).sqrt();
        let mut best = (f64::INFINITY, distance);
        let mut worse = 0;
        for _ in 0..14 {
            let Some(width) = excess(self, distance) else {
                distance *= 0.5;
                continue;
            };
            if width < best.0 {
                best = (width, distance);
                worse = 0;
            } else {
                worse += 1;
            }
            if worse == 1 && best.0.is_finite() {
                break;
            }
            distance *= 0.6;
        }
        let right = best.0.min(cap);
        let width = left.max(right);
        let other = best.0.is_finite().then_some(c + best.1);
        (width > 0.0 && width.is_finite()).then_some(Window { width, other, is_capped: width >= cap })
    }
}

/// The distance of the aliases and the line that bounds those to the right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    pub(super) width: f64,
    pub(super) other: Option<f64>,
    /// True if the aliases of the epsilon for which it was made are beyond the largest loss.
    pub(super) is_capped: bool,
}

impl Window {
    pub(super) fn step(&self) -> f64 {
        2.0 * PI / self.width
    }
}
