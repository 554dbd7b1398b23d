//! The trade-off between an attacker's two errors, from a privacy curve.
//!
//! An attacker who sees the output guesses from which of two neighbours it came. A type I error is a false positive: the record
//! is absent and the guess says present. A type II error misses a present record. The trade-off function `f` gives the least type
//! II error for a type I error of at most `alpha`. A privacy curve and its trade-off function determine each other:
//!
//! ```text
//! f(alpha) = sup_(epsilon >= 0) max{ 0, 1 - delta(epsilon) - e^epsilon alpha, e^-epsilon (1 - delta(epsilon) - alpha) },
//! ```
//!
//! with `delta(epsilon)` the larger of both directions. Each `(epsilon, delta)` alone gives two lines below `f`, so any choice of
//! epsilons gives a lower bound on the attacker's error. The result is sound for any upper bound on delta, and an error of the
//! search costs only tightness.
//!
//! # Examples
//! ```
//! use dp_accountant::{gaussian, trade_off};
//! let gaussian = |epsilon| gaussian::delta(1.0, epsilon);
//! // N(0, 1) against N(1, 1): Phi(Phi^-1(1 - 0.05) - 1).
//! assert!((trade_off::type_two_error(0.05, gaussian)? - 0.74048897).abs() < 1e-8);
//! # Ok::<(), dp_accountant::Error>(())
//! ```
//!
//! # References
//! Wasserman and Zhou 2010, "A statistical framework for differential privacy", Theorem 2.4, arXiv:0811.2501; Dong, Roth
//! and Su 2022, "Gaussian differential privacy", Proposition 2.12, arXiv:1905.02383.

use crate::error::Error;
use crate::work;

/// The inverse of the golden ratio.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// Distance from the maximum at which a search ends: near a flat maximum the value's error is of second order.
const WIDTH: f64 = 1e-7;

/// Epsilon at which the first line has risen, if it rises at all.
const RISE: f64 = 1e-5;

/// Maximum number of steps, far above the need of Brent's method.
const MAX_STEPS: u32 = 120;

/// Largest epsilon of a search.
const LARGEST_EPSILON: f64 = 1e6;

/// Approximate number of epsilons evaluated in any case.
const FEWEST: usize = 16;

/// Least number of steps of a search for a maximum, whatever the remaining work.
const FEWEST_STEPS: u32 = 8;

/// Covers the rounding of the two lines.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// One point of a trade-off curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// The false-positive rate.
    pub type_one: f64,
    /// Lower bound on the type II error of any attacker with that rate.
    pub type_two: f64,
}

/// Returns the least type II error of any attacker whose type I error is at most `type_one`, rounded down. `delta_at` gives an
/// upper bound on delta at each epsilon, such as [`Evaluator::delta`](crate::calibrate::Evaluator::delta) of an event.
///
/// # Errors
/// `type_one` outside `[0, 1]`, and the errors of `delta_at`.
pub fn type_two_error(type_one: f64, delta_at: impl Fn(f64) -> Result<f64, Error>) -> Result<f64, Error> {
    if !(0.0..=1.0).contains(&type_one) {
        return Err(Error::OutOfRange { name: "type I error", value: type_one, range: "[0, 1]" });
    }
    let line = |epsilon: f64| Ok(steep(epsilon, delta_at(epsilon)?, type_one));
    if type_one == 0.0 {
        // Without false positives the supremum is at the far end.
        let mut best = line(0.0)?;
        let mut epsilon = 1.0;
        while epsilon <= LARGEST_EPSILON {
            best = f64::max(best, line(epsilon)?);
            epsilon *= 10.0;
        }
        return Ok(best.max(0.0));
    }
    // As a function of e^epsilon, delta is convex: the first line is concave, and the second is concave over linear, so each has
    // only one maximum. f is its own inverse and convex: if the first line rises at all, the second does not.
    let at_zero = line(0.0)?;
    if line(RISE)? > at_zero {
        let (_, value) = largest(0.0, -type_one.ln(), line)?;
        return Ok(value.max(at_zero).max(0.0));
    }
    // Epsilons at which the second line would be below the best value so far even with delta 0 are skipped. A delta that never
    // falls below a level may leave little room, so that only this comparison is made.
    let line = |epsilon: f64| Ok(shallow(epsilon, delta_at(epsilon)?, type_one));
    let mut end = 1.0;
    let mut found = line(end)?;
    while (1.0 - type_one) * (-end).exp() > found {
        if end > LARGEST_EPSILON {
            return Ok(at_zero.max(0.0));
        }
        end *= 2.0;
        found = f64::max(found, line(end)?);
    }
    let (_, flat) = largest(0.0, end, line)?;
    Ok(flat.max(found).max(at_zero).max(0.0))
}

/// A trade-off curve from finitely many `(epsilon, delta)`: the maximum of their lines.
///
/// It is everywhere below the curve of all epsilons, by little if there are many. Further points cost no further evaluations.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, gaussian, trade_off::TradeOff};
///
/// let pure = TradeOff::from_pairs(&[(1.0, 0.0)])?; // 1-DP and nothing else
/// assert!((pure.type_two_error(0.1)? - (1.0 - 1f64.exp() * 0.1)).abs() < 1e-14);
///
/// let curve = TradeOff::new(|epsilon| gaussian::delta(1.0, epsilon), 200)?;
/// assert!((curve.type_two_error(0.05)? - 0.74048897).abs() < 1e-4);
/// let points = curve.points(11)?;
/// assert_eq!((points[0].type_one, points[10].type_one), (0.0, 1.0));
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOff {
    pairs: Vec<(f64, f64)>,
}

impl TradeOff {
    /// Creates the curve from a privacy curve at `count` epsilons, denser near 0, up to where delta falls by less than 1e-9. For Gaussians,
    /// 100 of them lose at most 2e-4, and twice as many a quarter of that. If a [limit](work::limited) is reached, fewer are
    /// used.
    ///
    /// # Errors
    /// `count` = 0, and the errors of `delta_at`.
    pub fn new(delta_at: impl Fn(f64) -> Result<f64, Error>, count: usize) -> Result<Self, Error> {
        // What fails with some probability keeps a delta at every epsilon.
        let left = delta_at(LARGEST_EPSILON)?;
        // The least power of two that ends the range, since deltas decrease.
        let doubled = |times: u32| 1e-6 * f64::from(times).exp2();
        let (mut least, mut most) = (0, (LARGEST_EPSILON / 1e-6).log2().ceil() as u32);
        while least < most {
            let middle = (least + most) / 2;
            if delta_at(doubled(middle))? > left + 1e-9 { least = middle + 1 } else { most = middle }
        }
        let end = doubled(least);
        let steps = count.saturating_sub(1).max(1) as f64;
        let pair = |i: usize| {
            let fraction = i as f64 / steps;
            let epsilon = end * fraction * fraction;
            Ok((epsilon, delta_at(epsilon)?))
        };
        // Increasingly dense, so that the whole range is covered whenever the limit is reached.
        let mut pairs = vec![None; count];
        let mut stride = count.next_power_of_two();
        while stride > 0 {
            for i in (0..count).step_by(stride) {
                if pairs[i].is_some() {
                    continue;
                }
                if work::is_exhausted() && stride < count / FEWEST {
                    work::cut_short();
                    return Self::from_pairs(&pairs.into_iter().flatten().collect::<Vec<_>>());
                }
                pairs[i] = Some(pair(i)?);
            }
            stride /= 2;
        }
        Self::from_pairs(&pairs.into_iter().flatten().collect::<Vec<_>>())
    }

    /// Creates the curve from pairs of epsilon and delta that all hold.
    ///
    /// # Errors
    /// No pair; an epsilon that is negative or NaN, a delta outside `[0, 1]`.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Result<Self, Error> {
        if pairs.is_empty() {
            return Err(Error::OutOfRange { name: "number of pairs", value: 0.0, range: "[1, 2^64)" });
        }
        for &(epsilon, delta) in pairs {
            if !(epsilon >= 0.0) {
                return Err(Error::OutOfRange { name: "epsilon", value: epsilon, range: "[0, inf]" });
            }
            if !(0.0..=1.0).contains(&delta) {
                return Err(Error::OutOfRange { name: "delta", value: delta, range: "[0, 1]" });
            }
        }
        Ok(Self { pairs: pairs.to_vec() })
    }

    /// Returns the least type II error of any attacker whose type I error is at most `type_one`, rounded down.
    ///
    /// # Errors
    /// `type_one` outside `[0, 1]`.
    pub fn type_two_error(&self, type_one: f64) -> Result<f64, Error> {
        if !(0.0..=1.0).contains(&type_one) {
            return Err(Error::OutOfRange { name: "type I error", value: type_one, range: "[0, 1]" });
        }
        Ok(self.pairs.iter().fold(0.0, |best: f64, &(epsilon, delta)| {
            best.max(steep(epsilon, delta, type_one)).max(shallow(epsilon, delta, type_one))
        }))
    }

    /// Returns `count` points of the curve from type I error 0 to 1, equally spaced except at both ends.
    ///
    /// # Errors
    /// `count` below 2.
    pub fn points(&self, count: usize) -> Result<Vec<Errors>, Error> {
        if count < 2 {
            return Err(Error::OutOfRange { name: "number of points", value: count as f64, range: "[2, 2^64)" });
        }
        (0..count)
            .map(|i| {
                let type_one = i as f64 / (count - 1) as f64;
                Ok(Errors { type_one, type_two: self.type_two_error(type_one)? })
            })
            .collect()
    }
}

/// Returns the line of slope `-e^epsilon` at `type_one`, rounded down.
fn steep(epsilon: f64, delta: f64, type_one: f64) -> f64 {
    // With no false positives, an infinite slope loses nothing: e^inf times 0 is taken as 0.
    let loss = if type_one == 0.0 { 0.0 } else { epsilon.exp() * type_one };
    let value = 1.0 - delta - loss * (1.0 + ROUNDING) - ROUNDING;
    if value.is_nan() { f64::NEG_INFINITY } else { value }
}

/// Returns the line of slope `-e^-epsilon` at `type_one`, rounded down.
fn shallow(epsilon: f64, delta: f64, type_one: f64) -> f64 {
    let value = (1.0 - delta - type_one - ROUNDING) * (-epsilon).exp();
    if value.is_nan() { f64::NEG_INFINITY } else { value * if value > 0.0 { 1.0 - ROUNDING } else { 1.0 } }
}

/// Returns the largest value of a function with one maximum on `[low, high]`, and its position. Uses Brent's method: parabolas
/// through the three best points if they make progress, otherwise golden sections. If a [limit](work::limited) is reached,
/// returns the largest of the computed values.
pub(crate) fn largest(low: f64, high: f64, f: impl Fn(f64) -> Result<f64, Error>) -> Result<(f64, f64), Error> {
    // The minimum of the negated function; NaN is never the best.
    let cost = |x: f64| f(x).map(|value| if value.is_nan() { f64::INFINITY } else { -value });
    let end = (low, cost(low)?);
    let (mut a, mut b) = (low, high);
    let mut x = a + (1.0 - GOLDEN_RATIO) * (b - a);
    let mut at_x = cost(x)?;
    let (mut w, mut at_w, mut v, mut at_v) = (x, at_x, x, at_x);
    // The last step and the one before.
    let (mut step, mut before) = (0.0f64, 0.0f64);
    for done in 0..MAX_STEPS {
        let middle = 0.5 * (a + b);
        let width = WIDTH * (b - a).min(1.0) + f64::EPSILON * x.abs();
        if (x - middle).abs() <= 2.0 * width - 0.5 * (b - a) || b - a <= WIDTH * (high - low).min(1.0) {
            break;
        }
        if done >= FEWEST_STEPS && work::is_exhausted() {
            work::cut_short();
            break;
        }
        let r = (x - w) * (at_x - at_v);
        let q = (x - v) * (at_x - at_w);
        let (p, q) = ((x - v) * q - (x - w) * r, 2.0 * (q - r));
        let parabola = -p / q;
        let inside = x + parabola > a && x + parabola < b;
        // NaN, from infinite values, fails the comparisons.
        (before, step) = if parabola.abs() < 0.5 * before.abs() && inside {
            (step, parabola)
        } else {
            let across = if x < middle { b - x } else { a - x };
            (across, (1.0 - GOLDEN_RATIO) * across)
        };
        let u = if step.abs() >= width { x + step } else { x + width.copysign(step) };
        let at_u = cost(u)?;
        if at_u <= at_x {
            if u >= x {
                a = x;
            } else {
                b = x;
            }
            (v, at_v, w, at_w, x, at_x) = (w, at_w, x, at_x, u, at_u);
        } else {
            if u < x {
                a = u;
            } else {
                b = u;
            }
            if at_u <= at_w || w == x {
                (v, at_v, w, at_w) = (w, at_w, u, at_u);
            } else if at_u <= at_v || v == x || v == w {
                (v, at_v) = (u, at_u);
            }
        }
    }
    Ok(if end.1 <= at_x { (end.0, -end.1) } else { (x, -at_x) })
}

#[cfg(test)]
mod tests;
