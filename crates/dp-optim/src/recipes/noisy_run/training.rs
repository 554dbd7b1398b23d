//! The training.

use std::sync::Arc;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, EventLog, ZeroOut};
use dp_data::{Block, Order, RowSource};
use dp_losses::{Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::continual::MatrixFactorisation;
use dp_mechanisms::{Gaussian, LentRng, Released};
use rand::Rng as _;

use super::rule::Rule;
use super::{Batching, NoisyRun};
use crate::averaging::AveragingWeights;
use crate::engine::{
    BatchKey, BatchSizes, Buffered, Control, NoisyGradient, Passes, RowBatches, Run, SampledRun, StepBatches,
};
use crate::error::Error;
use crate::growth::Divisor;
use crate::recipes::linear::size;
use crate::recipes::recipe::RecordAdjacency;
use crate::schedule::StepSizes;

pub(in crate::recipes) struct Following<'t> {
    pub(in crate::recipes) std_dev: f64,
    pub(in crate::recipes) noise_mode: NoiseMode,
    pub(in crate::recipes) steps: &'t StepSizes,
    pub(in crate::recipes) weights: &'t AveragingWeights,
}

impl NoisyRun {
    pub(in crate::recipes) fn train<F: Real, A: RecordAdjacency>(
        &self,
        following: &Following<'_>,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        if self.relation == self.relation_of_steps {
            return self.train_under::<F, A>(following, source, rng, control);
        }
        let (released, log) = self.train_under::<F, ZeroOut>(following, source, rng, control)?;
        Ok((released, A::from_null_records(log)))
    }

    /// Returns the number of passes, their batch sizes, and the order of the records.
    pub(in crate::recipes) fn passes(&self, key: [u8; 32]) -> (u64, BatchSizes, Order) {
        let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        match self.batching {
            Batching::Parties { rounds, parties, declared_order } => {
                // Parts that differ by at most one record.
                let part = |party: u64| count(self.n / parties + u64::from(party < self.n % parties));
                let parts: Arc<[usize]> = (0..parties).map(part).collect();
                // A record stays with its party.
                let keyed = Order::Keyed { key, fresh_each_pass: false };
                (rounds, BatchSizes::Listed(parts), if declared_order { Order::Declared } else { keyed })
            }
            Batching::Passes { passes, batch_size, declared_order } => {
                // A sum of all records has the same sensitivity in any order.
                let as_held = declared_order || batch_size >= self.n;
                // Correlated noise requires that a record takes part at the same distance in each pass.
                let keyed = Order::Keyed { key, fresh_each_pass: self.factor.is_none() };
                (passes, BatchSizes::Equal(count(batch_size)), if as_held { Order::Declared } else { keyed })
            }
            Batching::Drawn(_) => (0, BatchSizes::Equal(1), Order::Declared),
        }
    }

    /// Returns the batches of all steps, as they are paid for and driven.
    fn step_batches(&self) -> StepBatches {
        match self.batching {
            Batching::Drawn(law) => StepBatches::Drawn { n: self.n, law, steps: self.updates() },
            Batching::Passes { .. } | Batching::Parties { .. } => {
                let (passes, sizes, _) = self.passes([0; 32]);
                StepBatches::Passes { n: self.n, sizes, passes }
            }
        }
    }

    fn train_under<F: Real, A: RecordAdjacency>(
        &self,
        following: &Following<'_>,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let dim = size("dimension", self.dim)?;
        let noise = match self.stream::<A>(following.std_dev)? {
            Some(stream) => Law::Stream(Box::new(stream.with_noise_mode(following.noise_mode)?)),
            None => Law::Steps(self.noise::<A>(following.std_dev, following.noise_mode)?),
        };
        // A fresh key for each training, for the batches or the order, independent of the noise and of other runs.
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let training = Training { run: self, noise, following, key, source, rng, control };
        self.loss.visit_model(dim, training)
    }
}

enum Law<A: Adjacency> {
    /// Independent noise on each step's sum.
    Steps(Gaussian<A>),
    /// Noise correlated over the steps.
    Stream(Box<MatrixFactorisation<A>>),
}

struct Training<'t, 'c, 'r, F, A: Adjacency> {
    run: &'t NoisyRun,
    noise: Law<A>,
    following: &'t Following<'t>,
    key: [u8; 32],
    source: &'t mut dyn RowSource<F>,
    rng: &'t mut LentRng<'r>,
    control: &'t mut Control<'c>,
}

impl<F: Real, A: Adjacency> ModelVisitor<F> for Training<'_, '_, '_, F, A> {
    type Output = Result<(Released<Vec<F>>, EventLog<A>), Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let Self { run, noise, following, key, source, rng, control, .. } = self;
        let Following { steps, weights, std_dev, .. } = *following;
        let mut log = EventLog::new();
        let gradient = match noise {
            Law::Steps(noise) => {
                NoisyGradient::start(&model, run.step_batches(), run.sum, noise.into(), &mut log, rng)?
            }
            Law::Stream(stream) => NoisyGradient::start_stream(&model, run.step_batches(), run.sum, &stream, rng)?,
        };
        let start = vec![F::zero(); model.parameters()];
        let rule = Rule::new(run, steps, std_dev, &start)?;
        let last_map = if weights.is_last() { None } else { run.last_map(steps)? };
        let mut iterate = Buffered::new(start, !weights.is_last(), gradient, rule);
        match run.batching {
            Batching::Drawn(law) => {
                let sampled = SampledRun {
                    n: run.n,
                    law,
                    updates: run.updates(),
                    divisor: run.divisor,
                    steps: steps.clone(),
                    weights: weights.clone(),
                };
                sampled.run(&model, source, &mut iterate, BatchKey::of(key), control)?;
            }
            Batching::Passes { .. } | Batching::Parties { .. } => {
                let (passes, batches, order) = run.passes(key);
                let passed = Run {
                    n: run.n,
                    batches,
                    divisor: Divisor::Nominal,
                    steps: steps.clone(),
                    weights: weights.clone(),
                };
                let mut batches = RowBatches::new(&mut *source, order);
                passed.run(&model, &mut batches, &mut iterate, &mut Passes(passes), control)?;
            }
        }
        let (mut output, gradient) = iterate.into_parts();
        if let Some((mut map, step)) = last_map {
            map.apply(step, &mut output);
        }
        Ok((gradient.finish(output, &mut log)?, log))
    }
}
