//! The iterate as a scalar times a vector, so that an update changes only the coordinates of its rows.

use dp_losses::{Model, ScaledSteps};
use nalgebra::{RealField, convert};

use super::batches::Piece;
use super::iterate::Iterate;
use super::update::{Step, squared_norm};
use crate::error::Error;
use crate::growth::Rounding;

/// The iterate `w = s v` of plain projected gradient descent with an L2 regulariser.
///
/// Shrinking and projecting change `s` alone, and each example is added directly to `v`: the cost of an update of a sparse
/// batch is proportional to its number of non-zeros. The sensitivity allows for the additional rounding errors ([`Rounding`],
/// [`Arithmetic::Scaled`](crate::growth::Arithmetic::Scaled)).
///
/// # Formula
/// With `Δ_t` the change of `v` in update `t` and `c_t = Σ_{τ≤t} α_τ s_τ`, the average is formed without a full-vector
/// operation in any update:
/// ```text
/// Σ_t α_t w_t = Σ_t α_t s_t v_t = c_T v_T - z,    z = Σ_t c_{t-1} Δ_t
/// ```
/// When `s` leaves [1/2, 2], `v` is multiplied by it and the average's parts are merged: with step sizes `1/(λt)` this happens
/// `log₂ T` times.
pub struct Scaled<F, M: ScaledSteps<F>> {
    scale: f64,
    direction: Vec<F>,
    pass: <M as Model<F>>::Pass,
    coefficients: Vec<F>,
    blocks: usize,
    lambda: f64,
    projection: Option<Projection<F>>,
    average: Option<LazyAverage<F>>,
    /// Buffer for [`Iterate::current`].
    whole: Vec<F>,
}

/// `‖v‖²`, updated with each example.
struct Projection<F> {
    radius: f64,
    squared_norm: F,
    interval: u64,
    since: u64,
}

/// The parts of `c v - z`, and those merged at renormalisations.
struct LazyAverage<F> {
    weight: f64,
    excess: Vec<F>,
    collected: Vec<F>,
}

impl<F: RealField + Copy, M: ScaledSteps<F>> Scaled<F, M> {
    /// Starts at `start`; later iterates are projected onto the ball of this radius, if any. If `averaged`, the output is the
    /// average.
    pub fn new(model: &M, start: Vec<F>, averaged: bool, batch_size: usize, lambda: f64, radius: Option<f64>) -> Self {
        let dim = start.len();
        let zeros = || vec![F::zero(); dim];
        Self {
            scale: 1.0,
            pass: model.pass(batch_size),
            coefficients: Vec::with_capacity(batch_size * model.blocks().len()),
            blocks: model.blocks().len(),
            lambda,
            projection: radius.map(|radius| Projection {
                radius,
                squared_norm: squared_norm(&start),
                interval: Rounding::norm_interval(dim as u64),
                since: 0,
            }),
            average: averaged.then(|| LazyAverage { weight: 0.0, excess: zeros(), collected: zeros() }),
            whole: Vec::new(),
            direction: start,
        }
    }

    fn renormalise(&mut self) {
        if let Some(average) = &mut self.average {
            average.collect(&self.direction);
        }
        let scale: F = convert(self.scale);
        self.direction.iter_mut().for_each(|entry| *entry *= scale);
        self.scale = 1.0;
        if let Some(projection) = &mut self.projection {
            projection.refresh(&self.direction);
        }
    }

    fn fill(&mut self, coefficient: F, examples: usize) {
        self.coefficients.clear();
        self.coefficients.resize(examples * self.blocks, coefficient);
    }
}

impl<F: RealField + Copy> Projection<F> {
    fn refresh(&mut self, direction: &[F]) {
        self.squared_norm = squared_norm(direction);
        self.since = 0;
    }

    /// Returns the scale that brings `scale · direction` into the ball.
    fn scale(&mut self, scale: f64, direction: &[F], examples: usize) -> f64 {
        self.since += examples as u64;
        if self.since >= self.interval {
            self.refresh(direction);
        }
        let squared: f64 = self.squared_norm.to_subset_unchecked();
        let norm = scale.abs() * squared.max(0.0).sqrt();
        if norm > self.radius { scale * (self.radius / norm) } else { scale }
    }
}

impl<F: RealField + Copy> LazyAverage<F> {
    fn collect(&mut self, direction: &[F]) {
        let weight: F = convert(self.weight);
        for ((collected, &entry), excess) in self.collected.iter_mut().zip(direction).zip(&mut self.excess) {
            *collected += weight * entry - *excess;
            *excess = F::zero();
        }
        self.weight = 0.0;
    }
}

impl<F: RealField + Copy, M: ScaledSteps<F>> Iterate<F, M> for Scaled<F, M> {
    #[inline]
    fn update(&mut self, model: &M, batch: M::Batch<'_>, piece: Piece, step: &Step) -> Result<(), Error> {
        let examples = piece.examples;
        let shrunk = self.scale * (1.0 - step.step_size * self.lambda);
        if !(0.5..=2.0).contains(&shrunk.abs()) {
            // The gradient is taken at the point before the shrinking: merge the current scale only, then shrink.
            self.renormalise();
        }
        let before = self.scale;
        let shrunk = before * (1.0 - step.step_size * self.lambda);
        if !(0.5..=2.0).contains(&shrunk.abs()) {
            return self.long_update(model, batch, examples, step);
        }
        let coefficient: F = convert(-step.step_size / (step.divisor * shrunk));
        match (&mut self.average, &mut self.projection) {
            (None, None) => {
                model.step_scaled(convert(before), coefficient, batch, &mut self.pass, &mut self.direction);
            }
            (None, Some(projection)) => model.step_scaled_tracking_norm(
                convert(before),
                coefficient,
                batch,
                &mut self.pass,
                &mut self.direction,
                &mut projection.squared_norm,
            ),
            (Some(_), _) => {
                model.forward_scaled(convert(before), &self.direction, batch, &mut self.pass);
                model.backward(&self.direction, batch, &mut self.pass);
                self.add(model, batch, examples, coefficient);
            }
        }
        self.scale = shrunk;
        self.settle(examples, step);
        Ok(())
    }

    fn restart(&mut self) {
        let Some(average) = &mut self.average else { return };
        average.collect(&self.direction);
        self.direction.copy_from_slice(&average.collected);
        average.collected.fill(F::zero());
        self.scale = 1.0;
        if let Some(projection) = &mut self.projection {
            projection.refresh(&self.direction);
        }
    }

    fn current(&mut self) -> &[F] {
        let scale: F = convert(self.scale);
        self.whole.clear();
        self.whole.extend(self.direction.iter().map(|&entry| scale * entry));
        &self.whole
    }

    fn into_output(mut self) -> Vec<F> {
        match &mut self.average {
            Some(average) => {
                average.collect(&self.direction);
                self.average.map_or(Vec::new(), |average| average.collected)
            }
            None => {
                self.renormalise();
                self.direction
            }
        }
    }
}

impl<F: RealField + Copy, M: ScaledSteps<F>> Scaled<F, M> {
    /// Makes an update that shrinks (or flips) by more than the scale can represent: the gradient is taken first, then the
    /// shrinking is multiplied into the vector.
    #[cold]
    fn long_update(&mut self, model: &M, batch: M::Batch<'_>, examples: usize, step: &Step) -> Result<(), Error> {
        model.forward_scaled(convert(self.scale), &self.direction, batch, &mut self.pass);
        model.backward(&self.direction, batch, &mut self.pass);
        self.scale *= 1.0 - step.step_size * self.lambda;
        self.renormalise();
        self.add(model, batch, examples, convert(-step.step_size / step.divisor));
        self.settle(examples, step);
        Ok(())
    }

    /// Adds `coefficient` times the batch's gradients to the vector, and updates the lazy average.
    fn add(&mut self, model: &M, batch: M::Batch<'_>, examples: usize, coefficient: F) {
        if let Some(average) = &self.average
            && average.weight != 0.0
        {
            let weight: F = convert(average.weight);
            self.fill(weight * coefficient, examples);
            if let Some(average) = &mut self.average {
                model.add_weighted(batch, &mut self.pass, &self.coefficients, &mut average.excess);
            }
        }
        self.fill(coefficient, examples);
        match &mut self.projection {
            Some(projection) => model.add_weighted_tracking_norm(
                batch,
                &mut self.pass,
                &self.coefficients,
                &mut self.direction,
                &mut projection.squared_norm,
            ),
            None => model.add_weighted(batch, &mut self.pass, &self.coefficients, &mut self.direction),
        }
    }

    /// Projects, and adds the new point to the average.
    fn settle(&mut self, examples: usize, step: &Step) {
        if let Some(projection) = &mut self.projection {
            self.scale = projection.scale(self.scale, &self.direction, examples);
        }
        if let Some(average) = &mut self.average {
            average.weight += step.weight * self.scale;
        }
        if !(0.5..=2.0).contains(&self.scale.abs()) {
            self.renormalise();
        }
    }
}
