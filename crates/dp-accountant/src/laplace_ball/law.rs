//! The tails of the ball's loss, tabulated for many thresholds.

use super::Ball;
use crate::exact::loss_law::{LossLaw, Tails};
use crate::quadrature::panel;

/// What is this far, in logarithm, below the largest density underflows.
const REACH: f64 = 745.0;

/// The logarithm of the density changes by no more across a panel, ...
const LARGEST_CHANGE: f64 = 6.0;

/// ... and departs from its chord at the middle by no more than half of this.
const LARGEST_BEND: f64 = 0.4;

/// The loss law of one release, with the integrals of its density over panels.
///
/// The pair is symmetric: `Q(L > s)` is `P(L < -s)`, so the integrals from either end give all four tails as sums of
/// positive terms.
#[derive(Debug, Clone)]
pub(crate) struct BallLaw {
    ball: Ball,
    weight: f64,
    /// Ends of the panels, as angles beyond the mode, from `-pi/2` to `pi/2`.
    ends: Vec<f64>,
    /// The probability of angles below, and above, each end.
    below: Vec<f64>,
    above: Vec<f64>,
    /// One over the integral of the density.
    scale: f64,
    relative_error: f64,
}

impl BallLaw {
    /// Tabulates the law; `None` in one dimension, where it has atoms, and for absurd ratios.
    pub(crate) fn new(x: f64, dim: u64) -> Option<Self> {
        let ball = Ball::new(x, dim);
        if ball.is_line() {
            return None;
        }
        let right = ball.end();
        let mut ends = panels(&ball, right - core::f64::consts::PI);
        ends.reverse();
        ends.extend(panels(&ball, right).into_iter().skip(1));
        let weight = 0.5 * (ball.weight.0 + ball.weight.1);
        let masses: Vec<f64> =
            ends.windows(2).map(|ends| panel(ends[0], ends[1], |h| ball.density(h, weight))).collect();
        let mut below = vec![0.0];
        let mut above = vec![0.0];
        for mass in &masses {
            below.push(below.last().copied().unwrap_or_default() + mass);
        }
        for mass in masses.iter().rev() {
            above.push(above.last().copied().unwrap_or_default() + mass);
        }
        above.reverse();
        let scale = above.first().copied().unwrap_or_default().recip();
        // Half of the panels on either side of the mode matter to rounding; the extent of those that do not underflow.
        let inner = ends.len().saturating_sub(2).max(1);
        let extent = ends[inner].max(-ends[1.min(inner)]);
        let of_weight = if weight > 0.0 { (ball.weight.1 - ball.weight.0) / weight } else { 0.0 };
        let relative_error = 8.0 * f64::EPSILON * (64.0 + REACH + x * extent) + of_weight;
        Some(Self { ball, weight, ends, below, above, scale, relative_error })
    }

    fn density(&self, from_mode: f64) -> f64 {
        self.ball.density(from_mode, self.weight)
    }

    /// The probabilities of angles below and above one that is `from_mode` beyond the mode.
    fn split(&self, from_mode: f64) -> (f64, f64) {
        let next = self.ends.partition_point(|end| *end <= from_mode);
        if next == 0 {
            return (0.0, 1.0);
        }
        if next == self.ends.len() {
            return (1.0, 0.0);
        }
        let below = self.below[next - 1] + panel(self.ends[next - 1], from_mode, |h| self.density(h));
        let above = self.above[next] + panel(from_mode, self.ends[next], |h| self.density(h));
        (below * self.scale, above * self.scale)
    }
}

impl LossLaw for BallLaw {
    fn tails(&self, loss: f64) -> Tails {
        let x = self.ball.x;
        if loss >= x {
            return Tails { p_above: 0.0, p_below: 1.0, q_above: 0.0, q_below: 1.0 };
        }
        if loss <= -x {
            return Tails { p_above: 1.0, p_below: 0.0, q_above: 1.0, q_below: 0.0 };
        }
        let (p_below, p_above) = self.split(self.ball.angle(loss).2);
        let (q_above, q_below) = self.split(self.ball.angle(-loss).2);
        Tails { p_above, p_below, q_above, q_below }
    }

    fn support(&self) -> (f64, f64) {
        (-self.ball.x, self.ball.x)
    }

    fn relative_error(&self) -> f64 {
        self.relative_error
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        let angle = self.ball.angle(loss.clamp(-self.ball.x, self.ball.x)).2;
        8.0 * f64::EPSILON * (loss.abs() + self.ball.x * angle.abs())
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}

/// Ends of panels from the mode to `end`, on each of which the rule is exact to rounding.
fn panels(ball: &Ball, end: f64) -> Vec<f64> {
    let (mut from, mut level) = (0.0, 0.0);
    let mut ends = vec![from];
    let mut width = end;
    while level > -REACH && from != end {
        width = if (end - from).abs() <= 2.0 * width.abs() { end - from } else { 2.0 * width };
        let (to, next) = loop {
            let to = if (end - from).abs() <= width.abs() { end } else { from + width };
            let (next, middle) = (ball.log_density(to), ball.log_density(0.5 * (from + to)));
            let bend = (middle - 0.5 * (level + next)).abs();
            // The negated comparisons also shrink a panel that ends where the logarithm is infinite.
            if next >= level - LARGEST_CHANGE && bend <= 0.5 * LARGEST_BEND || width.abs() < 1e-15 {
                break (to, next);
            }
            width *= 0.5;
        };
        ends.push(to);
        (from, level) = (to, next);
    }
    if from != end {
        ends.push(end);
    }
    ends
}
