//! Any mechanism on a Poisson sample.

use crate::leaves::Leaves;
/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _rate: f64, _base: &Leaves) -> f64 {
    f64::INFINITY
}
