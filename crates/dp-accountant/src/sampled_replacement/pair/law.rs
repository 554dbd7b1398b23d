//! The law of the privacy loss of one release, for composition.

use std::sync::Arc;

use super::{Pair, REACH};
use crate::loss_law::{Law, LossLaw, Tails};
use crate::normal::upper_tail;

impl Pair {
    /// Returns the law of the loss: that of the pair itself if it is symmetric. Otherwise the upper law is the
    /// [dominating](super) one, and the lower law is that of the pair itself, which two contributions attain.
    pub(crate) fn law(&self) -> Law {
        if self.is_symmetric() {
            Law::known(*self)
        } else {
            Law::Between { above: Arc::new(Folded(*self)), below: Arc::new(*self) }
        }
    }

    /// Returns both laws' tails at `x`.
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

    /// Returns the relative error of the tails.
    fn tails_error(&self, x: f64) -> f64 {
        // The argument is rounded twice; each time the tail at z changes by a factor of less than `(1 + z²) 2^-53`. Beyond the
        // reach the tail is zero.
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
        self.place_error(self.place(loss), loss)
    }

    fn threshold(&self, loss: f64) -> (Tails, f64, f64) {
        let x = self.place(loss);
        (self.tails_at(x), self.tails_error(x), self.place_error(x, loss))
    }

    fn is_symmetric(&self) -> bool {
        Pair::is_symmetric(self)
    }
}

/// The dominating pair if the contributions' radius is more than half their distance: the half of the pair with positive loss,
/// its mirror image, and the remaining mass of both without loss.
#[derive(Debug)]
struct Folded(Pair);

impl Folded {
    /// Returns the tails at `loss`, given those of the pair at its absolute value.
    fn folded(loss: f64, tails: Tails) -> Tails {
        // Under the mirrored pair the laws change roles.
        if loss < 0.0 { tails.reversed() } else { tails }
    }
}

impl LossLaw for Folded {
    fn tails(&self, loss: f64) -> Tails {
        Self::folded(loss, self.0.tails(loss.abs()))
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
        self.0.threshold_error(loss.abs())
    }

    fn threshold(&self, loss: f64) -> (Tails, f64, f64) {
        let (tails, relative_error, threshold_error) = self.0.threshold(loss.abs());
        (Self::folded(loss, tails), relative_error, threshold_error)
    }

    fn atoms(&self) -> (Vec<f64>, bool) {
        (vec![0.0], false)
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}
