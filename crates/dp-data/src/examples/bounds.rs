//! Enforcing the bounds on which every sensitivity rests: the norm of rows and the size of targets.

use super::{Examples, Storage};

/// A real number as wide as the features, with the arithmetic for measuring and scaling a row.
pub trait Feature: Copy + Send + Sync {
    /// Converts the value to double precision, exactly.
    fn widen(self) -> f64;
    /// Returns the nearest value that is not larger in magnitude.
    fn narrow(value: f64) -> Self;
}

impl Feature for f64 {
    #[inline]
    fn widen(self) -> f64 {
        self
    }
    #[inline]
    fn narrow(value: f64) -> Self {
        value
    }
}

impl Feature for f32 {
    #[inline]
    fn widen(self) -> f64 {
        f64::from(self)
    }
    #[inline]
    fn narrow(value: f64) -> Self {
        super::f32_towards_zero(value)
    }
}

impl<F: Feature> Examples<F> {
    /// Clips every row to L2 norm `row_norm` and every target to `[-target_bound, target_bound]`.
    ///
    /// The norm of a stored row is then at most `row_norm`, exactly and not up to rounding. A row or target that is not finite
    /// becomes a null record (all zero, marked invalid). Rows and targets within the bounds are unchanged.
    ///
    /// # Formula
    /// ```text
    /// x <- x row_norm (1 - (d + 8) 2^-52) / ‖x‖   unless the computed ‖x‖² (1 + (d + 8) 2^-52) is at most row_norm²
    /// ```
    /// with `d` the stored values of the row: the computed square of the norm has a relative error of at most `(d + 2) 2^-53`.
    ///
    /// # Examples
    /// ```
    /// let mut examples = dp_data::Examples::dense(vec![3.0, 4.0, f64::NAN, 0.0], vec![7.0, 1.0], 2)?;
    /// examples.enforce_bounds(1.0, 1.0);
    /// let block = examples.block();
    /// assert_eq!((block.targets, block.valid), (&[1.0, 0.0][..], Some(&[true, false][..])));
    /// # Ok::<(), dp_data::examples::ShapeError>(())
    /// ```
    pub fn enforce_bounds(&mut self, row_norm: f64, target_bound: f64) {
        for i in 0..self.targets.len() {
            let row = match &mut self.storage {
                Storage::Dense(values) => &mut values[i * self.dim..(i + 1) * self.dim],
                Storage::Sparse { offsets, values, .. } => &mut values[offsets[i]..offsets[i + 1]],
            };
            let target = self.targets[i].widen();
            let fits = clip_row(row, row_norm) && target.is_finite();
            if !fits {
                row.fill(F::narrow(0.0));
                self.targets[i] = F::narrow(0.0);
                let rows = self.targets.len();
                self.valid.get_or_insert_with(|| vec![true; rows])[i] = false;
            } else if target.abs() > target_bound {
                self.targets[i] = F::narrow(target.signum() * target_bound);
            }
        }
    }
}

/// Clips a row; returns `false` if it is not finite.
fn clip_row<F: Feature>(row: &mut [F], row_norm: f64) -> bool {
    if let Some(scale) = clip_factor(sum_of_squares(row, 1.0), row.len(), row_norm) {
        if scale != 1.0 {
            row.iter_mut().for_each(|x| *x = F::narrow(x.widen() * scale));
        }
        return true;
    }
    // Scaled by the largest entry, so that no square overflows or vanishes.
    let largest = row.iter().map(|&x| x.widen().abs()).fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m });
    if !largest.is_finite() || row.iter().any(|&x| x.widen().is_nan()) {
        return false;
    }
    if largest == 0.0 {
        return true;
    }
    let norm = sum_of_squares(row, 1.0 / largest).sqrt();
    let scale = row_norm * (1.0 - slack(row.len())) / norm;
    for x in row.iter_mut() {
        *x = F::narrow(x.widen() / largest * scale);
    }
    true
}

fn slack(values: usize) -> f64 {
    (values as f64 + 8.0) * f64::EPSILON
}

fn sum_of_squares<F: Feature>(row: &[F], scale: f64) -> f64 {
    row.iter().map(|&x| (x.widen() * scale).powi(2)).sum()
}

/// Returns the factor that clips a row of this many values with this sum of squares, 1 for one within the bound; `None` if the
/// squares over- or underflow or are not numbers.
#[inline]
pub(crate) fn clip_factor(squared: f64, values: usize, row_norm: f64) -> Option<f64> {
    let slack = slack(values);
    if squared * (1.0 + slack) <= row_norm * row_norm {
        return Some(1.0);
    }
    (squared.is_finite() && squared > 1e-250).then(|| row_norm * (1.0 - slack) / squared.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rows;

    fn norm<F: Feature>(examples: &Examples<F>) -> f64 {
        let Rows::Dense { values, .. } = examples.block().rows else { unreachable!() };
        // Compensated squares: exact to far below one unit in the last place of the sum.
        let (mut sum, mut rest) = (0.0f64, 0.0f64);
        for x in values.iter().map(|&x| x.widen()) {
            let square = x * x;
            rest += x.mul_add(x, -square);
            let next = sum + square;
            rest += if sum >= square { (sum - next) + square } else { (square - next) + sum };
            sum = next;
        }
        let root = (sum + rest).sqrt();
        root + 0.0
    }

    #[test]
    fn rows_end_within_the_bound() {
        for row in [vec![1.0; 50], vec![1e300; 9], vec![1e-300, 3.0], vec![f64::MAX; 4], vec![0.1f64; 784]] {
            let dim = row.len();
            let mut examples = Examples::dense(row, vec![1.0], dim).unwrap();
            examples.enforce_bounds(1.0, 1.0);
            let found = norm(&examples);
            assert!(found <= 1.0 && found > 1.0 - 1e-12, "{dim}: {found}");
            let before = examples.clone();
            examples.enforce_bounds(1.0, 1.0);
            assert!(norm(&before) - norm(&examples) <= 1e-12);
        }
        let mut examples = Examples::dense(vec![1.0f32; 50], vec![1.0], 50).unwrap();
        examples.enforce_bounds(1.0, 1.0);
        assert!(norm(&examples) <= 1.0 && norm(&examples) > 1.0 - 1e-6);
    }

    #[test]
    fn what_fits_is_not_touched() {
        let mut examples = Examples::dense(vec![0.3, 0.4, 0.0, 0.0, -0.6, 0.7], vec![1.0, -1.0, 1.0], 2).unwrap();
        examples.enforce_bounds(1.0, 1.0);
        let Rows::Dense { values, .. } = examples.block().rows else { unreachable!() };
        assert_eq!(values, &[0.3, 0.4, 0.0, 0.0, -0.6, 0.7]);
        assert!(examples.block().valid.is_none());
    }

    #[test]
    fn sparse_rows_are_clipped_by_their_stored_values() {
        let mut examples =
            Examples::sparse(vec![0, 2, 3], vec![0, 4, 1], vec![3.0, 4.0, f64::INFINITY], vec![1.0, -1.0], 5).unwrap();
        examples.enforce_bounds(1.0, 1.0);
        let Rows::Sparse { values, .. } = examples.block().rows else { unreachable!() };
        assert!((values[0] - 0.6).abs() < 1e-12 && (values[1] - 0.8).abs() < 1e-12 && values[2] == 0.0);
        assert_eq!(examples.block().valid, Some(&[true, false][..]));
    }
}
