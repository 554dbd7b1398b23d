//! The plan of a model's training, and the training.

use core::marker::PhantomData;

use dp_accountant::certificate::EpsilonDelta;
use dp_accountant::{DpEvent, EventLog, ZeroOut};
use dp_data::Samples;
use dp_losses::ChoosesFrom;
use dp_mechanisms::{ReleaseRng, Released};
use nalgebra::RealField;

use super::{ModelDerivation, StepSearch};
use crate::averaging::AveragingWeights;
use crate::engine::norm_follower::{Beside, NormFollower};
use crate::engine::step_search::StepSearcher;
use crate::engine::{
    Adapts, AfterUpdate, BatchKey, BatchLaw, Buffered, Control, NoisyGradient, SampledRun, Start, StepBatches,
};
use crate::error::Error;
use crate::recipes::noisy_run::rule::Rule;
use crate::recipes::noisy_sums::NoisySums;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::RecordAdjacency;
use crate::schedule::StepSizes;
use crate::trained::Trained;

/// The numbers of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    pub(super) law: BatchLaw,
    pub(super) sums: NoisySums,
    /// The divisor of a batch's sum: the mean number of samples.
    pub(super) divisor: f64,
    pub(super) steps: StepSizes,
    pub(super) weights: AveragingWeights,
}

/// A planned training of a model: sensitivity, noise, event and guarantee, from public numbers alone.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelPlan<A: RecordAdjacency> {
    derivation: ModelDerivation,
    resolved: Resolved,
    promise: Promise,
    relation: PhantomData<A>,
}

/// The objects of a training.
struct Training<'t, F, M, S> {
    model: &'t M,
    samples: &'t S,
    start: Start<F>,
    observer: &'t mut dyn FnMut(&AfterUpdate<'_, F>),
}

impl<A: RecordAdjacency> ModelPlan<A> {
    pub(super) fn new(derivation: ModelDerivation, resolved: Resolved, promise: Promise) -> Self {
        Self { derivation, resolved, promise, relation: PhantomData }
    }

    /// Returns the derivation of the release.
    pub fn derivation(&self) -> &ModelDerivation {
        &self.derivation
    }

    /// Returns the event of the release.
    pub fn event(&self) -> &DpEvent {
        self.promise.event()
    }

    /// Returns the reached guarantee, at most the requested one.
    pub fn reached(&self) -> EpsilonDelta {
        self.promise.reached()
    }

    /// Returns the standard deviation of the noise over the clipping norm C.
    pub fn noise_multiplier(&self) -> f64 {
        self.derivation.std_dev / self.derivation.recipe.clipping.norm().get()
    }

    /// Trains the model on `samples` from `start`, and releases it. After each step the observer sees the run.
    ///
    /// A training that was interrupted goes on from a [`RunState`](crate::engine::RunState) that the observer has taken, with the
    /// steps that are left. The event is that of all steps.
    ///
    /// # Privacy
    /// Initial parameters must not depend on the samples. What the observer sees is released, whether the training succeeds or not:
    /// the cost of all steps counts from the first on. A state must be of a training by the same plan, and serve once; steps that had
    /// begun after it must be counted by [`losing`](crate::engine::RunState::losing). With a generator that is not secret, here
    /// or before the state, the result is marked as not private.
    ///
    /// # Errors
    /// Another floating-point type, number of samples or number of parameters than planned, a model whose norms are too inexact to
    /// clip by ([`Error::Mechanism`]), [`Error::State`], and [`Error::Interrupted`].
    pub fn train<F, M, S>(
        &self,
        model: &M,
        samples: &S,
        start: impl Into<Start<F>>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observer: &mut dyn FnMut(&AfterUpdate<'_, F>),
    ) -> Result<Trained<F, A, ModelDerivation>, Error>
    where
        F: RealField + Copy,
        S: Samples,
        M: ChoosesFrom<F, S>,
        M::Pass: Send,
    {
        let Self { derivation, resolved: Resolved { sums, .. }, promise, .. } = self;
        derivation.recipe.float.expect::<F>()?;
        let (parameters, start) = (model.parameters() as u64, start.into());
        for (name, planned, found) in [
            ("n", derivation.n, samples.count()),
            ("parameters", derivation.parameters, parameters),
            ("parameters", derivation.parameters, start.parameters.len() as u64),
        ] {
            if planned != found {
                return Err(Error::Shape { name, planned, found });
            }
        }
        control.check()?;
        let training = Training { model, samples, start, observer };
        let (weights, log) = if sums.relation == sums.relation_of_steps {
            self.train_under::<F, M, S, A>(training, rng, control)?
        } else {
            let (weights, log) = self.train_under::<F, M, S, ZeroOut>(training, rng, control)?;
            (weights, A::from_null_records(log))
        };
        promise.kept(weights, log, derivation.clone(), derivation.recipe.noise_mode)
    }

    /// Returns the search of each step's size, under the relation of a step's noise.
    pub(crate) fn search<B: RecordAdjacency>(&self) -> Result<Option<StepSearcher<B>>, Error> {
        let (ModelDerivation { recipe, n, std_dev, .. }, Resolved { sums, divisor, .. }) =
            (&self.derivation, &self.resolved);
        let of_steps =
            |search: StepSearch| search.of_steps(*std_dev / sums.sensitivity()?, recipe.lambda, *n, *divisor);
        recipe.search.map(of_steps).transpose()
    }

    /// Returns the sensitivity of a step's sum.
    #[cfg(feature = "audit")]
    pub(crate) fn sensitivity(&self) -> Result<f64, Error> {
        self.resolved.sums.sensitivity()
    }

    /// Returns the mean number of samples of a batch, by which sums are divided.
    #[cfg(feature = "audit")]
    pub(crate) fn divisor(&self) -> f64 {
        self.resolved.divisor
    }

    fn train_under<F, M, S, B: RecordAdjacency>(
        &self,
        training: Training<'_, F, M, S>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<B>), Error>
    where
        F: RealField + Copy,
        S: Samples,
        M: ChoosesFrom<F, S>,
        M::Pass: Send,
    {
        let Training { model, samples, start, observer } = training;
        let ModelDerivation { recipe, n, std_dev, .. } = &self.derivation;
        let Resolved { law, sums, divisor, steps, weights } = &self.resolved;
        let noise = sums.noise::<B>(*std_dev, recipe.noise_mode)?;
        let Start { parameters: start, resumed } = start;
        let is_secret = rng.is_secret() && resumed.as_ref().is_none_or(|state| state.secret_noise);
        // A fresh key for each training, for the batches, independent of the noise and of other runs.
        let key = BatchKey::draw(rng);
        let batches = StepBatches::Drawn { n: *n, law: *law, steps: recipe.steps };
        let mut log = EventLog::new();
        let beside = match recipe.adaptive_norm {
            None => self.search()?.map_or(Beside::Nothing, |search| Beside::Search(Box::new(search))),
            Some(norm) => {
                let count = norm.count(B::KIND, *std_dev / sums.sensitivity()?);
                let first = recipe.clipping.norm().get();
                Beside::Count(NormFollower::new(first, (norm.quantile, norm.rate), count, *divisor)?)
            }
        };
        let gradient = NoisyGradient::start_beside(model, batches, sums.sum, noise.into(), beside, &mut log, rng)?;
        let rule = Rule::new(recipe.descent, (recipe.lambda, None), None, *std_dev, &start);
        let mut iterate = Buffered::new(start, !weights.is_last(), gradient, rule);
        let adapts = Adapts { searches: recipe.search.is_some(), follows: recipe.adaptive_norm.is_some() };
        resumed.map_or(Ok(()), |state| iterate.resume(state, adapts))?;
        if !is_secret {
            iterate.mark_not_secret();
        }
        let run = SampledRun {
            n: *n,
            law: *law,
            updates: recipe.steps,
            divisor: *divisor,
            steps: steps.clone(),
            weights: weights.clone(),
        };
        run.run_on_samples(model, samples, &mut iterate, key, control, observer)?;
        let (output, gradient) = iterate.into_parts();
        let released = gradient.finish(output, &mut log)?;
        if !is_secret {
            log.mark_not_private();
        }
        Ok((released, log))
    }
}
