//! Unsafe noise in plain floating point. Each function adds noise of scale 1 to `x`.

use rand::{CryptoRng, RngExt};

/// Returns a multiple of `2^-53` in `(0, 1]`.
fn unit<R: CryptoRng>(rng: &mut R) -> f64 {
    1.0 - rng.random::<f64>()
}

/// Returns the textbook Laplace sampler: a logarithm of a uniform double with a random sign.
pub(crate) fn logarithm_laplace<R: CryptoRng>(x: f64, rng: &mut R) -> f64 {
    let magnitude = -unit(rng).ln();
    x + if rng.random::<bool>() { magnitude } else { -magnitude }
}

/// Returns whether [`logarithm_laplace`] can produce `y` from `x`, for `|y - x|` of the order of 1.
pub(crate) fn logarithm_laplace_reaches(x: f64, y: f64) -> bool {
    let noise = y - x;
    if x + noise != y {
        return false;
    }
    let guess = ((-noise.abs()).exp() * 2f64.powi(53)).round();
    (-8..=8).any(|offset| {
        let uniform = (guess + f64::from(offset)) * 2f64.powi(-53);
        uniform > 0.0 && uniform <= 1.0 && -uniform.ln() == noise.abs()
    })
}

/// Returns the sum of four terms of uniform doubles that was proposed as secure against the attack on the logarithm.
pub(crate) fn four_uniform_laplace<R: CryptoRng>(x: f64, rng: &mut R) -> f64 {
    let mut product = || {
        let (radius, angle) = (unit(rng), unit(rng));
        radius.ln() * (core::f64::consts::PI * angle).cos()
    };
    x + (product() + product())
}

/// Box and Muller's normal deviate.
pub(crate) fn box_muller<R: CryptoRng>(x: f64, rng: &mut R) -> f64 {
    let (radius, angle) = (unit(rng), unit(rng));
    x + (-2.0 * radius.ln()).sqrt() * (core::f64::consts::TAU * angle).cos()
}

/// Laplace noise that is ideal to 2^-120 and rounded once, to the nearest double: only the addition is flawed.
///
/// The exponential is von Neumann's: a decreasing run of uniforms ends at an odd length with probability `exp(-first)`; each
/// failure adds 1. Digits below the compared ones are uniform.
pub(crate) fn ideal_laplace<R: CryptoRng>(x: f64, rng: &mut R) -> f64 {
    let mut whole = 0u128;
    let magnitude = loop {
        let first = rng.next_u64();
        let (mut last, mut odd) = (first, true);
        loop {
            let next = rng.next_u64();
            if next >= last {
                break;
            }
            last = next;
            odd = !odd;
        }
        if odd {
            let fraction = u128::from(first) << 56 | u128::from(rng.next_u64() >> 8);
            break ((whole << 120) + fraction) as f64 * 2f64.powi(-120);
        }
        whole += 1;
    };
    x + if rng.random::<bool>() { magnitude } else { -magnitude }
}
