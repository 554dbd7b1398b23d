//! Gradient steps on one pass over the rows, cut into phases.

use dp_data::{Block, Order, RowSource};
use dp_losses::{Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::LentRng;

use super::release::PhaseSink;
use super::{Phase, PhasedRun};
use crate::averaging::{Averaging, AveragingWeights};
use crate::engine::{
    BatchSizes, Batches, Buffered, Control, GradientDescent, Iterate, Pace, Piece, PlainGradient, RowBatches, Scaled,
    Step, TwoParts, Visit, expect_rows,
};
use crate::error::Error;
use crate::growth::Arithmetic;
use crate::recipes::linear::size;

/// Runs the phases in this order of the rows, and returns the sink of their results.
pub(super) fn run<F: Real, K: PhaseSink<F>>(
    phased: &PhasedRun,
    arithmetic: Arithmetic,
    sink: K,
    source: &mut dyn RowSource<F>,
    order: Order,
    rng: &mut LentRng<'_>,
    control: &mut Control<'_>,
) -> Result<K, Error> {
    let phases = phased.phases();
    let weights: Vec<AveragingWeights> =
        phases.iter().map(|phase| Averaging::Uniform.prepare(phase.records - 1)).collect::<Result<_, _>>()?;
    let problem = &phased.problem;
    let visitor = Visitor { phased, arithmetic, weights: &weights, sink, source, order, rng, control };
    problem.setting.loss.visit_model(size("dimension", problem.dim)?, visitor)
}

struct Visitor<'t, 'c, 'r, F, K> {
    phased: &'t PhasedRun,
    arithmetic: Arithmetic,
    weights: &'t [AveragingWeights],
    sink: K,
    source: &'t mut dyn RowSource<F>,
    order: Order,
    rng: &'t mut LentRng<'r>,
    control: &'t mut Control<'c>,
}

impl<F: Real, K: PhaseSink<F>> ModelVisitor<F> for Visitor<'_, '_, '_, F, K> {
    type Output = Result<K, Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let (lambda, radius) = (self.phased.inputs.lambda, self.phased.inputs.radius);
        match self.arithmetic {
            Arithmetic::Scaled => self.run(&model, |start| Scaled::new(&model, start, true, 1, lambda, Some(radius))),
            Arithmetic::TwoParts => {
                self.run(&model, |start| TwoParts::new(&model, start, true, 1, lambda, Some(radius)))
            }
            Arithmetic::Buffered => self.run(&model, |start| {
                let rule = GradientDescent { lambda, radius: Some(radius) };
                Buffered::new(start, true, PlainGradient::new(&model, 1), rule)
            }),
        }
    }
}

impl<F: Real, K: PhaseSink<F>> Visitor<'_, '_, '_, F, K> {
    fn run<M, I>(self, model: &M, begin: impl Fn(Vec<F>) -> I) -> Result<K, Error>
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
        I: Iterate<F, M>,
    {
        let mut descent = Descent {
            model,
            phases: self.phased.phases(),
            weights: self.weights,
            iterate: Some(begin(self.sink.start().to_vec())),
            sink: self.sink,
            begin,
            read: 0,
            rng: self.rng,
            pace: Pace::new(self.control, 0),
        };
        let rows = RowBatches::new(self.source, self.order).pass(0, &BatchSizes::Equal(1), &mut descent)?;
        let Descent { sink, pace, .. } = descent;
        pace.finish()?;
        expect_rows(self.phased.problem.n, rows)?;
        Ok(sink)
    }
}

/// The state of the phases, which read one row after the other.
struct Descent<'d, 'c, 'r, M, K, I, B> {
    model: &'d M,
    phases: &'d [Phase],
    weights: &'d [AveragingWeights],
    sink: K,
    begin: B,
    /// The iterate of the current phase; `None` after the last.
    iterate: Option<I>,
    /// Number of records read in this phase.
    read: u64,
    rng: &'d mut LentRng<'r>,
    pace: Pace<'d, 'c>,
}

impl<M, K, I, B> Descent<'_, '_, '_, M, K, I, B> {
    /// Ends a phase with the average of all its points: its start, and those after each update.
    fn end<F>(&mut self, phase: Phase) -> Result<(), Error>
    where
        F: Real,
        M: Model<F>,
        K: PhaseSink<F>,
        I: Iterate<F, M>,
        B: Fn(Vec<F>) -> I,
    {
        let Some(iterate) = self.iterate.take() else { return Ok(()) };
        let start_weight: F = nalgebra::convert(1.0 / phase.records as f64);
        let mut average = iterate.into_output();
        for (average, &start) in average.iter_mut().zip(self.sink.start()) {
            *average = start_weight * start + (F::one() - start_weight) * *average;
        }
        self.sink.take(average, self.rng)?;
        self.read = 0;
        if self.sink.phase() < self.phases.len() {
            self.iterate = Some((self.begin)(self.sink.start().to_vec()));
        }
        Ok(())
    }
}

impl<F, M, K, I, B> Visit<F, M> for Descent<'_, '_, '_, M, K, I, B>
where
    F: Real,
    M: Model<F>,
    K: PhaseSink<F>,
    I: Iterate<F, M>,
    B: Fn(Vec<F>) -> I,
{
    #[inline]
    fn batch(&mut self, batch: M::Batch<'_>, piece: Piece) -> Result<(), Error> {
        let index = self.sink.phase();
        // Rows after the phases are read, so that their number can be checked, but not used.
        if let (Some(&phase), Some(weights), Some(iterate)) =
            (self.phases.get(index), self.weights.get(index), &mut self.iterate)
        {
            self.read += 1;
            if self.read < phase.records {
                let step =
                    Step { update: self.read, step_size: phase.step, divisor: 1.0, weight: weights.at(self.read) };
                iterate.update(self.model, batch, piece, &step)?;
            } else {
                self.end(phase)?;
            }
        }
        self.pace.advance(piece.examples)
    }
}
