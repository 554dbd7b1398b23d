//! The iterate of a run and its weighted average, in two representations.

use dp_data::{Block, BlockBuffer, Selection};
use dp_losses::Model;
use nalgebra::{RealField, convert};

use super::batches::{Piece, Pieces};
use super::gradient::GradientEstimate;
use super::rows::gathered;
use super::step_batches::Driven;
use super::update::{Step, UpdateRule};
use crate::error::Error;

/// The state of a run: the point that is updated, and the weighted average of the points so far.
pub trait Iterate<F, M: Model<F>> {
    /// Called by the loop that drives the run, before its first batch: see [`GradientEstimate::begin`].
    ///
    /// # Errors
    /// Those of the gradient estimate; by default none.
    fn begin(&mut self, _driven: &Driven<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Called by the loop when it ends, with or without an error.
    fn end(&mut self) {}

    /// Returns the pieces in which it takes long batches.
    fn pieces(&self) -> Pieces {
        Pieces::Whole
    }

    /// Makes one update on a batch. If the batch comes in pieces, the update is made with the last one; `step.divisor` is
    /// that of the examples so far.
    ///
    /// # Errors
    /// Those of the gradient estimate.
    fn update(&mut self, model: &M, batch: M::Batch<'_>, piece: Piece, step: &Step) -> Result<(), Error>;

    /// As [`update`](Self::update) for selected rows, which by default are copied into `buffer`.
    ///
    /// # Errors
    /// As [`update`](Self::update), and [`OutOfMemory`](dp_data::OutOfMemory).
    fn update_selected(
        &mut self,
        model: &M,
        rows: &Selection<'_, F>,
        buffer: &mut BlockBuffer<F>,
        piece: Piece,
        step: &Step,
    ) -> Result<(), Error>
    where
        F: Copy,
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        self.update(model, gathered(rows, buffer)?, piece, step)
    }

    /// Restarts at the average so far, and starts a new average. Does nothing if the output is the last iterate.
    fn restart(&mut self);

    /// Returns the current point.
    fn current(&mut self) -> &[F];

    /// Returns the output: `Σ α_t w_t`.
    fn into_output(self) -> Vec<F>;
}

/// The iterate itself, a gradient buffer, and any gradient estimate and update rule.
pub struct Buffered<F, G, U> {
    parameters: Vec<F>,
    sum: Vec<F>,
    average: Option<Vec<F>>,
    gradient: G,
    rule: U,
}

impl<F: RealField + Copy, G, U> Buffered<F, G, U> {
    /// Starts at `start`; if `averaged`, the output is the average, otherwise the last iterate.
    pub fn new(start: Vec<F>, averaged: bool, gradient: G, rule: U) -> Self {
        let zeros = || vec![F::zero(); start.len()];
        Self { sum: zeros(), average: averaged.then(zeros), parameters: start, gradient, rule }
    }

    /// Returns the output and the gradient estimate, whose log may still have to be finished.
    pub fn into_parts(self) -> (Vec<F>, G)
    where
        U: UpdateRule<F>,
    {
        let Self { parameters, average, gradient, rule, .. } = self;
        (average.unwrap_or_else(|| rule.point(&parameters).to_vec()), gradient)
    }

    /// Returns the iterate, to which the rule has been applied.
    pub fn parameters(&self) -> &[F]
    where
        U: UpdateRule<F>,
    {
        self.rule.point(&self.parameters)
    }

    /// Returns the gradient estimate.
    pub(super) fn gradient(&mut self) -> &mut G {
        &mut self.gradient
    }

    /// Makes a step along the sum that `estimate` writes, from the gradient estimate and the current parameters.
    pub(super) fn step(
        &mut self,
        step: &Step,
        estimate: impl FnOnce(&mut G, &[F], &mut [F]) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        U: UpdateRule<F>,
    {
        estimate(&mut self.gradient, &self.parameters, &mut self.sum)?;
        self.apply(step);
        Ok(())
    }

    /// Restarts at the average so far: see [`Iterate::restart`].
    pub(super) fn restart_at_average(&mut self)
    where
        U: UpdateRule<F>,
    {
        if let Some(average) = &mut self.average {
            self.parameters.copy_from_slice(average);
            average.fill(F::zero());
            self.rule.restart(&self.parameters);
        }
    }

    /// Makes a step along the estimate and adds the new point to the average.
    #[inline]
    fn apply(&mut self, step: &Step)
    where
        U: UpdateRule<F>,
    {
        self.rule.apply(&mut self.parameters, &self.sum, step);
        if let Some(average) = &mut self.average
            && step.weight != 0.0
        {
            let weight: F = convert(step.weight);
            for (sum, &parameter) in average.iter_mut().zip(self.rule.point(&self.parameters)) {
                *sum += weight * parameter;
            }
        }
    }
}

impl<F, M, G, U> Iterate<F, M> for Buffered<F, G, U>
where
    F: RealField + Copy,
    M: Model<F>,
    G: GradientEstimate<F, M>,
    U: UpdateRule<F>,
{
    fn begin(&mut self, driven: &Driven<'_>) -> Result<(), Error> {
        self.gradient.begin(driven)
    }

    fn end(&mut self) {
        self.gradient.end();
    }

    fn pieces(&self) -> Pieces {
        self.gradient.pieces()
    }

    #[inline]
    fn update(&mut self, model: &M, batch: M::Batch<'_>, piece: Piece, step: &Step) -> Result<(), Error> {
        self.gradient.estimate(model, &self.parameters, batch, piece, &mut self.sum)?;
        if piece.ends {
            self.apply(step);
        }
        Ok(())
    }

    fn update_selected(
        &mut self,
        model: &M,
        rows: &Selection<'_, F>,
        buffer: &mut BlockBuffer<F>,
        piece: Piece,
        step: &Step,
    ) -> Result<(), Error>
    where
        M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        self.gradient.estimate_selected(model, &self.parameters, rows, buffer, piece, &mut self.sum)?;
        if piece.ends {
            self.apply(step);
        }
        Ok(())
    }

    fn restart(&mut self) {
        self.restart_at_average();
    }

    fn current(&mut self) -> &[F] {
        self.parameters()
    }

    fn into_output(self) -> Vec<F> {
        self.into_parts().0
    }
}
