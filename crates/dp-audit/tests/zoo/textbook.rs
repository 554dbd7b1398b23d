//! Textbook samplers, for faults of logic; faults of arithmetic have samplers of their own.

use dp_accountant::{Epsilon, EventLog, ReplaceOne};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, LaplaceBall, Mechanism, SeededRng};
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};

/// Draws a standard normal variable.
pub(crate) fn normal(rng: &mut SeededRng) -> f64 {
    StandardNormal.sample(rng)
}

/// Draws an exponential variable with mean 1.
pub(crate) fn exponential(rng: &mut SeededRng) -> f64 {
    Exp1.sample(rng)
}

/// Draws a Laplace variable.
pub(crate) fn laplace(scale: f64, rng: &mut SeededRng) -> f64 {
    let (one, other) = (exponential(rng), exponential(rng));
    scale * (one - other)
}

/// Draws a gamma variable with scale 1.
pub(crate) fn gamma(shape: f64, rng: &mut SeededRng) -> f64 {
    Gamma::new(shape, 1.0).unwrap().sample(rng)
}

/// Draws a direction uniformly from the sphere.
pub(crate) fn direction(dim: usize, rng: &mut SeededRng) -> Vec<f64> {
    let normals: Vec<f64> = (0..dim).map(|_| normal(rng)).collect();
    let norm = norm(&normals);
    normals.into_iter().map(|x| x / norm).collect()
}

/// Computes the Euclidean norm.
pub(crate) fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Releases `value` by this workspace's Gaussian mechanism.
pub(crate) fn release_gaussian(value: Vec<f64>, std_dev: f64, rng: &mut SeededRng) -> Vec<f64> {
    let sensitivity = L2Sensitivity::<ReplaceOne>::new(std_dev).unwrap();
    let mechanism = Gaussian::from_std_dev(sensitivity, std_dev).unwrap();
    let value = Bounded::with_proven_sensitivity(value, sensitivity);
    mechanism.release(value, &mut EventLog::new(), rng).unwrap().into_inner()
}

/// Releases `value` by this workspace's Laplace ball with `scale = 1 / epsilon`.
pub(crate) fn release_ball(value: Vec<f64>, epsilon: f64, rng: &mut SeededRng) -> Vec<f64> {
    let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0).unwrap();
    let mechanism = LaplaceBall::new(sensitivity, Epsilon::new(epsilon).unwrap(), value.len() as u64).unwrap();
    let value = Bounded::with_proven_sensitivity(value, sensitivity);
    mechanism.release(value, &mut EventLog::new(), rng).unwrap().into_inner()
}
