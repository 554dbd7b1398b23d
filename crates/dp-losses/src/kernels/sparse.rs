//! Inner products and weighted sums of compressed rows. The cost is proportional to the values stored.

use crate::real::Real;

/// Compressed rows, as in [`dp_data::Rows::Sparse`].
#[derive(Clone, Copy)]
pub(super) struct Compressed<'a, F> {
    pub(super) offsets: &'a [usize],
    pub(super) indices: &'a [u32],
    pub(super) values: &'a [F],
}

impl<'a, F> Compressed<'a, F> {
    /// Columns and values of example `i`.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> (&'a [u32], &'a [F]) {
        let range = self.offsets[i]..self.offsets[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }
}

/// One inner product, with four accumulators.
#[inline(always)]
pub(super) fn dot<F: Real>(columns: &[u32], values: &[F], w: &[F]) -> F {
    let mut sums = [F::zero(); 4];
    let (column_blocks, columns_left) = columns.as_chunks::<4>();
    let (value_blocks, values_left) = values.as_chunks::<4>();
    for (columns, values) in column_blocks.iter().zip(value_blocks) {
        for k in 0..4 {
            sums[k] += values[k] * w[columns[k] as usize];
        }
    }
    let mut left = F::zero();
    for (&column, &x) in columns_left.iter().zip(values_left) {
        left += x * w[column as usize];
    }
    ((sums[0] + sums[1]) + (sums[2] + sums[3])) + left
}

/// `out[i] = scale · ⟨w, x_i⟩`.
pub(super) fn predictions<F: Real>(rows: Compressed<'_, F>, scale: F, w: &[F], out: &mut [F]) {
    for (i, prediction) in out.iter_mut().enumerate() {
        let (columns, values) = rows.row(i);
        *prediction = scale * dot(columns, values, w);
    }
}

/// `sum += Σ_i weights[i] · x_i` over the rows whose weight is not 0; keeps `squared_norm = |sum|²` up to date if asked
/// for.
#[inline]
pub(super) fn add_rows<F: Real>(rows: Compressed<'_, F>, weights: &[F], sum: &mut [F], squared_norm: Option<&mut F>) {
    let chosen = weights.iter().enumerate().filter(|(_, weight)| **weight != F::zero());
    match squared_norm {
        Some(squared_norm) => {
            for (i, &weight) in chosen {
                *squared_norm += add_row_tracking_norm(weight, rows.row(i), sum);
            }
        }
        None => {
            for (i, &weight) in chosen {
                let (columns, values) = rows.row(i);
                for (&column, &x) in columns.iter().zip(values) {
                    sum[column as usize] += weight * x;
                }
            }
        }
    }
}

/// `sum += weight · row`; returns the change of `|sum|²`.
///
/// # Formula
/// ```text
/// Σ_j (new_j² - old_j²) = Σ_j (new_j - old_j)(new_j + old_j)      over the columns of the row
/// ```
#[inline(always)]
fn add_row_tracking_norm<F: Real>(weight: F, (columns, values): (&[u32], &[F]), sum: &mut [F]) -> F {
    let mut change = F::zero();
    for (&column, &x) in columns.iter().zip(values) {
        let place = &mut sum[column as usize];
        let (old, new) = (*place, *place + weight * x);
        *place = new;
        change += (new - old) * (new + old);
    }
    change
}
