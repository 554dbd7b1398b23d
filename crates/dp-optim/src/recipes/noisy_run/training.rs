//! The run itself.

use core::marker::PhantomData;
use std::sync::Arc;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, EventLog, ZeroOut};
use dp_data::{Block, BlockBuffer, Order, SampleSource};
use dp_losses::{Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::continual::MatrixFactorisation;
use dp_mechanisms::{Gaussian, ReleaseRng, Released};

use super::rule::Rule;
use super::{Batching, NoisyRun};
use crate::averaging::AveragingWeights;
use crate::engine::{
    BatchSizes, Buffered, Control, GradientEstimate, NoisyGradient, Passes, RowBatches, Run, SampledRun,
};
use crate::error::Error;
use crate::growth::Divisor;
use crate::recipes::recipe::{Expected, RecordAdjacency};
use crate::schedule::StepSizes;

/// What a training follows beside the run: noise and step sizes.
pub(in crate::recipes) struct Following<'t> {
    pub(in crate::recipes) std_dev: f64,
    pub(in crate::recipes) noise_mode: NoiseMode,
    pub(in crate::recipes) steps: &'t StepSizes,
    pub(in crate::recipes) weights: &'t AveragingWeights,
}

impl NoisyRun {
    /// Trains and returns the released output with its log.
    pub(in crate::recipes) fn train<F, A, S, R>(
        &self,
        following: &Following<'_>,
        source: &mut S,
        rng: &mut R,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error>
    where
        F: Real,
        A: RecordAdjacency,
        S: SampleSource<F> + ?Sized,
        R: ReleaseRng + ?Sized,
    {
        self.float.expect::<F>()?;
        let (row_norm, target_bound) = (self.row_norm, self.target_bound);
        Expected { n: self.n, dim: self.dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        if self.relation == self.relation_of_steps {
            return self.train_under::<F, A, S, R>(following, source, rng, control);
        }
        let (released, log) = self.train_under::<F, ZeroOut, S, R>(following, source, rng, control)?;
        Ok((released, A::from_null_records(log)))
    }

    /// Passes, how they are cut, and the order of the records.
    pub(in crate::recipes) fn passes(&self, key: [u8; 32]) -> (u64, BatchSizes, Order) {
        let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        match self.batching {
            Batching::Parties { rounds, parties, declared_order } => {
                // Parts that differ by one record at most.
                let part = |party: u64| count(self.n / parties + u64::from(party < self.n % parties));
                let parts: Arc<[usize]> = (0..parties).map(part).collect();
                // A record stays with its party.
                let keyed = Order::Keyed { key, fresh_each_pass: false };
                (rounds, BatchSizes::Listed(parts), if declared_order { Order::Declared } else { keyed })
            }
            Batching::Passes { passes, batch_size, declared_order } => {
                // A sum of all records has the same sensitivity in any order.
                let as_held = declared_order || batch_size >= self.n;
                // Correlated noise is for a record that takes part as many steps apart in each pass.
                let keyed = Order::Keyed { key, fresh_each_pass: self.factor.is_none() };
                (passes, BatchSizes::Equal(count(batch_size)), if as_held { Order::Declared } else { keyed })
            }
            Batching::Drawn(_) => (0, BatchSizes::Equal(1), Order::Declared),
        }
    }

    fn train_under<F, A, S, R>(
        &self,
        following: &Following<'_>,
        source: &mut S,
        rng: &mut R,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error>
    where
        F: Real,
        A: RecordAdjacency,
        S: SampleSource<F> + ?Sized,
        R: ReleaseRng + ?Sized,
    {
        let dim = usize::try_from(self.dim).map_err(|_| Error::Count {
            name: "dimension",
            value: self.dim,
            range: "what memory can address",
        })?;
        self.check_noise_mode(following.noise_mode)?;
        let noise = match self.stream::<A>(following.std_dev)? {
            Some(stream) => Law::Stream(Box::new(stream.with_noise_mode(following.noise_mode)?)),
            None => Law::Steps(self.noise::<A>(following.std_dev, following.noise_mode)?),
        };
        // A key of its own for each training, for the batches or the order: independent of the noise and of other runs.
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let training = Training { run: self, noise, following, key, source, rng, control, float: PhantomData };
        self.loss.visit_model(dim, training)
    }
}

/// The law of the noise.
enum Law<A: Adjacency> {
    /// On each step's sum by itself.
    Steps(Gaussian<A>),
    /// Correlated over the steps.
    Stream(Box<MatrixFactorisation<A>>),
}

/// Receives the model as a type.
struct Training<'t, 'c, F, A: Adjacency, S: ?Sized, R: ?Sized> {
    run: &'t NoisyRun,
    noise: Law<A>,
    following: &'t Following<'t>,
    key: [u8; 32],
    source: &'t mut S,
    rng: &'t mut R,
    control: &'t mut Control<'c>,
    float: PhantomData<F>,
}

impl<F, A, S, R> ModelVisitor<F> for Training<'_, '_, F, A, S, R>
where
    F: Real,
    A: Adjacency,
    S: SampleSource<F> + ?Sized,
    R: ReleaseRng + ?Sized,
{
    type Output = Result<(Released<Vec<F>>, EventLog<A>), Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let Self { run, noise, following, key, source, rng, control, .. } = self;
        let Following { steps, weights, std_dev, .. } = *following;
        let mut log = EventLog::new();
        let gradient = match noise {
            Law::Steps(noise) => NoisyGradient::start(&model, run.sum, noise.into(), run.plan, &mut log, rng)?,
            Law::Stream(stream) => NoisyGradient::start_stream(&model, run.sum, &stream, rng)?,
        };
        let microbatch = usize::try_from(run.sum.microbatch).unwrap_or(usize::MAX);
        let gradient = InPieces { gradient, microbatch, counted: BlockBuffer::default() };
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
                sampled.run(&model, source, &mut iterate, key, control)?;
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
        source.finish()?;
        let (mut output, InPieces { gradient, .. }) = iterate.into_parts();
        if let Some((mut map, step)) = last_map {
            map.apply(step, &mut output);
        }
        Ok((gradient.finish(output, &mut log)?, log))
    }
}

/// A noisy gradient of batches that may be larger than what is summed at a time.
///
/// Null records are left out before a batch is cut into pieces. So a null record that is drawn leaves the same bits as
/// one that is not, as amplification by sampling has it: where a neighbour holds one, a sum has one law, not two that
/// differ by where the pieces end.
struct InPieces<F, G> {
    gradient: G,
    microbatch: usize,
    counted: BlockBuffer<F>,
}

/// The examples of a batch that count; copied only where some do not.
pub(in crate::recipes) fn counted<'b, F: Copy>(batch: Block<'b, F>, buffer: &'b mut BlockBuffer<F>) -> Block<'b, F> {
    let Some(valid) = batch.valid.filter(|valid| valid.contains(&false)) else { return batch };
    buffer.clear();
    for (i, _) in (0..).zip(valid).filter(|(_, valid)| **valid) {
        buffer.push(&batch.slice(i..i + 1));
    }
    buffer.block(batch.dim())
}

/// A batch in pieces of at most so many examples.
pub(in crate::recipes) fn pieces<F: Copy>(
    batch: Block<'_, F>,
    microbatch: usize,
) -> impl Iterator<Item = Block<'_, F>> {
    let step = microbatch.max(1);
    (0..batch.len()).step_by(step).map(move |start| batch.slice(start..batch.len().min(start.saturating_add(step))))
}

impl<F, M, A, R> InPieces<F, NoisyGradient<'_, F, M, A, R>>
where
    F: Real,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: Adjacency,
    R: ReleaseRng + ?Sized,
{
    /// The sum of a batch's gradients, without noise.
    fn add(&mut self, model: &M, parameters: &[F], batch: Block<'_, F>, sum: &mut [F]) -> Result<(), Error> {
        let batch = counted(batch, &mut self.counted);
        sum.fill(F::zero());
        pieces(batch, self.microbatch)
            .try_for_each(|piece| self.gradient.add(model, parameters, piece, piece.len(), sum))
    }
}

impl<F, M, A, R> GradientEstimate<F, M> for InPieces<F, NoisyGradient<'_, F, M, A, R>>
where
    F: Real,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: Adjacency,
    R: ReleaseRng + ?Sized,
{
    #[inline]
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: Block<'_, F>,
        _examples: usize,
        sum: &mut [F],
    ) -> Result<(), Error> {
        self.add(model, parameters, batch, sum)?;
        self.gradient.release(sum)
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::ZeroOut;
    use dp_data::Examples;
    use dp_losses::{Softmax, SoftmaxModel};
    use dp_mechanisms::SeededRng;
    use dp_mechanisms::clip::ClippingNorm;
    use dp_mechanisms::steps::StepPlan;
    use dp_mechanisms::{Gaussian, L2Sensitivity};
    use rand::RngExt;

    use super::*;
    use crate::engine::{Contributions, StepSum};
    use crate::float::FloatKind;

    /// A null record, wherever it lies in a batch of several pieces, leaves the bits of the sum as they are without it.
    #[test]
    fn a_null_record_that_is_drawn_leaves_no_trace() {
        const COUNT: usize = 300;
        const DIM: usize = 5;
        const CLASSES: usize = 3;
        let model = SoftmaxModel::<f64>::new(DIM, Softmax::new(CLASSES as u32).unwrap());
        let contributions = Contributions::Clipped(ClippingNorm::new(0.7).unwrap());
        let sum = StepSum { contributions, examples: 1000, microbatch: 64, float: FloatKind::F64 };
        let sensitivity = L2Sensitivity::<ZeroOut>::new(sum.sensitivity(ZeroOut::KIND).unwrap()).unwrap();
        let noise = Gaussian::from_std_dev(sensitivity, 1.0).unwrap();
        let plan = StepPlan::AllRecords { steps: 100 };
        let (mut draws, mut rng) = (SeededRng::new(5), SeededRng::new(6));
        let gradient = NoisyGradient::start(&model, sum, noise.into(), plan, &mut EventLog::new(), &mut rng).unwrap();
        let mut pieces = InPieces { gradient, microbatch: 64, counted: BlockBuffer::default() };

        let rows: Vec<f64> = (0..COUNT * DIM).map(|_| draws.random_range(-0.4..0.4)).collect();
        let targets: Vec<f64> = (0..COUNT).map(|_| f64::from(draws.random_range(0..CLASSES as u32))).collect();
        let parameters: Vec<f64> = (0..DIM * CLASSES).map(|_| draws.random_range(-3.0..3.0)).collect();
        let mut sum_of = |rows: &[f64], targets: &[f64], valid: Option<&[bool]>| {
            let examples = Examples::dense(rows.to_vec(), targets.to_vec(), DIM).unwrap();
            let mut sum = vec![1.0; DIM * CLASSES];
            // Ends the step before.
            pieces.gradient.release(&mut [0.0; DIM * CLASSES]).unwrap();
            pieces.add(&model, &parameters, Block { valid, ..examples.block() }, &mut sum).unwrap();
            sum
        };
        let without = sum_of(&rows, &targets, None);
        for at in [0, 1, 63, 64, 150, COUNT] {
            let (mut rows, mut targets, mut valid) = (rows.clone(), targets.clone(), vec![true; COUNT]);
            rows.splice(at * DIM..at * DIM, [0.0; DIM]);
            targets.insert(at, 0.0);
            valid.insert(at, false);
            assert_eq!(sum_of(&rows, &targets, Some(&valid)), without, "{at}");
        }
        assert_eq!(sum_of(&rows, &targets, Some(&[false; COUNT])), [0.0; DIM * CLASSES]);
    }
}
