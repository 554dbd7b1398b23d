//! The first digits of a block of numbers, from one random word each.

use pulp::{Arch, Simd, WithSimd};
use rand::CryptoRng;

use super::Law;
use crate::error::Error;
use crate::exact::laws::{self, HEAD_BITS, HEADS_END, Word, signed_head};
use crate::exact::real::Real;
use crate::exact::source::Words;
use crate::exact::table::{EXPONENTIAL, HALF_NORMAL, Table};
use crate::instructions::{SHORT, arch_for};

/// Marks a number with more digits or a larger size, which is kept apart.
pub(super) const APART: i64 = i64::MIN;
/// Marks a number that was used.
pub(super) const DONE: i64 = i64::MAX;

/// The memory of a block.
pub(super) struct Buffer<const LEN: usize> {
    words: [[u8; 8]; LEN],
    heads: [i64; LEN],
}

impl<const LEN: usize> Buffer<LEN> {
    pub(super) fn new() -> Self {
        Self { words: [[0; 8]; LEN], heads: [0; LEN] }
    }

    pub(super) fn heads(&mut self) -> Heads<'_> {
        Heads { words: &mut self.words, heads: &mut self.heads, apart: Vec::new(), arch: arch_for(LEN) }
    }
}

/// Calls `$body` with room for the heads of a vector of this length: at most 512, which fit the first-level cache, and less for
/// short vectors, for which clearing that memory would take as long as drawing the noise.
macro_rules! with_buffer {
    ($len:expr, |$heads:ident| $body:expr) => {{
        use $crate::instructions::SHORT;
        use $crate::noise::heads::Buffer;
        let (mut short, mut some, mut many);
        let $heads = &mut match $len {
            ..=SHORT => {
                short = Buffer::<SHORT>::new();
                short.heads()
            }
            ..=64 => {
                some = Buffer::<64>::new();
                some.heads()
            }
            _ => {
                many = Buffer::<512>::new();
                many.heads()
            }
        };
        $body
    }};
}
pub(super) use with_buffer;

/// Numbers of a law: their first digits, below [`HEADS_END`] in size, and all digits of the few that need more than that.
pub(super) struct Heads<'a> {
    pub(super) words: &'a mut [[u8; 8]],
    pub(super) heads: &'a mut [i64],
    pub(super) apart: Vec<(usize, Real)>,
    pub(super) arch: Arch,
}

impl Heads<'_> {
    /// Returns how many numbers fit.
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Draws `count` numbers: one word each, then more words for those that one word does not decide.
    pub(super) fn draw<R: CryptoRng + ?Sized>(&mut self, law: Law, count: usize, rng: &mut R) -> Result<(), Error> {
        let table = match law {
            Law::Normal => &HALF_NORMAL,
            Law::Laplace => &EXPONENTIAL,
        };
        let is_short = self.len() <= SHORT;
        let (words, heads) = (&mut self.words[..count], &mut self.heads[..count]);
        if is_short {
            words.iter_mut().for_each(|word| *word = rng.next_u64().to_le_bytes());
        } else {
            rng.fill_bytes(words.as_flattened_mut());
        }
        self.apart.clear();
        if self.arch.dispatch(Decode { table, words, heads }) {
            return Ok(());
        }
        for (index, (head, &mut word)) in heads.iter_mut().zip(words).enumerate() {
            if *head == APART {
                let real = laws::signed(table, Word(u64::from_le_bytes(word)), &mut Words(rng))?;
                if real.known.is_empty() && (-HEADS_END..HEADS_END).contains(&real.head) {
                    *head = real.head;
                } else {
                    self.apart.push((index, real));
                }
            }
        }
        Ok(())
    }

    /// Returns the first digits of the number at this position, if they are all that is known.
    #[inline]
    pub(super) fn first_digits(&self, index: usize) -> Option<i64> {
        Some(self.heads[index]).filter(|&head| head != APART)
    }

    /// Returns the number at this position with all its known digits.
    pub(super) fn take(&mut self, index: usize) -> Real {
        match self.apart.iter().position(|(apart, _)| *apart == index) {
            Some(place) => self.apart.swap_remove(place).1,
            None => Real { head: self.heads[index], head_bits: HEAD_BITS, known: Vec::new() },
        }
    }
}

/// Turns words into heads; returns whether each word decides its own.
struct Decode<'a> {
    table: &'a Table,
    words: &'a [[u8; 8]],
    heads: &'a mut [i64],
}

impl WithSimd for Decode<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let mut undecided = 0u64;
        for (&word, place) in self.words.iter().zip(self.heads) {
            let (head, decided) = signed_head(self.table, Word(u64::from_le_bytes(word)));
            *place = if decided { head } else { APART };
            undecided |= u64::from(!decided);
        }
        undecided == 0
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;
    use crate::rng::SeededRng;

    /// The plain code and the code for the machine's instructions give the same bits.
    #[test]
    fn instruction_sets_agree() {
        let mut words = [[0; 8]; 1000];
        SeededRng::new(1).fill_bytes(words.as_flattened_mut());
        (words[0], words[1]) = ([0; 8], [255; 8]);
        for table in [&HALF_NORMAL, &EXPONENTIAL] {
            let [mut plain, mut fast] = [[0; 1000]; 2];
            let decided = Decode { table, words: &words, heads: &mut plain }.with_simd(pulp::Scalar);
            assert_eq!(decided, Arch::new().dispatch(Decode { table, words: &words, heads: &mut fast }));
            assert_eq!(plain, fast);
            assert!(!decided && plain[..2] == [APART; 2]);
            assert!((1..100).contains(&plain.iter().filter(|&&head| head == APART).count()));
        }
    }
}
