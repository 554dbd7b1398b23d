//! Real random numbers whose digits are drawn on demand, and their rounding.
//!
//! # Rounding
//! A [`Real`] is `(k + V) / 2^s`: the digits `k` are drawn; `V`, uniform in `[0, 1)` and independent of everything else, is not.
//! For integers `m > 0` and a fixed real `c`
//! ```text
//! m (k + V) / 2^s + c = w + (r + d + m V) / 2^s      w, r integers,  0 <= r < 2^s,  0 <= d < 1
//! ```
//! whose integer part is `w` for every `V`, if `m < 2^s - r` (then `r + d + m V < r + 1 + m <= 2^s`). Otherwise let `g = 2^s - r`
//! be the gap to the next integer and draw 32 more digits: `V = (v + V') / 2^32`, with `e` the next 32 digits of `c`. In units of
//! `2^-(s + 32)` the gap becomes
//! ```text
//! g' = 2^32 g - m v - e
//! ```
//! If the gap is not positive, the integer was passed: the passed integers are added to `w` and to the gap. Then either the gap
//! exceeds `m`, or it is again at most `m`, which happens for a uniform `V` with probability at most about `m / 2^s`, later
//! `2^-32` for each 32 digits. Only integers are compared, so the result has exactly the law of the rounded ideal number. A tie,
//! in which all digits equal those of an integer, has probability 0.

use num_bigint::{BigInt, BigUint};

use crate::error::Error;
use crate::exact::source::Source;

/// Maximum number of digits drawn for one number, in groups of 32, after which a generator counts as stuck. A double's own digits
/// end after 2100 bits.
const GROUPS: usize = 96;

/// A real random number whose digits are drawn on demand.
///
/// It is used once, by value, since two roundings of one number would not be independent. Its value is not determined yet, so it
/// cannot be printed, compared or copied.
pub struct Real {
    /// `k`: the drawn digits, as an integer.
    pub(crate) head: i64,
    /// `s`: the number of fractional digits among them.
    pub(crate) head_bits: u32,
    /// Further digits already drawn, in groups of 32.
    pub(crate) known: Vec<u32>,
}

impl Real {
    /// Returns `-self` if `negative`: `-(k + V) = (-k - 1) + (1 - V)`, and `1 - V` is uniform like `V`.
    pub(crate) fn negated_if(mut self, negative: bool) -> Self {
        if negative {
            self.head = !self.head;
            for group in &mut self.known {
                *group = !*group;
            }
        }
        self
    }

    /// Returns at least `bits` fractional digits of a non-negative number, as an integer, and their number.
    pub(crate) fn digits<S: Source>(&mut self, bits: u32, source: &mut S) -> Result<(BigUint, u32), Error> {
        let groups = bits.saturating_sub(self.head_bits).div_ceil(32) as usize;
        while self.known.len() < groups {
            self.known.push(source.bits(32)? as u32);
        }
        let mut digits = BigUint::from(self.head.unsigned_abs());
        for &group in &self.known {
            digits = (digits << 32u32) + group;
        }
        Ok((digits, self.head_bits + 32 * self.known.len() as u32))
    }

    /// Returns the first `bits` fractional digits of a non-negative number, as an integer that must fit, for `bits` up to 32 more
    /// than in the head.
    pub(crate) fn leading_digits<S: Source>(&mut self, bits: u32, source: &mut S) -> Result<u64, Error> {
        debug_assert!((self.head_bits..=self.head_bits + 32).contains(&bits));
        if self.known.is_empty() {
            self.known.push(source.bits(32)? as u32);
        }
        let more = bits - self.head_bits;
        Ok(self.head.unsigned_abs() << more | u64::from(self.known[0]) >> (32 - more))
    }

    /// Returns at least `bits` fractional digits: the largest integer that is not above the number in units of the last digit,
    /// and the number of digits.
    pub(crate) fn signed_digits<S: Source>(&mut self, bits: u32, source: &mut S) -> Result<(BigInt, u32), Error> {
        let head = self.head;
        let (digits, places) = self.digits(bits, source)?;
        // `digits` appended the groups to |head|; they belong after the signed head.
        let magnitude = BigInt::from(head.unsigned_abs()) << (places - self.head_bits);
        Ok((BigInt::from(digits) - magnitude + (BigInt::from(head) << (places - self.head_bits)), places))
    }

    /// Returns the nearest integer to `multiplier · self + fraction`.
    ///
    /// # Formula
    /// ```text
    /// round(multiplier · X + fraction)
    /// ```
    /// for the ideal real number `X`, without any intermediate rounding.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `multiplier` is in `1..=2^53` and `fraction` in `[-1, 1]`;
    /// [`Error::StuckGenerator`].
    ///
    /// # Examples
    /// ```
    /// use dp_mechanisms::{SeededRng, exact};
    /// let mut rng = SeededRng::new(1);
    /// let noise = exact::standard_normal(&mut rng)?.round(1000, 0.0, &mut rng)?;
    /// assert!(noise.abs() < 10_000);
    /// # Ok::<(), dp_mechanisms::Error>(())
    /// ```
    pub fn round<R: rand::CryptoRng + ?Sized>(self, multiplier: u64, fraction: f64, rng: &mut R) -> Result<i64, Error> {
        if !(1..=1 << 53).contains(&multiplier) {
            return Err(Error::OutOfRange { name: "multiplier", value: multiplier as f64, range: "1..=2^53" });
        }
        if !(fraction.abs() <= 1.0) {
            return Err(Error::OutOfRange { name: "fraction", value: fraction, range: "[-1, 1]" });
        }
        let mut source = super::source::Words(rng);
        Ok(self.floor_affine(multiplier, Offset::half_above(Binary::of(fraction)), &mut source)? as i64)
    }

    /// Returns the integer part of `multiplier · self + offset`.
    pub(crate) fn floor_affine<S: Source>(
        mut self,
        multiplier: u64,
        offset: Offset,
        source: &mut S,
    ) -> Result<i128, Error> {
        match self.floor_scaled(multiplier, 0, 0, offset, source)? {
            Some(whole) => Ok(whole),
            None => Err(Error::StuckGenerator),
        }
    }

    /// Returns the integer part of `M self / 2^scale_bits + offset` for a real `M` known up to an error: `M self` differs from
    /// `multiplier · self` by at most `slack` in units of `2^-(head_bits + scale_bits)`. `None` if the error may matter.
    pub(crate) fn floor_scaled<S: Source>(
        &mut self,
        multiplier: u64,
        scale_bits: u32,
        slack: u64,
        offset: Offset,
        source: &mut S,
    ) -> Result<Option<i128>, Error> {
        let multiplier = i128::from(multiplier);
        let mut bits = self.head_bits + scale_bits;
        let mut slack = i128::from(slack);
        // Everything is shifted down by the slack, so that the unknown part lies above.
        let total = multiplier * i128::from(self.head) + offset.floor(bits) - slack;
        let mut whole = total >> bits;
        let mut gap = ((whole + 1) << bits) - total;
        for group in 0..GROUPS {
            if multiplier + 2 * slack < gap {
                return Ok(Some(whole));
            }
            if slack > multiplier {
                return Ok(None);
            }
            if self.known.len() == group {
                self.known.push(source.bits(32)? as u32);
            }
            bits += 32;
            slack <<= 32;
            gap = (gap << 32) - multiplier * i128::from(self.known[group]) - i128::from(offset.digits(bits));
            if gap <= 0 {
                if bits >= 100 {
                    // The gap is above -2^97, so that the gap to the integer after the next is above 2^99; the unknown part was
                    // at most 3 · 2^64 units before, and is at most 2^98 now.
                    whole += 1;
                    gap = 1 << 99;
                } else {
                    let passed = (-gap >> bits) + 1;
                    whole += passed;
                    gap += passed << bits;
                }
            }
        }
        Err(Error::StuckGenerator)
    }
}

/// A binary fraction `mantissa · 2^exponent`; every finite double is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binary {
    mantissa: i64,
    exponent: i32,
}

impl Binary {
    pub(crate) const ZERO: Self = Self { mantissa: 0, exponent: 0 };

    /// Converts a finite double.
    pub(crate) fn of(x: f64) -> Self {
        let field = ((x.to_bits() >> 52) & 0x7ff) as i32;
        let fraction = (x.to_bits() & ((1 << 52) - 1)) as i64;
        let magnitude = if field == 0 { fraction } else { fraction | 1 << 52 };
        Self { mantissa: if x < 0.0 { -magnitude } else { magnitude }, exponent: field.max(1) - 1075 }
    }

    /// Multiplies by a power of two, exactly.
    pub(crate) fn shifted(self, power: i32) -> Self {
        Self { exponent: self.exponent + power, ..self }
    }

    /// Returns the integer part of the number times `2^bits`, for a number of size at most 1 and at most 116 places.
    pub(crate) fn floor(self, bits: u32) -> i128 {
        let shift = self.exponent + bits as i32;
        if shift >= 0 {
            i128::from(self.mantissa) << shift.min(64)
        } else {
            i128::from(self.mantissa >> (-shift).min(63))
        }
    }

    /// As [`floor`](Self::floor) for any number of places; also returns whether it is exact.
    pub(crate) fn floor_big(self, bits: u32) -> (BigInt, bool) {
        let shift = self.exponent + bits as i32;
        if shift >= 0 {
            (BigInt::from(self.mantissa) << shift, true)
        } else {
            let floor = BigInt::from(self.mantissa) >> -shift;
            (floor.clone(), floor << -shift == BigInt::from(self.mantissa))
        }
    }

    /// Returns the 32 digits that end `bits` places after the point.
    fn digits(self, bits: u32) -> u32 {
        let shift = self.exponent + bits as i32;
        if shift >= 32 {
            0
        } else if shift >= 0 {
            (self.mantissa << shift) as u32
        } else {
            (self.mantissa >> (-shift).min(63)) as u32
        }
    }
}

/// The offset added to a multiple of a [`Real`] before its integer part is taken: a binary fraction of size at most 1, and
/// optionally a half.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offset {
    fraction: Binary,
    half: bool,
}

impl Offset {
    pub(crate) const ZERO: Self = Self { fraction: Binary::ZERO, half: false };

    /// Creates the sum of a fraction and a half: the integer part of a sum with it is the nearest integer to the sum with the
    /// fraction alone.
    pub(crate) fn half_above(fraction: Binary) -> Self {
        Self { fraction, half: true }
    }

    /// Returns the integer part of the offset times `2^bits`.
    fn floor(self, bits: u32) -> i128 {
        self.fraction.floor(bits) + if self.half { 1 << (bits - 1) } else { 0 }
    }

    fn digits(self, bits: u32) -> u32 {
        self.fraction.digits(bits)
    }
}

#[cfg(test)]
mod tests;
