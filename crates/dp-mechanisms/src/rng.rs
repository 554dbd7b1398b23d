//! Sources of randomness: a sealed trait with one secret generator and one reproducible generator.
//!
//! [`OsSeeded`] is keyed by the operating system; releases drawn from it may be published. [`SeededRng`] is keyed by a number,
//! for tests and reproductions; releases drawn from it mark the log as not private. All others ([`DerivedRng`], [`LentRng`]) are
//! derived from these two, and are as secret as their origin. There is no third source: a generator of the caller's is not a
//! [`ReleaseRng`], so a forgotten `seed_from_u64` cannot lead to a guarantee.
//!
//! # Streams
//! One key serves a run; several trainings each have a [child](LentRng::child). [`ReleaseRng::stream`] derives an
//! independent generator for each (purpose, step, block), so that results depend neither on the number of threads nor on
//! the order in which blocks are drawn. The derivation is two applications of the ChaCha block function as a pseudo-random
//! function: the run's key with the purpose as nonce and the step as block counter gives a key for the step, whose nonce-1
//! stream with the block as counter gives the key of the derived generator. A generator's own output is nonce 0, which no
//! derivation uses.
//!
//! # Examples
//! ```
//! use dp_mechanisms::rng::{Purpose, ReleaseRng, SeededRng};
//! use rand::Rng;
//!
//! let run = SeededRng::new(7);
//! let mut second_block = run.stream(Purpose::Noise, 0, 1);
//! let mut first_block = run.stream(Purpose::Noise, 0, 0);
//! assert_ne!(first_block.next_u64(), second_block.next_u64());
//! assert_eq!(first_block.next_u64(), {
//!     let mut again = SeededRng::new(7).stream(Purpose::Noise, 0, 0);
//!     again.next_u64();
//!     again.next_u64()
//! });
//! ```
//! # References
//! D. J. Bernstein, "ChaCha, a variant of Salsa20", 2008.

use core::convert::Infallible;

use chacha20::ChaCha20Rng;
use rand::rngs::SysRng;
use rand::{CryptoRng, Rng, SeedableRng, TryCryptoRng, TryRng};
use zeroize::Zeroizing;

use crate::error::Error;

mod sealed {
    pub trait Sealed {}
}

/// The purpose of a derived stream. Different purposes never share randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// Noise of a release.
    Noise,
    /// The secret order in which examples are visited.
    Permutation,
    /// The membership of examples in batches.
    Sampling,
    /// Initial parameters of a model.
    Initialisation,
    /// The division of examples into parts (folds, portions).
    Partition,
    /// A purpose of the caller's.
    Custom(u32),
}

impl Purpose {
    /// Returns a nonce, never 0. Seeded results depend on the numbers: they must not change.
    const fn nonce(self) -> u64 {
        match self {
            Self::Noise => 1,
            Self::Permutation => 2,
            Self::Sampling => 3,
            Self::Initialisation => 4,
            Self::Partition => 5,
            Self::Custom(number) => (1 << 32) | number as u64,
        }
    }
}

/// A generator that may be used for releases. Sealed: a caller's own seeded generator is not one.
///
/// It is neither `Clone` nor printable, and its state is wiped when it is dropped.
///
/// ```compile_fail,E0277
/// # use dp_mechanisms::{*, rng::*}; use dp_accountant::{EventLog, ReplaceOne};
/// fn release(value: Bounded<Vec<f64>, ReplaceOne>, noise: &Gaussian<ReplaceOne>, log: &mut EventLog<ReplaceOne>) {
///     use rand::{SeedableRng, rngs::StdRng};
///     let mut rng = StdRng::seed_from_u64(1);
///     let _ = noise.release(value, log, &mut rng); // StdRng is no ReleaseRng
/// }
/// ```
pub trait ReleaseRng: CryptoRng + sealed::Sealed {
    /// The type of [`stream`](Self::stream): as secret as this generator.
    type Stream: ReleaseRng;

    /// Returns whether the stream is secret. A release drawn from one that is not permanently marks the log as not private.
    fn is_secret(&self) -> bool;

    /// Returns this generator under one type, for code that is to be compiled once for all generators. Draws from the loan
    /// advance this generator.
    fn lend(&mut self) -> LentRng<'_>;

    /// Returns the generator for one (purpose, step, block), independent of what this one has drawn so far.
    ///
    /// # Privacy
    /// The same triple gives the same stream: two releases drawn from one triple share their noise, and their difference is then
    /// noise-free. Use each triple for one release.
    fn stream(&self, purpose: Purpose, step: u64, block: u64) -> Self::Stream;

    /// Derives a key for a secret that does not depend on data, such as a keyed permutation of the examples.
    ///
    /// It differs from the key of every [`stream`](Self::stream).
    fn derive_key(&self, purpose: Purpose) -> [u8; 32];
}

/// Secret: ChaCha with 20 rounds, keyed by the operating system.
///
/// # Privacy
/// A fork copies the generator, and both processes then draw the same noise: create the generator after the fork.
///
/// # Examples
/// ```
/// use dp_mechanisms::rng::{OsSeeded, ReleaseRng};
/// let rng = OsSeeded::new()?;
/// assert!(rng.is_secret());
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
/// It cannot be printed or copied:
/// ```compile_fail,E0277
/// println!("{:?}", dp_mechanisms::rng::OsSeeded::new());
/// ```
/// ```compile_fail,E0599
/// let rng = dp_mechanisms::rng::OsSeeded::new().unwrap_or_else(|_| unreachable!());
/// let copy = rng.clone();
/// ```
pub struct OsSeeded(ChaCha20Rng);

impl OsSeeded {
    /// Takes a 256-bit key from the operating system.
    ///
    /// # Errors
    /// [`Error::RandomSource`] if the operating system has no source, or one that repeats a byte; there is no weaker fallback.
    pub fn new() -> Result<Self, Error> {
        Self::from_source(&mut SysRng)
    }

    fn from_source<S: TryCryptoRng>(source: &mut S) -> Result<Self, Error> {
        let mut key = Zeroizing::new([0u8; 32]);
        source.try_fill_bytes(key.as_mut()).map_err(|error| Error::RandomSource(error.to_string()))?;
        // A working source repeats one byte with probability 2^-248; a broken one may give equal keys everywhere.
        if key.iter().all(|&byte| byte == key[0]) {
            return Err(Error::RandomSource("it repeats one byte".to_owned()));
        }
        Ok(Self(ChaCha20Rng::from_seed(*key)))
    }
}

/// Reproducible: ChaCha with 20 rounds, keyed by a number. Marks releases drawn from it as not private.
///
/// The key is the seed in little-endian order followed by zeros, and the stream is the same on every platform.
///
/// # Examples
/// ```
/// use dp_mechanisms::rng::{ReleaseRng, SeededRng};
/// use rand::Rng;
/// assert_eq!(SeededRng::new(1).next_u64(), SeededRng::new(1).next_u64());
/// assert!(!SeededRng::new(1).is_secret());
/// ```
pub struct SeededRng(ChaCha20Rng);

impl SeededRng {
    /// Creates the generator of this seed.
    pub fn new(seed: u64) -> Self {
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self(ChaCha20Rng::from_seed(key))
    }
}

/// A stream or [child](LentRng::child) of a [`LentRng`], as secret as that generator.
pub struct DerivedRng {
    generator: ChaCha20Rng,
    secret: bool,
}

/// A borrowed generator, as secret as the original.
///
/// # Examples
/// ```
/// use dp_mechanisms::rng::{ReleaseRng, SeededRng};
/// use rand::Rng;
/// let (mut own, mut other) = (SeededRng::new(1), SeededRng::new(1));
/// assert_eq!(own.lend().next_u64(), other.next_u64());
/// assert_eq!(own.next_u64(), other.next_u64()); // where the loan left off
/// assert!(!own.lend().is_secret());
/// ```
pub struct LentRng<'r> {
    generator: &'r mut ChaCha20Rng,
    secret: bool,
}

impl LentRng<'_> {
    /// Draws a key from this generator and returns the generator with that key; each call returns another one. What each of several
    /// threads draws from a child of its own does not depend on which thread comes first.
    ///
    /// # Examples
    /// ```
    /// use dp_mechanisms::rng::{ReleaseRng, SeededRng};
    /// use rand::Rng;
    /// let mut rng = SeededRng::new(1);
    /// let (mut first, mut second) = (rng.lend().child(), rng.lend().child());
    /// assert_ne!(first.next_u64(), second.next_u64());
    /// assert!(!first.is_secret());
    /// ```
    pub fn child(&mut self) -> DerivedRng {
        let mut key = Zeroizing::new([0; 32]);
        self.generator.fill_bytes(key.as_mut());
        DerivedRng { generator: ChaCha20Rng::from_seed(*key), secret: self.secret }
    }
}

/// Number of 32-bit words in a ChaCha block: the unit of the block counter.
const WORDS_PER_BLOCK: u128 = 16;
/// The nonce of the second level of the derivation of streams.
const BLOCKS: u64 = 1;
/// The nonce of the second level of the derivation of keys.
const KEYS: u64 = 2;

/// Returns the first half of the ChaCha block at (`key`, `nonce`, `counter`).
fn derive(key: &[u8; 32], nonce: u64, counter: u64) -> Zeroizing<[u8; 32]> {
    let mut generator = ChaCha20Rng::from_seed(*key);
    generator.set_stream(nonce);
    generator.set_word_pos(u128::from(counter) * WORDS_PER_BLOCK);
    let mut derived = Zeroizing::new([0u8; 32]);
    generator.fill_bytes(derived.as_mut());
    derived
}

/// Implements the traits of a generator that wraps a ChaCha generator, which may be secret.
macro_rules! generator {
    ($name:ty, $stream:ty, |$own:ident| $chacha:expr, $lent:expr, $secret:expr, $derive:expr) => {
        impl sealed::Sealed for $name {}

        impl TryRng for $name {
            type Error = Infallible;
            #[inline]
            fn try_next_u32(&mut self) -> Result<u32, Infallible> {
                let $own = self;
                $chacha.try_next_u32()
            }
            #[inline]
            fn try_next_u64(&mut self) -> Result<u64, Infallible> {
                let $own = self;
                $chacha.try_next_u64()
            }
            #[inline]
            fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
                let $own = self;
                $chacha.try_fill_bytes(bytes)
            }
        }

        impl TryCryptoRng for $name {}

        impl ReleaseRng for $name {
            type Stream = $stream;

            #[inline]
            fn is_secret(&self) -> bool {
                let $own = self;
                let _ = $own;
                $secret
            }

            #[inline]
            fn lend(&mut self) -> LentRng<'_> {
                let secret = self.is_secret();
                let $own = self;
                LentRng { generator: $lent, secret }
            }

            fn stream(&self, purpose: Purpose, step: u64, block: u64) -> $stream {
                let $own = self;
                let key = Zeroizing::new($chacha.get_seed());
                let key = derive(&key, purpose.nonce(), step);
                $derive(ChaCha20Rng::from_seed(*derive(&key, BLOCKS, block)))
            }

            fn derive_key(&self, purpose: Purpose) -> [u8; 32] {
                let $own = self;
                let key = Zeroizing::new($chacha.get_seed());
                *derive(&derive(&key, purpose.nonce(), 0), KEYS, 0)
            }
        }
    };
}
generator!(OsSeeded, OsSeeded, |own| own.0, &mut own.0, true, OsSeeded);
generator!(SeededRng, SeededRng, |own| own.0, &mut own.0, false, SeededRng);
generator!(DerivedRng, DerivedRng, |own| own.generator, &mut own.generator, own.secret, |generator| DerivedRng {
    generator,
    secret: own.secret
});
generator!(LentRng<'_>, DerivedRng, |own| own.generator, &mut *own.generator, own.secret, |generator| DerivedRng {
    generator,
    secret: own.secret
});

/// Refuses a generator that repeats one word, before anything private is read. A working generator is refused with probability
/// `2^-192`, and nearly always spends two words on the check.
pub(crate) fn refuse_stuck<R: CryptoRng + ?Sized>(rng: &mut R) -> Result<(), Error> {
    let first = rng.next_u64();
    for _ in 0..3 {
        if rng.next_u64() != first {
            return Ok(());
        }
    }
    Err(Error::StuckGenerator)
}

/// A broken generator for tests, which always returns the same word.
#[cfg(test)]
pub(crate) struct Stuck(pub(crate) u64);

#[cfg(test)]
mod stuck {
    use super::*;

    impl sealed::Sealed for Stuck {}

    impl TryRng for Stuck {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok((self.0 >> 32) as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(self.0)
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.fill(self.0 as u8);
            Ok(())
        }
    }

    impl TryCryptoRng for Stuck {}

    impl ReleaseRng for Stuck {
        type Stream = Self;

        fn is_secret(&self) -> bool {
            true
        }
        fn lend(&mut self) -> LentRng<'_> {
            unreachable!("no test lends it")
        }
        fn stream(&self, _: Purpose, _: u64, _: u64) -> Self {
            Self(self.0)
        }
        fn derive_key(&self, _: Purpose) -> [u8; 32] {
            [0; 32]
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn first<R: Rng>(mut rng: R) -> u64 {
        rng.next_u64()
    }

    #[test]
    fn triples_and_seeds_give_different_streams() {
        let purposes =
            [Purpose::Noise, Purpose::Permutation, Purpose::Sampling, Purpose::Custom(0), Purpose::Custom(1)];
        let mut seen = HashSet::new();
        let mut drawn = 0;
        for seed in 0..4 {
            let root = SeededRng::new(seed);
            for purpose in purposes {
                for step in [0, 1, 2, u64::MAX] {
                    for block in [0, 1, 2, u64::MAX] {
                        seen.insert(first(root.stream(purpose, step, block)));
                        drawn += 1;
                    }
                }
                let key = root.derive_key(purpose);
                seen.insert(u64::from_le_bytes([key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7]]));
                drawn += 1;
            }
            seen.insert(first(root));
            drawn += 1;
        }
        assert_eq!(seen.len(), drawn);
    }

    /// Derived keys are halves of different blocks of one stream: no two share a byte of it.
    #[test]
    fn keys_are_blocks_apart() {
        let key = [5; 32];
        let mut whole = ChaCha20Rng::from_seed(key);
        whole.set_stream(KEYS);
        let mut stream = [0u8; 64 * 20];
        whole.fill_bytes(&mut stream);
        for (counter, block) in stream.chunks_exact(64).enumerate() {
            assert_eq!(derive(&key, KEYS, counter as u64)[..], block[..32], "{counter}");
        }
    }

    #[test]
    fn streams_do_not_depend_on_what_was_drawn() {
        let fresh = SeededRng::new(3);
        let mut used = SeededRng::new(3);
        used.fill_bytes(&mut [0; 1000]);
        assert_eq!(first(fresh.stream(Purpose::Noise, 5, 6)), first(used.stream(Purpose::Noise, 5, 6)));
        assert_eq!(fresh.derive_key(Purpose::Permutation), used.derive_key(Purpose::Permutation));
    }

    #[test]
    fn nested_streams_are_not_their_parents() {
        let parent = SeededRng::new(3).stream(Purpose::Noise, 0, 0);
        let child = parent.stream(Purpose::Noise, 0, 0);
        assert_ne!(first(parent), first(child));
    }

    #[test]
    fn children_have_keys_of_their_own() {
        let mut parent = SeededRng::new(3);
        let mut lent = parent.lend();
        let (one, two) = (lent.child(), lent.child());
        assert_eq!(first(SeededRng::new(3).lend().child()), first(lent_child(3, 0)));
        assert_eq!(first(lent_child(3, 1)), {
            let mut key = [0; 64];
            SeededRng::new(3).fill_bytes(&mut key);
            first(ChaCha20Rng::from_seed(key[32..].try_into().unwrap()))
        });
        let keys = [one.derive_key(Purpose::Permutation), two.derive_key(Purpose::Permutation)];
        assert_ne!(keys[0], keys[1]);
        assert_ne!(first(one.stream(Purpose::Noise, 0, 0)), first(two.stream(Purpose::Noise, 0, 0)));
        assert!(OsSeeded::new().unwrap().lend().child().is_secret() && !one.is_secret());
    }

    /// Returns the child of a seed after some others.
    fn lent_child(seed: u64, others: usize) -> DerivedRng {
        let mut parent = SeededRng::new(seed);
        (0..others).for_each(|_| drop(parent.lend().child()));
        parent.lend().child()
    }

    #[test]
    fn operating_system_keys_differ() {
        let (one, two) = (OsSeeded::new(), OsSeeded::new());
        assert_ne!(one.map(first).unwrap(), two.map(first).unwrap());
    }

    #[test]
    fn a_failing_source_is_an_error() {
        #[derive(Debug)]
        struct Broken;
        impl core::fmt::Display for Broken {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("no entropy")
            }
        }
        impl core::error::Error for Broken {}
        struct Failing;
        impl TryRng for Failing {
            type Error = Broken;
            fn try_next_u32(&mut self) -> Result<u32, Broken> {
                Err(Broken)
            }
            fn try_next_u64(&mut self) -> Result<u64, Broken> {
                Err(Broken)
            }
            fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Broken> {
                Err(Broken)
            }
        }
        impl TryCryptoRng for Failing {}
        let error = OsSeeded::from_source(&mut Failing).err();
        assert_eq!(error, Some(Error::RandomSource("no entropy".to_owned())));
    }

    #[test]
    fn a_source_that_repeats_one_byte_is_an_error() {
        for word in [0, u64::MAX, 7] {
            let error = OsSeeded::from_source(&mut Stuck(word)).err();
            assert_eq!(error, Some(Error::RandomSource("it repeats one byte".to_owned())));
        }
        assert!(OsSeeded::from_source(&mut SeededRng::new(1)).is_ok());
    }

    #[test]
    fn seeded_values_are_stable() {
        // The first block of ChaCha20 with an all-zero key and nonce begins 76b8e0ad a0f13d90 (RFC 7539, A.1, vector 1).
        assert_eq!(first(SeededRng::new(0)).to_le_bytes(), [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
    }
}
