//! Even central moments `E_Q[(P/Q - 1)^l]` of the pairs of laws that dominate a mechanism in both directions.

use crate::leaves::pure::pure_epsilon_of_all;
use crate::leaves::{Leaf, Leaves};
use crate::logspace::{log_add, log_exp_m1};
use crate::normal::LN_SQRT_2_PI;
use crate::rounding::{add_up, count_up, mul_up};

use super::super::integer_orders::PositiveSum;

/// A pair of laws that dominates both orders of a pair of neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pair {
    /// `N(mu, 1)` and `N(0, 1)`.
    Gaussian { mu: f64 },
    /// Laplace laws `x` scales apart.
    Laplace { x: f64 },
    /// Randomised response with two answers, which dominates all `epsilon`-DP mechanisms (Kairouz, Oh and Viswanath 2015).
    Pure { epsilon: f64 },
    /// Randomised response between two of several answers, the others being equally likely: the masses.
    Response { more: f64, less: f64 },
}

/// The omitted part of a quadrature is below `e^-NEGLIGIBLE` of its largest term.
const NEGLIGIBLE: f64 = 45.0;

impl Pair {
    /// Returns the pairs known for a base.
    pub(super) fn of(base: &Leaves) -> Vec<Self> {
        let mut pairs = Vec::new();
        let pure = pure_epsilon_of_all(base);
        if pure.is_finite() && pure > 0.0 {
            pairs.push(Self::Pure { epsilon: pure });
        }
        match base.as_slice() {
            [(Leaf::Laplace { x }, 1)] => pairs.push(Self::Laplace { x: *x }),
            [(Leaf::RandomizedResponse { buckets, noise }, 1)] => {
                let less = noise / count_up(*buckets);
                pairs.push(Self::Response { more: 1.0 - noise + less, less });
            }
            _ => {}
        }
        let mut square = 0.0;
        for (leaf, count) in base {
            match leaf {
                Leaf::Gaussian { mu } => square = add_up(square, mul_up(count_up(*count), mul_up(*mu, *mu))),
                _ => return pairs,
            }
        }
        if square > 0.0 && square < 1e12 {
            pairs.push(Self::Gaussian { mu: square.sqrt() * (1.0 + 2.0 * f64::EPSILON) });
        }
        pairs
    }

    /// Returns `ln E_Q[(P/Q - 1)^l]` for an even `l` of at least 2, rounded up.
    pub(super) fn log_even_moment(self, l: u32) -> f64 {
        let power = f64::from(l);
        let (log, size) = match self {
            Self::Gaussian { mu } => (gaussian(power, mu), 0.0),
            Self::Laplace { x } => (laplace(power, x), 0.0),
            // (E - 1)^l (1 + E^(1-l)) / (1 + E),    E = e^epsilon
            Self::Pure { epsilon } => {
                let loss = power * log_exp_m1(epsilon);
                (loss + ((1.0 - power) * epsilon).exp().ln_1p() - log_add(0.0, epsilon), loss.abs() + epsilon)
            }
            // (a - b)^l (a^(1-l) + b^(1-l))
            Self::Response { more, less } => {
                let (difference, reciprocal) = (power * (more - less).ln(), (1.0 - power) * less.ln());
                let other = (1.0 - power) * more.ln();
                (difference + log_add(reciprocal, other), power * (2.0 + difference.abs() + reciprocal))
            }
        };
        let log = log + 16.0 * f64::EPSILON * (size + 1.0);
        if log.is_nan() { f64::INFINITY } else { log }
    }
}

/// Returns the moment for Gaussian laws, by the trapezoid rule over a standard normal variable `y` for `(e^u - 1)^l`, `u = mu y -
/// mu^2/2`.
///
/// On the line `Im y = t`, `|e^u - 1|^2 <= (e^u - 1)^2 + e^u (mu t)^2`, with real parts on the right. Integrating by parts
/// against the Gaussian law of `u` gives `E[e^(iu) (e^u - 1)^(2k)] >= (2k - 1) mu^2 E[e^((i+1)u) (e^u - 1)^(2k-2)]`, so that the
/// mean of the modulus to the power `l` is at most `e^(t^2)` times the moment. With the density's `e^(t^2/2)` the rule of step
/// `h` has an error of at most `2 e^(3 t^2/2)/(e^(2 pi t/h) - 1)` of it; with `t = 2 pi/(3h)` and `h = 0.4` this is `2e-18`.
///
/// On either side of `y = mu/2` the integrand is log-concave: from a peak its terms decrease ever faster.
fn gaussian(power: f64, mu: f64) -> f64 {
    const STEP: f64 = 0.4;
    let log_at = |y: f64| {
        let u = mu * (y - 0.5 * mu);
        let log = if u > 0.0 { log_exp_m1(u) } else { (-u.exp_m1()).ln() };
        (power * log - 0.5 * y * y, power * (log.abs() + 3.0 + u.abs()) + 0.5 * y * y)
    };
    // Zeros of the derivative: y = l mu / (1 - e^-u) on the right, -l mu/(e^-u - 1) on the left.
    let slope = |y: f64| {
        let u = mu * (y - 0.5 * mu);
        -y - power * mu / (-u).exp_m1()
    };
    let reach = power * mu + power.sqrt() + mu + 2.0;
    let right = bisect(0.5 * mu, 0.5 * mu + reach, slope);
    let left = bisect(0.5 * mu - reach, 0.5 * mu, slope);
    let largest = log_at(right).0.max(log_at(left).0);
    let mut sum = PositiveSum::new();
    let middle = (0.5 * mu / STEP).floor();
    for (peak, outwards) in [(right, 1.0), (left, -1.0)] {
        // Only nodes on this side of the middle; those at or below it belong to the left.
        let on_this_side = |k: f64| if outwards > 0.0 { k > middle } else { k <= middle };
        let start = (peak / STEP).round();
        let mut k = if on_this_side(start) { start } else { middle + if outwards > 0.0 { 1.0 } else { 0.0 } };
        let first = k;
        for direction in [outwards, -outwards] {
            while on_this_side(k) {
                let (log, size) = log_at(k * STEP);
                sum.add(log, size);
                if log < largest - NEGLIGIBLE && (k - first).abs() > 2.0 {
                    break;
                }
                k += direction;
            }
            k = first - outwards;
        }
    }
    sum.log() + STEP.ln() - LN_SQRT_2_PI
}

/// Returns an approximate sign change of a decreasing function.
fn bisect(low: f64, high: f64, slope: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Laplace laws: masses `e^-x/2` and `1/2` at the ends of the loss's range, and between them
///
/// ```text
/// e^(-x/2)/4 int_(-x..x) e^(-t/2) (e^t - 1)^l dt.
/// ```
///
/// On either side of 0 the integrand is log-concave, so that on each cell of a partition it lies below the exponential
/// that touches it at a point of the cell.
fn laplace(power: f64, x: f64) -> f64 {
    let mut sum = PositiveSum::new();
    sum.add(power * log_exp_m1(x) - x - core::f64::consts::LN_2, power * (2.0 + x) + x);
    sum.add(power * (-(-x).exp_m1()).ln() - core::f64::consts::LN_2, power * (2.0 + x));
    let log_factor = -0.5 * x - 2.0 * core::f64::consts::LN_2;
    let shrink = 1.0 - 0.15 / power.sqrt();
    for side in [1.0, -1.0] {
        // With s = |t|: -side s/2 + l ln|e^(side s) - 1|, its slope, and cells from s = x down.
        let mut right = x;
        let at = |s: f64| {
            let log = if side > 0.0 { log_exp_m1(s) } else { (-(-s).exp_m1()).ln() };
            let slope = if side > 0.0 { -power / (-s).exp_m1() - 0.5 } else { power / s.exp_m1() + 0.5 };
            (power * log - 0.5 * side * s, slope)
        };
        let end = at(x).0;
        loop {
            let left = right * shrink;
            let touching = 0.5 * (left + right);
            let (log, slope) = at(touching);
            // int_left^right e^(slope (s - touching)) ds
            let half = 0.5 * slope * (right - left);
            let width = if half < 1e-3 {
                (right - left).ln() + half * half
            } else {
                half + (-(-2.0 * half).exp_m1()).ln() - slope.ln()
            };
            sum.add(log_factor + log + width, power * (2.0 + x) + half.abs());
            right = left;
            // The remainder increases towards `right`: its integral is below its value there times `right`.
            let rest = at(right).0;
            if rest < end - NEGLIGIBLE {
                sum.add(log_factor + rest + right.ln(), power * (2.0 + x));
                break;
            }
        }
    }
    sum.log()
}

#[cfg(test)]
mod tests;
