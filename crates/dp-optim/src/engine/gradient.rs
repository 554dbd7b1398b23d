//! Gradient estimates: the estimate of the sum of a batch's data gradients in one update.

use dp_data::{Block, BlockBuffer, Samples, Selection};
use dp_losses::{ChoosesFrom, Model};
use nalgebra::RealField;

use super::batches::{Piece, Pieces};
use super::rows::gathered;
use super::step_batches::Driven;
use super::step_search::Candidates;
use crate::error::Error;

/// An estimator of the sum of a batch's data gradients at a point: the plain sum, or clipped and noisy.
///
/// A private estimator clips each example, sums into a [`Bounded`](dp_mechanisms::Bounded), and writes the output of its
/// mechanism, which logs the event in the same call. The engine treats both kinds alike, and the update rule knows neither
/// clipping nor noise.
///
/// # Privacy
/// A run is as private as the events in the log, if an implementation of a private estimate
/// - reads examples in the estimate alone, and writes nothing to `sum` that depends on one, except the output of a mechanism whose
///   event it logs in the same call, even if `sum` is not used later;
/// - bounds each example's contribution to the sum separately, so that removing one moves the sum by at most the sensitivity for
///   which the mechanism was calibrated; all pieces of a batch are one sum and one release;
/// - carries no unreleased value from one batch to the next: clipping norms and step sizes that follow the examples are themselves
///   released with noise;
/// - refuses in [`begin`](Self::begin) a run whose batches have another law than the one that its cost assumes.
///
/// The plain sum satisfies none of these: its run is private only through noise on the result, with a proof of its sensitivity.
pub trait GradientEstimate<F, M: Model<F>> {
    /// Receives the law of the batches from the loop that drives the run, before the first batch. An estimator whose cost
    /// was paid for other batches returns an error.
    ///
    /// # Errors
    /// Those of the estimator; by default none.
    fn begin(&mut self, _driven: &Driven<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Called by the loop when it ends, with or without an error.
    fn end(&mut self) {}

    /// Returns the pieces in which it takes long batches.
    fn pieces(&self) -> Pieces {
        Pieces::Whole
    }

    /// Writes the estimate for `batch` at `parameters` to `sum`, overwriting its contents. If the batch comes in pieces, `sum` is
    /// the same for all of them, and holds the estimate after the last.
    ///
    /// # Errors
    /// Those of a mechanism. Never because of a record's value.
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: M::Batch<'_>,
        piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error>;

    /// As [`estimate`](Self::estimate) for selected rows, which by default are copied into `buffer`.
    ///
    /// # Errors
    /// As [`estimate`](Self::estimate), and [`OutOfMemory`](dp_data::OutOfMemory).
    fn estimate_selected(
        &mut self,
        model: &M,
        parameters: &[F],
        rows: &Selection<'_, F>,
        buffer: &mut BlockBuffer<F>,
        piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error>
    where
        F: Copy,
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        self.estimate(model, parameters, gathered(rows, buffer)?, piece, sum)
    }
}

/// An estimator of the sum of the gradients of samples of any kind that were drawn for a step.
///
/// # Privacy
/// As [`GradientEstimate`]; a sample, with all that it contains, counts as one example.
pub trait SamplesGradient<F, M, S>
where
    S: Samples,
    M: ChoosesFrom<F, S>,
{
    /// As [`GradientEstimate::begin`].
    ///
    /// # Errors
    /// Those of the estimator; by default none.
    fn begin(&mut self, _driven: &Driven<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Called by the loop when it ends, with or without an error.
    fn end(&mut self) {}

    /// Writes the estimate for the samples at `positions` to `sum`. The positions ascend, and none is of a null record.
    ///
    /// # Errors
    /// Those of a mechanism. Never because of a sample's value.
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        samples: &S,
        positions: &[u32],
        sum: &mut [F],
    ) -> Result<(), Error>;

    /// Returns the factor on the first clipping norm, which an estimator may change from step to step.
    fn norm_scale(&self) -> f64 {
        1.0
    }

    /// Sets this factor, to that of the run that this one continues.
    fn set_norm_scale(&mut self, _scale: f64) {}

    /// Chooses the size of the step along the last estimate, by the losses of the same samples; `None` for the size of the
    /// schedule. The result is a factor on that size.
    ///
    /// # Errors
    /// Those of a mechanism. Never because of a sample's value.
    fn choose_step(
        &mut self,
        _model: &M,
        _samples: &S,
        _positions: &[u32],
        _candidates: &Candidates<'_, F>,
    ) -> Result<Option<f64>, Error> {
        Ok(None)
    }
}

/// Number of products of a piece of a plain sum.
const PRODUCTS: usize = 1 << 19;
/// Bounds on its number of examples.
const EXAMPLES: core::ops::RangeInclusive<usize> = 256..=8192;

/// The plain sum of the gradients: no clipping, no noise.
pub struct PlainGradient<F, M: Model<F>> {
    pass: M::Pass,
    ones: Vec<F>,
    /// Number of examples of a piece, from the model's size alone.
    piece: usize,
}

impl<F: RealField + Copy, M: Model<F>> PlainGradient<F, M> {
    /// Allocates buffers for batches of at most `batch_size` examples, long ones in pieces.
    pub fn new(model: &M, batch_size: usize) -> Self {
        let piece = (PRODUCTS / model.parameters().max(1)).clamp(*EXAMPLES.start(), *EXAMPLES.end());
        let most = batch_size.min(piece);
        Self { pass: model.pass(most), ones: vec![F::one(); most * model.blocks().len()], piece }
    }

    /// Adds the gradients of some examples.
    #[inline]
    fn add(&mut self, model: &M, parameters: &[F], batch: M::Batch<'_>, examples: usize, sum: &mut [F]) {
        let coefficients = examples * model.blocks().len();
        if self.ones.len() < coefficients {
            self.ones.resize(coefficients, F::one());
        }
        model.forward(parameters, batch, &mut self.pass);
        model.backward(parameters, batch, &mut self.pass);
        model.add_weighted(batch, &mut self.pass, &self.ones[..coefficients], sum);
    }
}

impl<F: RealField + Copy, M: Model<F>> GradientEstimate<F, M> for PlainGradient<F, M> {
    fn pieces(&self) -> Pieces {
        Pieces::Of(self.piece)
    }

    #[inline]
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: M::Batch<'_>,
        piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error> {
        if piece.starts {
            sum.fill(F::zero());
        }
        self.add(model, parameters, batch, piece.examples, sum);
        Ok(())
    }
}

impl<F, M, S> SamplesGradient<F, M, S> for PlainGradient<F, M>
where
    F: RealField + Copy,
    S: Samples,
    M: ChoosesFrom<F, S>,
{
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        samples: &S,
        positions: &[u32],
        sum: &mut [F],
    ) -> Result<(), Error> {
        sum.fill(F::zero());
        for piece in positions.chunks(self.piece) {
            self.add(model, parameters, model.choose(samples, piece), piece.len(), sum);
        }
        Ok(())
    }
}
