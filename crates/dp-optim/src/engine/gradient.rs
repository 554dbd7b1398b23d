//! Gradient estimates: the estimate of the sum of a batch's data gradients in one update.

use dp_data::{Block, BlockBuffer, Selection};
use dp_losses::Model;
use nalgebra::RealField;

use super::rows::gathered;
use super::step_batches::Driven;
use crate::error::Error;

/// An estimator of the sum of a batch's data gradients at a point: the plain sum, or clipped and noisy.
///
/// A private estimator clips each example, sums into a [`Bounded`](dp_mechanisms::Bounded), and writes the output of its
/// mechanism, which logs the event in the same call. The engine treats both kinds alike, and the update rule knows neither
/// clipping nor noise.
pub trait GradientEstimate<F, M: Model<F>> {
    /// Receives from the loop that drives the run, before its first batch, how the batches are made. An estimator whose cost
    /// was paid for other batches returns an error.
    ///
    /// # Errors
    /// Those of the estimator; by default none.
    fn begin(&mut self, _driven: &Driven<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Called by the loop when it ends, with or without an error.
    fn end(&mut self) {}

    /// Writes the estimate for `batch` at `parameters` to `sum`, overwriting its contents.
    ///
    /// # Errors
    /// Those of a mechanism. Never because of a record's value.
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: M::Batch<'_>,
        examples: usize,
        sum: &mut [F],
    ) -> Result<(), Error>;

    /// Writes the estimate for selected rows, which by default are copied into `buffer` as one batch.
    ///
    /// # Errors
    /// As [`estimate`](Self::estimate), and [`OutOfMemory`](dp_data::OutOfMemory).
    fn estimate_selected(
        &mut self,
        model: &M,
        parameters: &[F],
        rows: &Selection<'_, F>,
        buffer: &mut BlockBuffer<F>,
        sum: &mut [F],
    ) -> Result<(), Error>
    where
        F: Copy,
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        self.estimate(model, parameters, gathered(rows, buffer)?, rows.len(), sum)
    }
}

/// The plain sum of the gradients: no clipping, no noise.
pub struct PlainGradient<F, M: Model<F>> {
    pass: M::Pass,
    ones: Vec<F>,
}

impl<F: RealField + Copy, M: Model<F>> PlainGradient<F, M> {
    /// Allocates buffers for batches of at most `batch_size` examples.
    pub fn new(model: &M, batch_size: usize) -> Self {
        Self { pass: model.pass(batch_size), ones: vec![F::one(); batch_size * model.blocks().len()] }
    }
}

impl<F: RealField + Copy, M: Model<F>> GradientEstimate<F, M> for PlainGradient<F, M> {
    #[inline]
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: M::Batch<'_>,
        examples: usize,
        sum: &mut [F],
    ) -> Result<(), Error> {
        let coefficients = examples * model.blocks().len();
        if self.ones.len() < coefficients {
            self.ones.resize(coefficients, F::one());
        }
        model.forward(parameters, batch, &mut self.pass);
        model.backward(parameters, batch, &mut self.pass);
        sum.fill(F::zero());
        model.add_weighted(batch, &mut self.pass, &self.ones[..coefficients], sum);
        Ok(())
    }
}
