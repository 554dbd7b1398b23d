//! Coins of probability `exp(-z)` and comparisons with `U exp(-z)`, decided by certified brackets.
//!
//! A comparison of a uniform number with `U exp(-z)` needs no exact value of either: brackets of both decide unless they overlap;
//! if they do, both are computed again with more digits. The first brackets are 63-bit fixed-point numbers and nearly always
//! decide; the others are integers of any length. Digits of the uniform number and of `z` that were drawn are kept, so the result
//! is that of the ideal numbers.

use num_bigint::BigUint;

use crate::error::Error;
use crate::exact::source::Source;
use crate::exact::table::{Bracket, EXPONENTIAL, MOST_STRIPS, STRIP_BITS};

/// The unit of the 63-bit fixed-point numbers: 1 is `2^63`.
pub(crate) const ONE: u64 = 1 << 63;
/// Number of digits of an interval that are evaluated before a generator counts as stuck, in groups of 64.
const LEVELS: u32 = 48;

/// Number of terms of the exponential series.
const TERMS: usize = 16;
/// `2^64 / k`, rounded down, from `k = 2` on: a product is faster than a division, and adds an error of less than one unit.
const RECIPROCALS: [u64; TERMS + 1] = {
    let mut reciprocals = [0; TERMS + 1];
    let mut k = 2;
    while k <= TERMS {
        reciprocals[k] = ((1u128 << 64) / k as u128) as u64;
        k += 1;
    }
    reciprocals
};

/// Returns `exp(-z)` for `z` between two bounds in `[0, 1/2]`, all in units of `2^-63`.
#[inline]
pub(crate) fn exp_minus(low: u64, high: u64) -> Bracket {
    debug_assert!(low <= high && high <= ONE / 2);
    // Horner's rule for 1 - z (1 - z/2 (1 - z/3 (...))). Each step is rounded by less than 3 units and weighs at most 1/2 of the
    // step after it. The remainder is below (1/2)^17 / 17! or (1/16)^11 / 11!, both less than 2^-65: less than 8 units in total.
    let mut term = if high <= ONE / 16 { 10 } else { TERMS };
    let mut sum = ONE;
    while term > 1 {
        let product = (u128::from(low) * u128::from(sum)) >> 63;
        sum = ONE - ((product * u128::from(RECIPROCALS[term])) >> 64) as u64;
        term -= 1;
    }
    sum = ONE - ((u128::from(low) * u128::from(sum)) >> 63) as u64;
    // The derivative is between -1 and 0.
    Bracket { low: sum.saturating_sub(8 + (high - low)), high: (sum + 8).min(ONE) }
}

/// A number between two bounds, in units of `2^-bits`.
pub(crate) struct Interval {
    pub(crate) low: BigUint,
    pub(crate) high: BigUint,
}

/// Returns `exp(-z)` for a `z` in an interval, in units of `2^-bits` like the interval.
pub(crate) fn exp_minus_interval(z: &Interval, bits: u64) -> Interval {
    Interval { low: exp_minus_bounds(&z.high, bits).low, high: exp_minus_bounds(&z.low, bits).high }
}

/// Returns `exp(-z)` for `z` in units of `2^-bits`.
fn exp_minus_bounds(z: &BigUint, bits: u64) -> Interval {
    // exp(-z) = exp(-z / 2^halvings)^(2^halvings), with the argument of the series at most 1/2.
    let halvings = (z.bits() + 1).saturating_sub(bits);
    let working = bits + 2 * halvings + 64;
    let one = BigUint::from(1u32) << working;
    let reduced = z << (working - bits - halvings);
    let (mut sum, mut term, mut index) = (one.clone(), one.clone(), 0u32);
    while term.bits() > 0 {
        index += 1;
        term = ((&term * &reduced) >> working) / index;
        if index % 2 == 1 { sum -= &term } else { sum += &term }
    }
    // Each term is rounded down by less than two units, and the remainder of the series is below the first vanishing term, less
    // than two units.
    let slack = BigUint::from(2 * index + 4);
    let mut low = &sum - &slack;
    let mut high = (sum + slack).min(one);
    for _ in 0..halvings {
        low = (&low * &low) >> working;
        high = ((&high * &high) >> working) + 1u32;
    }
    let cut = working - bits;
    Interval { low: low >> cut, high: (high >> cut) + 1u32 }
}

/// A uniform number in `[base, base + width)`, with 64 fractional digits drawn.
pub(crate) struct Uniform {
    pub(crate) base: u64,
    pub(crate) width: u64,
    pub(crate) digits: u64,
}

impl Uniform {
    /// Returns whether the number is below `unit · e`, `e` between the bounds of the bracket; `None` if this is undecided.
    #[inline]
    pub(crate) fn below(&self, unit: u64, exponential: Bracket) -> Option<bool> {
        // Units and masses are below 2^40, so that 64 more digits fit into 128 bits.
        let low = (u128::from(self.base) << 64) + u128::from(self.width) * u128::from(self.digits);
        if low + u128::from(self.width) <= (u128::from(unit) * u128::from(exponential.low)) << 1 {
            Some(true)
        } else if low >= (u128::from(unit) * u128::from(exponential.high)) << 1 {
            Some(false)
        } else {
            None
        }
    }

    /// Returns whether the number is below `unit · exp(-z)`, with as many digits as needed.
    ///
    /// `exponent` gives an interval of `z` for a number of bits; the interval must shrink as the bits grow.
    pub(crate) fn below_exp<S: Source>(
        &self,
        unit: u64,
        source: &mut S,
        mut exponent: impl FnMut(u32, &mut S) -> Result<Interval, Error>,
    ) -> Result<bool, Error> {
        let mut digits = BigUint::from(self.digits);
        for level in 1..=LEVELS {
            let bits = 64 * level;
            if level > 1 {
                digits = (digits << 64) + source.bits(64)?;
            }
            let low = (BigUint::from(self.base) << bits) + &digits * self.width;
            let curve = exp_minus_interval(&exponent(bits, source)?, u64::from(bits));
            if &low + self.width <= curve.low * unit {
                return Ok(true);
            }
            if low >= curve.high * unit {
                return Ok(false);
            }
        }
        Err(Error::StuckGenerator)
    }
}

/// A positive number with a known relative error: at least `mantissa · 2^exponent`, with the mantissa's top bit set.
///
/// Each operation rounds down by less than `2^-62` of the result. It inherits the errors of its arguments and adds one of that
/// size; a quotient also inherits the error of its divisor, which makes it too large.
#[derive(Clone, Copy)]
pub(crate) struct Approximate {
    mantissa: u64,
    exponent: i32,
}

impl Approximate {
    /// Converts a positive integer.
    pub(crate) fn of(x: u128) -> Self {
        let shift = 64 - x.leading_zeros() as i32;
        let mantissa = if shift >= 0 { x >> shift } else { x << -shift };
        Self { mantissa: mantissa as u64, exponent: shift }
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let product = Self::of(u128::from(self.mantissa) * u128::from(other.mantissa));
        Self { exponent: product.exponent + self.exponent + other.exponent, ..product }
    }

    pub(crate) fn over(self, other: Self) -> Self {
        let quotient = Self::of((u128::from(self.mantissa) << 63) / u128::from(other.mantissa));
        Self { exponent: quotient.exponent + self.exponent - other.exponent - 63, ..quotient }
    }

    /// Returns the integer part of the number times `2^63`, for a number below `limit`.
    fn fixed_point(self, limit: u32) -> Option<u128> {
        let shift = self.exponent + 63;
        if shift > 0 && shift + 64 > 63 + limit.ilog2() as i32 {
            return None;
        }
        Some(if shift >= 0 {
            u128::from(self.mantissa) << shift
        } else {
            u128::from(self.mantissa) >> (-shift).min(64)
        })
    }
}

/// Exponent from slightly below which on `exp(-z)` is less than the unit `2^-63`.
const LARGEST_EXPONENT: u32 = 64;

/// Returns `exp(-z)` for a `z` that results from at most 16 operations.
fn exp_minus_approximate(z: Approximate) -> Bracket {
    let Some(fixed) = z.fixed_point(LARGEST_EXPONENT) else {
        return Bracket { low: 0, high: 1 };
    };
    // An error of up to 16 · 2^-62 of z to either side, and the rounding to fixed point.
    let error = (fixed >> 58) as u64 + 2;
    let low = fixed.saturating_sub(u128::from(error));
    // exp(-z) = exp(-8)^eights exp(-strips/32) exp(-rest).
    const STRIP: u32 = 63 - STRIP_BITS;
    let strips = (low >> STRIP) as usize;
    let rest = (low & ((1 << STRIP) - 1)) as u64;
    let table = &EXPONENTIAL.left;
    let mut bracket = table[strips % MOST_STRIPS].times(exp_minus(rest, rest + 2 * error));
    for _ in 0..strips / MOST_STRIPS {
        bracket = bracket.times(table[MOST_STRIPS]);
    }
    bracket
}

/// Returns true with probability `exp(-z)`, `z` the quotient of two integers of any length, also given approximately if possible.
pub(crate) fn bernoulli_exp<S: Source>(
    approximate: Option<Approximate>,
    exact: impl Fn() -> (BigUint, BigUint),
    source: &mut S,
) -> Result<bool, Error> {
    let coin = Uniform { base: 0, width: 1, digits: source.bits(64)? };
    if let Some(below) = approximate.and_then(|z| coin.below(1, exp_minus_approximate(z))) {
        return Ok(below);
    }
    let (numerator, denominator) = exact();
    coin.below_exp(1, source, |bits, _| {
        let low = (&numerator << bits) / &denominator;
        Ok(Interval { high: &low + 1u32, low })
    })
}

#[cfg(test)]
mod tests;
