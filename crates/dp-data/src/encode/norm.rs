//! Bounding a row's norm by 1 in exact arithmetic.

use super::RowNorm;

/// Half a unit in the last place of 1: the largest relative error of one operation, `2^-53`.
const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;
/// Sums of squares outside this range may have lost terms to overflow or underflow.
const SAFE_SQUARES: core::ops::RangeInclusive<f64> = 1e-280..=1e280;

/// Scales `values` so that their exact Euclidean norm is at most 1.
///
/// # Formula
/// ```text
/// x -> x (1 - k)/s,   s = the computed norm,   k = (d + 8) u,   u = 2^-53,   d = number of values
/// ```
/// The computed sum of `d` squares is at least `|x|^2 (1 - u)^d`, its root at least `|x| (1 - u)^(d/2 + 1)`; subtracting `k`,
/// dividing and multiplying add at most a factor `(1 + u)^3`. So the exact norm is at most `(1 - k)(1 + u)^3 (1 - u)^-(d/2 +
/// 1) <= 1 - (d/2 + 4) u + O((du)^2)`, below 1 for every `d < 2^32`. Products below the normal range have an error of at most
/// `2^-1075` each, which the remaining `4 u` covers.
///
/// `Clip` leaves a row whose computed norm is at most `1 - k` unchanged: its exact norm is then below 1. Values must be finite.
/// A row of zeros is unchanged.
pub(crate) fn bound_norm(values: &mut [f64], row_norm: RowNorm) {
    match factor(values, row_norm) {
        Some(1.0) => {}
        Some(factor) => values.iter_mut().for_each(|value| *value *= factor),
        None => {
            let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            values.iter_mut().for_each(|value| *value /= largest);
            let factor = (1.0 - slack(values.len())) / sum_of_squares(values).sqrt();
            values.iter_mut().for_each(|value| *value *= factor);
        }
    }
}

fn slack(values: usize) -> f64 {
    (values as f64 + 8.0) * UNIT_ROUNDOFF
}

/// Returns the factor by which [`bound_norm`] multiplies; `None` if it must divide by the largest value first.
pub(super) fn factor(values: &[f64], row_norm: RowNorm) -> Option<f64> {
    let zeros = || values.iter().all(|&value| value == 0.0).then_some(1.0);
    factor_of(sum_of_squares(values), values.len(), row_norm).or_else(zeros)
}

/// As [`factor`] for this many values with this sum of squares, not all of them 0.
#[inline]
pub(super) fn factor_of(squares: f64, values: usize, row_norm: RowNorm) -> Option<f64> {
    let slack = slack(values);
    if row_norm == RowNorm::Clip && squares.sqrt() <= 1.0 - slack {
        return Some(1.0);
    }
    SAFE_SQUARES.contains(&squares).then(|| (1.0 - slack) / squares.sqrt())
}

/// Returns the sum of squares, in four running sums so that additions need not wait for one another.
fn sum_of_squares(values: &[f64]) -> f64 {
    let (fours, rest) = values.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for four in fours {
        for (sum, value) in sums.iter_mut().zip(four) {
            *sum += value * value;
        }
    }
    rest.iter().fold((sums[0] + sums[1]) + (sums[2] + sums[3]), |sum, value| sum + value * value)
}
