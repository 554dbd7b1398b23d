//! Shuffled answers of local randomisers.

/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _epsilon: f64, _records: u64) -> f64 {
    f64::INFINITY
}
