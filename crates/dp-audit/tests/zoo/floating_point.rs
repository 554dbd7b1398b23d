//! Laplace noise of scale 1 on answers 0 and 1, added in plain floating point. The event is an output within 1/4 of 0 that is
//! not a multiple of 2^-53. From 1 it is impossible.
//!
//! I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012; S. Haney et al.,
//! "Precision-based attacks and interval refining", 2022, arXiv 2207.13793.

use dp_mechanisms::SeededRng;
use rand::{Rng, RngExt};

use crate::specimen::{Specimen, pick, pure};
use crate::textbook::{exponential, release_ball};

/// Draws a multiple of `2^-53` in `(0, 1]`.
fn unit(rng: &mut SeededRng) -> f64 {
    1.0 - rng.random::<f64>()
}

fn signed(magnitude: f64, rng: &mut SeededRng) -> f64 {
    if rng.random::<bool>() { magnitude } else { -magnitude }
}

/// Returns the sum of four terms of uniform doubles, proposed against attacks on the logarithm of one.
fn four_uniforms(rng: &mut SeededRng) -> f64 {
    let mut product = || unit(rng).ln() * (core::f64::consts::PI * unit(rng)).cos();
    product() + product()
}

/// Draws nearly ideal double-precision noise: a ziggurat's exponential with bits appended below its last.
fn fine(rng: &mut SeededRng) -> f64 {
    let magnitude = exponential(rng);
    let below = (rng.next_u64() >> 11) as f64 * 2f64.powi(-53) * magnitude * f64::EPSILON;
    signed(magnitude + below, rng)
}

pub(crate) fn specimens() -> Vec<Specimen> {
    let specimen = |name, noise: fn(&mut SeededRng) -> f64| {
        Specimen::event(
            name,
            "0 and 1",
            pure(1.0),
            move |side, rng| tells(pick(side, 0.0, 1.0) + noise(rng)),
            |side, rng| tells(release_ball(vec![pick(side, 0.0, 1.0)], 1.0, rng)[0]),
        )
        .with_trials(1_000)
    };
    vec![
        specimen("floating point: logarithm of a uniform double", |rng| {
            let magnitude = -unit(rng).ln();
            signed(magnitude, rng)
        }),
        specimen("floating point: four uniform doubles", four_uniforms),
        specimen("floating point: good noise, rounded addition", fine),
    ]
}

fn tells(output: f64) -> bool {
    output.abs() < 0.25 && (output * 2f64.powi(53)).fract() != 0.0
}
