//! Real random numbers whose digits are drawn when they are needed, and their rounding.
//!
//! # Rounding
//! A [`Real`] is `(k + V) / 2^s`: the digits `k` are drawn, `V`, uniform in `[0, 1)` and independent of everything else,
//! is not. For integers `m > 0` and a fixed real `c`
//! ```text
//! m (k + V) / 2^s + c = w + (r + d + m V) / 2^s      w, r integers,  0 <= r < 2^s,  0 <= d < 1
//! ```
//! whose integer part is `w` whatever `V` will be, as soon as `m < 2^s - r` (then `r + d + m V < r + 1 + m <= 2^s`).
//! Otherwise let `g = 2^s - r` be the gap to the next integer and draw 32 digits more: `V = (v + V') / 2^32`, the next
//! 32 digits of `c` being `e`. In units of `2^-(s + 32)` the gap becomes
//! ```text
//! g' = 2^32 g - m v - e
//! ```
//! A gap that is not positive says that the integer was passed: add what was passed to `w` and to the gap. Either the
//! gap exceeds `m` now, or it is at most `m` again, which happens to a uniform `V` with probability at most about
//! `m / 2^s`, later `2^-32` for each 32 digits. Only integers are compared, so the result has exactly the law of the
//! rounded ideal number. A tie, an integer met by all digits, has probability 0 and is no case.

use num_bigint::{BigInt, BigUint};

use crate::error::Error;
use crate::exact::source::Source;

/// Digits drawn for one number, in groups of 32, after which a generator is called stuck. A double's own digits end
/// after 2100 bits.
const GROUPS: usize = 96;

/// A real random number whose digits are drawn when they are needed.
///
/// It is used once, by value: two roundings of one number would not be independent. It is no number yet, so it cannot
/// be printed, compared or copied.
pub struct Real {
    /// `k`: the digits that are drawn, as an integer.
    pub(crate) head: i64,
    /// `s`: how many of them are behind the point.
    pub(crate) head_bits: u32,
    /// Further digits that are drawn already, 32 each.
    pub(crate) known: Vec<u32>,
}

impl Real {
    /// `-self`: `-(k + V) = (-k - 1) + (1 - V)`, and `1 - V` is as uniform as `V`.
    pub(crate) fn negated_if(mut self, negative: bool) -> Self {
        if negative {
            self.head = !self.head;
            for group in &mut self.known {
                *group = !*group;
            }
        }
        self
    }

    /// At least `bits` digits behind the point of a number that is not negative, as an integer, and how many there are.
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

    /// The first `bits` digits behind the point of a number that is not negative, as an integer that must fit, for `bits`
    /// up to 32 more than the head has.
    pub(crate) fn leading_digits<S: Source>(&mut self, bits: u32, source: &mut S) -> Result<u64, Error> {
        debug_assert!((self.head_bits..=self.head_bits + 32).contains(&bits));
        if self.known.is_empty() {
            self.known.push(source.bits(32)? as u32);
        }
        let more = bits - self.head_bits;
        Ok(self.head.unsigned_abs() << more | u64::from(self.known[0]) >> (32 - more))
    }

    /// At least `bits` digits behind the point: the largest integer that is not above the number in units of the last of
    /// them, and how many there are.
    pub(crate) fn signed_digits<S: Source>(&mut self, bits: u32, source: &mut S) -> Result<(BigInt, u32), Error> {
        let head = self.head;
        let (digits, places) = self.digits(bits, source)?;
        // `digits` appended the groups to |head|; they belong behind the signed head.
        let magnitude = BigInt::from(head.unsigned_abs()) << (places - self.head_bits);
        Ok((BigInt::from(digits) - magnitude + (BigInt::from(head) << (places - self.head_bits)), places))
    }

    /// The nearest integer to `multiplier · self + fraction`.
    ///
    /// # Formula
    /// ```text
    /// round(multiplier · X + fraction)
    /// ```
    /// of the ideal real number `X`, without any rounding on the way.
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

    /// The integer part of `multiplier · self + offset`.
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

    /// The integer part of `M self / 2^scale_bits + offset` for a real `M` that is known up to an error: `M self` differs
    /// from `multiplier · self` by at most `slack` in units of `2^-(head_bits + scale_bits)`. `None` if the error may matter.
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
        // Everything is moved down by the slack, so that what is unknown lies above.
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
                    // The gap is above -2^97, so that the one to the integer after the next is above 2^99; what is
                    // unknown was at most 3 · 2^64 units before, and is at most 2^98 now.
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

/// A binary fraction `mantissa · 2^exponent`, which every finite double is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binary {
    mantissa: i64,
    exponent: i32,
}

impl Binary {
    pub(crate) const ZERO: Self = Self { mantissa: 0, exponent: 0 };

    /// A finite double.
    pub(crate) fn of(x: f64) -> Self {
        let field = ((x.to_bits() >> 52) & 0x7ff) as i32;
        let fraction = (x.to_bits() & ((1 << 52) - 1)) as i64;
        let magnitude = if field == 0 { fraction } else { fraction | 1 << 52 };
        Self { mantissa: if x < 0.0 { -magnitude } else { magnitude }, exponent: field.max(1) - 1075 }
    }

    /// Times a power of two, exactly.
    pub(crate) fn shifted(self, power: i32) -> Self {
        Self { exponent: self.exponent + power, ..self }
    }

    /// The integer part of the number times `2^bits`, for a number of size at most 1 and at most 116 places.
    pub(crate) fn floor(self, bits: u32) -> i128 {
        let shift = self.exponent + bits as i32;
        if shift >= 0 {
            i128::from(self.mantissa) << shift.min(64)
        } else {
            i128::from(self.mantissa >> (-shift).min(63))
        }
    }

    /// The same for any number of places, and whether it is exact.
    pub(crate) fn floor_big(self, bits: u32) -> (BigInt, bool) {
        let shift = self.exponent + bits as i32;
        if shift >= 0 {
            (BigInt::from(self.mantissa) << shift, true)
        } else {
            let floor = BigInt::from(self.mantissa) >> -shift;
            (floor.clone(), floor << -shift == BigInt::from(self.mantissa))
        }
    }

    /// The 32 digits that end `bits` places behind the point.
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

/// What is added to a multiple of a [`Real`] before its integer part is taken: a binary fraction of size at most 1, and
/// perhaps a half.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offset {
    fraction: Binary,
    half: bool,
}

impl Offset {
    pub(crate) const ZERO: Self = Self { fraction: Binary::ZERO, half: false };

    /// A fraction and a half: the integer part of the sum is the nearest integer to the sum with the fraction alone.
    pub(crate) fn half_above(fraction: Binary) -> Self {
        Self { fraction, half: true }
    }

    /// The integer part of the offset times `2^bits`.
    fn floor(self, bits: u32) -> i128 {
        self.fraction.floor(bits) + if self.half { 1 << (bits - 1) } else { 0 }
    }

    fn digits(self, bits: u32) -> u32 {
        self.fraction.digits(bits)
    }
}

#[cfg(test)]
mod tests;
