//! The curvature of a sum of losses, as a solver needs it: blocks of the Hessian, roughly.

use crate::model::Model;

/// A model whose parameters are blocks that each meet the same features: one for a linear model, one for each class of
/// softmax regression.
///
/// # Formula
/// Block `k` of the Hessian of the summed losses, without what couples blocks:
/// ```text
/// H_k = Σ_i h_ik x_i x_iᵀ,     h = ∂²ℓ/∂p²  (linear: [ℓ'(p + δ) - ℓ'(p - δ)] / 2δ, δ = 2^-10;  softmax: p_k (1 - p_k))
/// ```
/// A difference quotient is the mean curvature over `2δ`, and so exists where the slope has corners. The blocks precondition
/// a solver; its result is certified by a gradient, whatever they are.
pub trait Curved<F>: Model<F> {
    /// Features of an example: the length of a block's parameters.
    fn features(&self) -> usize;

    /// Adds `H_k` at `parameters` for every block, over a sample of the batch whose size is returned: lower triangles of
    /// `features x features` matrices, row after row, block after block. What the pass held before does not matter. A sample
    /// of long rows is small, so that the cost is that of a few gradients.
    ///
    /// # Panics
    /// As [`forward`](Model::forward), and if `blocks` has another length.
    fn add_curvature(&self, parameters: &[F], batch: Self::Batch<'_>, pass: &mut Self::Pass, blocks: &mut [F])
    -> usize;
}

#[cfg(test)]
mod tests;
