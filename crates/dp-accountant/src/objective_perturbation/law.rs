//! The law of the privacy loss of one release, for composition.
//!
//! The upper law is the envelope's pair, given by its tails. The lower law is the Gaussian mechanism of the same noise: if very
//! many records pull the minimiser far to one side, the slope of a record's loss tends to its bound and the curvature to 0, so
//! that the privacy loss tends to the Gaussian mechanism's, also over several releases.

use std::sync::Arc;

use super::monotone::Monotone;
use super::sided::Sided;
use super::{MarginLoss, Pair};
use crate::loss_law::{Gaussian, Law, LossLaw, Tails};
use crate::normal::upper_tail;
use crate::quadrature::{panel, panel_with_error};

/// Number of standard deviations beyond which the normal tail is below 1e-300.
pub(super) const REACH: f64 = 38.5;

/// Largest change of the logarithm of the normal density across a panel.
const LARGEST_CHANGE: f64 = 4.0;

/// Relative difference of two rules on a panel below which it is not halved further.
const CLOSE: f64 = 1e-13;

/// Maximum number of halvings.
const MAX_HALVINGS: u32 = 12;

/// Relative error of the integrals, excluding rounding.
const QUADRATURE: f64 = 1e-12;

/// Largest surplus, relative to the mass without loss, for which a law is available.
const LARGEST_SURPLUS: f64 = 1e-6;

/// Largest ratio of sensitivity to noise; beyond it there is no protection.
pub(super) const LARGEST_MU: f64 = 100.0;

/// Returns the ratio of sensitivity to noise, rounded down, of a Gaussian mechanism that costs no more than one release.
pub(crate) fn least_mu(std_dev: f64, loss: MarginLoss) -> f64 {
    let inverse = std_dev.recip().next_down();
    match loss {
        MarginLoss::Logistic | MarginLoss::HuberSvm { .. } | MarginLoss::LogCosh { .. } => inverse,
        MarginLoss::BoundedSlope { slope, .. } => (slope * inverse).next_down(),
        MarginLoss::Softmax { .. } => (core::f64::consts::SQRT_2.next_down() * inverse).next_down(),
    }
}

/// Returns the upper and the lower law of one release; `None` if the numbers are too extreme for the upper one.
pub(crate) fn law(std_dev: f64, regularization: f64, loss: MarginLoss) -> Option<Law> {
    let mu = least_mu(std_dev, loss);
    if !(mu > f64::MIN_POSITIVE) {
        return None;
    }
    let above: Arc<dyn LossLaw> = match Pair::new(std_dev, regularization, loss) {
        Pair::Monotone(pair) => Arc::new(MonotoneLaw::new(pair)?),
        Pair::Sided(pair) if pair.cancellation().is_finite() => Arc::new(pair),
        Pair::Sided(_) => return None,
    };
    Some(Law::Between { above, below: Arc::new(Gaussian::new(mu)) })
}

/// Returns a bound on the relative rounding error of normal tails whose argument is a sum of terms up to `extreme`; beyond 40 the
/// tail is zero.
pub(super) fn rounding(extreme: f64) -> f64 {
    f64::EPSILON * (64.0 + 32.0 * extreme * (1.0 + extreme.min(40.0)))
}

/// The envelope of a loss whose slope has one sign.
///
/// Under `Q` the losses have density `e^-L` times that under `P`, so only `Q(L > l)`, `l > 0`, needs integrals. They are taken
/// over the parameter `w` of the maximum; the sums of panels from the largest loss down are tabulated.
#[derive(Debug, Clone)]
struct MonotoneLaw {
    pair: Monotone,
    /// The loss next to 0.
    touches: f64,
    /// `Q(L > 0)`.
    q_positive: f64,
    /// Bound on how far the loss that is nearly 0 may be below 0.
    surplus: f64,
    table: Table,
}

/// Panels of the parameter, from `y*` upwards.
#[derive(Debug, Clone, Default)]
struct Table {
    /// Ends of panels, and the loss there.
    ends: Vec<(f64, f64)>,
    /// `Q` beyond each end.
    beyond: Vec<f64>,
}

impl MonotoneLaw {
    fn new(pair: Monotone) -> Option<Self> {
        let surplus = pair.relative_surplus();
        if !(surplus <= LARGEST_SURPLUS && pair.mu() <= LARGEST_MU) {
            return None;
        }
        let touches = pair.touches();
        let mut law = Self { pair, touches, q_positive: 0.0, surplus, table: Table::default() };
        law.table = law.tabulate();
        law.q_positive = law.beyond(touches).1;
        Some(law)
    }

    fn tabulate(&self) -> Table {
        let Some(first) = self.pair.parameter(self.pair.start()) else { return Table::default() };
        let (mu, end) = (self.pair.mu(), self.pair.end());
        let half = 0.5 * mu;
        // Positions in standard deviations under Q.
        let (mut place, last) = (self.pair.start() / mu + half, (end / mu + half).min(self.reach()));
        let mut ends = vec![first];
        while place < last {
            place = (place + (LARGEST_CHANGE / place).min(1.0)).min(last);
            let to = if place < last { self.pair.parameter(mu * (place - half)) } else { self.last_parameter(last) };
            if let Some((&from, to)) = ends.last().zip(to)
                && to > from
            {
                self.halve(from, to, MAX_HALVINGS, &mut ends);
            }
        }
        // Beyond the end of the excess the loss is the Gaussian mechanism's; beyond the reach the mass is zero.
        let mut sum = if end / mu + half <= self.reach() { upper_tail(end / mu + half) } else { 0.0 };
        let mut beyond = vec![sum];
        for pair in ends.windows(2).rev() {
            sum += panel(pair[0], pair[1], |w| self.pair.q_density(w));
            beyond.push(sum);
        }
        beyond.reverse();
        let ends = ends.into_iter().map(|w| (w, self.pair.loss_at(w).0)).collect();
        Table { ends, beyond }
    }

    /// Returns the number of standard deviations under `Q` beyond which both laws have no mass.
    fn reach(&self) -> f64 {
        REACH + self.pair.mu()
    }

    fn last_parameter(&self, last: f64) -> Option<f64> {
        let (mu, end) = (self.pair.mu(), self.pair.end());
        if end / mu + 0.5 * mu <= self.reach() { Some(1.0) } else { self.pair.parameter(mu * (last - 0.5 * mu)) }
    }

    /// Adds the ends of panels between `from` and `to`, on each of which two rules agree.
    fn halve(&self, from: f64, to: f64, left: u32, ends: &mut Vec<f64>) {
        let found = panel_with_error(from, to, |w| self.pair.q_density(w));
        let middle = 0.5 * (from + to);
        if found.error <= CLOSE * found.value || left == 0 || !(from < middle && middle < to) {
            ends.push(to);
        } else {
            self.halve(from, middle, left - 1, ends);
            self.halve(middle, to, left - 1, ends);
        }
    }

    /// Returns the `y` at which the loss is `loss >= touches`, and `Q(L > loss)`.
    fn beyond(&self, loss: f64) -> (f64, f64) {
        let (mu, end) = (self.pair.mu(), self.pair.end());
        if let Some(shift) = self.pair.shift() {
            let y = loss - shift;
            return (y, (-shift).exp() * upper_tail(y / mu + 0.5 * mu));
        }
        if loss >= end {
            return (loss, upper_tail(loss / mu + 0.5 * mu));
        }
        let Table { ends, beyond } = &self.table;
        let next = ends.partition_point(|(_, at)| *at <= loss).max(1);
        let (Some(&(low, _)), Some(&(high, _))) = (ends.get(next - 1), ends.get(next)) else {
            // Beyond the reach of both laws.
            return (loss, 0.0);
        };
        let w = self.pair.parameter_of_loss(loss, low, high);
        (self.pair.loss_at(w).1, beyond[next] + panel(w, high, |w| self.pair.q_density(w)))
    }
}

impl LossLaw for MonotoneLaw {
    fn tails(&self, loss: f64) -> Tails {
        let mu = self.pair.mu();
        let half = 0.5 * mu;
        let of_p = |y: f64| (upper_tail(y / mu - half), upper_tail(half - y / mu));
        if loss < 0.0 {
            let (p_above, p_below) = of_p(loss);
            let (q_above, q_below) = (upper_tail(loss / mu + half), upper_tail(-loss / mu - half));
            return Tails { p_above, p_below, q_above, q_below };
        }
        let (y, q_above) = if loss < self.touches { (self.pair.start(), self.q_positive) } else { self.beyond(loss) };
        let (p_above, p_below) = of_p(y);
        Tails { p_above, p_below, q_above, q_below: 1.0 - q_above }
    }

    fn support(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn relative_error(&self) -> f64 {
        rounding(self.touches / self.pair.mu() + self.pair.mu()) + QUADRATURE
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        let quadrature = if loss < 0.0 { 0.0 } else { QUADRATURE };
        rounding(loss.abs().max(self.pair.start()) / self.pair.mu() + 0.5 * self.pair.mu()) + quadrature
    }

    fn steps(&self) -> f64 {
        5000.0
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        self.surplus + self.pair.loss_error(loss)
    }
}

impl LossLaw for Sided {
    fn tails(&self, loss: f64) -> Tails {
        let (mu, low, high) = (self.mu(), self.low(), self.high());
        if loss < -mu * (low + 0.5 * mu) {
            let place = (-loss / mu - 0.5 * mu).max(low);
            let (p_below, q_below) = (self.outside(place + mu), self.outside(place));
            return Tails { p_above: self.inside(place + mu), p_below, q_above: self.inside(place), q_below };
        }
        let place = self.beyond(loss).max(high);
        let (p_above, q_above) = (self.outside(place), self.of_q(place));
        Tails { p_above, p_below: 1.0 - p_above, q_above, q_below: 1.0 - q_above }
    }

    fn support(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn relative_error(&self) -> f64 {
        rounding(self.mu() + self.low().max(self.high())) + self.cancellation()
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        let cancellation = if loss < 0.0 { self.cancellation() } else { 0.0 };
        rounding((loss.abs() + self.shift()) / self.mu() + self.mu() + self.low().max(self.high())) + cancellation
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        self.loss_error(loss)
    }
}

#[cfg(test)]
mod tests;
