//! A certified upper bound on the largest eigenvalue of a symmetric matrix in floating point, rounding errors included.

use nalgebra::DMatrix;
use nalgebra::linalg::SymmetricTridiagonal;

/// The unit roundoff: half the distance from 1 to the next number.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// Returns an upper bound on the largest eigenvalue of the symmetric `matrix` (order x order; its lower triangle is read), or
/// infinity if the matrix has an entry that is not finite.
///
/// # Method
/// An estimate, by bisection on the tridiagonal form, is raised slightly to `λ`. Then the Cholesky factorisation of
/// `(λ - c) I - M` is tried with `c = (n + 2) u tr / (1 - (n + 2) u) + ...`, `u` the unit roundoff. If it succeeds, `λ I - M` is
/// positive semidefinite (Rump 2006, "Verification of positive definiteness", Theorem 2.3: the computed factorisation is exact
/// for a matrix that differs by less than `c`). Otherwise `λ` is raised further, at last to the largest absolute row sum, which
/// is at least every eigenvalue. An inexact estimate affects tightness only.
pub(crate) fn largest_eigenvalue(matrix: &[f64], order: usize) -> f64 {
    debug_assert_eq!(matrix.len(), order * order);
    let at = |i: usize, j: usize| if i >= j { matrix[i * order + j] } else { matrix[j * order + i] };
    if matrix.iter().any(|entry| !entry.is_finite()) {
        return f64::INFINITY;
    }
    if order == 1 {
        return matrix[0];
    }
    let n = order as f64;
    // Sums of n terms, rounded up.
    let row_sum = (0..order).map(|i| (0..order).map(|j| at(i, j).abs()).sum::<f64>()).fold(0.0, f64::max)
        * (1.0 + 2.0 * n * UNIT);
    if row_sum == 0.0 || !row_sum.is_finite() {
        return row_sum;
    }
    let estimate = estimate(&DMatrix::from_fn(order, order, at), row_sum);
    let mut factor = Vec::with_capacity(order * order);
    let mut raise = 8.0 * n * UNIT * row_sum;
    while estimate + raise < row_sum {
        let bound = estimate + raise;
        if exceeds(bound, order, at, &mut factor) {
            return bound;
        }
        raise *= 2.0;
    }
    row_sum
}

/// Returns an estimate of the largest eigenvalue: bisection with Sturm counts on the tridiagonal form.
fn estimate(matrix: &DMatrix<f64>, row_sum: f64) -> f64 {
    let (_, diagonal, off_diagonal) = SymmetricTridiagonal::new(matrix.clone()).unpack();
    let all_below = |x: f64| {
        let mut pivot = 1.0;
        diagonal.iter().enumerate().all(|(i, d)| {
            let above: f64 = if i == 0 { 0.0 } else { off_diagonal[i - 1] };
            pivot = x - d - above * above / pivot;
            pivot > 0.0
        })
    };
    let (mut low, mut high) = (-row_sum, row_sum);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if all_below(middle) { high = middle } else { low = middle }
    }
    high
}

/// Returns whether `bound I - M` is certainly positive semidefinite.
fn exceeds(bound: f64, order: usize, at: impl Fn(usize, usize) -> f64, factor: &mut Vec<f64>) -> bool {
    let n = order as f64;
    // The trace of the factorised matrix, and the rounding of its diagonal.
    let trace: f64 = (0..order).map(|i| bound.abs() + at(i, i).abs()).sum::<f64>() * (1.0 + 2.0 * n * UNIT);
    let shift = (n + 2.0) * UNIT / (1.0 - (n + 2.0) * UNIT) * trace + 4.0 * UNIT * trace + f64::MIN_POSITIVE * n;
    let top = bound - 2.0 * shift;
    factor.clear();
    factor.resize(order * order, 0.0);
    for i in 0..order {
        let (above, row) = factor.split_at_mut(i * order);
        for j in 0..i {
            let other = &above[j * order..j * order + j];
            let product: f64 = other.iter().zip(&row[..j]).map(|(a, b)| a * b).sum();
            row[j] = (-at(i, j) - product) / above[j * order + j];
        }
        let square = (top - at(i, i)) - row[..i].iter().map(|a| a * a).sum::<f64>();
        // Also refuses NaN.
        if !(square > 0.0) {
            return false;
        }
        row[i] = square.sqrt();
    }
    true
}

#[cfg(test)]
mod tests;
