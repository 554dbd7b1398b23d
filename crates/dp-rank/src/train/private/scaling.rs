//! How what a list adds is kept short.

use crate::train::error::TrainError;

/// How what a list adds to a sum is kept within the clipping norm `C`.
///
/// | | what list `j` adds | two versions are apart by | noise for |
/// |---|---|---|---|
/// | [`Clip`](Self::Clip) | `clip_C(h_j)` | at most `2C` | `2C` |
/// | [`Public`](Self::Public) | `w_j h_j`, `w_j = min(1, dC/Δ_j, C/r_j)` | at most `dC` | `dC` |
///
/// with `Δ_j` and `r_j` the certified diameter and radius of all gradients that grades can make of the list
/// ([`ListLoss::image`](crate::loss::ListLoss::image)).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", deny_unknown_fields))]
pub enum Scaling {
    /// Gradients longer than the clipping norm are shortened to it.
    #[default]
    Clip,
    /// All gradients of a list have one weight, computed from its features and the parameters alone: they are reweighted,
    /// and not bent. Where grades are protected, and with a loss whose gradients are known.
    ///
    /// Without thinning gradients lie within a symmetric body, whose radius is half its diameter: `d = 2` is all there is to
    /// be had, at the noise of clipping. Thinned they are no longer symmetric, two of them are closer than twice the
    /// longest, and less noise will do.
    Public {
        /// d: how far apart two versions may be, in clipping norms, from 1 to 2.
        distance: f64,
    },
}

impl Scaling {
    /// Public weights for gradients that are not thinned.
    pub const WHOLE: Self = Self::Public { distance: 2.0 };

    /// Public weights for thinned gradients: equally long ones at right angles are `√2` apart.
    pub const THINNED: Self = Self::Public { distance: std::f64::consts::SQRT_2 };

    /// Refuses distances that a norm does not allow for.
    pub(super) fn check(self) -> Result<(), TrainError> {
        match self {
            Self::Public { distance } if !(1.0..=2.0).contains(&distance) => {
                Err(TrainError::OutOfRange { name: "distance", value: distance, range: "[1, 2]" })
            }
            _ => Ok(()),
        }
    }
}
