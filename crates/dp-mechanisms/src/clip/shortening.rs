//! The effect of clipping on one vector, determined before any entry is changed.

use nalgebra::RealField;

use super::{AutomaticClipping, ClippingNorm, shrunk};
use crate::rounding::{exponent, power_of_two, scale_by_power_of_two};

/// The rule by which a sum clips each record's vector.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum ClippingRule {
    /// Clipped to the norm: [`clip_l2`](super::clip_l2).
    Flat(ClippingNorm),
    /// Normalised.
    Automatic(AutomaticClipping),
}

impl From<ClippingNorm> for ClippingRule {
    fn from(norm: ClippingNorm) -> Self {
        Self::Flat(norm)
    }
}

impl From<AutomaticClipping> for ClippingRule {
    fn from(rule: AutomaticClipping) -> Self {
        Self::Automatic(rule)
    }
}

impl ClippingRule {
    /// Returns the norm that no contribution exceeds.
    pub fn norm(&self) -> ClippingNorm {
        match self {
            Self::Flat(norm) => *norm,
            Self::Automatic(rule) => rule.norm(),
        }
    }

    #[inline(always)]
    pub(super) fn shortening<F: RealField + Copy>(&self, v: &[F]) -> Shortening {
        match self {
            Self::Flat(norm) => Shortening::flat(v, shrunk(norm.get(), v.len())),
            Self::Automatic(rule) => rule.shortening(v),
        }
    }
}

/// The operation on a vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shortening {
    /// Unchanged: it is short enough.
    Keep,
    /// Set to zero: it contains a NaN or an infinity.
    Drop,
    /// Scaled to `v_i 2^power · factor`, where the power is exact.
    Scale {
        /// Nonzero only if the norm or its square over- or underflows.
        power: i32,
        /// At least `2^-1002`, so that it is a normal number.
        factor: f64,
    },
}

impl Shortening {
    /// Clips to a norm of at most `target`, already shrunk for rounding: `min(1, target / ‖v‖)`.
    #[inline(always)]
    pub(super) fn flat<F: RealField + Copy>(v: &[F], target: f64) -> Self {
        match scaled_norm(v) {
            None => Self::Drop,
            Some((norm, power)) if scale_by_power_of_two(norm, power) > target => {
                Self::Scale { power: -power, factor: target / norm }
            }
            Some(_) => Self::Keep,
        }
    }

    /// Normalises to below `target`, already shrunk for rounding: `target / (‖v‖ + gamma)`, with `gamma >= 2^-500`.
    #[inline(always)]
    pub(super) fn automatic<F: RealField + Copy>(v: &[F], target: f64, gamma: f64) -> Self {
        match scaled_norm(v) {
            None => Self::Drop,
            Some((norm, power)) if power > 0 => {
                Self::Scale { power: -power, factor: target / (norm + scale_by_power_of_two(gamma, -power)) }
            }
            // A norm below 2^-500 is added to a gamma that is not smaller: no scaling is needed.
            Some((norm, power)) => {
                Self::Scale { power: 0, factor: target / (scale_by_power_of_two(norm, power) + gamma) }
            }
        }
    }

    /// Applies the operation, rounding towards zero if `F` is narrower than a double.
    #[inline(always)]
    pub(super) fn apply<F: RealField + Copy>(self, v: &mut [F]) {
        match self {
            Self::Keep => {}
            Self::Drop => v.fill(F::zero()),
            Self::Scale { power, factor } => scale_all(v, power, factor),
        }
    }
}

/// Returns `(‖v 2^-power‖, power)`, with power 0 if the norm is in `[2^-500, 2^500]` or zero; `None` for a vector with a NaN or
/// an infinity.
#[inline(always)]
fn scaled_norm<F: RealField + Copy>(v: &[F]) -> Option<(f64, i32)> {
    let norm = sum_of_squares::<F, false>(v, 0).sqrt();
    // False for a NaN as well.
    if norm >= ClippingNorm::LEAST && norm <= power_of_two(500) { Some((norm, 0)) } else { unusual_norm(v) }
}

#[cold]
fn unusual_norm<F: RealField + Copy>(v: &[F]) -> Option<(f64, i32)> {
    let largest = v.iter().fold(0.0f64, |largest, &entry| {
        let entry: f64 = entry.to_subset_unchecked();
        if entry.is_finite() { largest.max(entry.abs()) } else { f64::INFINITY }
    });
    if largest == 0.0 {
        return Some((0.0, 0));
    }
    if !largest.is_finite() {
        return None;
    }
    let power = largest_exponent(largest);
    Some((sum_of_squares::<F, true>(v, -power).sqrt(), power))
}

/// Returns `Σ (v_i 2^power)²`, or `Σ v_i²` if they are not `SCALED`, in eight partial sums.
#[inline(always)]
fn sum_of_squares<F: RealField + Copy, const SCALED: bool>(v: &[F], power: i32) -> f64 {
    // Loops without closures, so that they are compiled for the caller's instructions.
    let (chunks, rest) = v.as_chunks::<8>();
    let mut partial = [0.0; 8];
    for chunk in chunks {
        for (sum, &entry) in partial.iter_mut().zip(chunk) {
            *sum += square::<F, SCALED>(entry, power);
        }
    }
    let (mut total, mut of_rest) = (0.0, 0.0);
    for &entry in rest {
        of_rest += square::<F, SCALED>(entry, power);
    }
    for sum in partial {
        total += sum;
    }
    total + of_rest
}

#[inline(always)]
fn square<F: RealField + Copy, const SCALED: bool>(entry: F, power: i32) -> f64 {
    let entry: f64 = entry.to_subset_unchecked();
    let scaled = if SCALED { scale_by_power_of_two(entry, power) } else { entry };
    scaled * scaled
}

/// Sets `v_i := v_i 2^power · factor`, rounded towards zero if `F` is narrower than a double.
fn scale_all<F: RealField + Copy>(v: &mut [F], power: i32, factor: f64) {
    for entry in v {
        let double: f64 = entry.to_subset_unchecked();
        let scaled = if power == 0 { double } else { scale_by_power_of_two(double, power) };
        *entry = towards_zero(scaled * factor);
    }
}

/// Returns the nearest `F`, or the next smaller one in magnitude if that is larger in magnitude.
fn towards_zero<F: RealField + Copy>(x: f64) -> F {
    let magnitude = |candidate: F| -> f64 { candidate.abs().to_subset_unchecked() };
    let nearest: F = nalgebra::convert(x);
    if magnitude(nearest) <= x.abs() {
        return nearest;
    }
    let epsilon: f64 = F::default_epsilon().to_subset_unchecked();
    let below: F = nalgebra::convert(x * (1.0 - epsilon));
    // For subnormal numbers of `F` a relative step is not enough.
    if magnitude(below) <= x.abs() { below } else { F::zero() }
}

/// Returns `floor(log2 x)` of a positive finite double, including subnormal ones.
fn largest_exponent(x: f64) -> i32 {
    if x.is_normal() { exponent(x) } else { exponent(x * power_of_two(60)) - 60 }
}
