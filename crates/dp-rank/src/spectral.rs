//! Spectral norms of weight matrices: estimates for normalisation, and certified upper bounds.
//!
//! Dividing released weights by an [estimate](PowerIteration::estimate) is post-processing, for which any number is allowed. A
//! proof needs [`norm_upper_bound`].

use crate::certified::{UNIT, largest_eigenvalue};
use crate::dense::{multiply, multiply_transposed};
use crate::random::Public;

/// The maximum number of steps of the power iteration.
const MOST_STEPS: usize = 300;
/// The iteration stops when a step raises the estimate by less than this fraction.
const TOLERANCE: f64 = 1e-10;

/// The condition under which a weight matrix is divided by its spectral norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalise {
    /// After every update.
    #[default]
    Always,
    /// Only when the norm is above 1.
    AboveOne,
}

/// Estimates the spectral norm of one matrix repeatedly, starting from the last singular vector: after a small change of the
/// matrix a few steps suffice.
///
/// # Accuracy
/// An estimate exceeds the norm at most by rounding and usually falls short of it by less than a relative `1e-9`. If the two
/// largest singular values nearly agree, the shortfall is at most their difference or about `1e-8`. The estimate is *not an upper
/// bound*.
///
/// # Examples
/// ```
/// use dp_rank::spectral::PowerIteration;
/// let sigma = PowerIteration::default().estimate(&[3.0, 0.0, 0.0, 0.0, 4.0, 0.0], 2, 3);
/// assert!((sigma - 4.0).abs() < 1e-8);
/// ```
#[derive(Debug, Clone)]
pub struct PowerIteration {
    /// The iteration ends when a step raises the estimate by less than this fraction.
    tolerance: f64,
    /// A unit vector, one number per column.
    vector: Vec<f64>,
    image: Vec<f64>,
}

impl Default for PowerIteration {
    fn default() -> Self {
        Self::within(TOLERANCE)
    }
}

impl PowerIteration {
    /// Creates an iteration that ends when a step raises the estimate by less than this fraction. The relative shortfall of the
    /// result is a multiple of it, larger if the next singular value is close. A coarse tolerance suffices in training, where the
    /// next update continues from the last vector.
    ///
    /// # Examples
    /// ```
    /// use dp_rank::spectral::PowerIteration;
    /// let matrix = [3.0, 0.0, 0.0, 0.0, 4.0, 0.0];
    /// let sigma = PowerIteration::within(1e-3).estimate(&matrix, 2, 3);
    /// assert!(sigma <= 4.0 && sigma > 3.9);
    /// ```
    pub fn within(tolerance: f64) -> Self {
        Self { tolerance, vector: Vec::new(), image: Vec::new() }
    }

    /// Returns an estimate of the spectral norm of a row-major matrix; 0 for a zero matrix.
    ///
    /// # Panics
    /// If the matrix does not have `rows * columns` numbers, or is empty.
    pub fn estimate(&mut self, matrix: &[f64], rows: usize, columns: usize) -> f64 {
        assert!(matrix.len() == rows * columns && !matrix.is_empty(), "a matrix of {rows} x {columns}");
        if rows == 1 || columns == 1 {
            return length(matrix);
        }
        if self.vector.len() != columns {
            // A fixed direction, in practice not orthogonal to the top singular vector.
            let mut random = Public::new(0);
            self.vector = (0..columns).map(|_| random.normal()).collect();
            divide(&mut self.vector);
        }
        self.image.resize(rows, 0.0);
        let mut estimate = 0.0;
        for _ in 0..MOST_STEPS {
            multiply(matrix, &self.vector, rows, columns, 1, 0.0, &mut self.image);
            let raised = length(&self.image);
            multiply(&self.image, matrix, 1, rows, columns, 0.0, &mut self.vector);
            if divide(&mut self.vector) == 0.0 {
                self.vector.clear();
                return raised;
            }
            let settled = raised - estimate <= self.tolerance * raised;
            estimate = raised;
            if settled {
                break;
            }
        }
        estimate
    }

    /// Divides the matrix by its estimated norm and returns the divisor. A zero matrix, and under [`Normalise::AboveOne`] one of
    /// norm at most 1, is unchanged and gives 1.
    ///
    /// # Panics
    /// As [`estimate`](Self::estimate).
    ///
    /// # Examples
    /// ```
    /// use dp_rank::spectral::{Normalise, PowerIteration};
    /// let mut w = [3.0, 4.0];
    /// assert_eq!(PowerIteration::default().normalise(&mut w, 1, 2, Normalise::Always), 5.0);
    /// assert_eq!(w, [0.6, 0.8]);
    /// ```
    pub fn normalise(&mut self, matrix: &mut [f64], rows: usize, columns: usize, when: Normalise) -> f64 {
        let norm = self.estimate(matrix, rows, columns);
        let divides = norm.is_finite() && (norm > 1.0 || (when == Normalise::Always && norm > 0.0));
        if !divides {
            return 1.0;
        }
        matrix.iter_mut().for_each(|entry| *entry /= norm);
        norm
    }
}

/// Returns `‖v‖`, without overflow.
fn length(v: &[f64]) -> f64 {
    let largest = v.iter().map(|x| x.abs()).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * v.iter().map(|x| (x / largest) * (x / largest)).sum::<f64>().sqrt()
}

/// Scales to unit length and returns the previous length.
fn divide(v: &mut [f64]) -> f64 {
    let length = length(v);
    if length > 0.0 {
        v.iter_mut().for_each(|x| *x /= length);
    }
    length
}

/// Returns a certified upper bound on the spectral norm of the row-major matrix, rounding included; infinity if an entry is not
/// finite.
///
/// # Formula
/// ```text
/// sqrt(λ_max(A Aᵀ) + m u tr(A Aᵀ)),  or with Aᵀ A, whichever is smaller
/// ```
/// with a certified upper bound on the largest eigenvalue, `m` terms per product and the unit roundoff `u`.
///
/// # Panics
/// If the matrix does not have `rows * columns` numbers, or is empty.
///
/// # Examples
/// ```
/// use dp_rank::spectral::norm_upper_bound;
/// let bound = norm_upper_bound(&[3.0, 0.0, 0.0, 4.0], 2, 2);
/// assert!(bound >= 4.0 && bound < 4.0 * (1.0 + 1e-12));
/// ```
pub fn norm_upper_bound(matrix: &[f64], rows: usize, columns: usize) -> f64 {
    assert!(matrix.len() == rows * columns && !matrix.is_empty(), "a matrix of {rows} x {columns}");
    let largest = matrix.iter().map(|entry| entry.abs()).fold(0.0, |a: f64, b| if b.is_nan() { b } else { a.max(b) });
    if largest == 0.0 {
        return 0.0;
    }
    if matrix.iter().any(|entry| !entry.is_finite()) {
        return f64::INFINITY;
    }
    // Scaled by a power of two, which is exact unless an entry is negligibly small; such losses are added below.
    let scale = f64::from_bits(largest.to_bits() & 0x7ff0_0000_0000_0000).max(f64::MIN_POSITIVE);
    let scaled: Vec<f64> = matrix.iter().map(|entry| entry / scale).collect();
    let (order, terms) = if rows <= columns { (rows, columns) } else { (columns, rows) };
    let mut gram = vec![0.0; order * order];
    let mut scratch = Vec::new();
    if rows <= columns {
        multiply_transposed(&scaled, &scaled, columns, 0.0, &mut scratch, &mut gram);
    } else {
        let turned: Vec<f64> =
            (0..columns).flat_map(|column| scaled.iter().skip(column).step_by(columns).copied()).collect();
        multiply_transposed(&turned, &turned, rows, 0.0, &mut scratch, &mut gram);
    }
    let trace: f64 = gram.iter().step_by(order + 1).sum::<f64>() * (1.0 + 4.0 * order as f64 * UNIT);
    let square = largest_eigenvalue(&gram, order) + (2 * terms + 8) as f64 * UNIT * trace;
    let lost = (rows * columns) as f64 * f64::MIN_POSITIVE;
    // Rounded up, even if the product is too small for a relative margin.
    ((square.max(0.0).sqrt() * (1.0 + 8.0 * UNIT) + lost) * scale).next_up()
}

#[cfg(test)]
mod tests;
