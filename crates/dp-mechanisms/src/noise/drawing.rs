//! How noise is added to vectors: long ones a block at a time, on several threads, with blocks that were drawn before the vector
//! was known.

use core::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use nalgebra::RealField;
use rand::CryptoRng;

use super::Law;
use super::heads::{Heads, with_buffer};
use super::streams::{BLOCK, Block, Key, LONG};
use crate::error::Error;
use crate::exact::real::Real;
use crate::instructions::arch_for;

/// Number of coordinates from which on threads save more time than they take to start.
const FOR_THREADS: usize = 16 * BLOCK;

/// Noise that can be added to any coordinates.
pub(super) trait BlockNoise: Sync {
    /// Adds noise to a short vector.
    fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(&self, values: &mut [F], rng: &mut R) -> Result<(), Error>;

    /// Adds noise to a block of a long vector: the numbers that were drawn for it, if any.
    fn add_to_block<F: RealField + Copy>(
        &self,
        values: &mut [F],
        block: &Block<'_>,
        _drawn: Option<&mut Drawn>,
    ) -> Result<(), Error> {
        self.add(values, &mut block.numbers())
    }
}

/// The threads of a mechanism, and the noise that it has drawn for its next vector.
pub(crate) struct Drawing {
    pub(crate) threads: NonZeroUsize,
    next: Option<Next>,
    blocks: Mutex<Blocks>,
}

/// The noise of the next vector.
struct Next {
    len: usize,
    key: Key,
    /// The law of numbers that can be drawn ahead.
    law: Option<Law>,
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
    fn draw(&mut self, law: Law, count: usize, block: &Block<'_>) -> Result<(), Error> {
        let Self { heads, apart } = self;
        heads.clear();
        apart.clear();
        let mut stream = block.numbers();
        with_buffer!(count, |buffer| {
            while heads.len() < count {
                let (start, some) = (heads.len(), buffer.len().min(count - heads.len()));
                buffer.draw(law, some, &mut stream)?;
                heads.extend_from_slice(&buffer.heads[..some]);
                apart.extend(buffer.apart.drain(..).map(|(index, real)| (start + index, real)));
            }
            Ok(())
        })
    }

    /// Returns the numbers.
    pub(super) fn heads(&mut self) -> Heads<'_> {
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
    /// Begins the exact normal noise of a long vector, whose blocks may then be [drawn](Self::draw_block) ahead. The noise is the
    /// same without this call; what was drawn for another vector is not used.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    pub(crate) fn begin_normal<R: CryptoRng + ?Sized>(&mut self, len: usize, rng: &mut R) -> Result<(), Error> {
        self.begin(Some(Law::Normal), len, rng)
    }

    fn begin<R: CryptoRng + ?Sized>(&mut self, law: Option<Law>, len: usize, rng: &mut R) -> Result<(), Error> {
        self.next = None;
        let Blocks { begun, drawn, spare } = self.blocks.get_mut().unwrap_or_else(PoisonError::into_inner);
        *begun = 0;
        spare.extend(drawn.drain(..).flatten());
        self.next = Some(Next { len, key: Key::draw(rng)?, law });
        Ok(())
    }

    /// Returns whether the noise of a vector of this length has begun.
    pub(crate) fn has_begun(&self, len: usize) -> bool {
        self.next.as_ref().is_some_and(|next| next.len == len)
    }

    /// Draws one more block ahead on the calling thread; returns whether there was one.
    pub(crate) fn draw_block(&self) -> bool {
        let Some(Next { len, key, law: Some(law) }) = &self.next else { return false };
        let mut blocks = self.lock();
        let index = blocks.begun;
        if index * BLOCK >= *len {
            return false;
        }
        blocks.begun += 1;
        let mut numbers = blocks.spare.pop().unwrap_or_default();
        drop(blocks);
        // A block that fails is drawn again with the vector, and fails there.
        if numbers.draw(*law, BLOCK.min(len - index * BLOCK), &key.block(index)).is_ok() {
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

    /// Adds noise to a vector.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`].
    pub(super) fn add<F: RealField + Copy, R: CryptoRng + ?Sized>(
        &mut self,
        noise: &impl BlockNoise,
        value: &mut [F],
        rng: &mut R,
    ) -> Result<(), Error> {
        if value.len() < LONG {
            return noise.add(value, rng);
        }
        if !self.has_begun(value.len()) {
            self.begin(None, value.len(), rng)?;
        }
        // Taken: this noise is not used again, whatever happens here.
        let Some(Next { key, .. }) = self.next.take() else { return Err(Error::StuckGenerator) };
        let threads = if value.len() < FOR_THREADS { 1 } else { self.threads.get().min(value.len() / BLOCK) };
        let blocks = Mutex::new(value.chunks_mut(BLOCK).enumerate());
        let work = || loop {
            let Some((index, values)) = blocks.lock().unwrap_or_else(PoisonError::into_inner).next() else {
                return Ok(());
            };
            let mut drawn = self.lock().drawn.get_mut(index).and_then(Option::take);
            let result = noise.add_to_block(values, &key.block(index), drawn.as_mut());
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
