//! Ideal real noise, rounded exactly: `round(m X + c)` for the integer `m >= scale / step`.
//!
//! Most coordinates need one random word and one integer product: the word gives the first digits of `X`, which decide unless a
//! rounding boundary lies within the digits not yet drawn. See [`crate::exact`] for the others.

use nalgebra::RealField;
use rand::CryptoRng;

use super::{BLOCK, FEW, Law, SOME, largest};
use crate::error::Error;
use crate::exact::laws::{self, HEAD_BITS, Word, signed_head};
use crate::exact::real::{Offset, Real};
use crate::exact::source::Words;
use crate::exact::table::{EXPONENTIAL, HALF_NORMAL};
use crate::grid::{Grid, Place};

/// The first digits of a block of numbers, and further data of the few that needed more than a word.
pub(super) struct Heads<'a> {
    pub(super) heads: &'a mut [i64],
    longer: Vec<(usize, Vec<u32>)>,
}

impl<'a> Heads<'a> {
    /// Prepares blocks of the length of this buffer.
    pub(super) fn new(buffer: &'a mut [i64]) -> Self {
        Self { heads: buffer, longer: Vec::new() }
    }

    /// Draws `count` numbers.
    #[inline]
    pub(super) fn draw<R: CryptoRng + ?Sized>(&mut self, law: Law, count: usize, rng: &mut R) -> Result<(), Error> {
        let table = match law {
            Law::Normal => &HALF_NORMAL,
            Law::Laplace => &EXPONENTIAL,
        };
        self.longer.clear();
        for (index, head) in self.heads[..count].iter_mut().enumerate() {
            let word = Word(rng.next_u64());
            *head = match signed_head(table, word) {
                Some(head) => head,
                None => {
                    let real = laws::signed(table, word, &mut Words(rng))?;
                    if !real.known.is_empty() {
                        self.longer.push((index, real.known));
                    }
                    real.head
                }
            };
        }
        Ok(())
    }

    /// Returns the number at this position with all its known digits.
    pub(super) fn take(&mut self, index: usize) -> Real {
        let known = self.longer.iter_mut().find(|(longer, _)| *longer == index);
        let known = known.map_or_else(Vec::new, |(_, known)| core::mem::take(known));
        Real { head: self.heads[index], head_bits: HEAD_BITS, known }
    }
}

/// Adds `multiplier` steps times independent numbers of this law to a vector.
///
/// The sum is taken in `f64` on the grid and converted to `F` once.
pub(super) fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(
    law: Law,
    value: &mut [F],
    multiplier: u64,
    grid: Grid,
    rng: &mut R,
) -> Result<(), Error> {
    let largest = largest::<F>();
    let (mut few, mut some, mut many);
    let mut heads = Heads::new(if value.len() <= FEW {
        few = [0; FEW];
        &mut few
    } else if value.len() <= SOME {
        some = [0; SOME];
        &mut some
    } else {
        many = [0; BLOCK];
        &mut many
    });
    for block in value.chunks_mut(heads.heads.len()) {
        heads.draw(law, block.len(), rng)?;
        for (index, coordinate) in block.iter_mut().enumerate() {
            let unnoised = coordinate.to_subset_unchecked();
            let place = grid.place(unnoised);
            let total = i128::from(heads.heads[index]) * i128::from(multiplier);
            let steps = match decided(total, multiplier, &place) {
                Some(steps) => steps,
                None => {
                    let offset = Offset::half_above(grid.exact_fraction(unnoised, &place));
                    heads.take(index).floor_affine(multiplier, offset, &mut Words(rng))? as i64
                }
            };
            let sum = grid.join_exactly(&place, steps);
            *coordinate = nalgebra::convert(sum.clamp(-largest, largest));
        }
    }
    Ok(())
}

/// Returns the nearest integer to `(total + t) / 2^42 + fraction` if it is the same for every `t` in `[0, width]`.
///
/// The fraction's digits are truncated, an error below one unit in either direction, so one more unit is required on both sides.
#[inline]
pub(super) fn decided(total: i128, width: u64, place: &Place) -> Option<i64> {
    const UNIT: u64 = 1 << HEAD_BITS;
    let fraction = (place.fraction * UNIT as f64) as i64;
    let total = total + i128::from(fraction + (UNIT as i64 >> 1));
    let rest = total as u64 & (UNIT - 1);
    let free = UNIT.checked_sub(width.saturating_add(2))?;
    (rest.wrapping_sub(1) < free).then_some((total >> HEAD_BITS) as i64)
}
