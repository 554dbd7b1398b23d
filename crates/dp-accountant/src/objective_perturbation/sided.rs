//! A gradient in one of `m` directions that is not known beforehand: a slope of either sign (`m = 2`), the other classes of a
//! softmax (`m = C - 1`).
//!
//! With `Z_j` standard normal and `mu` = slope/s, addition has `M = max_j (mu Z_j + mu²/2)`, or 0 where that is negative, and
//! removal `c` more. `M` exceeds a number with at most `m` times the probability that one `Z` gives it: with `T(x) = m P(Z >
//! x)`, the common tangent of the removal curve and of the mirrored addition curve leaves, under `Q`, `L = -(mu z + mu²/2)`
//! where `z > k`, under `P`, `L = c + mu z + mu²/2` where `z > l`, and nothing between, with
//!
//! ```text
//! T(k + mu) + T(l) = 1,    T(k) + e^-c T(l + mu) = 1:
//! ```
//!
//! the masses of `P` and of `Q`.

use super::{log_sum_over, log_upper_tail};
use crate::gaussian::{curve_point, exp_up};
use crate::normal::upper_tail;

/// Covers the rounding of the two masses and of a dozen operations.
const ROUNDING: f64 = 32.0 * f64::EPSILON;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sided {
    /// m, at least 2.
    sides: f64,
    mu: f64,
    /// The logarithm of the determinants' ratio.
    shift: f64,
    /// `k` and `l`.
    low: f64,
    high: f64,
}

impl Sided {
    pub(super) fn new(sides: f64, mu: f64, shift: f64) -> Self {
        let unsolved = Self { sides, mu, shift, low: 0.0, high: 0.0 };
        // The first equation gives l for each k, falling from infinity; the second's left side falls in k.
        let high_of = |low: f64| bisect(|high| unsolved.inside(low + mu) - unsolved.outside(high));
        let low = bisect(|low| unsolved.inside(low) - (-shift).exp() * unsolved.outside(high_of(low) + mu));
        Self { low, high: high_of(low), ..unsolved }
    }

    /// `T(x)`.
    pub(super) fn outside(&self, x: f64) -> f64 {
        self.sides * upper_tail(x)
    }

    /// `1 - T(x)`, which is negative where `T` counts more than all.
    pub(super) fn inside(&self, x: f64) -> f64 {
        if self.sides == 2.0 { libm::erf(x * core::f64::consts::FRAC_1_SQRT_2) } else { 1.0 - self.outside(x) }
    }

    /// The relative error of [`inside`](Self::inside) from `k` on, beside that of a tail; infinite where it is useless.
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

    /// `k`: from which `z` on, under `Q`, the loss is negative.
    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// `l`: from which `z` on, under `P`, the loss is positive.
    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// `L <= c + mu²/2 + mu z`, where `z` has `m` times the tail of `Z`; a factor 2 is in the bound's `ln 2`.
    pub(super) fn largest_excess(&self) -> f64 {
        self.shift + self.sides.ln() * (1.0 + f64::EPSILON)
    }

    pub(super) fn delta(&self, epsilon: f64) -> f64 {
        let Self { sides, mu, shift, high, .. } = *self;
        let touches = shift + mu * (0.5 * mu + high);
        if epsilon >= touches {
            sides * exp_up(curve_point(mu, epsilon - shift).log_delta) * (1.0 + ROUNDING)
        } else {
            sides * (upper_tail(high) - (epsilon - shift).exp() * upper_tail(high + mu)) + sides * ROUNDING
        }
    }

    pub(super) fn rdp(&self, order: f64) -> f64 {
        let Self { sides, mu, shift, low, high } = *self;
        let excess_order = order - 1.0;
        let common = sides.ln() + 0.5 * order * excess_order * mu * mu;
        // E_P e^((a-1) L), and E_Q e^(-(a-1) L); the losses below have their law under Q.
        let removal = log_sum_over(
            excess_order * shift + log_upper_tail(high - excess_order * mu),
            log_upper_tail(low + order * mu),
            1.0,
        );
        let addition = log_sum_over(
            log_upper_tail(low - excess_order * mu),
            -order * shift + log_upper_tail(high + order * mu),
            1.0,
        );
        if removal.is_nan() || addition.is_nan() {
            return f64::INFINITY;
        }
        let log_moment = common + removal.max(addition);
        // NaN stays.
        let log_moment = if log_moment < 0.0 { 0.0 } else { log_moment };
        (log_moment + ROUNDING * (1.0 + common)) / excess_order
    }
}

/// The zero in `[0, 40]` of an increasing function, or the end where there is none; the largest float not above it.
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
