//! Inner products and weighted sums of compressed rows. The cost is proportional to the stored values.
//!
//! Every access to a parameter is checked. Loops without the checks, over columns compared with the number of parameters
//! beforehand, are not measurably faster. Two changes are: processing four stored values at a time, and splitting rows off
//! one after another instead of finding each by its offsets.

use crate::real::Real;

/// Compressed rows, as in [`dp_data::Rows::Sparse`].
#[derive(Clone, Copy)]
pub(super) struct Compressed<'a, F> {
    pub(super) offsets: &'a [usize],
    pub(super) indices: &'a [u32],
    pub(super) values: &'a [F],
}

impl<'a, F> Compressed<'a, F> {
    /// Returns the columns and values of each row in turn.
    #[inline(always)]
    pub(super) fn rows(self) -> RowsOf<'a, F> {
        let (start, ends) = match self.offsets {
            [start, ends @ ..] => (*start, ends),
            [] => (0, self.offsets),
        };
        RowsOf { start, ends, indices: &self.indices[start..], values: &self.values[start..] }
    }
}

/// The rows not yet returned.
pub(super) struct RowsOf<'a, F> {
    start: usize,
    ends: &'a [usize],
    indices: &'a [u32],
    values: &'a [F],
}

impl<'a, F> Iterator for RowsOf<'a, F> {
    type Item = (&'a [u32], &'a [F]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let (&end, ends) = self.ends.split_first()?;
        // Decreasing offsets give a length that no slice has.
        let stored = end.wrapping_sub(self.start);
        let (columns, indices) = self.indices.split_at(stored);
        let (row, values) = self.values.split_at(stored);
        *self = Self { start: end, ends, indices, values };
        Some((columns, row))
    }
}

/// Returns one inner product, with four accumulators.
#[inline(always)]
fn dot<F: Real>(columns: &[u32], values: &[F], w: &[F]) -> F {
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
    ((sums[0] + sums[2]) + (sums[1] + sums[3])) + left
}

/// Computes `sum += weight · row`; `change` receives each old and new entry and a number below 4 that differs between neighbours.
#[inline(always)]
fn add_row<F: Real>(weight: F, (columns, values): (&[u32], &[F]), sum: &mut [F], mut change: impl FnMut(usize, F, F)) {
    let mut add = |k: usize, column: u32, product: F| {
        let place = &mut sum[column as usize];
        let (old, new) = (*place, *place + product);
        *place = new;
        change(k, old, new);
    };
    let (column_blocks, columns_left) = columns.as_chunks::<4>();
    let (value_blocks, values_left) = values.as_chunks::<4>();
    for (columns, values) in column_blocks.iter().zip(value_blocks) {
        let products = values.map(|x| weight * x);
        for k in 0..4 {
            add(k, columns[k], products[k]);
        }
    }
    for (k, (&column, &x)) in columns_left.iter().zip(values_left).enumerate() {
        add(k, column, weight * x);
    }
}

/// Computes `out[i] = scale · ⟨w, x_i⟩`.
#[inline(always)]
pub(super) fn predictions<F: Real>(rows: Compressed<'_, F>, scale: F, w: &[F], out: &mut [F]) {
    for ((columns, values), prediction) in rows.rows().zip(out) {
        *prediction = scale * dot(columns, values, w);
    }
}

/// Computes `sum += Σ_i weights[i] · x_i` over the rows with nonzero weight; updates `squared_norm = |sum|²` on request.
///
/// # Formula
/// ```text
/// change of |sum|² = Σ_j (new_j² - old_j²) = Σ_j (new_j - old_j)(new_j + old_j)      over the columns of the row
/// ```
#[inline(always)]
pub(super) fn add_rows<F: Real>(rows: Compressed<'_, F>, weights: &[F], sum: &mut [F], squared_norm: Option<&mut F>) {
    let chosen = rows.rows().zip(weights).filter(|(_, weight)| **weight != F::zero());
    match squared_norm {
        Some(squared_norm) => {
            for (row, &weight) in chosen {
                // As many accumulators as parts of a row, so that no addition waits for the one before.
                let mut changes = [F::zero(); 4];
                add_row(weight, row, sum, |k, old, new| changes[k & 3] += (new - old) * (new + old));
                *squared_norm += (changes[0] + changes[2]) + (changes[1] + changes[3]);
            }
        }
        None => {
            for (row, &weight) in chosen {
                add_row(weight, row, sum, |_, _, _| ());
            }
        }
    }
}

/// [`add_rows`] into a sum in double precision.
#[inline(always)]
pub(super) fn add_rows_in_double<F: Real>(rows: Compressed<'_, F>, weights: &[F], sum: &mut [f64]) {
    let wide = |x: F| -> f64 { x.to_subset_unchecked() };
    for ((columns, values), &weight) in rows.rows().zip(weights).filter(|(_, weight)| **weight != F::zero()) {
        let weight = wide(weight);
        for (&column, &x) in columns.iter().zip(values) {
            sum[column as usize] += weight * wide(x);
        }
    }
}
