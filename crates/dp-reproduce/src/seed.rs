//! Seeds derived from names, so that every run can be repeated alone and in any order.

use sha2::{Digest, Sha256};

/// Returns the seed of `name`: the first eight bytes of its SHA-256.
///
/// A reproduction is not a private release: anyone can recompute its noise.
///
/// # Examples
/// ```
/// assert_eq!(dp_reproduce::seed::of("abc"), 0xeacf_018f_bf16_78ba);
/// ```
pub fn of(name: &str) -> u64 {
    let hash = Sha256::digest(name.as_bytes());
    hash.iter().take(8).rev().fold(0, |seed, &byte| seed << 8 | u64::from(byte))
}
