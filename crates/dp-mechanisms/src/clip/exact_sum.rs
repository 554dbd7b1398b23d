//! Sums of clipped contributions that are exact in any order.

use dp_accountant::Adjacency;
use nalgebra::RealField;
use pulp::{Arch, Simd, WithSimd};

use super::norms_moved;
use super::shortening::{ClippingRule, Shortening};
use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::gaussian::Gaussian;
use crate::grid::truncated;
use crate::instructions::arch_for;
use crate::rounding::{power_of_two, product_up, scale_by_power_of_two, sqrt_up, sum_up};
use crate::sensitivity::L2Sensitivity;

/// Number of steps up to which every integer is a double.
pub(super) const DOUBLE_STEPS: f64 = (1u64 << 53) as f64;
/// Maximum number of steps in a contribution: below it, truncation works on the bits of the fraction.
const CONTRIBUTION_STEPS: f64 = 0.5 * DOUBLE_STEPS;
/// Maximum number of steps in a sum kept in integers.
const INTEGER_STEPS: f64 = (1u64 << 62) as f64;

/// The sum of one vector per record, each clipped and then truncated to a grid, so that the sum is exact.
///
/// The same records give the same bits in any order and with any division among threads: each thread adds to its own sum made by
/// [`like`](Self::like), and [`merge`](Self::merge) combines them.
///
/// # Formula
/// ```text
/// sum = Σ_i q_i,   q_i = g · trunc(clip(v_i) / g),   g a power of two
/// ```
///
/// # Privacy
/// Sensitivity `C` under [`AddRemoveOne`](dp_accountant::AddRemoveOne) and [`ZeroOut`](dp_accountant::ZeroOut), `2 C` under
/// [`ReplaceOne`](dp_accountant::ReplaceOne) and [`ChangeListLabels`](dp_accountant::ChangeListLabels), or less if versions of a
/// record are [closer](Self::within). This is the sensitivity of the sum as computed, without slack for rounding and without
/// assumptions. Each coordinate of `q_i` is at most the clipped vector's in magnitude, so that `‖q_i‖ <= C` in exact arithmetic;
/// it is a whole number of steps `g`; and partial sums of at most `n` of them, `n` the public bound on the records, are at most
/// `n C / g` steps.
/// * If that is at most 2^53, every partial sum is a double, so that no addition rounds.
/// * Otherwise sums are kept in 64-bit integers, and [`finish`](Self::finish) rounds once to multiples of `h = g 2^j`, the least
///   with `n C <= 2^53 h`. Rounding changes the difference of two sums by at most `h` in each coordinate, so that the sensitivity
///   is `C + h √d`, rounded up.
///
/// A record that is not finite contributes zero; this is not reported.
///
/// Truncation loses less than `g` per record and coordinate.
///
/// # Examples
/// ```
/// use dp_accountant::{EventLog, ZeroOut};
/// use dp_mechanisms::clip::{ClippingNorm, ExactSum};
/// use dp_mechanisms::{Gaussian, L2Sensitivity, Mechanism, OsSeeded};
///
/// let norm = ClippingNorm::new(1.0)?;
/// let gaussian = Gaussian::from_std_dev(L2Sensitivity::<ZeroOut>::new(norm.get())?, 2.0)?;
/// let mut sum = ExactSum::for_release(2, norm.into(), &gaussian, 1000)?;
/// for record in [[3.0, 4.0], [0.25, 0.0], [f64::NAN, 1.0]] {
///     sum.add(&record)?; // (0.6, 0.8) and (0.25, 0), and nothing
/// }
/// assert_eq!(sum.sensitivity().get(), 1.0);
/// let released = gaussian.release(sum.finish(), &mut EventLog::new(), &mut OsSeeded::new()?)?;
/// assert_eq!(released.get().len(), 2);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// S. Casacuberta, M. Shoemate, S. Vadhan, C. Wagaman, "Widespread underestimation of sensitivity in differentially private
/// libraries and how to fix it", CCS 2022, arXiv 2207.10635: the errors that this avoids.
pub struct ExactSum<A: Adjacency> {
    rule: ClippingRule,
    step: f64,
    most_records: u64,
    records: u64,
    total: Total,
    sensitivity: L2Sensitivity<A>,
    arch: Arch,
}

/// Whole numbers of steps.
enum Total {
    Doubles(Vec<f64>),
    /// Integers, and the number of low bits that the final result drops.
    Integers(Vec<i64>, u32),
}

impl Total {
    fn zeros(&self) -> Self {
        match self {
            Self::Doubles(total) => Self::Doubles(vec![0.0; total.len()]),
            Self::Integers(total, dropped) => Self::Integers(vec![0; total.len()], *dropped),
        }
    }

    fn dim(&self) -> usize {
        match self {
            Self::Doubles(total) => total.len(),
            Self::Integers(total, _) => total.len(),
        }
    }
}

impl<A: Adjacency> ExactSum<A> {
    /// Creates an empty sum of `dim` coordinates on multiples of `step`, for at most `most_records` records.
    ///
    /// `most_records` must bound the number of records of every data set; if that number is secret, it must be a public bound.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::OutOfRange`] unless `step` is a normal power of two and `most_records` at least 1, or if
    /// the clipping norm is more than 2^52 steps, or the sum can be more than 2^62 steps or overflow.
    pub fn new(dim: usize, rule: ClippingRule, step: f64, most_records: u64) -> Result<Self, Error> {
        let coordinates = dimension(dim as u64)? as f64;
        power_of_two_step(step)?;
        if most_records == 0 {
            return Err(Error::OutOfRange { name: "most records", value: 0.0, range: "[1, 2^64)" });
        }
        let norm = rule.norm().get();
        let norm_in_steps = norm * (1.0 / step);
        if !(norm_in_steps <= CONTRIBUTION_STEPS) {
            let range = "at most 2^52 steps";
            return Err(Error::OutOfRange { name: "clipping norm in steps", value: norm_in_steps, range });
        }
        let most = count_up(most_records);
        let sum_in_steps = if norm_in_steps.is_normal() { product_up(most, norm_in_steps) } else { 1.0 };
        if !(sum_in_steps <= INTEGER_STEPS && most * norm <= 0.5 * f64::MAX) {
            let range = "at most 2^62 steps and inside the doubles";
            return Err(Error::OutOfRange { name: "largest sum in steps", value: sum_in_steps, range });
        }
        let moved = norms_moved::<A>() * norm;
        let (total, sensitivity) = if sum_in_steps <= DOUBLE_STEPS {
            (Total::Doubles(vec![0.0; dim]), moved)
        } else {
            let mut dropped = 0;
            while sum_in_steps > DOUBLE_STEPS * power_of_two(dropped) {
                dropped += 1;
            }
            let rounding = rounding(step, dropped as u32, coordinates);
            (Total::Integers(vec![0; dim], dropped as u32), sum_up(moved, rounding))
        };
        let (sensitivity, arch) = (L2Sensitivity::new(sensitivity)?, arch_for(dim));
        Ok(Self { rule, step, most_records, records: 0, total, sensitivity, arch })
    }

    /// Creates an empty sum on the grid of the releases of `gaussian`, so that the sum needs no rounding there.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_release(
        dim: usize,
        rule: ClippingRule,
        gaussian: &Gaussian<A>,
        most_records: u64,
    ) -> Result<Self, Error> {
        Self::new(dim, rule, gaussian.grid().step(), most_records)
    }

    /// Reduces the sensitivity of the sum if two versions of one record's vector, as they are [added](Self::add), are at most
    /// `diameter` apart, which is less than two clipping norms.
    ///
    /// # Formula
    /// ```text
    /// sensitivity = min(2 C, diameter + 2^-50 (d + 32) C + g √d),   and what finish may round
    /// ```
    ///
    /// # Privacy
    /// The caller must prove that no two versions are farther apart; every contribution still has a norm of at most `C`. Flat
    /// clipping is the projection onto a ball, which does not increase distances; as computed, it and the product move either by
    /// at most `(d + 20) 2^-53` of `C`. Truncation to multiples of `g` adds less than `g` to a difference of coordinates. The
    /// sensitivity is unchanged under a relation that adds, removes or zeroes a record, and for normalised contributions, whose
    /// distance depends on their directions.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `diameter` is positive and finite.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::ReplaceOne;
    /// use dp_mechanisms::clip::{ClippingNorm, ExactSum};
    /// let norm = ClippingNorm::new(1.0)?;
    /// let sum = ExactSum::<ReplaceOne>::new(3, norm.into(), 2f64.powi(-40), 100)?;
    /// assert_eq!(sum.sensitivity().get(), 2.0);
    /// let closer = sum.within(1.25)?;
    /// assert!(closer.sensitivity().get() > 1.25 && closer.sensitivity().get() < 1.25 + 1e-11);
    /// # Ok::<(), dp_mechanisms::Error>(())
    /// ```
    pub fn within(self, diameter: f64) -> Result<Self, Error> {
        if !(diameter > 0.0 && diameter.is_finite()) {
            return Err(Error::OutOfRange { name: "diameter", value: diameter, range: "(0, inf)" });
        }
        let norm = self.rule.norm().get();
        let flat = matches!(self.rule, ClippingRule::Flat(_));
        if norms_moved::<A>() < 2.0 || !flat {
            return Ok(self);
        }
        let dim = self.total.dim() as f64;
        let clipping = product_up(norm, (dim + 32.0) * power_of_two(-50));
        let truncation = product_up(self.step, sqrt_up(dim));
        let apart = sum_up(diameter, sum_up(clipping, truncation)).min(2.0 * norm);
        let sensitivity = match &self.total {
            Total::Doubles(_) => apart,
            Total::Integers(_, dropped) => sum_up(apart, rounding(self.step, *dropped, dim)),
        };
        Ok(Self { sensitivity: L2Sensitivity::new(sensitivity)?, ..self })
    }

    /// Creates an empty sum of the same kind, for another thread; to be [merged](Self::merge).
    pub fn like(&self) -> Self {
        Self { records: 0, total: self.total.zeros(), ..*self }
    }

    /// Adds one record's vector, clipped and truncated.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`]; [`Error::TooManyExamples`] beyond the stated number. In these cases nothing is added.
    pub fn add<F: RealField + Copy>(&mut self, record: &[F]) -> Result<(), Error> {
        if record.len() != self.total.dim() {
            let (expected, found) = (self.total.dim() as u64, record.len() as u64);
            return Err(Error::DimensionMismatch { expected, found });
        }
        if self.records == self.most_records {
            return Err(Error::TooManyExamples { most: self.most_records });
        }
        self.records += 1;
        self.arch.dispatch(AddRecord { rule: self.rule, in_steps: 1.0 / self.step, record, total: &mut self.total });
        Ok(())
    }

    /// Adds another sum of the same kind.
    ///
    /// # Errors
    /// [`Error::SumsDiffer`] unless both were built with the same parameters; [`Error::TooManyExamples`] if both together have
    /// more records than stated. In these cases nothing is added.
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        let same = self.rule == other.rule && self.step == other.step && self.most_records == other.most_records;
        let records = self.records.saturating_add(other.records);
        match (&mut self.total, &other.total) {
            _ if !same => return Err(Error::SumsDiffer),
            (Total::Doubles(total), Total::Doubles(part)) if total.len() == part.len() => {
                check_records(records, self.most_records)?;
                total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
            }
            (Total::Integers(total, _), Total::Integers(part, _)) if total.len() == part.len() => {
                check_records(records, self.most_records)?;
                total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
            }
            _ => return Err(Error::SumsDiffer),
        }
        self.records = records;
        Ok(())
    }

    /// Adds the sum of `records` contributions that was computed elsewhere, in whole steps.
    ///
    /// # Privacy
    /// The caller states that each of the contributions is a whole number of steps with a norm of at most the clipping norm;
    /// the basis of this statement becomes an assumption of the release: [`Bounded::assuming`].
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`]; [`Error::TooManyExamples`] beyond the stated number; [`Error::ImpossibleSum`] for a
    /// sum that so many contributions cannot have. In these cases nothing is added.
    pub fn add_from_elsewhere(&mut self, sum: &[i64], records: u64) -> Result<(), Error> {
        if sum.len() != self.total.dim() {
            let (expected, found) = (self.total.dim() as u64, sum.len() as u64);
            return Err(Error::DimensionMismatch { expected, found });
        }
        let all = self.records.saturating_add(records);
        check_records(all, self.most_records)?;
        let most = product_up(count_up(records), self.rule.norm().get() * (1.0 / self.step));
        if sum.iter().any(|found| !(found.unsigned_abs() as f64 <= most)) {
            return Err(Error::ImpossibleSum);
        }
        match &mut self.total {
            // Below 2^53 steps, so that the conversion is exact.
            Total::Doubles(total) => total.iter_mut().zip(sum).for_each(|(total, part)| *total += *part as f64),
            Total::Integers(total, _) => total.iter_mut().zip(sum).for_each(|(total, part)| *total += part),
        }
        self.records = all;
        Ok(())
    }

    /// Returns the sum with its sensitivity and resets it to zero.
    pub fn finish(&mut self) -> Bounded<Vec<f64>, A> {
        self.records = 0;
        let zeros = self.total.zeros();
        let sum = match core::mem::replace(&mut self.total, zeros) {
            Total::Doubles(mut total) => {
                total.iter_mut().for_each(|coordinate| *coordinate *= self.step);
                total
            }
            Total::Integers(total, dropped) => {
                let (half, step) = (1i64 << (dropped - 1), self.step * power_of_two(dropped as i32));
                // At most 2^62 + half, and 2^53 after the shift.
                total.into_iter().map(|coordinate| ((coordinate + half) >> dropped) as f64 * step).collect()
            }
        };
        Bounded::with_proven_sensitivity(sum, self.sensitivity)
    }

    /// Returns the sensitivity of the sum.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.sensitivity
    }

    /// Returns the grid step of the contributions.
    pub fn step(&self) -> f64 {
        self.step
    }
}

/// Returns a bound on the change of a difference of two sums when both are rounded to multiples of `step 2^dropped`.
fn rounding(step: f64, dropped: u32, coordinates: f64) -> f64 {
    product_up(step * power_of_two(dropped as i32), sqrt_up(coordinates))
}

fn check_records(records: u64, most: u64) -> Result<(), Error> {
    if records <= most { Ok(()) } else { Err(Error::TooManyExamples { most }) }
}

/// Converts a count to a double, rounded up.
pub(super) fn count_up(count: u64) -> f64 {
    let nearest = count as f64; // exact up to 2^53
    if count <= 1 << 53 { nearest } else { nearest.next_up() }
}

/// Checks a normal power of two whose inverse is normal too.
fn power_of_two_step(step: f64) -> Result<(), Error> {
    let mantissa = step.to_bits() & ((1 << 52) - 1);
    if step > 0.0 && step.is_normal() && (1.0 / step).is_normal() && mantissa == 0 {
        return Ok(());
    }
    Err(Error::OutOfRange { name: "step", value: step, range: "powers of two in [2^-1022, 2^1022]" })
}

/// Adds a record's vector, clipped and truncated.
struct AddRecord<'a, F> {
    rule: ClippingRule,
    /// The inverse of the step, exact.
    in_steps: f64,
    record: &'a [F],
    total: &'a mut Total,
}

impl<F: RealField + Copy> WithSimd for AddRecord<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { rule, in_steps, record, total } = self;
        match rule.shortening(record) {
            Shortening::Drop => {}
            Shortening::Keep => add_truncated(total, record, in_steps),
            // One product instead of two, exact in its exponent unless the factor is not a normal number. A product with an entry
            // for which this happens is below one step.
            Shortening::Scale { power: 0, factor } if (factor * in_steps).is_normal() => {
                add_truncated(total, record, factor * in_steps);
            }
            Shortening::Scale { power, factor } => add_rescaled(total, record, power, factor, in_steps),
        }
    }
}

/// Adds `trunc(factor · entry)` to `total` for each entry, without a branch, so that the loop is vectorised.
#[inline(always)]
fn add_truncated<F: RealField + Copy>(total: &mut Total, record: &[F], factor: f64) {
    match total {
        Total::Doubles(total) => {
            for (total, &entry) in total.iter_mut().zip(record) {
                let entry: f64 = entry.to_subset_unchecked();
                *total += truncated(entry * factor);
            }
        }
        Total::Integers(total, _) => {
            for (total, &entry) in total.iter_mut().zip(record) {
                let entry: f64 = entry.to_subset_unchecked();
                *total += truncated(entry * factor) as i64;
            }
        }
    }
}

/// As [`add_truncated`] for `2^power · factor · in_steps`, whose product is not a normal number or whose power is exact.
#[cold]
fn add_rescaled<F: RealField + Copy>(total: &mut Total, record: &[F], power: i32, factor: f64, in_steps: f64) {
    for (i, &entry) in record.iter().enumerate() {
        let steps = truncated(scale_by_power_of_two(entry.to_subset_unchecked(), power) * factor * in_steps);
        match total {
            Total::Doubles(total) => total[i] += steps,
            Total::Integers(total, _) => total[i] += steps as i64,
        }
    }
}

#[cfg(test)]
mod tests;
