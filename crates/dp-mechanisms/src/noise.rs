//! Noise: the only folder that names a continuous distribution.
//!
//! A [`Sampler`] stands for one [`NoiseMode`]. It adds noise to a value in place, on the grid, and allocates nothing. Noise
//! is drawn a block at a time, before that block of the value is read: the time that it takes, which
//! depends on its random bits, does not depend on the value, and no noise is used twice or outlives the call.
//!
//! There is one exception. An exact draw that lies so close to a rounding boundary that its first word does not tell the
//! side, up to one in `2^(41 - bits)` for a grid of so many bits, is continued when the value is known, which takes
//! longer. Where the boundary lies depends on the value's fraction of a step, so that who could time each coordinate
//! would learn something of that fraction: guarantees are about what is released, not about time.

use dp_accountant::certificate::NoiseMode;
use nalgebra::RealField;
use rand::CryptoRng;

use crate::error::Error;
use crate::grid::Grid;

mod ball;
mod exact;
mod rounded;

/// Coordinates whose noise is drawn together: small enough for the first-level cache.
const BLOCK: usize = 256;
/// The same for short vectors, for which clearing the memory of a block would take as long as drawing the noise.
const FEW: usize = 16;
/// The same for vectors in between.
const SOME: usize = 64;

/// The law of one coordinate's noise at scale 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Law {
    Normal,
    Laplace,
}

/// How noise is drawn. Each mechanism stores one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampler {
    /// The ideal real noise, rounded exactly; see [`crate::exact`].
    Exact,
    /// Double-precision samplers, rounded to the grid; see [`crate::grid`] for what that idealises.
    Rounded,
}

impl Sampler {
    /// The sampler of a mode.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for [`NoiseMode::None`], and for any mode that is added one day.
    pub(crate) fn of(mode: NoiseMode) -> Result<Self, Error> {
        match mode {
            NoiseMode::Exact => Ok(Self::Exact),
            NoiseMode::Rounded => Ok(Self::Rounded),
            mode => Err(Error::UnavailableNoise { mode }),
        }
    }

    /// The mode as a certificate names it.
    pub(crate) const fn mode(self) -> NoiseMode {
        match self {
            Self::Exact => NoiseMode::Exact,
            Self::Rounded => NoiseMode::Rounded,
        }
    }

    /// Makes of `value` `value + N(0, std_dev² I)` on the grid.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    pub(crate) fn add_gaussian<F: RealField + Copy, R: CryptoRng + ?Sized>(
        self,
        value: &mut [F],
        std_dev: f64,
        grid: Grid,
        rng: &mut R,
    ) -> Result<(), Error> {
        self.add(Law::Normal, value, std_dev, grid, rng)
    }

    /// Adds independent Laplace noise of this scale to each coordinate of `value`, on the grid.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    pub(crate) fn add_laplace<F: RealField + Copy, R: CryptoRng + ?Sized>(
        self,
        value: &mut [F],
        scale: f64,
        grid: Grid,
        rng: &mut R,
    ) -> Result<(), Error> {
        self.add(Law::Laplace, value, scale, grid, rng)
    }

    fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(
        self,
        law: Law,
        value: &mut [F],
        scale: f64,
        grid: Grid,
        rng: &mut R,
    ) -> Result<(), Error> {
        match self {
            Self::Exact => exact::add(law, value, grid.steps_up(scale), grid, rng),
            Self::Rounded => {
                rounded::add(law, value, grid.in_steps(scale), grid, rng);
                Ok(())
            }
        }
    }

    /// Makes of `value` `value + Z` on the grid, with the density of `Z` proportional to `exp(-‖z‖₂ / scale)`.
    ///
    /// # Formula
    /// ```text
    /// Z = scale · √W · N,   N ~ N(0, I_d),   W ~ chi-square(d + 1), independent
    /// ```
    /// Given `W = w` the density at `‖z‖ = r` is proportional to `w^(-d/2) exp(-r² / (2 w scale²))`; times the density
    /// of `W`, proportional to `w^((d-1)/2) exp(-w/2)`, and integrated over `w`, that is
    /// `∫ w^(-1/2) exp(-w/2 - r²/(2 w scale²)) dw`, a multiple of `exp(-r / scale)`. It needs no division by a random
    /// norm and holds from `d = 1` on, where it is the Laplace distribution.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    pub(crate) fn add_laplace_ball<F: RealField + Copy, R: CryptoRng + ?Sized>(
        self,
        value: &mut [F],
        scale: f64,
        grid: Grid,
        rng: &mut R,
    ) -> Result<(), Error> {
        match self {
            Self::Exact => ball::add(value, grid.steps_up(scale), grid, rng),
            Self::Rounded => {
                let mixing = rounded::chi_square(value.len() as u64 + 1, rng)?;
                rounded::add(Law::Normal, value, grid.in_steps(scale) * mixing.sqrt(), grid, rng);
                Ok(())
            }
        }
    }
}

/// The largest `F` as a double: where a noisy sum exceeds it, it stops there.
fn largest<F: RealField + Copy>() -> f64 {
    F::max_value().map_or(f64::MAX, |largest| largest.to_subset_unchecked())
}

#[cfg(test)]
mod tests;
