//! The sum along one line, with all its errors.

use core::f64::consts::PI;

use super::law::{Decay, Law};
use super::search::{Saddle, Search, Window};
use super::supremum;
use crate::exact::complex::Complex;
use crate::work;

/// Maximum number of points of the sum; beyond it another engine is used.
const MAX_POINTS: f64 = 100_000.0;

/// Permitted steps for one point: its amplitude, and some twenty epsilons at which the sum is evaluated. Forty are usual, so that a limit
/// can be exceeded by a third.
const STEPS_PER_POINT: f64 = 1000.0;

/// Number of points whose turns are products of one turn with a table. Two products round by less than 6 units, and the angle is
/// computed in two parts, whose roundings add up to that of the whole.
const TURNS: usize = 32;

/// The points `c + i j step` for `j = 0 .. count`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Points {
    pub(super) c: f64,
    pub(super) step: f64,
    pub(super) count: usize,
}

/// The accuracy aimed for on a line, and the work that it may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::exact) struct Effort {
    /// The negative logarithm of the errors relative to delta.
    pub(super) margin: f64,
    /// Maximum number of nodes of one law.
    pub(super) nodes: f64,
    /// Maximum number of nodes of one law times points.
    pub(super) terms: f64,
    /// Factor by which the end of the line is moved until the integrand has decayed.
    pub(super) stride: f64,
}

/// The effort for every evaluation. If it does not suffice, another engine is used.
pub(super) const USUAL: Effort = Effort { margin: 28.0, nodes: 3e4, terms: 3e7, stride: 1.4 };

/// The effort for an [eased](super::eased) line, if the usual one does not suffice.
pub(in crate::exact) const EASED: Effort = Effort { margin: 20.0, nodes: 1e5, terms: 1e8, stride: 1.05 };

/// The effort for an eased line if the other engine is not promising.
pub(in crate::exact) const PATIENT: Effort = Effort { margin: 20.0, nodes: 3e5, terms: 1e9, stride: 1.05 };

/// The line at `c`, for all epsilon near the one for which it was computed.
#[derive(Debug, Clone)]
pub(super) struct Line {
    c: f64,
    step: f64,
    window: Window,
    /// `K(c)` as computed; every amplitude is relative to `e^K(c)`.
    cumulant: f64,
    /// Bound on the error of `K(c)`.
    cumulant_error: f64,
    /// `e^(K - K(c)) / (z (z + 1))` at each point, the first halved.
    amplitudes: Vec<Complex>,
    /// The sums of their errors, of their moduli, and of their moduli times `|z|`.
    errors: f64,
    moduli: f64,
    weighted_moduli: f64,
    /// Bound on the sum of the omitted points.
    tail: f64,
    /// An upper bound on `K` on the other line; infinite if there is none.
    other_cumulant: f64,
    /// The largest loss, rounded up.
    supremum: f64,
}

/// Delta at one epsilon, as logarithms, and the derivative of the estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LogDelta {
    pub(super) lower: f64,
    pub(super) estimate: f64,
    pub(super) upper: f64,
    pub(super) slope: f64,
}

impl Line {
    /// Computes the line of `saddle`, for `epsilon` with delta about `e^log_delta`; `None` if this takes too much work or the
    /// integrand cannot be shown to decay. The errors are counted in full, whatever the effort.
    pub(super) fn new(
        search: &mut Search<'_>,
        saddle: &Saddle,
        epsilon: f64,
        log_delta: f64,
        effort: Effort,
    ) -> Option<Self> {
        let margin = effort.margin;
        let c = saddle.c;
        let [cumulant, _, curvature] = saddle.cumulant;
        let window = search.window(saddle, epsilon, log_delta, margin)?;
        let step = window.step();
        let log_moments = search.log_moments(c)?;
        if search.is_over() {
            return None;
        }
        let laws = search.laws;
        let decays: Vec<(Decay, f64)> =
            laws.iter().zip(&log_moments).map(|((law, count), log)| (law.decay(c, *log), *count)).collect();
        // A point takes about as much work in each of the subsequent searches, in addition to the nodes of its laws.
        let affordable = (work::allowance() / STEPS_PER_POINT).max(16.0);
        let log_tail = |t: f64| {
            let decay: f64 = decays.iter().map(|(decay, count)| count * decay.log(t)).sum();
            decay + (1.0 / t).min(0.5 * PI / c).ln() - PI.ln()
        };
        // The target for the tail, relative to e^(K(c) - c epsilon).
        let height = cumulant - c * epsilon - log_delta;
        let wanted = -margin - height.max(0.0);
        let farthest = step * MAX_POINTS.min(affordable);
        let mut t_max = (2.0 * margin / (curvature + 1.0 / (c * c))).sqrt().clamp(step, farthest);
        while log_tail(t_max) > wanted && t_max < farthest {
            t_max = (effort.stride * t_max).min(farthest);
        }
        if affordable < MAX_POINTS && log_tail(t_max) > wanted {
            work::cut_short();
        }
        let points = (t_max / step).ceil() as usize + 1;
        let last = step * (points - 1) as f64;

        let total: f64 = laws.iter().map(|(_, count)| count).sum();
        let exponent = margin + height.max(0.0) + (1.0 + total).ln();
        let mut sum = Sum::new(points);
        for ((law, count), log_moment) in laws.iter().zip(&log_moments) {
            if !sum.add(law, *count, (c, step), exponent, *log_moment, effort) {
                return None;
            }
        }
        let other_cumulant = match window.other.and_then(|other| upper_cumulant(search, other)) {
            Some(cumulant) => cumulant,
            None if window.is_capped => f64::INFINITY,
            None => return None,
        };
        let mut line = Self {
            c,
            step,
            window,
            cumulant: sum.exponents[0].re,
            cumulant_error: sum.errors[0],
            amplitudes: Vec::with_capacity(points),
            errors: 0.0,
            moduli: 0.0,
            weighted_moduli: 0.0,
            tail: (log_tail(last) + sum.errors[0]).exp(),
            other_cumulant,
            supremum: supremum(search.laws),
        };
        work::charge(100.0 * points as f64);
        for (j, (exponent, error)) in sum.exponents.iter().zip(&sum.errors).enumerate() {
            let z = Complex::new(c, j as f64 * step);
            let relative = Complex::new(exponent.re - line.cumulant, exponent.im);
            let half = if j == 0 { 0.5 } else { 1.0 };
            let amplitude = relative.exp().scale(half) / (z * Complex::new(c + 1.0, z.im));
            let modulus = amplitude.norm();
            // A point whose own error is not bounded makes the total error infinite, as it must.
            line.errors += modulus * (error + 4.0 * f64::EPSILON * (4.0 + exponent.norm())).exp_m1();
            line.moduli += modulus;
            line.weighted_moduli += modulus * z.norm();
            line.amplitudes.push(amplitude);
        }
        // The decay was computed from the moments of the search: they must agree with those of the sum.
        let tolerance = 1e-10 * (1.0 + cumulant.abs()) + 1e-13 * total + line.cumulant_error;
        let agrees = (line.cumulant - cumulant).abs() <= tolerance;
        (agrees && line.errors.is_finite() && line.tail.is_finite()).then_some(line)
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.amplitudes.len() * size_of::<Complex>()
    }

    /// Returns whether the aliases to the right of `epsilon` are beyond the largest loss, where delta is 0. The line's own epsilon
    /// may be, and a smaller one not.
    fn covers(&self, epsilon: f64) -> bool {
        epsilon + self.window.width >= self.supremum
    }

    /// Returns whether the bounds at `epsilon` count on aliases beyond the largest loss, which are not.
    pub(super) fn is_too_short(&self, epsilon: f64) -> bool {
        self.window.is_capped && !self.covers(epsilon)
    }

    /// Returns delta at `epsilon`.
    pub(super) fn log_delta(&self, epsilon: f64) -> LogDelta {
        work::charge(45.0 * self.amplitudes.len() as f64);
        let (mut sum, mut slope) = (0.0, 0.0);
        let turn = |j: usize| Complex::unit(-(j as f64 * self.step * epsilon));
        let turns: [Complex; TURNS] = core::array::from_fn(turn);
        for (first, amplitudes) in (0..).step_by(TURNS).zip(self.amplitudes.chunks(TURNS)) {
            let start = turn(first);
            for ((j, amplitude), turn) in (first..).zip(amplitudes).zip(turns) {
                let Complex { re, im } = *amplitude * (start * turn);
                sum += re;
                slope -= self.c * re - j as f64 * self.step * im;
            }
        }
        let factor = self.step / PI;
        let (sum, slope) = (factor * sum, factor * slope);
        let rounding = f64::EPSILON * (16.0 + self.amplitudes.len() as f64) * self.moduli
            + 4.0 * f64::EPSILON * epsilon * self.weighted_moduli;
        let error = factor * (self.errors + rounding) + self.tail;

        let log_scale = self.cumulant - self.c * epsilon;
        let width = self.window.width;
        // Bounds on the sum of the aliases to the left, relative to e^log_scale.
        let most = (-log_scale).exp() / (self.c * width).exp_m1();
        let shortfall = (epsilon - log_scale).exp() / ((self.c + 1.0) * width).exp_m1();
        let left_upper = most * (1.0 + 1e-12);
        let left_lower = (most * (1.0 - 1e-12) - shortfall * (1.0 + 1e-12)).max(0.0);
        let right = match self.window.other {
            _ if self.covers(epsilon) => 0.0,
            Some(other) => {
                let exponent = self.other_cumulant - other * epsilon - log_scale + log_factor(other);
                exponent.exp() / ((other - self.c) * width).exp_m1() * (1.0 + 1e-9)
            }
            None => f64::INFINITY,
        };
        let margin = 4.0 * f64::EPSILON * (1.0 + self.cumulant.abs() + self.c * epsilon);
        let estimate = sum - 0.5 * (left_lower + left_upper);
        let upper = (sum + error - left_lower).ln() + log_scale + margin;
        let lower = (sum - error - left_upper - right).ln() + log_scale - margin;
        // The logarithm of a value that is not positive is NaN.
        LogDelta {
            lower: if lower.is_nan() { f64::NEG_INFINITY } else { lower.min(0.0) },
            estimate: estimate.ln() + log_scale,
            upper: if upper.is_nan() { f64::INFINITY } else { upper }.min(self.log_chernoff(epsilon)).min(0.0),
            slope: slope / estimate,
        }
    }

    /// Returns the Chernoff bound on this line.
    fn log_chernoff(&self, epsilon: f64) -> f64 {
        chernoff(self.c, self.cumulant + self.cumulant_error, epsilon)
    }

    /// Returns the epsilon at which the Chernoff bound equals delta.
    pub(super) fn chernoff_epsilon(&self, log_delta: f64) -> f64 {
        chernoff_epsilon(self.c, self.cumulant + self.cumulant_error, log_delta)
    }
}

/// Returns `ln sup_x (1 - e^-x) e^(-c x)` over `x > 0`: `c ln c - (c + 1) ln(c + 1)`, rounded up.
fn log_factor(c: f64) -> f64 {
    -c * (1.0 / c).ln_1p() - c.ln_1p() + 1e-13
}

/// Returns the logarithm of the bound `delta <= e^(K(c) - c epsilon) sup_x (1 - e^-x) e^(-c x)`.
pub(super) fn chernoff(c: f64, cumulant: f64, epsilon: f64) -> f64 {
    let bound = cumulant - c * epsilon + log_factor(c);
    bound + 8.0 * f64::EPSILON * (cumulant.abs() + c * epsilon)
}

/// Returns the epsilon at which [`chernoff`] is `log_delta`.
pub(super) fn chernoff_epsilon(c: f64, cumulant: f64, log_delta: f64) -> f64 {
    let epsilon = (cumulant + log_factor(c) - log_delta) / c;
    (epsilon + 8.0 * f64::EPSILON * ((cumulant.abs() + log_delta.abs()) / c + epsilon.abs())).max(0.0)
}

/// Returns an upper bound on `K(c)`.
pub(super) fn upper_cumulant(search: &mut Search<'_>, c: f64) -> Option<f64> {
    let log_moments = search.log_moments(c)?;
    let mut sum = Sum::new(1);
    let total: f64 = search.laws.iter().map(|(_, count)| count).sum();
    for ((law, count), log_moment) in search.laws.iter().zip(&log_moments) {
        if !sum.add(law, *count, (c, 0.0), USUAL.margin + (1.0 + total).ln(), *log_moment, USUAL) {
            return None;
        }
    }
    let upper = sum.exponents[0].re + sum.errors[0];
    upper.is_finite().then_some(upper)
}

/// `K` and its errors on the points of a line, summed over the laws.
struct Sum {
    exponents: Vec<Complex>,
    errors: Vec<f64>,
}

impl Sum {
    fn new(points: usize) -> Self {
        Self { exponents: vec![Complex::new(0.0, 0.0); points], errors: vec![0.0; points] }
    }

    /// Adds `count` times the law's cumulant at the points `c + i j step`.
    fn add(
        &mut self,
        law: &Law,
        count: f64,
        (c, step): (f64, f64),
        exponent: f64,
        log_moment: f64,
        effort: Effort,
    ) -> bool {
        let points = Points { c, step, count: self.exponents.len() };
        law.along_line(points, exponent, log_moment, effort, |j, moment| {
            let term = moment.log.scale(count);
            let sum = self.exponents[j] + term;
            self.errors[j] += count * moment.error + 2.0 * f64::EPSILON * (2.0 * term.norm() + sum.norm());
            self.exponents[j] = sum;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::contour::binary;

    #[test]
    fn errors_count_as_often_as_the_release() {
        let [once, often] = [1.0, 1e6].map(|count| {
            let mut sum = Sum::new(3);
            assert!(sum.add(&binary(0.3), count, (2.0, 0.5), 30.0, 0.0, USUAL));
            sum.errors[2]
        });
        assert!(once > 0.0 && often >= 0.9e6 * once, "{once} {often}");
    }
}
