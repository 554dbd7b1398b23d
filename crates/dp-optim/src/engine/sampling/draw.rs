//! The law of a batch, and the sampler that draws it.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use dp_accountant::SamplingRate;

use super::poisson_one::poisson_one;
use crate::error::Error;

/// The law of a batch among `n` records; public.
///
/// # Formula
/// ```text
/// Poisson     each record by itself with probability q = 1 - e^(-b/n)
/// FixedSize   b distinct records, every set of b equally likely
/// ```
/// with `b` the stated number. A Poisson batch is made of `N ~ Poisson(b)` darts, each of which hits a uniform record: the
/// records' hit counts are then independent, each Poisson with mean `b/n` (thinning of a Poisson process), and the batch is
/// the set of records hit at least once. This costs `O(b)` and never visits the other records. It uses integers only: the
/// probability is exactly `1 - e^(-b/n)`, not a floating-point number near it.
///
/// # Privacy
/// Poisson batches are the subject of [`PoissonSampled`](dp_accountant::DpEvent::PoissonSampled), batches of fixed size that
/// of [`SampledWithoutReplacement`](dp_accountant::DpEvent::SampledWithoutReplacement). The size of a Poisson batch is random
/// and, since null records may be drawn, is not even the number of records that count: it is never reported.
///
/// # Examples
/// ```
/// use dp_optim::engine::BatchLaw;
/// let law = BatchLaw::Poisson { mean_darts: 100 };
/// let rate = law.sampling_rate(10_000)?.get();
/// assert!((rate - 0.009950166250831947).abs() < 1e-15); // 1 - e^(-1/100)
/// assert_eq!(BatchLaw::FixedSize { size: 100 }.sampling_rate(10_000)?.get(), 0.01);
/// # Ok::<(), dp_optim::Error>(())
/// ```
///
/// # References
/// Kingman, "Poisson processes", 1993, section 2.3 (restriction and colouring).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchLaw {
    /// Each record independently.
    Poisson {
        /// b: mean number of darts, slightly more than the mean batch size.
        mean_darts: u64,
    },
    /// A uniformly random set of records.
    FixedSize {
        /// b: its size.
        size: u64,
    },
}

impl BatchLaw {
    /// Returns the probability with which a record takes part in a step, rounded up.
    ///
    /// # Errors
    /// [`Error::Count`] for no records, an empty batch, and a batch larger than the number of records.
    pub fn sampling_rate(self, n: u64) -> Result<SamplingRate, Error> {
        let size = self.check(n)?;
        let (size, n) = (size as f64, n as f64);
        let quotient = size / n;
        // Both are exact, and a fused product has the sign of the exact difference.
        let share = if quotient.mul_add(n, -size) >= 0.0 { quotient } else { quotient.next_up() };
        let rate = match self {
            // The exponential function is accurate to 2 ulp everywhere.
            Self::Poisson { .. } => -(-share).exp_m1() * (1.0 + 8.0 * f64::EPSILON),
            Self::FixedSize { .. } => share,
        };
        Ok(SamplingRate::new(rate.min(1.0))?)
    }

    /// Returns the mean number of records in a batch, the divisor that makes a batch's sum a mean.
    ///
    /// # Errors
    /// As [`sampling_rate`](Self::sampling_rate).
    pub fn mean_size(self, n: u64) -> Result<f64, Error> {
        let size = self.check(n)? as f64;
        Ok(match self {
            Self::Poisson { .. } => -(-size / n as f64).exp_m1() * n as f64,
            Self::FixedSize { .. } => size,
        })
    }

    /// Returns b.
    pub fn nominal_size(self) -> u64 {
        match self {
            Self::Poisson { mean_darts } => mean_darts,
            Self::FixedSize { size } => size,
        }
    }

    /// Returns b if a batch of this size fits `n` records.
    fn check(self, n: u64) -> Result<u64, Error> {
        if !(1..=u64::from(u32::MAX)).contains(&n) {
            return Err(Error::Count { name: "number of records", value: n, range: "1 to 2^32 - 1" });
        }
        let size = self.nominal_size();
        if !(1..=n).contains(&size) {
            return Err(Error::Count { name: "batch size", value: size, range: "1 to the number of records" });
        }
        Ok(size)
    }
}

/// Draws batches, independent of each other and of the data.
///
/// # Privacy
/// The randomness is ChaCha20 under a separate key, from which nothing else is drawn: batches reveal nothing about the noise.
/// No floating-point number takes part.
///
/// # Examples
/// ```
/// use dp_optim::engine::{BatchLaw, Sampler};
/// let mut sampler = Sampler::new(BatchLaw::FixedSize { size: 3 }, 10, [7; 32])?;
/// let batch = sampler.draw()?;
/// assert!(batch.len() == 3 && batch.iter().all(|&position| position < 10));
/// # Ok::<(), dp_optim::Error>(())
/// ```
pub struct Sampler {
    law: BatchLaw,
    n: u64,
    rng: ChaCha20Rng,
    /// The batch: all of it for Poisson, the first `size` of a permutation of all positions for a fixed size.
    positions: Vec<u32>,
    /// One bit for each record, set if it is in the batch (Poisson).
    marks: Vec<u64>,
}

impl core::fmt::Debug for Sampler {
    // The records of a batch are secret, and so is their number.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sampler").field("law", &self.law).field("n", &self.n).finish_non_exhaustive()
    }
}

impl Sampler {
    /// Creates a sampler of batches of `n` records under a secret key.
    ///
    /// # Errors
    /// As [`BatchLaw::sampling_rate`].
    pub fn new(law: BatchLaw, n: u64, key: [u8; 32]) -> Result<Self, Error> {
        law.check(n)?;
        let (positions, marks) = match law {
            BatchLaw::Poisson { .. } => (Vec::new(), vec![0; n.div_ceil(64) as usize]),
            BatchLaw::FixedSize { .. } => ((0..n as u32).collect(), Vec::new()),
        };
        Ok(Self { law, n, rng: ChaCha20Rng::from_seed(key), positions, marks })
    }

    /// Draws the next batch: positions, each once, in no particular order.
    ///
    /// # Errors
    /// [`StuckGenerator`](dp_mechanisms::Error::StuckGenerator), which a correct generator causes with probability below
    /// `2^-80` in a run of any practical length.
    pub fn draw(&mut self) -> Result<&[u32], Error> {
        match self.law {
            BatchLaw::Poisson { mean_darts } => {
                self.positions.iter().for_each(|&position| self.marks[position as usize / 64] = 0);
                self.positions.clear();
                for _ in 0..mean_darts {
                    // Poisson(b) is the sum of b independent Poisson(1).
                    for _ in 0..poisson_one(&mut self.rng)? {
                        let position = below(self.n, &mut self.rng)?;
                        let (word, bit) = (position / 64, 1 << (position % 64));
                        if self.marks[word as usize] & bit == 0 {
                            self.marks[word as usize] |= bit;
                            self.positions.push(position as u32);
                        }
                    }
                }
                Ok(&self.positions)
            }
            BatchLaw::FixedSize { size } => {
                // The first steps of a shuffle, from the permutation left by the previous batch.
                for i in 0..size {
                    let j = i + below(self.n - i, &mut self.rng)?;
                    self.positions.swap(i as usize, j as usize);
                }
                Ok(&self.positions[..size as usize])
            }
        }
    }
}

/// Maximum number of consecutive rejections, each of probability below 1/2, before the generator counts as stuck.
const REJECTIONS: u32 = 256;

/// Draws a uniform integer in `0..n`: the high half of `n` times a word, unless the low half is one of the `2^64 mod n` values
/// for which some high half would occur once more than others.
///
/// # References
/// Lemire, "Fast random integer generation in an interval", ACM TOMACS 2019, Algorithm 5.
#[inline]
fn below<R: Rng>(n: u64, rng: &mut R) -> Result<u64, Error> {
    for _ in 0..REJECTIONS {
        let product = u128::from(rng.next_u64()) * u128::from(n);
        let low = product as u64;
        if low >= n || low >= n.wrapping_neg() % n {
            return Ok((product >> 64) as u64);
        }
    }
    Err(dp_mechanisms::Error::StuckGenerator.into())
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use super::*;

    struct Counting(u64);

    impl chacha20::rand_core::TryRng for Counting {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            self.try_next_u64().map(|word| word as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            self.0 += 1;
            Ok(self.0 - 1)
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.fill(0);
            Ok(())
        }
    }

    /// Of four consecutive words, each of three integers takes one, and one word is refused.
    #[test]
    fn no_integer_comes_up_more_often_than_others() {
        let n = 3 << 62;
        let mut times = vec![0; 3000];
        for word in 0..4000 {
            let mut words = Counting(word);
            let integer = below(n, &mut words).unwrap();
            if words.0 == word + 1 {
                times[integer as usize] += 1;
            }
        }
        assert!(times.iter().all(|&times| times == 1));
        // A power of two refuses none.
        for word in [0, 1, 1 << 61, u64::MAX] {
            let mut words = Counting(word.min(u64::MAX - 1));
            assert_eq!(below(8, &mut words).unwrap(), word >> 61);
            assert_eq!(words.0, word.min(u64::MAX - 1) + 1);
        }
    }
}
