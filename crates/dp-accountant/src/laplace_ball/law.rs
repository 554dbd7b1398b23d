//! The tails of the ball's privacy loss, tabulated for many thresholds.

use core::f64::consts::PI;

use super::Ball;
use crate::loss_law::{LossLaw, Tails};
use crate::quadrature::panel;
use crate::work;

/// Distance in logarithm below the largest density at which the density underflows.
const REACH: f64 = 745.0;

/// Largest change of the logarithm of the density across a panel;
const LARGEST_CHANGE: f64 = 1.0;

/// a panel is no wider than this over the square root of a bound on its curvature.
const WIDTH: f64 = 1.2;

/// Number of steps of a panel's series.
const STEPS_PER_PANEL: f64 = 1500.0;

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
    /// Integrals from the low end of each panel.
    integrals: Vec<Option<Integral>>,
    /// The integrals from the support's end to each end, and from each to the mode.
    outer: Vec<f64>,
    inner: Vec<f64>,
}

/// Number of nodes of a panel. The density is entire, and grows by less than `e^3` on the ellipse about the panel through the end of
/// the support, whose semi-axes have the sum 5.8 in half widths, since the panel is no wider than its distance from that end:
/// interpolation errs by less than `1e-16` of the largest value (by `1e-23` in practice).
const NODES: usize = 24;

/// The integral of a smooth positive function from the low end of a panel, by the Chebyshev series of its interpolation at
/// [`NODES`].
#[derive(Debug, Clone)]
struct Integral {
    middle: f64,
    half: f64,
    series: Vec<f64>,
    total: f64,
}

/// Bound on the error of an [`Integral`], relative to its total, in ulps: coefficients and their sum have [`NODES`] terms each, with
/// cosines of several ulps. Over a panel the exponential changes by a factor of at most `e`, and `1 + cos²/m` by one of at most 4,
/// so that the total is at least 0.7 times the largest value and the half width.
const SERIES_ULPS: f64 = 256.0;

/// The series is used only where the whole sum is at least the panel's total divided by this; otherwise quadrature.
const LARGEST_TOTAL: f64 = 4.0;

impl Integral {
    fn new(low: f64, high: f64, nodes: &Nodes, f: impl Fn(f64) -> f64) -> Self {
        let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
        let values = nodes.points.map(|t| f(middle + half * t));
        // Coefficients of the interpolation, the first one halved; those of rounding alone are dropped.
        let mut of_f: Vec<f64> =
            nodes.cosines.iter().map(|row| row.iter().zip(&values).map(|(c, v)| c * v).sum()).collect();
        let largest = of_f[0];
        while of_f.last().is_some_and(|last| last.abs() <= 0.25 * f64::EPSILON * largest) {
            of_f.pop();
        }
        // The integral of T_k is T_(k+1)/(2(k+1)) - T_(k-1)/(2(k-1)).
        let at = |k: usize| of_f.get(k).copied().unwrap_or(0.0);
        let mut series = vec![0.0; of_f.len() + 1];
        for k in (1..series.len()).rev() {
            let before = if k == 1 { 2.0 * at(0) } else { at(k - 1) };
            series[k] = half * (before - at(k + 1)) / (2 * k) as f64;
        }
        // Zero at the low end.
        series[0] = (1..series.len()).rev().map(|k| if k % 2 == 0 { -series[k] } else { series[k] }).sum();
        let total = (2.0 * series.iter().skip(1).step_by(2).rev().sum::<f64>()).max(0.0);
        Self { middle, half, series, total }
    }

    fn to(&self, x: f64) -> f64 {
        let t = (x - self.middle) / self.half;
        let (mut next, mut after) = (0.0, 0.0);
        for &coefficient in self.series[1..].iter().rev() {
            (next, after) = (coefficient + 2.0 * t * next - after, next);
        }
        (self.series[0] + t * next - after).clamp(0.0, self.total)
    }
}

/// The nodes of a panel, and what turns values at them into coefficients.
struct Nodes {
    points: [f64; NODES],
    cosines: [[f64; NODES]; NODES],
}

impl Nodes {
    fn new() -> Self {
        let count = NODES as f64;
        // An angle in units of π/(2 NODES), which has a period of 4 NODES.
        let cosine = |units: usize| (PI * (units % (4 * NODES)) as f64 / (2.0 * count)).cos();
        let points = core::array::from_fn(|i| cosine(2 * i + 1));
        let cosines = core::array::from_fn(|k| {
            let weight = if k == 0 { 1.0 } else { 2.0 } / count;
            core::array::from_fn(|i| weight * cosine(k * (2 * i + 1)))
        });
        Self { points, cosines }
    }
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
        let left = Half::new(HalfDensity { ball, weight, mode: PI - ball.end(), is_right: false });
        let scale = (right.total() + left.total()).recip();
        let (sine, _) = ball.mode;
        let spread = (0.5 * x * (sine + sine.recip())).sqrt().recip();
        let of_weight = if weight > 0.0 { (ball.weight.1 - ball.weight.0) / weight } else { 0.0 };
        let of_series = SERIES_ULPS * LARGEST_TOTAL;
        // Ends and nodes of panels are rounded to an ulp of π/2, which moves the density by its steepness times that.
        let of_places = 2.0 / spread;
        let of_logarithm = 8.0 * (64.0 + REACH + 2.0 * x * (40.0 * spread).min(1.0));
        let relative_error = f64::EPSILON * (of_series + of_places + of_logarithm) + of_weight;
        Some(Self { ball, right, left, scale, relative_error })
    }

    /// Returns `P(L <= loss)` and `P(L > loss)`.
    fn split(&self, loss: f64) -> (f64, f64) {
        let (sine, cosine) = self.ball.sine_cosine(loss);
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
        // Two series.
        400.0
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
        work::charge(STEPS_PER_PANEL * ends.len() as f64);
        let nodes = Nodes::new();
        // At the end of the support the density may vanish like a power, and is far from constant.
        let integrals: Vec<_> = ends
            .windows(2)
            .map(|ends| (ends[0] > 0.0).then(|| Integral::new(ends[0], ends[1], &nodes, |d| density.at(d))))
            .collect();
        let of_panel = |(ends, integral): (&[f64], &Option<Integral>)| match integral {
            Some(integral) => integral.total,
            None => panel(ends[0], ends[1], |d| density.at(d)),
        };
        let masses: Vec<f64> = ends.windows(2).zip(&integrals).map(of_panel).collect();
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
        Self { density, ends, integrals, outer, inner }
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
        let (low, high) = (self.ends[next - 1], self.ends[next]);
        let (beyond, rest) = (self.outer[next - 1], self.inner[next]);
        let (to, from) = match &self.integrals[next - 1] {
            Some(integral) => {
                let to = integral.to(distance);
                let is_known = |sum: f64, part: f64| (LARGEST_TOTAL * (sum + part) >= integral.total).then_some(part);
                (is_known(beyond, to), is_known(rest, integral.total - to))
            }
            None => (None, None),
        };
        let outer = beyond + to.unwrap_or_else(|| panel(low, distance, |d| self.density.at(d)));
        let inner = rest + from.unwrap_or_else(|| panel(distance, high, |d| self.density.at(d)));
        (outer, inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The series give what quadrature gives, to half of the stated error, also where the sums are tiny.
    #[test]
    fn series_are_integrals() {
        for (x, dim) in
            [(1e-3, 2), (0.3, 2), (5.0, 2), (700.0, 2), (1.0, 3), (60.0, 3), (2.0, 40), (40.0, 50), (3.0, 5000)]
        {
            let law = BallLaw::new(x, dim).unwrap();
            let mut largest = 0.0f64;
            for half in [&law.right, &law.left] {
                for (i, ends) in half.ends.windows(2).enumerate() {
                    for fraction in [1e-9, 0.001, 0.1, 0.5, 0.77, 0.999] {
                        let distance = ends[0] + fraction * (ends[1] - ends[0]);
                        let (outer, inner) = half.split(distance);
                        let direct = |low, high| panel(low, high, |d| half.density.at(d));
                        let expected =
                            (half.outer[i] + direct(ends[0], distance), half.inner[i + 1] + direct(distance, ends[1]));
                        for (found, expected) in [(outer, expected.0), (inner, expected.1)] {
                            if expected > 1e-290 {
                                largest = largest.max((found / expected - 1.0).abs());
                            }
                        }
                    }
                }
            }
            assert!(largest < 0.5 * law.relative_error(), "{x} {dim}: {largest:e}");
        }
    }
}
