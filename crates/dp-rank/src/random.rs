//! Public randomness from a seed, for initial parameters and synthetic lists; and draws from any generator.

use chacha20::ChaCha20Rng;
use rand::{Rng, SeedableRng};

pub(crate) struct Public(ChaCha20Rng);

impl Public {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    /// Returns the generator, for functions that take any generator.
    pub(crate) fn generator(&mut self) -> &mut ChaCha20Rng {
        &mut self.0
    }

    /// Returns a uniform number on `[0, 1)`, 53 bits.
    pub(crate) fn uniform(&mut self) -> f64 {
        uniform(&mut self.0)
    }

    /// Returns a standard normal number (Marsaglia's polar method).
    pub(crate) fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Returns a uniform integer in `0..bound`; for the small bounds here the bias of a 53-bit draw is below 1e-12.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        below(&mut self.0, bound)
    }
}

fn uniform<R: Rng + ?Sized>(rng: &mut R) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a uniform integer in `0..bound`, for small bounds as [`Public::below`].
pub(crate) fn below<R: Rng + ?Sized>(rng: &mut R, bound: usize) -> usize {
    ((uniform(rng) * bound as f64) as usize).min(bound - 1)
}

/// Puts public items into a uniformly random order (Fisher–Yates).
pub(crate) fn shuffle<T, R: Rng + ?Sized>(items: &mut [T], rng: &mut R) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(rng, i + 1));
    }
}
