//! Inner product, multiple and norm of one row.

use dp_data::Rows;
use nalgebra::RealField;

/// The operations of a coordinate method on single rows.
pub(super) trait RowOperations<F> {
    /// Returns `⟨x, vector⟩`.
    fn dot(&self, row: usize, vector: &[F]) -> F;
    /// Computes `vector += scale · x`.
    fn add(&self, row: usize, scale: F, vector: &mut [F]);
    /// Returns `‖x‖²`.
    fn squared_norm(&self, row: usize) -> F;
}

/// Returns the inner product, with eight accumulators, since with one every addition would wait for the previous one.
fn dense_dot<F: RealField + Copy>(a: &[F], b: &[F]) -> F {
    let ((a_blocks, a_left), (b_blocks, b_left)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [F::zero(); 8];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let left = a_left.iter().zip(b_left).fold(F::zero(), |sum, (&a, &b)| sum + a * b);
    sums.iter().fold(left, |sum, &part| sum + part)
}

impl<F: RealField + Copy> RowOperations<F> for Rows<'_, F> {
    #[inline]
    fn dot(&self, row: usize, vector: &[F]) -> F {
        match *self {
            Self::Dense { values, dim } => dense_dot(&values[row * dim..(row + 1) * dim], vector),
            Self::Sparse { offsets, indices, values, .. } => {
                let range = offsets[row]..offsets[row + 1];
                let entries = indices[range.clone()].iter().zip(&values[range]);
                entries.fold(F::zero(), |sum, (&column, &value)| sum + value * vector[column as usize])
            }
        }
    }

    #[inline]
    fn add(&self, row: usize, scale: F, vector: &mut [F]) {
        match *self {
            Self::Dense { values, dim } => {
                let row = &values[row * dim..(row + 1) * dim];
                vector.iter_mut().zip(row).for_each(|(entry, &x)| *entry += scale * x);
            }
            Self::Sparse { offsets, indices, values, .. } => {
                let range = offsets[row]..offsets[row + 1];
                for (&column, &value) in indices[range.clone()].iter().zip(&values[range]) {
                    vector[column as usize] += scale * value;
                }
            }
        }
    }

    fn squared_norm(&self, row: usize) -> F {
        match *self {
            Self::Dense { values, dim } => {
                let row = &values[row * dim..(row + 1) * dim];
                dense_dot(row, row)
            }
            Self::Sparse { offsets, values, .. } => {
                let row = &values[offsets[row]..offsets[row + 1]];
                dense_dot(row, row)
            }
        }
    }
}
