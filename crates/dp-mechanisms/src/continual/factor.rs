//! Lower-triangular factors of the prefix-sum matrix, and the error of their releases.

use super::Participation;
use crate::error::Error;

mod sensitivity;
pub use sensitivity::FactorSensitivity;

/// Number of fractional bits of a coefficient.
pub(super) const COEFFICIENT_BITS: u32 = 40;
/// `2^40`.
const UNIT: f64 = (1u64 << COEFFICIENT_BITS) as f64;
/// The largest coefficient, and the largest sum of a row's magnitudes.
const LARGEST_ROW: f64 = 2048.0;
/// Maximum number of steps of a factor with constant diagonals.
const MOST_STEPS: usize = 1 << 20;
/// Maximum number of steps of a factor given entry by entry.
const MOST_ROWS: usize = 4096;

/// A public lower-triangular matrix `Cf` with a nonzero diagonal: the mechanism releases `Cf G + Z` and recovers prefix sums as
/// `B (Cf G + Z) = A G + B Z`, with `A` the matrix of prefix sums and `B = A Cf^-1`.
///
/// Coefficients are rounded to multiples of `2^-40` when the factor is created; sensitivity, release and recovery are those of
/// the rounded matrix, so that the rounding does not affect exactness.
///
/// # Examples
/// ```
/// use dp_mechanisms::continual::{Factor, Participation};
/// let factor = Factor::square_root(1000)?;
/// assert_eq!(factor.coefficient(5, 2), 0.3125); // binomial(6, 3) / 4^3
/// let sensitivity = factor.sensitivity(Participation::once())?;
/// assert!(sensitivity.attained && (sensitivity.value - 1.8069319524189147).abs() < 1e-10);
/// assert!((sensitivity.value * factor.largest_error() - 3.265003080672422).abs() < 1e-9);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// H. Fichtenberger, M. Henzinger, J. Upadhyay, "Constant matters: fine-grained complexity of differentially private
/// continual observation", ICML 2023, arXiv 2202.11205: the square root. C. A. Choquette-Choo et al., "(Amplified)
/// banded matrix factorization", NeurIPS 2023, arXiv 2306.08153: banded factors. N. Kalinin, C. Lampert, "Banded square
/// root matrix factorization for differentially private model training", NeurIPS 2024, arXiv 2405.13763.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "crate::record::continual::FactorRecord", into = "crate::record::continual::FactorRecord")
)]
pub struct Factor {
    steps: usize,
    bands: usize,
    numerators: Numerators,
}

/// Coefficients in units of `2^-40`.
#[derive(Debug, Clone, PartialEq)]
enum Numerators {
    /// Entries by distance from the diagonal.
    Toeplitz(Vec<i64>),
    /// Row `t` holds the entries of columns `0..=t`.
    Rows(Vec<Vec<i64>>),
}

impl Factor {
    /// Creates the square root of the matrix of prefix sums, `A = Cf Cf`: the coefficient at distance `j` from the diagonal is
    /// `binomial(2j, j) / 4^j`.
    ///
    /// Its error is within a small additive constant of the optimum, but it must keep the whole stream in memory.
    ///
    /// # Errors
    /// As [`toeplitz`](Self::toeplitz).
    pub fn square_root(steps: usize) -> Result<Self, Error> {
        Self::banded_square_root(steps, steps)
    }

    /// Creates the first `bands` diagonals of the [square root](Self::square_root): memory for `bands` steps, and a lower
    /// sensitivity if a record takes part at least `bands` steps apart.
    ///
    /// # Errors
    /// As [`toeplitz`](Self::toeplitz).
    pub fn banded_square_root(steps: usize, bands: usize) -> Result<Self, Error> {
        check_steps(steps, MOST_STEPS)?;
        let mut coefficients = vec![1.0];
        for j in 1..bands.min(steps) {
            let j = j as f64;
            let last = coefficients.last().map_or(1.0, |last| *last);
            coefficients.push(last * (2.0 * j - 1.0) / (2.0 * j));
        }
        Self::toeplitz(steps, &coefficients)
    }

    /// Creates a factor with constant coefficients along each diagonal, the main one first; the remaining diagonals are 0.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `steps` is in `1..=2^20`, the coefficients' magnitudes add up to at most 2048 and the first
    /// is nonzero after rounding; [`Error::NotFinite`]; [`Error::Length`] for none, or for more than steps.
    pub fn toeplitz(steps: usize, coefficients: &[f64]) -> Result<Self, Error> {
        check_steps(steps, MOST_STEPS)?;
        if coefficients.len() > steps {
            return Err(Error::Length { name: "coefficients", found: coefficients.len(), expected: "at most steps" });
        }
        let mut numerators = rounded(coefficients)?;
        check_diagonal(numerators.first().copied())?;
        while numerators.last() == Some(&0) {
            numerators.pop();
        }
        Ok(Self { steps, bands: numerators.len(), numerators: Numerators::Toeplitz(numerators) })
    }

    /// Creates a factor whose row `t`, counted from 0, holds the entries of columns `0..=t`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless there are `1..=4096` rows, each with magnitudes that add up to at most 2048 and a diagonal
    /// entry that is nonzero after rounding; [`Error::NotFinite`]; [`Error::Length`] for a row of another length.
    pub fn lower_triangular(rows: &[Vec<f64>]) -> Result<Self, Error> {
        check_steps(rows.len(), MOST_ROWS)?;
        let mut bands = 1;
        let mut all = Vec::with_capacity(rows.len());
        for (t, row) in rows.iter().enumerate() {
            if row.len() != t + 1 {
                let expected = "one more than the row before";
                return Err(Error::Length { name: "row of the factor", found: row.len(), expected });
            }
            let numerators = rounded(row)?;
            check_diagonal(numerators.last().copied())?;
            let zeros = numerators.iter().take_while(|numerator| **numerator == 0).count();
            bands = bands.max(row.len() - zeros);
            all.push(numerators);
        }
        Ok(Self { steps: rows.len(), bands, numerators: Numerators::Rows(all) })
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of diagonals, from the main one on, outside which all coefficients are 0.
    pub fn bands(&self) -> usize {
        self.bands
    }

    /// Returns the coefficient of the input of step `column` in the release of step `row`, both counted from 0.
    pub fn coefficient(&self, row: usize, column: usize) -> f64 {
        self.numerator(row, column) as f64 / UNIT
    }

    /// Returns the coefficient in units of `2^-40`; 0 outside the matrix.
    pub(super) fn numerator(&self, row: usize, column: usize) -> i64 {
        let Some(distance) = row.checked_sub(column) else {
            return 0;
        };
        match &self.numerators {
            Numerators::Toeplitz(diagonals) => diagonals.get(distance).copied().unwrap_or(0),
            Numerators::Rows(rows) => rows.get(row).and_then(|row| row.get(column)).copied().unwrap_or(0),
        }
    }

    /// Returns the rounded arguments of the constructor: the coefficients of the diagonals, or the rows.
    #[cfg(feature = "serde")]
    pub(crate) fn record(&self) -> crate::record::continual::FactorRecord {
        use crate::record::continual::FactorRecord;
        let coefficients =
            |numerators: &Vec<i64>| numerators.iter().map(|&numerator| numerator as f64 / UNIT).collect();
        match &self.numerators {
            Numerators::Toeplitz(diagonals) => {
                FactorRecord::Toeplitz { steps: self.steps, coefficients: coefficients(diagonals) }
            }
            Numerators::Rows(rows) => FactorRecord::Rows(rows.iter().map(coefficients).collect()),
        }
    }

    /// Returns the number of bits by which a row's combination can exceed its largest input, in units of `2^-40`.
    pub(super) fn growth_bits(&self) -> u32 {
        let magnitude = |numerators: &[i64]| numerators.iter().map(|numerator| numerator.unsigned_abs()).sum::<u64>();
        let largest = match &self.numerators {
            Numerators::Toeplitz(diagonals) => magnitude(diagonals),
            Numerators::Rows(rows) => rows.iter().map(|row| magnitude(row)).max().unwrap_or(0),
        };
        u64::BITS - largest.leading_zeros()
    }

    /// Returns the sensitivity of the whole release to a record with contributions of norm at most 1; see [`FactorSensitivity`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more than one participation in more than 4096 steps, unless coefficients are non-negative and
    /// decrease along the diagonals.
    pub fn sensitivity(&self, participation: Participation) -> Result<FactorSensitivity, Error> {
        sensitivity::sensitivity(self, participation)
    }

    /// Returns the standard deviation of the last and worst prefix sum for unit noise: the largest norm of a row of `B`.
    ///
    /// Computed in double precision, in time `steps · bands` for a Toeplitz factor, `steps` times as much for a general one.
    pub fn largest_error(&self) -> f64 {
        self.squared_errors().into_iter().fold(0.0, f64::max).sqrt()
    }

    /// Returns the root of the mean of the prefix sums' variances for unit noise.
    pub fn rms_error(&self) -> f64 {
        (self.squared_errors().into_iter().sum::<f64>() / self.steps as f64).sqrt()
    }

    /// Returns the squared norms of the rows of `B`, which solve `B Cf = A`.
    fn squared_errors(&self) -> Vec<f64> {
        match &self.numerators {
            Numerators::Toeplitz(diagonals) => {
                // B is Toeplitz too, and its first column b solves Σ_j c_j b_(t-j) = 1.
                let first = diagonals.first().map_or(1.0, |&first| first as f64 / UNIT);
                let mut column: Vec<f64> = Vec::with_capacity(self.steps);
                let mut sum = 0.0;
                let mut squares = Vec::with_capacity(self.steps);
                for _ in 0..self.steps {
                    let earlier = column.iter().rev().zip(&diagonals[1..]).map(|(b, &c)| b * c as f64).sum::<f64>();
                    let b = (1.0 - earlier / UNIT) / first;
                    column.push(b);
                    sum += b * b;
                    squares.push(sum);
                }
                squares
            }
            Numerators::Rows(_) => (0..self.steps).map(|t| self.squared_error_of_row(t)).collect(),
        }
    }

    /// Returns the squared norm of row `t` of `B`, computed from its last entry backwards.
    fn squared_error_of_row(&self, t: usize) -> f64 {
        let mut row = vec![0.0; t + 1];
        for column in (0..=t).rev() {
            let last = t.min(column + self.bands - 1);
            let later: f64 = (column + 1..=last).map(|i| row[i] * self.coefficient(i, column)).sum();
            row[column] = (1.0 - later) / self.coefficient(column, column);
        }
        row.iter().map(|entry| entry * entry).sum()
    }
}

fn check_steps(steps: usize, most: usize) -> Result<(), Error> {
    if (1..=most).contains(&steps) {
        return Ok(());
    }
    let range = if most == MOST_STEPS { "1..=2^20" } else { "1..=4096" };
    Err(Error::OutOfRange { name: "steps", value: steps as f64, range })
}

fn check_diagonal(numerator: Option<i64>) -> Result<(), Error> {
    match numerator {
        None => Err(Error::Length { name: "coefficients", found: 0, expected: "at least 1" }),
        Some(0) => {
            Err(Error::OutOfRange { name: "diagonal coefficient", value: 0.0, range: "at least 2^-40 in magnitude" })
        }
        Some(_) => Ok(()),
    }
}

/// Rounds coefficients to the nearest multiple of `2^-40`.
fn rounded(coefficients: &[f64]) -> Result<Vec<i64>, Error> {
    if let Some(&value) = coefficients.iter().find(|value| !value.is_finite()) {
        return Err(Error::NotFinite { name: "coefficient", value });
    }
    let magnitude = coefficients.iter().map(|value| value.abs()).sum::<f64>();
    if !(magnitude <= LARGEST_ROW) {
        let name = "sum of the magnitudes of a row's coefficients";
        return Err(Error::OutOfRange { name, value: magnitude, range: "[0, 2048]" });
    }
    Ok(coefficients.iter().map(|value| (value * UNIT).round() as i64).collect())
}

#[cfg(test)]
mod tests;
