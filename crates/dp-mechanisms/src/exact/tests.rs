//! Statistical tests of the public samplers. Every test's false-alarm rate is 1e-9.

use super::*;
use crate::rng::SeededRng;
use crate::testing::{ks_distance, ks_threshold};

const SAMPLES: usize = 400_000;

/// Kolmogorov-Smirnov with the threshold of Dvoretzky, Kiefer, Wolfowitz and Massart at 1e-9. A multiplier of 2^40 leaves
/// rounding errors of 2^-40, far below the threshold.
fn follows(cdf: impl Fn(f64) -> f64, mut draw: impl FnMut(&mut SeededRng) -> Real, seed: u64) {
    let mut rng = SeededRng::new(seed);
    let mut sample: Vec<f64> = (0..SAMPLES)
        .map(|_| draw(&mut rng).round(1 << 40, 0.0, &mut rng).unwrap() as f64 / (1u64 << 40) as f64)
        .collect();
    let distance = ks_distance(&mut sample, cdf);
    assert!(distance < ks_threshold(SAMPLES, 1e-9), "{distance}");
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * statrs::function::erf::erfc(-x / core::f64::consts::SQRT_2)
}

#[test]
fn laws() {
    follows(normal_cdf, |rng| standard_normal(rng).unwrap(), 1);
    follows(|x| 1.0 - (-x).exp(), |rng| standard_exponential(rng).unwrap(), 2);
    let laplace = |x: f64| if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() };
    follows(laplace, |rng| standard_laplace(rng).unwrap(), 3);
    follows(|x| x.clamp(0.0, 1.0), |rng| uniform(rng).unwrap(), 4);
}
