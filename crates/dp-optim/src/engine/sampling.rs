//! Random batches from all records, one for each step, and the loop that drives them.

mod draw;
mod poisson_one;
mod samples;

#[cfg(test)]
mod tests;

pub use draw::{BatchLaw, Sampler};
pub(crate) use poisson_one::poisson_one;

use core::ops::RangeInclusive;

use dp_data::{Block, BlockBuffer, RowSource, SourceError};
use dp_losses::Model;
use dp_mechanisms::ReleaseRng;

use super::batches::check_shape;
use super::control::{Control, Pace};
use super::iterate::Iterate;
use super::step_batches::{Batched, Driven};
use super::update::Step;
use crate::averaging::AveragingWeights;
use crate::error::Error;
use crate::schedule::StepSizes;

/// The fault of a source whose batch is not the one drawn.
const NOT_ASKED_FOR: &str = "rows are not those asked for";

/// Returns the number of rows of a long batch that are gathered at a time.
pub(crate) fn gathered_rows(dim: usize) -> usize {
    ((1 << 19) / dim.max(1)).clamp(64, 8192)
}

/// The key of one run's batches, drawn from the generator of the release and consumed by its use.
///
/// # Examples
/// ```compile_fail,E0382
/// # fn twice(run: &dp_optim::engine::SampledRun, key: dp_optim::engine::BatchKey) {
/// fn used(_: dp_optim::engine::BatchKey) {}
/// used(key);
/// used(key); // the same batches would be charged as fresh ones
/// # }
/// ```
/// A known key cannot be turned into a `BatchKey`.
/// ```compile_fail,E0423
/// let key = dp_optim::engine::BatchKey([0; 32]);
/// ```
pub struct BatchKey([u8; 32]);

impl BatchKey {
    /// Draws a fresh key.
    pub fn draw<R: ReleaseRng + ?Sized>(rng: &mut R) -> Self {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        Self(key)
    }

    pub(crate) fn of(key: [u8; 32]) -> Self {
        Self(key)
    }
}

/// The public numbers of a run on sampled batches.
///
/// # Privacy
/// The number of updates and the divisor of a batch's gradient sum are public; the size of a Poisson batch is not. An empty
/// batch makes an update like any other, from noise and regulariser alone, and no reported number depends on how many records
/// were drawn.
#[derive(Debug, Clone)]
pub struct SampledRun {
    /// Number of examples in the source.
    pub n: u64,
    /// The law of a batch.
    pub law: BatchLaw,
    /// T: number of updates.
    pub updates: u64,
    /// The divisor of a batch's gradient sum.
    pub divisor: f64,
    /// The step sizes.
    pub steps: StepSizes,
    /// The weights of the iterates in the averaged output.
    pub weights: AveragingWeights,
}

impl SampledRun {
    /// Makes all updates, each on its own batch, drawn under `key`.
    ///
    /// # Privacy
    /// Amplification by sampling needs secret and fresh batches: a [`BatchKey`] serves one run.
    ///
    /// # Errors
    /// A source whose size is not `n`, a failing source, [`Error::Interrupted`], and errors of the iterate's gradient
    /// estimate.
    pub fn run<F, M, S, I>(
        &self,
        model: &M,
        source: &mut S,
        iterate: &mut I,
        key: BatchKey,
        control: &mut Control<'_>,
    ) -> Result<(), Error>
    where
        F: Copy,
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
        S: RowSource<F> + ?Sized,
        I: Iterate<F, M>,
    {
        self.run_part(1..=self.updates, model, source, iterate, key, control)
    }

    /// Makes some of the updates, counted from 1, on batches drawn under a separate key.
    ///
    /// # Privacy
    /// As [`run`](Self::run).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_part<F, M, S, I>(
        &self,
        updates: RangeInclusive<u64>,
        model: &M,
        source: &mut S,
        iterate: &mut I,
        key: BatchKey,
        control: &mut Control<'_>,
    ) -> Result<(), Error>
    where
        F: Copy,
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
        S: RowSource<F> + ?Sized,
        I: Iterate<F, M>,
    {
        let steps = (updates.end() + 1).saturating_sub(*updates.start());
        let batches = Batched::Drawn { n: self.n, law: self.law, steps };
        iterate.begin(&Driven { batches, workers: control.workers })?;
        let result = self.drive(updates, model, source, iterate, key, control);
        iterate.end();
        result
    }

    fn step(&self, update: u64) -> Step {
        let (step_size, weight) = (self.steps.at(update), self.weights.at(update));
        Step { update, step_size, divisor: self.divisor, weight }
    }

    fn drive<F, M, S, I>(
        &self,
        updates: RangeInclusive<u64>,
        model: &M,
        source: &mut S,
        iterate: &mut I,
        key: BatchKey,
        control: &mut Control<'_>,
    ) -> Result<(), Error>
    where
        F: Copy,
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
        S: RowSource<F> + ?Sized,
        I: Iterate<F, M>,
    {
        let description = source.describe()?;
        super::expect_rows(self.n, description.n)?;
        let mut sampler = Sampler::new(self.law, self.n, key.0)?;
        let mut pace = Pace::nominal(control, self.n);
        let (engine, mut sparse, mut buffer) = (description.engine, None, BlockBuffer::default());
        let nominal = self.law.nominal_size() as usize;
        let near = gathered_rows(description.dim);
        for t in updates {
            let positions = sampler.draw()?;
            let step = self.step(t);
            let pieces = iterate.pieces();
            if let Some(rows) = source.select(positions)? {
                if rows.len() != positions.len() || rows.dim() != description.dim {
                    return Err(SourceError::Shape { engine, what: NOT_ASKED_FOR }.into());
                }
                for (range, piece) in pieces.of_batch(rows.len(), usize::MAX) {
                    iterate.update_selected(model, &rows.slice(range), &mut buffer, piece, &step)?;
                }
            } else {
                for (range, piece) in pieces.of_batch(positions.len(), near) {
                    let batch = source.gather(&positions[range])?;
                    if batch.len() != piece.examples {
                        return Err(SourceError::Shape { engine, what: NOT_ASKED_FOR }.into());
                    }
                    // An empty batch is stored neither dense nor sparse.
                    if !batch.is_empty() {
                        check_shape(&batch, description.dim, &mut sparse, engine)?;
                    }
                    iterate.update(model, batch, piece, &step)?;
                }
            }
            if self.weights.restarts_after(t) {
                iterate.restart();
            }
            pace.advance(nominal)?;
        }
        pace.finish()
    }
}
