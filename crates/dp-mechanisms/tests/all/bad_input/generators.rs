//! Exact samplers on stuck generators: they end, with a value or with an error.

use core::convert::Infallible;

use dp_mechanisms::{Error, exact};
use rand::{TryCryptoRng, TryRng};

/// Repeats a few words forever.
struct Repeats {
    words: Vec<u64>,
    next: usize,
}

impl TryRng for Repeats {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| word as u32)
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.next += 1;
        Ok(self.words[(self.next - 1) % self.words.len()])
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.try_next_u64()?.to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
impl TryCryptoRng for Repeats {}

fn stuck() -> impl Iterator<Item = Repeats> {
    let words: [&[u64]; 6] =
        [&[0], &[u64::MAX], &[1], &[1 << 63], &[0, u64::MAX], &[0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA]];
    words.into_iter().map(|words| Repeats { words: words.to_vec(), next: 0 })
}

fn ends<T>(result: Result<T, Error>, what: &str) {
    match result {
        Ok(_) | Err(Error::StuckGenerator) => {}
        Err(error) => panic!("{what}: {error}"),
    }
}

#[test]
fn integer_samplers_end() {
    for mut rng in stuck() {
        for n in [1, 2, 3, 10, (1 << 64) - 1, 1 << 64, (1 << 64) + 1, u128::MAX] {
            ends(exact::uniform_below(n, &mut rng), "uniform_below");
            ends(exact::bernoulli(1, n, &mut rng), "bernoulli");
            ends(exact::bernoulli(n, n, &mut rng), "bernoulli");
            ends(exact::bernoulli_exp(1, n, &mut rng), "bernoulli_exp");
            ends(exact::bernoulli_exp(n.min(50), 1, &mut rng), "bernoulli_exp");
        }
        for scale in [1, 2, 1000, 1 << 30] {
            ends(exact::discrete_laplace(scale, 1, &mut rng), "discrete_laplace");
            ends(exact::discrete_laplace(1, scale, &mut rng), "discrete_laplace");
            ends(exact::discrete_laplace(scale, 3, &mut rng), "discrete_laplace");
        }
    }
}
