//! Discrete Laplace and discrete Gaussian noise.

use num_bigint::BigUint;

use crate::error::Error;
use crate::exact::certified::{Approximate, bernoulli_exp};
use crate::exact::integer::positive;
use crate::exact::laws;
use crate::exact::real::Offset;
use crate::exact::source::Source;

/// Number of rejected candidates in a row, each of probability below 0.9, after which a generator counts as stuck.
const REJECTIONS: u32 = 2048;
/// Largest variance for which magnitudes fit 64 bits.
const LARGEST_VARIANCE: f64 = 20_282_409_603_651_670_423_947_251_286_016.0;

/// Samples an integer `k` with probability proportional to `exp(-|k| / scale)`.
///
/// For an exponential number `X` the probability of `floor(X numerator / denominator) >= k` is `exp(-k / scale)`: a geometric
/// magnitude, which with a sign has the required law, once zero has only one sign.
pub(crate) fn discrete_laplace<S: Source>(numerator: u64, denominator: u64, source: &mut S) -> Result<i128, Error> {
    positive("scale", u128::from(numerator))?;
    let denominator = positive("denominator", u128::from(denominator))? as i128;
    for _ in 0..REJECTIONS {
        let whole = laws::exponential(source)?.floor_affine(numerator, Offset::ZERO, source)?;
        let magnitude = whole / denominator;
        let negative = source.bits(1)? == 1;
        // Zero has only one sign: otherwise it would be drawn twice as often.
        if !(negative && magnitude == 0) {
            return Ok(if negative { -magnitude } else { magnitude });
        }
    }
    Err(Error::StuckGenerator)
}

/// The law of an integer `k` with probability proportional to `exp(-k² / (2 v))`, `v = numerator / denominator`, with the values
/// common to all its draws.
///
/// A draw is a discrete Laplace number `y` of scale `t = floor(√v) + 1`, accepted with probability `exp(-(|y| - v/t)² / (2 v))`:
/// the product of the two weights is a multiple of the required weight.
pub(crate) struct DiscreteNormal {
    numerator: u128,
    denominator: u128,
    /// `t`.
    scale: u64,
    /// `2 n d t²`, approximately.
    divisor: Approximate,
}

impl DiscreteNormal {
    pub(crate) fn new(numerator: u128, denominator: u128) -> Result<Self, Error> {
        positive("variance", numerator)?;
        positive("denominator", denominator)?;
        let variance = numerator as f64 / denominator as f64;
        if !(variance <= LARGEST_VARIANCE) {
            return Err(Error::OutOfRange { name: "variance", value: variance, range: "(0, 2^104]" });
        }
        let scale = (numerator / denominator).isqrt() as u64 + 1;
        let of = |x: u64| Approximate::of(u128::from(x));
        let (n, d, t) = (Approximate::of(numerator), Approximate::of(denominator), of(scale));
        let divisor = n.times(d).times(t.times(t)).times(of(2));
        Ok(Self { numerator, denominator, scale, divisor })
    }

    pub(crate) fn draw<S: Source>(&self, source: &mut S) -> Result<i64, Error> {
        for _ in 0..REJECTIONS {
            let candidate = discrete_laplace(self.scale, 1, source)?;
            // (|y| - n/(d t))² d / (2 n) = (|y| t d - n)² / (2 n d t²).
            let product = (candidate.unsigned_abs() * u128::from(self.scale)).checked_mul(self.denominator);
            let distance = product.map(|product| product.abs_diff(self.numerator));
            if distance == Some(0) {
                return Ok(candidate as i64);
            }
            let approximate = distance.map(|distance| {
                let distance = Approximate::of(distance);
                distance.times(distance).over(self.divisor)
            });
            if bernoulli_exp(approximate, || self.exact_exponent(candidate), source)? {
                return Ok(candidate as i64);
            }
        }
        Err(Error::StuckGenerator)
    }

    /// Returns `(|y| t d - n)²` and `2 n d t²`.
    fn exact_exponent(&self, candidate: i128) -> (BigUint, BigUint) {
        let (n, d, t) = (BigUint::from(self.numerator), BigUint::from(self.denominator), BigUint::from(self.scale));
        let product = BigUint::from(candidate.unsigned_abs()) * &t * &d;
        let distance = if product > n { product - &n } else { &n - product };
        (&distance * &distance, n * d * &t * &t * 2u32)
    }
}

#[cfg(test)]
mod tests;
