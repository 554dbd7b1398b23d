//! Where randomness comes from: a sealed trait with two generators, one secret, one reproducible.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{CryptoRng, SeedableRng};
use rand::rngs::SysRng;

use crate::error::Error;

mod sealed {
    pub trait Sealed {}
}

/// A generator that may be used for releases. Sealed: a caller's own seeded generator is not one.
pub trait ReleaseRng: CryptoRng + sealed::Sealed {
    /// Whether the stream is secret. A release drawn from one that is not marks the log as not private, for good.
    const SECRET: bool;
}

/// Secret: seeded from the operating system.
pub struct OsSeeded(ChaCha20Rng);
/// Reproducible: marks what it draws as not private.
pub struct SeededRng(ChaCha20Rng);
