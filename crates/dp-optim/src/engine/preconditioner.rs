//! The curvature of a risk at one point, as a preconditioner.

mod cholesky;

use dp_data::Rows;
use dp_losses::{Curved, Model};
use nalgebra::{Cholesky, DMatrix, DVectorViewMut, Dyn, RealField, convert};

/// Number of features up to which a factorisation costs little, whatever the rows.
pub(super) const FEW_FEATURES: usize = 512;
/// Maximum number of entries of the matrices of more features: 128 MiB.
const MOST_ENTRIES: usize = 1 << 24;
/// Minimum number of records for each of more features. A sixteenth of the records are sampled (two for each feature), so that a
/// curvature takes the products of `d/64` gradients, in matrix products. It pays where the minimiser is hard to find: with fewer
/// records the factorisation takes longer than the gradients that it saves.
const RECORDS_PER_FEATURE: u64 = 32;

/// A factorised curvature: one block for each of a model's [blocks](Curved::features).
pub(super) struct Preconditioner<F: RealField + Copy> {
    blocks: Vec<Cholesky<F, Dyn>>,
    features: usize,
}

impl<F: RealField + Copy> Preconditioner<F> {
    /// Returns whether curvatures pay. Few features: a factorisation, `d³/3` products for each block, costs no more than a
    /// gradient of `n` records. Depends on public numbers only.
    pub(super) fn pays(parameters: usize, features: usize, n: u64) -> bool {
        let d = features as u64;
        if features <= FEW_FEATURES {
            return d.pow(2) <= n.saturating_mul(12);
        }
        parameters.saturating_mul(features) <= MOST_ENTRIES && d.saturating_mul(RECORDS_PER_FEATURE) <= n
    }

    /// Returns whether they do if the rows are these: a gradient of compressed rows has far fewer than `2d` products a record.
    pub(super) fn pays_for(rows: &Rows<'_, F>, features: usize) -> bool {
        features <= FEW_FEATURES || matches!(rows, Rows::Dense { .. })
    }

    pub(super) fn solve(&self, vector: &mut [F]) {
        for (block, part) in self.blocks.iter().zip(vector.chunks_exact_mut(self.features)) {
            block.solve_mut(&mut DVectorViewMut::from_slice(part, self.features));
        }
    }
}

/// Regularisation for features that may occur in no record of the sample: this fraction of a mean record's trace, with the
/// weight of one record.
const UNSEEN: f64 = 0.125;

/// The curvature, accumulated over a sample of the records.
pub(super) struct Sample<F> {
    blocks: Vec<F>,
    records: usize,
    sampled: usize,
}

impl<F: RealField + Copy> Sample<F> {
    pub(super) fn new(parameters: usize, features: usize) -> Self {
        let numbers = parameters.saturating_mul(features);
        let mut blocks = Vec::with_capacity(numbers);
        // Written, and not as `vec!`: the system maps zeroed memory when it is read, and again when it is written.
        blocks.resize(numbers, F::zero());
        Self { blocks, records: 0, sampled: 0 }
    }

    /// Adds a sample of a chunk of `records`.
    pub(super) fn add<M: Curved<F> + Model<F>>(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: M::Batch<'_>,
        records: usize,
        pass: &mut M::Pass,
    ) {
        self.sampled += model.add_curvature(parameters, batch, pass, &mut self.blocks);
        self.records += records;
    }

    /// Adds the curvature of other records.
    pub(super) fn merge(&mut self, other: &Self) {
        self.blocks.iter_mut().zip(&other.blocks).for_each(|(total, &part)| *total += part);
        self.records += other.records;
        self.sampled += other.sampled;
    }

    /// Factorises the curvature of the mean with a regulariser. Returns `None` if, after rounding, it is not positive
    /// definite.
    pub(super) fn factorise(self, features: usize, strong_convexity: f64) -> Option<Preconditioner<F>> {
        let (mean, lambda): (F, F) = (convert(1.0 / self.records.max(1) as f64), convert(strong_convexity));
        let unseen = if self.sampled < self.records { UNSEEN / self.sampled.max(1) as f64 } else { 0.0 };
        let unseen: F = convert(unseen);
        let factorise = |block: &[F]| {
            let mut matrix = DMatrix::from_row_slice(features, features, block) * mean;
            let ridge = lambda + unseen * matrix.trace();
            (0..features).for_each(|j| matrix[(j, j)] += ridge);
            cholesky::of(matrix)
        };
        let blocks =
            self.blocks.chunks_exact((features * features).max(1)).map(factorise).collect::<Option<Vec<_>>>()?;
        Some(Preconditioner { blocks, features })
    }
}

#[cfg(test)]
mod tests {
    use dp_data::Examples;
    use dp_losses::{LinearModel, Squared};

    use super::*;

    /// For least squares the curvature is the moment matrix: one preconditioned gradient step reaches the minimiser.
    #[test]
    fn least_squares_is_solved_in_one_step() {
        let rows = vec![0.5, -0.25, 1.0, 0.5, 0.25, 0.75, -0.5, 1.0];
        let data = Examples::dense(rows, vec![0.3, -0.2, 0.9, 0.1], 2).unwrap();
        let (model, lambda) = (LinearModel::<f64, _>::new(2, Squared), 0.1);
        let mut pass = model.pass(4);
        let mut sample = Sample::new(2, 2);
        sample.add(&model, &[0.0; 2], data.block(), 4, &mut pass);
        let inverse = sample.factorise(2, lambda).unwrap();
        let gradient = |w: &[f64; 2], pass: &mut _| {
            let mut sum = [0.0; 2];
            model.forward(w, data.block(), pass);
            model.backward(w, data.block(), pass);
            model.add_weighted(data.block(), pass, &[0.25; 4], &mut sum);
            [sum[0] + lambda * w[0], sum[1] + lambda * w[1]]
        };
        let mut step = gradient(&[0.0; 2], &mut pass);
        inverse.solve(&mut step);
        let left = gradient(&[-step[0], -step[1]], &mut pass);
        assert!(left.iter().all(|g| g.abs() < 1e-9), "{left:?}");
    }

    #[test]
    fn it_is_for_few_features_and_many_records() {
        let pays = |blocks: usize, features: usize, n: u64| Preconditioner::<f64>::pays(blocks * features, features, n);
        assert!(pays(1, 100, 1000) && !pays(1, 200, 1000));
        assert!(pays(1, 1000, 32_000) && !pays(1, 1000, 31_999));
        assert!(pays(1, 4096, u64::MAX) && !pays(1, 4097, u64::MAX) && !pays(17, 1024, u64::MAX));
    }
}
