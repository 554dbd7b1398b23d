//! Products of row-major matrices, computed by nalgebra.

use nalgebra::{DMatrixView, DMatrixViewMut};

/// Computes `out <- a b + beta out` for `a` (rows x inner) and `b` (inner x columns).
pub(crate) fn multiply(a: &[f64], b: &[f64], rows: usize, inner: usize, columns: usize, beta: f64, out: &mut [f64]) {
    assert_eq!((a.len(), b.len(), out.len()), (rows * inner, inner * columns, rows * columns), "shapes of a product");
    // nalgebra is column-major, so it sees each matrix transposed: outᵀ = bᵀ aᵀ.
    let (a, b) = (DMatrixView::from_slice(a, inner, rows), DMatrixView::from_slice(b, columns, inner));
    DMatrixViewMut::from_slice(out, columns, rows).gemm(1.0, &b, &a, beta);
}

/// Computes `out <- a bᵀ + beta out` for `a` (rows x inner) and `b` (columns x inner); `scratch` receives `bᵀ`, which is cheaper
/// than nalgebra's product with a transposed factor.
pub(crate) fn multiply_transposed(
    a: &[f64],
    b: &[f64],
    inner: usize,
    beta: f64,
    scratch: &mut Vec<f64>,
    out: &mut [f64],
) {
    let (rows, columns) = (a.len() / inner, b.len() / inner);
    transpose(b, inner, scratch);
    multiply(a, scratch, rows, inner, columns, beta, out);
}

/// Computes `out <- aᵀ a + beta out` for `a` (inner x columns); `scratch` receives `aᵀ`.
pub(crate) fn multiply_with_itself(a: &[f64], columns: usize, beta: f64, scratch: &mut Vec<f64>, out: &mut [f64]) {
    transpose(a, columns, scratch);
    multiply(scratch, a, columns, a.len() / columns, columns, beta, out);
}

/// Computes `out <- aᵀ` for rows of `columns` numbers.
fn transpose(a: &[f64], columns: usize, out: &mut Vec<f64>) {
    let rows = a.len() / columns;
    out.resize(a.len(), 0.0);
    for (column, row) in a.chunks_exact(columns).enumerate() {
        for (value, at) in row.iter().zip((column..).step_by(rows)) {
            out[at] = *value;
        }
    }
}

/// Returns `a · b`, in eight running sums that the compiler vectorises.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_lanes, a_rest) = a.as_chunks::<8>();
    let (b_lanes, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in a_lanes.iter().zip(b_lanes) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// Computes `y <- y + scale x`.
pub(crate) fn add_scaled(scale: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += scale * x;
    }
}
