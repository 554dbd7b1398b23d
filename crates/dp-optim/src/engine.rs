//! The training loop and its parts.
//!
//! ```text
//! batches  x  gradient estimate  x  update rule            x  averaging  x  stop rule
//! rows        plain                 gradient descent, L2,     weights       passes
//! lists       clipped and noised    projection, momentum,     per update,
//!                                   proximal maps, ADMM, Adam restarts
//! ```
//! Most optimisers of the literature are this loop with other parts. A *recipe* ([`recipes`](crate::recipes)) chooses the
//! parts, derives the sensitivity or the event, and releases. Nothing in this module is private by itself except the estimates
//! of a [`NoisyGradient`]; the result of a run must not leave the process before a mechanism has been applied to it.
//!
//! Data come through [`Batches`], models through [`Model`]. Both are type parameters, so that nothing is dispatched or
//! allocated per example or per step.

mod accelerated;
mod adam;
mod admm;
mod batches;
mod chunks;
mod consensus;
mod control;
pub mod dual_ascent;
mod gradient;
pub(crate) mod grid_sum;
mod heavy_ball;
mod iterate;
mod lbfgs;
pub mod minimise;
mod noisy;
pub(crate) mod norm_follower;
mod preconditioner;
pub(crate) mod rows;
mod run_state;
mod sampling;
mod scaled;
mod step_batches;
pub(crate) mod step_search;
mod step_sum;
mod stopping;
pub(crate) mod sums;
pub(crate) mod trainings;
mod two_parts;
mod update;

#[cfg(test)]
mod long;
#[cfg(test)]
mod tests;

pub use accelerated::AcceleratedDescent;
pub use adam::{Adam, Denominator};
pub use admm::{AdmmOutput, LinearisedAdmm};
pub(crate) use batches::check_shape;
pub use batches::{BatchSizes, Batches, Piece, Pieces, RowBatches, Visit};
pub use consensus::ConsensusAdmm;
pub use control::{Control, Progress};
pub use gradient::{GradientEstimate, PlainGradient, SamplesGradient};
pub use heavy_ball::HeavyBall;
pub(crate) use iterate::Adapts;
pub use iterate::{Buffered, Iterate};
pub use noisy::{Between, NoisyGradient};
pub use run_state::{AfterUpdate, RunState, Start};
pub use sampling::{BatchKey, BatchLaw, SampledRun, Sampler};
pub(crate) use sampling::{gathered_rows, poisson_one};
pub use scaled::Scaled;
pub use step_batches::{Driven, StepBatches};
pub use step_search::Candidates;
pub(crate) use step_sum::MICROBATCH;
pub use step_sum::{Contributions, StepSum, Summation};
pub use stopping::{Passes, StopRule};
pub(crate) use sums::{AllElsewhere, SumGradient};
pub use two_parts::TwoParts;
pub use update::{GradientDescent, Step, UpdateRule, project};

use core::marker::PhantomData;

pub(crate) use control::Pace;
use dp_losses::Model;
use step_batches::Batched;

use crate::averaging::AveragingWeights;
use crate::error::Error;
use crate::growth::Divisor;
use crate::schedule::StepSizes;

/// The public numbers of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Number of examples; every pass must deliver this many.
    pub n: u64,
    /// The batch sizes of a pass.
    pub batches: BatchSizes,
    /// The divisor of a batch's gradient sum.
    pub divisor: Divisor,
    /// The step sizes.
    pub steps: StepSizes,
    /// The weights of the iterates in the averaged output.
    pub weights: AveragingWeights,
}

impl Run {
    /// Runs passes over `batches` until `stop` ends the run, updating `iterate`.
    ///
    /// # Errors
    /// A pass with a number of examples other than `n` ([`dp_data::SourceError::CountChanged`]), a failing source,
    /// [`Error::Interrupted`], and errors of the iterate's gradient estimate. Nothing has been released by this call in that
    /// case, unless the gradient estimate releases.
    pub fn run<F, M, B, I, S>(
        &self,
        model: &M,
        batches: &mut B,
        iterate: &mut I,
        stop: &mut S,
        control: &mut Control<'_>,
    ) -> Result<(), Error>
    where
        M: Model<F>,
        B: Batches<F, M>,
        I: Iterate<F, M>,
        S: StopRule<F, M, B>,
    {
        let one_order = batches.same_order_each_pass();
        let driven = Batched::Passes { n: self.n, sizes: &self.batches, one_order };
        iterate.begin(&Driven { batches: driven, workers: control.workers })?;
        let result = self.drive(model, batches, iterate, stop, control);
        iterate.end();
        result
    }

    fn drive<F, M, B, I, S>(
        &self,
        model: &M,
        batches: &mut B,
        iterate: &mut I,
        stop: &mut S,
        control: &mut Control<'_>,
    ) -> Result<(), Error>
    where
        M: Model<F>,
        B: Batches<F, M>,
        I: Iterate<F, M>,
        S: StopRule<F, M, B>,
    {
        let mut update = 0;
        let mut pass = 0u64;
        while !stop.stop(pass, iterate.current(), model, batches)? {
            let number =
                u32::try_from(pass).map_err(|_| Error::Count { name: "passes", value: pass, range: "below 2^32" })?;
            let mut updates = Updates {
                run: self,
                model,
                iterate,
                update: &mut update,
                before: 0,
                pace: Pace::new(control, pass),
                float: PhantomData,
            };
            let rows = batches.pass(number, &self.batches, &mut updates)?;
            updates.pace.finish()?;
            expect_rows(self.n, rows)?;
            pass += 1;
        }
        Ok(())
    }
}

/// Checks that a pass delivered all examples; called after each pass, before any noise is drawn.
pub(crate) fn expect_rows(expected: u64, found: u64) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(dp_data::SourceError::CountChanged { expected, found }.into()) }
}

/// Number of records whose features are computed together.
pub(crate) const EXPANDED: usize = 64;

/// Checks records whose features are computed when they are read, before they are.
pub(crate) fn expect_unexpanded<F>(
    rows: &dyn dp_data::Unexpanded<F>,
    description: &dp_data::Description,
) -> Result<(), Error> {
    expect_rows(description.n, rows.len() as u64)?;
    let what = if rows.dim() != description.dim {
        "rows do not have the described number of features"
    } else if rows.valid().is_some_and(|valid| valid.len() != rows.len()) {
        "rows, targets and marks differ in number"
    } else {
        return Ok(());
    };
    Err(dp_data::SourceError::Shape { engine: description.engine, what }.into())
}

struct Updates<'u, 'c, F, M, I> {
    run: &'u Run,
    model: &'u M,
    iterate: &'u mut I,
    update: &'u mut u64,
    /// Number of the batch's examples in the pieces before.
    before: usize,
    pace: Pace<'u, 'c>,
    float: PhantomData<F>,
}

impl<F, M: Model<F>, I: Iterate<F, M>> Visit<F, M> for Updates<'_, '_, F, M, I> {
    fn pieces(&self) -> Pieces {
        self.iterate.pieces()
    }

    #[inline]
    fn batch(&mut self, batch: M::Batch<'_>, piece: Piece) -> Result<(), Error> {
        let (t, examples) = (*self.update + 1, self.before + piece.examples);
        let divisor = match (self.run.divisor, &self.run.batches) {
            (Divisor::Nominal, &BatchSizes::Equal(size)) => size,
            (Divisor::Nominal, BatchSizes::Listed(_)) | (Divisor::Actual, _) => examples,
        };
        let step = Step {
            update: t,
            step_size: self.run.steps.at(t),
            divisor: divisor as f64,
            weight: self.run.weights.at(t),
        };
        self.iterate.update(self.model, batch, piece, &step)?;
        if piece.ends {
            (*self.update, self.before) = (t, 0);
            if self.run.weights.restarts_after(t) {
                self.iterate.restart();
            }
        } else {
            self.before = examples;
        }
        self.pace.advance(piece.examples)
    }
}
