//! Exact samplers: integers and lazily extended digits, without floating-point arithmetic.
//!
//! The samples have exactly the documented law, not an approximation, and are the same on every platform. There are integers
//! ([`uniform_below`], [`discrete_laplace`], [`discrete_gaussian`]), coins ([`bernoulli`], [`bernoulli_f64`], [`bernoulli_exp`])
//! and real numbers ([`standard_normal`], [`standard_laplace`], [`standard_exponential`], [`uniform`]), of which a computer can
//! know only digits: a [`Real`] is rounded once, by [`Real::round`], and draws more digits if those known do not determine the
//! result.
//!
//! # Sampling of real numbers
//! The half line is cut into strips of width `1/32`. In each strip the density `f` lies between its values at the ends:
//! ```text
//! core    below U f(right end): a point drawn there is accepted
//! wedge   between U f(right end) and U f(left end): accepted if it is below the curve
//! tail    beyond the last strip, below an exponential curve
//! ```
//! With brackets of `f` that are certified at compile time, cores, wedges and tail are integer masses, which an alias table
//! (Walker 1977) samples exactly from one 64-bit word; the same word contains a sign and 37 digits of the position in the strip.
//! For nearly 98 of 100 words this suffices. For the others a height is drawn and compared with `U exp(-x²/2)` or `U exp(-x)`:
//! the height, `x` and the exponential function are intervals of fixed-point numbers, and if these overlap (once in `2^30` times)
//! all three are extended until they do not. A rejection sampler whose every comparison is that of the ideal numbers has the
//! ideal law; the digits of `x` that no comparison needed are uniform and not drawn.
//!
//! # Rounding
//! `m (k + V) / 2^s + c`, with `V` uniform and not drawn, has one integer part for all `V` unless an integer lies among its
//! values, an interval of length `m / 2^s`. In that case digits of `V` are drawn, 32 at a time, until none does.
//!
//! # Stuck generators
//! Every loop has a bound that a working generator exceeds with probability below `2^-100`; beyond it the error is
//! [`StuckGenerator`](Error::StuckGenerator). Words that consist of zeros only, or of ones only, would give numbers close to 0: a
//! generator that returns four of them in a row is refused. A release refuses any generator that repeats one word.
//!
//! # References
//! 2004.00010. C. Karney, "Sampling exactly from the normal distribution", 2016, arXiv 1303.6257: the lazily extended digits. A.
//! J. Walker, "An efficient method for generating discrete random variables with general distributions", 1977.

use rand::CryptoRng;

use crate::error::Error;

pub(crate) mod certified;
pub(crate) mod discrete;
#[cfg(test)]
mod enumeration;
mod integer;
pub(crate) mod laws;
pub(crate) mod real;
pub(crate) mod source;
pub(crate) mod table;

use discrete::DiscreteNormal;
pub use real::Real;
use source::Words;

/// Samples a uniform integer in `0..n`.
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

/// Returns true with probability `numerator / denominator`.
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

/// Returns true with probability exactly `probability`, a double in `[0, 1]`.
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

/// Returns true with probability `exp(-numerator / denominator)`.
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

/// Samples an integer `k` with probability proportional to `exp(-|k| / t)`, `t = scale_numerator / scale_denominator`.
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

/// Samples an integer `k` with probability proportional to `exp(-k² / (2 v))`, `v = variance_numerator / variance_denominator`.
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
    DiscreteNormal::new(variance_numerator, variance_denominator)?.draw(&mut Words(rng))
}

/// Samples a standard normal number.
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

/// Samples a standard Laplace number, of density `exp(-|x|) / 2`.
///
/// # Errors
/// [`Error::StuckGenerator`].
pub fn standard_laplace<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<Real, Error> {
    laws::laplace(&mut Words(rng))
}

/// Samples a standard exponential number, of density `exp(-x)` on `[0, inf)`.
///
/// # Errors
/// [`Error::StuckGenerator`].
pub fn standard_exponential<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<Real, Error> {
    laws::exponential(&mut Words(rng))
}

/// Samples a uniform number in `[0, 1)`.
///
/// # Errors
/// [`Error::StuckGenerator`].
pub fn uniform<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<Real, Error> {
    laws::uniform(&mut Words(rng))
}

#[cfg(test)]
mod tests;
