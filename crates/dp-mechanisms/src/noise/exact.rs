//! Ideal real noise, rounded exactly: `round(m X + c)` for the integer `m >= scale / step`.
//!
//! Most coordinates need one random word and one integer product: the word gives the first digits of `X`, which decide unless a
//! rounding boundary lies within the digits not yet drawn. See [`crate::exact`] for the others.
//!
//! # In 64 bits
//! For `m < 2^32` the product of a head `k`, `|k| < 2^45`, is computed in two parts, `m = 2^16 a + b`:
//! ```text
//! m k + c = 2^16 (a k) + (b k + c),   |a k| < 2^61,  |b k + c| < 2^61 + 2^43
//! floor((m k + c) / 2^42) = floor((a k + floor((b k + c) / 2^16)) / 2^26)
//! ```
//! Both sides are equal, as `floor((2^16 u + v) / 2^42) = floor((u + floor(v / 2^16)) / 2^26)` for all integers `u` and `v`. No
//! sum overflows, and the last 42 digits of `m k + c`, which decide, are the same modulo `2^64`. So a vectorised loop rounds a
//! block, and what it leaves undecided is rounded one by one.

use nalgebra::RealField;
use pulp::{Simd, WithSimd};
use rand::CryptoRng;

use super::drawing::{BlockNoise, Drawn};
use super::heads::{APART, DONE, Heads, with_buffer};
use super::streams::Streams;
use super::{Law, largest};
use crate::error::Error;
use crate::exact::laws::HEAD_BITS;
use crate::exact::real::Offset;
use crate::exact::source::Words;
use crate::grid::{Grid, Place};

/// One unit of the last digit of a head.
const UNIT: i64 = 1 << HEAD_BITS;
/// `3 · 2^51`: doubles near it are whole numbers. Adding it rounds a number of up to `2^51` to an integer, which is the difference
/// of the sum's bits and these.
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// `multiplier` steps of the grid times independent numbers of a law.
///
/// The sum is taken in `f64` on the grid and converted to the vector's type once.
pub(super) struct Exact {
    pub(super) law: Law,
    pub(super) multiplier: u64,
    pub(super) grid: Grid,
}

impl BlockNoise for Exact {
    fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(&self, values: &mut [F], rng: &mut R) -> Result<(), Error> {
        // A short vector fits the buffer.
        with_buffer!(values.len(), |heads| {
            heads.draw(self.law, values.len(), rng)?;
            self.round(heads, values, rng)
        })
    }

    fn add_to_block<F: RealField + Copy>(
        &self,
        values: &mut [F],
        streams: &Streams<'_>,
        drawn: Option<&mut Drawn>,
    ) -> Result<(), Error> {
        let mut digits = streams.digits();
        if let Some(drawn) = drawn {
            return self.round(&mut drawn.take_heads(), values, &mut digits);
        }
        let mut numbers = streams.numbers();
        with_buffer!(values.len(), |heads| {
            for values in values.chunks_mut(heads.len()) {
                heads.draw(self.law, values.len(), &mut numbers)?;
                self.round(heads, values, &mut digits)?;
            }
            Ok(())
        })
    }
}

impl Exact {
    /// Adds the numbers that were drawn; `rng` gives the further digits.
    fn round<F: RealField + Copy, R: CryptoRng + ?Sized>(
        &self,
        heads: &mut Heads<'_>,
        values: &mut [F],
        rng: &mut R,
    ) -> Result<(), Error> {
        let Self { multiplier, grid, .. } = *self;
        let block = Block { heads: &mut heads.heads[..values.len()], values: &mut *values, multiplier, grid };
        let all = if multiplier >> 32 == 0 { heads.arch.dispatch(block) } else { block.round_one_by_one() };
        if all {
            return Ok(());
        }
        for (index, value) in values.iter_mut().enumerate() {
            if heads.heads[index] != DONE {
                self.round_with_all_digits(heads, index, value, rng)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn round_with_all_digits<F: RealField + Copy, R: CryptoRng + ?Sized>(
        &self,
        heads: &mut Heads<'_>,
        index: usize,
        value: &mut F,
        rng: &mut R,
    ) -> Result<(), Error> {
        let unnoised = value.to_subset_unchecked();
        let place = self.grid.place(unnoised);
        let offset = Offset::half_above(self.grid.exact_fraction(unnoised, &place));
        let steps = heads.take(index).floor_affine(self.multiplier, offset, &mut Words(rng))?;
        *value = joined(self.grid, &place, steps as i64);
        Ok(())
    }
}

/// Returns the number at this many steps from a place.
#[inline]
pub(super) fn joined<F: RealField + Copy>(grid: Grid, place: &Place, steps: i64) -> F {
    nalgebra::convert(grid.join_exactly(place, steps).clamp(-largest::<F>(), largest::<F>()))
}

/// Returns the nearest integer to `(total + t) / 2^42 + fraction` if it is the same for every `t` in `[0, width]`.
#[inline]
pub(super) fn decided(total: i128, width: u64, place: &Place) -> Option<i64> {
    let total = total + i128::from(rounded_fraction(place) + UNIT / 2);
    is_decided(total as u64, width).then_some((total >> HEAD_BITS) as i64)
}

/// Returns the fraction in units of `2^-42`, with an error of at most half a unit.
#[inline(always)]
fn rounded_fraction(place: &Place) -> i64 {
    // At most 2^41 in size.
    (place.fraction * UNIT as f64 + SHIFT).to_bits() as i64 - SHIFT.to_bits() as i64
}

/// Returns whether the integer part of `(total + t) / 2^42` is the same for every `t` in `[-1, width + 1]`: as the fraction in
/// `total` is rounded, one unit more is required on both sides.
#[inline(always)]
fn is_decided(total: u64, width: u64) -> bool {
    const UNITS: u64 = UNIT as u64;
    let rest = total & (UNITS - 1);
    rest.wrapping_sub(1) < UNITS.saturating_sub(width.saturating_add(2))
}

/// Numbers to be rounded. Both ways mark the heads that decide, and return whether all do.
struct Block<'a, F> {
    heads: &'a mut [i64],
    values: &'a mut [F],
    multiplier: u64,
    grid: Grid,
}

impl<F: RealField + Copy> Block<'_, F> {
    /// Rounds in 128-bit integers, for any multiplier.
    fn round_one_by_one(self) -> bool {
        let Self { heads, values, multiplier, grid } = self;
        let mut all = true;
        for (head, value) in heads.iter_mut().zip(values) {
            let place = grid.place(value.to_subset_unchecked());
            match decided(i128::from(*head) * i128::from(multiplier), multiplier, &place) {
                Some(steps) if *head != APART => (*head, *value) = (DONE, joined(grid, &place, steps)),
                _ => all = false,
            }
        }
        all
    }
}

/// Rounds in 64-bit integers, for a multiplier below `2^32`.
impl<F: RealField + Copy> WithSimd for Block<'_, F> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let Self { heads, values, multiplier, grid } = self;
        let (high, low) = ((multiplier >> 16) as i64, (multiplier & 0xffff) as i64);
        let largest = largest::<F>();
        let mut undecided = 0u64;
        for (head, value) in heads.iter_mut().zip(values) {
            let place = grid.place(value.to_subset_unchecked());
            let rest = head.wrapping_mul(low).wrapping_add(rounded_fraction(&place) + UNIT / 2);
            let product = head.wrapping_mul(high);
            let decides = is_decided((product << 16).wrapping_add(rest) as u64, multiplier) & (*head != APART);
            let steps = product.wrapping_add(rest >> 16) >> (HEAD_BITS - 16);
            // Below 2^36 in size: the double of these bits is the shift plus the steps.
            let steps = f64::from_bits((SHIFT.to_bits() as i64).wrapping_add(steps) as u64) - SHIFT;
            let sum = grid.join(&place, steps).max(-largest).min(largest);
            *value = if decides { nalgebra::convert(sum) } else { *value };
            *head = if decides { DONE } else { *head };
            undecided |= u64::from(!decides);
        }
        undecided == 0
    }
}

#[cfg(test)]
mod tests {
    use pulp::Arch;
    use rand::{Rng, RngExt};

    use super::*;
    use crate::exact::laws::HEADS_END;
    use crate::rng::SeededRng;

    /// A number is decided if and only if no integer lies between the ends of its unknown part.
    #[test]
    fn decisions_are_those_of_the_ends() {
        let mut rng = SeededRng::new(8);
        let whole = |total: i128| total >> HEAD_BITS;
        for width in [0, 1, 5, 1 << 30, (1 << 41) + 3, UNIT as u64 - 3, UNIT as u64 - 2, UNIT as u64, u64::MAX] {
            let end = UNIT - 2 - (width.min(1 << 62) as i64);
            let edges = (-3..=3).flat_map(|step| [step, end + step, end + step - 7 * UNIT, i64::MAX - 9 + step]);
            for total in edges.chain((0..1000).map(|_| rng.next_u64() as i64)) {
                let unknown = i128::from(width) + 1;
                let is_same = whole(i128::from(total) - 1) == whole(i128::from(total) + unknown);
                assert_eq!(is_decided(total as u64, width), is_same, "{total} {width}");
            }
        }
    }

    /// Numbers that are rounded in 64 bits are rounded as in 128 bits, at the ends of the heads and multipliers too, and with any
    /// instructions.
    #[test]
    fn words_hold_the_products() {
        let mut rng = SeededRng::new(3);
        let ends = [-HEADS_END, HEADS_END - 1, 0, -1, 1, APART];
        let mut all = 0;
        for multiplier in [1, 2, 0xffff, 0x1_0000, (1 << 30) + 7, u64::from(u32::MAX)] {
            let grid = Grid::new(1.0, 30).unwrap();
            let heads: Vec<i64> =
                (0..3000).map(|i| if i < 60 { ends[i % 6] } else { rng.random_range(-HEADS_END..HEADS_END) }).collect();
            let values: Vec<f64> = (0..3000)
                .map(|i| match i % 4 {
                    0 => 0.5 * grid.step(),
                    1 => -0.5 * grid.step(),
                    2 => (rng.next_u32() as f64 - 2e9) * grid.step() * 0.37,
                    _ => [0.0, f64::MAX, -1e-300][i % 3],
                })
                .collect();
            let [mut plain, mut fast, mut wide] = [(); 3].map(|()| (heads.clone(), values.clone()));
            let round = |(heads, values): &mut (Vec<i64>, Vec<f64>), arch: Option<Arch>| {
                let block = Block { heads, values, multiplier, grid };
                match arch {
                    Some(arch) => arch.dispatch(block),
                    None => block.with_simd(pulp::Scalar),
                }
            };
            assert_eq!(round(&mut plain, None), round(&mut fast, Some(Arch::new())));
            let (heads_of_wide, values_of_wide) = &mut wide;
            Block { heads: heads_of_wide, values: values_of_wide, multiplier, grid }.round_one_by_one();
            assert_eq!((&plain, &plain), (&fast, &wide));
            for (i, (&head, &value)) in heads.iter().zip(&values).enumerate() {
                let place = grid.place(value);
                let total = i128::from(head) * i128::from(multiplier);
                let expected =
                    Some(head).filter(|&head| head != APART).and_then(|_| decided(total, multiplier, &place));
                match expected {
                    Some(steps) => assert_eq!((plain.0[i], plain.1[i]), (DONE, joined(grid, &place, steps))),
                    None => assert_eq!((plain.0[i], plain.1[i]), (head, value)),
                }
                all += usize::from(expected.is_some());
            }
        }
        assert!(all > 17_000, "{all}");
    }
}
