//! Bounds at real orders from bounds at integer orders, and the positive sums in them.

use crate::logspace::log_one_plus_exp;

/// Returns the bound at `order >= 1` from bounds at integer orders of at least 2.
///
/// `(a - 1) D_a` is convex in the order `a` (a supremum of cumulant functions) and 0 at `a = 1`. So the chord of *bounds* at the
/// adjacent integers bounds it between them, whether or not the bounds themselves are convex. `D_a` does not decrease with the
/// order.
pub(super) fn read(order: f64, bound: impl Fn(f64) -> f64) -> f64 {
    if order <= 2.0 {
        return bound(2.0);
    }
    let (below, above) = (order.floor(), order.ceil());
    let at_above = bound(above);
    if below == above {
        return at_above;
    }
    let (low, high) = ((below - 1.0) * bound(below), (above - 1.0) * at_above);
    let chord = (low + (high - low) * (order - below)) / (order - 1.0) * (1.0 + 8.0 * f64::EPSILON);
    // NaN, from an infinite bound, fails the comparison.
    if chord < at_above { chord } else { at_above }
}

/// A sum of positive terms given by their logarithms, with a bound on its rounding.
#[derive(Debug, Clone, Copy)]
pub(super) struct PositiveSum {
    total: f64,
    /// Each term times the sum of the absolute values of the parts of its logarithm.
    rounding: f64,
    reference: f64,
    terms: f64,
}

impl PositiveSum {
    pub(super) fn new() -> Self {
        Self { total: 0.0, rounding: 0.0, reference: f64::NEG_INFINITY, terms: 0.0 }
    }

    /// Adds `e^log`, where `size` bounds the absolute values of the parts of `log`.
    pub(super) fn add(&mut self, log: f64, size: f64) {
        if log == f64::NEG_INFINITY {
            return;
        }
        if !(log - self.reference < 500.0) {
            let shrink = (self.reference - log).exp();
            self.total *= shrink;
            self.rounding *= shrink;
            self.reference = log;
        }
        let term = (log - self.reference).exp();
        self.total += term;
        self.rounding += term * size;
        self.terms += 1.0;
    }

    /// Returns the logarithm of the sum, rounded up.
    pub(super) fn log(&self) -> f64 {
        if self.total == 0.0 {
            return f64::NEG_INFINITY;
        }
        let relative = f64::EPSILON * (4.0 * self.rounding / self.total + self.terms + 8.0);
        let log = self.reference + self.total.ln() + relative;
        if log.is_nan() { f64::INFINITY } else { log }
    }

    /// Returns `ln(1 + sum)/(order - 1)`, rounded up.
    pub(super) fn divergence(&self, order: f64) -> f64 {
        let log = self.log();
        if log.is_infinite() {
            return log.max(0.0);
        }
        let relative = f64::EPSILON * (8.0 + 2.0 * log.abs() * (-log.max(0.0)).exp());
        log_one_plus_exp(log) / (order - 1.0) * (1.0 + relative)
    }
}

/// `ln k!` for `k` from 0, on demand.
#[derive(Debug, Clone, Default)]
pub(super) struct LogFactorials(Vec<f64>);

impl LogFactorials {
    /// Computes them up to `k = last`.
    pub(super) fn extend_to(&mut self, last: usize) -> &[f64] {
        for k in self.0.len()..=last {
            self.0.push(libm::lgamma(k as f64 + 1.0));
        }
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chords_are_exact_at_integers_and_above_a_convex_curve() {
        let curve = |order: f64| 0.3 * order;
        assert_eq!(read(7.0, curve), curve(7.0));
        for i in 0..100 {
            let order = 1.0 + 0.13 * f64::from(i);
            assert!(read(order, curve) >= curve(order), "{order}");
        }
        assert!(read(2.5, |order| if order > 2.0 { f64::INFINITY } else { 1.0 }) == f64::INFINITY);
    }

    #[test]
    fn sums_of_any_size() {
        for scale in [-5000.0, -30.0, 0.0, 700.0, 1e6] {
            let mut sum = PositiveSum::new();
            for term in [-900.0, 0.0, 2f64.ln(), 3f64.ln()] {
                sum.add(scale + term, scale.abs());
            }
            assert!((sum.log() - scale - 6f64.ln()).abs() < 1e-14 * (1.0 + scale.abs() * 10.0), "{scale}");
            assert!(sum.log() >= scale + 6f64.ln() * (1.0 - 1e-15));
        }
        assert_eq!(PositiveSum::new().divergence(2.0), 0.0);
        let mut sum = PositiveSum::new();
        sum.add(f64::INFINITY, 1.0);
        assert_eq!(sum.divergence(2.0), f64::INFINITY);
    }
}
