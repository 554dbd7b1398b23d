//! Batches that are not sampled as claimed, and runs whose length reveals the data.

use core::convert::Infallible;

use dp_accountant::DpEvent;
use dp_audit::{Claim, Side};
use dp_mechanisms::SeededRng;
use rand::{RngExt, TryRng};

use crate::specimen::{Specimen, gaussian, pick};
use crate::textbook::{normal, release_gaussian};

/// Returns the claim of `steps` noisy sums of batches with this rate, noise `std_dev`, clipping norm 1, under add/remove.
fn poisson(sampling_rate: f64, std_dev: f64, steps: u64) -> Claim {
    let event = DpEvent::Gaussian { std_dev, sensitivity: 1.0 };
    let step = DpEvent::PoissonSampled { sampling_rate, event: Box::new(event) };
    Claim { event: DpEvent::SelfComposed { event: Box::new(step), count: steps }, delta: 1e-5 }
}

pub(crate) fn specimens() -> Vec<Specimen> {
    vec![fixed_size(), shuffled(), empty_batch(), stops_early()]
}

/// One of ten records whose gradients are all -1, or of those and a canary with gradient 1: the canary displaces another
/// record, so the sum changes by 2.
fn fixed_size() -> Specimen {
    let in_batch = |side, rng: &mut SeededRng| pick(side, false, rng.random::<f64>() < 0.1);
    Specimen::score(
        "batch of fixed size charged as a Poisson sample",
        "nine records with gradient -1, with a canary of gradient 1 or another of -1",
        poisson(0.1, 0.5, 1),
        move |side, rng| if in_batch(side, rng) { 1.0 } else { -1.0 } + 0.5 * normal(rng),
        move |side, rng| {
            let others = (0..9).filter(|_| rng.random::<f64>() < 0.1).count() as f64;
            let canary = f64::from(u8::from(in_batch(side, rng)));
            release_gaussian(vec![canary - others], 0.5, rng)[0] + others
        },
    )
}

/// Four steps over a shuffled data set: the canary takes part exactly once, and its position reveals how full the other
/// batches are. Sums are relative to full batches of other records with gradient -1; in the base data set the canary's
/// position is empty. The event, that some noisy sum exceeds 1.7, is fixed, as the trade-off curve of this claim is
/// expensive.
fn shuffled() -> Specimen {
    const STD_DEV: f64 = 0.4;
    let exceeds = |sums: [f64; 4], rng: &mut SeededRng| sums.into_iter().any(|sum| sum + STD_DEV * normal(rng) > 1.7);
    Specimen::event(
        "shuffled batches charged as Poisson samples",
        "records with gradient -1 and an empty place, or a canary of gradient 1 in it",
        poisson(0.25, STD_DEV, 4),
        move |side: Side, rng| {
            let mut sums = [0.0; 4];
            sums[rng.random_range(0..4usize)] = pick(side, 1.0, 2.0);
            exceeds(sums, rng)
        },
        move |side, rng| {
            let sums = core::array::from_fn(|_| pick(side, 0.0, f64::from(u8::from(rng.random::<f64>() < 0.25))));
            exceeds(sums, rng)
        },
    )
    .with_trials(100_000)
}

/// No record, or one with gradient 1 that is sampled with probability 0.1.
fn empty_batch() -> Specimen {
    let sampled = |side, rng: &mut SeededRng| pick(side, false, rng.random::<f64>() < 0.1);
    Specimen::event(
        "empty batch skipped without noise",
        "no record, and one",
        poisson(0.1, 1.0, 1),
        move |side, rng| if sampled(side, rng) { 1.0 + normal(rng) == 0.0 } else { true },
        move |side, rng| {
            let sum = f64::from(u8::from(sampled(side, rng)));
            release_gaussian(vec![sum], 1.0, rng)[0] == 0.0
        },
    )
}

/// Training ends when the loss on the private records is 0; each step alone is released with enough noise.
fn stops_early() -> Specimen {
    Specimen::event(
        "training that stops by the private loss",
        "records that are fitted at once, and one more that never is",
        gaussian(1.0),
        |side, _| {
            let loss = pick(side, 0.0, 1.0);
            (0..10).take_while(|&step| step == 0 || loss > 0.0).count() == 10
        },
        |side, rng| release_gaussian(vec![pick(side, 0.0, 1.0)], 1.0, rng)[0] > 0.0,
    )
}

/// A generator that returns each value of the high 24 bits once.
struct Counter(u32);

impl TryRng for Counter {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0 = self.0.wrapping_add(1 << 8);
        Ok(self.0)
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from(self.try_next_u32()?) << 32)
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}

/// `random::<f32>() < q` has 2^24 outcomes, so the actual rate is a multiple of 2^-24, rounded up: a rate of 10^-8 becomes
/// six times as large as claimed. All outcomes are enumerated; a threshold on a 64-bit word is accurate to 2^-64.
#[test]
fn sampling_by_single_precision() {
    for (rate, least_excess) in [(1e-8f64, 5.9), (1e-7, 1.19), (1e-6, 1.01), (1e-5, 1.0)] {
        let mut counter = Counter(0);
        let included = (0..1u32 << 24).filter(|_| counter.random::<f32>() < rate as f32).count();
        let realised = included as f64 * 2f64.powi(-24);
        println!("claimed rate {rate:e}: {realised:.4e} by single precision");
        assert!(realised > rate && realised >= least_excess * rate, "{rate}: {realised}");
        let threshold = (rate * 2f64.powi(64)) as u64;
        assert!(threshold as f64 * 2f64.powi(-64) <= rate);
    }
}
