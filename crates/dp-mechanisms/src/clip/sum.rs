//! The sum of a batch's clipped gradients.

use core::fmt;
use core::marker::PhantomData;

use dp_accountant::Adjacency;
use nalgebra::RealField;

use super::confined::sensitivity_of_sum_in_float;
use super::gradient_clipping::{Clipping, GradientClipping};
use super::{UNIT_ROUNDOFF, norms_moved};
use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::sensitivity::L2Sensitivity;

/// Largest fraction of the clipping norm that may be reserved for rounding.
pub(super) const LARGEST_SLACK: f64 = 0.125;

/// Returns the sensitivity of a sum of `examples` vectors of norm at most `bound`, added up in double precision, if the exact
/// sums of neighbours differ by at most `difference`.
///
/// # Formula
/// ```text
/// difference + 2 γ n B,   γ = r / (1 - r),   r = (min(m, n) + 3 + [k > 1] k² u) u,   k = ⌈n/m⌉,   u = 2^-53
/// ```
/// for microbatches of at most `m`, as [`ClippedSum`] adds them up. At `m` = 1024 the second term is 2e-7 B for a million
/// examples and 2e-4 B for 1e9.
///
/// # Privacy
/// For each example, a coordinate of a microbatch's sum has one product and at most `m - 1` additions that round, in any order,
/// fused or not. The first microbatch is the total. Each other is added by Knuth's two-sum, whose error is known exactly and
/// accumulated separately: that sum's own rounding is at most `k u` of at most `k` errors, each at most `u` of a partial sum, so
/// `(k u)²` of `Σ_i |v_ij|`; adding the errors to the total is one more rounding. So the error of a coordinate is at most `γ Σ_i
/// |v_ij|` and that of the sum `γ n B` in norm, for both neighbours. The division into microbatches does not matter, and may
/// change entirely if a record is removed: smaller ones are more than `k`, and `r` is two units above what is needed, which covers
/// 1e8 of them.
///
/// # Errors
/// [`Error::OutOfRange`] if the second term would exceed an eighth of the bound.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::sensitivity_of_sum;
/// assert!(sensitivity_of_sum(1.0, 1.0, 1_000_000_000, 1024)? < 1.000_24);
/// assert!(sensitivity_of_sum(1.0, 1.0, 1_000_000_000, 1_000_000_000).is_err());
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub fn sensitivity_of_sum(difference: f64, bound: f64, examples: u64, microbatch: u64) -> Result<f64, Error> {
    let (microbatch, count) = (microbatch.max(1), examples as f64);
    let parts = examples.div_ceil(microbatch) as f64;
    let across = if parts > 1.0 { parts * parts * UNIT_ROUNDOFF } else { 0.0 };
    let share = (microbatch.min(examples) as f64 + 3.0 + across) * UNIT_ROUNDOFF;
    let slack = 2.0 * (share / (1.0 - share)) * count;
    if !(share < 0.01 && slack <= LARGEST_SLACK) {
        return Err(Error::OutOfRange { name: "slack for the rounding of a sum", value: slack, range: "[0, 1/8]" });
    }
    // Above any rounding error of the few operations here.
    Ok((difference + 2.0 * (share / (1.0 - share)) * count * bound) * (1.0 + 1e-15))
}

/// The sum of gradients, each clipped by one [rule](GradientClipping), with a sensitivity that covers the rounding of the sum.
///
/// It does not know the model. [`add`](Self::add) takes the squared norms of a microbatch, computes a coefficient for each
/// example and calls a closure that adds `Σ_i coefficient_i · gradient_i`. [`finish`](Self::finish) returns the sum as a
/// [`Bounded`] and starts again.
///
/// Microbatches are summed in double precision, or, after [`in_float`](Self::in_float), in `F`: faster where a matrix product sums
/// them, at the price of more slack and of microbatches cut by [`microbatches`](super::microbatches). Totals are in double precision
/// in either case.
///
/// # Formula
/// ```text
/// sum = Σ_i c_i g_i,   c_i = min(1, C (1 - (r + K + 7) u) / ‖g_i‖),   ‖g_i‖² = Σ over blocks of squared_norms
/// ```
/// where `u` is the unit roundoff of `F`, `K` the number of blocks, and `r` = `norm_roundings` is the relative amount, in units of `u`, by which a squared
/// norm of a block may be too small. Other rules have the same reserve for rounding.
///
/// # Shapes
/// `squared_norms` and the coefficients hold examples x blocks numbers, the blocks of one example next to each other. The sum has
/// `dim` coordinates.
///
/// # Privacy
/// Up to rounding, the sensitivity is `C` under [`AddRemoveOne`](dp_accountant::AddRemoveOne) and
/// [`ZeroOut`](dp_accountant::ZeroOut), and `2 C` under [`ReplaceOne`](dp_accountant::ReplaceOne) and
/// [`ChangeListLabels`](dp_accountant::ChangeListLabels), where the example's contribution is replaced by another. It depends on
/// the relation and not on the clipping. [`sensitivity`](Self::sensitivity) holds for the sum *as computed*:
/// * A contribution's norm is at most `C`. With a squared norm that is too small by `r u` relatively, the root's error is `(r/2 +
///   1) u` at most. The target (for a share of it three times), the quotient, the denominator and the root round once to double
///   precision, the coefficient and its product with the gradient's factor once to `F`: less than `(r + 8) u` together, including
///   second-order terms; adding the norms of blocks rounds `K - 1` times. Where squares of a gradient's entries underflow, the norm is far below `C`
///   and `gamma`.
/// * The rounding of the sum adds the second term of [`sensitivity_of_sum`], or the terms that [`in_float`](Self::in_float) states.
///
/// The caller must ensure that:
/// * no squared norm is too small because squares of one of its factors underflow;
/// * the closure adds `Σ_i c_i g_i` and nothing else, with gradients of the given norms, each coordinate of an example by one
///   product and one addition in the microbatch's precision, and exactly nothing for a coefficient 0, whatever the example contains;
/// * `most_examples` bounds the batch for every data set (if the number of records is secret, it is a public bound).
///
/// An example whose norm is NaN or infinite has coefficient 0. This is not reported, because it depends on the data.
///
/// # Examples
/// ```
/// use dp_accountant::{EventLog, NoiseMultiplier, ZeroOut};
/// use dp_mechanisms::clip::{ClippedSum, ClippingNorm};
/// use dp_mechanisms::{Gaussian, Mechanism, OsSeeded};
///
/// let gradients = [[3.0, 4.0], [0.1, 0.0]];
/// let mut sum = ClippedSum::<f64, ZeroOut>::new(2, 1, ClippingNorm::new(1.0)?, 2.0, 8, 100)?;
/// sum.add(&[25.0, 0.01], |coefficients, sum| {
///     for (c, gradient) in coefficients.iter().zip(gradients) {
///         sum[0] += c * gradient[0]; // the first gradient is clipped to (0.6, 0.8)
///         sum[1] += c * gradient[1];
///     }
/// })?;
/// let bounded = sum.finish();
/// assert!((bounded.sensitivity().get() - 1.0).abs() < 1e-12);
///
/// let gaussian = Gaussian::from_noise_multiplier(bounded.sensitivity(), NoiseMultiplier::new(1.1)?)?;
/// let noisy = gaussian.release(bounded, &mut EventLog::new(), &mut OsSeeded::new()?)?;
/// assert_eq!(noisy.get().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ClippedSum<F, A: Adjacency> {
    microbatches: Microbatches<F, A>,
    most_examples: u64,
    examples: u64,
    coefficients: Vec<F>,
    /// Number of microbatches since the last sum.
    parts: u64,
    total: Vec<f64>,
    /// The accumulated rounding errors of the total; empty before the second microbatch.
    errors: Vec<f64>,
    /// A microbatch other than the first.
    part: Vec<f64>,
    /// A microbatch in `F`.
    float_part: Vec<F>,
}

/// Sums microbatches outside of a [`ClippedSum`], for example on other threads, for [`append`](ClippedSum::append).
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_mechanisms::clip::{ClippedSum, ClippingNorm};
///
/// let mut sum = ClippedSum::<f64, ZeroOut>::new(1, 1, ClippingNorm::new(1.0)?, 1.0, 8, 100)?;
/// let microbatches = sum.microbatches();
/// // On any thread: gradients 3 and 0.25, of which the first is clipped.
/// let part = microbatches.sum(&[9.0, 0.0625], &mut Vec::new(), |coefficients, sum| {
///     sum[0] += coefficients[0] * 3.0 + coefficients[1] * 0.25;
/// })?;
/// sum.append(part)?;
/// assert!((sum.sensitivity().get() - 1.0).abs() < 1e-12);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Microbatches<F, A: Adjacency> {
    dim: usize,
    blocks: usize,
    /// Maximum number of examples.
    most: usize,
    clipping: Option<Clipping>,
    /// True if microbatches are summed in `F`.
    in_float: bool,
    sensitivity: L2Sensitivity<A>,
    float: PhantomData<fn() -> F>,
}

/// The sum of one microbatch, clipped by [`Microbatches`].
///
/// It has no copy, so that it is appended once: its examples would otherwise contribute twice the clipping norm.
pub struct MicrobatchSum<F, A: Adjacency> {
    rule: Microbatches<F, A>,
    examples: usize,
    sum: Part<F>,
}

enum Part<F> {
    InDouble(Vec<f64>),
    InFloat(Vec<F>),
}

impl<F, A: Adjacency> fmt::Debug for MicrobatchSum<F, A> {
    // A function of records: never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MicrobatchSum").field("dim", &self.rule.dim).finish_non_exhaustive()
    }
}

impl<F: RealField + Copy, A: Adjacency> Microbatches<F, A> {
    /// Sums one microbatch, as [`ClippedSum::add`] does and under the same conditions; `coefficients` is a buffer.
    ///
    /// # Errors
    /// [`Error::Length`] unless `squared_norms` holds a whole number of examples, at most a microbatch.
    pub fn sum(
        &self,
        squared_norms: &[F],
        coefficients: &mut Vec<F>,
        add_weighted: impl FnOnce(&[F], &mut [f64]),
    ) -> Result<MicrobatchSum<F, A>, Error> {
        let examples = self.coefficients(squared_norms, coefficients, false)?;
        let mut sum = vec![0.0; self.dim];
        add_weighted(coefficients, &mut sum);
        Ok(MicrobatchSum { rule: *self, examples, sum: Part::InDouble(sum) })
    }

    /// As [`sum`](Self::sum), for a sum [`in_float`](ClippedSum::in_float); `buffer` becomes the sum.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn sum_in_float(
        &self,
        squared_norms: &[F],
        coefficients: &mut Vec<F>,
        mut buffer: Vec<F>,
        add_weighted: impl FnOnce(&[F], &mut [F]),
    ) -> Result<MicrobatchSum<F, A>, Error> {
        let examples = self.coefficients(squared_norms, coefficients, true)?;
        buffer.clear();
        buffer.resize(self.dim, F::zero());
        add_weighted(coefficients, &mut buffer);
        Ok(MicrobatchSum { rule: *self, examples, sum: Part::InFloat(buffer) })
    }

    /// Sets the coefficients of a microbatch that is summed in `F`, or in double precision, and returns its number of examples.
    fn coefficients(&self, squared_norms: &[F], coefficients: &mut Vec<F>, in_float: bool) -> Result<usize, Error> {
        if in_float != self.in_float {
            return Err(Error::SumsDiffer);
        }
        let examples = self.examples(squared_norms)?;
        self.set_coefficients(squared_norms, coefficients);
        Ok(examples)
    }

    /// Returns whether contributions are clipped.
    pub fn clips(&self) -> bool {
        self.clipping.is_some()
    }

    /// Returns whether microbatches are summed in `F`: see [`ClippedSum::in_float`].
    pub fn is_in_float(&self) -> bool {
        self.in_float
    }

    /// Returns whether both have the same parameters.
    fn is(&self, other: &Self) -> bool {
        let numbers =
            |rule: &Self| (rule.dim, rule.blocks, rule.most, rule.clipping, rule.in_float, rule.sensitivity.get());
        numbers(self) == numbers(other)
    }

    fn examples(&self, squared_norms: &[F]) -> Result<usize, Error> {
        let examples = squared_norms.len() / self.blocks;
        if !squared_norms.len().is_multiple_of(self.blocks) || examples > self.most {
            let expected = "examples x blocks, at most one microbatch";
            return Err(Error::Length { name: "squared norms", found: squared_norms.len(), expected });
        }
        Ok(examples)
    }

    fn set_coefficients(&self, squared_norms: &[F], coefficients: &mut Vec<F>) {
        coefficients.clear();
        let Some(clipping) = self.clipping else {
            coefficients.resize(squared_norms.len(), F::one());
            return;
        };
        for blocks in squared_norms.chunks_exact(self.blocks) {
            clipping.set_coefficients(blocks, coefficients);
        }
    }
}

impl<F: RealField + Copy, A: Adjacency> ClippedSum<F, A> {
    /// Creates an empty sum of `dim` coordinates for gradients of `blocks` blocks, whose squared norms are too small by at most
    /// `norm_roundings` unit roundoffs of `F`, relatively, in microbatches of at most `microbatch` examples and at most
    /// `most_examples` in total.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::Length`] for no blocks or an empty microbatch; [`Error::OutOfRange`] if rounding would take
    /// more than an eighth of the norm (of the norms, or of the sum: see [`sensitivity_of_sum`]), and for a clipping norm whose
    /// square is not well inside the range of `F`.
    pub fn new(
        dim: usize,
        blocks: usize,
        rule: impl Into<GradientClipping>,
        norm_roundings: f64,
        microbatch: usize,
        most_examples: u64,
    ) -> Result<Self, Error> {
        let rule = rule.into();
        let norm = rule.norm().get();
        let sum = Self::of_bounded(dim, blocks, (norms_moved::<A>() * norm, norm), microbatch, most_examples)?;
        let clipping = Clipping::new::<F>(rule, blocks, norm_roundings)?;
        Ok(Self { microbatches: Microbatches { clipping: Some(clipping), ..sum.microbatches }, ..sum })
    }

    /// Creates a sum of contributions that are bounded without clipping: the first number bounds the difference of neighbouring
    /// sums, the second the norm of a contribution. All coefficients are 1, and only the number of the squared norms given to
    /// [`add`](Self::add) is used.
    ///
    /// # Privacy
    /// Both bounds are the caller's claim, as in [`Bounded::with_proven_sensitivity`].
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_bounded(
        dim: usize,
        blocks: usize,
        (difference, bound): (f64, f64),
        microbatch: usize,
        most_examples: u64,
    ) -> Result<Self, Error> {
        dimension(dim as u64)?;
        if blocks == 0 {
            return Err(Error::Length { name: "blocks", found: 0, expected: "at least 1" });
        }
        if microbatch == 0 {
            return Err(Error::Length { name: "microbatch", found: 0, expected: "at least 1" });
        }
        let sensitivity = sensitivity_of_sum(difference, bound, most_examples, microbatch as u64)?;
        let sensitivity = L2Sensitivity::new(sensitivity)?;
        Ok(Self {
            microbatches: Microbatches {
                dim,
                blocks,
                most: microbatch,
                clipping: None,
                in_float: false,
                sensitivity,
                float: PhantomData,
            },
            most_examples,
            examples: 0,
            coefficients: Vec::new(),
            parts: 0,
            total: Vec::new(),
            errors: Vec::new(),
            part: Vec::new(),
            float_part: Vec::new(),
        })
    }

    /// Sums microbatches in `F` from now on: [`add_in_float`](Self::add_in_float) in place of [`add`](Self::add).
    ///
    /// # Privacy
    /// The sensitivity is that of [`sensitivity_of_sum_in_float`]. Microbatches must be those of [`microbatches`](super::microbatches)
    /// for the positions of the batch's examples, in any order.
    ///
    /// # Errors
    /// Those of [`sensitivity_of_sum_in_float`]; [`Error::SumsDiffer`] without clipping, and once microbatches have been added.
    pub fn in_float(self) -> Result<Self, Error> {
        let Microbatches { most, clipping, .. } = self.microbatches;
        let (Some(clipping), 0) = (clipping, self.parts) else { return Err(Error::SumsDiffer) };
        let (moved, norm) = (norms_moved::<A>(), clipping.rule.norm().get());
        let sensitivity = sensitivity_of_sum_in_float::<F>(moved, norm, self.most_examples, most as u64)?;
        let sensitivity = L2Sensitivity::new(sensitivity)?;
        Ok(Self { microbatches: Microbatches { in_float: true, sensitivity, ..self.microbatches }, ..self })
    }

    /// Adds one microbatch: `add_weighted(coefficients, sum)` must add `Σ_i coefficients_i · gradient_i` to `sum`.
    ///
    /// # Errors
    /// [`Error::Length`] unless `squared_norms` holds a whole number of examples, at most a microbatch;
    /// [`Error::TooManyExamples`] beyond the stated number. In these cases nothing is added.
    pub fn add(&mut self, squared_norms: &[F], add_weighted: impl FnOnce(&[F], &mut [f64])) -> Result<(), Error> {
        self.begin(squared_norms, false)?;
        let place = if self.parts == 0 { &mut self.total } else { &mut self.part };
        place.clear();
        place.resize(self.microbatches.dim, 0.0);
        add_weighted(&self.coefficients, place);
        self.add_up();
        Ok(())
    }

    /// As [`add`](Self::add), for a sum [`in_float`](Self::in_float).
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_in_float(
        &mut self,
        squared_norms: &[F],
        add_weighted: impl FnOnce(&[F], &mut [F]),
    ) -> Result<(), Error> {
        self.begin(squared_norms, true)?;
        self.float_part.clear();
        self.float_part.resize(self.microbatches.dim, F::zero());
        add_weighted(&self.coefficients, &mut self.float_part);
        self.add_up_float();
        Ok(())
    }

    /// Counts the examples of a microbatch and sets their coefficients.
    fn begin(&mut self, squared_norms: &[F], in_float: bool) -> Result<(), Error> {
        let examples = self.microbatches.coefficients(squared_norms, &mut self.coefficients, in_float)?;
        self.examples = self.count(examples)?;
        Ok(())
    }

    /// Adds the sum of a microbatch, with the result of [`add`](Self::add) on its examples, to the last bit.
    ///
    /// # Errors
    /// [`Error::SumsDiffer`] unless it has the parameters of this sum; [`Error::TooManyExamples`] beyond the stated number. In
    /// these cases nothing is added.
    pub fn append(&mut self, part: MicrobatchSum<F, A>) -> Result<(), Error> {
        if !part.rule.is(&self.microbatches) {
            return Err(Error::SumsDiffer);
        }
        self.examples = self.count(part.examples)?;
        match part.sum {
            Part::InDouble(sum) => {
                if self.parts == 0 {
                    self.total = sum;
                } else {
                    self.part = sum;
                }
                self.add_up();
            }
            Part::InFloat(sum) => {
                self.float_part = sum;
                self.add_up_float();
            }
        }
        Ok(())
    }

    /// Returns the buffer of the last microbatch in `F`, so that a further one needs no allocation.
    pub fn float_buffer(&mut self) -> Vec<F> {
        core::mem::take(&mut self.float_part)
    }

    /// Returns the number of examples with `more` of them.
    fn count(&self, more: usize) -> Result<u64, Error> {
        let count = self.examples.saturating_add(more as u64);
        if count > self.most_examples { Err(Error::TooManyExamples { most: self.most_examples }) } else { Ok(count) }
    }

    /// Adds the last microbatch to the total; the first one is the total.
    fn add_up(&mut self) {
        self.parts += 1;
        if self.parts == 1 {
            return;
        }
        if self.parts == 2 {
            self.errors.clear();
            self.errors.resize(self.microbatches.dim, 0.0);
        }
        for ((total, error), &part) in self.total.iter_mut().zip(&mut self.errors).zip(&self.part) {
            let (sum, lost) = two_sum(*total, part);
            *total = sum;
            *error += lost;
        }
    }

    /// Adds the last microbatch in `F` to the total.
    fn add_up_float(&mut self) {
        self.parts += 1;
        if self.parts == 1 {
            self.total.clear();
            self.total.extend(self.float_part.iter().map(|&part| -> f64 { part.to_subset_unchecked() }));
            return;
        }
        for (total, &part) in self.total.iter_mut().zip(&self.float_part) {
            let part: f64 = part.to_subset_unchecked();
            *total += part;
        }
    }

    /// Returns the part that sums microbatches elsewhere.
    pub fn microbatches(&self) -> Microbatches<F, A> {
        self.microbatches
    }

    /// Returns the sum with its sensitivity and resets it to zero.
    pub fn finish(&mut self) -> Bounded<Vec<f64>, A> {
        let mut total = core::mem::take(&mut self.total);
        match self.parts {
            0 => total = vec![0.0; self.microbatches.dim],
            1 => {}
            _ if self.microbatches.in_float => {}
            _ => total.iter_mut().zip(&self.errors).for_each(|(total, error)| *total += error),
        }
        (self.examples, self.parts) = (0, 0);
        Bounded::with_proven_sensitivity(total, self.microbatches.sensitivity)
    }

    /// Takes back a buffer, such as that of the last sum after its release, so that the next sum needs no allocation.
    pub fn reuse(&mut self, buffer: Vec<f64>) {
        if self.parts == 0 {
            self.total = buffer;
        }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.microbatches.blocks
    }

    /// Returns whether contributions are clipped.
    pub fn clips(&self) -> bool {
        self.microbatches.clips()
    }

    /// Returns whether microbatches are summed in `F`: see [`in_float`](Self::in_float).
    pub fn is_in_float(&self) -> bool {
        self.microbatches.in_float
    }

    /// Returns the sensitivity of the sum.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.microbatches.sensitivity
    }
}

/// Returns the rounded `a + b` and its exact rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

/// Returns half the distance from 1 to the next `F`.
pub(super) fn unit_roundoff<F: RealField + Copy>() -> f64 {
    let epsilon: f64 = F::default_epsilon().to_subset_unchecked();
    0.5 * epsilon
}

#[cfg(test)]
mod tests;
