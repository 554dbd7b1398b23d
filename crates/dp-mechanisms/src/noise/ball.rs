//! Noise of the L2 Laplace ball, rounded exactly: `round(m √W N_i + c_i)` for the integer `m >= scale / step`.
//!
//! `N_i` are ideal normal numbers and `W`, chi-square with `d + 1` degrees of freedom, is twice a sum of `(d + 1) / 2`
//! ideal exponential numbers; for even `d` one squared normal number takes the odd degree.
//!
//! # Digits of the sum
//! An exponential number is `(k_j + V_j) / 2^p` with `V_j` uniform and not drawn. The sum of `n` of them lies in
//! `[K, K + n] / 2^p`, `K` the sum of the `k_j`; for 32 more digits, `K' = 2^32 K + (v_1 + ... + v_n)` with uniform words `v_j`:
//! the individual numbers need not be stored. With the [`FIRST_PLACES`] places drawn initially the relative error of the mean is
//! below `2^-100` unless the sum itself is tiny.
//!
//! # Rounding
//! `S = m √W` is computed once for a release, by integer square roots of both ends of the interval, to 60 bits:
//! `S = (M + e) / 2^s` with an integer `M` and `0 <= e <= 2`. A coordinate is then a multiple of a number whose first digits are
//! drawn, as for the other laws, with an error of at most `2 |N_i|` units, which nearly always does not matter. If it may matter,
//! both intervals are computed again with more digits until they decide. Only integers are compared.

use nalgebra::RealField;
use num_bigint::{BigInt, BigUint};
use rand::CryptoRng;

use super::Law;
use super::exact::{decided, joined};
use super::heads::with_buffer;
use super::streams::{BLOCK, Key, LONG};
use crate::error::Error;
use crate::exact::laws::{self, HEAD_BITS};
use crate::exact::real::{Binary, Offset, Real};
use crate::exact::source::{Source, Words};
use crate::exact::table::HALF_NORMAL;
use crate::grid::Grid;

/// Number of fractional digits of the exponential numbers drawn initially.
const FIRST_PLACES: u32 = HEAD_BITS + 64;
/// Number of bits of the multiplier that coordinates share.
const MULTIPLIER_BITS: u32 = 60;
/// Number of doublings of precision after which a generator counts as stuck.
const LEVELS: u32 = 8;

/// Adds the ball's noise to a vector.
pub(super) fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(
    value: &mut [F],
    scale_in_steps: u64,
    grid: Grid,
    rng: &mut R,
) -> Result<(), Error> {
    let mut radius = Radius::draw(value.len() as u64, scale_in_steps, &mut Words(rng))?;
    let shared = radius.multiplier(&mut Words(rng))?;
    if value.len() < LONG {
        return add_to_block(value, &shared, &mut radius, grid, rng);
    }
    let key = Key::draw(rng)?;
    value.chunks_mut(BLOCK).enumerate().try_for_each(|(block, values)| {
        add_to_block(values, &shared, &mut radius, grid, &mut key.streams(block).numbers())
    })
}

fn add_to_block<F: RealField + Copy, R: CryptoRng + ?Sized>(
    values: &mut [F],
    shared: &Multiplier,
    radius: &mut Radius,
    grid: Grid,
    rng: &mut R,
) -> Result<(), Error> {
    with_buffer!(values.len(), |heads| {
        for values in values.chunks_mut(heads.len()) {
            heads.draw(Law::Normal, values.len(), rng)?;
            for (index, value) in values.iter_mut().enumerate() {
                let unnoised = value.to_subset_unchecked();
                let place = grid.place(unnoised);
                let decided = heads.first_digits(index).and_then(|head| {
                    let error = shared.error(head);
                    let total = (i128::from(head) * i128::from(shared.whole) - i128::from(error)) >> shared.bits;
                    let width = (shared.whole >> shared.bits).saturating_add(error >> (shared.bits - 1));
                    decided(total, width.saturating_add(3), &place)
                });
                let steps = match decided {
                    Some(steps) => steps,
                    None => {
                        let offset = grid.exact_fraction(unnoised, &place);
                        nearest(heads.take(index), shared, radius, offset, &mut Words(rng))? as i64
                    }
                };
                *value = joined(grid, &place, steps);
            }
        }
        Ok(())
    })
}

/// `S = (whole + e) / 2^bits` with `0 <= e <= 2`.
struct Multiplier {
    whole: u64,
    bits: u32,
}

impl Multiplier {
    /// Returns a bound on the error of `whole · number` in units of `2^-(HEAD_BITS + bits)`, given the number's head.
    #[inline]
    fn error(&self, head: i64) -> u64 {
        2 * (head.unsigned_abs() + 1)
    }
}

/// Returns the nearest integer to `S number + offset`.
fn nearest<S: Source>(
    mut number: Real,
    shared: &Multiplier,
    radius: &mut Radius,
    offset: Binary,
    source: &mut S,
) -> Result<i128, Error> {
    let (affine, slack) = (Offset::half_above(offset), shared.error(number.head));
    match number.floor_scaled(shared.whole, shared.bits, slack, affine, source)? {
        Some(whole) => Ok(whole),
        None => nearest_with_all_digits(&mut number, radius, offset, source),
    }
}

/// Returns the nearest integer, with as many digits as needed.
fn nearest_with_all_digits<S: Source>(
    number: &mut Real,
    radius: &mut Radius,
    offset: Binary,
    source: &mut S,
) -> Result<i128, Error> {
    for level in 1..=LEVELS {
        let wanted = 128u32 << level;
        let (digits, places) = number.signed_digits(wanted, source)?;
        let (low, high, root_places) = radius.bounds(wanted, source)?;
        let next = &digits + 1i32;
        let (low, high) = if number.head >= 0 {
            (digits * BigInt::from(low), next * BigInt::from(high))
        } else {
            (digits * BigInt::from(high), next * BigInt::from(low))
        };
        let bits = places + root_places;
        let (offset_low, exact) = offset.floor_big(bits);
        let half = BigInt::from(1) << (bits - 1);
        let low = (low + &offset_low + &half) >> bits;
        let high = (high + offset_low + i32::from(!exact) + half) >> bits;
        if low == high {
            return i128::try_from(low).map_err(|_| Error::StuckGenerator);
        }
    }
    Err(Error::StuckGenerator)
}

/// The common factor `S = m √W` of all coordinates of a release.
struct Radius {
    /// `m`.
    scale: u64,
    /// Number of exponential numbers in the sum.
    count: u64,
    /// `K`, with [`FIRST_PLACES`] fractional digits: the sum of their first [`HEAD_BITS`] digits, and of the rest.
    first: (u128, u128),
    /// `K` with more fractional digits, once they were needed, and the number of digits.
    sum: BigUint,
    places: u32,
    /// Further digits already drawn, in groups of 32: the count of the numbers and their sum.
    known: Vec<(u64, u128)>,
    /// The normal number whose square provides an odd degree of freedom; its sign does not matter.
    normal: Option<Real>,
}

impl Radius {
    fn draw<S: Source>(dim: u64, scale: u64, source: &mut S) -> Result<Self, Error> {
        let count = dim.div_ceil(2);
        let (mut heads, mut tails) = (0u128, 0u128);
        let mut known: Vec<(u64, u128)> = Vec::new();
        for _ in 0..count {
            let number = laws::exponential(source)?;
            heads += u128::from(number.head.unsigned_abs());
            let mut groups = number.known.into_iter();
            tails += match (groups.next(), groups.next()) {
                (None, _) => u128::from(source.bits(64)?),
                (Some(first), None) => u128::from(first) << 32 | u128::from(source.bits(32)?),
                (Some(first), Some(second)) => u128::from(first) << 32 | u128::from(second),
            };
            for (place, group) in groups.enumerate() {
                if known.len() == place {
                    known.push((0, 0));
                }
                known[place].0 += 1;
                known[place].1 += u128::from(group);
            }
        }
        let normal = if dim.is_multiple_of(2) {
            let word = laws::Word(source.bits(64)?);
            Some(laws::unsigned(&HALF_NORMAL, word, source)?)
        } else {
            None
        };
        Ok(Self { scale, count, first: (heads, tails), sum: BigUint::ZERO, places: 0, known, normal })
    }

    /// Draws 32 more digits of every exponential number.
    fn extend<S: Source>(&mut self, source: &mut S) -> Result<(), Error> {
        let group = ((self.places - FIRST_PLACES) / 32) as usize;
        let (drawn, mut digits) = self.known.get(group).copied().unwrap_or((0, 0));
        for _ in drawn..self.count {
            digits += u128::from(source.bits(32)?);
        }
        self.sum = (&self.sum << 32u32) + digits;
        self.places += 32;
        Ok(())
    }

    /// Returns bounds on `S` from at least `wanted` places of everything, in units of `2^-places`, and that number of places.
    fn bounds<S: Source>(&mut self, wanted: u32, source: &mut S) -> Result<(BigUint, BigUint, u32), Error> {
        if self.places == 0 {
            let (heads, tails) = self.first;
            self.sum = (BigUint::from(heads) << (FIRST_PLACES - HEAD_BITS)) + tails;
            self.places = FIRST_PLACES;
        }
        while self.places < wanted {
            self.extend(source)?;
        }
        // W = 2 sum + normal², with twice the places.
        let places = self.places;
        let mut low = &self.sum << (places + 1);
        let mut high = (&self.sum + self.count) << (places + 1);
        if let Some(normal) = &mut self.normal {
            let (digits, found) = normal.digits(places, source)?;
            let cut = found - places;
            let below: BigUint = digits >> cut;
            let above: BigUint = &below + 1u32;
            low += &below * &below;
            high += &above * &above;
        }
        let square = BigUint::from(self.scale) * self.scale;
        Ok(((low * &square).sqrt(), (high * square).sqrt() + 1u32, places))
    }

    /// Returns the multiplier to 60 bits.
    fn multiplier<S: Source>(&mut self, source: &mut S) -> Result<Multiplier, Error> {
        if let Some(multiplier) = self.multiplier_in_words(source)? {
            return Ok(multiplier);
        }
        let mut wanted = FIRST_PLACES;
        for _ in 0..LEVELS {
            let (low, high, places) = self.bounds(wanted, source)?;
            // S is below 2^58, so that at least two bits are fractional; for S < 1/2 there are fewer than 60 in total.
            let cut = low.bits().max(u64::from(places)) - u64::from(MULTIPLIER_BITS);
            let (whole, end): (BigUint, BigUint) = (&low >> cut, (high >> cut) + 1u32);
            if end <= &whole + 2u32
                && let (Ok(whole), Some(bits @ 1..)) = (u64::try_from(whole), places.checked_sub(cut as u32))
            {
                return Ok(Multiplier { whole, bits });
            }
            // The sum is tiny: its first digits are zeros.
            wanted *= 2;
        }
        Err(Error::StuckGenerator)
    }

    /// As [`multiplier`](Self::multiplier) in 128-bit integers, if they hold enough digits.
    fn multiplier_in_words<S: Source>(&mut self, source: &mut S) -> Result<Option<Multiplier>, Error> {
        const NORMAL_PLACES: u32 = 60;
        let (heads, tails) = self.first;
        if heads >> 60 > 0 || self.normal.as_ref().is_some_and(|normal| normal.head >> (HEAD_BITS + 3) > 0) {
            return Ok(None);
        }
        // W with FIRST_PLACES places.
        let sum = (heads << (FIRST_PLACES - HEAD_BITS)) + tails;
        let (mut low, mut high) = (2 * sum, 2 * (sum + u128::from(self.count)));
        if let Some(normal) = &mut self.normal {
            let digits = normal.leading_digits(NORMAL_PLACES, source)?;
            let square = |digits: u64| (u128::from(digits) * u128::from(digits)) >> (2 * NORMAL_PLACES - FIRST_PLACES);
            low += square(digits);
            high += square(digits + 1) + 1;
        }
        // The square root, with as many digits as fit 128 bits: an even number of places.
        let shift = high.leading_zeros() & !1;
        let places = (FIRST_PLACES + shift) / 2;
        let (low, high) = (low << shift, high << shift);
        let root = low.isqrt();
        // √high <= √low + (high - low) / (2 √low) < root + 1 + 1/2 makes the second root unnecessary in most releases.
        let above = if high - low <= root { root + 2 } else { high.isqrt() + 1 };
        let (low, high) = (root, above);
        let (low, high) = (low * u128::from(self.scale), high * u128::from(self.scale));
        let cut = (u128::BITS - low.leading_zeros()).max(places).saturating_sub(MULTIPLIER_BITS);
        let (whole, end) = (low >> cut, (high >> cut) + 1);
        Ok(match (u64::try_from(whole), places.checked_sub(cut)) {
            (Ok(whole), Some(bits @ 1..)) if end <= u128::from(whole) + 2 => Some(Multiplier { whole, bits }),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
