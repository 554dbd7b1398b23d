//! Clipping: the usual way to turn private records into a [`Bounded`](crate::Bounded) value.
//!
//! | summands | type | sensitivity |
//! |---|---|---|
//! | vectors, one per record | [`ExactSum`] | `C`, exactly, in any order of summation |
//! | multiples of rows: gradients of a linear model | [`RankOneSum`] | `C`, exactly, at the speed of a plain `axpy` |
//! | second moments: `x xᵀ` and `x tᵀ`, for least squares | [`MomentSum`] | `X √(X² + Y²)`, in any order |
//! | gradients that are never stored, summed by a matrix product | [`ClippedSum`] | `C` plus rounding: 2e-4 C for 1e9 |
//!
//! [`clip_l2`] clips one vector, [`clip_coefficient`] returns the clipping factor of a vector that is never stored.
//! [`LayeredClipping`] clips each layer of a network to its own norm, [`AutomaticClipping`] normalises instead of clipping, and
//! [`AdaptiveClipping`] adapts the norm to a quantile of the records' norms.
//!
//! Clipping must hold exactly. Scaling a vector by `bound / norm` in floating point leaves its norm above the bound about half of
//! the time, because of rounding. The functions here shrink it by a few more units in the last place, so that the norm of the
//! vector *as stored*, in exact arithmetic, is at most the bound.
//!
//! | input | `clip_l2` | coefficient |
//! |---|---|---|
//! | norm at most the bound | unchanged, signs of zeros kept | 1 |
//! | larger norm | scaled to the bound, minus a relative `(d + 10) 2^-53` | `bound / norm`, minus the same |
//! | entries whose squares over- or underflow | as above | 0 on overflow, 1 on underflow |
//! | a NaN or an infinity | all zeros | 0 |

use dp_accountant::{Adjacency, AdjacencyKind};
use nalgebra::RealField;

use crate::error::{Error, positive_normal};

mod automatic;
mod confined;
mod exact_sum;
mod gradient_clipping;
mod moments;
mod outer_products;
mod per_layer;
mod quantile;
mod rank_one;
mod shortening;
mod sum;
pub use automatic::AutomaticClipping;
pub use confined::{microbatches, sensitivity_of_sum_in_float};
pub use exact_sum::ExactSum;
pub use gradient_clipping::GradientClipping;
pub use moments::{MomentSum, Moments};
pub use per_layer::{LayeredClipping, LayeredGaussian};
pub use quantile::{AdaptiveClipping, AdaptiveNorm, AdaptiveStep, NormCount, follow_quantile};
pub use rank_one::{RankOneSum, RowGrid, TruncatedRow, TruncatedRows};
pub use shortening::ClippingRule;
pub use sum::{ClippedSum, MicrobatchSum, Microbatches, sensitivity_of_sum};

/// `2^-53`, the largest relative error of one rounding to double precision.
const UNIT_ROUNDOFF: f64 = 0.5 * f64::EPSILON;

/// The L2 clipping norm of each record's contribution: finite and at least `2^-500`.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::ClippingNorm;
/// assert_eq!(ClippingNorm::new(1.5)?.get(), 1.5);
/// assert!(ClippingNorm::new(f64::NAN).is_err());
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f64", into = "f64"))]
pub struct ClippingNorm(f64);

impl TryFrom<f64> for ClippingNorm {
    type Error = Error;
    fn try_from(value: f64) -> Result<Self, Error> {
        Self::new(value)
    }
}

impl From<ClippingNorm> for f64 {
    fn from(norm: ClippingNorm) -> f64 {
        norm.0
    }
}

impl ClippingNorm {
    /// The least accepted norm, `2^-500`; clipping to a larger norm has no subnormal quotient.
    pub const LEAST: f64 = f64::from_bits((1023 - 500) << 52);

    /// Checks and wraps the value.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`], or [`Error::TooSmall`] below `2^-500`.
    pub fn new(value: f64) -> Result<Self, Error> {
        if !(positive_normal("clipping norm", value)? >= Self::LEAST) {
            return Err(Error::TooSmall { name: "clipping norm", value, least: Self::LEAST });
        }
        Ok(Self(value))
    }

    /// Returns the number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Scales a vector in place so that its L2 norm is at most `bound`; a vector with a NaN or an infinity becomes zero.
///
/// # Formula
/// ```text
/// v · min(1, C (1 - k) / ‖v‖),   k = (d + 8) 2^-53,   unchanged if ‖v‖ <= C (1 - k)
/// ```
///
/// # Privacy
/// The norm of the stored result, in exact arithmetic, is at most `bound`, for every input. The norm computed from `d` squares,
/// in any order of summation, is at least `‖v‖ (1 - (d/2 + 2) 2^-53)`: one rounding for each square, at most `d - 1` for the sum,
/// all halved by the root, and the root's own. `C (1 - k)`, the quotient and each product add one rounding each, so that the
/// result is at most `C (1 - k) (1 + (d/2 + 6) 2^-53) <= C`; and an unchanged vector has `‖v‖ <= C (1 - k) (1 + (d/2 + 4) 2^-53)
/// <= C`. Squares that underflow stay below that slack because `C >= 2^-500`. If the computed norm is outside `[2^-500, 2^500]`,
/// `v` is first scaled, exactly, by a power of two that brings its largest entry into `[1, 2)`: otherwise the quotient would be
/// subnormal and could round up by half.
///
/// Arithmetic is in double precision even for `f32` vectors, whose entries are rounded towards zero at the end. Nothing about the
/// vector is returned: whether it was clipped is private.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::{ClippingNorm, clip_l2};
/// let mut v = [3.0, -4.0];
/// clip_l2(&mut v, ClippingNorm::new(1.0)?);
/// assert!((v[0] - 0.6f64).abs() < 1e-15 && (v[1] + 0.8).abs() < 1e-15);
/// let mut broken = [f64::NAN, 1.0];
/// clip_l2(&mut broken, ClippingNorm::new(1.0)?);
/// assert_eq!(broken, [0.0, 0.0]);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub fn clip_l2<F: RealField + Copy>(v: &mut [F], bound: ClippingNorm) {
    ClippingRule::Flat(bound).shortening(v).apply(v);
}

/// Returns the factor in `[0, 1]` that scales a gradient with this squared norm to a norm of at most `bound`.
///
/// For models whose per-example gradient is never stored: one multiplication per example instead of a pass over `d` entries. A
/// squared norm that is NaN or infinite gives 0, so that the example contributes nothing.
///
/// # Formula
/// ```text
/// min(1, C (1 - k) / √squared_norm),   k = (d + 8) 2^-53,   1 if √squared_norm <= C (1 - k)
/// ```
///
/// # Privacy
/// `coefficient · gradient`, each entry rounded once more in double precision, has norm at most `bound` if `squared_norm` was
/// computed in double precision and is too small by at most `d · 2^-53`, relatively: a sum of `d` squares, or `derivative² ·
/// (‖x‖² + 1)` of a linear model. For single precision see [`ClippedSum`]. `bound` must be well above the square root of the
/// least positive number of the type of the squared norms.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::{ClippingNorm, clip_coefficient};
/// let bound = ClippingNorm::new(1.0)?;
/// assert_eq!(clip_coefficient(0.81, bound, 10), 1.0);
/// assert!((clip_coefficient(4.0, bound, 10) - 0.5).abs() < 1e-14);
/// assert_eq!(clip_coefficient(f64::NAN, bound, 10), 0.0);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub fn clip_coefficient(squared_norm: f64, bound: ClippingNorm, dim: usize) -> f64 {
    coefficient(squared_norm, shrunk(bound.0, dim))
}

/// Returns `min(1, target / √squared_norm)`, and 0 for NaN or infinity.
fn coefficient(squared_norm: f64, target: f64) -> f64 {
    if !(squared_norm >= 0.0 && squared_norm.is_finite()) {
        return 0.0;
    }
    let norm = squared_norm.sqrt();
    if norm <= target { 1.0 } else { target / norm }
}

/// Returns `bound (1 - (dim + 8) 2^-53)`; 0 for a dimension so large that rounding could exceed the bound.
fn shrunk(bound: f64, dim: usize) -> f64 {
    bound * (1.0 - (dim as f64 + 8.0) * UNIT_ROUNDOFF).max(0.0)
}

/// Returns the sensitivity of a sum in clipping norms: 2 if one record's contribution is replaced by another's.
fn norms_moved<A: Adjacency>() -> f64 {
    match A::KIND {
        AdjacencyKind::AddRemoveOne | AdjacencyKind::ZeroOut => 1.0,
        AdjacencyKind::ReplaceOne | AdjacencyKind::ChangeListLabels => 2.0,
    }
}

#[cfg(test)]
mod tests;
