//! Noisy sums of batches of samples of any kind.

use std::sync::{Mutex, PoisonError};

use dp_accountant::Adjacency;
use dp_data::{Samples, Workers};
use dp_losses::{ChoosesFrom, Model};
use dp_mechanisms::ReleaseRng;
use dp_mechanisms::clip::microbatches;
use nalgebra::RealField;

use super::{Noise, NoisyGradient, set_squared_norms};
use crate::engine::gradient::SamplesGradient;
use crate::engine::grid_sum::GridSum;
use crate::engine::step_batches::Driven;
use crate::engine::step_search::Candidates;
use crate::error::Error;

/// Buffers between two microbatches. They are kept from step to step: for a network they take longer to allocate than to fill.
pub(super) struct Spare<F, P> {
    passes: Mutex<Vec<Buffers<F, P>>>,
    sums: Mutex<Vec<Vec<F>>>,
}

impl<F, P> Default for Spare<F, P> {
    fn default() -> Self {
        Self { passes: Mutex::default(), sums: Mutex::default() }
    }
}

/// The buffers of one thread.
struct Buffers<F, P> {
    pass: P,
    squared_norms: Vec<F>,
    coefficients: Vec<F>,
}

impl<F, P> Buffers<F, P> {
    fn new<M: Model<F, Pass = P>>(model: &M, microbatch: usize) -> Self {
        Self { pass: model.pass(microbatch), squared_norms: Vec::new(), coefficients: Vec::new() }
    }
}

/// Buffers that are given back at the end.
struct Lent<'s, F, P> {
    buffers: Option<Buffers<F, P>>,
    spare: &'s Spare<F, P>,
}

impl<F, P> Drop for Lent<'_, F, P> {
    fn drop(&mut self) {
        if let Some(buffers) = self.buffers.take() {
            give(&self.spare.passes, buffers);
        }
    }
}

fn take<T>(spare: &Mutex<Vec<T>>) -> Option<T> {
    spare.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

fn give<T>(spare: &Mutex<Vec<T>>, value: T) {
    spare.lock().unwrap_or_else(PoisonError::into_inner).push(value);
}

impl<F, M, S, A, R> SamplesGradient<F, M, S> for NoisyGradient<'_, F, M, A, R>
where
    F: RealField + Copy,
    S: Samples,
    M: ChoosesFrom<F, S>,
    M::Pass: Send,
    A: Adjacency,
    R: ReleaseRng + ?Sized,
{
    fn begin(&mut self, driven: &Driven<'_>) -> Result<(), Error> {
        self.begin_run(driven)
    }

    fn end(&mut self) {
        self.end_run();
    }

    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        samples: &S,
        positions: &[u32],
        sum: &mut [F],
    ) -> Result<(), Error> {
        self.expect_driven()?;
        let (rule, spare, most) = (self.sum.microbatches(), &self.spare, self.microbatch);
        let lend = || Lent { buffers: take(&spare.passes), spare };
        let part = |lent: &mut Lent<'_, F, M::Pass>, positions: &[u32]| {
            let Buffers { pass, squared_norms, coefficients } =
                lent.buffers.get_or_insert_with(|| Buffers::new(model, most));
            let batch = model.choose(samples, positions);
            model.forward(parameters, batch, pass);
            model.backward(parameters, batch, pass);
            set_squared_norms(model, batch, positions.len(), rule.clips(), pass, squared_norms);
            if rule.is_in_float() {
                let buffer = take(&spare.sums).unwrap_or_default();
                rule.sum_in_float(squared_norms, coefficients, buffer, |coefficients, sum| {
                    model.add_weighted(batch, pass, coefficients, sum);
                })
            } else {
                rule.sum(squared_norms, coefficients, |coefficients, sum| {
                    model.add_weighted_in_double(batch, pass, coefficients, sum);
                })
            }
        };
        let cut = microbatches(positions, most);
        let parts = cut.iter().map(|range| &positions[range.clone()]);
        let ahead = self.workers.threads().saturating_add(1);
        let total = &mut self.sum;
        self.workers.for_each(parts, ahead, lend, part, |part| {
            total.append(part?)?;
            if rule.is_in_float() {
                give(&spare.sums, total.float_buffer());
            }
            Ok::<_, Error>(())
        })?;
        self.release(sum)
    }

    fn choose_step(
        &mut self,
        model: &M,
        samples: &S,
        positions: &[u32],
        candidates: &Candidates<'_, F>,
    ) -> Result<Option<f64>, Error> {
        self.expect_driven()?;
        let Self { search, noise, spare, workers, microbatch, rng, .. } = self;
        let (Some(search), Noise::Steps(steps)) = (search, noise) else { return Ok(None) };
        let losses =
            LossSum { grid: search.grid, most_loss: search.most_loss, microbatch: *microbatch, workers: *workers };
        let loss_at = |point: &[F]| losses.at(model, point, samples, positions, spare);
        search.choose(candidates, steps, &mut **rng, loss_at).map(Some)
    }
}

/// The sum of a batch's clamped losses, over the largest loss, on a grid: exact, and so the same on any number of threads.
struct LossSum {
    grid: GridSum,
    most_loss: f64,
    microbatch: usize,
    workers: Workers,
}

impl LossSum {
    /// Returns the sum at a point.
    ///
    /// # Privacy
    /// Each sample adds a number in `[0, 1]`, whatever its loss is; NaN counts as the largest loss.
    fn at<F, M, S>(
        &self,
        model: &M,
        point: &[F],
        samples: &S,
        positions: &[u32],
        spare: &Spare<F, M::Pass>,
    ) -> Result<f64, Error>
    where
        F: RealField + Copy,
        S: Samples,
        M: ChoosesFrom<F, S>,
        M::Pass: Send,
    {
        let Self { grid, most_loss, microbatch, workers } = *self;
        let lend = || Lent { buffers: take(&spare.passes), spare };
        let part = |lent: &mut Lent<'_, F, M::Pass>, positions: &[u32]| {
            let buffers = lent.buffers.get_or_insert_with(|| Buffers::new(model, microbatch));
            let (pass, losses) = (&mut buffers.pass, &mut buffers.squared_norms);
            let batch = model.choose(samples, positions);
            model.forward(point, batch, pass);
            losses.clear();
            losses.resize(positions.len(), F::zero());
            model.losses(batch, pass, losses);
            let cell = |&loss: &F| {
                let loss: f64 = loss.to_subset_unchecked();
                let share = loss / most_loss;
                grid.cell(if share < 0.0 { 0.0 } else { share })
            };
            losses.iter().map(cell).sum::<i64>()
        };
        let cut = microbatches(positions, microbatch);
        let parts = cut.iter().map(|range| &positions[range.clone()]);
        let (mut total, ahead) = (0, workers.threads().saturating_add(1));
        workers.for_each(parts, ahead, lend, part, |cells| {
            total += cells;
            Ok::<_, Error>(())
        })?;
        Ok(grid.value(total))
    }
}

#[cfg(test)]
mod tests;
