//! The training.

use dp_accountant::EventLog;
use dp_data::{Block, Order, RowSource};
use dp_losses::{Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::steps::StepNoise;
use dp_mechanisms::{LentRng, Released};
use rand::Rng as _;

use super::UpdatesRun;
use crate::engine::{
    AcceleratedDescent, BatchSizes, Buffered, Control, GradientDescent, NoisyGradient, Passes, RowBatches, Run, Step,
    StepBatches, UpdateRule,
};
use crate::error::Error;
use crate::growth::OrderPolicy;
use crate::recipes::linear::size;
use crate::recipes::recipe::RecordAdjacency;

pub(super) struct Training<'t, 'c, 'r, F, A: RecordAdjacency, O> {
    pub(super) planned: &'t UpdatesRun,
    pub(super) noise: StepNoise<A>,
    pub(super) source: &'t mut dyn RowSource<F>,
    pub(super) rng: &'t mut LentRng<'r>,
    pub(super) control: &'t mut Control<'c>,
    pub(super) observe: O,
}

impl<F, A: RecordAdjacency, O> Training<'_, '_, '_, F, A, O> {
    fn order(&mut self) -> Order {
        let recipe = &self.planned.recipe;
        // A sum of all records has the same sensitivity in any order.
        if recipe.declared_order || recipe.batch_size >= self.planned.problem.n {
            return Order::Declared;
        }
        let mut key = [0; 32];
        self.rng.fill_bytes(&mut key);
        Order::Keyed { key, fresh_each_pass: recipe.order == OrderPolicy::Fresh }
    }
}

impl<F, A, O> ModelVisitor<F> for Training<'_, '_, '_, F, A, O>
where
    F: Real,
    A: RecordAdjacency,
    O: FnMut(Observation<'_, F>),
{
    type Output = Result<(Released<Vec<F>>, EventLog<A>), Error>;

    fn visit<M>(mut self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let order = self.order();
        let Self { planned, noise, source, rng, control, observe } = self;
        let (recipe, terms) = (&planned.recipe, &planned.terms);
        let run = Run {
            n: planned.problem.n,
            batches: BatchSizes::Equal(size("batch size", terms.batch_size)?),
            divisor: recipe.divisor,
            steps: terms.step_sizes.clone(),
            weights: terms.weights.clone(),
        };
        let mut log = EventLog::new();
        let steps = StepBatches::Passes { n: run.n, sizes: run.batches.clone(), passes: recipe.passes };
        let gradient = NoisyGradient::start(&model, steps, terms.sum, noise, &mut log, rng)?;
        let start = vec![F::zero(); model.parameters()];
        let descent = GradientDescent { lambda: recipe.lambda, radius: recipe.radius };
        let rule = AcceleratedDescent::new(descent, recipe.descent.momentum(), &start);
        let rule = Observed { rule, observe };
        let mut iterate = Buffered::new(start, !run.weights.is_last(), gradient, rule);
        let mut batches = RowBatches::new(&mut *source, order);
        run.run(&model, &mut batches, &mut iterate, &mut Passes(recipe.passes), control)?;
        let (output, gradient) = iterate.into_parts();
        let weights = gradient.finish(output, &mut log)?;
        Ok((weights, log))
    }
}

/// The values released in an update: see [`UpdatesRun::train_observing`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<'o, F> {
    /// Number of the update, from 1.
    pub update: u64,
    /// The noisy sum of the batch's gradients.
    pub noisy_sum: &'o [F],
    /// The iterate after the update.
    pub iterate: &'o [F],
}

/// An update rule that passes its iterates to an observer.
struct Observed<U, O> {
    rule: U,
    observe: O,
}

impl<F, U: UpdateRule<F>, O: FnMut(Observation<'_, F>)> UpdateRule<F> for Observed<U, O> {
    #[inline]
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        self.rule.apply(parameters, gradient_sum, step);
        let iterate = self.rule.point(parameters);
        (self.observe)(Observation { update: step.update, noisy_sum: gradient_sum, iterate });
    }

    fn restart(&mut self, parameters: &mut [F]) {
        self.rule.restart(parameters);
    }

    fn point<'p>(&'p self, parameters: &'p [F]) -> &'p [F] {
        self.rule.point(parameters)
    }
}
