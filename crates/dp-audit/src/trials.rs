//! Execution of trials: each with a separate generator; the result does not depend on the number of threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use dp_mechanisms::{Purpose, ReleaseRng, SeededRng};
use rand::Rng;
use rayon::prelude::*;

use crate::error::Error;
use crate::monitor::Monitor;
use crate::subject::{Side, Subject};

/// A half of the trials, or the pilot before both; they share no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// Trials that select the attack.
    Selection,
    /// Trials that are counted.
    Evaluation,
    /// Trials that select the pair: neither half.
    Pilot,
}

/// Largest number of trials in a batch.
const LARGEST_BATCH: u64 = 1024;

/// Number of batches of a phase, if trials are few.
const BATCHES: u64 = 64;

/// The shared state of a run of trials.
pub(crate) struct Trials<'a> {
    pub(crate) subject: &'a dyn Subject,
    pub(crate) seed: u64,
    pub(crate) monitor: &'a dyn Monitor,
    /// Number of finished trials, of both halves and sides.
    pub(crate) done: AtomicU64,
    pub(crate) total: u64,
    /// Number of features of the first trial; all others must have the same.
    pub(crate) width: OnceLock<usize>,
}

impl Trials<'_> {
    /// Returns the seed of the first trial of a half and side; later ones count upwards.
    ///
    /// ChaCha's outputs under different keys are independent, even for consecutive keys, and two ranges of `n` keys overlap
    /// by chance once in 2^63/n choices.
    fn first_seed(&self, half: Half, side: Side) -> u64 {
        let purpose = Purpose::Custom(match (half, side) {
            (Half::Selection, Side::Base) => 1,
            (Half::Selection, Side::Neighbour) => 2,
            (Half::Evaluation, Side::Base) => 3,
            (Half::Evaluation, Side::Neighbour) => 4,
            (Half::Pilot, Side::Base) => 5,
            (Half::Pilot, Side::Neighbour) => 6,
        });
        SeededRng::new(self.seed).stream(purpose, name_hash(self.subject.name()), 0).next_u64()
    }

    /// Runs the trials in `range` of a half on a side. Each batch of consecutive trials builds one `T` from its trials'
    /// features and generators; they are returned in order. `visit` receives the generator after the trial has used it.
    pub(crate) fn run<T: Send>(
        &self,
        half: Half,
        side: Side,
        range: core::ops::Range<u64>,
        start: impl Fn() -> T + Sync,
        visit: impl Fn(&mut T, &[f64], &mut SeededRng) + Sync,
    ) -> Result<Vec<T>, Error> {
        let first = self.first_seed(half, side);
        let count = range.end.saturating_sub(range.start);
        let batch = count.div_ceil(BATCHES).clamp(1, LARGEST_BATCH);
        (0..count.div_ceil(batch))
            .into_par_iter()
            .map(|index| {
                if self.monitor.cancelled() {
                    return Err(Error::Cancelled);
                }
                let from = range.start + index * batch;
                let to = range.end.min(from + batch);
                let mut made = start();
                let mut features = Vec::new();
                for trial in from..to {
                    let mut rng = SeededRng::new(first.wrapping_add(trial));
                    features.clear();
                    self.subject.observe(side, &mut rng, &mut features)?;
                    if features.is_empty() || features.len() != *self.width.get_or_init(|| features.len()) {
                        return Err(Error::Trial {
                            subject: self.subject.name().to_owned(),
                            reason: format!("a trial observed {} features", features.len()),
                        });
                    }
                    visit(&mut made, &features, &mut rng);
                }
                let done = self.done.fetch_add(to - from, Ordering::Relaxed) + (to - from);
                if index % (1 + count / batch / 100) == 0 || done == self.total {
                    self.monitor.progress(self.subject.name(), done, self.total);
                }
                Ok(made)
            })
            .collect()
    }
}

/// Computes FNV-1a, which is the same on every platform and in every version.
pub(crate) fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
