//! Random bits for the integer samplers.

use rand::CryptoRng;

use crate::error::Error;

/// A stream of independent fair bits.
///
/// The samplers request exactly the bits that they compare, so that a test can enumerate every outcome.
pub(crate) trait Source {
    /// Returns the next `count` bits as a number, for `count` in `0..=64`.
    fn bits(&mut self, count: u32) -> Result<u64, Error>;
}

/// The bits of a generator: the top ones of a fresh word for each call.
pub(crate) struct Words<'a, R: ?Sized>(pub(crate) &'a mut R);

impl<R: CryptoRng + ?Sized> Source for Words<'_, R> {
    #[inline]
    fn bits(&mut self, count: u32) -> Result<u64, Error> {
        Ok(match count {
            0 => 0,
            1..=32 => u64::from(self.0.next_u32() >> (32 - count)),
            33..=64 => self.0.next_u64() >> (64 - count),
            // No caller requests more; a wrong count must not count as randomness.
            _ => return Err(Error::StuckGenerator),
        })
    }
}
