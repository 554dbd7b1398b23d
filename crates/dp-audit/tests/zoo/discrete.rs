//! Integer noise with a coding error. Inputs 0 and 1, epsilon 1.

use dp_accountant::{Epsilon, EventLog, ReplaceOne};
use dp_mechanisms::{Bounded, DiscreteLaplace, L1Sensitivity, Mechanism, SeededRng};
use rand::RngExt;

use crate::specimen::{Specimen, pick, pure};
use crate::textbook::exponential;

/// Draws a geometric variable on 0, 1, ...: the integer part of an exponential one.
fn geometric(rng: &mut SeededRng) -> i64 {
    exponential(rng).floor() as i64
}

/// Releases `value` by this workspace's discrete Laplace mechanism.
fn release(value: i64, rng: &mut SeededRng) -> i64 {
    let sensitivity = L1Sensitivity::<ReplaceOne>::new(1.0).unwrap();
    let mechanism = DiscreteLaplace::new(sensitivity, Epsilon::new(1.0).unwrap()).unwrap();
    let value = Bounded::with_proven_sensitivity(value, sensitivity);
    mechanism.release(value, &mut EventLog::new(), rng).unwrap().into_inner()
}

pub(crate) fn specimens() -> Vec<Specimen> {
    vec![
        // Sign and magnitude are drawn separately, and a negative zero counts as zero: the mass at 0 is doubled.
        Specimen::event(
            "discrete Laplace that keeps the negative zero",
            "0 and 1",
            pure(1.0),
            |side, rng| {
                let magnitude = geometric(rng);
                pick(side, 0, 1) + if rng.random::<bool>() { magnitude } else { -magnitude } == 0
            },
            |side, rng| release(pick(side, 0, 1), rng) == 0,
        ),
        Specimen::event(
            "one-sided geometric noise",
            "0 and 1",
            pure(1.0),
            |side, rng| pick(side, 0, 1) + geometric(rng) == 0,
            |side, rng| release(pick(side, 0, 1), rng) == 0,
        ),
    ]
}
