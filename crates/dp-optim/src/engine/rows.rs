//! Rows of a block, dense or sparse: one by one, and those at given positions.

use dp_data::{Block, BlockBuffer, OutOfMemory, Rows, Selection};
use dp_losses::Real;
use dp_losses::prefetch::fetch;

/// Calls `entry` for each feature of row `i`, or for each that is stored if the rows are sparse.
pub(crate) fn features<F: Real>(rows: &Rows<'_, F>, i: usize, mut entry: impl FnMut(usize, f64)) {
    match *rows {
        Rows::Dense { values, dim } => {
            let row = values.get(i * dim..(i + 1) * dim).unwrap_or_default();
            row.iter().enumerate().for_each(|(j, &x)| entry(j, x.to_subset_unchecked()));
        }
        Rows::Sparse { offsets, indices, values, .. } => {
            let (Some(&start), Some(&end)) = (offsets.get(i), offsets.get(i + 1)) else { return };
            let entries = indices[start..end].iter().zip(&values[start..end]);
            entries.for_each(|(&j, &x)| entry(j as usize, x.to_subset_unchecked()));
        }
    }
}

/// Copies row `i`, with its zeros.
#[inline(always)]
pub(crate) fn copy_row<F: Real>(rows: &Rows<'_, F>, i: usize, row: &mut [f64]) {
    if let Rows::Dense { values, dim } = *rows {
        let entries = values.get(i * dim..(i + 1) * dim).unwrap_or_default();
        for (entry, x) in row.iter_mut().zip(entries) {
            *entry = x.to_subset_unchecked();
        }
        return;
    }
    row.fill(0.0);
    features(rows, i, |j, x| {
        if let Some(entry) = row.get_mut(j) {
            *entry = x;
        }
    });
}

/// Returns `⟨weights, row i⟩`.
#[inline(always)]
pub(crate) fn dot<F: Real>(rows: &Rows<'_, F>, i: usize, weights: &[f64]) -> f64 {
    if let Rows::Dense { values, dim } = *rows {
        return dense_dot(values.get(i * dim..(i + 1) * dim).unwrap_or_default(), weights);
    }
    let mut sum = 0.0;
    features(rows, i, |j, x| sum += x * weights.get(j).copied().unwrap_or(0.0));
    sum
}

/// Returns `⟨weights, row⟩` in eight partial sums, so that additions need not wait for one another.
#[inline(always)]
fn dense_dot<F: Real>(row: &[F], weights: &[f64]) -> f64 {
    let ((blocks, left), (of_blocks, of_left)) = (row.as_chunks::<8>(), weights.as_chunks::<8>());
    let mut partial = [0.0; 8];
    for (block, weights) in blocks.iter().zip(of_blocks) {
        for k in 0..8 {
            let x: f64 = block[k].to_subset_unchecked();
            partial[k] += x * weights[k];
        }
    }
    let (mut sum, mut rest) = (0.0, 0.0);
    for (&x, &weight) in left.iter().zip(of_left) {
        let x: f64 = x.to_subset_unchecked();
        rest += x * weight;
    }
    for partial in partial {
        sum += partial;
    }
    sum + rest
}

/// Returns the selected rows as a block: a single one where it is, several copied into `buffer`.
///
/// # Errors
/// [`OutOfMemory`].
pub(crate) fn gathered<'b, F: Copy>(
    rows: &Selection<'b, F>,
    buffer: &'b mut BlockBuffer<F>,
) -> Result<Block<'b, F>, OutOfMemory> {
    if rows.len() == 1 {
        return Ok(rows.example(0));
    }
    copy_rows(rows, buffer)?;
    Ok(buffer.block(rows.dim()))
}

/// Copies the selected rows into `buffer` in place of its contents. Each is fetched ahead of copying.
///
/// # Errors
/// [`OutOfMemory`].
pub(crate) fn copy_rows<F: Copy>(rows: &Selection<'_, F>, buffer: &mut BlockBuffer<F>) -> Result<(), OutOfMemory> {
    buffer.copy(rows, |values, columns| {
        fetch(values);
        fetch(columns);
    })
}
