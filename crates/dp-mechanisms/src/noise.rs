//! Noise: the only module that uses continuous distributions.
//!
//! A [`Sampler`] corresponds to one [`NoiseMode`]. It adds noise to a value in place, on the grid. Noise is drawn a block at a time,
//! before that block of the value is read: the time taken depends on its random bits and not on the value, and no noise is used
//! twice. Long vectors use streams of their own for each block, so that several threads draw the same noise as one, also before the
//! vector is known.
//!
//! There is one exception. If an exact draw is so close to a rounding boundary that its first word does not determine the
//! result (up to one draw in `2^(41 - bits)` for a grid of that many bits), it is continued when the value is known, which
//! takes longer. The position of the boundary depends on the value's fraction of a step, so an observer who can time each
//! coordinate would learn something about that fraction: guarantees cover releases, not time.

use dp_accountant::certificate::NoiseMode;
use nalgebra::RealField;
use rand::CryptoRng;

pub(crate) use self::drawing::Drawing;
use self::exact::Exact;
use self::rounded::Rounded;
use crate::error::Error;
use crate::grid::Grid;

mod ball;
mod drawing;
mod exact;
mod heads;
mod rounded;
mod streams;

/// The law of one coordinate's noise at scale 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Law {
    Normal,
    Laplace,
}

/// The kind of noise. Each mechanism stores one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampler {
    /// The ideal real noise, rounded exactly; see [`crate::exact`].
    Exact,
    /// Double-precision samplers, rounded to the grid; see [`crate::grid`] for the idealisation.
    Rounded,
}

impl Sampler {
    /// Returns the sampler of a mode.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for [`NoiseMode::None`], and for any mode added later.
    pub(crate) fn of(mode: NoiseMode) -> Result<Self, Error> {
        match mode {
            NoiseMode::Exact => Ok(Self::Exact),
            NoiseMode::Rounded => Ok(Self::Rounded),
            mode => Err(Error::UnavailableNoise { mode }),
        }
    }

    /// Returns the mode as named in certificates.
    pub(crate) const fn mode(self) -> NoiseMode {
        match self {
            Self::Exact => NoiseMode::Exact,
            Self::Rounded => NoiseMode::Rounded,
        }
    }

    /// Returns whether the noise of a vector of `len` coordinates is drawn ahead on request: exact noise that takes longer than to
    /// start a thread.
    pub(crate) fn can_draw_ahead(self, len: usize) -> bool {
        self == Self::Exact && len >= drawing::FOR_THREADS
    }

    /// Replaces `value` by `value + N(0, std_dev² I)` on the grid; a long one with the threads, and the noise, of `drawing`.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    pub(crate) fn add_gaussian<F: RealField + Copy, R: CryptoRng + ?Sized>(
        self,
        value: &mut [F],
        std_dev: f64,
        grid: Grid,
        drawing: &mut Drawing,
        rng: &mut R,
    ) -> Result<(), Error> {
        self.add(Law::Normal, value, std_dev, grid, drawing, rng)
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
        self.add(Law::Laplace, value, scale, grid, &mut Drawing::default(), rng)
    }

    fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(
        self,
        law: Law,
        value: &mut [F],
        scale: f64,
        grid: Grid,
        drawing: &mut Drawing,
        rng: &mut R,
    ) -> Result<(), Error> {
        match self {
            Self::Exact => drawing.add(&Exact { law, multiplier: grid.steps_up(scale), grid }, value, rng),
            Self::Rounded => drawing.add(&Rounded { law, scale: grid.in_steps(scale), grid }, value, rng),
        }
    }

    /// Replaces `value` by `value + Z` on the grid, with the density of `Z` proportional to `exp(-‖z‖₂ / scale)`.
    ///
    /// # Formula
    /// ```text
    /// Z = scale · √W · N,   N ~ N(0, I_d),   W ~ chi-square(d + 1), independent
    /// ```
    /// Given `W = w` the density at `‖z‖ = r` is proportional to `w^(-d/2) exp(-r² / (2 w scale²))`; times the density of `W`,
    /// proportional to `w^((d-1)/2) exp(-w/2)`, and integrated over `w`, this gives `∫ w^(-1/2) exp(-w/2 - r²/(2 w scale²)) dw`,
    /// a multiple of `exp(-r / scale)`. It needs no division by a random norm and holds from `d = 1` on, where it is the Laplace
    /// distribution.
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
                let noise = Rounded { law: Law::Normal, scale: grid.in_steps(scale) * mixing.sqrt(), grid };
                Drawing::default().add(&noise, value, rng)
            }
        }
    }
}

/// Returns the largest `F` as a double, at which a noisy sum saturates.
fn largest<F: RealField + Copy>() -> f64 {
    F::max_value().map_or(f64::MAX, |largest| largest.to_subset_unchecked())
}

#[cfg(test)]
mod tests;
