//! The one boundary through which a training engine drives any model: linear, ranker or network.

use core::ops::Range;

/// A named range of the flat parameter vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterBlock {
    /// Its name, e.g. `weights`.
    pub name: String,
    /// Where it lies in the flat vector.
    pub range: Range<usize>,
}

/// Something with one flat parameter vector whose data gradient is a sum over examples.
///
/// Per microbatch the engine calls `forward`, then, as needed, `losses`, `backward`, `squared_norms`, `add_weighted`.
/// Clipping, noise, update rule, averaging and regularisation see only the flat vector.
///
/// # Laws
/// Checked for every model by `model_laws`:
/// 1. `losses` of a batch equal those of its one-example batches;
/// 2. `add_weighted` with all coefficients 1 equals the sum over one-example batches;
/// 3. `squared_norms` equals the squared norm, per block, of `add_weighted` of that one example;
/// 4. `add_weighted` is the gradient of the summed losses (central differences, f64);
/// 5. it is linear in the coefficients, and a coefficient 0 adds exactly nothing even if that example holds NaN;
/// 6. nothing depends on what was in the pass buffers before;
/// 7. any split into microbatches gives the same sum up to rounding.
pub trait Model<F> {
    /// Borrowed examples of one microbatch.
    type Batch<'a>: Copy;
    /// Reusable buffers for one microbatch, allocated once.
    type Pass;

    /// Names and ranges of the parameter blocks, in order, covering the flat vector.
    fn blocks(&self) -> &[ParameterBlock];

    /// Length of the flat parameter vector.
    fn parameters(&self) -> usize {
        self.blocks().last().map_or(0, |block| block.range.end)
    }

    /// Buffers for microbatches of at most `microbatch` examples.
    fn pass(&self, microbatch: usize) -> Self::Pass;

    /// Predictions for the batch into the buffers.
    fn forward(&self, parameters: &[F], batch: Self::Batch<'_>, pass: &mut Self::Pass);

    /// One loss per example, after `forward`.
    fn losses(&self, batch: Self::Batch<'_>, pass: &Self::Pass, out: &mut [F]);

    /// Gradients of the *sum* of losses with respect to the pre-activations, after `forward`.
    fn backward(&self, parameters: &[F], batch: Self::Batch<'_>, pass: &mut Self::Pass);

    /// Squared norm of each example's gradient for each block, `examples x blocks`, after `backward`.
    fn squared_norms(&self, batch: Self::Batch<'_>, pass: &mut Self::Pass, out: &mut [F]);

    /// `sum[block k] += Σ_i coefficients[i, k] · gradient_i[block k]`, after `backward`. `coefficients` holds
    /// `examples x blocks` numbers.
    fn add_weighted(&self, batch: Self::Batch<'_>, pass: &mut Self::Pass, coefficients: &[F], sum: &mut [F]);
}
