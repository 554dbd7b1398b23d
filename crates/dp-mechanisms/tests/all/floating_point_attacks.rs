//! Attacks on the floating-point representation of noisy values: they succeed on plain floating-point noise, and on the releases
//! of this crate they are right as often as a random guess.
//!
//! Mironov's attack uses the set of doubles that a sampler reaches; the attack of Haney et al. needs no flaw of the sampler, only
//! the rounded addition. Each test states its counts; an attack on a sound release counts as a success with probability at most
//! 1e-9. `cargo test --test floating_point_attacks -- --nocapture` prints the rates.
//!
//! # References
//! I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
//! S. Haney, D. Desfontaines, L. Hartman, R. Shrestha, M. Hay, "Precision-based attacks and interval refining",
//! arXiv 2207.13793, 2022.
//! N. Holohan, S. Braghin, "Secure random sampling in differential privacy", ESORICS 2021, arXiv 2107.10138.
#![allow(clippy::print_stdout, reason = "the rates are what people run this test for")]

mod attack;
mod plain;
mod releases;

use attack::{Window, lowest_bit, success_by_low_bits, success_by_support};
use dp_mechanisms::SeededRng;

/// Around the first input, as in Mironov's attack.
const AROUND: Window = Window { from: -0.25, to: 0.25 };
/// One power of two, for the precision-based attack.
const ONE_EXPONENT: Window = Window { from: 0.125, to: 0.25 };

type Plain = fn(f64, &mut SeededRng) -> f64;
const PLAIN: [(&str, Plain, u64); 4] = [
    ("logarithm of a uniform double", plain::logarithm_laplace, 1),
    ("four uniform doubles", plain::four_uniform_laplace, 2),
    ("Box and Muller", plain::box_muller, 3),
    ("ideal noise, rounded addition", plain::ideal_laplace, 4),
];

/// Answers 0 and 1, noise of scale 1. Among 8,000 guesses a random guess is right on 50% ± 3.7% (1e-9); required here: 75%.
#[test]
fn low_bits_tell_the_input_of_plain_noise() {
    for (name, sampler, seed) in PLAIN {
        for (place, window) in [("around 0", AROUND), ("in one power of two", ONE_EXPONENT)] {
            let mut rng = SeededRng::new(seed);
            let success = success_by_low_bits(window, |input| sampler([0.0, 1.0][input], &mut rng));
            println!("{name:40} {place:20} low bits: {:5.1}% right", 100.0 * success);
            assert!(success > 0.75, "{name} {place}: {success}");
        }
    }
}

/// The frequency with which an output near 0 is a multiple of 2^-53: always for the answer 1, seldom for the answer 0. One output
/// decides. Counts: 4,000 outputs in the window for each answer.
#[test]
fn outputs_near_zero_are_multiples_of_the_neighbours_precision() {
    let share = |sampler: Plain, answer: f64, seed: u64| {
        let mut rng = SeededRng::new(seed);
        let window = (0..).map(|_| sampler(answer, &mut rng)).filter(|y| y.abs() < 0.25).take(attack::SHOWN);
        window.filter(|&y| lowest_bit(y) >= -53).count() as f64 / attack::SHOWN as f64
    };
    for ((name, sampler, seed), expected) in PLAIN.into_iter().zip([0.16, 0.34, 0.17, 1.0 / 6.0]) {
        let (without, with) = (share(sampler, 0.0, seed), share(sampler, 1.0, seed));
        println!("{name:40} multiples of 2^-53: {:5.1}% from 0, {:5.1}% from 1", 100.0 * without, 100.0 * with);
        assert!((without - expected).abs() < 0.04, "{name}: {without}");
        assert_eq!(with, 1.0, "{name}");
    }
}

/// The attacker computes which doubles the sampler reaches from 0 and from 1.
#[test]
fn the_support_of_plain_noise_tells_its_input() {
    let mut rng = SeededRng::new(7);
    let success = success_by_support(
        AROUND,
        |input| plain::logarithm_laplace([0.0, 1.0][input], &mut rng),
        |input, y| plain::logarithm_laplace_reaches([0.0, 1.0][input], y),
    );
    println!("support of the logarithm's sampler: {:5.1}% right", 100.0 * success);
    assert!(success > 0.75, "{success}");
}

/// A Kolmogorov-Smirnov test of 100,000 magnitudes of the ideal sampler of [`plain`] against `exp(-x)` at a false-alarm rate of
/// 1e-9.
#[test]
fn the_ideal_sampler_is_laplace() {
    let mut rng = SeededRng::new(8);
    let n = 100_000;
    let mut sample: Vec<f64> = (0..n).map(|_| plain::ideal_laplace(0.0, &mut rng).abs()).collect();
    sample.sort_unstable_by(f64::total_cmp);
    let distances = sample.iter().enumerate().map(|(i, x)| {
        let expected = -(-x).exp_m1();
        (expected - i as f64 / n as f64).max((i + 1) as f64 / n as f64 - expected)
    });
    let distance = distances.fold(0.0, f64::max);
    assert!(distance < (2e9f64.ln() / (2.0 * n as f64)).sqrt(), "{distance}");
}
