//! The Cholesky factorisation in blocks, whose products are matrix products. nalgebra's own works column by column and takes 4
//! times as long for 2,104 features, 14 times for 4,096 (6 s and .4 s on one core).

use nalgebra::{Cholesky, DMatrix, Dyn, RealField};

/// Size up to which a matrix is factorised column by column.
const SMALL: usize = 512;
/// Number of unknowns that are eliminated one by one.
const PANEL: usize = 64;

/// Factorises a symmetric matrix, of which the lower triangle is read. Returns `None` if, after rounding, it is not positive
/// definite.
///
/// # Formula
/// ```text
/// A = ( A₁    ·  )      L₁ = chol(A₁),   X = A₂₁ L₁⁻ᵀ,   L₂ = chol(A₂ - X Xᵀ)
///     ( A₂₁   A₂ )
/// ```
pub(super) fn of<F: RealField + Copy>(mut matrix: DMatrix<F>) -> Option<Cholesky<F, Dyn>> {
    let size = matrix.nrows();
    factorise(&mut matrix, 0, size)?;
    // What is above the diagonal has no meaning.
    Some(Cholesky::pack_dirty(matrix))
}

/// Factorises the diagonal block of this size at `start`.
fn factorise<F: RealField + Copy>(matrix: &mut DMatrix<F>, start: usize, size: usize) -> Option<()> {
    if size <= SMALL {
        let factor = Cholesky::new(matrix.view((start, start), (size, size)).into_owned())?.unpack_dirty();
        matrix.view_mut((start, start), (size, size)).copy_from(&factor);
        return Some(());
    }
    let first = size / 2;
    let (second, below) = (start + first, size - first);
    factorise(matrix, start, first)?;
    eliminate(matrix, (start, first), (second, below));
    let x = matrix.view((second, start), (below, first)).into_owned();
    // Strips, so that little above the diagonal is computed.
    for strip in (0..below).step_by(SMALL) {
        let width = SMALL.min(below - strip);
        let (rows, columns) = (x.rows(strip, below - strip), x.rows(strip, width).transpose());
        let mut rest = matrix.view_mut((second + strip, second + strip), (below - strip, width));
        rest.gemm(-F::one(), &rows, &columns, F::one());
    }
    factorise(matrix, second, below)
}

/// Replaces the rows `below` of the columns of a factorised block `L` by their product with `L⁻ᵀ`.
fn eliminate<F: RealField + Copy>(matrix: &mut DMatrix<F>, block: (usize, usize), below: (usize, usize)) {
    let ((start, size), (row, rows)) = (block, below);
    if size <= PANEL {
        let factor = matrix.view((start, start), (size, size)).into_owned();
        for column in 0..size {
            for before in 0..column {
                let weight = factor[(column, before)];
                let (done, mut open) = matrix.columns_range_pair_mut(start + before, start + column);
                open.rows_mut(row, rows).axpy(-weight, &done.rows(row, rows), F::one());
            }
            let inverse = F::one() / factor[(column, column)];
            matrix.view_mut((row, start + column), (rows, 1)).scale_mut(inverse);
        }
        return;
    }
    let first = size / 2;
    let (second, rest) = (start + first, size - first);
    eliminate(matrix, (start, first), below);
    let solved = matrix.view((row, start), (rows, first)).into_owned();
    let factor = matrix.view((second, start), (rest, first)).transpose();
    matrix.view_mut((row, second), (rows, rest)).gemm(-F::one(), &solved, &factor, F::one());
    eliminate(matrix, (second, rest), below);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A well-conditioned matrix, what is above its diagonal replaced by numbers that must not be read.
    fn lower(size: usize) -> (DMatrix<f64>, DMatrix<f64>) {
        let factor = DMatrix::from_fn(size, size, |i, j| match i.cmp(&j) {
            core::cmp::Ordering::Less => 0.0,
            core::cmp::Ordering::Equal => 1.0 + (i % 3) as f64,
            core::cmp::Ordering::Greater => ((7 * i + 13 * j) % 19) as f64 / (19.0 * size as f64),
        });
        let mut matrix = &factor * factor.transpose();
        (0..size).for_each(|i| (i + 1..size).for_each(|j| matrix[(i, j)] = f64::NAN));
        (factor, matrix)
    }

    #[test]
    fn factors_are_those_of_the_definition_at_all_sizes() {
        for size in [1, 2, SMALL, SMALL + 1, SMALL + PANEL + 3, 2 * SMALL + 1, 3 * SMALL - 5] {
            let (expected, matrix) = lower(size);
            let found = of(matrix).unwrap().unpack();
            assert!((found - expected).amax() < 1e-12, "{size}");
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_none() {
        for at in [0, SMALL - 1, SMALL, SMALL + 200] {
            let (_, mut matrix) = lower(SMALL + 201);
            matrix[(at, at)] = -1.0;
            assert!(of(matrix).is_none(), "{at}");
        }
    }
}
