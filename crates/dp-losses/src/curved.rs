//! The approximate curvature of a sum of losses for a solver: diagonal blocks of the Hessian.

use crate::model::Model;

/// A model whose parameters are blocks that use the same features: one block for a linear model, one for each class of softmax
/// regression.
///
/// # Formula
/// Block `k` of the Hessian of the summed losses, without the coupling between blocks:
/// ```text
/// H_k = Σ_i h_ik x_i x_iᵀ,     h = ∂²ℓ/∂p²  (linear: [ℓ'(p + δ) - ℓ'(p - δ)] / 2δ, δ = 2^-10;  softmax: p_k (1 - p_k))
/// ```
/// A difference quotient is the mean curvature over `2δ`, so it exists even if the slope has corners. The blocks precondition a
/// solver, whose result is certified by a gradient and does not depend on their accuracy.
pub trait Curved<F>: Model<F> {
    /// Returns the number of features of an example, which is the length of a block's parameters.
    fn features(&self) -> usize;

    /// Adds `H_k` at `parameters` for every block, or an estimate of it from a sample of the batch whose size is returned: lower
    /// triangles of `features x features` matrices, row by row, block by block. Previous contents of the pass do not matter. The
    /// sample of long rows is small, so that the cost is that of a few gradients; examples are drawn with probability proportional to
    /// their curvature.
    ///
    /// # Panics
    /// As [`forward`](Model::forward), and if `blocks` has a different length.
    fn add_curvature(&self, parameters: &[F], batch: Self::Batch<'_>, pass: &mut Self::Pass, blocks: &mut [F])
    -> usize;
}

#[cfg(test)]
mod tests;
