//! Losses of a scalar prediction.

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

    /// Calls the visitor with the loss as its own type. Code that calls this once per batch runs as fast for a
    /// [`ScalarLoss`](crate::ScalarLoss), which is chosen at run time, as for the loss itself.
    #[inline(always)]
    fn resolve<V: LossVisitor<F>>(self, visitor: V) -> V::Output {
        visitor.visit(self)
    }
}

/// An operation on a loss of one prediction once its type is known: the `match` on the name happens here, outside every loop.
///
/// # Examples
/// ```
/// use dp_losses::{Loss, LossKind, LossVisitor};
///
/// struct DerivativeAtZero;
/// impl LossVisitor<f64> for DerivativeAtZero {
///     type Output = f64;
///     fn visit<L: Loss<f64>>(self, loss: L) -> f64 {
///         loss.derivative(0.0, 1.0)
///     }
/// }
/// assert_eq!(LossKind::Logistic.visit(DerivativeAtZero), Some(-0.5));
/// assert_eq!("softmax:3".parse::<LossKind>()?.visit(DerivativeAtZero), None); // it has three predictions
/// # Ok::<(), dp_losses::Error>(())
/// ```
pub trait LossVisitor<F> {
    /// The result.
    type Output;
    /// Called once with the loss.
    fn visit<L: Loss<F>>(self, loss: L) -> Self::Output;
}
