//! A release from a Poisson sample: the pair `((1-q) Q + q P, Q)` where `(P, Q)` dominates the release itself.
//!
//! # References
//! Zhu, Dong and Wang 2022, Theorem 11, arXiv:2106.08567: this pair dominates the removal of a record, and its reversal
//! the addition.

use std::sync::Arc;

use super::{Between, LossLaw, Tails};

/// The loss law of a Poisson-sampled release.
///
/// # Formula
/// The loss is `ln(1 - q + q e^l)` if the release's own is `l`. This function is increasing, so that thresholds map to thresholds
/// and the tails mix.
#[derive(Debug)]
pub(crate) struct Sampled {
    rate: f64,
    base: Arc<dyn LossLaw>,
}

impl Sampled {
    /// Creates the law of `base` on a sample that holds each record with probability `rate`, strictly between 0 and 1.
    pub(crate) fn new(rate: f64, base: Arc<dyn LossLaw>) -> Self {
        Self { rate, base }
    }

    /// Returns the mixture's loss at the release's own `loss`.
    fn mixed(&self, loss: f64) -> f64 {
        mixed_loss(self.rate, loss)
    }
}

/// Returns `ln(1 - q + q e^l)`.
pub(crate) fn mixed_loss(rate: f64, loss: f64) -> f64 {
    if loss > 40.0 { loss + (rate + (1.0 - rate) * (-loss).exp()).ln() } else { (rate * loss.exp_m1()).ln_1p() }
}

/// Returns the release's own loss at which the mixture's is `loss`: `ln(1 + (e^loss - 1)/q)`; negative infinity at and below
/// `ln(1 - q)`.
pub(crate) fn own_loss(rate: f64, loss: f64) -> f64 {
    if loss == f64::INFINITY {
        return loss;
    }
    if loss > 40.0 {
        return loss - rate.ln() + (-(1.0 - rate) * (-loss).exp()).ln_1p();
    }
    let ratio = loss.exp_m1() / rate;
    if ratio > -1.0 { ratio.ln_1p() } else { f64::NEG_INFINITY }
}

impl LossLaw for Sampled {
    fn tails(&self, loss: f64) -> Tails {
        let own = own_loss(self.rate, loss);
        if own == f64::NEG_INFINITY {
            return Tails { p_above: 1.0, p_below: 0.0, q_above: 1.0, q_below: 0.0 };
        }
        let base = self.base.tails(own);
        let mix = |p: f64, q: f64| (1.0 - self.rate) * q + self.rate * p;
        Tails {
            p_above: mix(base.p_above, base.q_above),
            p_below: mix(base.p_below, base.q_below),
            q_above: base.q_above,
            q_below: base.q_below,
        }
    }

    fn between(&self, low: f64, high: f64) -> Option<Between> {
        let (own_low, own_high) = (own_loss(self.rate, low), own_loss(self.rate, high));
        if own_high == f64::NEG_INFINITY {
            return Some(Between { p: 0.0, q: 0.0, relative_error: 0.0 });
        }
        let mut base = self.base.between(own_low, own_high)?;
        if own_low == f64::NEG_INFINITY {
            // Outcomes that the release's own P cannot produce have the least loss, ln(1 - q).
            base.q += self.base.q_infinite();
        }
        let p = (1.0 - self.rate) * base.q + self.rate * base.p;
        Some(Between { p, q: base.q, relative_error: base.relative_error + 6.0 * f64::EPSILON })
    }

    fn knows_cells(&self) -> bool {
        self.base.knows_cells()
    }

    fn support(&self) -> (f64, f64) {
        let (least, largest) = self.base.support();
        let least = if self.base.q_infinite() > 0.0 { f64::NEG_INFINITY } else { least };
        let mixed = |loss: f64| if loss == f64::INFINITY { loss } else { self.mixed(loss) };
        (mixed(least), mixed(largest))
    }

    fn relative_error(&self) -> f64 {
        self.base.relative_error() + 4.0 * f64::EPSILON
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        let own = own_loss(self.rate, loss);
        let base = if own.is_finite() { self.base.relative_error_at(own) } else { self.base.relative_error() };
        base + 4.0 * f64::EPSILON
    }

    fn steps(&self) -> f64 {
        100.0 + self.base.steps()
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        // The map to the release's own loss has an error of a few units of `e^loss - 1` or of the rate. In terms of the mixture's
        // loss, the release's own error shrinks, because the mixture's slope is below 1.
        self.base.threshold_error(own_loss(self.rate, loss)) + 8.0 * f64::EPSILON * (loss.abs() + self.rate)
    }

    fn p_infinite(&self) -> f64 {
        (self.rate * self.base.p_infinite()).next_up()
    }

    fn beyond_doubles(&self) -> (f64, f64) {
        ((self.rate * self.base.beyond_doubles().0).next_up(), 0.0)
    }

    fn atoms(&self) -> (Vec<f64>, bool) {
        let (atoms, is_all) = self.base.atoms();
        let least = (self.base.q_infinite() > 0.0).then(|| self.mixed(f64::NEG_INFINITY));
        (atoms.into_iter().map(|loss| self.mixed(loss)).chain(least).collect(), is_all)
    }
}
