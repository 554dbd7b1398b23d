//! Groups of records.

use crate::leaves::Leaves;
/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _size: u64, _base: &Leaves) -> f64 {
    f64::INFINITY
}
