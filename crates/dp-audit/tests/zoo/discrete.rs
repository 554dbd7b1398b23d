//! Integer noise with a slip of the pen. Inputs 0 and 1, epsilon 1.

use dp_mechanisms::SeededRng;
use rand::RngExt;

use crate::specimen::{Specimen, pick, pure};
use crate::textbook::exponential;

/// Geometric on 0, 1, ...: the integer part of an exponential deviate.
fn geometric(rng: &mut SeededRng) -> i64 {
    exponential(rng).floor() as i64
}

/// A difference of geometrics is discrete Laplace.
fn discrete_laplace(rng: &mut SeededRng) -> i64 {
    let (one, other) = (geometric(rng), geometric(rng));
    one - other
}

pub(crate) fn specimens() -> Vec<Specimen> {
    vec![
        // Sign and magnitude are drawn apart, and a negative zero counts as zero: the mass at 0 is doubled.
        Specimen::event(
            "discrete Laplace that keeps the negative zero",
            "0 and 1",
            pure(1.0),
            |side, rng| {
                let magnitude = geometric(rng);
                pick(side, 0, 1) + if rng.random::<bool>() { magnitude } else { -magnitude } == 0
            },
            |side, rng| pick(side, 0, 1) + discrete_laplace(rng) == 0,
        ),
        Specimen::event(
            "one-sided geometric noise",
            "0 and 1",
            pure(1.0),
            |side, rng| pick(side, 0, 1) + geometric(rng) == 0,
            |side, rng| pick(side, 0, 1) + discrete_laplace(rng) == 0,
        ),
    ]
}
