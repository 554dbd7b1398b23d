//! The loss law of one release, for composition.

use std::sync::Arc;

use super::{Pair, REACH};
use crate::exact::loss_law::{Law, LossLaw, Tails};
use crate::normal::upper_tail;

impl Pair {
    /// The law of the loss: that of the pair itself where it is symmetric. Else the [dominating](super) one above, and below
    /// that of the pair itself, which two contributions attain.
    pub(crate) fn law(&self) -> Law {
        if self.is_symmetric() {
            Law::known(*self)
        } else {
            Law::Between { above: Arc::new(Folded(*self)), below: Arc::new(*self), are_close: false }
        }
    }

    /// Both laws' tails at `x`.
    fn tails_at(&self, x: f64) -> Tails {
        let Self { rate, up, down } = *self;
        let mix = |sampled: f64, other: f64| rate * sampled + (1.0 - rate) * other;
        let (above, below) = (upper_tail(x), upper_tail(-x));
        Tails {
            p_above: mix(upper_tail(x - up), above),
            p_below: mix(upper_tail(up - x), below),
            q_above: mix(upper_tail(x + down), above),
            q_below: mix(upper_tail(-x - down), below),
        }
    }

    /// The relative error of those.
    fn tails_error(&self, x: f64) -> f64 {
        // The argument's rounding changes the tail at z by less than `(1 + z²) 2^-53` of it, twice; beyond the reach there
        // is no tail.
        let extreme = (x.abs() + self.up).min(REACH);
        f64::EPSILON * (8.0 + 2.0 * extreme * extreme)
    }
}

/// The pair itself.
impl LossLaw for Pair {
    fn tails(&self, loss: f64) -> Tails {
        self.tails_at(self.place(loss))
    }

    fn support(&self) -> (f64, f64) {
        let least = if self.down > 0.0 { f64::NEG_INFINITY } else { (-self.rate).ln_1p() };
        (least, f64::INFINITY)
    }

    fn relative_error(&self) -> f64 {
        8.0 * f64::EPSILON
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        self.tails_error(self.place(loss))
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        self.place_error(loss)
    }

    fn is_symmetric(&self) -> bool {
        Pair::is_symmetric(self)
    }
}

/// The dominating pair where the contributions' radius is more than half their distance: the half of the pair with
/// positive loss, its mirror image, and the rest of both at no loss.
#[derive(Debug)]
struct Folded(Pair);

impl LossLaw for Folded {
    fn tails(&self, loss: f64) -> Tails {
        let Tails { p_above, p_below, q_above, q_below } = self.0.tails(loss.abs());
        if loss < 0.0 {
            // Under the mirrored pair the laws change roles.
            Tails { p_above: q_below, p_below: q_above, q_above: p_below, q_below: p_above }
        } else {
            Tails { p_above, p_below, q_above, q_below }
        }
    }

    fn support(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn relative_error(&self) -> f64 {
        8.0 * f64::EPSILON
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        self.0.relative_error_at(loss.abs())
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        self.0.place_error(loss.abs())
    }

    fn atoms(&self) -> (Vec<f64>, bool) {
        (vec![0.0], false)
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}
