//! The tails of the ball's privacy loss, tabulated for many thresholds.

use super::Ball;
use crate::loss_law::{LossLaw, Tails};
use crate::quadrature::panel;

/// Distance in logarithm below the largest density at which the density underflows.
const REACH: f64 = 745.0;

/// Largest change of the logarithm of the density across a panel;
const LARGEST_CHANGE: f64 = 6.0;

/// a panel is no wider than this over the square root of a bound on its curvature.
const WIDTH: f64 = 1.2;

/// Largest power of the cosine for which the rule is exact to the very end of the support.
const SMALL_POWER: f64 = 20.0;

/// The law of the privacy loss of one release, with the integrals of its density over panels.
///
/// The pair is symmetric: `Q(L > s)` is `P(L < -s)`, so the integrals from either end give all four tails as sums of
/// positive terms. Angles are measured from the nearer end of the support, so that they are exact there.
#[derive(Debug, Clone)]
pub(crate) struct BallLaw {
    ball: Ball,
    /// The part from the mode to the largest loss, and the part to the smallest.
    right: Half,
    left: Half,
    /// The reciprocal of the integral of the density.
    scale: f64,
    relative_error: f64,
}

/// One side of the mode.
#[derive(Debug, Clone)]
struct Half {
    density: HalfDensity,
    /// Ends of panels, as increasing distances from the end of the support up to that of the mode.
    ends: Vec<f64>,
    /// The integrals from the support's end to each, and from each to the mode.
    outer: Vec<f64>,
    inner: Vec<f64>,
}

impl BallLaw {
    /// Tabulates the law; `None` in one dimension, where it has atoms, and for extreme ratios.
    pub(crate) fn new(x: f64, dim: u64) -> Option<Self> {
        let ball = Ball::new(x, dim);
        if ball.is_line() {
            return None;
        }
        let weight = 0.5 * (ball.weight.0 + ball.weight.1);
        let right = Half::new(HalfDensity { ball, weight, mode: ball.end(), is_right: true });
        let left = Half::new(HalfDensity { ball, weight, mode: core::f64::consts::PI - ball.end(), is_right: false });
        let scale = (right.total() + left.total()).recip();
        let (sine, _) = ball.mode;
        let spread = (0.5 * x * (sine + sine.recip())).sqrt().recip();
        let of_weight = if weight > 0.0 { (ball.weight.1 - ball.weight.0) / weight } else { 0.0 };
        let relative_error = 8.0 * f64::EPSILON * (64.0 + REACH + 2.0 * x * (40.0 * spread).min(1.0)) + of_weight;
        Some(Self { ball, right, left, scale, relative_error })
    }

    /// Returns `P(L <= loss)` and `P(L > loss)`.
    fn split(&self, loss: f64) -> (f64, f64) {
        let (sine, cosine, _) = self.ball.angle(loss);
        let (below, above) = if sine >= self.ball.mode.0 {
            let (outer, inner) = self.right.split(cosine.atan2(sine));
            (self.left.total() + inner, outer)
        } else {
            let (outer, inner) = self.left.split(cosine.atan2(-sine));
            (outer, self.right.total() + inner)
        };
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
        let (p_below, p_above) = self.split(loss);
        let (q_above, q_below) = self.split(-loss);
        Tails { p_above, p_below, q_above, q_below }
    }

    fn support(&self) -> (f64, f64) {
        (-self.ball.x, self.ball.x)
    }

    fn relative_error(&self) -> f64 {
        self.relative_error
    }

    fn steps(&self) -> f64 {
        // Four integrals.
        5000.0
    }

    fn threshold_error(&self, _loss: f64) -> f64 {
        8.0 * f64::EPSILON * self.ball.x
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}

/// The density on one side of the mode, by the distance from the support's end.
#[derive(Debug, Clone, Copy)]
struct HalfDensity {
    ball: Ball,
    weight: f64,
    /// The mode's distance from the end of the support.
    mode: f64,
    is_right: bool,
}

impl HalfDensity {
    /// Returns its logarithm minus that at the mode, without the factor `1 + cos²/m`.
    fn log(&self, distance: f64) -> f64 {
        let Self { ball, mode, is_right, .. } = *self;
        if distance > 0.5 * mode {
            return ball.log_density(if is_right { mode - distance } else { distance - mode });
        }
        let exponential = if is_right {
            ball.x * (0.5 * (mode + distance)).sin() * (0.5 * (mode - distance)).sin()
        } else {
            -0.5 * ball.x * (distance.cos() + ball.mode.0)
        };
        if ball.power == 0.0 { exponential } else { exponential + ball.power * (distance.sin() / ball.mode.1).ln() }
    }

    fn at(&self, distance: f64) -> f64 {
        self.log(distance).exp() * (1.0 + self.weight * distance.sin().powi(2))
    }
}

impl Half {
    fn new(density: HalfDensity) -> Self {
        let ball = density.ball;
        let widest = WIDTH / (1.0 + 0.5 * ball.x + ball.power).sqrt();
        let mut ends = vec![density.mode];
        let (mut from, mut level, mut width) = (density.mode, 0.0, widest);
        while from > 0.0 {
            width = (2.0 * width).min(widest);
            let reaches_end = level < -REACH || (from <= widest && ball.power <= SMALL_POWER);
            let mut to = if reaches_end { 0.0 } else { (from - width).max(0.5 * from) };
            while !reaches_end && density.log(to) < level - LARGEST_CHANGE {
                width = 0.5 * (from - to);
                to = from - width;
            }
            (from, level) = (to, density.log(to));
            ends.push(to);
        }
        ends.reverse();
        let masses: Vec<f64> = ends.windows(2).map(|ends| panel(ends[0], ends[1], |d| density.at(d))).collect();
        let sums = |masses: &mut dyn Iterator<Item = &f64>| -> Vec<f64> {
            let mut sum = 0.0;
            let rest = masses.map(|mass| {
                sum += mass;
                sum
            });
            core::iter::once(0.0).chain(rest).collect()
        };
        let outer = sums(&mut masses.iter());
        let mut inner = sums(&mut masses.iter().rev());
        inner.reverse();
        Self { density, ends, outer, inner }
    }

    fn total(&self) -> f64 {
        self.outer.last().copied().unwrap_or_default()
    }

    /// Returns the integrals from the support's end to a distance, and from there to the mode.
    fn split(&self, distance: f64) -> (f64, f64) {
        let next = self.ends.partition_point(|end| *end <= distance);
        if next == 0 || next == self.ends.len() {
            return (self.total(), 0.0);
        }
        let outer = self.outer[next - 1] + panel(self.ends[next - 1], distance, |d| self.density.at(d));
        let inner = self.inner[next] + panel(distance, self.ends[next], |d| self.density.at(d));
        (outer, inner)
    }
}
