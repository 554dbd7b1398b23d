//! Drawing a map from a seed with the same bits on every platform: integers from the key stream of ChaCha20, and in floating
//! point only `+`, `-`, `*`, `/` and the square root, which IEEE 754 rounds correctly. The standard library's logarithm depends
//! on the platform, so this module has its own.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use core::f64::consts::{LN_2, SQRT_2};

/// Separates the streams of the kinds. Together with the seed it is the key, so it must not change.
const GAUSSIAN: &[u8; 24] = b"dp projection gaussian 1";
const COORDINATES: &[u8; 24] = b"dp projection coordin. 1";
const FOURIER: &[u8; 24] = b"dp fourier features   1.";

/// The distance of adjacent drawn numbers in `[-1, 1)`: `2^-52`.
const STEP: f64 = 1.0 / (1_u64 << 52) as f64;

fn stream(seed: u64, domain: &[u8; 24]) -> ChaCha20Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..].copy_from_slice(domain);
    ChaCha20Rng::from_seed(key)
}

/// Returns `count` numbers from `N(0, 1/features)`.
pub(super) fn gaussian(seed: u64, features: u32, count: usize) -> Vec<f64> {
    normals(&mut stream(seed, GAUSSIAN), 1.0 / f64::from(features).sqrt(), count)
}

/// Returns `phases` numbers from the uniform law on `[-1/2, 1/2)`, and `count` from `N(0, 1)`.
pub(super) fn fourier(seed: u64, phases: usize, count: usize) -> (Vec<f64>, Vec<f64>) {
    let mut stream = stream(seed, FOURIER);
    let uniform = (0..phases).map(|_| 0.5 * symmetric(stream.next_u64())).collect();
    (uniform, normals(&mut stream, 1.0, count))
}

fn normals(stream: &mut ChaCha20Rng, scale: f64, count: usize) -> Vec<f64> {
    let mut entries = Vec::with_capacity(count + 1);
    while entries.len() < count {
        let (one, other) = normal_pair(stream);
        entries.extend([scale * one, scale * other]);
    }
    entries.truncate(count);
    entries
}

/// Returns two independent standard normal numbers by the polar method of Marsaglia & Bray (1964).
fn normal_pair(stream: &mut ChaCha20Rng) -> (f64, f64) {
    loop {
        let (u, v) = (symmetric(stream.next_u64()), symmetric(stream.next_u64()));
        let square = u * u + v * v;
        if square > 0.0 && square < 1.0 {
            let factor = (-2.0 * ln_below_one(square) / square).sqrt();
            return (u * factor, v * factor);
        }
    }
}

/// Returns a number in `[-1, 1)` from 53 bits, exactly.
fn symmetric(bits: u64) -> f64 {
    (bits >> 11) as f64 * STEP - 1.0
}

/// Returns the natural logarithm of a normal number in `(0, 1)`, to a few units in the last place.
///
/// # Formula
/// ```text
/// x = m 2^e, m in [1/sqrt(2), sqrt(2)):   ln x = e ln 2 + 2 (z + z^3/3 + z^5/5 + ...),   z = (m - 1)/(m + 1)
/// ```
/// Since `|z| < 0.172`, twelve terms leave less than `0.172^25`, below `1e-19`.
fn ln_below_one(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | 1.0_f64.to_bits());
    if mantissa >= SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let series = (0..12).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    f64::from(exponent) * LN_2 + 2.0 * z * series
}

/// Returns `count` of the numbers below `of`, without replacement, increasing: the first steps of a Fisher-Yates shuffle.
pub(super) fn coordinates(seed: u64, count: usize, of: u32) -> Vec<u32> {
    let mut stream = stream(seed, COORDINATES);
    let mut all: Vec<u32> = (0..of).collect();
    for at in 0..count.min(all.len()) {
        let other = at + below(&mut stream, (all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
    all.sort_unstable();
    all
}

/// Returns a uniform number below `bound`, which is positive: numbers of the incomplete last round are drawn again.
fn below(stream: &mut ChaCha20Rng, bound: u64) -> u64 {
    let incomplete = (u64::MAX % bound + 1) % bound;
    loop {
        let number = stream.next_u64();
        if number <= u64::MAX - incomplete {
            return number % bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_close() {
        let mut stream = stream(1, GAUSSIAN);
        let near_one = (0..2000).map(|i| 1.0 - f64::from(i + 1) * 1e-4 / 3.0);
        let tiny = (1..60).map(|i| 2.0_f64.powi(-2 * i) * 1.5);
        let random = (0..2000).map(|_| symmetric(stream.next_u64()).abs());
        for x in near_one.chain(tiny).chain(random).filter(|x| *x > 0.0 && *x < 1.0) {
            let (found, expected) = (ln_below_one(x), x.ln());
            assert!((found - expected).abs() <= 4.0 * f64::EPSILON * expected.abs(), "{x}: {found} {expected}");
        }
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        // Chi-square with 6 degrees of freedom of 70,000 draws; above 55 with probability 5e-10.
        let mut stream = stream(3, COORDINATES);
        let mut counts = [0_u32; 7];
        (0..70_000).for_each(|_| counts[below(&mut stream, 7) as usize] += 1);
        let distance: f64 = counts.iter().map(|&count| (f64::from(count) - 1e4).powi(2) / 1e4).sum();
        assert!(distance < 55.0, "{counts:?}");
        assert_eq!(below(&mut stream, 1), 0);
    }
}
