//! A gradient in one of `m` directions that is not known in advance: a slope of either sign (`m = 2`), the other classes of a
//! softmax (`m = C - 1`).
//!
//! With `Z_j` standard normal and `mu` = slope/s, addition has `M = max_j (mu Z_j + mu²/2)`, or 0 if that is negative, and
//! removal `c` more. The probability that `M` exceeds a number is at most `m` times that for one `Z`. With `T(x) = m P(Z > x)`,
//! the common tangent of the removal curve and of the mirrored addition curve leaves, under `Q`, `L = -(mu z + mu²/2)` for `z >
//! k`, under `P`, `L = c + mu z + mu²/2` for `z > l`, and nothing between, with
//!
//! ```text
//! T(k + mu) + T(l) = 1,    T(k) + e^-c T(l + mu) = 1:
//! ```
//!
//! the masses of `P` and of `Q`.
//!
//! If slope and curvature are related ([`LogCosh`](crate::MarginLoss::LogCosh)), steep slopes have no curvature: removal's loss
//! equals that of addition from a number `h` on, and is at most `h` below,
//!
//! ```text
//! M(y) = max(y, min(y + c, h)),    y = mu z + mu²/2:
//! ```
//!
//! `y + c`, then `h`, then `y`. The second mass is then `T(k) + int e^-M` over the three pieces beyond `l`.

use super::beside::{CONSTANT, Tail};
use super::law::{REACH, rounding};
use super::log_upper_tail;
use crate::gaussian::{curve_point, exp_up};
use crate::logspace::{log_add, log_sub};
use crate::normal::upper_tail;

/// Covers the rounding of the two masses and of a dozen operations.
const ROUNDING: f64 = 32.0 * f64::EPSILON;

/// Value below which tails have lost digits to underflow.
const SMALLEST_TAIL: f64 = 1e-280;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sided {
    /// m, at least 2.
    sides: f64,
    mu: f64,
    /// c: the logarithm of the determinants' ratio.
    shift: f64,
    /// h: removal's loss exceeds it only if addition's does; infinite if no such level is known.
    level: f64,
    /// `k` and `l`.
    low: f64,
    high: f64,
}

impl Sided {
    pub(super) fn new(sides: f64, mu: f64, shift: f64) -> Self {
        Self::tied(sides, mu, shift, f64::INFINITY)
    }

    /// Creates the pair with a removal loss that equals addition's from `level` on.
    pub(super) fn tied(sides: f64, mu: f64, shift: f64, level: f64) -> Self {
        // Addition's loss is at least mu²/2; at such a level it equals removal's throughout.
        let (shift, level) = if level <= 0.5 * mu * mu { (0.0, f64::INFINITY) } else { (shift, level) };
        let unsolved = Self { sides, mu, shift, level, low: 0.0, high: 0.0 };
        // The first equation gives l for each k, falling from infinity; the second's left side decreases in k.
        let high_of = |low: f64| bisect(|high| unsolved.inside(low + mu) - unsolved.outside(high));
        let low = bisect(|low| unsolved.inside(low) - unsolved.of_q(high_of(low)));
        Self { low, high: high_of(low), ..unsolved }
    }

    /// Returns the `z >= 0` from which on `y` is at least `loss`.
    fn place(&self, loss: f64) -> f64 {
        (loss / self.mu - 0.5 * self.mu).max(0.0)
    }

    /// Returns the points at which `y + c` and `y` reach the level.
    fn level_places(&self) -> (f64, f64) {
        (self.place(self.level - self.shift), self.place(self.level))
    }

    /// Returns the points between which the loss is the level.
    #[cfg(test)]
    pub(super) fn level_kinks(&self) -> Vec<f64> {
        let (first, second) = self.level_places();
        [first, second].into_iter().filter(|place| place.is_finite()).collect()
    }

    /// Returns the loss at which the tangent touches removal's curve.
    #[cfg(test)]
    pub(super) fn touching_loss(&self) -> f64 {
        self.loss_at(self.high)
    }

    /// Returns `M` at `z`.
    pub(super) fn loss_at(&self, z: f64) -> f64 {
        let y = self.mu * (0.5 * self.mu + z);
        y.max((y + self.shift).min(self.level))
    }

    /// Returns the `z >= 0` from which on `M` exceeds `loss`.
    pub(super) fn beyond(&self, loss: f64) -> f64 {
        self.place(if loss < self.level { loss - self.shift } else { loss })
    }

    /// Returns the mass of `Q` for `z > from` under `P`: `int e^-M`.
    pub(super) fn of_q(&self, from: f64) -> f64 {
        let (mu, shift) = (self.mu, self.shift);
        if self.level == f64::INFINITY {
            return (-shift).exp() * self.outside(from + mu);
        }
        let (first, second) = self.level_places();
        let (first, second) = (first.max(from), second.max(from));
        let shifted = self.outside(from + mu) - self.outside(first + mu);
        let level = self.outside(first) - self.outside(second);
        (-shift).exp() * shifted + (-self.level).exp() * level + self.outside(second + mu)
    }

    /// Returns `ln (1/m) int e^(t M)` over `z > l`, minus `t (t+1) mu²/2`, rounded up.
    fn log_moment_beyond(&self, t: f64) -> f64 {
        let Self { mu, shift, level, high, .. } = *self;
        if level == f64::INFINITY {
            return t * shift + log_upper_tail(high - t * mu);
        }
        let (first, second) = self.level_places();
        let (first, second) = (first.max(high), second.max(high));
        let between = |a: f64, b: f64| match a < b {
            true => log_difference(log_upper_tail(a), log_upper_tail(b)),
            false => f64::NEG_INFINITY,
        };
        let shifted = t * shift + between(high - t * mu, first - t * mu);
        let flat = t * level - 0.5 * t * (t + 1.0) * mu * mu + between(first, second);
        log_add(log_add(shifted, flat), log_upper_tail(second - t * mu))
    }

    /// Returns `T(x)`.
    pub(super) fn outside(&self, x: f64) -> f64 {
        self.sides * upper_tail(x)
    }

    /// Returns `1 - T(x)`, which is negative if `T` is above 1.
    pub(super) fn inside(&self, x: f64) -> f64 {
        if self.sides == 2.0 { libm::erf(x * core::f64::consts::FRAC_1_SQRT_2) } else { 1.0 - self.outside(x) }
    }

    /// Returns the relative error of [`inside`](Self::inside) from `k` on, excluding that of a tail; infinite if it is useless.
    pub(super) fn cancellation(&self) -> f64 {
        let least = self.inside(self.low);
        if self.sides == 2.0 {
            0.0
        } else if least > 1e-9 {
            8.0 * f64::EPSILON / least
        } else {
            f64::INFINITY
        }
    }

    pub(super) fn half_variance(&self) -> f64 {
        0.5 * self.mu * self.mu
    }

    pub(super) fn mu(&self) -> f64 {
        self.mu
    }

    pub(super) fn shift(&self) -> f64 {
        self.shift
    }

    /// Returns `k`: the `z` from which on, under `Q`, the loss is negative.
    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// Returns `l`: the `z` from which on, under `P`, the loss is positive.
    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// Returns a bound on the error of a loss up to `loss`.
    pub(super) fn loss_error(&self, loss: f64) -> f64 {
        8.0 * f64::EPSILON * (loss.abs() + self.shift + 2.0 * self.half_variance())
    }

    /// Returns the tail of the losses.
    pub(super) fn tail(&self) -> Tail<'_> {
        let Self { mu, shift, level, low, high, .. } = *self;
        let half = 0.5 * mu;
        // The outermost losses next to those that the pair does not have; at the level the place jumps.
        let (last_negative, first_positive) = (-mu * (low + half), self.loss_at(high));
        let mut ends = vec![(-CONSTANT * mu, false), (last_negative, true), (first_positive, false)];
        ends.extend((level > first_positive && level.is_finite()).then_some((level, true)));
        // The mass beyond the gap was solved from a difference from 1.
        let of_gap = if self.sides == 2.0 { 0.0 } else { 8.0 * f64::EPSILON };
        let above = move |loss: f64| {
            let place = -loss / mu - half;
            if loss < last_negative {
                let x = place.max(low) + mu;
                self.inside(x) * (1.0 + self.cancellation()) + self.outside(x) * rounding(x + mu)
            } else {
                let x = self.beyond(loss).max(high);
                self.outside(x) * (1.0 + rounding(x + mu)) + if x > high { 0.0 } else { of_gap }
            }
        };
        let reach = mu * (REACH + 0.5 + half) + shift;
        Tail { ends, above: Box::new(above), mu, reach, loss_error: self.loss_error(reach) }
    }

    /// Returns the excess in `L <= c + mu²/2 + mu z`, where `z` has `m` times the tail of `Z`; the bound's `ln 2` contains a
    /// factor 2.
    pub(super) fn largest_excess(&self) -> f64 {
        self.shift + self.sides.ln() * (1.0 + f64::EPSILON)
    }

    pub(super) fn delta(&self, epsilon: f64) -> f64 {
        let Self { sides, mu, shift, level, high, .. } = *self;
        let gaussian = |epsilon: f64| sides * exp_up(curve_point(mu, epsilon).log_delta) * (1.0 + ROUNDING);
        if epsilon < self.loss_at(high) {
            return self.outside(high) - epsilon.exp() * self.of_q(high) + sides * ROUNDING;
        }
        if epsilon >= level {
            return gaussian(epsilon);
        }
        if level == f64::INFINITY {
            return gaussian(epsilon - shift);
        }
        let from = self.beyond(epsilon).max(high);
        let above = self.outside(from);
        if !(above > SMALLEST_TAIL) {
            return gaussian(epsilon - shift);
        }
        let direct = above - epsilon.exp() * self.of_q(from) + ROUNDING * (1.0 + from * from) * above;
        // M is at most y + c.
        direct.min(gaussian(epsilon - shift))
    }

    pub(super) fn rdp(&self, order: f64) -> f64 {
        let Self { sides, mu, shift, level, low, .. } = *self;
        let excess_order = order - 1.0;
        let common = sides.ln() + 0.5 * order * excess_order * mu * mu;
        // E_P e^((a-1) L), and E_Q e^(-(a-1) L); the losses below have their law under Q.
        let removal = log_add(self.log_moment_beyond(excess_order), log_upper_tail(low + order * mu));
        let addition = log_add(log_upper_tail(low - excess_order * mu), self.log_moment_beyond(-order));
        if removal.is_nan() || addition.is_nan() {
            return f64::INFINITY;
        }
        let log_moment = common + removal.max(addition);
        // NaN is kept.
        let log_moment = if log_moment < 0.0 { 0.0 } else { log_moment };
        let level = if level.is_finite() { level.abs() } else { 0.0 };
        (log_moment + ROUNDING * (1.0 + common + order * (shift + level))) / excess_order
    }
}

/// Returns `ln(e^a - e^b)` for the logarithms of tails, rounded up by the rounding of both.
fn log_difference(a: f64, b: f64) -> f64 {
    // `b` is -inf if its tail is zero.
    let (a, b) = (a + ROUNDING * (1.0 + a.abs()), b - ROUNDING * (1.0 + b.abs()));
    if b > f64::NEG_INFINITY { log_sub(a, b) } else { a }
}

/// Returns the zero in `[0, 40]` of an increasing function, rounded down, or an end if there is none.
fn bisect(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if f(middle) <= 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
