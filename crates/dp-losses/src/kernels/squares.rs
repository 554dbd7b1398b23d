//! Weighted sums of the outer products of rows with themselves.

use dp_data::Rows;
use pulp::{Simd, WithSimd};

use super::Kernels;
use super::sparse::Compressed;
use crate::real::Real;

/// Number of dense rows processed together.
const ROWS: usize = 4;

/// Least number of rows of a batch that are used.
const LEAST_ROWS: usize = 64;

/// Computes `matrix += Σ_i weights[i] x_i x_iᵀ`, the lower triangle, over one of `stride` groups of rows; returns the number of
/// rows.
struct Squares<'a, F> {
    rows: Rows<'a, F>,
    weights: &'a [F],
    stride: usize,
    matrix: &'a mut [F],
}

impl<F: Real> WithSimd for Squares<'_, F> {
    type Output = usize;
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        let Self { rows, weights, stride, matrix } = self;
        let (dim, mut counted) = (rows.dim(), 0);
        if dim == 0 {
            return counted;
        }
        match rows {
            Rows::Dense { values, .. } => {
                // Rows side by side, so that an entry of the matrix is loaded once for all of them.
                let (groups, rows_left) = values.split_at(values.len() / (ROWS * dim) * (ROWS * dim));
                let (weights, weights_left) = weights.split_at(groups.len() / dim);
                let groups = groups.chunks_exact(ROWS * dim).zip(weights.as_chunks::<ROWS>().0);
                for (rows, weights) in groups.step_by(stride) {
                    counted += ROWS;
                    let rows: [&[F]; ROWS] = core::array::from_fn(|r| &rows[r * dim..(r + 1) * dim]);
                    for (j, line) in matrix.chunks_exact_mut(dim).enumerate() {
                        let factors: [F; ROWS] = core::array::from_fn(|r| weights[r] * rows[r][j]);
                        let parts = rows.map(|row| &row[..=j]);
                        for (k, place) in line[..=j].iter_mut().enumerate() {
                            let mut sum = *place;
                            for r in 0..ROWS {
                                sum += factors[r] * parts[r][k];
                            }
                            *place = sum;
                        }
                    }
                }
                for (row, &weight) in rows_left.chunks_exact(dim).zip(weights_left) {
                    counted += 1;
                    for (j, line) in matrix.chunks_exact_mut(dim).enumerate() {
                        let factor = weight * row[j];
                        line[..=j].iter_mut().zip(row).for_each(|(place, &x)| *place += factor * x);
                    }
                }
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                let rows = Compressed { offsets, indices, values }.rows();
                for ((columns, row), &weight) in rows.zip(weights).step_by(stride) {
                    counted += 1;
                    for (k, (&column, &x)) in columns.iter().zip(row).enumerate() {
                        let factor = weight * x;
                        for (&other, &y) in columns[..=k].iter().zip(row) {
                            let (line, place) = if other <= column { (column, other) } else { (other, column) };
                            matrix[line as usize * dim + place as usize] += factor * y;
                        }
                    }
                }
            }
        }
        counted
    }
}

impl Kernels {
    /// Adds `Σ_i weights[i] x_i x_iᵀ` to `matrix` over a sample of the rows, whose size is returned: the lower triangle, row by
    /// row. The cost is that of a few gradients: `s²/2` products for `s` stored numbers, while a gradient costs `2s`. The
    /// products of sparse rows are scattered.
    pub(crate) fn add_squares<F: Real>(&self, rows: Rows<'_, F>, weights: &[F], matrix: &mut [F]) -> usize {
        let stored = match rows {
            Rows::Dense { dim, .. } => dim,
            Rows::Sparse { values, .. } => values.len() / rows.len().max(1),
        };
        let stride = (stored / 16).clamp(1, (rows.len() / LEAST_ROWS).max(1));
        self.arch.dispatch(Squares { rows, weights, stride, matrix })
    }
}
