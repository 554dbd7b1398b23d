//! One row of a block, dense or sparse.

use dp_data::Rows;
use dp_losses::Real;

/// Calls `entry` for each non-zero feature of row `i`.
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
pub(crate) fn copy_row<F: Real>(rows: &Rows<'_, F>, i: usize, row: &mut [f64]) {
    row.fill(0.0);
    features(rows, i, |j, x| {
        if let Some(entry) = row.get_mut(j) {
            *entry = x;
        }
    });
}

/// Returns `⟨weights, row i⟩`.
pub(crate) fn dot<F: Real>(rows: &Rows<'_, F>, i: usize, weights: &[f64]) -> f64 {
    let mut sum = 0.0;
    features(rows, i, |j, x| sum += x * weights.get(j).copied().unwrap_or(0.0));
    sum
}
