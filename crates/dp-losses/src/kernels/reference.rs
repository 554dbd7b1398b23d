//! The kernels as plain loops: the reference for tests of the vectorised ones.

use dp_data::Rows;
use nalgebra::RealField;

/// Returns the entries of example `i`: its columns (`None`: all of them) and values.
fn entries<'a, F>(rows: &Rows<'a, F>, i: usize) -> (Option<&'a [u32]>, &'a [F]) {
    match *rows {
        Rows::Dense { values, dim } => (None, &values[i * dim..(i + 1) * dim]),
        Rows::Sparse { offsets, indices, values, .. } => {
            let range = offsets[i]..offsets[i + 1];
            (Some(&indices[range.clone()]), &values[range])
        }
    }
}

/// Returns `⟨x, w⟩`.
pub(crate) fn dot<F: RealField + Copy>(row: &[F], w: &[F]) -> F {
    row.iter().zip(w).fold(F::zero(), |sum, (&x, &w)| sum + x * w)
}

/// Computes `out[i] = scale · ⟨w, x_i⟩`.
pub(crate) fn predictions<F: RealField + Copy>(rows: &Rows<'_, F>, scale: F, w: &[F], out: &mut [F]) {
    for (i, prediction) in out.iter_mut().enumerate() {
        let sum = match entries(rows, i) {
            (None, values) => dot(values, w),
            (Some(columns), values) => {
                columns.iter().zip(values).fold(F::zero(), |sum, (&column, &x)| sum + x * w[column as usize])
            }
        };
        *prediction = scale * sum;
    }
}

/// Computes `sum += Σ_i weights[i] · x_i`; a weight 0 adds nothing of its row.
pub(crate) fn add_rows<F: RealField + Copy>(rows: &Rows<'_, F>, weights: &[F], sum: &mut [F]) {
    for (i, &weight) in weights.iter().enumerate() {
        if weight == F::zero() {
            continue;
        }
        match entries(rows, i) {
            (None, values) => {
                for (sum, &x) in sum.iter_mut().zip(values) {
                    *sum += weight * x;
                }
            }
            (Some(columns), values) => {
                for (&column, &x) in columns.iter().zip(values) {
                    sum[column as usize] += weight * x;
                }
            }
        }
    }
}

/// Computes `out[i] = |x_i|²`.
pub(crate) fn squared_row_norms<F: RealField + Copy>(rows: &Rows<'_, F>, out: &mut [F]) {
    for (i, norm) in out.iter_mut().enumerate() {
        *norm = squared_norm(entries(rows, i).1);
    }
}

/// Returns `|v|²`.
pub(crate) fn squared_norm<F: RealField + Copy>(v: &[F]) -> F {
    v.iter().fold(F::zero(), |sum, &x| sum + x * x)
}
