//! One pass over the rows, cut into phases.

use core::marker::PhantomData;

use dp_data::{Block, Order, RowSource};
use dp_losses::{Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::ReleaseRng;

use super::derivation::PhasedSgdDerivation;
use crate::averaging::{Averaging, AveragingWeights};
use crate::engine::{
    BatchSizes, Batches, Buffered, Control, GradientDescent, Iterate, Pace, PlainGradient, RowBatches, Scaled, Step,
    TwoParts, Visit, expect_rows,
};
use crate::error::Error;
use crate::float::FloatKind;
use crate::growth::Arithmetic;
use crate::recipes::phases::{Phase, PhaseSink};
use crate::recipes::recipe::Expected;

/// Runs the phases in this order of the rows, and returns what received their results.
pub(super) fn run<F, K, S, R>(
    derivation: &PhasedSgdDerivation,
    phases: &[Phase],
    sink: K,
    source: &mut S,
    order: Order,
    rng: &mut R,
    control: &mut Control<'_>,
) -> Result<K, Error>
where
    F: Real,
    K: PhaseSink<F>,
    S: RowSource<F> + ?Sized,
    R: ReleaseRng + ?Sized,
{
    let PhasedSgdDerivation { recipe, n, dim, .. } = derivation;
    FloatKind::F64.expect::<F>()?;
    Expected { n: *n, dim: *dim, row_norm: recipe.row_norm, target_bound: recipe.target_bound }
        .check(&source.describe()?)?;
    control.check()?;
    let weights: Vec<AveragingWeights> =
        phases.iter().map(|phase| Averaging::Uniform.prepare(phase.records - 1)).collect::<Result<_, _>>()?;
    let visitor =
        Visitor { derivation, phases, weights: &weights, sink, source, order, rng, control, float: PhantomData };
    let too_large = |_| Error::Count { name: "dimension", value: *dim, range: "what memory can address" };
    recipe.loss.visit_model(usize::try_from(*dim).map_err(too_large)?, visitor)
}

/// Receives the model as a type.
struct Visitor<'t, 'c, F, K, S: ?Sized, R: ?Sized> {
    derivation: &'t PhasedSgdDerivation,
    phases: &'t [Phase],
    weights: &'t [AveragingWeights],
    sink: K,
    source: &'t mut S,
    order: Order,
    rng: &'t mut R,
    control: &'t mut Control<'c>,
    float: PhantomData<F>,
}

impl<F, K, S, R> ModelVisitor<F> for Visitor<'_, '_, F, K, S, R>
where
    F: Real,
    K: PhaseSink<F>,
    S: RowSource<F> + ?Sized,
    R: ReleaseRng + ?Sized,
{
    type Output = Result<K, Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let recipe = &self.derivation.recipe;
        let (lambda, radius) = (recipe.lambda, recipe.radius);
        match recipe.arithmetic {
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

impl<F, K, S, R> Visitor<'_, '_, F, K, S, R>
where
    F: Real,
    K: PhaseSink<F>,
    S: RowSource<F> + ?Sized,
    R: ReleaseRng + ?Sized,
{
    fn run<M, I>(self, model: &M, begin: impl Fn(Vec<F>) -> I) -> Result<K, Error>
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
        I: Iterate<F, M>,
    {
        let mut descent = Descent {
            model,
            phases: self.phases,
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
        expect_rows(self.derivation.n, rows)?;
        self.source.finish()?;
        Ok(sink)
    }
}

/// The phases as they read one row after the other.
struct Descent<'d, 'c, M, K, I, B, R: ?Sized> {
    model: &'d M,
    phases: &'d [Phase],
    weights: &'d [AveragingWeights],
    sink: K,
    begin: B,
    /// Of the phase that is under way; `None` after the last.
    iterate: Option<I>,
    /// Records that this phase has read.
    read: u64,
    rng: &'d mut R,
    pace: Pace<'d, 'c>,
}

impl<M, K, I, B, R: ?Sized> Descent<'_, '_, M, K, I, B, R> {
    /// The average of all points of the phase: its start, and those after each update.
    fn end<F>(&mut self, phase: Phase) -> Result<(), Error>
    where
        F: Real,
        M: Model<F>,
        K: PhaseSink<F>,
        I: Iterate<F, M>,
        B: Fn(Vec<F>) -> I,
        R: ReleaseRng,
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

impl<F, M, K, I, B, R> Visit<F, M> for Descent<'_, '_, M, K, I, B, R>
where
    F: Real,
    M: Model<F>,
    K: PhaseSink<F>,
    I: Iterate<F, M>,
    B: Fn(Vec<F>) -> I,
    R: ReleaseRng + ?Sized,
{
    #[inline]
    fn batch(&mut self, batch: M::Batch<'_>, examples: usize) -> Result<(), Error> {
        let index = self.sink.phase();
        // What the phases leave over is read, so that the count of rows can be checked, and not used.
        if let (Some(&phase), Some(weights), Some(iterate)) =
            (self.phases.get(index), self.weights.get(index), &mut self.iterate)
        {
            self.read += 1;
            if self.read < phase.records {
                let step =
                    Step { update: self.read, step_size: phase.step, divisor: 1.0, weight: weights.at(self.read) };
                iterate.update(self.model, batch, examples, &step)?;
            } else {
                self.end(phase)?;
            }
        }
        self.pace.advance(examples)
    }
}
