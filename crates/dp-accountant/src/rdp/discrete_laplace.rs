//! The discrete Laplace law.

/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _scale: f64, _sensitivity: u64) -> f64 {
    f64::INFINITY
}
