//! Properties of every additive mechanism, checked for each of them.

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{AddRemoveOne, Adjacency, ChangeListLabels, Epsilon, EventLog, ReplaceOne, ZeroOut};
use dp_mechanisms::{
    Bounded, Error, Gaussian, GaussianMixture, L1, Laplace, LaplaceBall, Mechanism, Norm, OsSeeded, SeededRng,
    Sensitivity,
};
use nalgebra::RealField;

fn bound<N: Norm, A: Adjacency>(value: f64) -> Sensitivity<N, A> {
    Sensitivity::new(value).unwrap()
}

/// The data about a mechanism that the checks need in addition to the trait.
struct Subject<M> {
    mechanism: M,
    sensitivity: f64,
    /// Standard deviation of one coordinate's noise.
    spread: f64,
    step: f64,
    dim: usize,
}

fn laws<F, A, M>(subject: &Subject<M>)
where
    F: RealField + Copy,
    A: Adjacency,
    M: Mechanism<Vec<F>, A, Output = Vec<F>>,
{
    let Subject { mechanism, sensitivity, spread, dim, .. } = subject;
    let filled = |value: f64, sensitivity: f64| {
        Bounded::<Vec<F>, A, M::Norm>::with_proven_sensitivity(vec![nalgebra::convert(value); *dim], bound(sensitivity))
    };

    // One release, one entry, with the stated event; a secret generator keeps the log private.
    let mut log = EventLog::new();
    let mut secret = OsSeeded::new().unwrap();
    let released = mechanism.release(filled(*spread, *sensitivity), &mut log, &mut secret).unwrap();
    assert_eq!(released.get().len(), *dim);
    assert_eq!(log.entries(), [(mechanism.event(), 1)]);
    assert!(log.is_private());

    // A smaller sensitivity costs the stated amount; a larger one is refused.
    mechanism.release(filled(*spread, sensitivity * 0.5), &mut log, &mut secret).unwrap();
    assert_eq!(log.entries(), [(mechanism.event(), 2)]);
    let excessive = sensitivity * (1.0 + f64::EPSILON);
    assert_eq!(
        mechanism.release(filled(*spread, excessive), &mut log, &mut secret),
        Err(Error::SensitivityExceeded { found: excessive, built_for: *sensitivity })
    );

    // A vector that is not finite is refused.
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(mechanism.release(filled(value, *sensitivity), &mut log, &mut secret), Err(Error::NonFiniteInput));
    }
    let empty = Bounded::with_proven_sensitivity(Vec::<F>::new(), bound(*sensitivity));
    assert_eq!(mechanism.release(empty, &mut log, &mut secret), Err(Error::Dimension { dimension: 0 }));

    // Refused releases are not in the log; a reproducible generator marks it permanently.
    assert_eq!(log.entries(), [(mechanism.event(), 2)]);
    assert!(log.is_private());
    let seeded = |log: &mut EventLog<A>, seed| {
        mechanism.release(filled(*spread, *sensitivity), log, &mut SeededRng::new(seed)).unwrap()
    };
    let one = seeded(&mut log, 5);
    assert!(!log.is_private());
    mechanism.release(filled(*spread, *sensitivity), &mut log, &mut secret).unwrap();
    assert!(!log.is_private());

    // The same seed gives the same release, a different seed a different one.
    assert_eq!(one, seeded(&mut log, 5));
    assert_ne!(one, seeded(&mut log, 6));

    every_output_is_finite_and_on_the_grid::<F, A, M>(subject);
    noise_is_there_and_has_the_stated_size::<F, A, M>(subject);
}

/// 1e5 coordinates, from inputs that are on and off the grid, huge and tiny.
fn every_output_is_finite_and_on_the_grid<F, A, M>(subject: &Subject<M>)
where
    F: RealField + Copy,
    A: Adjacency,
    M: Mechanism<Vec<F>, A, Output = Vec<F>>,
{
    let largest: f64 = F::max_value().map_or(f64::MAX, |largest| nalgebra::try_convert(largest).unwrap());
    let values = [0.0, -0.0, 1.0 / 3.0, -7.1 * subject.spread, 1e-30, subject.spread * 1e5, largest, -largest, 1e-44];
    let mut rng = SeededRng::new(9);
    for i in 0..=100_000 / subject.dim {
        let input = vec![nalgebra::convert(values[i % values.len()]); subject.dim];
        let input = Bounded::with_proven_sensitivity(input, bound(subject.sensitivity));
        let released = subject.mechanism.release(input, &mut EventLog::<A>::new(), &mut rng).unwrap();
        for &output in released.get() {
            let output: f64 = nalgebra::try_convert(output).unwrap();
            // The remainder of two doubles is exact.
            assert!(output.is_finite() && output % subject.step == 0.0, "{output:e}");
        }
    }
}

/// 64 releases of zeros: no two are equal, and the standard deviation is within 5 standard errors of the stated one.
fn noise_is_there_and_has_the_stated_size<F, A, M>(subject: &Subject<M>)
where
    F: RealField + Copy,
    A: Adjacency,
    M: Mechanism<Vec<F>, A, Output = Vec<F>>,
{
    let mut rng = SeededRng::new(10);
    let mut seen: Vec<Vec<F>> = Vec::new();
    for _ in 0..64 {
        let zeros = Bounded::with_proven_sensitivity(vec![F::zero(); subject.dim], bound(subject.sensitivity));
        let released = subject.mechanism.release(zeros, &mut EventLog::<A>::new(), &mut rng).unwrap().into_inner();
        assert!(!seen.contains(&released));
        seen.push(released);
    }
    let squares: Vec<f64> = seen
        .iter()
        .flatten()
        .map(|&x| -> f64 { nalgebra::try_convert(x).unwrap() })
        .map(|x| x * (1.0 / subject.spread))
        .map(|x| x * x)
        .collect();
    let n = squares.len() as f64;
    let mean = squares.iter().sum::<f64>() / n;
    // Standard error by release, since the coordinates of one ball share their norm.
    let by_release: Vec<f64> =
        squares.chunks(subject.dim).map(|release| release.iter().sum::<f64>() / subject.dim as f64).collect();
    let variance = by_release.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 63.0;
    assert!((mean - 1.0).abs() < 5.0 * (variance / 64.0).sqrt(), "{mean} ± {}", (variance / 64.0).sqrt());
}

fn gaussian<A: Adjacency>(sensitivity: f64, std_dev: f64) -> Subject<Gaussian<A>> {
    let mechanism = Gaussian::from_std_dev(bound(sensitivity), std_dev).unwrap();
    Subject { mechanism, sensitivity, spread: std_dev, step: mechanism.grid().step(), dim: 50 }
}

fn laplace<A: Adjacency>(sensitivity: f64, scale: f64) -> Subject<Laplace<A>> {
    let mechanism = Laplace::from_scale(bound(sensitivity), scale).unwrap();
    Subject { mechanism, sensitivity, spread: scale * 2f64.sqrt(), step: mechanism.grid().step(), dim: 50 }
}

fn ball<A: Adjacency>(sensitivity: f64, epsilon: f64, dim: usize) -> Subject<LaplaceBall<A>> {
    let mechanism = LaplaceBall::new(bound(sensitivity), Epsilon::new(epsilon).unwrap(), dim as u64).unwrap();
    let spread = mechanism.scale() * (dim as f64 + 1.0).sqrt();
    Subject { mechanism, sensitivity, spread, step: mechanism.grid().step(), dim }
}

#[test]
fn gaussian_laws() {
    laws::<f64, ReplaceOne, _>(&gaussian(1.0, 0.7));
    laws::<f32, ReplaceOne, _>(&gaussian(1.0, 0.7));
    laws::<f64, ZeroOut, _>(&gaussian(0.01, 3e5));
    laws::<f64, AddRemoveOne, _>(&gaussian(1e-200, 1e-290));
    laws::<f64, ChangeListLabels, _>(&gaussian(1e200, 1e290));
    laws::<f32, ZeroOut, _>(&gaussian(1e20, 1e30));
    laws::<f32, ZeroOut, _>(&gaussian(1e-30, 1e-37));
}

/// The same properties for noise drawn in double precision; the log states the noise mode.
#[test]
fn rounded_laws() {
    let rounded = NoiseMode::Rounded;
    let subject = gaussian::<ReplaceOne>(1.0, 0.7);
    let mechanism = subject.mechanism.with_noise_mode(rounded).unwrap();
    laws::<f64, ReplaceOne, _>(&Subject { mechanism, ..subject });
    let subject = ball::<ReplaceOne>(1.0, 0.5, 50);
    let mechanism = subject.mechanism.with_noise_mode(rounded).unwrap();
    laws::<f64, ReplaceOne, _>(&Subject { mechanism, ..subject });
    let mixture = GaussianMixture::<ReplaceOne>::new(0.7, vec![0.25, 1.0], vec![0.5, 0.5]).unwrap();
    for (mode, expected) in [(NoiseMode::Exact, vec![]), (rounded, vec![Assumption::IdealisedFloat])] {
        let mixture = mixture.clone().with_noise_mode(mode).unwrap();
        let mut log = EventLog::new();
        let value = Bounded::with_proven_sensitivity(vec![0.5f64], mixture.sensitivity());
        mixture.release(value, &mut log, &mut OsSeeded::new().unwrap()).unwrap();
        assert_eq!((mixture.noise_mode(), log.assumptions()), (mode, &expected[..]));
    }
    let none = NoiseMode::None;
    assert_eq!(mixture.with_noise_mode(none), Err(Error::UnavailableNoise { mode: none }));
    assert_eq!(subject.mechanism.with_noise_mode(none), Err(Error::UnavailableNoise { mode: none }));
}

#[test]
fn laplace_laws() {
    laws::<f64, ReplaceOne, _>(&laplace(1.0, 0.7));
    laws::<f32, ReplaceOne, _>(&laplace(1.0, 0.7));
    laws::<f64, ZeroOut, _>(&laplace(0.01, 3e5));
    laws::<f64, AddRemoveOne, _>(&laplace(1e-200, 1e-290));
    laws::<f64, ChangeListLabels, _>(&laplace(1e200, 1e290));
    laws::<f32, ZeroOut, _>(&laplace(1e20, 1e30));
    let rounded = laplace::<ReplaceOne>(1.0, 0.7);
    let mechanism = rounded.mechanism.with_noise_mode(NoiseMode::Rounded).unwrap();
    laws::<f64, ReplaceOne, _>(&Subject { mechanism, ..rounded });
}

#[test]
fn laplace_ball_laws() {
    laws::<f64, ReplaceOne, _>(&ball(1.0, 0.5, 50));
    laws::<f32, ReplaceOne, _>(&ball(1.0, 0.5, 50));
    laws::<f64, ZeroOut, _>(&ball(3.3e-6, 0.05, 54));
    laws::<f64, AddRemoveOne, _>(&ball(1e-290, 1.0, 20));
    laws::<f64, ChangeListLabels, _>(&ball(1e290, 1.0, 20));
    laws::<f64, ReplaceOne, _>(&ball(1.0, 1e9, 30));
    laws::<f64, ReplaceOne, _>(&ball(1.0, 2f64.powi(-50), 30));
}

#[test]
fn gaussian_mixture_laws() {
    let mechanism = GaussianMixture::<ReplaceOne>::new(0.7, vec![0.25, 1.0, 0.0], vec![0.5, 0.25, 0.25]).unwrap();
    let Subject { spread, step, dim, .. } = gaussian::<ReplaceOne>(1.0, 0.7);
    laws::<f64, ReplaceOne, _>(&Subject { mechanism, sensitivity: 1.0, spread, step, dim });
}

#[test]
fn a_float_type_that_cannot_hold_the_noise_is_refused() {
    for std_dev in [1e-45, 1e-100, 1e34, 1e100] {
        let wide = Gaussian::<ZeroOut>::from_std_dev(bound(1.0), std_dev).unwrap();
        let mut log = EventLog::new();
        let input = Bounded::with_proven_sensitivity(vec![0.0f32; 3], bound(1.0));
        let refused = wide.release(input, &mut log, &mut SeededRng::new(1));
        assert_eq!(refused, Err(Error::ScaleOverflow { scale: std_dev }));
        assert!(log.entries().is_empty());
    }
}

/// Rescaling sensitivity, noise and input by a power of two rescales the output, bit for bit.
#[test]
fn equivariant_under_powers_of_two() {
    let value: Vec<f64> = (0..100).map(|i| f64::from(i).sin() * 10f64.powi(i - 50)).collect();
    for power in [-600, -1, 1, 17, 600] {
        let factor = 2f64.powi(power);
        let scaled: Vec<f64> = value.iter().map(|x| x * factor).collect();
        let seeded = || SeededRng::new(3);
        let input = |value: &[f64], sensitivity| {
            Bounded::<_, ReplaceOne>::with_proven_sensitivity(value.to_vec(), bound(sensitivity))
        };
        let (one, other) = (gaussian::<ReplaceOne>(1.0, 0.7), gaussian(factor, 0.7 * factor));
        let one = one.mechanism.release(input(&value, 1.0), &mut EventLog::new(), &mut seeded()).unwrap();
        let other = other.mechanism.release(input(&scaled, factor), &mut EventLog::new(), &mut seeded()).unwrap();
        assert!(one.get().iter().zip(other.get()).all(|(a, b)| (a * factor).to_bits() == b.to_bits()), "{power}");
        let input_l1 = |value: &[f64], sensitivity| {
            Bounded::<_, ReplaceOne, L1>::with_proven_sensitivity(value.to_vec(), bound(sensitivity))
        };
        let (one, other) = (laplace::<ReplaceOne>(1.0, 0.7), laplace(factor, 0.7 * factor));
        let one = one.mechanism.release(input_l1(&value, 1.0), &mut EventLog::new(), &mut seeded()).unwrap();
        let other = other.mechanism.release(input_l1(&scaled, factor), &mut EventLog::new(), &mut seeded()).unwrap();
        assert!(one.get().iter().zip(other.get()).all(|(a, b)| (a * factor).to_bits() == b.to_bits()), "{power}");
        let (one, other) = (ball::<ReplaceOne>(1.0, 0.7, 100), ball(factor, 0.7, 100));
        let one = one.mechanism.release(input(&value, 1.0), &mut EventLog::new(), &mut seeded()).unwrap();
        let other = other.mechanism.release(input(&scaled, factor), &mut EventLog::new(), &mut seeded()).unwrap();
        assert!(one.get().iter().zip(other.get()).all(|(a, b)| (a * factor).to_bits() == b.to_bits()), "{power}");
    }
}

#[test]
fn single_precision_rounds_the_double_result_once() {
    let gaussian = gaussian::<ZeroOut>(1.0, 0.7).mechanism;
    let value: Vec<f32> = (0..1000).map(|i| (i as f32).sin()).collect();
    let double: Vec<f64> = value.iter().map(|&x| f64::from(x)).collect();
    let narrow = Bounded::with_proven_sensitivity(value, bound(1.0));
    let wide = Bounded::with_proven_sensitivity(double, bound(1.0));
    let narrow = gaussian.release(narrow, &mut EventLog::new(), &mut SeededRng::new(8)).unwrap();
    let wide = gaussian.release(wide, &mut EventLog::new(), &mut SeededRng::new(8)).unwrap();
    assert!(narrow.get().iter().zip(wide.get()).all(|(&a, &b)| a == b as f32));
}

/// Mironov's attack: whether the low bits of an output reveal which of two inputs it came from. On the grid, the number of
/// trailing zero bits, counted in steps, has the same distribution for both: a chi-square statistic over 12 classes (11 degrees
/// of freedom) below its 1 - 1e-9 quantile, 65.17.
#[test]
fn low_bits_do_not_tell_the_input() {
    let subject = gaussian::<ReplaceOne>(1.0, 1.0);
    let mut rng = SeededRng::new(11);
    let mut counts = [[0.0f64; 12]; 2];
    for (input, counts) in [0.0, 1.0 / 3.0].into_iter().zip(&mut counts) {
        for _ in 0..2000 {
            let value = Bounded::with_proven_sensitivity(vec![input; 100], bound(1.0));
            let released = subject.mechanism.release(value, &mut EventLog::new(), &mut rng).unwrap();
            for &output in released.get().iter().filter(|&&output: &&f64| output.abs() < 0.25) {
                let zeros = ((output / subject.step) as i64).trailing_zeros().min(11);
                counts[zeros as usize] += 1.0;
            }
        }
    }
    let [one, other] = counts;
    let totals = counts.map(|counts| counts.iter().sum::<f64>());
    let mut statistic = 0.0;
    for (a, b) in one.into_iter().zip(other) {
        for (found, total) in [a, b].into_iter().zip(totals) {
            let expected = (a + b) * total / (totals[0] + totals[1]);
            statistic += (found - expected).powi(2) / expected;
        }
    }
    assert!(statistic < 65.17, "{statistic}");
}
