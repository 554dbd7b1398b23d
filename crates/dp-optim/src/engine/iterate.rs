//! The iterate of a run and its weighted average, in two representations.

use dp_data::{Block, BlockBuffer, Selection};
use dp_losses::Model;
use nalgebra::{RealField, convert};

use super::batches::{Piece, Pieces};
use super::gradient::GradientEstimate;
use super::norm_follower::SCALES;
use super::rows::gathered;
use super::run_state::RunState;
use super::step_batches::Driven;
use super::step_search::{Candidates, longest};
use super::update::{Step, UpdateRule};
use crate::error::Error;

/// The state of a run: the point that is updated, and the weighted average of the points so far.
///
/// # Privacy
/// Examples reach the state through a [`GradientEstimate`] only, whose obligations hold here too.
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

/// The choices of a run besides its iterates.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Adapts {
    /// The sizes of steps.
    pub(crate) searches: bool,
    /// The clipping norm.
    pub(crate) follows: bool,
}

/// The iterate itself, a gradient buffer, and any gradient estimate and update rule.
pub struct Buffered<F, G, U> {
    parameters: Vec<F>,
    sum: Vec<F>,
    average: Option<Vec<F>>,
    /// The sum of the weights in the average.
    weight: f64,
    /// Number of updates of the run that this one continues.
    over: u64,
    /// Number of those that were lost; without them the weights add up to 1.
    lost: u64,
    /// False if some of the noise came from a generator that is not secret.
    secret_noise: bool,
    /// The factors on step sizes that were chosen so far.
    chosen: Vec<f64>,
    /// The factor on the clipping norm at the start of this run.
    norm_scale: f64,
    gradient: G,
    rule: U,
}

impl<F: RealField + Copy, G, U> Buffered<F, G, U> {
    /// Starts at `start`; if `averaged`, the output is the average, otherwise the last iterate.
    pub fn new(start: Vec<F>, averaged: bool, gradient: G, rule: U) -> Self {
        let zeros = || vec![F::zero(); start.len()];
        Self {
            sum: zeros(),
            average: averaged.then(zeros),
            weight: 0.0,
            over: 0,
            lost: 0,
            secret_noise: true,
            chosen: Vec::new(),
            norm_scale: 1.0,
            parameters: start,
            gradient,
            rule,
        }
    }

    /// Continues from a state; `searches` if the sizes of steps are chosen, `follows` if the clipping norm is adaptive.
    ///
    /// # Errors
    /// [`Error::State`] if its vectors, its chosen steps or its factor on the norm are not those of this run.
    pub(crate) fn resume(&mut self, state: RunState<F>, Adapts { searches, follows }: Adapts) -> Result<(), Error>
    where
        U: UpdateRule<F>,
    {
        let made = if searches { state.updates.saturating_sub(state.lost) } else { 0 };
        if state.chosen.len() as u64 != made || !state.chosen.iter().all(|&factor| factor > 0.0 && factor <= 1.0) {
            return Err(Error::State { why: "its chosen step sizes are not those of such a run" });
        }
        let scales = if follows { SCALES } else { (1.0, 1.0) };
        if !(scales.0..=scales.1).contains(&state.norm_scale) {
            return Err(Error::State { why: "its clipping norm is not that of such a run" });
        }
        (self.weight, self.over, self.lost) = (state.weight, state.updates, state.lost);
        (self.chosen, self.norm_scale) = (state.chosen, state.norm_scale);
        if state.vectors.is_empty() && state.updates == state.lost {
            return Ok(());
        }
        let other = Error::State { why: "it is of another algorithm or another number of parameters" };
        let Some(kept) = self.rule.kept() else { return Err(other) };
        let dim = self.parameters.len();
        let expected = 1 + usize::from(self.average.is_some()) + kept.len();
        if state.vectors.len() != expected || state.vectors.iter().any(|vector| vector.len() != dim) {
            return Err(other);
        }
        let mut vectors = state.vectors.into_iter();
        self.parameters = vectors.next().unwrap_or_default();
        if let Some(average) = &mut self.average {
            *average = vectors.next().unwrap_or_default();
        }
        self.rule.set_kept(vectors.collect());
        Ok(())
    }

    /// Returns the numbers of updates that are over and that were lost, of the run that this one continues.
    pub(super) fn over(&self) -> (u64, u64) {
        (self.over, self.lost)
    }

    /// States that noise of this run comes from a generator that is not secret.
    pub(crate) fn mark_not_secret(&mut self) {
        self.secret_noise = false;
    }

    /// Returns the factor on the clipping norm at the start of this run.
    pub(super) fn first_norm_scale(&self) -> f64 {
        self.norm_scale
    }

    /// Copies the state after so many updates, with this factor on the clipping norm; `None` if the rule keeps more than vectors.
    pub(super) fn state_after(&self, updates: u64, norm_scale: f64) -> Option<RunState<F>>
    where
        U: UpdateRule<F>,
    {
        let own = [Some(&self.parameters), self.average.as_ref()].into_iter().flatten().map(Vec::as_slice);
        let vectors = own.chain(self.rule.kept()?).map(<[F]>::to_vec).collect();
        let Self { lost, secret_noise, weight, .. } = *self;
        Some(RunState { updates, lost, secret_noise, weight, chosen: self.chosen.clone(), norm_scale, vectors })
    }

    /// Returns the output and the gradient estimate, whose log may still have to be finished. If all updates whose iterates have
    /// weight were lost, the output is the last iterate.
    pub fn into_parts(self) -> (Vec<F>, G)
    where
        U: UpdateRule<F>,
    {
        let Self { parameters, average, weight, lost, gradient, rule, .. } = self;
        let output = match average {
            Some(average) if lost == 0 => average,
            // The weights of the updates that were lost are missing.
            Some(average) if weight > 0.0 => {
                average.into_iter().map(|entry| entry * convert::<f64, F>(1.0 / weight)).collect()
            }
            _ => rule.point(&parameters).to_vec(),
        };
        (output, gradient)
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

    /// Makes a step along the sum that `estimate` writes, from the gradient estimate and the current parameters, of the size that
    /// `choose` chooses or that of the schedule. Returns the size.
    pub(super) fn step(
        &mut self,
        step: &Step,
        estimate: impl FnOnce(&mut G, &[F], &mut [F]) -> Result<(), Error>,
        choose: impl FnOnce(&mut G, &Candidates<'_, F>) -> Result<Option<f64>, Error>,
    ) -> Result<f64, Error>
    where
        U: UpdateRule<F> + Clone,
    {
        let Self { gradient, parameters, sum, rule, chosen, lost, .. } = self;
        estimate(gradient, parameters, sum)?;
        let at = |factor: f64| {
            let (mut rule, mut point) = (rule.clone(), parameters.clone());
            let step = Step { update: step.update - *lost, step_size: step.step_size * factor, ..*step };
            rule.apply(&mut point, sum, &step);
            rule.point(&point).to_vec()
        };
        let (here, step_size) = (rule.point(parameters), step.step_size);
        let factor = choose(gradient, &Candidates { here, at: &at, step_size, longest: longest(chosen) })?;
        chosen.extend(factor);
        let step = Step { step_size: step.step_size * factor.unwrap_or(1.0), ..*step };
        self.apply(&step);
        Ok(step.step_size)
    }

    /// Restarts at the average so far: see [`Iterate::restart`].
    pub(super) fn restart_at_average(&mut self)
    where
        U: UpdateRule<F>,
    {
        if let Some(average) = &mut self.average {
            self.parameters.copy_from_slice(average);
            average.fill(F::zero());
            self.weight = 0.0;
            self.rule.restart(&mut self.parameters);
        }
    }

    /// Makes a step along the estimate and adds the new point to the average.
    #[inline]
    fn apply(&mut self, step: &Step)
    where
        U: UpdateRule<F>,
    {
        // The rule has not seen the updates that were lost.
        self.rule.apply(&mut self.parameters, &self.sum, &Step { update: step.update - self.lost, ..*step });
        if let Some(average) = &mut self.average
            && step.weight != 0.0
        {
            self.weight += step.weight;
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
