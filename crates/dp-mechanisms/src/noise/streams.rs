//! The random words of long vectors: a block of coordinates has streams of its own, so that any number of threads draws the same
//! noise.
//!
//! A vector of [`LONG`] coordinates or more takes a fresh 256-bit key from its generator. Block `j` of [`BLOCK`] coordinates uses
//! two ChaCha20 streams of this key: that of nonce `j` for its numbers, so that these can be drawn before the vector is known, and
//! that of nonce `2^63 + j` for the further digits that exact rounding needs; rounded noise and the ball use the first one only. No
//! stream is used twice, whatever the number of releases, steps or threads. The stream of a block comes in bulk, as many ChaCha
//! blocks at a time as the machine's vectors hold.

use core::convert::Infallible;

use chacha20::ChaCha20LegacyCore;
use chacha20::cipher::array::Array;
use chacha20::cipher::{KeyIvInit, StreamCipherCore};
use rand::{CryptoRng, TryCryptoRng, TryRng};
use zeroize::Zeroizing;

use crate::error::Error;

/// Number of coordinates of a block.
pub(super) const BLOCK: usize = 4096;
/// Number of coordinates from which on a vector's noise is drawn in blocks.
pub(super) const LONG: usize = 256;
/// Number of bytes in a ChaCha block.
const CHACHA_BLOCK: usize = 64;
/// Number of bytes kept for single words.
const BUFFER: usize = 4 * CHACHA_BLOCK;

/// The key of a vector's streams.
pub(super) struct Key(Zeroizing<[u8; 32]>);

impl Key {
    /// Draws a key.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`] if the generator repeats one word, which a working one does with probability `2^-192`.
    pub(super) fn draw<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<Self, Error> {
        let mut key = Zeroizing::new([0; 32]);
        rng.fill_bytes(key.as_mut());
        let (words, _) = key.as_chunks::<8>();
        if words.iter().all(|word| *word == words[0]) {
            return Err(Error::StuckGenerator);
        }
        Ok(Self(key))
    }

    /// Returns the streams of a block.
    pub(super) fn streams(&self, block: usize) -> Streams<'_> {
        Streams { key: &self.0, block: block as u64 }
    }
}

/// The streams of a block.
pub(super) struct Streams<'k> {
    key: &'k [u8; 32],
    block: u64,
}

impl Streams<'_> {
    /// Returns the stream of its numbers.
    pub(super) fn numbers(&self) -> Stream {
        Stream::new(self.key, self.block)
    }

    /// Returns the stream of further digits.
    pub(super) fn digits(&self) -> Stream {
        Stream::new(self.key, (1 << 63) | self.block)
    }
}

/// A stream of random words.
pub(super) struct Stream {
    core: ChaCha20LegacyCore,
    buffer: Zeroizing<[u8; BUFFER]>,
    used: usize,
}

impl Stream {
    fn new(key: &[u8; 32], nonce: u64) -> Self {
        let core = ChaCha20LegacyCore::new(key.into(), &nonce.to_le_bytes().into());
        Self { core, buffer: Zeroizing::new([0; BUFFER]), used: BUFFER }
    }

    /// Returns the next few bytes of the buffer.
    #[inline]
    fn take<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        loop {
            if let Some(bytes) = self.buffer[self.used..].first_chunk() {
                self.used += COUNT;
                return *bytes;
            }
            self.refill();
        }
    }

    #[cold]
    fn refill(&mut self) {
        let (blocks, _) = self.buffer.as_chunks_mut::<CHACHA_BLOCK>();
        self.core.write_keystream_blocks(Array::cast_slice_from_core_mut(blocks));
        self.used = 0;
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.take()))
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(self.take()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        let (blocks, rest) = bytes.as_chunks_mut::<CHACHA_BLOCK>();
        self.core.write_keystream_blocks(Array::cast_slice_from_core_mut(blocks));
        if !rest.is_empty() {
            let mut block = Zeroizing::new([0; CHACHA_BLOCK]);
            self.core.write_keystream_block((&mut *block).into());
            rest.copy_from_slice(&block[..rest.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Stream {}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha20Rng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// The bytes of a stream are those of ChaCha20 with its nonce, each of them used once.
    #[test]
    fn streams_are_chacha() {
        let key = Key::draw(&mut ChaCha20Rng::from_seed([7; 32])).unwrap();
        let streams = |index| [key.streams(index).numbers(), key.streams(index).digits()];
        for (nonce, mut stream) in
            [0, 1 << 63, 1, (1 << 63) + 1].into_iter().zip([streams(0), streams(1)].into_iter().flatten())
        {
            let mut whole = ChaCha20Rng::from_seed(*key.0);
            whole.set_stream(nonce);
            let mut expected = [0; 8192];
            whole.fill_bytes(&mut expected);
            // Long enough for every number of blocks that is generated at a time, and a rest.
            let mut found = [0; 5056];
            stream.fill_bytes(&mut found);
            assert_eq!(found[..], expected[..5056]);
            // Single words come from four blocks, fillings begin new ones.
            assert_eq!(stream.next_u64().to_le_bytes(), expected[5056..5064]);
            stream.fill_bytes(&mut found[..77]);
            assert_eq!(found[..77], expected[5312..5389]);
            assert_eq!(stream.next_u32().to_le_bytes(), expected[5064..5068]);
            (0..30).for_each(|_| _ = stream.next_u64());
            assert_eq!(stream.next_u32().to_le_bytes(), expected[5308..5312]);
            assert_eq!(stream.next_u32().to_le_bytes(), expected[5440..5444]);
        }
    }

    #[test]
    fn blocks_have_streams_of_their_own() {
        let key = Key::draw(&mut ChaCha20Rng::from_seed([1; 32])).unwrap();
        let words = |block| [key.streams(block).numbers().next_u64(), key.streams(block).digits().next_u64()];
        let mut first: Vec<u64> = (0..4).flat_map(words).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 8);
    }
}
