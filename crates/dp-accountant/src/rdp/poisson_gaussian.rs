//! Gaussian noise on a Poisson sample.

/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _rate: f64, _mu: f64) -> f64 {
    f64::INFINITY
}
