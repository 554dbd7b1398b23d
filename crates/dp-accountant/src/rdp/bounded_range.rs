//! A privacy loss of bounded range.

/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _epsilon: f64) -> f64 {
    f64::INFINITY
}
