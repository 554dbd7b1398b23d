//! The trapezoid rule for the mean of `(w^a - 1 - a (w - 1)) / (a - 1)`.
//!
//! # Step
//! On the line `Im y = t` write `e = e^u`, with `u` the real part of `mu y - mu^2/2`, and use Taylor's theorem
//!
//! ```text
//! w^a - 1 - a (w-1) = a (a-1) int_0^1 (1-s) (w-1)^2 (1 + s (w-1))^(a-2) ds.
//! ```
//!
//! There `|density| = density(Re y) e^(t^2/2)`, `|w - 1|^2 <= (w_real - 1)^2 + q^2 e (mu t)^2`, and `|1 + s (w-1)|` is at most
//! its real value, and at least that times `cos(mu t/2)`. Under the density tilted by `e` and the last factor, `u` has a
//! log-density with second derivative at least `-1/mu^2` (minus `1/4` for `a < 2`), so by the Cramer-Rao inequality its variance
//! is at least `mu^2 / (1 + mu^2/4)`, whence `E[(e - 1)^2 ..] >= E[e ..] mu^2 / (1 + mu^2/4)`. So the integral of the modulus on
//! the line is at most `B = e^(t^2/2) (1 + t^2 (1 + mu^2/4)) cos(mu t/2)^-(2-a)+` times the required mean, and the rule of step h
//! has an error of at most `2 B / (e^(2 pi t/h) - 1)` of it. The step makes this `e^-37`.
//!
//! # Choice of nodes
//! The integrand has a peak near 0 and possibly another near `a mu`, which is farther away for higher orders. To the right of
//! `mu/2` it lies below an envelope with at most two peaks,
//!
//! ```text
//! ln envelope = -y^2/2 + c + 2 (ln q + u) + (a-2) ln w  (a >= 2),    -y^2/2 + c + a ln w  (a < 2),
//! ```
//!
//! whose derivative is a constant minus `y` plus a multiple of the logistic function `p = 1 - (1-q)/w`, so that its signs from
//! left to right are at most + - + -. So between a node where it decreases and a later one where it increases the envelope is
//! largest at the two nodes, and such a stretch may be omitted once both are negligible.

use core::f64::consts::PI;

use crate::normal::LN_SQRT_2_PI;
use crate::work;

/// The omitted part of the quadrature, at each cut, is below `e^-NEGLIGIBLE` of the largest node, times their number.
const NEGLIGIBLE: f64 = 42.0;

/// Maximum number of nodes; beyond it the caller uses its bound by convexity.
const MAX_NODES: u32 = 40_000;

/// Number of steps of a node at all orders of a search.
const STEPS_PER_NODE: f64 = 6000.0;

/// Number of nodes that may be summed whatever was spent.
const FEWEST_NODES: f64 = 256.0;

/// Value of `a mu` beyond which nodes of unit distance are no longer well separated.
const FARTHEST: f64 = 1e9;

/// Value of `a ln w` from which on only `w^a` contributes to the bracket.
const POWER_ALONE: f64 = 45.0;

/// `e^600` times the other factors does not overflow.
const SAFE_EXPONENT: f64 = 600.0;

/// Number of terms of the series for small `a ln w`; the first dropped is below `0.5^16 / 16!` of the first.
const SERIES_TERMS: usize = 16;

pub(super) struct Integrand {
    order: f64,
    excess: f64,
    rate: f64,
    log_rate: f64,
    mu: f64,
    step: f64,
    /// Logarithm of the envelope's constant factor.
    log_factor: f64,
    /// Coefficients of `s^2, s^3, ...`, `s = ln w`.
    series: [f64; SERIES_TERMS],
    /// Number of nodes that may be summed.
    affordable: u32,
}

/// A mean of the integrand, rounded up: `sum e^reference`.
pub(super) struct Mean {
    sum: f64,
    reference: f64,
}

impl Mean {
    /// Returns `ln(1 + excess mean) / excess`.
    pub(super) fn divergence(&self, excess: f64) -> f64 {
        let moment = self.sum * self.reference.exp();
        let value = if excess == 0.0 {
            moment
        } else if excess * moment < 1e300 {
            (excess * moment).ln_1p() / excess
        } else {
            let log = self.reference + self.sum.ln() + excess.ln();
            (log + (-log).exp()) / excess
        };
        value * (1.0 + 4.0 * f64::EPSILON)
    }
}

/// One node's value, `mantissa e^exponent`.
struct Value {
    mantissa: f64,
    exponent: f64,
    /// Bound on the relative rounding error, in units of epsilon.
    rounding: f64,
}

/// The sum so far, relative to `e^reference`.
struct Sum {
    total: f64,
    /// The sum of each term's rounding error.
    rounding: f64,
    largest: f64,
    reference: f64,
    nodes: u32,
}

/// The nodes are charged as work, however the sum ends.
impl Drop for Sum {
    fn drop(&mut self) {
        work::charge(120.0 * f64::from(self.nodes));
    }
}

impl Sum {
    fn log_largest(&self) -> f64 {
        self.largest.ln() + self.reference
    }

    /// Adds a node's value and returns it, relative to the reference.
    fn add(&mut self, value: &Value) -> f64 {
        if value.exponent - self.reference > SAFE_EXPONENT {
            let shrink = (self.reference - value.exponent).exp();
            self.total *= shrink;
            self.rounding *= shrink;
            self.largest *= shrink;
            self.reference = value.exponent;
        }
        let term = value.mantissa * (value.exponent - self.reference).exp();
        self.total += term;
        self.rounding += term * value.rounding;
        self.largest = self.largest.max(term);
        self.nodes += 1;
        term
    }
}

impl Integrand {
    pub(super) fn new(order: f64, rate: f64, mu: f64) -> Self {
        let excess = order - 1.0;
        let mut series = [0.0; SERIES_TERMS];
        // a (a^(k-1) - 1)/(a - 1) / k!
        let (mut geometric, mut factorial) = (1.0, 2.0);
        for (i, coefficient) in series.iter_mut().enumerate() {
            *coefficient = order * geometric / factorial;
            geometric = order * geometric + 1.0;
            factorial *= (i + 3) as f64;
        }
        let affordable = f64::from(MAX_NODES).min((work::allowance() / STEPS_PER_NODE).max(FEWEST_NODES)) as u32;
        let log_factor = if order < 2.0 { (1.0 + mu * (order * mu + 40.0)).ln() } else { (0.5 * order).ln() };
        Self { order, excess, rate, log_rate: rate.ln(), mu, step: step(order, mu), log_factor, series, affordable }
    }

    /// Returns the mean of the integrand, rounded up; `None` if it takes too many nodes.
    pub(super) fn mean(&self) -> Option<Mean> {
        let Self { order, mu, step, .. } = *self;
        if !(order * mu < FARTHEST) {
            return None;
        }
        let middle = 0.5 * mu;
        let far = self.farthest_peak();
        let near = self.nearest_peak();
        let candidates = [far, near, middle - 1.5, middle + 1.5].map(|y| self.value(y));
        let top = candidates.iter().map(|value| value.exponent).fold(f64::NEG_INFINITY, f64::max);
        let reference = if top.abs() < SAFE_EXPONENT { 0.0 } else { top };
        let mut sum = Sum { total: 0.0, rounding: 0.0, largest: 0.0, reference, nodes: 0 };
        for value in &candidates {
            sum.largest = sum.largest.max(value.mantissa * (value.exponent - reference).exp());
        }
        // The omitted part is worth at most this many nodes.
        let cut = NEGLIGIBLE + ((order * mu + 80.0) / step).ln();
        let negligible = |sum: &Sum, log: f64| log < sum.log_largest() - cut;
        // One unit covers the error of a peak's estimated position.
        let far_matters = !negligible(&sum, self.envelope(far) + 1.0);
        let mut left_of = f64::INFINITY;
        if far_matters {
            let start = (far / step).round();
            self.sum_right(&mut sum, start, f64::INFINITY, cut)?;
            left_of = self.sum_left(&mut sum, start - 1.0, cut)?;
        }
        if left_of > middle {
            let left_value = self.bracket(-self.rate, (-self.rate).ln_1p());
            let left_log = left_value.mantissa.ln() + left_value.exponent;
            // If the nodes ended where the integrand rises, there is no peak to the left: the rise continues from the middle.
            let near_matters = near < left_of && !negligible(&sum, self.envelope(near) + 1.0);
            if near_matters || !negligible(&sum, left_log) {
                let start = (middle / step).round();
                self.sum_right(&mut sum, start, left_of, cut)?;
                self.sum_left(&mut sum, start - 1.0, cut)?;
            }
        }
        let rounding = f64::EPSILON * (f64::from(sum.nodes) + 48.0 + sum.rounding / sum.total);
        Some(Mean { sum: sum.total * step * (-LN_SQRT_2_PI).exp() * (1.0 + rounding), reference: sum.reference })
    }

    /// Adds nodes from `start` to the right until the rest is negligible or `end` is reached.
    fn sum_right(&self, sum: &mut Sum, start: f64, end: f64, cut: f64) -> Option<()> {
        let mut k = start;
        loop {
            let y = k * self.step;
            if y >= end {
                return Some(());
            }
            let term = sum.add(&self.value(y));
            let maybe_over = y > 0.5 * self.mu && term < sum.largest * 1e-18;
            if maybe_over && self.envelope_slope(y) < 0.0 && self.envelope(y) < sum.log_largest() - cut {
                return Some(());
            }
            if sum.nodes > self.affordable {
                if self.affordable < MAX_NODES {
                    work::cut_short();
                }
                return None;
            }
            k += 1.0;
        }
    }

    /// Adds nodes from `start` to the left until the remainder, or everything up to a second peak, is negligible. Returns the
    /// last.
    ///
    /// To the left of -9 the logarithm of the integrand has a slope of at least 4: the bracket grows by at most `(2 +
    /// ln(1/(1-q)))/|y|`, and the density falls by `|y|`.
    fn sum_left(&self, sum: &mut Sum, start: f64, cut: f64) -> Option<f64> {
        let mut k = start;
        loop {
            let y = k * self.step;
            let term = sum.add(&self.value(y));
            if term < sum.largest * 1e-18 {
                if y < -9.0 && term.ln() + sum.reference < sum.log_largest() - cut {
                    return Some(y);
                }
                let in_a_valley = y > 0.5 * self.mu && self.envelope_slope(y) > 0.0;
                if in_a_valley && self.envelope(y) < sum.log_largest() - cut {
                    return Some(y);
                }
            }
            if sum.nodes > self.affordable {
                if self.affordable < MAX_NODES {
                    work::cut_short();
                }
                return None;
            }
            k -= 1.0;
        }
    }

    /// Returns `(w^a - 1 - a (w-1))/(a-1) e^(-y^2/2)`.
    fn value(&self, y: f64) -> Value {
        // The difference is exact if it is small.
        let u = self.mu * (y - 0.5 * self.mu);
        let (v, s, p) = if u < SAFE_EXPONENT {
            let v = self.rate * u.exp_m1();
            (v, v.ln_1p(), (v + self.rate) / (1.0 + v))
        } else {
            (f64::INFINITY, u + self.log_rate, 1.0)
        };
        let bracket = self.bracket(v, s);
        let half_square = 0.5 * y * y;
        let rounding =
            half_square + 3.0 * (2.0 + self.order * p) * (u.abs() - p * self.log_rate) + 3.0 * self.order * s.abs();
        Value { mantissa: bracket.mantissa, exponent: bracket.exponent - half_square, rounding }
    }

    /// Returns the bracket over `a - 1`, from `v = w - 1` and `s = ln w`.
    fn bracket(&self, v: f64, s: f64) -> Value {
        let exponent = self.excess * s;
        let (mantissa, exponent) = if self.order * s.abs() < 0.5 {
            let series = self.series.iter().rev().fold(0.0, |sum, coefficient| sum * s + coefficient);
            (s * s * series, 0.0)
        } else if exponent > POWER_ALONE {
            (self.excess.recip(), self.order * s)
        } else {
            let ratio = if self.excess == 0.0 { s } else { exponent.exp_m1() / self.excess };
            if s < SAFE_EXPONENT { ((1.0 + v) * ratio - v, 0.0) } else { (ratio - 1.0 + f64::EPSILON, s) }
        };
        Value { mantissa, exponent, rounding: 0.0 }
    }

    /// Returns `p = q e^u / w`, the weight of the sampled component.
    fn sampled_weight(&self, y: f64) -> f64 {
        let u = self.mu * (y - 0.5 * self.mu);
        (1.0 + (1.0 - self.rate) / self.rate * (-u).exp()).recip()
    }

    /// Returns `base` and `factor` of the envelope's slope `base + factor p(y) - y`.
    fn envelope_parts(&self) -> (f64, f64) {
        if self.order < 2.0 { (0.0, self.order * self.mu) } else { (2.0 * self.mu, (self.order - 2.0) * self.mu) }
    }

    fn envelope_slope(&self, y: f64) -> f64 {
        let (base, factor) = self.envelope_parts();
        base + factor * self.sampled_weight(y) - y
    }

    /// Returns the logarithm of the envelope at `y`.
    fn envelope(&self, y: f64) -> f64 {
        let u = self.mu * (y - 0.5 * self.mu);
        let s = if u < SAFE_EXPONENT { (self.rate * u.exp_m1()).ln_1p() } else { u + self.log_rate };
        let power = if self.order < 2.0 { self.order * s } else { 2.0 * (self.log_rate + u) + (self.order - 2.0) * s };
        self.log_factor + power - 0.5 * y * y
    }

    /// Returns the envelope's right-most peak, approached from the right: where its slope is concave, Newton's iterates stay on
    /// that side, as do those of the plain iteration.
    fn farthest_peak(&self) -> f64 {
        let (base, factor) = self.envelope_parts();
        self.peak(base + factor, f64::max)
    }

    /// Returns the envelope's left-most peak, approached from the left.
    fn nearest_peak(&self) -> f64 {
        self.peak(self.envelope_parts().0, f64::min)
    }

    /// Iterates towards a peak from `start`; `cautious` chooses the side of the approach.
    fn peak(&self, start: f64, cautious: fn(f64, f64) -> f64) -> f64 {
        let (base, factor) = self.envelope_parts();
        let mut y = start;
        for _ in 0..100 {
            let p = self.sampled_weight(y);
            let plain = base + factor * p;
            let slope = factor * self.mu * p * (1.0 - p) - 1.0;
            let newton = y - (plain - y) / slope;
            // Newton's method is used only where convexity keeps it on the side of the approach.
            let convex = (p > 0.5) == (cautious(0.0, 1.0) == 1.0);
            let next = if slope < 0.0 && convex { newton } else { plain };
            if !((next - y).abs() > 1e-6) {
                return cautious(y, next);
            }
            y = next;
        }
        y
    }
}

/// Returns the step at which the error's bound is `e^-37`: for the best line `Im y = t`, `2 pi t/h - t^2/2 >= 45`, while the
/// bound's other factors are below `e^8`.
fn step(order: f64, mu: f64) -> f64 {
    const EXPONENT: f64 = 45.0;
    let free = (2.0 * EXPONENT).sqrt();
    let widest = if order < 2.0 { 0.95 } else { 0.999 } * PI / mu;
    let line = free.min(widest);
    2.0 * PI * line / (EXPONENT + 0.5 * line * line)
}
