//! Uniformly random orders under a key, which need no list of all positions.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use rand::seq::SliceRandom;

use crate::memory::{OutOfMemory, collect, filled};
use crate::source::{Order, PassRequest};

/// The name of the list in error messages.
const ORDER: &str = "the order of the rows";
/// Base-2 logarithm of the mean number of positions of a bucket, and of the largest number of buckets.
const BUCKET_BITS: u32 = 13;
const MOST_BITS: u32 = 16;
/// The stream of the buckets, beside the stream of the shuffles.
const OF_BUCKETS: u64 = 1 << 63;

/// A permutation of `0..n`, uniform among all for a uniformly random key.
///
/// Each position draws one of `2^k` buckets, and the positions of each bucket are shuffled; the buckets follow one another. A
/// source on disk scatters its rows in one pass and then holds one bucket in memory; one in memory lists all positions.
///
/// # Proof
/// (C. R. Rao 1961, Sandelius 1962.) A permutation and bucket sizes `c_1, ..., c_m` determine each position's bucket and order, which
/// together have probability `m^(-n) Π 1/c_j!`. The permutation does not occur in it, so that all are equally likely.
///
/// # Examples
/// ```
/// use dp_data::KeyedOrder;
/// let order = KeyedOrder::new(5, [7; 32], 0);
/// let mut positions = order.positions()?;
/// positions.sort_unstable();
/// assert_eq!((order.buckets(), positions), (1, vec![0, 1, 2, 3, 4]));
/// # Ok::<(), dp_data::OutOfMemory>(())
/// ```
#[derive(Clone)]
pub struct KeyedOrder {
    n: u32,
    /// `k`: each position draws so many bits.
    bits: u32,
    key: [u8; 32],
    stream: u64,
}

impl KeyedOrder {
    /// Creates the order of `n` positions that ChaCha20 draws under `key` in this stream, below `2^63`. The number of buckets
    /// depends on `n` alone.
    pub fn new(n: u32, key: [u8; 32], stream: u64) -> Self {
        Self::in_buckets(n, (n >> BUCKET_BITS).checked_ilog2().unwrap_or(0).min(MOST_BITS), key, stream)
    }

    /// Returns the order of a pass over `n` records; `None` for the declared one. Stream 0 is the order common to all passes.
    pub fn of_pass(n: u32, request: &PassRequest) -> Option<Self> {
        let Order::Keyed { key, fresh_each_pass } = request.order else { return None };
        Some(Self::new(n, key, if fresh_each_pass { u64::from(request.pass) + 1 } else { 0 }))
    }

    fn in_buckets(n: u32, bits: u32, key: [u8; 32], stream: u64) -> Self {
        Self { n, bits, key, stream }
    }

    fn generator(&self, stream: u64) -> ChaCha20Rng {
        let mut generator = ChaCha20Rng::from_seed(self.key);
        generator.set_stream(stream);
        generator
    }

    /// Returns the number of buckets.
    pub fn buckets(&self) -> usize {
        1 << self.bits
    }

    /// Returns the bucket of each position, in the order of the positions.
    pub fn assignment(&self) -> Assignment {
        let mask = (self.buckets() - 1) as u64;
        let generator = self.generator(self.stream | OF_BUCKETS);
        Assignment { generator, left: self.n, word: 0, in_word: 0, mask }
    }

    /// Returns the shuffles of the buckets, to be used for one bucket after the other.
    pub fn shuffles(&self) -> Shuffles {
        Shuffles(self.generator(self.stream))
    }

    /// Returns the whole order: `positions[i]` is the position that comes as number `i`.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn positions(&self) -> Result<Vec<u32>, OutOfMemory> {
        let mut ends = filled(0u32, self.buckets(), ORDER)?;
        self.assignment().for_each(|bucket| ends[bucket] += 1);
        let mut before = 0;
        for end in &mut ends {
            // For now the start of each bucket.
            before += core::mem::replace(end, before);
        }
        let mut positions = filled(0u32, self.n as usize, ORDER)?;
        for (position, bucket) in (0..).zip(self.assignment()) {
            positions[ends[bucket] as usize] = position;
            ends[bucket] += 1;
        }
        let (mut shuffles, mut start) = (self.shuffles(), 0);
        for end in ends {
            shuffles.shuffle(&mut positions[start..end as usize]);
            start = end as usize;
        }
        Ok(positions)
    }
}

impl core::fmt::Debug for KeyedOrder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KeyedOrder").field("n", &self.n).finish_non_exhaustive()
    }
}

/// The buckets of consecutive positions.
pub struct Assignment {
    generator: ChaCha20Rng,
    left: u32,
    word: u64,
    in_word: u32,
    mask: u64,
}

impl Iterator for Assignment {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        if self.mask == 0 {
            return Some(0);
        }
        if self.in_word == 0 {
            (self.word, self.in_word) = (self.generator.next_u64(), u64::BITS / MOST_BITS);
        }
        let bucket = (self.word & self.mask) as usize;
        self.word >>= MOST_BITS;
        self.in_word -= 1;
        Some(bucket)
    }
}

/// The shuffles of consecutive buckets.
pub struct Shuffles(ChaCha20Rng);

impl Shuffles {
    /// Shuffles the positions of the next bucket, given in ascending order.
    pub fn shuffle(&mut self, positions: &mut [u32]) {
        positions.shuffle(&mut self.0);
    }

    /// Returns the shuffled order of the next bucket, of `length` positions: numbers within the bucket.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn next(&mut self, length: u32) -> Result<Vec<u32>, OutOfMemory> {
        let mut order = collect((0..length as usize).map(|position| position as u32), ORDER)?;
        self.shuffle(&mut order);
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// 24 permutations of 4, 24000 keys: chi-square with 23 degrees of freedom exceeds 70 with probability 1.2e-6, in any of
    /// three cases 4e-6.
    #[test]
    fn all_permutations_are_equally_likely() {
        for bits in 0..3 {
            let mut counts = BTreeMap::new();
            for i in 0..24_000u64 {
                let mut key = [0; 32];
                key[..8].copy_from_slice(&i.to_le_bytes());
                *counts.entry(KeyedOrder::in_buckets(4, bits, key, 0).positions().unwrap()).or_insert(0u32) += 1;
            }
            let chi_square: f64 = counts.values().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
            assert_eq!(counts.len(), 24);
            assert!(chi_square < 70.0, "{bits}: {chi_square}");
        }
    }

    #[test]
    fn buckets_are_of_a_bounded_mean_size_and_give_a_permutation() {
        for (n, buckets) in [(0, 1), (1, 1), (16_383, 1), (16_384, 2), (100_003, 8), (1_000_000, 64)] {
            let order = KeyedOrder::new(n, [3; 32], 5);
            assert_eq!(order.buckets(), buckets, "{n}");
            let positions = order.positions().unwrap();
            let mut sorted = positions.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..n), "{n}");
            // The steps one by one, as a source on disk takes them.
            let mut scattered = vec![Vec::new(); buckets];
            (0..n).zip(order.assignment()).for_each(|(position, bucket)| scattered[bucket].push(position));
            let mut shuffles = order.shuffles();
            let stepwise = scattered.iter().flat_map(|bucket| {
                let order = shuffles.next(bucket.len() as u32).unwrap();
                order.into_iter().map(|at| bucket[at as usize]).collect::<Vec<_>>()
            });
            assert!(stepwise.eq(positions.iter().copied()), "{n}");
        }
        assert_eq!(KeyedOrder::new(u32::MAX, [0; 32], 0).buckets(), 1 << 16);
    }

    #[test]
    fn passes_have_one_order_or_each_its_own() {
        let of = |pass, fresh_each_pass| {
            let order = Order::Keyed { key: [1; 32], fresh_each_pass };
            KeyedOrder::of_pass(50_000, &PassRequest { pass, order }).unwrap().positions().unwrap()
        };
        assert_eq!(of(0, false), of(7, false));
        assert!(of(0, true) != of(1, true) && of(0, true) != of(0, false));
        assert!(KeyedOrder::of_pass(5, &PassRequest { pass: 0, order: Order::Declared }).is_none());
    }
}
