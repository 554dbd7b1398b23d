//! Matrix products on the crate `gemm`, on the calling thread.
//!
//! `gemm` chooses its kernel at run time (AVX-512, AVX2 with FMA, NEON, or plain). Every element of a product is a sum over the
//! inner dimension whose order depends on the shapes only, and only the row of the left and the column of the right matrix
//! enter it. It depends on the number of rows too: few rows have kernels and blocks of their own. [`multiply_rows`] prevents this
//! where rows are examples, since the gradient of one must not depend on how many others there are.
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

/// The treatment of the former contents of a product's output.
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

/// Computes `out = left · right` or `out += left · right`, such that no bit of a row depends on the other rows or their number.
///
/// The version of `gemm` is fixed, as this rests on how it chooses the order of a sum: by the inner dimension `k` alone, unless the
/// product has at most 256 elements or only one column, or `k > 512` and at most 64 rows and columns. In these cases there are
/// rows of zeros in `spare`, or a plain loop. The tests compare all ways of dividing examples among products.
///
/// # Panics
/// If the shapes do not fit.
pub(crate) fn multiply_rows<F: Float>(
    left: Matrix<'_, F>,
    right: Matrix<'_, F>,
    output: Output,
    out: &mut [F],
    spare: &mut Vec<F>,
) {
    let (rows, columns, k) = (left.rows, right.columns, left.columns);
    if columns == 1 {
        assert!(right.rows == k && out.len() == rows, "the shapes of a product with one column");
        for (row, out) in left.values.chunks_exact(k.max(1)).zip(out) {
            let column = right.values.iter().step_by(right.row_stride.unsigned_abs());
            let sum = row.iter().zip(column).fold(F::zero(), |sum, (&a, &b)| sum + a * b);
            *out = if output == Output::Add { *out + sum } else { sum };
        }
        return;
    }
    let least = least_rows(columns, k);
    if rows >= least {
        return multiply(left, right, output, out);
    }
    spare.clear();
    spare.resize(least * (k + columns), F::zero());
    let (wide_left, wide_out) = spare.split_at_mut(least * k);
    wide_left[..left.values.len()].copy_from_slice(left.values);
    wide_out[..out.len()].copy_from_slice(out);
    multiply(Matrix::new(wide_left, least, k), right, output, wide_out);
    out.copy_from_slice(&wide_out[..out.len()]);
}

/// Returns the number of rows from which on the order of a row's sums does not depend on their number.
pub(crate) fn least_rows(columns: usize, k: usize) -> usize {
    let of_blocks = if k > 512 && columns <= 64 { 65 } else { 2 };
    (256 / columns.max(1) + 1).max(of_blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a product, alone and together with any number of others, at any place among them.
    fn rows_are_independent<F: Float>() {
        let number = |j: usize| F::narrow(((j as f64 + 0.3) * 12.9898).sin());
        let mut spare = Vec::new();
        for (columns, k) in [
            (1, 7),
            (2, 3),
            (2, 700),
            (3, 1),
            (3, 2),
            (3, 40),
            (6, 25),
            (10, 513),
            (10, 1000),
            (16, 150),
            (64, 600),
            (65, 600),
            (70, 30),
            (128, 784),
            (300, 10),
            (1000, 2),
        ] {
            let (a, b): (Vec<F>, Vec<F>) = ((0..140 * k).map(number).collect(), (0..k * columns).map(number).collect());
            let start: Vec<F> = (0..140 * columns).map(|j| number(j + 7)).collect();
            for right in [Matrix::new(&b, k, columns), Matrix::new(&b, columns, k).transposed()] {
                let mut product = |first: usize, rows: usize, output| {
                    let mut out = start[first * columns..(first + rows) * columns].to_vec();
                    multiply_rows(
                        Matrix::new(&a[first * k..(first + rows) * k], rows, k),
                        right,
                        output,
                        &mut out,
                        &mut spare,
                    );
                    out
                };
                for output in [Output::Set, Output::Add] {
                    let all = product(0, 140, output);
                    for (first, rows) in [
                        (0, 1),
                        (5, 1),
                        (139, 1),
                        (3, 2),
                        (7, 5),
                        (0, 17),
                        (30, 33),
                        (1, 64),
                        (9, 65),
                        (2, 130),
                        (139, 0),
                    ] {
                        let expected = &all[first * columns..(first + rows) * columns];
                        assert_eq!(product(first, rows, output), expected, "{rows} x {columns} x {k} from {first}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_row_depends_on_the_others() {
        rows_are_independent::<f32>();
        rows_are_independent::<f64>();
    }

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
