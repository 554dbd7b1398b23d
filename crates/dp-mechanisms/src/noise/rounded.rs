//! Noise in double precision, rounded to the grid.

use nalgebra::RealField;
use rand::CryptoRng;
use rand_distr::{ChiSquared, Distribution, Exp1, StandardNormal};

use super::{BLOCK, FEW, Law, SOME, largest};
use crate::error::Error;
use crate::grid::Grid;

/// Adds independent noise of this scale, in steps of the grid, to a vector.
///
/// The sum is computed in `f64` and converted to `F` once.
pub(super) fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(
    law: Law,
    value: &mut [F],
    scale_in_steps: f64,
    grid: Grid,
    rng: &mut R,
) {
    match law {
        Law::Normal => add_drawn(value, scale_in_steps, grid, || StandardNormal.sample(rng)),
        Law::Laplace => add_drawn(value, scale_in_steps, grid, || {
            let magnitude: f64 = Exp1.sample(rng);
            if rng.next_u32() >> 31 == 1 { -magnitude } else { magnitude }
        }),
    }
}

fn add_drawn<F: RealField + Copy>(value: &mut [F], scale_in_steps: f64, grid: Grid, mut draw: impl FnMut() -> f64) {
    let largest = largest::<F>();
    let (mut few, mut some, mut many);
    let noise: &mut [f64] = if value.len() <= FEW {
        few = [0.0; FEW];
        &mut few
    } else if value.len() <= SOME {
        some = [0.0; SOME];
        &mut some
    } else {
        many = [0.0; BLOCK];
        &mut many
    };
    for block in value.chunks_mut(noise.len()) {
        let noise = &mut noise[..block.len()];
        for noise in noise.iter_mut() {
            *noise = scale_in_steps * draw();
        }
        for (coordinate, &noise) in block.iter_mut().zip(&*noise) {
            let sum = grid.round_sum(coordinate.to_subset_unchecked(), noise);
            *coordinate = nalgebra::convert(sum.clamp(-largest, largest));
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
