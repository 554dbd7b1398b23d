//! k-ary randomised response.

/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _buckets: u64, _noise: f64) -> f64 {
    f64::INFINITY
}
