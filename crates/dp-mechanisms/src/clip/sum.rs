//! The sum of a batch's clipped gradients.

use core::marker::PhantomData;

use dp_accountant::Adjacency;
use nalgebra::RealField;

use super::{ClippingNorm, UNIT_ROUNDOFF, coefficient, norms_moved};
use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::float_range::holds;
use crate::sensitivity::L2Sensitivity;

/// The largest part of the clipping norm that rounding may take.
const LARGEST_SLACK: f64 = 0.125;

/// How far one record moves a sum of `examples` vectors of norm at most `bound`, added up in double precision, where the
/// exact sums of neighbours differ by at most `difference`.
///
/// # Formula
/// ```text
/// difference + 2 γ n B,   γ = r / (1 - r),   r = (min(m, n) + 3 + [k > 1] k² u) u,   k = ⌈n/m⌉,   u = 2^-53
/// ```
/// for microbatches of at most `m`, as [`ClippedSum`] adds them up. At `m` = 1024 the second term is 2e-7 B for a million
/// examples and 2e-4 B for 1e9.
///
/// # Privacy
/// A coordinate of a microbatch's sum meets, of each example, one product and at most `m - 1` additions that round, in any
/// order, fused or not. The first microbatch is the total. Each other is added by Knuth's two-sum, whose error is known
/// exactly and summed up beside: that sum's own rounding is at most `k u` of at most `k` errors, each at most `u` of a
/// partial sum, so `(k u)²` of `Σ_i |v_ij|`; adding the errors to the total is one rounding more. So a coordinate is off by
/// at most `γ Σ_i |v_ij|` and the sum by `γ n B` in norm, for both neighbours. Where the pieces of a batch begin does not
/// matter, and where a record is left out they may all move.
///
/// # Errors
/// [`Error::OutOfRange`] where the second term would exceed an eighth of the bound.
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
    // Above what the handful of roundings here could have taken off.
    Ok((difference + 2.0 * (share / (1.0 - share)) * count * bound) * (1.0 + 1e-15))
}

/// The sum of gradients, each clipped to one L2 norm, whose sensitivity covers the rounding of the sum as well.
///
/// It does not know the model. [`add`](Self::add) takes the squared norms of a microbatch, computes a coefficient for
/// each example and has the caller's closure add `Σ_i coefficient_i · gradient_i`; [`finish`](Self::finish) hands out
/// the sum as a [`Bounded`] and starts again.
///
/// # Formula
/// ```text
/// sum = Σ_i c_i g_i,   c_i = min(1, C (1 - (r + 8) u) / ‖g_i‖),   ‖g_i‖² = Σ over blocks of squared_norms
/// ```
/// where `u` is the unit roundoff of `F` and `r` = `norm_roundings` says by how many of them a squared norm may
/// be too small, relatively. Totals are in double precision, whatever `F` is.
///
/// # Shapes
/// `squared_norms` and the coefficients hold examples x blocks numbers, the blocks of one example next to each other;
/// an example's coefficient is the same for all its blocks (flat clipping). The sum has `dim` coordinates.
///
/// # Privacy
/// Up to rounding, the sensitivity is `C` under [`AddRemoveOne`](dp_accountant::AddRemoveOne) and
/// [`ZeroOut`](dp_accountant::ZeroOut), and `2 C` under [`ReplaceOne`](dp_accountant::ReplaceOne) and
/// [`ChangeListLabels`](dp_accountant::ChangeListLabels), where the example's contribution is exchanged for another: the
/// relation decides, not the clip. [`sensitivity`](Self::sensitivity) holds for the sum *as computed*:
/// * A contribution's norm is at most `C`. With a squared norm that falls short by `r u` relatively, the root takes
///   `(r/2 + 1) u` at most. The target, the quotient and the root each round once to double precision, the coefficient and
///   its product with the gradient's factor once to `F`: less than `(r + 8) u` together, second order included.
/// * What the sum adds to that is [`sensitivity_of_sum`].
///
/// What the caller must see to:
/// * the closure adds `Σ_i c_i g_i` and nothing else, with gradients of the norms that were given, each coordinate of an
///   example by one product and one addition in double precision, and exactly nothing for a coefficient 0, whatever
///   that example holds;
/// * `most_examples` bounds the batch for every data set (where the number of records is secret, it is a public bound).
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
    blocks: usize,
    clipping: Option<Clipping>,
    sensitivity: L2Sensitivity<A>,
    microbatch: usize,
    most_examples: u64,
    examples: u64,
    coefficients: Vec<F>,
    /// Microbatches since the last sum.
    parts: u64,
    dim: usize,
    total: Vec<f64>,
    /// What the total lacks for rounding; empty before the second microbatch.
    errors: Vec<f64>,
    /// A microbatch that is not the first.
    part: Vec<f64>,
    relation: PhantomData<A>,
}

/// To which norm gradients are clipped.
#[derive(Clone, Copy)]
struct Clipping {
    /// The norm less what is set aside for rounding.
    target: f64,
}

impl Clipping {
    fn new<F: RealField + Copy>(norm: f64, norm_roundings: f64) -> Result<Self, Error> {
        let slack = (norm_roundings + 8.0) * unit_roundoff::<F>();
        if !(norm_roundings >= 0.0 && slack <= LARGEST_SLACK) {
            return Err(Error::OutOfRange { name: "slack for the rounding of norms", value: slack, range: "[0, 1/8]" });
        }
        Ok(Self { target: norm * (1.0 - slack) })
    }
}

impl<F: RealField + Copy, A: Adjacency> ClippedSum<F, A> {
    /// An empty sum of `dim` coordinates for gradients of `blocks` blocks, whose squared norms fall short by at most
    /// `norm_roundings` unit roundoffs of `F`, in microbatches of at most `microbatch`
    /// examples and at most `most_examples` in all.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::Length`] for no blocks or an empty microbatch; [`Error::OutOfRange`] where rounding
    /// would take more than an eighth of the norm (of the norms, or of the sum: see [`sensitivity_of_sum`]),
    /// and for a clipping norm whose square is not well inside the range of `F`.
    pub fn new(
        dim: usize,
        blocks: usize,
        clipping_norm: ClippingNorm,
        norm_roundings: f64,
        microbatch: usize,
        most_examples: u64,
    ) -> Result<Self, Error> {
        let norm = clipping_norm.get();
        if !(holds::<F>(norm * norm) && holds::<F>(norm * norm * 2f64.powi(-24))) {
            return Err(Error::OutOfRange {
                name: "clipping norm",
                value: norm,
                range: "where its square is well inside the float type",
            });
        }
        let sum = Self::of_bounded(dim, blocks, (norms_moved::<A>() * norm, norm), microbatch, most_examples)?;
        let clipping = Clipping::new::<F>(norm, norm_roundings)?;
        Ok(Self { clipping: Some(clipping), ..sum })
    }

    /// A sum of contributions that are bounded without clipping: neighbouring sums differ by at most the first number,
    /// contributions are no longer than the second. All coefficients are 1, and of the squared norms given to
    /// [`add`](Self::add) only the number counts.
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
        Ok(Self {
            blocks,
            clipping: None,
            sensitivity: L2Sensitivity::new(sensitivity)?,
            microbatch,
            most_examples,
            examples: 0,
            coefficients: Vec::new(),
            parts: 0,
            dim,
            total: Vec::new(),
            errors: Vec::new(),
            part: Vec::new(),
            relation: PhantomData,
        })
    }

    /// Adds one microbatch: `add_weighted(coefficients, sum)` must add `Σ_i coefficients_i · gradient_i` to `sum`.
    ///
    /// # Errors
    /// [`Error::Length`] unless `squared_norms` holds a whole number of examples, at most a microbatch;
    /// [`Error::TooManyExamples`] beyond the stated number. Nothing is added then.
    pub fn add(&mut self, squared_norms: &[F], add_weighted: impl FnOnce(&[F], &mut [f64])) -> Result<(), Error> {
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
        self.set_coefficients(squared_norms);
        let coefficients = &self.coefficients[..squared_norms.len()];
        self.parts += 1;
        if self.parts == 1 {
            self.total.clear();
            self.total.resize(self.dim, 0.0);
            add_weighted(coefficients, &mut self.total);
            return Ok(());
        }
        let dim = self.dim;
        if self.parts == 2 {
            self.errors.clear();
            self.errors.resize(dim, 0.0);
        }
        self.part.clear();
        self.part.resize(dim, 0.0);
        add_weighted(coefficients, &mut self.part);
        for ((total, error), &part) in self.total.iter_mut().zip(&mut self.errors).zip(&self.part) {
            let (sum, lost) = two_sum(*total, part);
            *total = sum;
            *error += lost;
        }
        Ok(())
    }

    fn set_coefficients(&mut self, squared_norms: &[F]) {
        let Some(Clipping { target, .. }) = self.clipping else {
            // Ones for good.
            if self.coefficients.len() < squared_norms.len() {
                self.coefficients.resize(squared_norms.len(), F::one());
            }
            return;
        };
        self.coefficients.clear();
        for blocks in squared_norms.chunks_exact(self.blocks) {
            let squared_norm = blocks.iter().map(|&block| -> f64 { block.to_subset_unchecked() }).sum();
            let coefficient: F = nalgebra::convert(coefficient(squared_norm, target));
            self.coefficients.extend(core::iter::repeat_n(coefficient, self.blocks));
        }
    }

    /// The sum with its sensitivity; what follows starts from zero.
    pub fn finish(&mut self) -> Bounded<Vec<f64>, A> {
        let mut total = core::mem::take(&mut self.total);
        match self.parts {
            0 => total = vec![0.0; self.dim],
            1 => {}
            _ => total.iter_mut().zip(&self.errors).for_each(|(total, error)| *total += error),
        }
        (self.examples, self.parts) = (0, 0);
        Bounded::with_proven_sensitivity(total, self.sensitivity)
    }

    /// Takes a buffer back, such as that of the last sum once it is released, so that the next needs no new one.
    pub fn reuse(&mut self, buffer: Vec<f64>) {
        if self.parts == 0 {
            self.total = buffer;
        }
    }

    /// Whether contributions are clipped.
    pub fn clips(&self) -> bool {
        self.clipping.is_some()
    }

    /// The sensitivity of the sum.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.sensitivity
    }
}

/// `a + b` as rounded, and what rounding took off, exactly.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

/// Half the distance from 1 to the next `F`.
fn unit_roundoff<F: RealField + Copy>() -> f64 {
    let epsilon: f64 = F::default_epsilon().to_subset_unchecked();
    0.5 * epsilon
}

#[cfg(test)]
mod tests;
