//! The other direction: the pair `(Q, P)` for a pair `(P, Q)`, whose loss is `-L`.

use std::sync::Arc;

use super::{Between, DominatingCurve, LossLaw, Tails};

/// The loss law of the reversed pair.
#[derive(Debug)]
pub(crate) struct Reversed(pub(crate) Arc<dyn LossLaw>);

impl LossLaw for Reversed {
    fn tails(&self, loss: f64) -> Tails {
        self.0.tails(-loss).reversed()
    }

    fn between(&self, low: f64, high: f64) -> Option<Between> {
        let Between { p, q, relative_error } = self.0.between(-high, -low)?;
        Some(Between { p: q, q: p, relative_error })
    }

    fn knows_cells(&self) -> bool {
        self.0.knows_cells()
    }

    fn support(&self) -> (f64, f64) {
        let (least, largest) = self.0.support();
        (-largest, -least)
    }

    fn relative_error(&self) -> f64 {
        self.0.relative_error()
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        self.0.relative_error_at(-loss)
    }

    fn steps(&self) -> f64 {
        self.0.steps()
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        self.0.threshold_error(-loss)
    }

    fn threshold(&self, loss: f64) -> (Tails, f64, f64) {
        let (tails, relative_error, threshold_error) = self.0.threshold(-loss);
        (tails.reversed(), relative_error, threshold_error)
    }

    fn p_infinite(&self) -> f64 {
        self.0.q_infinite()
    }

    fn q_infinite(&self) -> f64 {
        self.0.p_infinite()
    }

    fn beyond_doubles(&self) -> (f64, f64) {
        let (p, q) = self.0.beyond_doubles();
        (q, p)
    }

    fn atoms(&self) -> (Vec<f64>, bool) {
        let (atoms, is_all) = self.0.atoms();
        (atoms.into_iter().map(|loss| -loss).collect(), is_all)
    }

    fn is_symmetric(&self) -> bool {
        self.0.is_symmetric()
    }
}

/// The curve of the reversed pair.
///
/// With `F` the curve of `(P, Q)` and `S(l) = F(l) - 1 + e^l`, that of `(Q, P)` is `e^l S(-l)` and its shortfall
/// `e^l F(-l)`, because `sup Q - e^l P = 1 - e^l + e^l sup (P - e^-l Q)`.
#[derive(Debug)]
pub(crate) struct ReversedCurve(pub(crate) Arc<dyn DominatingCurve>);

impl DominatingCurve for ReversedCurve {
    fn delta(&self, loss: f64) -> f64 {
        scaled(loss, self.0.shortfall(-loss))
    }

    fn shortfall(&self, loss: f64) -> f64 {
        scaled(loss, self.0.delta(-loss))
    }

    fn support(&self) -> (f64, f64) {
        let (least, largest) = self.0.support();
        (-largest, -least)
    }

    fn relative_error(&self) -> f64 {
        self.0.relative_error() + 4.0 * f64::EPSILON
    }

    fn is_symmetric(&self) -> bool {
        self.0.is_symmetric()
    }
}

/// Returns `e^loss value`, where zero stays zero however large the exponential.
fn scaled(loss: f64, value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { (loss + value.ln()).exp() }
}
