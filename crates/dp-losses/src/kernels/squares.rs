//! Weighted sums of the outer products of rows with themselves.

use dp_data::Rows;
use pulp::{Simd, WithSimd};

use super::sparse::Compressed;
use super::{Kernels, class_tiles};
use crate::real::Real;

/// Number of neighbouring rows in a sample of dense rows.
const NEIGHBOURS: usize = 4;

/// Number of sampled dense rows that are added together.
const PANEL: usize = 64;

/// Least number of rows of a batch that are used.
const LEAST_ROWS: usize = 64;

/// Computes `matrix[c] += Σ_i weights[c, i] x_i x_iᵀ` for every class, over one of `stride` groups of rows; returns the number of
/// rows.
struct Squares<'a, F> {
    rows: Rows<'a, F>,
    weights: &'a [F],
    stride: usize,
    matrices: &'a mut [F],
}

impl<F: Real> WithSimd for Squares<'_, F> {
    type Output = usize;
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> usize {
        let Self { rows, weights, stride, matrices } = self;
        let (n, dim) = (rows.len(), rows.dim());
        if n == 0 || dim == 0 {
            return 0;
        }
        match rows {
            Rows::Dense { values, .. } => {
                let sampled = (0..n).filter(|i| (i / NEIGHBOURS).is_multiple_of(stride));
                dense(simd, (values, dim), weights, sampled, matrices)
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                for (weights, matrix) in weights.chunks_exact(n).zip(matrices.chunks_exact_mut(dim * dim)) {
                    let rows = Compressed { offsets, indices, values }.rows();
                    for ((columns, row), &weight) in rows.zip(weights).step_by(stride) {
                        add_sparse_row(columns, row, weight, dim, matrix);
                    }
                }
                n.div_ceil(stride)
            }
        }
    }
}

/// Adds the squares of the sampled rows, whose number is returned.
///
/// A matrix is a sum of outer products: of the columns of some rows, weighted, with these rows.
#[inline(always)]
fn dense<S: Simd, F: Real>(
    simd: S,
    (values, dim): (&[F], usize),
    weights: &[F],
    mut sampled: impl Iterator<Item = usize>,
    matrices: &mut [F],
) -> usize {
    let (n, mut counted) = (values.len() / dim, 0);
    let (mut rows, mut columns, mut weighted) =
        (Vec::new(), vec![F::zero(); PANEL * dim], vec![F::zero(); PANEL * dim]);
    let mut places = Vec::with_capacity(PANEL);
    loop {
        rows.clear();
        places.clear();
        for i in sampled.by_ref().take(PANEL) {
            let row = &values[i * dim..(i + 1) * dim];
            for (column, &x) in columns.chunks_exact_mut(PANEL).zip(row) {
                column[places.len()] = x;
            }
            rows.extend_from_slice(row);
            places.push(i);
        }
        if places.is_empty() {
            return counted;
        }
        counted += places.len();
        for (weights, matrix) in weights.chunks_exact(n).zip(matrices.chunks_exact_mut(dim * dim)) {
            let mut of_panel = [F::zero(); PANEL];
            for (weight, &i) in of_panel.iter_mut().zip(&places) {
                *weight = weights[i];
            }
            for (weighted, column) in weighted.as_chunks_mut::<PANEL>().0.iter_mut().zip(columns.as_chunks::<PANEL>().0)
            {
                for i in 0..PANEL {
                    weighted[i] = of_panel[i] * column[i];
                }
            }
            if dim >= F::lanes::<S>() {
                class_tiles::add_lower_triangle(simd, (&rows, dim), (&weighted, PANEL), matrix);
                continue;
            }
            for (weighted, line) in weighted.chunks_exact(PANEL).zip(matrix.chunks_exact_mut(dim)) {
                for (row, &weight) in rows.chunks_exact(dim).zip(weighted) {
                    for (place, &x) in line.iter_mut().zip(row) {
                        *place += weight * x;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn add_sparse_row<F: Real>(columns: &[u32], row: &[F], weight: F, dim: usize, matrix: &mut [F]) {
    for (k, (&column, &x)) in columns.iter().zip(row).enumerate() {
        let factor = weight * x;
        for (&other, &y) in columns[..=k].iter().zip(row) {
            let (line, place) = if other <= column { (column, other) } else { (other, column) };
            matrix[line as usize * dim + place as usize] += factor * y;
        }
    }
}

impl Kernels {
    /// Adds `Σ_i weights[c, i] x_i x_iᵀ` to matrix `c` for every class, over a sample of the rows, whose size is returned: the
    /// lower triangle, row by row; what is above it has no meaning. The cost is that of a few gradients: `s²/2` products for `s`
    /// stored numbers, while a gradient costs `2s`. The products of sparse rows are scattered.
    pub(crate) fn add_squares<F: Real>(&self, rows: Rows<'_, F>, weights: &[F], matrices: &mut [F]) -> usize {
        let stored = match rows {
            Rows::Dense { dim, .. } => dim,
            // Not the number of all values: these rows may be part of a block.
            Rows::Sparse { offsets, .. } => {
                let stored = offsets.last().zip(offsets.first()).map_or(0, |(end, start)| end - start);
                stored / rows.len().max(1)
            }
        };
        let stride = (stored / 16).clamp(1, (rows.len() / LEAST_ROWS).max(1));
        self.arch.dispatch(Squares { rows, weights, stride, matrices })
    }
}
