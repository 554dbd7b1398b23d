//! Objective perturbation.

use crate::event::MarginLoss;
/// An upper bound of the Renyi divergence of order `order >= 1`.
pub(crate) fn rdp(_order: f64, _std_dev: f64, _regularization: f64, _loss: MarginLoss) -> f64 {
    f64::INFINITY
}
