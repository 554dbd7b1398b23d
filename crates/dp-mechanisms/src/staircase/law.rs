//! The staircase law in steps of a grid, as a mixture of its first step and a geometric sequence of others.

use crate::ratio::Ratio;

/// Returns the `gamma` with the least mean absolute error, `1 / (1 + exp(epsilon / 2))`.
///
/// # References
/// Q. Geng, P. Viswanath, "The optimal mechanism in differential privacy", 2014, Theorem 4.
pub fn optimal_gamma(epsilon: f64) -> f64 {
    1.0 / (1.0 + (0.5 * epsilon).exp())
}

/// Returns the least mean absolute error of a pure epsilon-DP number of sensitivity 1, `1 / (2 sinh(epsilon / 2))`.
///
/// # References
/// As [`optimal_gamma`].
pub fn least_mean_absolute(epsilon: f64) -> f64 {
    0.5 / (0.5 * epsilon).sinh()
}

/// Factor on the probability of the first step: more than the rounding of a few elementary functions, and otherwise negligible.
const MARGIN: f64 = 1.0 - 1.0 / 281_474_976_710_656.0;

/// Lengths are in steps of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Law {
    /// The probability of the first step.
    first_step: f64,
    /// `1 / epsilon`, the scale of the geometric sequence, rounded up.
    mean_step: Ratio,
    /// Length of half the first step.
    first: u64,
    /// Length of the others: the sensitivity, rounded up.
    period: u64,
}

impl Law {
    pub(super) fn new(epsilon: f64, mean_step: Ratio, period: u64) -> Self {
        let first = ((optimal_gamma(epsilon) * period as f64).round() as u64).clamp(1, period);
        // The first step has height p / (2 first), the second (1 - p)(1 - q) / (2 period). So the ratio is at most exp(epsilon)
        // if p / (1 - p) <= first / period · exp(epsilon) (1 - q). The product exp(epsilon) (1 - q) is exp(epsilon) - 1 except
        // for the rounding of 1 / epsilon, which makes it less by at most a relative 2^-52.
        let odds = first as f64 / period as f64 * epsilon.exp_m1();
        Self { first_step: odds / (1.0 + odds) * MARGIN, mean_step, first, period }
    }

    pub(super) fn first_step(&self) -> f64 {
        self.first_step
    }

    pub(super) fn mean_step(&self) -> Ratio {
        self.mean_step
    }

    pub(super) fn gamma(&self) -> f64 {
        self.first as f64 / self.period as f64
    }

    /// Returns length and start of the step: the first, or the one `further` beyond the second.
    pub(super) fn step(&self, is_first: bool, further: i128) -> (u64, i128) {
        if is_first {
            (self.first, 0)
        } else {
            (self.period, i128::from(self.first).saturating_add(i128::from(self.period).saturating_mul(further)))
        }
    }

    /// Returns `q`, and `1 - q` without cancellation.
    fn ratio(&self) -> (f64, f64) {
        let exponent = -1.0 / self.mean_step.rounded_down();
        (exponent.exp(), -exponent.exp_m1())
    }

    pub(super) fn mean_absolute(&self) -> f64 {
        let (q, complement) = self.ratio();
        let (first, period) = (self.first as f64, self.period as f64);
        self.first_step * 0.5 * first + (1.0 - self.first_step) * (first + period * (q / complement + 0.5))
    }

    pub(super) fn variance(&self) -> f64 {
        let (q, complement) = self.ratio();
        let (first, period) = (self.first as f64, self.period as f64);
        // G + U: mean and variance of a geometric and a uniform number.
        let mean = first + period * (q / complement + 0.5);
        let spread = period * period * (q / (complement * complement) + 1.0 / 12.0);
        self.first_step * first * first / 3.0 + (1.0 - self.first_step) * (mean * mean + spread)
    }

    /// Returns the probability of an absolute value above `x`.
    pub(super) fn magnitude_tail(&self, x: f64) -> f64 {
        let (first, period) = (self.first as f64, self.period as f64);
        if x < first {
            return 1.0 - self.first_step * x / first;
        }
        let (q, complement) = self.ratio();
        let steps = (x - first) / period;
        // The mass beyond the step that contains x, and the part of that step.
        let beyond = q.powf(steps.floor() + 1.0) + complement * q.powf(steps.floor()) * (1.0 - steps.fract());
        (1.0 - self.first_step) * beyond
    }

    /// Returns the density on the first step.
    pub(super) fn highest_density(&self) -> f64 {
        self.first_step / (2.0 * self.first as f64)
    }
}
