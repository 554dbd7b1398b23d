//! Exact samplers: integers and lazily extended digits, no floating-point arithmetic on the way to the result.
//!
//! # References
//! C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", 2020, Algorithms 1 to 3, arXiv
//! 2004.00010. C. Karney, "Sampling exactly from the normal distribution", 2016, arXiv 1303.6257.

use rand::CryptoRng;

use crate::error::Error;

pub(crate) mod certified;
mod discrete;
#[cfg(test)]
mod enumeration;
mod integer;
pub(crate) mod laws;
pub(crate) mod real;
pub(crate) mod source;
pub(crate) mod table;

pub use real::Real;
use source::Words;

/// A uniform integer in `0..n`.
///
/// # Errors
/// [`Error::OutOfRange`] for `n = 0`; [`Error::StuckGenerator`].
///
/// # Examples
/// ```
/// use dp_mechanisms::{SeededRng, exact};
/// let die = 1 + exact::uniform_below(6, &mut SeededRng::new(1))?;
/// assert!((1..=6).contains(&die));
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub fn uniform_below<R: CryptoRng + ?Sized>(n: u128, rng: &mut R) -> Result<u128, Error> {
    integer::uniform_below(n, &mut Words(rng))
}

/// True with probability `numerator / denominator`.
///
/// # Errors
/// [`Error::OutOfRange`] for a denominator of 0 or a numerator above it; [`Error::StuckGenerator`].
///
/// # Examples
/// ```
/// use dp_mechanisms::{SeededRng, exact};
/// assert!(exact::bernoulli(3, 3, &mut SeededRng::new(1))?);
/// assert!(!exact::bernoulli(0, 3, &mut SeededRng::new(1))?);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub fn bernoulli<R: CryptoRng + ?Sized>(numerator: u128, denominator: u128, rng: &mut R) -> Result<bool, Error> {
    integer::bernoulli(numerator, denominator, &mut Words(rng))
}

/// True with probability exactly `probability`, a double in `[0, 1]`.
///
/// # Errors
/// [`Error::OutOfRange`] outside `[0, 1]` and for NaN.
///
/// # Examples
/// ```
/// use dp_mechanisms::{SeededRng, exact};
/// assert!(!exact::bernoulli_f64(1e-300, &mut SeededRng::new(1))?);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub fn bernoulli_f64<R: CryptoRng + ?Sized>(probability: f64, rng: &mut R) -> Result<bool, Error> {
    integer::bernoulli_f64(probability, &mut Words(rng))
}

/// True with probability `exp(-numerator / denominator)`.
///
/// # Errors
/// [`Error::OutOfRange`] for a denominator of 0; [`Error::StuckGenerator`].
///
/// # Examples
/// ```
/// use dp_mechanisms::{SeededRng, exact};
/// assert!(exact::bernoulli_exp(0, 7, &mut SeededRng::new(1))?);
/// assert!(!exact::bernoulli_exp(1 << 20, 1, &mut SeededRng::new(1))?);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// C. Canonne, G. Kamath, T. Steinke, 2020, Algorithm 1.
pub fn bernoulli_exp<R: CryptoRng + ?Sized>(numerator: u128, denominator: u128, rng: &mut R) -> Result<bool, Error> {
    integer::bernoulli_exp(numerator, denominator, &mut Words(rng))
}

/// An integer `k` with probability proportional to `exp(-|k| / t)`, `t = scale_numerator / scale_denominator`.
///
/// # Errors
/// [`Error::OutOfRange`] for a scale or a denominator of 0; [`Error::StuckGenerator`].
///
/// # Examples
/// ```
/// use dp_mechanisms::{SeededRng, exact};
/// let noise = exact::discrete_laplace(1, 1000, &mut SeededRng::new(1))?;
/// assert_eq!(noise, 0); // anything else has probability below exp(-999)
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// C. Canonne, G. Kamath, T. Steinke, 2020, Algorithm 2.
pub fn discrete_laplace<R: CryptoRng + ?Sized>(
    scale_numerator: u64,
    scale_denominator: u64,
    rng: &mut R,
) -> Result<i128, Error> {
    discrete::discrete_laplace(scale_numerator, scale_denominator, &mut Words(rng))
}

/// An integer `k` with probability proportional to `exp(-k² / (2 v))`, `v = variance_numerator / variance_denominator`.
///
/// # Errors
/// [`Error::OutOfRange`] for a numerator or a denominator of 0 and for `v` above `2^104`; [`Error::StuckGenerator`].
///
/// # Examples
/// ```
/// use dp_mechanisms::{SeededRng, exact};
/// let noise = exact::discrete_gaussian(1 << 60, 1, &mut SeededRng::new(1))?;
/// assert!(noise.abs() < 40 << 30); // anything else has probability below exp(-800)
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// C. Canonne, G. Kamath, T. Steinke, 2020, Algorithm 3.
pub fn discrete_gaussian<R: CryptoRng + ?Sized>(
    variance_numerator: u128,
    variance_denominator: u128,
    rng: &mut R,
) -> Result<i64, Error> {
    discrete::discrete_gaussian(variance_numerator, variance_denominator, &mut Words(rng))
}

/// A standard normal number.
///
/// # Errors
/// [`Error::StuckGenerator`].
///
/// # Examples
/// ```
/// use dp_mechanisms::{SeededRng, exact};
/// let mut rng = SeededRng::new(1);
/// let nearest = exact::standard_normal(&mut rng)?.round(1, 0.0, &mut rng)?;
/// assert!(nearest.abs() < 40);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub fn standard_normal<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<Real, Error> {
    laws::normal(&mut Words(rng))
}

/// A standard Laplace number, of density `exp(-|x|) / 2`.
///
/// # Errors
/// [`Error::StuckGenerator`].
pub fn standard_laplace<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<Real, Error> {
    laws::laplace(&mut Words(rng))
}

/// A standard exponential number, of density `exp(-x)` on `[0, inf)`.
///
/// # Errors
/// [`Error::StuckGenerator`].
pub fn standard_exponential<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<Real, Error> {
    laws::exponential(&mut Words(rng))
}

/// A uniform number in `[0, 1)`.
///
/// # Errors
/// [`Error::StuckGenerator`].
pub fn uniform<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<Real, Error> {
    laws::uniform(&mut Words(rng))
}

#[cfg(test)]
mod tests;
