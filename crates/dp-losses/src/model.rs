//! The interface through which a training engine drives any model: linear, ranker or network.

use core::ops::Range;

/// A named range of the flat parameter vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterBlock {
    /// Its name, e.g. `weights`.
    pub name: String,
    /// Its position in the flat vector.
    pub range: Range<usize>,
}

/// A model with one flat parameter vector whose data gradient is a sum over examples: a linear model, a ranker (an example is one
/// query's list), a network.
///
/// For each microbatch the engine calls [`forward`](Self::forward), then, as needed, [`losses`](Self::losses),
/// [`backward`](Self::backward), [`squared_norms`](Self::squared_norms), [`add_weighted`](Self::add_weighted), all with the same
/// batch and buffers. Clipping, noise, update rule, averaging and regularisation use only the flat vector. No method can fail:
/// shapes are fixed when model and batch are created. A model is public and shared by threads.
///
/// # Laws
/// Checked for every model by `laws::model_laws` (feature `laws`):
/// 1. `losses` of a batch equal those of its one-example batches;
/// 2. `add_weighted` with all coefficients 1 equals the sum over one-example batches;
/// 3. `squared_norms` equals the squared norm, per block, of `add_weighted` of that one example;
/// 4. `add_weighted` is the gradient of the summed losses (central differences, f64);
/// 5. it is linear in the coefficients, and a coefficient 0 adds exactly nothing even if that example contains NaN;
/// 6. no result depends on earlier contents of the pass buffers;
/// 7. any split into microbatches gives the same sum up to rounding;
/// 8. `squared_norms` falls short of law 3, for each block, by at most `norm_roundings` plus two unit roundoffs, relatively
///    (`laws::norm_laws`, for `f32` and `f64`);
/// 9. `add_weighted_in_double` satisfies laws 2 and 5 up to the rounding of double precision;
/// 10. loss, squared norms and gradient of an example have the same bits whatever other examples are in the batch
///     (`laws::companion_laws`, for `f32` and `f64`): with the coefficients of all others 0, sums have the bits of its own.
///
/// # Privacy
/// A clipped sum relies on laws 2, 3, 5 and 8 to 10: with `coefficients[i, k] = min(1, C / norm)` computed from `squared_norms`, no
/// example changes block `k` of the sum by more than `C`, up to the rounding of that sum. A line search on sums of clamped losses
/// relies on laws 1 and 10.
///
/// # Shapes
/// A batch of `n` examples: `out` of `losses` holds `n` numbers, `out` of `squared_norms` and `coefficients` hold `n x blocks`
/// numbers, example by example; `parameters` and `sum` are the flat vector.
pub trait Model<F>: Sync {
    /// Borrowed examples of one microbatch.
    type Batch<'a>: Copy;
    /// Reusable buffers for one microbatch, allocated once.
    type Pass;

    /// Returns names and ranges of the parameter blocks, in order, covering the flat vector.
    fn blocks(&self) -> &[ParameterBlock];

    /// Returns the length of the flat parameter vector.
    fn parameters(&self) -> usize {
        self.blocks().last().map_or(0, |block| block.range.end)
    }

    /// Allocates buffers for microbatches of up to `microbatch` examples (a larger one allocates again).
    fn pass(&self, microbatch: usize) -> Self::Pass;

    /// Computes the predictions for the batch into the buffers.
    fn forward(&self, parameters: &[F], batch: Self::Batch<'_>, pass: &mut Self::Pass);

    /// Writes one loss per example, after `forward`; an invalid example has loss 0.
    fn losses(&self, batch: Self::Batch<'_>, pass: &Self::Pass, out: &mut [F]);

    /// Computes gradients of the *sum* of losses with respect to the pre-activations, after `forward`.
    fn backward(&self, parameters: &[F], batch: Self::Batch<'_>, pass: &mut Self::Pass);

    /// Writes the squared norm of each example's gradient for each block, `examples x blocks`, after `backward`.
    fn squared_norms(&self, batch: Self::Batch<'_>, pass: &mut Self::Pass, out: &mut [F]);

    /// Returns the number of unit roundoffs of `F` by which the [`squared_norms`](Self::squared_norms) of one example may be too
    /// small, each relatively. A sum of as many squares as there are parameters, in any order, needs that
    /// many; norms computed from factors need far fewer. Two more, for two final products, need not be counted.
    ///
    /// The slack of clipped gradients for rounding grows with this number.
    fn norm_roundings(&self) -> f64 {
        self.parameters() as f64
    }

    /// Computes `sum[block k] += Σ_i coefficients[i, k] · gradient_i[block k]`, after `backward`.
    fn add_weighted(&self, batch: Self::Batch<'_>, pass: &mut Self::Pass, coefficients: &[F], sum: &mut [F]);

    /// As [`add_weighted`](Self::add_weighted), into a sum in double precision.
    ///
    /// # Privacy
    /// The contribution of an example is computed only from the example and the parameters. Its norm is at most `1 + υ` times
    /// `coefficient · norm` with `υ` the unit roundoff of `F`, and each of its coordinates is added with at most one more product
    /// and one addition, rounded to double precision.
    fn add_weighted_in_double(
        &self,
        batch: Self::Batch<'_>,
        pass: &mut Self::Pass,
        coefficients: &[F],
        sum: &mut [f64],
    );
}

/// A model whose batches are chosen from samples of type `S` by their positions.
pub trait ChoosesFrom<F, S: ?Sized>: Model<F> {
    /// Returns the samples at `positions`, in this order, as a batch. All positions are below the number of samples.
    fn choose<'a>(&self, samples: &'a S, positions: &'a [u32]) -> Self::Batch<'a>;
}
