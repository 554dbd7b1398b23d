//! Bounds on a list's contribution.

use crate::train::error::TrainError;

/// The method that bounds a list's contribution to a sum by the clipping norm `C`.
///
/// | | contribution of list `j` | distance of two versions | noise for |
/// |---|---|---|---|
/// | [`Clip`](Self::Clip) | `clip_C(h_j)` | at most `2C` | `2C` |
/// | [`Public`](Self::Public) | `w_j h_j`, `w_j = min(1, dC/Δ_j, C/r_j)` | at most `dC` | `dC` |
///
/// with `Δ_j` and `r_j` the certified diameter and radius of the list's gradients over all grades
/// ([`ListLoss::image`](crate::loss::ListLoss::image)).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", deny_unknown_fields))]
pub enum Scaling {
    /// Gradients longer than the clipping norm are scaled down to it.
    #[default]
    Clip,
    /// All gradients of a list have one weight, computed from its features and the parameters alone, which preserves their
    /// directions. Only where grades are protected, and for a loss with bounds on its gradients.
    ///
    /// Without thinning, gradients lie in a symmetric body whose radius is half its diameter: `d = 2` is the only useful value,
    /// at the same noise as clipping. Thinned gradients are not symmetric: two of them are closer than twice the longest norm, so
    /// less noise suffices.
    Public {
        /// d: the largest distance of two versions, in clipping norms, from 1 to 2.
        distance: f64,
    },
}

impl Scaling {
    /// Public weights for gradients that are not thinned.
    pub const WHOLE: Self = Self::Public { distance: 2.0 };

    /// Public weights for thinned gradients: orthogonal gradients of equal norm are `√2` norms apart.
    pub const THINNED: Self = Self::Public { distance: std::f64::consts::SQRT_2 };

    /// Checks that the distance lies in `[1, 2]`.
    pub(super) fn check(self) -> Result<(), TrainError> {
        match self {
            Self::Public { distance } if !(1.0..=2.0).contains(&distance) => {
                Err(TrainError::OutOfRange { name: "distance", value: distance, range: "[1, 2]" })
            }
            _ => Ok(()),
        }
    }
}
