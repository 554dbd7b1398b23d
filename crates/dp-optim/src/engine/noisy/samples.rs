//! Noisy sums of batches of samples of any kind.

use std::sync::{Mutex, PoisonError};

use dp_accountant::Adjacency;
use dp_data::{Samples, Workers};
use dp_losses::{ChoosesFrom, Model};
use dp_mechanisms::ReleaseRng;
use dp_mechanisms::clip::microbatches;
use nalgebra::{RealField, convert};

use super::{Noise, NoisyGradient, set_squared_norms};
use crate::engine::gradient::SamplesGradient;
use crate::engine::grid_sum::GridSum;
use crate::engine::norm_follower::Beside;
use crate::engine::step_batches::Driven;
use crate::engine::step_search::Candidates;
use crate::error::Error;

/// The most coordinates of the sums of microbatches that wait to be added; one sum may wait in any case.
const WAITING_NUMBERS: usize = 1 << 20;

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
    /// Coefficients divided by the factor on the clipping norm.
    scaled: Vec<F>,
}

impl<F, P> Buffers<F, P> {
    fn new<M: Model<F, Pass = P>>(model: &M, microbatch: usize) -> Self {
        Self { pass: model.pass(microbatch), squared_norms: Vec::new(), coefficients: Vec::new(), scaled: Vec::new() }
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
        let draws_ahead = match &mut self.noise {
            Noise::Steps(steps) if self.workers.threads() > 1 => steps.draw_ahead(model.parameters(), self.rng)?,
            _ => false,
        };
        let (rule, spare, most) = (self.sum.microbatches(), &self.spare, self.microbatch);
        let lend = || Lent { buffers: take(&spare.passes), spare };
        let followed = self.followed();
        let part = |lent: &mut Lent<'_, F, M::Pass>, positions: &[u32]| {
            let Buffers { pass, squared_norms, coefficients, scaled } =
                lent.buffers.get_or_insert_with(|| Buffers::new(model, most));
            let batch = model.choose(samples, positions);
            model.forward(parameters, batch, pass);
            model.backward(parameters, batch, pass);
            set_squared_norms(model, batch, positions.len(), rule.clips(), pass, squared_norms);
            let halves = followed.map_or(0, |followed| followed.scale(squared_norms));
            let sum = if rule.is_in_float() {
                let buffer = take(&spare.sums).unwrap_or_default();
                rule.sum_in_float(squared_norms, coefficients, buffer, |coefficients, sum| {
                    let coefficients = followed.map_or(coefficients, |followed| followed.divide(coefficients, scaled));
                    model.add_weighted(batch, pass, coefficients, sum);
                })
            } else {
                rule.sum(squared_norms, coefficients, |coefficients, sum| {
                    let coefficients = followed.map_or(coefficients, |followed| followed.divide(coefficients, scaled));
                    model.add_weighted_in_double(batch, pass, coefficients, sum);
                })
            };
            (sum, halves)
        };
        let mut cut = microbatches(positions, most);
        // The longest first, so that threads end at about the same time.
        cut.sort_by_key(|range| core::cmp::Reverse(range.len()));
        let parts = cut.iter().map(|range| &positions[range.clone()]);
        let waiting = (WAITING_NUMBERS / model.parameters().max(1)).clamp(1, 64);
        let ahead = self.workers.threads().saturating_add(waiting);
        let (total, mut halves) = (&mut self.sum, 0);
        let append = |(part, below): (Result<_, dp_mechanisms::Error>, i64)| {
            total.append(part?)?;
            halves += below;
            if rule.is_in_float() {
                give(&spare.sums, total.float_buffer());
            }
            Ok::<_, Error>(())
        };
        let draw = match &self.noise {
            Noise::Steps(steps) if draws_ahead => Some(|| steps.draw_some()),
            _ => None,
        };
        let meanwhile = draw.as_ref().map(|draw| draw as &(dyn Fn() -> bool + Sync));
        self.workers.for_each_meanwhile(parts, ahead, lend, part, append, meanwhile)?;
        self.release(sum)?;
        let Self { beside: Beside::Count(follower), noise: Noise::Steps(steps), norm_scale, rng, .. } = self else {
            return Ok(());
        };
        let scale: F = convert(*norm_scale);
        sum.iter_mut().for_each(|sum| *sum *= scale);
        *norm_scale = follower.next(*norm_scale, halves, steps, &mut **rng)?;
        Ok(())
    }

    fn norm_scale(&self) -> f64 {
        self.norm_scale
    }

    fn set_norm_scale(&mut self, scale: f64) {
        self.norm_scale = scale;
    }

    fn choose_step(
        &mut self,
        model: &M,
        samples: &S,
        positions: &[u32],
        candidates: &Candidates<'_, F>,
    ) -> Result<Option<f64>, Error> {
        self.expect_driven()?;
        let Self { beside, noise, spare, workers, microbatch, rng, .. } = self;
        let (Beside::Search(search), Noise::Steps(steps)) = (beside, noise) else { return Ok(None) };
        let losses =
            LossSum { grid: search.grid, most_loss: search.most_loss, microbatch: *microbatch, workers: *workers };
        let loss_at = |point: &[F]| losses.at(model, point, samples, positions, spare);
        search.choose(candidates, steps, &mut **rng, loss_at).map(Some)
    }
}

/// The numbers by which gradients are clipped to a norm that is not the first one.
#[derive(Clone, Copy)]
struct Followed<F> {
    /// The inverse of the factor on the first norm, and of its square.
    inverse: F,
    inverse_square: F,
    /// The square of the first norm.
    square: f64,
    blocks: usize,
}

impl<F: RealField + Copy> Followed<F> {
    /// Returns the coefficients divided by the factor, in `scaled`.
    fn divide<'s>(&self, coefficients: &[F], scaled: &'s mut Vec<F>) -> &'s [F] {
        scaled.clear();
        scaled.extend(coefficients.iter().map(|&coefficient| coefficient * self.inverse));
        scaled
    }

    /// Divides the squared norms by the squared factor, and returns the sum of 1 for each example below the norm and -1 for each other.
    fn scale(&self, squared_norms: &mut [F]) -> i64 {
        let mut halves = 0;
        for blocks in squared_norms.chunks_exact_mut(self.blocks) {
            let mut square = 0.0;
            for norm in blocks {
                *norm *= self.inverse_square;
                let norm: f64 = norm.to_subset_unchecked();
                square += norm;
            }
            halves += if square <= self.square { 1 } else { -1 };
        }
        halves
    }
}

impl<F: RealField + Copy, M: Model<F>, A: Adjacency, R: ?Sized> NoisyGradient<'_, F, M, A, R> {
    /// Returns the numbers of the current norm if it follows a quantile.
    fn followed(&self) -> Option<Followed<F>> {
        let Beside::Count(follower) = &self.beside else { return None };
        let inverse: F = convert(1.0 / self.norm_scale);
        let inverse_square: F = convert(1.0 / (self.norm_scale * self.norm_scale));
        Some(Followed { inverse, inverse_square, square: follower.first_square(), blocks: self.sum.blocks() })
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
