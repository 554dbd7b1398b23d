//! The functions of the records at a point: the sum of clipped gradients, and sums of clamped losses along a direction. Both
//! are exact sums on grids, so that a record moves them only by its own contribution.

use dp_accountant::Adjacency;
use dp_data::{Block, RowSource, SourceError};
use dp_losses::{Loss, Real, ScalarLoss};
use dp_mechanisms::Bounded;
use dp_mechanisms::clip::{ClippingNorm, ExactSum};

use crate::engine::grid_sum::{self, ExactSums, GridSum, counts, exact_sum};
use crate::engine::rows::{copy_row, dot};
use crate::engine::{Control, Sampler, check_shape, gathered_rows};
use crate::error::Error;

/// Repeated access to the records.
pub(super) struct Records<'s, 'c, F> {
    source: &'s mut dyn RowSource<F>,
    control: &'s mut Control<'c>,
    loss: ScalarLoss,
    n: u64,
    dim: usize,
    passes: u32,
    /// Draws a batch for each access; `None` for all records.
    sampler: Option<Sampler>,
}

impl<'s, 'c, F: Real> Records<'s, 'c, F> {
    pub(super) fn new(
        source: &'s mut dyn RowSource<F>,
        control: &'s mut Control<'c>,
        loss: ScalarLoss,
        n: u64,
        dim: usize,
        sampler: Option<Sampler>,
    ) -> Self {
        Self { source, control, loss, n, dim, passes: 0, sampler }
    }

    /// Returns the sums of all records, or of those of a fresh batch.
    fn add_up<S: ExactSums<F>>(&mut self, sums: &S) -> Result<S::Sums, Error> {
        let Some(sampler) = &mut self.sampler else {
            let pass = self.passes;
            self.passes = self.passes.saturating_add(1);
            return grid_sum::add_up(sums, &mut *self.source, pass, self.control);
        };
        self.control.check()?;
        let description = self.source.describe()?;
        let (positions, mut total) = (sampler.draw()?, sums.empty()?);
        for positions in positions.chunks(gathered_rows(description.dim)) {
            let piece = self.source.gather(positions)?;
            if piece.len() != positions.len() {
                let what = "rows are not those asked for";
                return Err(SourceError::Shape { engine: description.engine, what }.into());
            }
            check_shape(&piece, description.dim, &mut None, description.engine)?;
            grid_sum::add_up_block(sums, &piece, self.control.workers, &mut total)?;
        }
        Ok(total)
    }

    /// Returns `Σ_i clip_C ∇ℓ_i(w)`, with its sensitivity under `A`.
    pub(super) fn gradient<A: Adjacency>(
        &mut self,
        weights: &[f64],
        clipping: ClippingNorm,
    ) -> Result<Bounded<Vec<f64>, A>, Error> {
        let empty = exact_sum::<A>(self.dim, clipping, self.n)?;
        Ok(self.add_up(&GradientSums { loss: self.loss, weights, empty })?.finish())
    }

    /// Computes `Σ_i clamp(ℓ_i(w - η d), [0, C_o]) / C_o` for no step and for each of `steps`.
    pub(super) fn losses(
        &mut self,
        weights: &[f64],
        direction: &[f64],
        steps: &[f64],
        most_loss: f64,
    ) -> Result<Vec<f64>, Error> {
        let grid = GridSum::new(self.n)?;
        let cells = self.add_up(&LossSums { loss: self.loss, weights, direction, steps, most_loss, grid })?;
        Ok(cells.into_iter().map(|cells| grid.value(cells)).collect())
    }
}

struct GradientSums<'w, A: Adjacency> {
    loss: ScalarLoss,
    weights: &'w [f64],
    empty: ExactSum<A>,
}

impl<F: Real, A: Adjacency> ExactSums<F> for GradientSums<'_, A> {
    type Sums = ExactSum<A>;

    fn numbers(&self) -> u64 {
        self.weights.len() as u64
    }

    fn empty(&self) -> Result<ExactSum<A>, Error> {
        Ok(self.empty.like())
    }

    fn add_block(&self, block: &Block<'_, F>, sum: &mut ExactSum<A>) -> Result<(), Error> {
        let mut gradient = vec![0.0; self.weights.len()];
        for (i, &target) in (0..).zip(block.targets).filter(|(i, _)| counts(block, *i)) {
            let slope = self.loss.derivative(dot(&block.rows, i, self.weights), target.to_subset_unchecked());
            copy_row(&block.rows, i, &mut gradient);
            gradient.iter_mut().for_each(|entry| *entry *= slope);
            // Errors of shape and number only, which were checked.
            sum.add(&gradient)?;
        }
        Ok(())
    }

    fn merge(&self, sum: &mut ExactSum<A>, part: ExactSum<A>) -> Result<(), Error> {
        Ok(sum.merge(part)?)
    }
}

struct LossSums<'l> {
    loss: ScalarLoss,
    weights: &'l [f64],
    direction: &'l [f64],
    steps: &'l [f64],
    most_loss: f64,
    grid: GridSum,
}

impl<F: Real> ExactSums<F> for LossSums<'_> {
    /// One sum for no step and for each step.
    type Sums = Vec<i64>;

    fn numbers(&self) -> u64 {
        self.steps.len() as u64 + 1
    }

    fn empty(&self) -> Result<Vec<i64>, Error> {
        Ok(vec![0; self.steps.len() + 1])
    }

    fn add_block(&self, block: &Block<'_, F>, cells: &mut Vec<i64>) -> Result<(), Error> {
        let Self { loss, weights, direction, steps, most_loss, grid } = *self;
        for (i, &target) in (0..).zip(block.targets).filter(|(i, _)| counts(block, *i)) {
            let target = target.to_subset_unchecked();
            let (here, along) = (dot(&block.rows, i, weights), dot(&block.rows, i, direction));
            for (cells, step) in cells.iter_mut().zip(core::iter::once(0.0).chain(steps.iter().copied())) {
                let share = loss.value(here - step * along, target) / most_loss;
                // NaN counts as the largest loss.
                *cells += grid.cell(if share < 0.0 { 0.0 } else { share });
            }
        }
        Ok(())
    }

    fn merge(&self, cells: &mut Vec<i64>, part: Vec<i64>) -> Result<(), Error> {
        cells.iter_mut().zip(part).for_each(|(cells, part)| *cells += part);
        Ok(())
    }
}
