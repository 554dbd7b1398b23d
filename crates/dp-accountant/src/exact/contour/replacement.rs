//! The loss of one Gaussian release from a Poisson sample in which one record is replaced, as nodes of a trapezoid rule: the
//! symmetric pair of [`sampled_replacement`](crate::sampled_replacement).
//!
//! In standard deviations of the noise, with `m` the mean shift of a sampled record and `phi` the density of `N(0, 1)`,
//!
//! ```text
//! w(x) = 1 - q + q e^(m x - m²/2),    L(x) = ln w(x) - ln w(-x),
//! ```
//!
//! the output has density `phi w(x)` under the first law and `phi w(-x)` under the second. The loss is odd. To the right of 0 it
//! is `ln(1 + 2 q e^(-m²/2) sinh(m x) / w(-x))`, which involves no cancellation.
//!
//! **Step.** As for the [sampled Gaussian](super::poisson_gaussian), on the line `Im x = d < pi/m`: `|phi| = e^(d²/2) phi`,
//! `w cos(m d/2) <= |w| <= w(Re x)` and `|arg w| <= m d` for both `w(x)` and `w(-x)`, so that
//!
//! ```text
//! |w(x)^(1+z) w(-x)^-z| <= w(x)^(1+c) w(-x)^-c cos(m d/2)^-c e^(2 m d |t|)     at Re x,
//! ```
//!
//! and the error of the moment is at most `2 e^(d²/2 - 2 pi d/h)` times `M(c) cos(m d/2)^-c e^(2 m d |t|)`, plus as much again
//! with `1 + 2|z|` for the terms 1 and `e^-L` that the form of [`nodes`](super::nodes) subtracts.
//!
//! **Range.** To the left of 0 all terms are at most `phi w(-x)`, whose logarithm has a slope of at least `-x - m`. There the
//! term with `e^(c L)` has the slope `-x + (1+c) m p(x) + c m p(-x)`, where `p` is the posterior probability that the record was
//! sampled; it is increasing and at most 1. So beyond `(1+c) m + c m p(-(1+c) m)` the term falls at least like a normal density
//! about that point.

use core::f64::consts::PI;

use super::decay::{Layer, layers};
use super::nodes::{Discretisation, LeftOut, Node, Nodes};
use crate::logspace::log_mixed;
use crate::normal::LN_SQRT_2_PI;

/// Argument from which on exponentials are factored out of the logarithm.
const LARGE_ARGUMENT: f64 = 600.0;

/// One release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Replacement {
    pub(super) rate: f64,
    /// `m`.
    pub(super) mean: f64,
}

impl Replacement {
    /// Returns `m x - m²/2`.
    fn argument(&self, x: f64) -> f64 {
        self.mean * (x - 0.5 * self.mean)
    }

    /// Returns `ln w(x)`.
    fn log_ratio(&self, x: f64) -> f64 {
        let y = self.argument(x);
        if y < LARGE_ARGUMENT { (self.rate * y.exp_m1()).ln_1p() } else { log_mixed(self.rate, y) }
    }

    /// Returns the posterior probability at `x` that the record was sampled.
    fn sampled(&self, x: f64) -> f64 {
        let y = self.argument(x);
        if y > 0.0 {
            self.rate / (self.rate + (1.0 - self.rate) * (-y).exp())
        } else {
            let part = self.rate * y.exp();
            part / (1.0 - self.rate + part)
        }
    }

    fn loss(&self, x: f64) -> f64 {
        let Self { rate, mean } = *self;
        let right = x.abs();
        let loss = if mean * right < LARGE_ARGUMENT {
            let mirrored = (1.0 - rate) + rate * self.argument(-right).exp();
            (2.0 * rate * (-0.5 * mean * mean).exp() * (mean * right).sinh() / mirrored).ln_1p()
        } else {
            self.log_ratio(right) - self.log_ratio(-right)
        };
        loss.copysign(x)
    }

    fn range(&self, c: f64, exponent: f64) -> (f64, f64, f64) {
        let reach = (2.0 * (exponent + 6.0)).sqrt();
        let peak = (1.0 + c) * self.mean;
        (-self.mean - reach, peak + c * self.mean * self.sampled(-peak) + reach, reach)
    }

    /// Returns the logarithm of `cos(m d/2)^c`.
    fn growth(&self, c: f64, d: f64) -> f64 {
        c * (0.5 * self.mean * d).cos().ln()
    }

    /// Returns the largest step whose error at `t` is at most about `e^-exponent` of `M(c)`, and its `d`.
    fn step(&self, c: f64, t: f64, exponent: f64) -> (f64, f64) {
        let cost = |d: f64| (exponent - self.growth(c, d)) / d + 0.5 * d;
        // Beyond the second bound the cost rises, whatever the growth.
        let (mut low, mut high) = (0.0, (PI / self.mean).min((2.0 * exponent).sqrt()));
        for _ in 0..24 {
            let (left, right) = (low + 0.381_966 * (high - low), low + 0.618_034 * (high - low));
            if cost(left) < cost(right) {
                high = right;
            } else {
                low = left;
            }
        }
        let d = 0.5 * (low + high);
        (2.0 * PI / (cost(d) + 2.0 * self.mean * t), d)
    }

    /// Returns all nodes of the range for `c`; `None` if there are too many.
    fn grid(&self, c: f64, step: f64, exponent: f64, most: f64) -> Option<Vec<Node>> {
        let (low, high, _) = self.range(c, exponent);
        let first = (low / step).floor();
        let count = (high / step).ceil() - first + 1.0;
        if !(count <= most && step > 0.0) {
            return None;
        }
        let base = step.ln() - LN_SQRT_2_PI;
        let node = |k: u64| {
            let x = (first + k as f64) * step;
            let log_weight = base - 0.5 * x * x + self.log_ratio(x);
            let argument = self.mean * (x.abs() + self.mean);
            Node { log_weight, loss: self.loss(x), argument }
        };
        Some((0..count as u64).map(node).collect())
    }

    /// Returns nodes for a search among real arguments from 0 to `c`.
    pub(super) fn search_nodes(&self, c: f64, exponent: f64, most: f64) -> Option<Nodes> {
        let (step, _) = self.step(c, 0.0, exponent);
        Some(Nodes { nodes: self.grid(c, step, exponent, most)?, ..Nodes::default() })
    }

    /// Returns the nodes for the line at `c` up to `t_max`, each error about `e^-exponent` of the moment; `None` if there are too
    /// many.
    pub(super) fn nodes(&self, c: f64, t_max: f64, exponent: f64, log_moment: f64, most: f64) -> Option<Nodes> {
        let (step, d) = self.step(c, t_max, exponent);
        let mut nodes = self.grid(c, step, exponent, most)?;
        let largest = nodes.iter().map(|node| node.size(c)).fold(0.0, f64::max);
        let mut left_out = self.beyond_the_ends(c, step, exponent, largest, &nodes);
        left_out.drop_from(&mut nodes, c, largest, largest - exponent - 12.0);
        let decay = 2.0 * PI * d / step;
        let discretisation = Some(Discretisation {
            base: core::f64::consts::LN_2 + 0.5 * d * d - decay - (-(-decay).exp()).ln_1p(),
            // The moment is that of the search, which is not certified to the last digit.
            log_growth: log_moment - self.growth(c, d) + 1e-6,
            slope: 2.0 * self.mean * d,
        });
        Some(Nodes { nodes, left_out, discretisation })
    }

    /// Returns a bound on the contribution of the nodes beyond the ends, divided by `e^largest`: a geometric sum on each side.
    fn beyond_the_ends(&self, c: f64, step: f64, exponent: f64, largest: f64, nodes: &[Node]) -> LeftOut {
        let (_, _, reach) = self.range(c, exponent);
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else {
            return LeftOut { log_scale: largest, weight: f64::INFINITY, weighted_loss: f64::INFINITY };
        };
        // The weights contain the step.
        let [left, right] = [first, last].map(|end| (end.size(c) - largest).exp() / (reach * step));
        let farther = 2.0 * self.mean / reach;
        LeftOut {
            log_scale: largest,
            weight: left + right,
            weighted_loss: left * (first.loss.abs() + farther) + right * (last.loss.abs() + farther),
        }
    }

    /// Returns uniform parts of the tilted law of the loss.
    ///
    /// In terms of `x` the logarithm of its density is
    ///
    /// ```text
    /// -x²/2 - ln sqrt(2 pi) + (1 + c) ln w(x) - c ln w(-x) - ln(m p(x) + m p(-x)) - ln M(c).
    /// ```
    ///
    /// The second logarithm is convex with second derivative at most `(1 + c) m²/4`, the third is concave, and the fourth,
    /// because `|p'| <= m p` and `-p'' <= m² p/8`, has a second derivative of at most `m² (1 + 1/8)`; so on a cell of length `l`
    /// the whole is at least its smaller end value less `l²/8` times their sum.
    pub(super) fn layers(&self, c: f64, log_moment: f64) -> Vec<Layer> {
        let square = self.mean * self.mean;
        let convexity = (0.25 * (1.0 + c) + 1.125) * square / 8.0;
        let length = 0.125f64.min((0.1 / convexity).sqrt());
        let (low, high, _) = self.range(c, 20.0);
        let count = ((high - low) / length).ceil().min(4000.0);
        let length = (high - low) / count;
        // The last two terms cover the rounding of the logarithms.
        let largest = 2.0 * self.mean * (low.abs() + high.abs() + self.mean) - (-self.rate).ln_1p();
        let rounding = 1e-9 + 16.0 * f64::EPSILON * (2.0 + c) * largest;
        let constant = -LN_SQRT_2_PI - log_moment - convexity * length * length - rounding;
        let at = |k: u64| {
            let x = low + k as f64 * length;
            let loss = self.loss(x);
            let slope = self.mean * (self.sampled(x) + self.sampled(-x));
            (loss, constant - 0.5 * x * x + self.log_ratio(x) + c * loss - slope.ln())
        };
        let mut before = at(0);
        layers((1..=count as u64).map(|k| {
            let next = at(k);
            let width = next.0 - before.0;
            let height = before.1.min(next.1).exp();
            before = next;
            (width, height)
        }))
    }
}

#[cfg(test)]
mod tests;
