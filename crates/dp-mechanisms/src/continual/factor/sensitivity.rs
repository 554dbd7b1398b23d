//! The sensitivity of a factor's release to one record, by the steps in which it may take part.

use super::{Factor, MOST_ROWS, Numerators, Participation, UNIT};
use crate::error::Error;
use crate::rounding::{product_up, sqrt_up, sum_up};

/// Maximum number of sets of steps tried one by one; beyond it, a bound is proved instead.
const MOST_PATTERNS: usize = 1 << 16;

/// A bound on `‖Cf u‖` over all contributions `u` of norm at most 1 in allowed steps.
///
/// # Formula
/// ```text
/// value² = max over allowed sets π of Σ_{i,j in π} |<c_i, c_j>|,   c_i the columns of Cf
/// ```
/// This holds because `‖Σ_i c_i ⊗ u_i‖² = Σ_{i,j} <c_i, c_j> <u_i, u_j>` and `|<u_i, u_j>| <= 1`; with equal `u_i` it is attained
/// if no product of two columns is negative. (Signs `u_i = ±1` alone give too little: contributions are vectors.)
///
/// * One participation: the largest norm of a column.
/// * Non-negative coefficients that decrease along the diagonals: the steps `0, b, 2b, ...`, because `<c_i, c_j> =
///   Σ_m c_(m + j - i) c_m` over `m < T - j` decreases in the distance `j - i` and in `j`. The a-th step of an allowed set is
///   at least `a b`, and any two of its steps are at least as far apart as those of this set.
/// * Otherwise every allowed set is tried, up to 65536 of them. Beyond that,
///   ```text
///   Σ_{i,j in π} |<c_i, c_j>| <= Σ_{i in π} r_i,   r_i = max over allowed π' with i of Σ_{j in π'} |<c_i, c_j>|,
///   ```
///   both maxima by dynamic programming. It is attained as well if the steps of one record are at least as many apart as the
///   factor has bands, since the columns are then orthogonal.
///
/// All arithmetic rounds up.
///
/// # References
/// C. A. Choquette-Choo, H. B. McMahan, K. Rush, A. Thakurta, "Multi-epoch matrix factorization mechanisms for private
/// machine learning", ICML 2023, Theorem 2 and Corollary 2.1, arXiv 2211.06530. C. A. Choquette-Choo et al., 2023,
/// Theorem 2, arXiv 2306.08153. N. Kalinin, C. Lampert, 2024, Theorem 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FactorSensitivity {
    /// The bound.
    pub value: f64,
    /// True if some contributions attain it, up to rounding.
    pub attained: bool,
}

pub(super) fn sensitivity(factor: &Factor, participation: Participation) -> Result<FactorSensitivity, Error> {
    let most = participation.most_among(factor.steps as u64) as usize;
    match &factor.numerators {
        Numerators::Toeplitz(diagonals) if most == 1 => Ok(attained(squared_norm(diagonals.iter().copied()))),
        Numerators::Toeplitz(diagonals) if diagonals.is_sorted_by(|a, b| a >= b) && diagonals.last() >= Some(&0) => {
            Ok(attained(falling(factor, diagonals, participation, most)))
        }
        Numerators::Rows(_) if most == 1 => {
            let column = |i: usize| squared_norm((i..factor.steps).map(move |t| factor.numerator(t, i)));
            Ok(attained((0..factor.steps).map(column).fold(0.0, f64::max)))
        }
        _ if factor.steps <= MOST_ROWS => Ok(general(factor, participation, most, MOST_PATTERNS)),
        _ => Err(Error::OutOfRange {
            name: "steps",
            value: factor.steps as f64,
            range: "1..=4096 for several participations and coefficients that do not fall",
        }),
    }
}

fn attained(square: f64) -> FactorSensitivity {
    FactorSensitivity { value: root_up(square), attained: true }
}

/// Returns `√square` in units of 1, from units of `2^-80`.
fn root_up(square: f64) -> f64 {
    if square > 0.0 { sqrt_up(square) / UNIT } else { 0.0 }
}

/// Returns `Σ n²`, rounded up.
fn squared_norm(numerators: impl Iterator<Item = i64>) -> f64 {
    numerators.filter(|&numerator| numerator != 0).fold(0.0, |sum, numerator| {
        let magnitude = numerator.unsigned_abs() as f64; // exact: at most 2^51
        sum_up(sum, product_up(magnitude, magnitude))
    })
}

/// Returns the squared norm of the sum of the columns `0, b, 2b, ...`, rounded up.
fn falling(factor: &Factor, diagonals: &[i64], participation: Participation, most: usize) -> f64 {
    let separation = usize::try_from(participation.separation()).unwrap_or(usize::MAX);
    let entry = |t: usize| -> f64 {
        let terms = (0..most).map_while(|a| t.checked_sub(a.checked_mul(separation)?));
        let sum: i128 = terms.map(|distance| i128::from(diagonals.get(distance).copied().unwrap_or(0))).sum();
        let nearest = sum as f64;
        if sum <= 1 << 53 { nearest } else { nearest.next_up() }
    };
    (0..factor.steps)
        .map(entry)
        .filter(|&entry| entry > 0.0)
        .fold(0.0, |sum, entry| sum_up(sum, product_up(entry, entry)))
}

/// Computes the bound for any factor: tries every set, up to `limit` of them, or uses the bound by rows.
pub(super) fn general(factor: &Factor, participation: Participation, most: usize, limit: usize) -> FactorSensitivity {
    let products = Products::new(factor);
    // Every sum below has at most most² non-negative terms, and as many roundings of at most one unit of 2^-52 each.
    let rounding = 1.0 + (most * most + 4) as f64 * f64::EPSILON;
    let mut sums: Vec<f64> = vec![0.0];
    let mut largest = 0.0f64;
    let complete = participation.each_pattern(factor.steps, most, limit, &mut |pattern| {
        let Some((&last, before)) = pattern.split_last() else {
            return;
        };
        sums.truncate(pattern.len());
        let sum = sums.last().copied().unwrap_or(0.0)
            + before.iter().map(|&i| 2.0 * products.magnitude(i, last)).sum::<f64>()
            + products.magnitude(last, last);
        sums.push(sum);
        largest = largest.max(sum);
    });
    if complete {
        return FactorSensitivity { value: root_up(largest * rounding), attained: products.none_negative };
    }
    let rows: Vec<f64> =
        (0..factor.steps).map(|i| heaviest_row(&products, factor.steps, participation, i, most)).collect();
    let best = participation.heaviest(rows.into_iter(), most);
    let square = best.last().and_then(|row| row.last()).copied().unwrap_or(0.0);
    let orthogonal = participation.separation() >= factor.bands as u64;
    FactorSensitivity { value: root_up(square * rounding), attained: orthogonal }
}

/// Returns `r_i`: the heaviest allowed set that contains `i`, by `|<c_i, c_j>|`. The steps before `i` and those after it are
/// chosen independently, because `i` separates them.
fn heaviest_row(products: &Products, steps: usize, participation: Participation, i: usize, most: usize) -> f64 {
    let separation = usize::try_from(participation.separation()).unwrap_or(usize::MAX);
    let before = (i + 1).saturating_sub(separation);
    let after = i.saturating_add(separation).min(steps);
    let left = participation.heaviest((0..before).map(|j| products.magnitude(i, j)), most - 1);
    let right = participation.heaviest((after..steps).map(|j| products.magnitude(i, j)), most - 1);
    let (Some(left), Some(right)) = (left.last(), right.last()) else {
        return f64::INFINITY;
    };
    let others = left.iter().zip(right.iter().rev()).map(|(left, right)| left + right).fold(0.0, f64::max);
    products.magnitude(i, i) + others
}

/// Upper bounds on the products of columns, `|<c_i, c_j>|` in units of `2^-80`, for `j - i` below the bands.
struct Products {
    /// The bound for columns `i` and `j` is at `[j][j - i]`.
    magnitudes: Vec<Vec<f64>>,
    none_negative: bool,
}

impl Products {
    fn new(factor: &Factor) -> Self {
        let (steps, bands) = (factor.steps, factor.bands);
        let column = |i: usize| -> Vec<f64> {
            (i..steps.min(i + bands)).map(|t| factor.numerator(t, i) as f64).collect() // exact: at most 2^51
        };
        let columns: Vec<Vec<f64>> = (0..steps).map(column).collect();
        let mut none_negative = true;
        // Each sum of n products has a relative error, towards the sum of magnitudes, of at most n + 1 units of 2^-53.
        let unit = (bands as f64 + 4.0) * f64::EPSILON;
        let magnitudes = (0..steps)
            .map(|j| {
                let product = |distance: usize| {
                    let terms =
                        columns[j - distance][distance.min(columns[j - distance].len())..].iter().zip(&columns[j]);
                    let (sum, error) =
                        terms.fold((0.0f64, 0.0f64), |(sum, size), (a, b)| (sum + a * b, size + (a * b).abs()));
                    none_negative &= sum - error * unit >= 0.0 || error == 0.0;
                    (sum.abs() + error * unit) * (1.0 + 4.0 * f64::EPSILON)
                };
                (0..bands.min(j + 1)).map(product).collect()
            })
            .collect();
        Self { magnitudes, none_negative }
    }

    fn magnitude(&self, i: usize, j: usize) -> f64 {
        self.magnitudes[i.max(j)].get(i.abs_diff(j)).copied().unwrap_or(0.0)
    }
}
