//! Addition of noise to vectors: long ones a block at a time, on several threads, with blocks that were drawn before the vector
//! was known.

use core::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use nalgebra::RealField;
use rand::CryptoRng;

use super::Law;
use super::heads::{Heads, with_buffer};
use super::streams::{BLOCK, Key, LONG, Streams};
use crate::error::Error;
use crate::exact::real::Real;
use crate::instructions::arch_for;

/// Number of coordinates from which on threads save more time than they take to start.
pub(super) const FOR_THREADS: usize = 16 * BLOCK;
/// The most blocks that are drawn ahead: 32 MB.
const MOST_AHEAD: usize = 1024;

/// Noise that can be added to any coordinates.
pub(super) trait BlockNoise: Sync {
    /// Adds noise to a short vector.
    fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(&self, values: &mut [F], rng: &mut R) -> Result<(), Error>;

    /// Adds noise to a block of a long vector, with the numbers in `drawn` if they were drawn ahead.
    fn add_to_block<F: RealField + Copy>(
        &self,
        values: &mut [F],
        streams: &Streams<'_>,
        _drawn: Option<&mut Drawn>,
    ) -> Result<(), Error> {
        self.add(values, &mut streams.numbers())
    }
}

/// The threads of a mechanism, and the exact normal noise that it has drawn for its next vector.
pub(crate) struct Drawing {
    pub(crate) threads: NonZeroUsize,
    next: Option<Next>,
    blocks: Mutex<Blocks>,
}

/// The noise of the next vector.
struct Next {
    len: usize,
    key: Key,
}

#[derive(Default)]
struct Blocks {
    /// Number of blocks that were begun.
    begun: usize,
    drawn: Vec<Option<Drawn>>,
    spare: Vec<Drawn>,
}

/// The numbers of a block, without the digits that their rounding may need.
#[derive(Default)]
pub(super) struct Drawn {
    heads: Vec<i64>,
    apart: Vec<(usize, Real)>,
}

impl Drawn {
    fn draw(&mut self, count: usize, streams: &Streams<'_>) -> Result<(), Error> {
        self.heads.clear();
        self.apart.clear();
        let mut numbers = streams.numbers();
        with_buffer!(count, |buffer| {
            while self.heads.len() < count {
                let some = buffer.len().min(count - self.heads.len());
                buffer.draw(Law::Normal, some, &mut numbers)?;
                self.append(buffer, some);
            }
            Ok(())
        })
    }

    /// Moves the first numbers of a buffer to the end.
    fn append(&mut self, buffer: &mut Heads<'_>, count: usize) {
        let start = self.heads.len();
        self.heads.extend_from_slice(&buffer.heads[..count]);
        self.apart.extend(buffer.apart.drain(..).map(|(index, real)| (start + index, real)));
    }

    /// Takes the numbers.
    pub(super) fn take_heads(&mut self) -> Heads<'_> {
        let (apart, arch) = (core::mem::take(&mut self.apart), arch_for(self.heads.len()));
        Heads { words: &mut [], heads: &mut self.heads, apart, arch }
    }
}

impl Default for Drawing {
    fn default() -> Self {
        Self { threads: NonZeroUsize::MIN, next: None, blocks: Mutex::default() }
    }
}

impl Drawing {
    /// Begins the exact normal noise of the next vector, a long one, whose blocks may then be [drawn](Self::draw_block) ahead.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    pub(crate) fn begin<R: CryptoRng + ?Sized>(&mut self, len: usize, rng: &mut R) -> Result<(), Error> {
        self.discard();
        self.next = Some(Next { len, key: Key::draw(rng)? });
        Ok(())
    }

    /// Discards what was drawn ahead.
    fn discard(&mut self) {
        self.next = None;
        let Blocks { begun, drawn, spare } = self.blocks.get_mut().unwrap_or_else(PoisonError::into_inner);
        *begun = 0;
        spare.extend(drawn.drain(..).flatten());
    }

    /// Returns whether the noise of a vector of this length has begun.
    pub(crate) fn has_begun(&self, len: usize) -> bool {
        self.next.as_ref().is_some_and(|next| next.len == len)
    }

    /// Draws one more block ahead on the calling thread; returns whether there was one.
    pub(crate) fn draw_block(&self) -> bool {
        let Some(Next { len, key }) = &self.next else { return false };
        let mut blocks = self.lock();
        let index = blocks.begun;
        if index * BLOCK >= *len || index >= MOST_AHEAD {
            return false;
        }
        blocks.begun += 1;
        let mut numbers = blocks.spare.pop().unwrap_or_default();
        drop(blocks);
        // A block that fails is drawn again with the vector, and fails there.
        if numbers.draw(BLOCK.min(len - index * BLOCK), &key.streams(index)).is_ok() {
            let drawn = &mut self.lock().drawn;
            if drawn.len() <= index {
                drawn.resize_with(index + 1, || None);
            }
            drawn[index] = Some(numbers);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds noise to a vector. Noise that has begun for a vector of another length is discarded.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    pub(super) fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(
        &mut self,
        noise: &impl BlockNoise,
        value: &mut [F],
        rng: &mut R,
    ) -> Result<(), Error> {
        // Taken: this noise is not used again, whatever happens here.
        let begun = self.next.take().filter(|next| next.len == value.len());
        if begun.is_none() {
            self.discard();
        }
        if value.len() < LONG {
            return noise.add(value, rng);
        }
        let key = match begun {
            Some(next) => next.key,
            None => Key::draw(rng)?,
        };
        let threads = if value.len() < FOR_THREADS { 1 } else { self.threads.get().min(value.len() / BLOCK) };
        let blocks = Mutex::new(value.chunks_mut(BLOCK).enumerate());
        let work = || loop {
            let Some((index, values)) = blocks.lock().unwrap_or_else(PoisonError::into_inner).next() else {
                return Ok(());
            };
            let mut drawn = self.lock().drawn.get_mut(index).and_then(Option::take);
            let result = noise.add_to_block(values, &key.streams(index), drawn.as_mut());
            self.lock().spare.extend(drawn);
            result?;
        };
        thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).map_while(start).collect();
            others
                .into_iter()
                .fold(work(), |done, other| done.and(other.join().unwrap_or_else(|panic| resume_unwind(panic))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::heads::{APART, Buffer};

    /// Numbers of which more than the first digits are known, too few for other tests to see, keep their place.
    #[test]
    fn numbers_apart_keep_their_place() {
        let real = |digit| Real { head: 1, head_bits: 42, known: vec![digit] };
        let (mut drawn, mut buffer) = (Drawn::default(), Buffer::<16>::new());
        for digit in [7, 8] {
            let mut heads = buffer.heads();
            heads.heads[3] = APART;
            heads.apart.push((3, real(digit)));
            drawn.append(&mut heads, 5);
        }
        let mut heads = drawn.take_heads();
        assert_eq!((heads.len(), heads.first_digits(4), heads.first_digits(8)), (10, Some(0), None));
        assert_eq!([8, 3].map(|index| heads.take(index).known), [[8], [7]]);
    }
}
