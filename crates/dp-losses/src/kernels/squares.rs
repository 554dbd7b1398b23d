//! Weighted sums of the outer products of rows with themselves, over all rows or estimated from a sample of them.
//!
//! # Formula
//! A sample of `k` of `n` rows is drawn systematically, with sizes `s_i = Σ_c |w_ci|`: row `i` counts as often as a multiple
//! `(j - 1/2) S/k`, `S = Σ s_i`, lies between `s_1 + ... + s_{i-1}` and `s_1 + ... + s_i`. A row that counts `m` times has weights
//! `m (S/k) w_ci / s_i`, and the sum over the sample estimates that over all rows. Rows far from the boundary of two classes have
//! almost no weight and are hardly ever drawn: at equal cost, the estimate is several times as accurate as from equally likely rows.
//!
//! # References
//! Madow 1949, "On the theory of systematic sampling, II", for sampling with probability proportional to size.

use dp_data::Rows;
use nalgebra::convert;
use pulp::{Simd, WithSimd};

use super::sparse::Compressed;
use super::{Kernels, class_tiles};
use crate::real::Real;

/// Number of sampled dense rows that are added together.
const PANEL: usize = 64;

/// Numbers in a row for each row that stands for one drawn, dense and sparse: a scattered product takes several times as long.
const STORED: usize = 16;
const STORED_IN_SPARSE: usize = 4;

/// Least number of rows of a batch that are drawn.
const LEAST_ROWS: usize = 64;

/// A row of a sample.
#[derive(Clone, Copy)]
struct Drawn<F> {
    position: usize,
    /// The size of the row, and what it stands for in the sum of all sizes.
    size: F,
    stands_for: F,
}

impl<F: Real> Drawn<F> {
    /// Returns its weight in the estimate.
    #[inline(always)]
    fn weight(&self, weights: &[F]) -> F {
        weights[self.position] / self.size * self.stands_for
    }
}

/// Returns all rows, or a sample of `n / stride`, or slightly fewer if some count several times.
fn draw<F: Real>(weights: &[F], n: usize, stride: usize) -> Vec<Drawn<F>> {
    let one = F::one();
    if stride <= 1 {
        return (0..n).map(|position| Drawn { position, size: one, stands_for: one }).collect();
    }
    let size = |i: usize| weights[i..].iter().step_by(n).fold(F::zero(), |sum, weight| sum + weight.abs());
    let total = (0..n).fold(F::zero(), |sum, i| sum + size(i));
    let step = total / convert((n / stride) as f64);
    let mut drawn = Vec::with_capacity(n / stride);
    if !(step > F::zero() && step.is_finite()) {
        return drawn;
    }
    let (mut sum, mut next) = (F::zero(), step * convert(0.5));
    for position in 0..n {
        let size = size(position);
        sum += size;
        let mut stands_for = F::zero();
        while next <= sum {
            next += step;
            stands_for += step;
        }
        if stands_for > F::zero() {
            drawn.push(Drawn { position, size, stands_for });
        }
    }
    drawn
}

/// Computes `matrix[c] += Σ_i weights[c, i] x_i x_iᵀ` for every class, over the rows that were drawn.
struct Squares<'a, F> {
    rows: Rows<'a, F>,
    weights: &'a [F],
    drawn: &'a [Drawn<F>],
    matrices: &'a mut [F],
}

impl<F: Real> WithSimd for Squares<'_, F> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, weights, drawn, matrices } = self;
        let (n, dim) = (rows.len(), rows.dim());
        if n == 0 || dim == 0 {
            return;
        }
        match rows {
            Rows::Dense { values, .. } => dense(simd, (values, dim), weights, drawn, matrices),
            Rows::Sparse { offsets, indices, values, .. } => {
                for (weights, matrix) in weights.chunks_exact(n).zip(matrices.chunks_exact_mut(dim * dim)) {
                    let mut drawn = drawn.iter().peekable();
                    for (i, (columns, row)) in (Compressed { offsets, indices, values }).rows().enumerate() {
                        if let Some(drawn) = drawn.next_if(|drawn| drawn.position == i) {
                            add_sparse_row(columns, row, drawn.weight(weights), dim, matrix);
                        }
                    }
                }
            }
        }
    }
}

/// Adds the squares of the drawn rows.
///
/// A matrix is a sum of outer products: of the columns of some rows, weighted, with these rows.
#[inline(always)]
fn dense<S: Simd, F: Real>(
    simd: S,
    (values, dim): (&[F], usize),
    weights: &[F],
    drawn: &[Drawn<F>],
    matrices: &mut [F],
) {
    let n = values.len() / dim;
    let (mut rows, mut columns, mut weighted) =
        (Vec::new(), vec![F::zero(); PANEL * dim], vec![F::zero(); PANEL * dim]);
    for drawn in drawn.chunks(PANEL) {
        rows.clear();
        for (place, drawn) in drawn.iter().enumerate() {
            let row = &values[drawn.position * dim..(drawn.position + 1) * dim];
            for (column, &x) in columns.chunks_exact_mut(PANEL).zip(row) {
                column[place] = x;
            }
            rows.extend_from_slice(row);
        }
        for (weights, matrix) in weights.chunks_exact(n).zip(matrices.chunks_exact_mut(dim * dim)) {
            let mut of_panel = [F::zero(); PANEL];
            for (weight, drawn) in of_panel.iter_mut().zip(drawn) {
                *weight = drawn.weight(weights);
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
    /// Adds `Σ_i weights[c, i] x_i x_iᵀ` to matrix `c` for every class, or an estimate of it from a sample of the rows, whose size
    /// is returned: the lower triangle, row by row; what is above it has no meaning. The cost is that of a few gradients: `s²/2`
    /// products for `s` stored numbers, while a gradient costs `2s`. The products of sparse rows are scattered.
    pub(crate) fn add_squares<F: Real>(&self, rows: Rows<'_, F>, weights: &[F], matrices: &mut [F]) -> usize {
        let stride = match rows {
            Rows::Dense { dim, .. } => dim / STORED,
            // Not the number of all values: these rows may be part of a block.
            Rows::Sparse { offsets, .. } => {
                let stored = offsets.last().zip(offsets.first()).map_or(0, |(end, start)| end - start);
                stored / (rows.len().max(1) * STORED_IN_SPARSE)
            }
        };
        let stride = stride.clamp(1, (rows.len() / LEAST_ROWS).max(1));
        let drawn = draw(weights, rows.len(), stride);
        self.arch.dispatch(Squares { rows, weights, drawn: &drawn, matrices });
        drawn.len()
    }
}
