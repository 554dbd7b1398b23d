//! Noise: the only file that names a distribution.
//!
//! A [`Sampler`] stands for one [`NoiseMode`]. It takes the value to be released by value and returns it with noise, on
//! the grid. Noise is drawn a block at a time, before that block of the value is read: the sampler's running time, which
//! depends on its random bits, does not depend on the value, and no noise is used twice or outlives the call.

use dp_accountant::certificate::NoiseMode;
use nalgebra::RealField;
use rand::CryptoRng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::error::Error;
use crate::grid::Grid;

/// Coordinates whose noise is drawn together: small enough for the first-level cache.
const BLOCK: usize = 256;

/// How noise is drawn. Each mechanism stores one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampler {
    /// Double-precision samplers, rounded to the grid; see [`crate::grid`] for what that idealises.
    Rounded,
}

impl Sampler {
    /// The mode as a certificate names it.
    pub(crate) const fn mode(self) -> NoiseMode {
        match self {
            Self::Rounded => NoiseMode::Rounded,
        }
    }

    /// `value + N(0, std_dev² I)` on the grid.
    pub(crate) fn add_gaussian<F: RealField + Copy, R: CryptoRng + ?Sized>(
        self,
        value: Vec<F>,
        std_dev: f64,
        grid: Grid,
        rng: &mut R,
    ) -> Vec<F> {
        match self {
            Self::Rounded => add_normals(value, grid.in_steps(std_dev), grid, rng),
        }
    }

    /// `value + Z` on the grid, with the density of `Z` proportional to `exp(-‖z‖₂ / scale)`.
    ///
    /// # Formula
    /// ```text
    /// Z = scale · √W · N,   N ~ N(0, I_d),   W ~ chi-square(d + 1), independent
    /// ```
    /// Given `W = w` the density at `‖z‖ = r` is proportional to `w^(-d/2) exp(-r² / (2 w scale²))`; times the density
    /// of `W`, proportional to `w^((d-1)/2) exp(-w/2)`, and integrated over `w`, that is
    /// `∫ w^(-1/2) exp(-w/2 - r²/(2 w scale²)) dw`, a multiple of `exp(-r / scale)`. It needs no division by a random
    /// norm and holds from `d = 1` on, where it is the Laplace distribution.
    pub(crate) fn add_laplace_ball<F: RealField + Copy, R: CryptoRng + ?Sized>(
        self,
        value: Vec<F>,
        scale: f64,
        grid: Grid,
        rng: &mut R,
    ) -> Result<Vec<F>, Error> {
        match self {
            Self::Rounded => {
                let mixing = chi_square(value.len() as u64 + 1, rng)?;
                let steps = grid.in_steps(scale) * mixing.sqrt();
                Ok(add_normals(value, steps, grid, rng))
            }
        }
    }
}

/// Independent normals with this standard deviation, in steps of the grid, added to a vector.
///
/// The sum is computed in `f64` and converted to `F` once; where it exceeds the largest `F`, it stops there.
fn add_normals<F: RealField + Copy, R: CryptoRng + ?Sized>(
    mut value: Vec<F>,
    std_dev_in_steps: f64,
    grid: Grid,
    rng: &mut R,
) -> Vec<F> {
    let largest = F::max_value().map_or(f64::MAX, |largest| largest.to_subset_unchecked());
    let mut noise = [0.0; BLOCK];
    for block in value.chunks_mut(BLOCK) {
        let noise = &mut noise[..block.len()];
        for noise in noise.iter_mut() {
            let normal: f64 = StandardNormal.sample(rng);
            *noise = std_dev_in_steps * normal;
        }
        for (coordinate, &noise) in block.iter_mut().zip(&*noise) {
            let sum = grid.round_sum(coordinate.to_subset_unchecked(), noise);
            *coordinate = nalgebra::convert(sum.clamp(-largest, largest));
        }
    }
    value
}

/// A chi-square deviate.
fn chi_square<R: CryptoRng + ?Sized>(degrees_of_freedom: u64, rng: &mut R) -> Result<f64, Error> {
    match ChiSquared::new(degrees_of_freedom as f64) {
        Ok(law) => Ok(law.sample(rng)),
        // Only for 0 degrees of freedom; a ball has at least 2.
        Err(_) => Err(Error::Dimension { dimension: degrees_of_freedom }),
    }
}
