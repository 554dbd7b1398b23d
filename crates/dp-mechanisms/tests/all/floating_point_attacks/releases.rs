//! The same attacks on every release of the crate that adds noise to numbers.
//!
//! Noise has scale or standard deviation 1, so that the grids of doubles around inputs are those of the attacks on plain noise.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Epsilon, EventLog, NoiseMultiplier, ReplaceOne, ZeroOut};
use dp_mechanisms::clip::{AdaptiveClipping, ClippingNorm, ExactSum, LayeredGaussian};
use dp_mechanisms::continual::{Factor, MatrixFactorisation, Participation, TreeAggregation};
use dp_mechanisms::sparse_vector::Answer;
use dp_mechanisms::{
    AboveThreshold, Bounded, DiscreteGaussian, DiscreteLaplace, Gaussian, GaussianMixture, Laplace, LaplaceBall,
    Mechanism, Norm, SeededRng, Sensitivity, Staircase,
};

use super::attack::{Window, chance, success_by_low_bits};

/// Pairs of inputs: on the grid, off the grid, and in a range where doubles are nearly as coarse as the grid.
const PAIRS: [[f64; 2]; 3] = [[0.0, 1.0], [0.0, 1.0 / 3.0], [1e6 + 0.1, 1e6 + 0.7]];

const MODES: [NoiseMode; 2] = [NoiseMode::Exact, NoiseMode::Rounded];

fn one<N: Norm>() -> Sensitivity<N, ReplaceOne> {
    Sensitivity::new(1.0).unwrap()
}

fn epsilon() -> Epsilon {
    Epsilon::new(1.0).unwrap()
}

/// Runs the attacks on every pair around the first input, and on the first pair also where all outputs have one exponent: no
/// attack may be right more or less often than chance allows.
fn withstands(name: &str, seed: u64, release: impl Fn(f64, &mut SeededRng) -> f64) {
    let attacks = PAIRS.map(|pair| (pair, -0.25, 0.25)).into_iter().chain([(PAIRS[0], 0.25, 0.5)]);
    for (pair, from, to) in attacks {
        let mut rng = SeededRng::new(seed);
        let window = Window { from: pair[0] + from, to: pair[0] + to };
        let success = success_by_low_bits(window, |input| release(pair[input], &mut rng));
        println!("{name:34} {pair:?} {from}..{to} low bits: {:5.1}% right", 100.0 * success);
        assert!((success - 0.5).abs() <= chance(), "{name} {pair:?} {from}..{to}: {success}");
    }
}

/// The first coordinate of a release of `dim` equal ones.
fn vector<M>(name: &str, mechanism: &M, dim: usize, seed: u64)
where
    M: Mechanism<Vec<f64>, ReplaceOne, Output = Vec<f64>>,
{
    withstands(name, seed, |value, rng| {
        let input = Bounded::with_proven_sensitivity(vec![value; dim], one());
        mechanism.release(input, &mut EventLog::new(), rng).unwrap().get()[0]
    });
}

#[test]
fn gaussian() {
    for (seed, mode) in (11..).zip(MODES) {
        let gaussian = Gaussian::from_std_dev(one(), 1.0).unwrap().with_noise_mode(mode).unwrap();
        vector(&format!("Gaussian {mode:?}"), &gaussian, 1, seed);
    }
}

#[test]
fn laplace() {
    for (seed, mode) in (15..).zip(MODES) {
        let laplace = Laplace::new(one(), epsilon()).unwrap().with_noise_mode(mode).unwrap();
        vector(&format!("Laplace {mode:?}"), &laplace, 1, seed);
    }
}

#[test]
fn staircase() {
    let staircase = Staircase::<ReplaceOne>::new(one(), epsilon()).unwrap();
    withstands("staircase", 17, |value, rng| {
        let input = Bounded::with_proven_sensitivity(value, one());
        *staircase.release(input, &mut EventLog::new(), rng).unwrap().get()
    });
}

#[test]
fn gaussian_mixture() {
    for (seed, mode) in (13..).zip(MODES) {
        let mixture = GaussianMixture::new(1.0, vec![0.5, 1.0], vec![0.5, 0.5]).unwrap();
        vector(&format!("Gaussian mixture {mode:?}"), &mixture.with_noise_mode(mode).unwrap(), 1, seed);
    }
}

#[test]
fn ball() {
    for (seed, mode) in (21..).zip(MODES) {
        for dim in [1, 3] {
            let ball = LaplaceBall::new(one(), epsilon(), dim).unwrap().with_noise_mode(mode).unwrap();
            vector(&format!("Laplace ball, d = {dim}, {mode:?}"), &ball, dim as usize, seed);
        }
    }
}

/// Integers have no fractions; in units of 2^-16 they are examined like any other output.
#[test]
fn integer_noise() {
    const UNIT: f64 = (1 << 16) as f64;
    let steps = |value: f64| (value * UNIT).round() as i64;
    let laplace = DiscreteLaplace::<ReplaceOne>::new(Sensitivity::new(UNIT).unwrap(), epsilon()).unwrap();
    withstands("discrete Laplace", 31, |value, rng| {
        let input = Bounded::with_proven_sensitivity(steps(value), Sensitivity::new(UNIT).unwrap());
        *laplace.release(input, &mut EventLog::new(), rng).unwrap().get() as f64 / UNIT
    });
    let gaussian = DiscreteGaussian::<ReplaceOne>::from_scale(Sensitivity::new(UNIT).unwrap(), UNIT, 1).unwrap();
    withstands("discrete Gaussian", 32, |value, rng| {
        let input = Bounded::with_proven_sensitivity(steps(value), Sensitivity::new(UNIT).unwrap());
        *gaussian.release(input, &mut EventLog::new(), rng).unwrap().get() as f64 / UNIT
    });
}

/// A query far above the threshold, answered with its value.
#[test]
fn sparse_vector_values() {
    let mechanism = AboveThreshold::<ReplaceOne>::new(one(), epsilon(), 1).unwrap().with_values(epsilon()).unwrap();
    withstands("sparse vector, values", 41, |value, rng| {
        let mut log = EventLog::new();
        let mut session = mechanism.start(-1000.0, &mut log, rng).unwrap();
        let query = Bounded::with_proven_sensitivity(value, one());
        match session.answer(query, &mut log, rng).unwrap().get() {
            Answer::Above { value: Some(value) } => *value,
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn layers() {
    let parts = vec![Gaussian::from_std_dev(one(), 1.0).unwrap(), Gaussian::from_std_dev(one(), 2.0).unwrap()];
    let mechanism = LayeredGaussian::<ReplaceOne>::new(parts).unwrap();
    withstands("layers", 51, |value, rng| {
        let inputs = vec![value, 0.0].into_iter().map(|value| Bounded::with_proven_sensitivity(vec![value], one()));
        mechanism.release(inputs.collect(), &mut EventLog::new(), rng).unwrap().get()[0][0]
    });
}

/// The sum. The norm of the next step is a function of a count, which is a whole number of halves.
#[test]
fn adaptive_clipping() {
    let clipping = AdaptiveClipping::<ZeroOut>::new(0.5, 0.2, 10.0, NoiseMultiplier::new(0.95).unwrap(), 1.0).unwrap();
    let norm = ClippingNorm::new(1.0).unwrap();
    withstands("adaptive clipping, sum", 61, |value, rng| {
        let mut state = clipping.start(norm).unwrap();
        let count = state.count();
        let sum = Bounded::with_proven_sensitivity(vec![value], Sensitivity::new(1.0).unwrap());
        state.release(sum, count, &mut EventLog::new(), rng).unwrap().get().sum[0]
    });
}

/// Records whose sum is the value, clipped and added exactly.
#[test]
fn exact_sums() {
    let gaussian = Gaussian::<ZeroOut>::from_std_dev(Sensitivity::new(2e6).unwrap(), 1.0).unwrap();
    let empty = ExactSum::for_release(1, ClippingNorm::new(2e6).unwrap().into(), &gaussian, 2).unwrap();
    withstands("exact sum", 71, |value, rng| {
        let mut sum = empty.like();
        sum.add(&[0.9 * value]).unwrap();
        sum.add(&[0.1 * value]).unwrap();
        gaussian.release(sum.finish(), &mut EventLog::new(), rng).unwrap().get()[0]
    });
}

/// The first prefix is one node, the third the sum of two; the second increment cancels half of the first's noise.
#[test]
fn streams() {
    let each = Sensitivity::<_, ZeroOut>::new(1.0).unwrap();
    let step = |value| Bounded::with_proven_sensitivity(vec![value], Sensitivity::<_, ZeroOut>::new(1.0).unwrap());
    let tree = TreeAggregation::from_std_dev(each, 1, 4, Participation::once(), 1.0).unwrap();
    for (name, tree, last) in [
        ("tree", tree.clone(), 1),
        ("tree, third prefix", tree.clone(), 3),
        ("tree, reduced", tree.with_variance_reduction(), 2),
    ] {
        withstands(name, 81, |value, rng| {
            let mut log = EventLog::new();
            let mut session = tree.start(&mut log, rng);
            let mut prefix = session.step(step(value), &mut log, rng).unwrap();
            for _ in 1..last {
                prefix = session.step(step(0.0), &mut log, rng).unwrap();
            }
            prefix.get()[0]
        });
    }
    let factor = Factor::square_root(4).unwrap();
    let mechanism = MatrixFactorisation::from_std_dev(factor, Participation::once(), each, 1, 1.0).unwrap();
    withstands("matrix factorisation", 91, |value, rng| {
        let mut log = EventLog::new();
        let mut session = mechanism.start(&mut log, rng);
        session.step(step(0.0), &mut log, rng).unwrap();
        session.step(step(value), &mut log, rng).unwrap().get().increment[0]
    });
}
