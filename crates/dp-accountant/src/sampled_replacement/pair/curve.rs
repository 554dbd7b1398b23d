//! The curve of one release, in closed form.

use super::{Pair, REACH};
use crate::exact::ends::{Ends, largest_shown};
use crate::exact::single_step;
use crate::objective_perturbation::log_upper_tail;
use crate::root::{Tangent, least_safe};

impl Pair {
    /// Returns the logarithm of [`F`](super) at `e^epsilon`, and its derivative by epsilon: with `x` the point at which the loss
    /// is epsilon,
    ///
    /// ```text
    /// q P(Z > x - up) - e^epsilon q P(Z > x + down) - (e^epsilon - 1)(1-q) P(Z > x).
    /// ```
    ///
    /// Any other `x`, such as a rounded one, gives less, by no more than the mass of A beyond times the loss's error. The curve
    /// grows with the radius; that of radius 1, which is accurate to the last digits, bounds it where the difference cancels.
    fn log_delta_with_slope(&self, epsilon: f64) -> (Ends, f64) {
        let Self { rate, up, down } = *self;
        let x = self.place(epsilon);
        let log_excess = if epsilon > REACH { epsilon } else { epsilon.exp_m1().ln() };
        let first = rate.ln() + log_upper_tail(x - up);
        let second = rate.ln() + epsilon + log_upper_tail(x + down);
        let third = (-rate).ln_1p() + log_excess + log_upper_tail(x);
        let (taken, other) = ((second - first).exp(), (third - first).exp());
        let left = 1.0 - taken - other;
        // The rounding of the logarithms and of the tails' arguments, and the error of the place.
        let log_of_other = (-rate).ln_1p() + log_upper_tail(x);
        let mass = 1.0 + (log_of_other - first).exp();
        let extreme = x.abs() + self.mu();
        let logs = epsilon + rate.ln().abs() + first.abs() + log_of_other.abs();
        let error = f64::EPSILON * (16.0 + 4.0 * logs + 4.0 * extreme * extreme);
        let error = mass * (error + 2.0 * self.place_error(x, epsilon));
        let whole = single_step::log_delta(rate, self.mu().next_up(), epsilon).upper;
        let log = |value: f64| if value > 0.0 { first + value.ln() } else { f64::NEG_INFINITY };
        let upper = log((left + error) * (1.0 + 4.0 * f64::EPSILON)).min(whole).min(0.0);
        let lower = log((left - error) * (1.0 - 4.0 * f64::EPSILON)).min(upper);
        let slope = -(taken + (epsilon + log_of_other - first).exp()) / (left + error);
        (Ends { lower, upper: if upper.is_nan() { whole } else { upper } }, slope)
    }

    /// Returns the logarithm of delta at `epsilon`.
    pub(crate) fn log_delta(&self, epsilon: f64) -> Ends {
        self.log_delta_with_slope(epsilon).0
    }

    /// Returns epsilon for a delta between `e^low` and `e^high`: the upper end for `low`, the lower end for `high`.
    pub(crate) fn epsilon(&self, low: f64, high: f64) -> Ends {
        let whole = single_step::epsilon(self.rate, self.mu().next_up(), low, low).upper;
        let above = |epsilon: f64| {
            let (ends, slope) = self.log_delta_with_slope(epsilon);
            Tangent { value: ends.upper - low, slope }
        };
        let upper = if above(0.0).value <= 0.0 { 0.0 } else { least_safe(0.0, 0.5 * whole, whole, above) };
        let upper = upper.min(whole);
        let lower = largest_shown(upper, |epsilon| {
            let (ends, slope) = self.log_delta_with_slope(epsilon);
            (ends.lower - high, slope)
        });
        Ends { lower: lower.min(upper), upper }
    }
}
