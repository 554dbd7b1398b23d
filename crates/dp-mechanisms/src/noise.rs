//! Noise: the only file that names a distribution.
//!
//! A [`Sampler`] stands for one [`NoiseMode`]. It takes the value to be released by value and returns it with noise, on
//! the grid; no noise outlives the call. All noise of a release is drawn before the value is first read, so the
//! sampler's running time, which depends on its random bits, does not depend on the value.

use dp_accountant::certificate::NoiseMode;
use nalgebra::RealField;
use rand::CryptoRng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::error::Error;
use crate::grid::Grid;

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
            Self::Rounded => NoiseInSteps::normal(value.len(), grid.in_steps(std_dev), rng).add_to(value, grid),
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
                Ok(NoiseInSteps::normal(value.len(), steps, rng).add_to(value, grid))
            }
        }
    }
}

/// A vector of noise in units of a grid's step. Adding it consumes it, so that none is used twice.
struct NoiseInSteps(Vec<f64>);

impl NoiseInSteps {
    /// Independent normals with this standard deviation.
    fn normal<R: CryptoRng + ?Sized>(dim: usize, std_dev_in_steps: f64, rng: &mut R) -> Self {
        Self(StandardNormal.sample_iter(rng).take(dim).map(|normal: f64| std_dev_in_steps * normal).collect())
    }

    /// The sum on the grid. It is computed in `f64` and converted to `F` once; where it exceeds the largest `F`, it
    /// stops there.
    fn add_to<F: RealField + Copy>(self, mut value: Vec<F>, grid: Grid) -> Vec<F> {
        let largest = F::max_value().map_or(f64::MAX, |largest| largest.to_subset_unchecked());
        for (coordinate, noise) in value.iter_mut().zip(self.0) {
            let sum = grid.round_sum(coordinate.to_subset_unchecked(), noise);
            *coordinate = nalgebra::convert(sum.clamp(-largest, largest));
        }
        value
    }
}

/// A chi-square deviate.
fn chi_square<R: CryptoRng + ?Sized>(degrees_of_freedom: u64, rng: &mut R) -> Result<f64, Error> {
    match ChiSquared::new(degrees_of_freedom as f64) {
        Ok(law) => Ok(law.sample(rng)),
        // Only for 0 degrees of freedom; a ball has at least 2.
        Err(_) => Err(Error::Dimension { dimension: degrees_of_freedom }),
    }
}
