//! Matrix products on the crate `gemm`, on the calling thread.
//!
//! `gemm` chooses its kernel at run time (AVX-512, AVX2 with FMA, NEON, or plain). Every element of a product is a sum over the
//! inner dimension whose order depends on the shapes only, and only the row of the left and the column of the right matrix
//! enter it.
// The interface of `gemm` takes raw pointers. This is the only function of the crate that calls it, on matrices whose extent is
// checked when they are made.
#![allow(unsafe_code)]

use gemm::Parallelism;

use crate::float::Float;

/// A borrowed matrix: a slice, possibly read as its transpose.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, F> {
    values: &'a [F],
    rows: usize,
    columns: usize,
    row_stride: isize,
    column_stride: isize,
}

impl<'a, F> Matrix<'a, F> {
    /// Returns `values` as a matrix, row by row.
    ///
    /// # Panics
    /// If `values` does not hold `rows x columns` numbers.
    pub(crate) fn new(values: &'a [F], rows: usize, columns: usize) -> Self {
        assert_eq!(rows.checked_mul(columns), Some(values.len()), "a matrix of {rows} x {columns}");
        // A slice has at most isize::MAX bytes, so that a length fits.
        Self { values, rows, columns, row_stride: columns as isize, column_stride: 1 }
    }

    /// Returns the transpose.
    pub(crate) fn transposed(self) -> Self {
        let Self { values, rows, columns, row_stride, column_stride } = self;
        Self { values, rows: columns, columns: rows, row_stride: column_stride, column_stride: row_stride }
    }
}

/// What happens to the former contents of a product's output.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Output {
    /// They are overwritten; they may be anything.
    Set,
    /// The product is added to them.
    Add,
}

/// Computes `out = left · right` or `out += left · right`, with `out` row by row.
///
/// # Panics
/// If the shapes do not fit.
pub(crate) fn multiply<F: Float>(left: Matrix<'_, F>, right: Matrix<'_, F>, output: Output, out: &mut [F]) {
    let (m, n, k) = (left.rows, right.columns, left.columns);
    assert_eq!(right.rows, k, "the inner dimensions agree");
    assert_eq!(m.checked_mul(n), Some(out.len()), "the output is {m} x {n}");
    if out.is_empty() {
        return;
    }
    if k == 0 {
        if output == Output::Set {
            out.fill(F::zero());
        }
        return;
    }
    let add = output == Output::Add;
    let alpha = if add { F::one() } else { F::zero() };
    // SAFETY: `F` is `f32` or `f64` (`Float` is sealed), which `gemm` supports. `gemm` reads `left[i, j]` for `i < m`, `j < k`
    // and `right[i, j]` for `i < k`, `j < n`, and writes `out[i, j]` for `i < m`, `j < n`; it reads `out` only with `read_dst`.
    // By `Matrix::new` (strides `columns` and 1 of a slice of `rows · columns` numbers, or exchanged with the dimensions) and
    // the assertions above all of these lie inside their slices. `out` is borrowed mutably, so that it overlaps neither input.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            add,
            left.values.as_ptr(),
            left.column_stride,
            left.row_stride,
            right.values.as_ptr(),
            right.column_stride,
            right.row_stride,
            alpha,
            F::one(),
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference<F: Float>(left: Matrix<'_, F>, right: Matrix<'_, F>, out: &mut [F]) {
        let at =
            |a: &Matrix<'_, F>, i: usize, j: usize| a.values[i * a.row_stride as usize + j * a.column_stride as usize];
        for i in 0..left.rows {
            for j in 0..right.columns {
                let sum: f64 = (0..left.columns).map(|l| at(&left, i, l).wide() * at(&right, l, j).wide()).sum();
                out[i * right.columns + j] += F::narrow(sum);
            }
        }
    }

    fn agrees<F: Float>(tolerance: f64) {
        let number = |j: usize| F::narrow((j as f64 * 0.7).sin());
        for (m, n, k) in
            [(1, 1, 1), (1, 7, 3), (5, 1, 4), (17, 6, 25), (33, 70, 20), (3, 2, 600), (2, 40, 0), (0, 3, 2)]
        {
            let a: Vec<F> = (0..m * k).map(number).collect();
            let b: Vec<F> = (0..k * n).map(|j| number(j + 1000)).collect();
            for (left, right) in [
                (Matrix::new(&a, m, k), Matrix::new(&b, k, n)),
                (Matrix::new(&a, k, m).transposed(), Matrix::new(&b, k, n)),
                (Matrix::new(&a, m, k), Matrix::new(&b, n, k).transposed()),
                (Matrix::new(&a, k, m).transposed(), Matrix::new(&b, n, k).transposed()),
            ] {
                let (mut found, mut expected) = (vec![F::narrow(2.0); m * n], vec![F::narrow(2.0); m * n]);
                multiply(left, right, Output::Add, &mut found);
                reference(left, right, &mut expected);
                let mut set = vec![F::narrow(f64::NAN); m * n];
                multiply(left, right, Output::Set, &mut set);
                let tolerance = tolerance * (1 + k) as f64;
                for ((&found, &expected), &set) in found.iter().zip(&expected).zip(&set) {
                    assert!((found - expected).wide().abs() <= tolerance, "{m} x {n} x {k}");
                    assert!((set.wide() + 2.0 - expected.wide()).abs() <= tolerance, "{m} x {n} x {k}");
                }
            }
        }
    }

    #[test]
    fn products_agree_with_three_loops() {
        agrees::<f64>(1e-15);
        agrees::<f32>(5e-7);
    }

    #[test]
    #[should_panic(expected = "a matrix of 2 x 3")]
    fn a_slice_of_another_length_is_refused() {
        Matrix::new(&[0.0_f64; 5], 2, 3);
    }

    #[test]
    #[should_panic(expected = "the inner dimensions agree")]
    fn other_inner_dimensions_are_refused() {
        let a = [0.0_f64; 6];
        multiply(Matrix::new(&a, 2, 3), Matrix::new(&a, 2, 3), Output::Set, &mut [0.0; 6]);
    }

    #[test]
    #[should_panic(expected = "the output is 2 x 2")]
    fn another_output_is_refused() {
        let a = [0.0_f64; 6];
        multiply(Matrix::new(&a, 2, 3), Matrix::new(&a, 2, 3).transposed(), Output::Set, &mut [0.0; 6]);
    }
}
