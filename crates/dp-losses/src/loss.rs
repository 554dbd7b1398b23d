//! Losses of a scalar prediction.

/// A loss `ℓ(prediction, target)` of a linear model's scalar prediction `p = ⟨w, x⟩`.
///
/// The gradient of example `(x, y)` is `derivative(p, y) · x`, so a per-example gradient is never stored: its norm is
/// `|derivative| · |x|` and clipping it is one multiplication. Implementations are branch-free where they can be, so
/// that a loop over a batch vectorises.
///
/// # Examples
/// ```
/// use dp_losses::{Logistic, Loss};
///
/// let loss = Logistic;
/// assert_eq!(loss.derivative(0.0_f64, 1.0), -0.5);
/// assert_eq!(loss.value(-1e308_f64, 1.0), 1e308);
/// ```
pub trait Loss<F>: Copy + Send + Sync {
    /// `ℓ(p, y)`. Finite for every finite prediction where the loss itself is; never NaN for numbers.
    fn value(&self, prediction: F, target: F) -> F;

    /// `∂ℓ/∂p`. Never NaN for numbers, and never above the Lipschitz constant of the loss, rounding included.
    fn derivative(&self, prediction: F, target: F) -> F;

    /// An upper bound of `∂²ℓ/∂p²` over all predictions and targets.
    fn curvature_bound(&self) -> F;
}
