//! Exact sums of second moments for least squares.

use dp_accountant::Adjacency;
use nalgebra::{DMatrix, RealField};
use pulp::Arch;

use super::outer_products::{self, OuterProducts};
use super::rank_one::RowGrid;
use super::{ClippingNorm, UNIT_ROUNDOFF, norms_moved};
use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::instructions::arch_for;
use crate::sensitivity::L2Sensitivity;

/// Base-2 logarithm of the largest sum of doubles that are whole numbers of steps, in steps.
const DOUBLE_STEPS_LOG2: u32 = 53;

/// The sums of `x xᵀ` and `x tᵀ` over records with a row `x` and targets `t`, each clipped to a norm, exact in any order of
/// summation.
///
/// # Formula
/// ```text
/// [ Σ x_i²;  √2 Σ x_i x_j (i < j);  Σ x_i t_k ]        d(d+1)/2 + d m numbers
/// ```
/// The factor makes the Euclidean norm of one record's `x xᵀ` part its Frobenius norm, `‖x‖²`.
///
/// # Privacy
/// With `‖x‖ <= X` and `‖t‖ <= Y`, a record's contribution has norm `‖x‖ √(‖x‖² + ‖t‖²) <= X √(X² + Y²)`, which is the
/// sensitivity to a record's presence. A replaced record moves the sums by at most
/// ```text
/// √( 2X⁴ (1 - c²) + 2X²Y² (1 + c) ),   c = min(1, Y²/(2X²)),
/// ```
/// `√4.5` for `X = Y = 1`: with lengths `r = tX`, `r' = X` and inner products `⟨x, x'⟩ = c r r'`, `⟨t, t'⟩ = -Y²`, the squared
/// distance is `r⁴ + r'⁴ - 2c² r² r'² + Y² (r² + r'² + 2c r r')`. With the best `c` for each `t` it is largest at `t = 1`,
/// because its derivative by `t` is non-negative. (For two records with given `rr'`, the squared distance increases in `r² +
/// r'²`, so that one of the lengths is `X`.)
///
/// Rows and targets are truncated to grids ([`RowGrid`]), so that every product and every partial sum is a whole number of steps,
/// fewer than `2^53`: no addition rounds, and the sums differ by exactly one record's contribution. The factor `√2` is multiplied
/// at the end; its rounding is added to the sensitivity.
///
/// # Accuracy
/// An entry has at most 14 binary digits, fewer for more than `2^25` records. In a row `x` it is shortened by a fraction of about
/// `√d 2^-15 X/‖x‖`, up to twice that if `X` is no power of two. For rows of length `X` and `2^25` records, this is a fifth of the
/// error `√(d/n)` of a least-squares solution without noise whose residuals are as large as the targets. A bound `X` far above the
/// rows costs digits, and more noise.
///
/// # Examples
/// ```
/// use dp_accountant::{ReplaceOne, ZeroOut};
/// use dp_mechanisms::clip::{ClippingNorm, MomentSum};
///
/// let one = ClippingNorm::new(1.0)?;
/// let mut sum = MomentSum::<ZeroOut>::new(3, 1, one, one, 1000)?;
/// sum.add(&[0.6, 0.0, 0.8], &[1.0])?;
/// assert!((sum.finish().sensitivity().get() - 2f64.sqrt()).abs() < 1e-9);
/// let replaced = MomentSum::<ReplaceOne>::new(3, 1, one, one, 1000)?;
/// assert!((replaced.sensitivity().get() - 4.5f64.sqrt()).abs() < 1e-9);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// D. Vu, A. Slavkovic, "Differential privacy for clinical trials: preliminary evaluations", ICDMW 2009; Y.-X. Wang,
/// "Revisiting differentially private linear regression", UAI 2018 (sufficient statistics perturbation). The sensitivity
/// under replacement is derived here.
pub struct MomentSum<A: Adjacency> {
    dim: usize,
    outputs: usize,
    rows: RowGrid,
    /// `None` if there are no targets.
    targets: Option<RowGrid>,
    most_records: u64,
    records: u64,
    /// The products of rows followed by their targets, in steps of their grids.
    products: OuterProducts,
    /// The machine's instructions.
    arch: Arch,
    sensitivity: L2Sensitivity<A>,
}

impl<A: Adjacency> MomentSum<A> {
    /// Creates an empty sum over rows of `dim` entries and `outputs` targets each, clipped to these norms, for at most
    /// `most_records` records.
    ///
    /// # Errors
    /// [`Error::Dimension`] for no entries, no targets, or more moments than 2^32; [`Error::OutOfRange`] for no records or more
    /// than 2^33, which would leave too few bits; [`Error::ScaleOverflow`] for norms outside `[2^-400, 2^400]`.
    pub fn new(
        dim: usize,
        outputs: usize,
        row_norm: ClippingNorm,
        target_norm: ClippingNorm,
        most_records: u64,
    ) -> Result<Self, Error> {
        dimension(outputs as u64)?;
        Self::with_targets(dim, outputs, row_norm, Some(target_norm), most_records)
    }

    /// Creates an empty sum of `x xᵀ` alone: no targets, `d(d+1)/2` numbers.
    ///
    /// # Privacy
    /// As above with `Y = 0`: a record's presence moves the sums by at most `X²`, its replacement by `√2 X²`, which two
    /// orthogonal rows attain. So for `x = √h z` the sum is one of curvatures `h z zᵀ`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::ReplaceOne;
    /// use dp_mechanisms::clip::{ClippingNorm, MomentSum};
    /// let mut sum = MomentSum::<ReplaceOne>::squares(2, ClippingNorm::new(0.5)?, 1000)?;
    /// sum.add(&[0.25, 0.0], &[])?;
    /// assert!((sum.sensitivity().get() - 0.25 * 2f64.sqrt()).abs() < 1e-9);
    /// assert_eq!(sum.moments(), 3);
    /// # Ok::<(), dp_mechanisms::Error>(())
    /// ```
    pub fn squares(dim: usize, row_norm: ClippingNorm, most_records: u64) -> Result<Self, Error> {
        Self::with_targets(dim, 0, row_norm, None, most_records)
    }

    fn with_targets(
        dim: usize,
        outputs: usize,
        row_norm: ClippingNorm,
        target_norm: Option<ClippingNorm>,
        most_records: u64,
    ) -> Result<Self, Error> {
        dimension(dim as u64)?;
        let length = moments(dim, outputs).ok_or(Error::Dimension { dimension: u64::MAX })?;
        dimension(length as u64)?;
        // With `n <= 2^k`, sums of `n` products of two numbers of b bits need 2b + k bits.
        let bits = most_records.checked_next_power_of_two().map_or(64, u64::trailing_zeros);
        let each = (DOUBLE_STEPS_LOG2.saturating_sub(bits) / 2).min(outer_products::MOST_BITS);
        if most_records == 0 || each < 10 {
            let value = most_records as f64;
            return Err(Error::OutOfRange { name: "most records", value, range: "[1, 2^33]" });
        }
        let rows = RowGrid::new(row_norm, each)?;
        let targets = target_norm.map(|norm| RowGrid::new(norm, each)).transpose()?;
        let target_norm = target_norm.map_or(0.0, ClippingNorm::get);
        let sensitivity = L2Sensitivity::new(sensitivity::<A>(row_norm.get(), target_norm, dim, most_records))?;
        let products = OuterProducts::new(dim, outputs);
        Ok(Self { dim, outputs, rows, targets, most_records, records: 0, products, arch: Arch::new(), sensitivity })
    }

    /// Adds one record, clipped and truncated. A row or target that is not finite counts as zeros.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`]; [`Error::TooManyExamples`] beyond the stated number. In these cases nothing is added.
    pub fn add<F: RealField + Copy>(&mut self, row: &[F], targets: &[F]) -> Result<(), Error> {
        for (expected, found) in [(self.dim, row.len()), (self.outputs, targets.len())] {
            if expected != found {
                return Err(Error::DimensionMismatch { expected: expected as u64, found: found as u64 });
            }
        }
        if self.records == self.most_records {
            return Err(Error::TooManyExamples { most: self.most_records });
        }
        let Self { rows, targets: grid, products, arch, .. } = self;
        products.add(|row_place, target_place| {
            row_place.iter_mut().zip(row).for_each(|(place, entry)| *place = entry.to_subset_unchecked());
            rows.truncate_to_steps(*arch, row_place)?;
            if let Some(grid) = grid {
                target_place.iter_mut().zip(targets).for_each(|(place, entry)| *place = entry.to_subset_unchecked());
                grid.truncate_to_steps(arch_for(targets.len()), target_place)?;
            }
            Ok(())
        })?;
        self.records += 1;
        Ok(())
    }

    /// Adds the records of another sum, such as one that another thread computed: the result is that of one sum of all of them,
    /// to the last bit.
    ///
    /// # Errors
    /// [`Error::SumsDiffer`] unless both were built with the same parameters; [`Error::TooManyExamples`] if both together have
    /// more records than stated. In these cases nothing is added.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::ZeroOut;
    /// use dp_mechanisms::clip::{ClippingNorm, MomentSum};
    ///
    /// let one = ClippingNorm::new(1.0)?;
    /// let sum = || MomentSum::<ZeroOut>::new(1, 1, one, one, 2);
    /// let (mut a, mut b) = (sum()?, sum()?);
    /// a.add(&[0.3], &[1.0])?;
    /// b.add(&[0.9], &[-1.0])?;
    /// a.merge(b)?;
    /// assert!(a.add(&[0.5], &[1.0]).is_err()); // it holds two records
    /// # Ok::<(), dp_mechanisms::Error>(())
    /// ```
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        let parameters = |sum: &Self| (sum.dim, sum.outputs, sum.rows, sum.targets, sum.most_records);
        if parameters(self) != parameters(&other) {
            return Err(Error::SumsDiffer);
        }
        if other.records > self.most_records - self.records {
            return Err(Error::TooManyExamples { most: self.most_records });
        }
        self.products.merge(other.products);
        self.records += other.records;
        Ok(())
    }

    /// Adds sums over `records` records that were computed elsewhere: for each entry i of a row its products with the entries from i on,
    /// then with the targets, without the factor `√2`, in products of the grids' steps.
    ///
    /// # Privacy
    /// The caller states that each record was clipped and truncated as by [`add`](Self::add); the basis of this statement
    /// becomes an assumption of the release: [`Bounded::assuming`].
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`]; [`Error::TooManyExamples`] beyond the stated number; [`Error::ImpossibleSum`] for a sum that so
    /// many records cannot have. In these cases nothing is added.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::ZeroOut;
    /// use dp_mechanisms::clip::{ClippingNorm, MomentSum};
    ///
    /// let one = ClippingNorm::new(1.0)?;
    /// let mut sum = MomentSum::<ZeroOut>::new(2, 1, one, one, 1000)?;
    /// let unit = 1i64 << sum.bits();
    /// // A record with row (1, 0) and target -1.
    /// sum.add_from_elsewhere(&[unit * unit, 0, -unit * unit, 0, 0], 1)?;
    /// assert!(sum.add_from_elsewhere(&[unit * unit + 1, 0, 0, 0, 0], 1).is_err());
    /// # Ok::<(), dp_mechanisms::Error>(())
    /// ```
    pub fn add_from_elsewhere(&mut self, sums: &[i64], records: u64) -> Result<(), Error> {
        if sums.len() != self.moments() {
            let (expected, found) = (self.moments() as u64, sums.len() as u64);
            return Err(Error::DimensionMismatch { expected, found });
        }
        if records > self.most_records - self.records {
            return Err(Error::TooManyExamples { most: self.most_records });
        }
        // An entry is at most 2^bits steps, and there are at most 2^53 steps in all.
        let most = records << (2 * self.rows.bits());
        let places = || {
            let (dim, all) = (self.dim, self.dim + self.outputs);
            (0..dim).flat_map(move |i| (i..all).map(move |j| (i, j)))
        };
        if places().zip(sums).any(|((i, j), sum)| sum.unsigned_abs() > most || i == j && *sum < 0) {
            return Err(Error::ImpossibleSum);
        }
        for ((i, j), &sum) in places().zip(sums).collect::<Vec<_>>() {
            self.products.add_to(i, j, sum);
        }
        self.records += records;
        Ok(())
    }

    /// Returns the number of binary digits of an entry: the grids' steps are `2^-bits` for norms of 1.
    pub fn bits(&self) -> u32 {
        self.rows.bits()
    }

    /// Returns the sums with their sensitivity, for [`Moments::new`] after their release, and resets them to zero.
    pub fn finish(&mut self) -> Bounded<Vec<f64>, A> {
        self.records = 0;
        let in_steps = self.products.finish();
        let (row_step, target_step) = (self.rows.step(), self.targets.map_or(1.0, |grid| grid.step()));
        // Exact: fewer than 2^53 steps, which are powers of two.
        let sum = |i: usize, j: usize| in_steps(i, j) * row_step * if j < self.dim { row_step } else { target_step };
        let mut sums = Vec::with_capacity(self.moments());
        for i in 0..self.dim {
            sums.push(sum(i, i));
            sums.extend((i + 1..self.dim).map(|j| core::f64::consts::SQRT_2 * sum(i, j)));
            sums.extend((self.dim..self.dim + self.outputs).map(|j| sum(i, j)));
        }
        Bounded::with_proven_sensitivity(sums, self.sensitivity)
    }

    /// Returns the sensitivity of the sums.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.sensitivity
    }

    /// Returns the part of the [sensitivity](Self::sensitivity) that covers the rounding of the factor `√2`.
    pub fn rounding(&self) -> f64 {
        rounding(self.rows.norm().get(), self.dim, self.most_records)
    }

    /// Returns the grid to which rows are truncated.
    pub fn row_grid(&self) -> RowGrid {
        self.rows
    }

    /// Returns the number of moments: `d(d+1)/2 + d m`.
    pub fn moments(&self) -> usize {
        self.dim * (self.dim + 1) / 2 + self.dim * self.outputs
    }
}

/// Returns `d(d+1)/2 + d m`.
fn moments(dim: usize, outputs: usize) -> Option<usize> {
    let square = dim.checked_mul(dim.checked_add(1)?)? / 2;
    square.checked_add(dim.checked_mul(outputs)?)
}

/// Returns the bound of [`MomentSum`], rounded up, plus the rounding of the factor `√2`: at most a unit roundoff of each sum, on
/// both sides, for sums of at most `n X²`.
fn sensitivity<A: Adjacency>(row_norm: f64, target_norm: f64, dim: usize, most_records: u64) -> f64 {
    let (x, y) = (row_norm, target_norm);
    let exact = if norms_moved::<A>() == 1.0 {
        x * x.hypot(y)
    } else {
        let c = (0.5 * (y / x).powi(2)).min(1.0);
        x * (2.0 * x * x * (1.0 - c * c) + 2.0 * y * y * (1.0 + c)).sqrt()
    };
    (exact + rounding(x, dim, most_records)) * (1.0 + 32.0 * f64::EPSILON)
}

fn rounding(row_norm: f64, dim: usize, most_records: u64) -> f64 {
    2.0 * UNIT_ROUNDOFF * dim as f64 * most_records as f64 * row_norm * row_norm
}

/// Released second moments, as a matrix and a vector for each target.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::Moments;
/// let root = 2f64.sqrt();
/// let moments = Moments::new(&[1.0, 0.5 * root, 7.0, 2.0, 8.0], 2, 1).unwrap();
/// assert!((moments.matrix[(0, 1)] - 0.5).abs() < 1e-15 && moments.matrix[(1, 1)] == 2.0);
/// assert_eq!(moments.vectors.as_slice(), [7.0, 8.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// `Σ x xᵀ`, symmetric.
    pub matrix: DMatrix<f64>,
    /// `Σ x tᵀ`: one column for each target.
    pub vectors: DMatrix<f64>,
}

impl Moments {
    /// Creates the moments from the numbers of a [`MomentSum`] over rows of `dim` entries and `outputs` targets; `None` for a
    /// different number of them.
    pub fn new(numbers: &[f64], dim: usize, outputs: usize) -> Option<Self> {
        if moments(dim, outputs) != Some(numbers.len()) {
            return None;
        }
        let (mut matrix, mut vectors) = (DMatrix::zeros(dim, dim), DMatrix::zeros(dim, outputs));
        let mut rest = numbers.iter();
        for i in 0..dim {
            for j in i..dim {
                let sum = rest.next()?;
                let moment = if i == j { *sum } else { sum * core::f64::consts::FRAC_1_SQRT_2 };
                matrix[(i, j)] = moment;
                matrix[(j, i)] = moment;
            }
            for k in 0..outputs {
                vectors[(i, k)] = *rest.next()?;
            }
        }
        Some(Self { matrix, vectors })
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::{AddRemoveOne, ReplaceOne, ZeroOut};
    use proptest::prelude::*;
    use rand::RngExt;

    use super::*;
    use crate::rng::SeededRng;

    fn norm(value: f64) -> ClippingNorm {
        ClippingNorm::new(value).unwrap()
    }

    /// Returns the sums of records, as released without noise.
    fn sums(records: &[(Vec<f64>, Vec<f64>)], row_norm: f64, target_norm: f64, most: u64) -> Vec<f64> {
        added(empty(&records[0], row_norm, target_norm, most), records)
    }

    /// Returns an empty sum for records with as many numbers as this one.
    fn empty((row, targets): &(Vec<f64>, Vec<f64>), row_norm: f64, target_norm: f64, most: u64) -> MomentSum<ZeroOut> {
        MomentSum::new(row.len(), targets.len(), norm(row_norm), norm(target_norm), most).unwrap()
    }

    fn added(mut sum: MomentSum<ZeroOut>, records: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
        records.iter().for_each(|(row, targets)| sum.add(row, targets).unwrap());
        sum.finish().open().0
    }

    /// The sums are those of the rows truncated to 14 bits, and a record moves them by no more than the sensitivity.
    #[test]
    fn entries_are_truncated() {
        let mut rng = SeededRng::new(9);
        let most = 1000;
        for (dim, outputs, size) in [(1, 1, 1.0), (70, 1, 0.2), (70, 3, 3.0), (9, 2, 0.3)] {
            let records: Vec<_> = (0..150).map(|_| record(&mut rng, dim, outputs, size)).collect();
            let empty = || empty(&records[0], 1.0, 2.0, most);
            assert_eq!(empty().bits(), 14);
            let found = added(empty(), &records);
            let on_grid = |norm: f64, vector: &[f64]| {
                let mut vector = vector.to_vec();
                RowGrid::new(ClippingNorm::new(norm).unwrap(), 14).unwrap().truncate(&mut vector).unwrap();
                vector
            };
            let truncated: Vec<_> =
                records.iter().map(|(row, targets)| (on_grid(1.0, row), on_grid(2.0, targets))).collect();
            assert_eq!(found, sums(&truncated, 1.0, 2.0, most), "{dim} {outputs}");
            for ((row, targets), (on_row, on_targets)) in records.iter().zip(&truncated) {
                let factor = 1f64.min(1.0 / row.iter().map(|x| x * x).sum::<f64>().sqrt());
                assert!(row.iter().zip(on_row).all(|(x, on)| (x * factor - on).abs() <= 2f64.powi(-13)));
                assert!(targets.len() > 1 || (targets[0].clamp(-2.0, 2.0) - on_targets[0]).abs() <= 2f64.powi(-12));
            }
            let (bound, moved) = (empty().sensitivity().get(), distance(&found, &added(empty(), &records[1..])));
            assert!(moved <= bound, "{moved} {bound}");
        }
        // Sums that were computed elsewhere are in their own steps.
        let record = (vec![0.5, 0.25], vec![1.0]);
        let empty = || empty(&record, 1.0, 2.0, most);
        let (mut sum, unit) = (empty(), 1i64 << empty().bits());
        let steps = [unit * unit / 4, unit * unit / 8, unit * unit / 4, unit * unit / 16, unit * unit / 8];
        sum.add_from_elsewhere(&steps, 1).unwrap();
        assert_eq!(sum.finish().open().0, added(empty(), core::slice::from_ref(&record)));
    }

    #[test]
    fn merged_sums_have_the_bits_of_one() {
        let mut rng = SeededRng::new(5);
        let records: Vec<_> = (0..50).map(|_| record(&mut rng, 4, 2, 1.5)).collect();
        let empty = || empty(&records[0], 1.0, 2.0, 50);
        let of = |records: &[(Vec<f64>, Vec<f64>)]| {
            let mut sum = empty();
            records.iter().for_each(|(row, targets)| sum.add(row, targets).unwrap());
            sum
        };
        let whole = sums(&records, 1.0, 2.0, 50);
        for cut in [0, 1, 3, 25, 47, 50] {
            let (mut merged, other) = (of(&records[..cut]), of(&records[cut..]));
            merged.merge(other).unwrap();
            assert!(matches!(merged.merge(of(&records[..1])), Err(Error::TooManyExamples { most: 50 })));
            assert_eq!(merged.finish().open().0, whole, "{cut}");
        }
        // A sum whose records may be larger, or more, would have another sensitivity.
        for (dim, outputs, row_norm, target_norm, most) in [
            (5, 2, 1.0, 2.0, 50),
            (4, 1, 1.0, 2.0, 50),
            (4, 2, 1.5, 2.0, 50),
            (4, 2, 1.0, 2.5, 50),
            (4, 2, 1.0, 2.0, 51),
        ] {
            let other = MomentSum::<ZeroOut>::new(dim, outputs, norm(row_norm), norm(target_norm), most).unwrap();
            assert_eq!(empty().merge(other), Err(Error::SumsDiffer));
        }
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    fn record(rng: &mut SeededRng, dim: usize, outputs: usize, size: f64) -> (Vec<f64>, Vec<f64>) {
        let mut numbers = |count| (0..count).map(|_| rng.random_range(-size..size)).collect();
        (numbers(dim), numbers(outputs))
    }

    #[test]
    fn moments_are_those_of_the_records() {
        let mut rng = SeededRng::new(1);
        for count in [1, 3, 4, 5, 11] {
            let records: Vec<_> = (0..count).map(|_| record(&mut rng, 3, 2, 0.5)).collect();
            let moments = Moments::new(&sums(&records, 1.0, 1.0, 100), 3, 2).unwrap();
            for i in 0..3 {
                for j in 0..3 {
                    let expected: f64 = records.iter().map(|(x, _)| x[i] * x[j]).sum();
                    assert!((moments.matrix[(i, j)] - expected).abs() < 1e-4 * f64::from(count), "{count}: {i} {j}");
                }
                for k in 0..2 {
                    let expected: f64 = records.iter().map(|(x, t)| x[i] * t[k]).sum();
                    assert!((moments.vectors[(i, k)] - expected).abs() < 1e-4 * f64::from(count), "{count}: {i} {k}");
                }
            }
        }
        assert_eq!(Moments::new(&[1.0; 4], 2, 1), None);
        // Zeros at any position: which of four records have the first entry, which the second.
        for pattern in 0..1u32 << 8 {
            let entry = |bit: usize, x: f64| if pattern >> bit & 1 == 1 { x } else { 0.0 };
            let records: Vec<_> =
                (0..4).map(|i| (vec![entry(i, 0.5), entry(i + 4, 0.25)], vec![0.125 * (i + 1) as f64])).collect();
            let found = Moments::new(&sums(&records, 1.0, 1.0, 100), 2, 1).unwrap();
            let of = |f: fn(&(Vec<f64>, Vec<f64>)) -> f64| records.iter().map(f).sum::<f64>();
            assert_eq!(found.matrix[(0, 0)], of(|(x, _)| x[0] * x[0]));
            assert_eq!(found.vectors[(1, 0)], of(|(x, t)| x[1] * t[0]));
        }
    }

    /// Sums of so many records that the product with `√2` rounds visibly, with and without a record of full length.
    #[test]
    fn the_factor_is_rounded_within_the_sensitivity() {
        let (dim, most) = (16, 1u64 << 33);
        let mut rng = SeededRng::new(5);
        let new = || MomentSum::<ZeroOut>::new(dim, 1, norm(1.0), norm(1.0), most).unwrap();
        let (mut with, mut without) = (new(), new());
        for i in 0..dim {
            for j in i..=dim {
                let sum = rng.random_range(0..most << 10) as i64;
                // The products of a row of entries 1/4 and a target 1.
                let product = 1 << if j == dim { 8 } else { 6 };
                let bits = 2 * without.bits() - 10;
                without.products.add_to(i, j, sum << bits);
                with.products.add_to(i, j, (sum + product) << bits);
            }
        }
        let bound = with.sensitivity().get();
        let moved = distance(&with.finish().open().0, &without.finish().open().0);
        assert!(moved > 2f64.sqrt() * (1.0 + 1e-12) && moved <= bound, "{moved} {bound}");
    }

    /// A factor `√2` for every entry off the diagonal, each rounded once on either side: the sums are at most `n X²`, and the sum
    /// of all their squares at most `(n X²)²`.
    #[test]
    fn there_is_room_for_every_rounding() {
        for (x, y, dim, most) in [(1.0, 1.0, 1, 1 << 33), (3.0, 0.5, 20, 1 << 33), (0.25, 2.0, 300, 1 << 20)] {
            let sum = MomentSum::<ZeroOut>::new(dim, 1, norm(x), norm(y), most).unwrap();
            let roundings = f64::EPSILON * most as f64 * x * x;
            assert!(sum.rounding() >= roundings && sum.rounding() <= 1.001 * dim as f64 * roundings);
            let exact = sum.sensitivity().get() - sum.rounding();
            assert!((exact / (x * x.hypot(y)) - 1.0).abs() < 1e-12, "{exact}");
        }
    }

    /// No pair of records in two dimensions moves the sums by more than the bound, and some nearly attain it.
    #[test]
    fn replaced_records_move_the_sums_by_no_more_than_is_said() {
        for (x, y) in [(1.0, 1.0), (1.0, 0.3), (1.0, 3.0), (0.5, 0.7)] {
            let bound = MomentSum::<ReplaceOne>::new(2, 1, norm(x), norm(y), 10).unwrap().sensitivity().get();
            let mut largest: f64 = 0.0;
            for angle in 0..=180 {
                for (first, second) in [(1.0, 1.0), (1.0, 0.7), (1.0, 0.3), (0.8, 0.6), (1.0, 0.0)] {
                    let (sin, cos) = f64::from(angle).to_radians().sin_cos();
                    let one = vec![(vec![first * x, 0.0], vec![y])];
                    let other = vec![(vec![second * x * cos, second * x * sin], vec![-y])];
                    let moved = distance(&sums(&one, x, y, 10), &sums(&other, x, y, 10));
                    assert!(moved <= bound, "{x} {y} {angle} {first} {second}: {moved} above {bound}");
                    largest = largest.max(moved);
                }
            }
            assert!(largest > 0.9995 * bound, "{x} {y}: {largest} of {bound}");
        }
        let replaced = MomentSum::<ReplaceOne>::new(2, 1, norm(1.0), norm(1.0), 10).unwrap().sensitivity().get();
        assert!((replaced / 4.5f64.sqrt() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nonsense_counts_as_zeros() {
        let one = norm(1.0);
        assert!(MomentSum::<AddRemoveOne>::new(0, 1, one, one, 10).is_err());
        assert!(MomentSum::<AddRemoveOne>::new(1, 0, one, one, 10).is_err());
        assert!(MomentSum::<AddRemoveOne>::new(1 << 20, 1, one, one, 10).is_err());
        assert!(MomentSum::<AddRemoveOne>::new(2, 1, one, one, 0).is_err());
        assert!(MomentSum::<AddRemoveOne>::new(2, 1, one, one, u64::MAX).is_err());
        let mut sum = MomentSum::<AddRemoveOne>::new(2, 1, one, one, 2).unwrap();
        assert_eq!(sum.moments(), 5);
        assert!(sum.add(&[0.1], &[1.0]).is_err() && sum.add(&[0.1, 0.2], &[]).is_err());
        sum.add(&[f64::NAN, 0.2], &[1.0]).unwrap();
        sum.add(&[0.3, 0.2], &[f64::INFINITY]).unwrap();
        assert!(matches!(sum.add(&[0.1, 0.2], &[1.0]), Err(Error::TooManyExamples { most: 2 })));
        let sums = sum.finish().open().0;
        assert!((sums[0] - 0.09).abs() < 1e-4 && sums[2] == 0.0, "{sums:?}");
    }

    proptest! {
        /// The bits are the same in any order, and a record's presence moves the sums by at most the sensitivity, for rows of any
        /// length.
        #[test]
        fn sums_are_exact_and_bounded(seed in 0u64..1000, dim in 1usize..6, outputs in 1usize..3, size in 0.01..3.0f64) {
            let mut rng = SeededRng::new(seed);
            let mut records: Vec<_> = (0..9).map(|_| record(&mut rng, dim, outputs, size)).collect();
            let most = 1 << 30; // few bits
            let all = sums(&records, 0.8, 1.3, most);
            records.reverse();
            prop_assert_eq!(&all, &sums(&records, 0.8, 1.3, most));
            let without = sums(&records[1..], 0.8, 1.3, most);
            let sum = MomentSum::<ZeroOut>::new(dim, outputs, norm(0.8), norm(1.3), most).unwrap();
            prop_assert!(distance(&all, &without) <= sum.sensitivity().get());
        }
    }
}
