//! Weighted sums of the outer products of rows with themselves, over all rows or estimated from a sample of them.
//!
//! # Formula
//! A sample of `k` of `n` rows is drawn with sizes `s_i = Σ_c |w_ci|`, `S = Σ s_i`: the sum of sizes is cut into `k` equal strata
//! and row `i` counts as often as a point `(j + u_j) S/k`, j = 0, 1, ..., lies between `s_1 + ... + s_{i-1}` and `s_1 + ... + s_i`. A
//! row that counts `m` times has weights `m (S/k) w_ci / s_i`, and the sum over the sample estimates that over all rows. Rows far from
//! the boundary of two classes have almost no weight and are hardly ever drawn: at equal cost, the estimate is several times as
//! accurate as from equally likely rows. The `u_j` in `[0, 1)` are pseudo-random and the same for every batch, so that the sample
//! does not follow a period of the rows.
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

/// One row in `length / STORED` is drawn, and one sparse row in `length / STORED_IN_SPARSE`: a scattered product takes several times
/// as long.
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
    /// Fills a sample up, so that its number of rows does not depend on the weights.
    fn nothing() -> Self {
        Self { position: usize::MAX, size: F::one(), stands_for: F::zero() }
    }

    fn is_nothing(&self) -> bool {
        self.position == usize::MAX
    }

    /// Returns its weight in the estimate.
    #[inline(always)]
    fn weight(&self, weights: &[F]) -> F {
        if self.is_nothing() { F::zero() } else { weights[self.position] / self.size * self.stands_for }
    }
}

/// Returns `u_j`, from the mixing function of SplitMix64.
pub(super) fn place(j: u64) -> f64 {
    let mut hash = (j + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((hash ^ (hash >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns all rows that have weight, or a sample of `n / stride`, or slightly fewer if some count several times; `None` if the sizes
/// have no finite sum.
fn draw<F: Real>(weights: &[F], n: usize, stride: usize) -> Option<Vec<Drawn<F>>> {
    let size = |i: usize| weights[i..].iter().step_by(n).fold(F::zero(), |sum, weight| sum + weight.abs());
    if stride <= 1 {
        let one = F::one();
        let all = (0..n).filter(|i| size(*i) != F::zero());
        return Some(all.map(|position| Drawn { position, size: one, stands_for: one }).collect());
    }
    let k = n / stride;
    let total = (0..n).fold(F::zero(), |sum, i| sum + size(i));
    let step = total / convert(k as f64);
    if !step.is_finite() {
        return None;
    }
    let mut drawn = Vec::with_capacity(k);
    let point = |j: usize| step * convert(j as f64 + place(j as u64));
    let (mut sum, mut j) = (F::zero(), 0);
    for position in 0..n {
        let size = size(position);
        sum += size;
        let first = j;
        while j < k && size > F::zero() && point(j) <= sum {
            j += 1;
        }
        if j > first {
            drawn.push(Drawn { position, size, stands_for: step * convert((j - first) as f64) });
        }
    }
    Some(drawn)
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
    let nothing = vec![F::zero(); dim];
    for drawn in drawn.chunks(PANEL) {
        rows.clear();
        for (place, drawn) in drawn.iter().enumerate() {
            let row = if drawn.is_nothing() {
                &nothing[..]
            } else {
                &values[drawn.position * dim..(drawn.position + 1) * dim]
            };
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
    /// is returned: the lower triangle, row by row; what is above it has no meaning. Without a finite sum of the weights, the first
    /// entry of each matrix is NaN. The cost is that of a few gradients: `s²/2` products for `s` stored numbers, while a gradient costs
    /// `2s`; for dense rows it does not depend on the weights. The products of sparse rows are scattered.
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
        let of_matrix = rows.dim() * rows.dim();
        let Some(mut drawn) = draw(weights, rows.len(), stride) else {
            matrices.iter_mut().step_by(of_matrix.max(1)).for_each(|first| *first = convert(f64::NAN));
            return 0;
        };
        let counted = if stride <= 1 { rows.len() } else { drawn.len() };
        if let Rows::Dense { .. } = rows {
            drawn.resize(rows.len() / stride, Drawn::nothing());
        }
        self.arch.dispatch(Squares { rows, weights, drawn: &drawn, matrices });
        counted
    }
}
