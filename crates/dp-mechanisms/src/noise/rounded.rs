//! Noise in double precision, rounded to the grid.

use nalgebra::RealField;
use rand::CryptoRng;
use rand_distr::{ChiSquared, Distribution, Exp1, StandardNormal};

use super::drawing::BlockNoise;
use super::{Law, largest};
use crate::error::Error;
use crate::grid::Grid;

/// Number of coordinates whose noise is drawn together: small enough for the first-level cache.
const MANY: usize = 256;
/// For short vectors, for which clearing the memory of a full block would take as long as drawing the noise.
const SOME: usize = 64;

/// Independent noise of a law and a scale in steps of the grid.
///
/// The sum is computed in `f64` and converted to the vector's type once.
pub(super) struct Rounded {
    pub(super) law: Law,
    pub(super) scale: f64,
    pub(super) grid: Grid,
}

impl BlockNoise for Rounded {
    fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(&self, values: &mut [F], rng: &mut R) -> Result<(), Error> {
        match self.law {
            Law::Normal => self.add_drawn(values, || StandardNormal.sample(rng)),
            Law::Laplace => self.add_drawn(values, || {
                let magnitude: f64 = Exp1.sample(rng);
                if rng.next_u32() >> 31 == 1 { -magnitude } else { magnitude }
            }),
        }
        Ok(())
    }
}

impl Rounded {
    fn add_drawn<F: RealField + Copy>(&self, values: &mut [F], draw: impl FnMut() -> f64) {
        if values.len() <= SOME {
            self.add_with([0.0; SOME], values, draw);
        } else {
            self.add_with([0.0; MANY], values, draw);
        }
    }

    fn add_with<F: RealField + Copy, const LEN: usize>(
        &self,
        mut noise: [f64; LEN],
        values: &mut [F],
        mut draw: impl FnMut() -> f64,
    ) {
        let largest = largest::<F>();
        for values in values.chunks_mut(LEN) {
            let noise = &mut noise[..values.len()];
            for noise in noise.iter_mut() {
                *noise = self.scale * draw();
            }
            for (value, &noise) in values.iter_mut().zip(&*noise) {
                let sum = self.grid.round_sum(value.to_subset_unchecked(), noise);
                *value = nalgebra::convert(sum.clamp(-largest, largest));
            }
        }
    }
}

/// Samples a chi-square deviate.
pub(super) fn chi_square<R: CryptoRng + ?Sized>(degrees_of_freedom: u64, rng: &mut R) -> Result<f64, Error> {
    match ChiSquared::new(degrees_of_freedom as f64) {
        Ok(law) => Ok(law.sample(rng)),
        // Only for 0 degrees of freedom; a ball has at least 2.
        Err(_) => Err(Error::Dimension { dimension: degrees_of_freedom }),
    }
}
