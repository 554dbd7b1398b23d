//! The floating-point types of training.

use nalgebra::RealField;

use crate::error::Error;

/// The floating-point type of training. Sensitivities and noise are always computed in f64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum FloatKind {
    /// Double precision: rounding is bounded by proof and added to the sensitivity.
    #[default]
    F64,
    /// Single precision: the proved bound on its rounding would exceed the sensitivity. The sensitivity is raised by
    /// [`F32_ALLOWANCE`] instead, which is measured, not proved; the certificate states this.
    F32,
}

/// Relative increase of a sensitivity for training in single precision. On random data the two runs' rounding differs by 3e-5
/// to 1e-4 of the sensitivity (norms of 10 to 20, 2·10^5 to 10^6 examples).
pub const F32_ALLOWANCE: f64 = 0.01;

impl FloatKind {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
        }
    }

    /// Returns the largest relative error of one rounding: 2^-53 or 2^-24.
    pub const fn unit_roundoff(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON / 2.0,
            Self::F32 => f32::EPSILON as f64 / 2.0,
        }
    }

    /// Returns an error unless `F` is this type.
    pub(crate) fn expect<F: RealField + Copy>(self) -> Result<(), Error> {
        let epsilon: f64 = F::default_epsilon().to_subset_unchecked();
        let found = if epsilon > 1e-10 { Self::F32 } else { Self::F64 };
        if found == self { Ok(()) } else { Err(Error::FloatKind { planned: self.as_str(), found: found.as_str() }) }
    }
}
