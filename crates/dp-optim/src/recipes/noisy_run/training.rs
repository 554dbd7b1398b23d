//! The training.

use std::sync::Arc;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, EventLog, ZeroOut};
use dp_data::{Block, Order, RowSource, SourceError};
use dp_losses::{Model, ModelVisitor, ProximalMap, Real, ScaledSteps};
use dp_mechanisms::continual::MatrixFactorisation;
use dp_mechanisms::{Gaussian, LentRng, Released};
use rand::Rng as _;

use super::rule::Rule;
use super::{Batching, NoisyRun};
use crate::averaging::AveragingWeights;
use crate::engine::{
    AllElsewhere, BatchKey, BatchSizes, Batches, Buffered, Control, GradientEstimate, NoisyGradient, Passes,
    RowBatches, Run, SampledRun, StepBatches, SumGradient,
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
        if self.sums.relation == self.sums.relation_of_steps {
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
            None => Law::Steps(self.sums.noise::<A>(following.std_dev, following.noise_mode)?),
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
        let Following { steps, weights, .. } = *following;
        let mut log = EventLog::new();
        let description = source.describe()?;
        if let Some(sums) = source.sums() {
            let Law::Steps(noise) = noise else {
                return Err(SourceError::SumsOnly { engine: description.engine }.into());
            };
            let asked = (run.loss, model.parameters());
            let gradient =
                SumGradient::start(asked, run.step_batches(), &run.sums.sum, noise.into(), sums, &mut log, rng)
                    .map_err(|error| match error {
                        Error::NotProved { why, .. } => Error::NotProved { recipe: run.recipe, why },
                        error => error,
                    })?;
            let mut batches = AllElsewhere { description };
            return run.descend(&model, gradient, &mut batches, following, control, |gradient, output| {
                Ok((gradient.finish(output, &mut log)?, log))
            });
        }
        let gradient = match noise {
            Law::Steps(noise) => {
                NoisyGradient::start(&model, run.step_batches(), run.sums.sum, noise.into(), &mut log, rng)?
            }
            Law::Stream(stream) => NoisyGradient::start_stream(&model, run.step_batches(), run.sums.sum, &stream, rng)?,
        };
        let finish = |gradient: NoisyGradient<'_, F, M, A, _>, output| Ok((gradient.finish(output, &mut log)?, log));
        match run.batching {
            Batching::Drawn(law) => {
                let (mut iterate, last_map) = run.iterate(&model, gradient, following)?;
                let sampled = SampledRun {
                    n: run.n,
                    law,
                    updates: run.updates(),
                    divisor: run.divisor,
                    steps: steps.clone(),
                    weights: weights.clone(),
                };
                sampled.run(&model, source, &mut iterate, BatchKey::of(key), control)?;
                let (output, gradient) = with_last_map(iterate, last_map);
                finish(gradient, output)
            }
            Batching::Passes { .. } | Batching::Parties { .. } => {
                let (_, _, order) = run.passes(key);
                let mut batches = RowBatches::new(&mut *source, order);
                run.descend(&model, gradient, &mut batches, following, control, finish)
            }
        }
    }
}

/// The penalty's map for an average of iterates, and its step.
type LastMap = Option<(ProximalMap, f64)>;

/// The start of a run, and the map of its output.
type Start<F, G> = (Buffered<F, G, Rule<F>>, LastMap);

fn with_last_map<F: Real, G>(iterate: Buffered<F, G, Rule<F>>, last_map: LastMap) -> (Vec<F>, G) {
    let (mut output, gradient) = iterate.into_parts();
    if let Some((mut map, step)) = last_map {
        map.apply(step, &mut output);
    }
    (output, gradient)
}

impl NoisyRun {
    /// Returns the start of the run with this estimate of gradients, and the map of its output.
    fn iterate<F: Real, M: Model<F>, G>(
        &self,
        model: &M,
        gradient: G,
        &Following { steps, weights, std_dev, .. }: &Following<'_>,
    ) -> Result<Start<F, G>, Error> {
        let start = vec![F::zero(); model.parameters()];
        let map = self.proximal_map(steps)?;
        let rule = Rule::new(self.descent, (self.lambda, self.radius), map, std_dev, &start);
        let last_map = if weights.is_last() { None } else { self.last_map(steps)? };
        Ok((Buffered::new(start, !weights.is_last(), gradient, rule), last_map))
    }

    /// Runs passes over `batches`, and finishes with the output.
    fn descend<F: Real, M, G, B, T>(
        &self,
        model: &M,
        gradient: G,
        batches: &mut B,
        following: &Following<'_>,
        control: &mut Control<'_>,
        finish: impl FnOnce(G, Vec<F>) -> Result<T, Error>,
    ) -> Result<T, Error>
    where
        M: Model<F>,
        G: GradientEstimate<F, M>,
        B: Batches<F, M>,
    {
        let (mut iterate, last_map) = self.iterate(model, gradient, following)?;
        let (passes, sizes, _) = self.passes([0; 32]);
        let run = Run {
            n: self.n,
            batches: sizes,
            divisor: Divisor::Nominal,
            steps: following.steps.clone(),
            weights: following.weights.clone(),
        };
        run.run(model, batches, &mut iterate, &mut Passes(passes), control)?;
        let (output, gradient) = with_last_map(iterate, last_map);
        finish(gradient, output)
    }
}
