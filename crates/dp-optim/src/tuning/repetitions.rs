//! Exact samples of the number of repetitions.
//!
//! # Privacy
//! The theorems assume that neighbours share the law of the number of repetitions; a sampler that rounds has another law. Here
//! every coin has a rational probability and is tossed with integers: the laws are exact.
//!
//! **Truncated negative binomial**, `-1 < eta <= 1`. A geometric number (success `gamma`) has masses proportional to
//! `(1 - gamma)^k`. Accepted with probability `prod_(1 <= l < k) (l + eta)/(l + 1)`, which is at most 1, it has masses
//! proportional to `(1 - gamma)^k prod_(l < k) (l + eta)/(l + 1)`, as required. Each factor is a coin that shows tails with
//! probability `(1 - eta)/(l + 1)`: one of `l + 1` sides is tails, for `eta >= 0` with probability `1 - eta` only, and for
//! `eta < 0` a second side is tails with probability `-eta`.
//!
//! **Poisson**: a number of mean 1 for each integer up to the mean, and one more of mean 1 each of whose events is kept with
//! the remaining probability.

#[cfg(test)]
mod tests;

use dp_accountant::Repetitions;
use dp_accountant::rdp::random_stopping::mean_repetitions;
use dp_mechanisms::{ReleaseRng, exact};

use crate::engine::poisson_one;
use crate::error::Error;

/// Minimum `gamma`, and maximum mean of a Poisson number: a larger mean is taken for a mistake.
const LEAST_GAMMA: f64 = 1e-6;
const LARGEST_MEAN: f64 = 1e6;

/// Rejects laws that cannot be drawn here.
pub(super) fn check(repetitions: Repetitions) -> Result<(), Error> {
    let within = |name, value: f64, within: bool, range| {
        if within { Ok(()) } else { Err(Error::OutOfRange { name, value, range }) }
    };
    match repetitions {
        Repetitions::TruncatedNegativeBinomial { eta, gamma } => {
            within("eta", eta, eta > -1.0 && eta <= 1.0, "(-1, 1]: larger shapes cost more and find no more")?;
            within("gamma", gamma, (LEAST_GAMMA..1.0).contains(&gamma), "[1e-6, 1)")
        }
        Repetitions::Poisson { mean } => {
            within("mean number of repetitions", mean, mean > 0.0 && mean <= LARGEST_MEAN, "(0, 1e6]")
        }
        _ => Err(Error::NotProved { recipe: super::random_stopping::RECIPE, why: "this law is not drawn here" }),
    }
}

/// Returns the probability of `k` repetitions.
///
/// # Formula
/// ```text
/// truncated negative binomial   (1 - gamma)^k / (gamma^-eta - 1) prod_(0 <= l < k) (l + eta)/(l + 1),   k >= 1
///                               (1 - gamma)^k / (k ln(1/gamma)) at eta = 0
/// Poisson                       e^-mean mean^k / k!
/// ```
/// Used in tests and plans only, not for draws.
#[cfg(test)]
pub(super) fn probability(repetitions: Repetitions, k: u64) -> f64 {
    match repetitions {
        Repetitions::TruncatedNegativeBinomial { .. } if k == 0 => 0.0,
        Repetitions::TruncatedNegativeBinomial { eta, gamma } => {
            // The factor of l = 0 over the normalisation is finite at 0 too.
            let first = if eta == 0.0 { -gamma.ln().recip() } else { eta / (-eta * gamma.ln()).exp_m1() };
            (1..k).fold(first * (1.0 - gamma), |mass, l| {
                let l = l as f64;
                mass * (1.0 - gamma) * (l + eta) / (l + 1.0)
            })
        }
        Repetitions::Poisson { mean } => (1..=k).fold((-mean).exp(), |mass, l| mass * mean / l as f64),
        _ => f64::NAN,
    }
}

/// Returns the mean number of repetitions; NaN outside the laws' ranges.
pub fn mean(repetitions: Repetitions) -> f64 {
    match repetitions {
        Repetitions::TruncatedNegativeBinomial { eta, gamma } => mean_repetitions(eta, gamma).unwrap_or(f64::NAN),
        Repetitions::Poisson { mean } => mean,
        _ => f64::NAN,
    }
}

/// Returns the `gamma` with which a truncated negative binomial number of shape `eta` has this mean, up to rounding; NaN if
/// there is none.
pub(super) fn gamma_of(eta: f64, wanted: f64) -> f64 {
    if !(wanted > 1.0 && wanted.is_finite()) {
        return f64::NAN;
    }
    // The mean decreases in gamma, from infinity to 1.
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), 0.0f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        let mean = mean_repetitions(eta, middle.exp()).unwrap_or(1.0);
        if mean > wanted { low = middle } else { high = middle }
    }
    high.exp()
}

pub(super) fn draw<R: ReleaseRng + ?Sized>(repetitions: Repetitions, rng: &mut R) -> Result<u64, Error> {
    check(repetitions)?;
    match repetitions {
        Repetitions::TruncatedNegativeBinomial { eta, gamma } => truncated_negative_binomial(eta, gamma, rng),
        Repetitions::Poisson { mean } => poisson(mean, rng),
        _ => Ok(0),
    }
}

fn truncated_negative_binomial<R: ReleaseRng + ?Sized>(eta: f64, gamma: f64, rng: &mut R) -> Result<u64, Error> {
    let mut k = 1u64;
    while !exact::bernoulli_f64(gamma, rng)? {
        // From k to k + 1: the factor of l = k, otherwise start again.
        k = if passes(eta, k, rng)? { k + 1 } else { 1 };
    }
    Ok(k)
}

/// Returns true with probability `(l + eta)/(l + 1)`.
fn passes<R: ReleaseRng + ?Sized>(eta: f64, l: u64, rng: &mut R) -> Result<bool, Error> {
    Ok(match exact::uniform_below(u128::from(l) + 1, rng)? {
        0 if eta >= 0.0 => exact::bernoulli_f64(eta, rng)?,
        0 => false,
        1 if eta < 0.0 => !exact::bernoulli_f64(-eta, rng)?,
        _ => true,
    })
}

fn poisson<R: ReleaseRng + ?Sized>(mean: f64, rng: &mut R) -> Result<u64, Error> {
    let (whole, rest) = (mean.trunc(), mean.fract());
    let mut sum = 0;
    for _ in 0..whole as u64 {
        sum += u64::from(poisson_one(rng)?);
    }
    for _ in 0..poisson_one(rng)? {
        sum += u64::from(exact::bernoulli_f64(rest, rng)?);
    }
    Ok(sum)
}
