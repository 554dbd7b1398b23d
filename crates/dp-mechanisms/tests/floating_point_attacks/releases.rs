//! The same attacks on every additive release of the crate.

use dp_accountant::{Epsilon, EventLog, ReplaceOne};
use dp_mechanisms::{Bounded, Gaussian, GaussianMixture, L2, L2Sensitivity, LaplaceBall, Mechanism, SeededRng};

use crate::attack::{Window, chance, success_by_low_bits};

/// Pairs of inputs, in units of the noise scale: on the grid, off the grid, and where doubles are nearly as coarse as
/// the grid.
const PAIRS: [[f64; 2]; 3] = [[0.0, 1.0], [0.0, 1.0 / 3.0], [1e6 + 0.1, 1e6 + 0.7]];

/// Runs the attacks on the first coordinate of a release of `dim` equal coordinates.
fn withstands<M: Mechanism<Vec<f64>, ReplaceOne, Norm = L2, Output = Vec<f64>>>(
    name: &str,
    mechanism: &M,
    dim: usize,
    seed: u64,
) {
    withstands_with(name, seed, |value, rng| {
        let input = Bounded::with_proven_sensitivity(vec![value; dim], sensitivity());
        mechanism.release(input, &mut EventLog::new(), rng).unwrap().get()[0]
    });
}

/// Both windows, every pair: no attack is right more often than a coin may be by chance, nor less often.
fn withstands_with(name: &str, seed: u64, release: impl Fn(f64, &mut SeededRng) -> f64) {
    for pair in PAIRS {
        for (from, to) in [(-0.25, 0.25), (0.125, 0.25)] {
            let mut rng = SeededRng::new(seed);
            let window = Window { from: pair[0] + from, to: pair[0] + to };
            let success = success_by_low_bits(window, |input| release(pair[input], &mut rng));
            println!("{name:40} {pair:?} {from}..{to} low bits: {:5.1}% right", 100.0 * success);
            assert!((success - 0.5).abs() <= chance(), "{name} {pair:?} {from}..{to}: {success}");
        }
    }
}

fn sensitivity() -> L2Sensitivity<ReplaceOne> {
    L2Sensitivity::new(1.0).unwrap()
}

fn epsilon() -> Epsilon {
    Epsilon::new(1.0).unwrap()
}

#[test]
fn gaussian() {
    withstands("Gaussian", &Gaussian::from_std_dev(sensitivity(), 1.0).unwrap(), 1, 11);
}

#[test]
fn ball() {
    for (dim, seed) in [(1, 21), (5, 22)] {
        withstands(
            &format!("Laplace ball, d = {dim}"),
            &LaplaceBall::new(sensitivity(), epsilon(), dim).unwrap(),
            dim as usize,
            seed,
        );
    }
}
