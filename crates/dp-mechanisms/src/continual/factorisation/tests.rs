use super::*;
use crate::rng::{OsSeeded, SeededRng};
use dp_accountant::certificate::Assumption;
use dp_accountant::{ReplaceOne, ZeroOut};
use num_bigint::BigInt;
use proptest::prelude::*;

fn each<A: Adjacency>(value: f64) -> L2Sensitivity<A> {
    L2Sensitivity::new(value).unwrap()
}

fn mechanism(factor: Factor, dim: usize, std_dev: f64) -> MatrixFactorisation<ZeroOut> {
    MatrixFactorisation::from_std_dev(factor, Participation::once(), each(1.0), dim, std_dev).unwrap()
}

fn input(value: Vec<f64>) -> Bounded<Vec<f64>, ZeroOut> {
    Bounded::with_proven_sensitivity(value, each(1.0))
}

#[test]
fn refused_parameters() {
    let factor = Factor::square_root(10).unwrap();
    let new = |dim, std_dev| {
        MatrixFactorisation::<ZeroOut>::from_std_dev(factor.clone(), Participation::once(), each(1.0), dim, std_dev)
            .err()
    };
    assert_eq!(new(0, 1.0), Some(Error::Dimension { dimension: 0 }));
    assert!(matches!(new(1, f64::INFINITY), Some(Error::NotFinite { .. })));
    assert!(matches!(new(1, -1.0), Some(Error::NotPositive { .. })));
    assert!(matches!(new(1, 1e-300), Some(Error::ScaleOverflow { .. })));
    // The largest coefficients of a factor still leave room for inputs.
    assert!(mechanism(Factor::toeplitz(2, &[1024.0, 1024.0]).unwrap(), 1, 1.0).largest_error() > 0.0);
}

#[test]
fn the_cost_is_logged_once_and_the_stream_ends() {
    let mechanism = mechanism(Factor::square_root(2).unwrap(), 2, 1.0);
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut session = mechanism.start(&mut log, &mut rng);
    let mut refused = |input| session.step(input, &mut log, &mut rng).err();
    assert_eq!(refused(input(vec![1.0])), Some(Error::DimensionMismatch { expected: 2, found: 1 }));
    assert_eq!(refused(input(vec![1.0, f64::INFINITY])), Some(Error::NonFiniteInput));
    let larger = Bounded::with_proven_sensitivity(vec![0.0; 2], each(1.5));
    assert_eq!(refused(larger), Some(Error::SensitivityExceeded { found: 1.5, built_for: 1.0 }));
    let copied = session.step(input(vec![0.0; 2]), &mut log.clone(), &mut SeededRng::new(1));
    assert_eq!((copied.err(), session.steps_taken()), (Some(Error::OtherLog), 0));
    for _ in 0..2 {
        session.step(input(vec![1.0, 2.0]), &mut log, &mut rng).unwrap();
    }
    let after = session.step(input(vec![1.0, 2.0]), &mut log, &mut rng);
    assert_eq!(after.err(), Some(Error::SessionOver { what: "steps", most: 2 }));
    assert_eq!((session.steps_taken(), log.entries()), (2, &[(mechanism.event(), 1)][..]));
    assert!(log.is_private());
    session = mechanism.start(&mut log, &mut rng);
    session.step(input(vec![0.0; 2]).assuming(Assumption::FloatSum), &mut log, &mut SeededRng::new(1)).unwrap();
    assert!(!log.is_private() && log.assumptions().contains(&Assumption::FloatSum));
}

#[test]
fn the_noise_is_at_least_the_multiplier_times_the_sensitivity() {
    let participation = Participation::repeated(4, 25).unwrap();
    for (z, dim) in [(0.5, 3), (30.0, 1 << 20)] {
        let factor = Factor::banded_square_root(100, 10).unwrap();
        let expected = factor.sensitivity(participation).unwrap().value;
        let multiplier = NoiseMultiplier::new(z).unwrap();
        let found =
            MatrixFactorisation::<ReplaceOne>::from_noise_multiplier(factor, participation, each(2.0), dim, multiplier)
                .unwrap();
        let ratio = found.std_dev() / found.sensitivity().get();
        assert!(ratio >= z && ratio <= z * (1.0 + 1e-9));
        let sensitivity = found.sensitivity().get() / (2.0 * expected);
        // The truncation of inputs: below 2^-41 z √d, 1e-8 here.
        assert!((1.0..1.0 + 2e-8).contains(&sensitivity), "{sensitivity}");
    }
}

fn factors(steps: usize) -> [Factor; 4] {
    let rows: Vec<Vec<f64>> = (0..steps)
        .map(|t| (0..=t).map(|i| if i == t { 1.0 } else { 0.3 * ((t * 7 + i * 3) as f64).sin() }).collect())
        .collect();
    [
        Factor::square_root(steps).unwrap(),
        Factor::banded_square_root(steps, 3).unwrap(),
        Factor::toeplitz(steps, &[1.0, -0.5, 0.125]).unwrap(),
        Factor::lower_triangular(&rows).unwrap(),
    ]
}

/// Noise far below the data: increments and prefixes are recovered, within 9 stated standard deviations (1e-17 each).
#[test]
fn prefixes_are_sums() {
    let mut rng = SeededRng::new(2);
    for factor in factors(30) {
        let mechanism = mechanism(factor, 2, 1e-3);
        let mut log = EventLog::new();
        let mut session = mechanism.start(&mut log, &mut rng);
        let (mut exact, mut found) = ([0.0; 2], [0.0; 2]);
        for t in 0..30 {
            let value = [1e5 * f64::from(t).sin(), 0.1 * f64::from(t)];
            let released = session.step(input(value.to_vec()), &mut log, &mut rng).unwrap().into_inner();
            for i in 0..2 {
                exact[i] += value[i];
                found[i] += released.increment[i];
                assert!((released.prefix[i] - exact[i]).abs() < 9.0 * mechanism.largest_error());
                assert!((released.prefix[i] - found[i]).abs() < 1e-9);
            }
        }
    }
}

/// A factor whose diagonal is not 1 scales the release, not the recovered sums.
#[test]
fn the_diagonal_is_divided_out() {
    let mut rng = SeededRng::new(3);
    let rows = [vec![4.0], vec![1.0, 0.5], vec![0.0, -1.0, 3.0]];
    for factor in [Factor::toeplitz(3, &[2.0, 1.0]).unwrap(), Factor::lower_triangular(&rows).unwrap()] {
        let mechanism = mechanism(factor, 1, 1e-6);
        let mut log = EventLog::new();
        let mut session = mechanism.start(&mut log, &mut rng);
        for value in [1.0, -5.0, 7.0] {
            let released = session.step(input(vec![value]), &mut log, &mut rng).unwrap().into_inner();
            assert!((released.increment[0] - value).abs() < 1e-4, "{released:?}, {value}");
        }
    }
}

/// The variance of the prefixes' noise is that of the recovery, for every kind of factor: means over 20000 coordinates and 6.5
/// standard errors for the largest (1e-10).
#[test]
fn noise_has_the_stated_size() {
    const DIM: usize = 20_000;
    let mut rng = SeededRng::new(3);
    for factor in factors(6) {
        let mechanism = mechanism(factor, DIM, 2.0);
        let mut log = EventLog::new();
        let mut session = mechanism.start(&mut log, &mut rng);
        let mut variances = Vec::new();
        for _ in 0..6 {
            let released = session.step(input(vec![0.0; DIM]), &mut log, &mut rng).unwrap().into_inner();
            variances.push(released.prefix.iter().map(|x| x * x).sum::<f64>() / DIM as f64);
        }
        let largest = variances.iter().copied().fold(0.0, f64::max);
        let mean = variances.iter().sum::<f64>() / 6.0;
        let margin = 6.5 * (2.0 / DIM as f64).sqrt();
        assert!((largest / mechanism.largest_error().powi(2) - 1.0).abs() < margin);
        assert!((mean / mechanism.rms_error().powi(2) - 1.0).abs() < margin);
    }
}

/// With the identity as factor, the release is the input with independent noise, on the grid.
#[test]
fn rows_are_released_on_the_grid() {
    let mechanism = mechanism(Factor::toeplitz(5, &[1.0]).unwrap(), 100, 0.7);
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(4));
    let mut session = mechanism.start(&mut log, &mut rng);
    for t in 0..5 {
        let value = (0..100).map(|i| f64::from(t * 100 + i).sin() / 3.0).collect();
        let released = session.step(input(value), &mut log, &mut rng).unwrap();
        assert!(released.get().increment.iter().all(|x| x % mechanism.grid.noise().grid().step() == 0.0));
    }
}

proptest! {
    /// The sensitivity of the release, in exact integers: streams that differ in one record's contributions of norm at most
    /// `each`, on any grid, move `Cf G` by at most the stated sensitivity, including truncation of the inputs.
    #[test]
    fn streams_of_neighbours_are_within_the_sensitivity(
        which in 0usize..4, values in prop::collection::vec(prop::array::uniform3(-1e3f64..1e3), 6),
        directions in prop::collection::vec(prop::array::uniform3(-1.0f64..1.0), 6), most in 1u64..4, separation in 1u64..4,
        first in 0usize..6, std_dev in 1e-3f64..1e9,
    ) {
        let factor = factors(6)[which].clone();
        let participation = Participation::repeated(most, separation).unwrap();
        let mechanism =
            MatrixFactorisation::<ZeroOut>::from_std_dev(factor.clone(), participation, each(1.0), 3, std_dev).unwrap();
        let takes_part = |t: usize| t >= first && (t - first).is_multiple_of(separation as usize)
            && (t - first) / (separation as usize) < most as usize;
        let other: Vec<[f64; 3]> = values.iter().zip(&directions).enumerate().map(|(t, (value, direction))| {
            let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-3);
            let mut moved = *value;
            if takes_part(t) {
                // Slightly below the norm, so that the sum's own rounding does not exceed it.
                moved.iter_mut().zip(direction).for_each(|(moved, x)| *moved += x / norm * (1.0 - 1e-9));
            }
            moved
        }).collect();
        let inputs = |stream: &[[f64; 3]]| -> Vec<Vec<i128>> {
            stream.iter().map(|value| mechanism.grid.input(value)).collect()
        };
        let (one, other) = (inputs(&values), inputs(&other));
        let mut square = BigInt::from(0);
        for t in 0..6 {
            for coordinate in 0..3 {
                let moved: i128 = (0..=t)
                    .map(|i| i128::from(factor.numerator(t, i)) * (one[i][coordinate] - other[i][coordinate]))
                    .sum();
                square += BigInt::from(moved) * BigInt::from(moved);
            }
        }
        // The stated sensitivity in the same units, g 2^-52, rounded down.
        let units = mechanism.sensitivity().get() / mechanism.grid.noise().grid().step() * 2f64.powi(52);
        let units = BigInt::from(units as u128);
        prop_assert!(square <= &units * &units);
    }
}
