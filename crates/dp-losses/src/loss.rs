//! Losses of a scalar prediction.

/// A loss `ℓ(prediction, target)` of a linear model's scalar prediction `p = ⟨w, x⟩`.
///
/// The gradient of example `(x, y)` is `derivative(p, y) · x`, so a per-example gradient is never stored.
pub trait Loss<F>: Copy + Send + Sync {
    /// `ℓ(p, y)`. Finite for every finite prediction where the loss itself is.
    fn value(&self, prediction: F, target: F) -> F;
    /// `∂ℓ/∂p`.
    fn derivative(&self, prediction: F, target: F) -> F;
}
