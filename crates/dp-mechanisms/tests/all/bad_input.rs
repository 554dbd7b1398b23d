//! Every public constructor and release, on all combinations of extreme and invalid numbers.
//!
//! A constructor either refuses with an error that names the parameter and its value, or accepts; nothing panics and nothing runs
//! forever. The worst outcome is a configuration that is accepted and releases without noise. So each accepted one makes 64
//! releases, and its noise is compared with its stated law.

mod constructors;
mod continuous;
mod discrete;
mod generators;
mod noise;
mod public_functions;
#[cfg(feature = "serde")]
mod records;
mod values;

/// Numbers that are invalid wherever a positive, finite and normal number is required.
const NEVER_POSITIVE: [f64; 7] = [-1.0, -0.0, 0.0, 5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// Numbers that may be accepted, alone or together: ends of ranges and products that overflow.
const EXTREME: [f64; 11] = [
    f64::MIN_POSITIVE,
    1e-300,
    1e-17,
    0.3,
    1.0 - f64::EPSILON / 2.0,
    1.0,
    1.0 + f64::EPSILON,
    7.0,
    1e17,
    1e300,
    f64::MAX,
];

/// Counts: none, one, the ends of what is accepted, the largest.
const COUNTS: [u64; 8] = [0, 1, 2, 3, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, u64::MAX];

/// Every number of both lists.
fn numbers() -> impl Iterator<Item = f64> + Clone {
    NEVER_POSITIVE.into_iter().chain(EXTREME)
}
