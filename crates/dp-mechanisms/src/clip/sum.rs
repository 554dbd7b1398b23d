//! The sum of a batch's clipped gradients.

use core::marker::PhantomData;

use dp_accountant::Adjacency;
use dp_accountant::certificate::Assumption;
use nalgebra::RealField;

use super::{ClippingNorm, UNIT_ROUNDOFF, coefficient, norms_moved};
use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::float_range::holds;
use crate::sensitivity::Sensitivity;

/// The largest part of the clipping norm that may be set aside for rounding.
const LARGEST_SLACK: f64 = 0.125;

/// The sum of gradients, each clipped to one L2 norm, whose sensitivity covers the rounding of the sum as well.
///
/// It does not know the model. [`add`](Self::add) takes the squared norms of a microbatch, computes a coefficient for
/// each example and has the caller's closure add `Σ_i coefficient_i · gradient_i`; [`finish`](Self::finish) hands out
/// the sum as a [`Bounded`] and starts again.
///
/// # Formula
/// ```text
/// sum = Σ_i c_i g_i,   c_i = min(1, C (1 - s) / ‖g_i‖),   ‖g_i‖² = Σ over blocks of squared_norms
/// s = 2 (d + 8) u + 2 · 1.01 m (m + 2) u + 2 · 1.01 n (⌈n/m⌉ + 1) 2^-53
/// ```
/// where `u` is the unit roundoff of `F`, `m` the microbatch and `n` the most examples.
///
/// # Shapes
/// `squared_norms` and the coefficients hold examples x blocks numbers, the blocks of one example next to each other;
/// an example's coefficient is the same for all its blocks (flat clipping). The sum has `dim` coordinates.
///
/// # Privacy
/// Sensitivity `C` under [`AddRemoveOne`](dp_accountant::AddRemoveOne) and [`ZeroOut`](dp_accountant::ZeroOut), `2 C`
/// under [`ReplaceOne`](dp_accountant::ReplaceOne) and [`ChangeListLabels`](dp_accountant::ChangeListLabels), where the
/// example's contribution is exchanged for another: the relation decides, not the clip. It holds for the sum *as
/// computed*. The terms of `s` cover, in this order: the rounding of the squared norm and of the gradient (each at most
/// `d + 8` roundings to `F`); the rounding of the sum of one microbatch, `m + 1` additions and products to `F` of
/// vectors of total norm at most `m C`; and of the total over microbatches in double precision, for both neighbours.
///
/// What the caller must see to:
/// * the closure adds `Σ_i c_i g_i` and nothing else, with gradients of the norms that were given, in a plain order of
///   summation, and adds exactly nothing for a coefficient 0, whatever that example holds;
/// * microbatches begin at fixed positions, so that one record changes the rounding of one microbatch;
/// * `most_examples` bounds the batch for every data set (where the number of records is secret, it is a public bound).
///
/// The second of these is the [assumption](Assumption::FloatSum) that the release puts in its log.
///
/// An example whose norm is NaN or infinite has coefficient 0. That is never reported: it is data.
///
/// # Examples
/// ```
/// use dp_accountant::{EventLog, NoiseMultiplier, ZeroOut};
/// use dp_mechanisms::clip::{ClippedSum, ClippingNorm};
/// use dp_mechanisms::{Gaussian, Mechanism, OsSeeded};
///
/// let gradients = [[3.0, 4.0], [0.1, 0.0]];
/// let mut sum = ClippedSum::<f64, ZeroOut>::new(2, 1, ClippingNorm::new(1.0)?, 8, 100)?;
/// sum.add(&[25.0, 0.01], |coefficients, sum| {
///     for (c, gradient) in coefficients.iter().zip(gradients) {
///         sum[0] += c * gradient[0]; // the first gradient is clipped to (0.6, 0.8)
///         sum[1] += c * gradient[1];
///     }
/// })?;
/// let bounded = sum.finish();
/// assert_eq!(bounded.sensitivity().get(), 1.0);
///
/// let gaussian = Gaussian::from_noise_multiplier(bounded.sensitivity(), NoiseMultiplier::new(1.1)?)?;
/// let noisy = gaussian.release(bounded, &mut EventLog::new(), &mut OsSeeded::new()?)?;
/// assert_eq!(noisy.get().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ClippedSum<F, A: Adjacency> {
    blocks: usize,
    /// `C (1 - s)`.
    target: f64,
    sensitivity: Sensitivity<crate::L2, A>,
    microbatch: usize,
    most_examples: u64,
    examples: u64,
    coefficients: Vec<F>,
    microbatch_sum: Vec<F>,
    total: Vec<f64>,
    relation: PhantomData<A>,
}

impl<F: RealField + Copy, A: Adjacency> ClippedSum<F, A> {
    /// An empty sum of `dim` coordinates for gradients of `blocks` blocks, in microbatches of at most `microbatch`
    /// examples and at most `most_examples` in all.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::Length`] for no blocks or an empty microbatch; [`Error::OutOfRange`] where the
    /// slack for rounding would exceed an eighth of the norm (smaller microbatches, or `f64`), and for a clipping norm
    /// whose square is not well inside the range of `F`.
    pub fn new(
        dim: usize,
        blocks: usize,
        clipping_norm: ClippingNorm,
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
        let norm = clipping_norm.get();
        let slack = slack(dim, unit_roundoff::<F>(), microbatch, most_examples);
        if !(slack <= LARGEST_SLACK) {
            return Err(Error::OutOfRange { name: "slack for the rounding of a sum", value: slack, range: "[0, 1/8]" });
        }
        if !(holds::<F>(norm * norm) && holds::<F>(norm * norm * 2f64.powi(-24))) {
            return Err(Error::OutOfRange {
                name: "clipping norm",
                value: norm,
                range: "where its square is well inside the float type",
            });
        }
        Ok(Self {
            blocks,
            target: norm * (1.0 - slack),
            sensitivity: Sensitivity::new(norms_moved::<A>() * norm)?,
            microbatch,
            most_examples,
            examples: 0,
            coefficients: Vec::new(),
            microbatch_sum: vec![F::zero(); dim],
            total: vec![0.0; dim],
            relation: PhantomData,
        })
    }

    /// Adds one microbatch: `add_weighted(coefficients, sum)` must add `Σ_i coefficients_i · gradient_i` to `sum`.
    ///
    /// # Errors
    /// [`Error::Length`] unless `squared_norms` holds a whole number of examples, at most a microbatch;
    /// [`Error::TooManyExamples`] beyond the stated number. Nothing is added then.
    pub fn add(&mut self, squared_norms: &[F], add_weighted: impl FnOnce(&[F], &mut [F])) -> Result<(), Error> {
        let examples = squared_norms.len() / self.blocks;
        if !squared_norms.len().is_multiple_of(self.blocks) || examples > self.microbatch {
            let expected = "examples x blocks, at most one microbatch";
            return Err(Error::Length { name: "squared norms", found: squared_norms.len(), expected });
        }
        let count = self.examples.saturating_add(examples as u64);
        if count > self.most_examples {
            return Err(Error::TooManyExamples { most: self.most_examples });
        }
        self.examples = count;
        self.coefficients.clear();
        for blocks in squared_norms.chunks_exact(self.blocks) {
            let squared_norm = blocks.iter().map(|&block| -> f64 { block.to_subset_unchecked() }).sum();
            let coefficient: F = nalgebra::convert(coefficient(squared_norm, self.target));
            self.coefficients.extend(core::iter::repeat_n(coefficient, self.blocks));
        }
        add_weighted(&self.coefficients, &mut self.microbatch_sum);
        for (total, part) in self.total.iter_mut().zip(&mut self.microbatch_sum) {
            let part_sum: f64 = part.to_subset_unchecked();
            *total += part_sum;
            *part = F::zero();
        }
        Ok(())
    }

    /// The sum with its sensitivity, in double precision; what follows starts from zero.
    pub fn finish(&mut self) -> Bounded<Vec<f64>, A> {
        self.examples = 0;
        let zeros = vec![0.0; self.total.len()];
        let total = core::mem::replace(&mut self.total, zeros);
        Bounded::with_proven_sensitivity(total, self.sensitivity).assuming(Assumption::FloatSum)
    }

    /// The sensitivity of the sum.
    pub fn sensitivity(&self) -> Sensitivity<crate::L2, A> {
        self.sensitivity
    }
}

/// Half the distance from 1 to the next `F`.
fn unit_roundoff<F: RealField + Copy>() -> f64 {
    let epsilon: f64 = F::default_epsilon().to_subset_unchecked();
    0.5 * epsilon
}

/// The part of the clipping norm that rounding may take; see [`ClippedSum`].
fn slack(dim: usize, unit_roundoff: f64, microbatch: usize, most_examples: u64) -> f64 {
    let (d, m, n) = (dim as f64, microbatch as f64, most_examples as f64);
    let gradient = 2.0 * (d + 8.0) * unit_roundoff;
    let within = 2.02 * m * (m + 2.0) * unit_roundoff;
    let across = 2.02 * n * ((n / m).ceil() + 1.0) * UNIT_ROUNDOFF;
    gradient + within + across
}

#[cfg(test)]
mod tests;
