//! The loss of one Gaussian release from a Poisson sample, as nodes of a trapezoid rule.
//!
//! In units of the sensitivity, with `phi` the density of `N(0, sigma^2)` and
//!
//! ```text
//! w(x) = 1 - q + q e^y,   y = (x - 1/2)/sigma^2,
//! ```
//!
//! the output has density `phi` without the record and `phi w` with it. Removing the record: the loss is `ln w` under `phi w`.
//! Adding the record: the loss is `-ln w` under `phi`.
//!
//! **Step.** For a function that is analytic in the strip `|Im x| <= d` the trapezoid rule of step `h` on the whole line has an
//! error of at most `2 / (e^(2 pi d/h) - 1)` times the integral of its modulus along the strip's edges. On
//! `Im x = d = theta sigma^2`, `theta < pi`: `|phi| = e^(theta^2 sigma^2/2) phi(Re x)`, and `w` is the sum of `1 - q` and of
//! `q e^y` turned by `theta`, so that `w cos(theta/2) <= |w| <= w(Re x)` and `|arg w| <= theta`. Hence
//!
//! ```text
//! |w^(1+z)| <= w^(1+c) e^(theta |t|),       |w^-z| <= w^-c cos(theta/2)^-c e^(theta |t|),
//! ```
//!
//! and the error of the moment is at most `2 e^(theta^2 sigma^2/2 - 2 pi theta sigma^2/h)` times
//! `M(c) e^(theta |t|) [cos(theta/2)^-c, when adding]`, plus as much again with `1 + 2|z|` for the terms 1 and w that the
//! form of [`nodes`](super::nodes) subtracts. The best `theta` makes `h` largest. (Taking `theta = pi` when adding, where
//! `w^-z` is singular, would lose up to three digits of delta at `q = 0.9, sigma = 2, c = 200`.)
//!
//! **Range.** When removing, `phi w^(1+c)` falls beyond `1 + c` at least as fast as `e^(-(x-1-c)^2/(2 sigma^2))`, and all terms
//! are at most `phi` to the left of 0. When adding, `phi w^-c` is log-concave with curvature at least `1/sigma^2` around its
//! maximum, the root of `x + c q e^y/w = 0`; everything else lies within `phi` and `phi w`. The terms beyond the ends, and those
//! dropped between them, are summed and counted as an error.

use core::f64::consts::PI;

use super::decay::{Layer, layers};
use super::nodes::{Discretisation, LeftOut, Node, Nodes};
use crate::logspace::log_mixed;
use crate::normal::LN_SQRT_2_PI;

/// Argument from which on the exponential is factored out of the logarithm.
const LARGE_ARGUMENT: f64 = 600.0;

/// The direction: which neighbour has the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The loss of the output with the record.
    Remove,
    /// The loss of the output without it.
    Add,
}

/// One release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PoissonGaussian {
    pub(super) rate: f64,
    pub(super) sigma: f64,
    pub(super) direction: Direction,
}

impl PoissonGaussian {
    /// Returns the largest loss.
    pub(super) fn supremum(&self) -> f64 {
        match self.direction {
            Direction::Remove => f64::INFINITY,
            Direction::Add => -(-self.rate).ln_1p(),
        }
    }

    /// Returns `ln w` at the argument `y`.
    fn log_ratio(&self, y: f64) -> f64 {
        if y < LARGE_ARGUMENT { (self.rate * y.exp_m1()).ln_1p() } else { log_mixed(self.rate, y) }
    }

    /// Returns `q e^y / w`: the posterior probability that the record was sampled.
    fn sampled(&self, y: f64) -> f64 {
        if y > 0.0 {
            self.rate / (self.rate + (1.0 - self.rate) * (-y).exp())
        } else {
            let part = self.rate * y.exp();
            part / (1.0 - self.rate + part)
        }
    }

    /// Returns the left end of the relevant range when adding: the maximum of `phi w^-c`.
    fn left_peak(&self, c: f64) -> f64 {
        let (mut low, mut high) = (-c, 0.0);
        let variance = self.sigma * self.sigma;
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if middle + c * self.sampled((middle - 0.5) / variance) > 0.0 {
                high = middle;
            } else {
                low = middle;
            }
            if high - low < 0.01 * self.sigma {
                break;
            }
        }
        low
    }

    fn range(&self, c: f64, exponent: f64) -> (f64, f64) {
        let reach = (2.0 * (exponent + 6.0)).sqrt() * self.sigma;
        match self.direction {
            Direction::Remove => (-reach, 1.0 + c + reach),
            Direction::Add => (self.left_peak(c) - reach, 1.0 + reach),
        }
    }

    /// Returns the largest step whose error at `t` is at most about `e^-exponent` of `M(c)`, and its `theta`.
    fn step(&self, c: f64, t: f64, exponent: f64) -> (f64, f64) {
        let variance = self.sigma * self.sigma;
        // 2 pi sigma^2 / h is convex in theta.
        let cost = |theta: f64| (exponent - self.growth(c, theta)) / theta + 0.5 * theta * variance;
        let (mut low, mut high) = (0.0, PI);
        for _ in 0..24 {
            let (left, right) = (low + 0.381_966 * (high - low), low + 0.618_034 * (high - low));
            if cost(left) < cost(right) {
                high = right;
            } else {
                low = left;
            }
        }
        let theta = 0.5 * (low + high);
        (2.0 * PI * variance / (cost(theta) + t), theta)
    }

    /// Returns the logarithm of `cos(theta/2)^c` when adding, 0 when removing.
    fn growth(&self, c: f64, theta: f64) -> f64 {
        match self.direction {
            Direction::Remove => 0.0,
            Direction::Add => c * (0.5 * theta).cos().ln(),
        }
    }

    /// Returns all nodes of the range for `c`; `None` if there are too many.
    fn grid(&self, c: f64, step: f64, exponent: f64, most: f64) -> Option<Vec<Node>> {
        let (low, high) = self.range(c, exponent);
        let variance = self.sigma * self.sigma;
        let first = ((low - 0.5) / step).floor();
        let count = ((high - 0.5) / step).ceil() - first + 1.0;
        if !(count <= most && step > 0.0) {
            return None;
        }
        let base = (step / self.sigma).ln() - LN_SQRT_2_PI;
        let node = |k: u64| {
            let offset = (first + k as f64) * step;
            let (x, y) = (0.5 + offset, offset / variance);
            let log_density = base - 0.5 * (x / self.sigma) * (x / self.sigma);
            let log_ratio = self.log_ratio(y);
            let (log_weight, loss) = match self.direction {
                Direction::Remove => (log_density + log_ratio, log_ratio),
                Direction::Add => (log_density, -log_ratio),
            };
            Node { log_weight, loss, argument: y.abs() }
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
        let (step, theta) = self.step(c, t_max, exponent);
        let mut nodes = self.grid(c, step, exponent, most)?;
        let largest = nodes.iter().map(|node| node.size(c)).fold(0.0, f64::max);
        let mut left_out = self.beyond_the_ends(c, step, exponent, largest, &nodes);
        left_out.drop_from(&mut nodes, c, largest, largest - exponent - 12.0);
        let variance = self.sigma * self.sigma;
        let decay = 2.0 * PI * theta * variance / step;
        let discretisation = Some(Discretisation {
            base: core::f64::consts::LN_2 + 0.5 * theta * theta * variance - decay - (-(-decay).exp()).ln_1p(),
            // The moment is that of the search, which is not certified to the last digit.
            log_growth: log_moment - self.growth(c, theta) + 1e-6,
            slope: theta,
        });
        Some(Nodes { nodes, left_out, discretisation })
    }

    /// Returns a bound on the contribution of the nodes beyond the ends, divided by `e^largest`: a geometric sum on each side.
    fn beyond_the_ends(&self, c: f64, step: f64, exponent: f64, largest: f64, nodes: &[Node]) -> LeftOut {
        let (low, high) = self.range(c, exponent);
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else {
            return LeftOut { log_scale: largest, weight: f64::INFINITY, weighted_loss: f64::INFINITY };
        };
        let variance = self.sigma * self.sigma;
        let (left_slope, right_slope) = match self.direction {
            Direction::Remove => (-low, high - 1.0 - c),
            Direction::Add => (-low - c * self.sampled((low - 0.5) / variance), high - 1.0),
        };
        let (left, right) = (variance / left_slope, variance / right_slope);
        // The weights contain the step.
        let left_weight = (first.size(c) - largest).exp() * left / step;
        let right_weight = (last.size(c) - largest).exp() * right / step;
        let most_negative = -(-self.rate).ln_1p();
        LeftOut {
            log_scale: largest,
            weight: left_weight + right_weight,
            weighted_loss: left_weight * most_negative + right_weight * (last.loss.abs() + right / variance),
        }
    }

    /// Returns uniform parts of the tilted law of the loss.
    ///
    /// In terms of `x` the logarithm of its density is, when removing,
    ///
    /// ```text
    /// -x^2/(2 sigma^2) - ln(sigma sqrt(2 pi)) + (2 + c) ln w - ln(q e^y) + ln sigma^2 - ln M(c),
    /// ```
    ///
    /// with `1 - c` instead of `2 + c` when adding. Only the term in `ln w` can be convex, with second derivative at most
    /// `(2 + c)/(4 sigma^4)`; so on a cell of length `l` it is at least its smaller end value less
    /// `l^2 (2 + c)/(32 sigma^4)`.
    pub(super) fn layers(&self, c: f64, log_moment: f64) -> Vec<Layer> {
        let variance = self.sigma * self.sigma;
        let power = match self.direction {
            Direction::Remove => 2.0 + c,
            Direction::Add => 1.0 - c,
        };
        let convexity = power.max(0.0) / (32.0 * variance * variance);
        let length = (0.125 * self.sigma).min((0.1 / convexity).sqrt());
        let (low, high) = self.range(c, 20.0);
        let count = ((high - low) / length).ceil().min(4000.0);
        let length = (high - low) / count;
        // The last two terms cover the rounding of the logarithms.
        let largest = (low / variance).abs() + (high / variance).abs() - (-self.rate).ln_1p();
        let rounding = 1e-9 + 16.0 * f64::EPSILON * power.abs() * largest;
        let correction = convexity * length * length + rounding;
        let constant = -LN_SQRT_2_PI + self.sigma.ln() - self.rate.ln() - log_moment - correction;
        let at = |k: u64| {
            let x = low + k as f64 * length;
            let y = (x - 0.5) / variance;
            let log_ratio = self.log_ratio(y);
            let log_density = constant - 0.5 * (x / self.sigma) * (x / self.sigma) + power * log_ratio - y;
            (log_ratio, log_density)
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
