//! Training with noise on every iterate, and the release of the last one.

use core::marker::PhantomData;

use dp_accountant::EventLog;
use dp_data::{Block, Order, RowSource};
use dp_losses::{Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::last_iterate::{LastIterate, LastIterateSession};
use dp_mechanisms::{Bounded, LentRng, Released};
use rand::Rng as _;

use super::Descent;
use crate::averaging::Averaging;
use crate::engine::{
    BatchSizes, Control, GradientDescent, GradientEstimate, Iterate, Passes, Piece, Pieces, PlainGradient, RowBatches,
    Run, Step, UpdateRule, project,
};
use crate::error::Error;
use crate::growth::Divisor;
use crate::recipes::linear::size;
use crate::recipes::recipe::RecordAdjacency;
use crate::schedule::Schedule;

impl Descent {
    /// Runs the descent under this noise and releases its last iterate.
    pub(super) fn train<F: Real, A: RecordAdjacency>(
        &self,
        std_dev: f64,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let order = if self.inputs.declared_order {
            Order::Declared
        } else {
            let mut key = [0; 32];
            rng.fill_bytes(&mut key);
            Order::Keyed { key, fresh_each_pass: false }
        };
        let dim = size("dimension", self.problem.dim)?;
        let run = self.run()?;
        let mechanism = self.mechanism::<A>(std_dev)?;
        let (mechanism, ball) = (&mechanism, self.ball(std_dev));
        let visitor =
            Visitor { descent: self, run: &run, mechanism, ball, source, order, rng, control, float: PhantomData };
        let (weights, log) = self.problem.setting.loss.visit_model(dim, visitor)?;
        // The radius is part of the guarantee; a ball added for the arithmetic is not.
        let weights = match self.inputs.radius {
            Some(radius) => weights.map(|mut weights| {
                project(&mut weights, radius);
                weights
            }),
            None => weights,
        };
        Ok((weights, log))
    }

    fn run(&self) -> Result<Run, Error> {
        let per_pass = self.updates_per_pass();
        let updates = per_pass.saturating_mul(self.passes);
        let Some(first) = self.updates.first() else {
            return Err(Error::Count { name: "updates", value: 0, range: "1 or more" });
        };
        let whole_batches = self.updates.iter().all(|update| update.batch_size == first.batch_size)
            && self.problem.n.div_ceil(first.batch_size) == per_pass;
        let batches = if whole_batches {
            BatchSizes::Equal(size("batch size", first.batch_size)?)
        } else {
            let mut sizes = Vec::with_capacity(size("updates", per_pass)?);
            for update in &self.updates {
                let batch = size("batch size", update.batch_size)?;
                sizes.extend(core::iter::repeat_n(batch, size("updates", update.count)?));
            }
            BatchSizes::Listed(sizes.into())
        };
        let schedule = if self.updates.iter().all(|update| update.step == first.step) {
            Schedule::Constant { step: first.step }
        } else {
            let mut values = Vec::with_capacity(size("updates", updates)?);
            for _ in 0..self.passes {
                for update in &self.updates {
                    values.extend(core::iter::repeat_n(update.step, size("updates", update.count)?));
                }
            }
            Schedule::Steps { values }
        };
        Ok(Run {
            n: self.problem.n,
            batches,
            divisor: Divisor::Nominal,
            steps: schedule.prepare(updates)?,
            weights: Averaging::Last.prepare(updates)?,
        })
    }
}

struct Visitor<'t, 'c, 'r, F, A: RecordAdjacency> {
    descent: &'t Descent,
    run: &'t Run,
    mechanism: &'t LastIterate<A>,
    ball: f64,
    source: &'t mut dyn RowSource<F>,
    order: Order,
    rng: &'t mut LentRng<'r>,
    control: &'t mut Control<'c>,
    float: PhantomData<F>,
}

impl<F: Real, A: RecordAdjacency> ModelVisitor<F> for Visitor<'_, '_, '_, F, A> {
    type Output = Result<(Released<Vec<F>>, EventLog<A>), Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let mut log = EventLog::new();
        let zeros = || vec![F::zero(); model.parameters()];
        let mut iterate = NoisyIterate {
            gradient: PlainGradient::new(&model, self.run.batches.largest()),
            rule: GradientDescent { lambda: self.descent.inputs.lambda, radius: None },
            parameters: zeros(),
            sum: zeros(),
            ball: self.ball,
            session: self.mechanism.start(&mut log, self.rng)?,
            planned: self.descent.updates_per_pass().saturating_mul(self.descent.passes),
            rng: self.rng,
        };
        let mut batches = RowBatches::new(&mut *self.source, self.order);
        let mut stop = Passes(self.descent.passes);
        self.run.run(&model, &mut batches, &mut iterate, &mut stop, self.control)?;
        let NoisyIterate { parameters, session, rng, .. } = iterate;
        let sensitivity = session.sensitivity();
        let last = Bounded::with_proven_sensitivity(parameters, sensitivity);
        let released = session.release(last, &mut log, rng)?;
        Ok((released, log))
    }
}

/// An iterate with noise after each update except the last, whose noise is added on release.
struct NoisyIterate<'m, 'r, 'l, F, M: Model<F>, A: RecordAdjacency> {
    gradient: PlainGradient<F, M>,
    rule: GradientDescent,
    parameters: Vec<F>,
    sum: Vec<F>,
    ball: f64,
    session: LastIterateSession<'m, A>,
    /// Total number of updates.
    planned: u64,
    rng: &'r mut LentRng<'l>,
}

impl<F: Real, M: Model<F>, A: RecordAdjacency> Iterate<F, M> for NoisyIterate<'_, '_, '_, F, M, A> {
    fn pieces(&self) -> Pieces {
        self.gradient.pieces()
    }

    #[inline]
    fn update(&mut self, model: &M, batch: M::Batch<'_>, piece: Piece, step: &Step) -> Result<(), Error> {
        // Updates after the last paid one would have no noise.
        if step.update > self.planned {
            return Err(dp_mechanisms::Error::SessionOver { what: "updates", most: self.planned }.into());
        }
        self.gradient.estimate(model, &self.parameters, batch, piece, &mut self.sum)?;
        if !piece.ends {
            return Ok(());
        }
        self.rule.apply(&mut self.parameters, &self.sum, step);
        if self.session.iterates_left() > 1 {
            let sensitivity = self.session.sensitivity();
            let iterate = Bounded::with_proven_sensitivity(&mut self.parameters[..], sensitivity);
            self.session.step(iterate, self.rng)?;
            project(&mut self.parameters, self.ball);
        }
        Ok(())
    }

    /// The output is the last iterate, so there is no average to restart from.
    fn restart(&mut self) {}

    fn current(&mut self) -> &[F] {
        &self.parameters
    }

    fn into_output(self) -> Vec<F> {
        self.parameters
    }
}
