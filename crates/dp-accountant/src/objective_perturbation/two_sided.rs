//! A slope of either sign.
//!
//! With `Z` standard normal and `mu` = slope/s, addition has `M = mu |Z| + mu²/2`, removal `c` more. The common tangent of the
//! removal curve and of the mirrored addition curve leaves: under `Q`, `L = -(mu |Z| + mu²/2)` where `|Z| > k`; under `P`, `L
//! = c + mu |Z| + mu²/2` where `|Z| > l`; and nothing between, with
//!
//! ```text
//! P(|Z| > k + mu) + P(|Z| > l) = 1,    P(|Z| > k) + e^-c P(|Z| > l + mu) = 1:
//! ```
//!
//! the masses of `P` and of `Q`.

use super::{log_sum_over, log_upper_tail};
use crate::gaussian::{curve_point, exp_up};
use crate::normal::upper_tail;

/// Covers the rounding of the two masses and of a dozen operations.
const ROUNDING: f64 = 32.0 * f64::EPSILON;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TwoSided {
    mu: f64,
    /// The logarithm of the determinants' ratio.
    shift: f64,
    /// `k` and `l`.
    low: f64,
    high: f64,
}

impl TwoSided {
    pub(super) fn new(mu: f64, shift: f64) -> Self {
        // The first equation gives l for each k, falling from infinity; the second's left side falls in k.
        let high_of = |low: f64| bisect(|high| inside(low + mu) - both(high));
        let low = bisect(|low| inside(low) - (-shift).exp() * both(high_of(low) + mu));
        Self { mu, shift, low, high: high_of(low) }
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

    /// `|Z|` under `Q` from which on the loss is negative.
    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// `|Z|` under `P` from which on the loss is positive.
    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// `L <= c + mu²/2 + mu |Z|`, of which `|Z|` has twice the tail of `Z`; the factor is in the bound's `ln 2`.
    pub(super) fn largest_excess(&self) -> f64 {
        self.shift + core::f64::consts::LN_2
    }

    pub(super) fn delta(&self, epsilon: f64) -> f64 {
        let Self { mu, shift, high, .. } = *self;
        let touches = shift + mu * (0.5 * mu + high);
        if epsilon >= touches {
            2.0 * exp_up(curve_point(mu, epsilon - shift).log_delta) * (1.0 + ROUNDING)
        } else {
            2.0 * (upper_tail(high) - (epsilon - shift).exp() * upper_tail(high + mu)) + ROUNDING
        }
    }

    pub(super) fn rdp(&self, order: f64) -> f64 {
        let Self { mu, shift, low, high } = *self;
        let excess_order = order - 1.0;
        let common = core::f64::consts::LN_2 + 0.5 * order * excess_order * mu * mu;
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

/// `P(|Z| > x)`.
pub(super) fn both(x: f64) -> f64 {
    2.0 * upper_tail(x)
}

/// `P(|Z| <= x)`.
pub(super) fn inside(x: f64) -> f64 {
    libm::erf(x * core::f64::consts::FRAC_1_SQRT_2)
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
