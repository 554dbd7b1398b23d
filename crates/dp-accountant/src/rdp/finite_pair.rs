//! A pair of laws on finitely many outcomes.

use crate::finite_pair::FinitePair;
/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _pair: &FinitePair) -> f64 {
    f64::INFINITY
}
