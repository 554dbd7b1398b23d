//! Exact sums of multiples of rows: gradients of linear models, at the speed of a plain `axpy`.

use dp_accountant::Adjacency;
use nalgebra::RealField;
use pulp::{Arch, Simd, WithSimd};

use super::exact_sum::{DOUBLE_STEPS, count_up};
use super::{ClippingNorm, ClippingRule, UNIT_ROUNDOFF, norms_moved};
use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::grid::truncated;
use crate::instructions::arch_for;
use crate::rounding::{exponent, power_of_two, product_up};
use crate::sensitivity::L2Sensitivity;

/// Maximum number of bits of a row's entries, for which an entry is exact in double precision.
const MAX_ROW_BITS: u32 = 52;
/// Maximum number of bits of a scalar.
const MAX_SCALAR_BITS: u32 = 50;

/// A grid for rows of bounded norm; each row is truncated to it once, when it is loaded.
///
/// # Formula
/// ```text
/// q(x)_j = h · trunc(clip(x)_j / h),   h = 2^(r - bits),   2^r the least power of two that is at least the norm R
/// ```
///
/// # Privacy
/// `‖q(x)‖ <= ‖clip(x)‖ <= R` in exact arithmetic, since truncation shortens each coordinate; a row with a NaN or an
/// infinity becomes zero.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::{ClippingNorm, RowGrid};
/// let grid = RowGrid::new(ClippingNorm::new(1.0)?, 16)?;
/// let mut row = [0.6f32, 0.1, -0.1];
/// let truncated = grid.truncate(&mut row)?;
/// assert_eq!(truncated.entries()[1], 6553.0 / 65536.0);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowGrid {
    norm: ClippingNorm,
    bits: u32,
    step: f64,
}

impl RowGrid {
    /// Creates the grid for rows of this norm, with `bits` bits for the largest entry.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `bits` is in `1..=52`; [`Error::ScaleOverflow`] unless the norm is in `[2^-400, 2^400]`, in
    /// which no square under- or overflows.
    pub fn new(norm: ClippingNorm, bits: u32) -> Result<Self, Error> {
        if !(1..=MAX_ROW_BITS).contains(&bits) {
            return Err(Error::OutOfRange { name: "row bits", value: f64::from(bits), range: "1..=52" });
        }
        if !(power_of_two(-400)..=power_of_two(400)).contains(&norm.get()) {
            return Err(Error::ScaleOverflow { scale: norm.get() });
        }
        Ok(Self { norm, bits, step: power_of_two(exponent_up(norm.get()) - bits as i32) })
    }

    /// Clips and truncates a row in place. `F` must be able to represent the grid: at most 24 bits for `f32`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `F` cannot represent the grid; [`Error::Dimension`].
    pub fn truncate<'a, F: RealField + Copy>(&self, row: &'a mut [F]) -> Result<TruncatedRow<'a, F>, Error> {
        self.truncate_in_units(self.step, arch_for(row.len()), row)?;
        let inverse_norm = inverse_norm_down(row);
        Ok(TruncatedRow { grid: *self, entries: row, inverse_norm })
    }

    /// Clips and truncates a row in place, to whole numbers of steps.
    pub(super) fn truncate_to_steps(&self, arch: Arch, row: &mut [f64]) -> Result<(), Error> {
        self.truncate_in_units(1.0, arch, row)
    }

    fn truncate_in_units<F: RealField + Copy>(&self, step: f64, arch: Arch, row: &mut [F]) -> Result<(), Error> {
        dimension(row.len() as u64)?;
        self.check_float::<F>()?;
        arch.dispatch(Truncate { grid: self, step, row });
        Ok(())
    }

    /// Checks that every multiple of the step up to the norm is an `F`.
    fn check_float<F: RealField + Copy>(&self) -> Result<(), Error> {
        let epsilon: f64 = F::default_epsilon().to_subset_unchecked();
        let exact = |size: f64| {
            let converted: F = nalgebra::convert(size);
            let back: f64 = converted.to_subset_unchecked();
            back == size
        };
        // The entries have at most `bits` bits, or are one power of two; subnormal numbers have fewer.
        let largest = self.step * power_of_two(self.bits as i32);
        if self.bits as i32 <= 1 - exponent(epsilon) && exact(self.step) && exact(largest) {
            return Ok(());
        }
        let range = "at most as many bits as the float type holds at this norm";
        Err(Error::OutOfRange { name: "row bits", value: f64::from(self.bits), range })
    }

    /// Returns the norm of the longest accepted row.
    pub fn norm(&self) -> ClippingNorm {
        self.norm
    }

    /// Returns the number of bits of the largest entry.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the grid step.
    pub fn step(&self) -> f64 {
        self.step
    }
}

/// Clips and truncates a row in place.
struct Truncate<'a, F> {
    grid: &'a RowGrid,
    /// The value of one step in the result: the grid's step, or 1.
    step: f64,
    row: &'a mut [F],
}

impl<F: RealField + Copy> WithSimd for Truncate<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { grid, step, row } = self;
        ClippingRule::Flat(grid.norm).shortening(row).apply(row);
        let in_steps = 1.0 / grid.step; // exact
        for entry in row {
            let double: f64 = entry.to_subset_unchecked();
            *entry = nalgebra::convert(truncated(double * in_steps) * step);
        }
    }
}

/// A row on a [`RowGrid`], with its norm.
#[derive(Clone, Copy)]
pub struct TruncatedRow<'a, F> {
    grid: RowGrid,
    entries: &'a [F],
    /// Lower bound on `1 / ‖q‖`.
    inverse_norm: f64,
}

impl<F> TruncatedRow<'_, F> {
    /// Returns the entries.
    pub fn entries(&self) -> &[F] {
        self.entries
    }
}

/// Rows on one grid, contiguous in memory.
pub struct TruncatedRows<F> {
    grid: RowGrid,
    dim: usize,
    entries: Vec<F>,
    inverse_norms: Vec<f64>,
}

impl<F: RealField + Copy> TruncatedRows<F> {
    /// Creates an empty set of rows of `dim` entries each.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::OutOfRange`] if `F` cannot represent the grid.
    pub fn new(grid: RowGrid, dim: usize) -> Result<Self, Error> {
        dimension(dim as u64)?;
        grid.check_float::<F>()?;
        Ok(Self { grid, dim, entries: Vec::new(), inverse_norms: Vec::new() })
    }

    /// Appends a row, clipped and truncated.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`].
    pub fn push(&mut self, row: &[F]) -> Result<(), Error> {
        if row.len() != self.dim {
            return Err(Error::DimensionMismatch { expected: self.dim as u64, found: row.len() as u64 });
        }
        let start = self.entries.len();
        self.entries.extend_from_slice(row);
        let truncated = self.grid.truncate(&mut self.entries[start..])?;
        self.inverse_norms.push(truncated.inverse_norm);
        Ok(())
    }

    /// Returns the row at this index, if there is one.
    pub fn row(&self, index: usize) -> Option<TruncatedRow<'_, F>> {
        let &inverse_norm = self.inverse_norms.get(index)?;
        let entries = self.entries.get(index * self.dim..(index + 1) * self.dim)?;
        Some(TruncatedRow { grid: self.grid, entries, inverse_norm })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.inverse_norms.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.inverse_norms.is_empty()
    }
}

/// The sum of `s_i x_i` over records, each clipped to one norm, exact in any order of summation.
///
/// Only one scalar per record is clipped and truncated; the rows were truncated when they were loaded. So a record costs as much
/// as an `axpy`.
///
/// # Formula
/// ```text
/// sum = Σ_i t_i q_i,   t_i = u · trunc(clamp(s_i, ±C / ‖q_i‖) / u),   u = 2^(e - scalar_bits)
/// ```
/// where `q_i` is the truncated row and `2^e` the least power of two that is at least `C / R`.
///
/// # Privacy
/// Sensitivity `C` (`2 C` if a record is replaced), of the sum as computed:
/// * `‖t_i q_i‖ <= C`: `|t_i|` is at most the clamp, truncation only shortens, and the clamp is `C (1 - 4 2^-53)` times
///   a lower bound on `1 / ‖q_i‖`, both products rounded to nearest, hence at most `C / ‖q_i‖` in exact arithmetic.
/// * Every product is exact: `t_i` is a whole number of steps `u` and each entry of `q_i` of steps `h`, so that the
///   product is a whole number of steps `p = u h`; its magnitude is at most `C <= 2^53 p`, so it is a double.
/// * Every partial sum, of any of the records in any order, is a whole number of steps `p` and at most
///   `n C <= 2^53 p`: a double, so that neither an addition nor a fused multiply-add rounds.
///
/// A scalar that is not finite contributes zero. Truncation shortens a contribution by less than `u ‖q_i‖`.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_mechanisms::clip::{ClippingNorm, RankOneSum, RowGrid, TruncatedRows};
///
/// let one = ClippingNorm::new(1.0)?;
/// let grid = RowGrid::new(one, 16)?;
/// let mut rows = TruncatedRows::<f32>::new(grid, 2)?;
/// rows.push(&[0.6, 0.8])?;
/// rows.push(&[0.5, 0.0])?;
///
/// let mut sum = RankOneSum::<ZeroOut>::finest(2, grid, one, 500_000)?;
/// assert_eq!(sum.scalar_bits(), 18);
/// for (index, derivative) in [-0.25, 0.9].into_iter().enumerate() {
///     if let Some(row) = rows.row(index) {
///         sum.add(derivative, row)?;
///     }
/// }
/// assert_eq!(sum.finish().sensitivity().get(), 1.0);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub struct RankOneSum<A: Adjacency> {
    rows: RowGrid,
    scalar_bits: u32,
    scalar_step: f64,
    /// `C` minus a few units in the last place.
    target: f64,
    norm: ClippingNorm,
    most_records: u64,
    records: u64,
    total: Vec<f64>,
    sensitivity: L2Sensitivity<A>,
}

impl<A: Adjacency> RankOneSum<A> {
    /// Creates an empty sum of `dim` coordinates over rows of this grid, each contribution clipped to `norm`, with `scalar_bits`
    /// bits for the scalar of a row of full length.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::OutOfRange`] unless `scalar_bits` is in `1..=50` and the largest sum at most 2^53 steps;
    /// [`Error::ScaleOverflow`] if the step of a product is not a normal number.
    pub fn new(
        dim: usize,
        rows: RowGrid,
        norm: ClippingNorm,
        scalar_bits: u32,
        most_records: u64,
    ) -> Result<Self, Error> {
        dimension(dim as u64)?;
        if !(1..=MAX_SCALAR_BITS).contains(&scalar_bits) {
            return Err(Error::OutOfRange { name: "scalar bits", value: f64::from(scalar_bits), range: "1..=50" });
        }
        if most_records == 0 {
            return Err(Error::OutOfRange { name: "most records", value: 0.0, range: "[1, 2^64)" });
        }
        let full = product_exponent(norm, rows)?;
        let step = full - scalar_bits as i32;
        if !(-1000..=900).contains(&step) || !(-1000..=900).contains(&(step - exponent(rows.step))) {
            return Err(Error::ScaleOverflow { scale: norm.get() });
        }
        // At most 2^53 steps, and finite.
        let sum_in_steps = product_up(count_up(most_records), norm.get() * power_of_two(-step));
        if !(sum_in_steps <= DOUBLE_STEPS) {
            let range = "at most 2^53 steps: fewer bits, or fewer records";
            return Err(Error::OutOfRange { name: "largest sum in steps", value: sum_in_steps, range });
        }
        Ok(Self {
            rows,
            scalar_bits,
            scalar_step: power_of_two(step - exponent(rows.step)),
            target: norm.get() * (1.0 - 4.0 * UNIT_ROUNDOFF),
            norm,
            most_records,
            records: 0,
            total: vec![0.0; dim],
            sensitivity: L2Sensitivity::new(norms_moved::<A>() * norm.get())?,
        })
    }

    /// As [`new`](Self::new), with as many bits for the scalar as exactness allows.
    ///
    /// # Errors
    /// Those of [`new`](Self::new), if even one bit is too many.
    pub fn finest(dim: usize, rows: RowGrid, norm: ClippingNorm, most_records: u64) -> Result<Self, Error> {
        let mut bits = MAX_SCALAR_BITS;
        loop {
            match Self::new(dim, rows, norm, bits, most_records) {
                Err(Error::OutOfRange { name: "largest sum in steps", .. }) if bits > 1 => bits -= 1,
                result => return result,
            }
        }
    }

    /// Creates an empty sum of the same kind, for another thread; to be [merged](Self::merge).
    pub fn like(&self) -> Self {
        Self { records: 0, total: vec![0.0; self.total.len()], ..*self }
    }

    /// Adds `scalar · row`, clipped and truncated.
    ///
    /// # Errors
    /// [`Error::SumsDiffer`] for a row on another grid; [`Error::DimensionMismatch`]; [`Error::TooManyExamples`] beyond the
    /// stated number. In these cases nothing is added.
    #[inline]
    pub fn add<F: RealField + Copy>(&mut self, scalar: f64, row: TruncatedRow<'_, F>) -> Result<(), Error> {
        if row.grid != self.rows {
            return Err(Error::SumsDiffer);
        }
        if row.entries.len() != self.total.len() {
            let (expected, found) = (self.total.len() as u64, row.entries.len() as u64);
            return Err(Error::DimensionMismatch { expected, found });
        }
        if self.records == self.most_records {
            return Err(Error::TooManyExamples { most: self.most_records });
        }
        self.records += 1;
        let scalar = self.clipped(scalar, row.inverse_norm);
        for (total, &entry) in self.total.iter_mut().zip(row.entries) {
            let entry: f64 = entry.to_subset_unchecked();
            *total += scalar * entry;
        }
        Ok(())
    }

    /// Returns a whole number of scalar steps, at most `C / ‖q‖`; 0 for a scalar that is not finite.
    fn clipped(&self, scalar: f64, inverse_norm: f64) -> f64 {
        if !scalar.is_finite() {
            return 0.0;
        }
        // A row of zeros has an infinite inverse norm; its multiples are zero for any scalar.
        let bound = (self.target * inverse_norm).min(self.scalar_step * (0.25 * DOUBLE_STEPS));
        truncated(scalar.clamp(-bound, bound) * (1.0 / self.scalar_step)) * self.scalar_step
    }

    /// Adds another sum of the same kind.
    ///
    /// # Errors
    /// As [`ExactSum::merge`](super::ExactSum::merge).
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        let kind = |sum: &Self| (sum.rows, sum.scalar_step, sum.norm, sum.most_records, sum.total.len());
        if kind(self) != kind(&other) {
            return Err(Error::SumsDiffer);
        }
        let records = self.records.saturating_add(other.records);
        if records > self.most_records {
            return Err(Error::TooManyExamples { most: self.most_records });
        }
        self.records = records;
        self.total.iter_mut().zip(other.total).for_each(|(total, part)| *total += part);
        Ok(())
    }

    /// Returns the sum with its sensitivity and resets it to zero.
    pub fn finish(&mut self) -> Bounded<Vec<f64>, A> {
        self.records = 0;
        let zeros = vec![0.0; self.total.len()];
        Bounded::with_proven_sensitivity(core::mem::replace(&mut self.total, zeros), self.sensitivity)
    }

    /// Returns the sensitivity of the sum.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.sensitivity
    }

    /// Returns the number of bits of the scalar of a row of full length.
    pub fn scalar_bits(&self) -> u32 {
        self.scalar_bits
    }

    /// Returns the grid step of the contributions.
    pub fn step(&self) -> f64 {
        self.scalar_step * self.rows.step
    }
}

/// Returns the least `e` with `x <= 2^e`.
fn exponent_up(x: f64) -> i32 {
    let below = exponent(x);
    if x == power_of_two(below) { below } else { below + 1 }
}

/// Returns the exponent of the step of products for a scalar without bits.
fn product_exponent(norm: ClippingNorm, rows: RowGrid) -> Result<i32, Error> {
    let ratio = norm.get() / rows.norm.get();
    if !ratio.is_normal() {
        return Err(Error::ScaleOverflow { scale: ratio });
    }
    Ok(exponent_up(ratio) + exponent(rows.step))
}

/// Returns a lower bound on `1 / ‖q‖`, infinite for zero.
///
/// The computed norm is at least `‖q‖ (1 - (d/2 + 2) 2^-53)`; rows are on a grid whose squares do not underflow.
fn inverse_norm_down<F: RealField + Copy>(row: &[F]) -> f64 {
    let squared_norm: f64 = row
        .iter()
        .map(|&entry| {
            let entry: f64 = entry.to_subset_unchecked();
            entry * entry
        })
        .sum();
    (1.0 - (row.len() as f64 + 8.0) * UNIT_ROUNDOFF) / squared_norm.sqrt()
}

#[cfg(test)]
mod tests;
