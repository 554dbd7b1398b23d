//! Losses of a scalar prediction.

use crate::kernels::LossKernel;
use crate::real::Real;

/// A loss `ℓ(prediction, target)` of a linear model's scalar prediction `p = ⟨w, x⟩`.
///
/// The gradient of example `(x, y)` is `derivative(p, y) · x`, so a per-example gradient is never stored: its norm is
/// `|derivative| · |x|` and clipping it is one multiplication. Implementations avoid branches where possible, so that a loop over
/// a batch vectorises.
///
/// # Examples
/// ```
/// use dp_losses::{Logistic, Loss};
///
/// let loss = Logistic;
/// assert_eq!(loss.derivative(0.0_f64, 1.0), -0.5);
/// assert_eq!(loss.value(-1e308_f64, 1.0), 1e308);
/// ```
pub trait Loss<F>: Copy + Send + Sync + 'static {
    /// Returns `ℓ(p, y)`: finite for every finite prediction if the loss itself is; never NaN for numbers.
    fn value(&self, prediction: F, target: F) -> F;

    /// Returns `∂ℓ/∂p`: never NaN for numbers, and never above the Lipschitz constant of the loss, including rounding.
    fn derivative(&self, prediction: F, target: F) -> F;

    /// Returns whether the loss depends only on the residual `p - y`: then `derivative(p, y)` is `derivative(p - y, 0)`.
    fn is_of_residual(&self) -> bool {
        false
    }

    /// Returns an upper bound on `∂²ℓ/∂p²` over all predictions and targets.
    fn curvature_bound(&self) -> F;

    /// Runs the kernel of a batch, compiled for this loss.
    #[doc(hidden)]
    fn compute(self, kernel: LossKernel<'_, F>)
    where
        F: Real,
    {
        kernel.compute(self);
    }
}
