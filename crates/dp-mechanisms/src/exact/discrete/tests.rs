//! Every test's false-alarm rate is 1e-9 for each counted integer, by Bernstein's inequality.

use super::*;
use crate::exact::source::Words;
use crate::rng::SeededRng;
use crate::testing::golden_cases;

fn discrete_gaussian<S: Source>(numerator: u128, denominator: u128, source: &mut S) -> Result<i64, Error> {
    DiscreteNormal::new(numerator, denominator)?.draw(source)
}

const COUNT: usize = 200_000;

fn fits(found: usize, probability: f64) -> bool {
    let log = (2.0 / 1e-9f64).ln();
    let n = COUNT as f64;
    let allowance = log / 3.0 + (log * log / 9.0 + 2.0 * n * probability * (1.0 - probability) * log).sqrt();
    (found as f64 - n * probability).abs() < allowance
}

fn sample<T>(seed: u64, mut draw: impl FnMut(&mut Words<'_, SeededRng>) -> Result<T, Error>) -> Vec<T> {
    let mut rng = SeededRng::new(seed);
    (0..COUNT).map(|_| draw(&mut Words(&mut rng)).unwrap()).collect()
}

#[test]
fn discrete_laplace_frequencies() {
    for (seed, (numerator, denominator)) in
        [(1u64, 1u64), (1, 3), (3, 1), (7, 2), (10, 1), (1 << 62, 1 << 60), (u64::MAX, u64::MAX / 2)]
            .into_iter()
            .enumerate()
    {
        let scale = numerator as f64 / denominator as f64;
        let sample = sample(seed as u64, |source| discrete_laplace(numerator, denominator, source));
        let q = (-1.0 / scale).exp();
        for k in -20i128..=20 {
            let found = sample.iter().filter(|&&drawn| drawn == k).count();
            assert!(fits(found, (1.0 - q) / (1.0 + q) * q.powi(k.unsigned_abs() as i32)), "{scale} {k} {found}");
        }
        let beyond = sample.iter().filter(|&&drawn| drawn > 20).count();
        assert!(fits(beyond, q.powi(21) / (1.0 + q)), "{scale} {beyond}");
    }
}

/// A scale that fills 64 bits: magnitudes of the exponential law, signs, and no gaps in the last place.
#[test]
fn discrete_laplace_of_the_largest_scale() {
    let sample = sample(8, |source| discrete_laplace(u64::MAX, 1, source));
    for x in [-2.0, -1.0, -0.25, 0.0, 0.25, 1.0, 2.0] {
        let found = sample.iter().filter(|&&drawn| (drawn as f64 / u64::MAX as f64) < x).count();
        let probability = if x < 0.0 { 0.5 * f64::exp(x) } else { 1.0 - 0.5 * f64::exp(-x) };
        assert!(fits(found, probability), "{x} {found}");
    }
    for bit in 0..60 {
        assert!(fits(sample.iter().filter(|&&drawn| drawn.unsigned_abs() >> bit & 1 == 1).count(), 0.5), "{bit}");
    }
}

#[test]
fn golden_discrete_gaussian_frequencies() {
    let mut drawn: Vec<(f64, Vec<i64>)> = Vec::new();
    for case in golden_cases("mechanisms.json", "discrete_gaussian") {
        let variance = case.input("sigma2");
        if drawn.iter().all(|(of, _)| *of != variance) {
            // The file has tenths.
            let tenths = (variance * 40.0).round() as u128;
            assert!((tenths as f64 / 40.0 - variance).abs() < 1e-12);
            drawn.push((variance, sample(tenths as u64, |source| discrete_gaussian(tenths, 40, source))));
        }
        let Some((_, sample)) = drawn.iter().find(|(of, _)| *of == variance) else { continue };
        if case.out.get("pmf").is_some() {
            let k = case.input("k") as i64;
            for k in [k, -k] {
                let found = sample.iter().filter(|&&drawn| drawn == k).count();
                assert!(fits(found, case.output("pmf")), "{} {found}", case.id);
            }
        } else if case.out.get("prob_ge").is_some() {
            let k = case.input("k") as i64;
            let found = sample.iter().filter(|&&drawn| drawn >= k).count();
            assert!(fits(found, case.output("prob_ge")), "{} {found}", case.id);
        } else {
            // The second moment, with 6.5 standard errors for kurtosis at most 3 + 1/variance.
            let moment = sample.iter().map(|&k| (k * k) as f64).sum::<f64>() / COUNT as f64;
            let expected = case.output("variance");
            let error = expected * ((2.0 + 1.0 / expected) / COUNT as f64).sqrt();
            assert!((moment - expected).abs() < 6.5 * error, "{} {moment}", case.id);
        }
    }
}

/// Small variances, whose exponents are large, and one whose best candidate has the exponent 0: `v = 6`, `t = 3`, `y = 2`.
#[test]
fn narrow_discrete_gaussians() {
    for (seed, (numerator, denominator)) in [(1, 100), (1, 20), (1, 4), (3, 4), (6, 1)].into_iter().enumerate() {
        let variance = numerator as f64 / denominator as f64;
        let sample = sample(seed as u64 + 70, |source| discrete_gaussian(numerator, denominator, source));
        let weight = |k: i64| (-(k * k) as f64 / (2.0 * variance)).exp();
        let sum: f64 = (-40..=40).map(weight).sum();
        for k in -12..=12 {
            let found = sample.iter().filter(|&&drawn| drawn == k).count();
            assert!(fits(found, weight(k) / sum), "{variance} {k} {found}");
        }
    }
}

/// Large and odd variances: quantiles of the normal law, which the discrete one approaches.
#[test]
fn wide_discrete_gaussians() {
    let normal = |x: f64| 0.5 * statrs::function::erf::erfc(-x / core::f64::consts::SQRT_2);
    for (seed, (numerator, denominator)) in
        [(1u128 << 60, 1u128), (1 << 104, 1), (u128::MAX, 1 << 60), (u128::MAX / 3, (1 << 127) / 12345678)]
            .into_iter()
            .enumerate()
    {
        let std_dev = (numerator as f64 / denominator as f64).sqrt();
        let sample = sample(seed as u64 + 50, |source| discrete_gaussian(numerator, denominator, source));
        for x in [-3.0, -1.0, 0.0, 0.5, 2.0] {
            // Counted as below, or with weight one half if equal.
            let found = sample.iter().filter(|&&drawn| (drawn as f64) < x * std_dev).count();
            let half = 0.5 * (0.4 * (-x * x / 2.0f64).exp()) / std_dev;
            assert!(fits(found, normal(x)) || fits(found, normal(x) - half), "{std_dev} {x} {found}");
        }
    }
}

#[test]
fn refused_parameters() {
    let mut rng = SeededRng::new(1);
    let source = &mut Words(&mut rng);
    assert!(matches!(discrete_laplace(0, 1, source), Err(Error::OutOfRange { name: "scale", .. })));
    assert!(matches!(discrete_laplace(1, 0, source), Err(Error::OutOfRange { name: "denominator", .. })));
    assert!(matches!(discrete_gaussian(0, 1, source), Err(Error::OutOfRange { name: "variance", .. })));
    assert!(matches!(discrete_gaussian(1, 0, source), Err(Error::OutOfRange { name: "denominator", .. })));
    assert!(matches!(discrete_gaussian(u128::MAX, 1, source), Err(Error::OutOfRange { name: "variance", .. })));
    assert_eq!(discrete_gaussian(1, u128::MAX, source), Ok(0));
}
