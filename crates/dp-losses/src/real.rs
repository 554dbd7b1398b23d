//! The two float types of the vectorised kernels.

use nalgebra::RealField;

use crate::exponential::{exp_f32, exp_f64};
use crate::kernels::{Compiled, Lanes};

/// `f32` or `f64`: a real field with vectorised kernels and a vectorisable exponential. Sealed.
///
/// Code that only passes numbers on requires `RealField + Copy`; [`LinearModel`](crate::LinearModel) and the losses require this
/// trait.
pub trait Real: RealField + Copy + Lanes + Compiled {
    /// Returns `e^x` without branches, so that a loop over it vectorises; accuracy as documented in [`crate::exponential`].
    ///
    /// # Examples
    /// ```
    /// use dp_losses::Real;
    /// assert!((1.0_f64.exponential() - core::f64::consts::E).abs() < 1e-15);
    /// assert_eq!((-1e308_f64).exponential(), 0.0);
    /// ```
    fn exponential(self) -> Self;

    /// Converts numbers in double precision to this type, if it is double precision.
    fn from_doubles(doubles: &mut [f64]) -> Option<&mut [Self]>;
}

impl Real for f32 {
    #[inline(always)]
    fn exponential(self) -> Self {
        exp_f32(self)
    }

    #[inline(always)]
    fn from_doubles(_: &mut [f64]) -> Option<&mut [Self]> {
        None
    }
}

impl Real for f64 {
    #[inline(always)]
    fn exponential(self) -> Self {
        exp_f64(self)
    }

    #[inline(always)]
    fn from_doubles(doubles: &mut [f64]) -> Option<&mut [Self]> {
        Some(doubles)
    }
}
