//! DP-SVRG with everything derived that does not need data.

use core::marker::PhantomData;

use dp_data::SampleSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::derivation::DpSvrgDerivation;
use super::training::{Following, Observation};
use super::{DpSvrg, RECIPE, Svrg};
use crate::averaging::AveragingWeights;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary, least_scale};
use crate::schedule::StepSizes;
use crate::trained::Trained;

/// A release by DP-SVRG, planned: sensitivities, noises, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: DpSvrgDerivation,
    run: Svrg,
    steps: StepSizes,
    weights: AveragingWeights,
    promise: Promise,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &DpSvrg, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let run = recipe.run(n, dim, A::KIND)?;
        run.steps.check_noise_mode(recipe.noise_mode)?;
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let (of_full, of_step) = (run.full_sensitivity()?, run.steps.sensitivity()?);
        // What cannot be stated protects nothing.
        let unstated = |_| dp_accountant::DpEvent::NonPrivate;
        // The noise on full gradients as if they were all there is, then as much as leaves the steps their share.
        let alone = least_scale(budget, copies, |multiplier| {
            run.event_of_full(multiplier * of_full).map_or_else(unstated, |event| run.under_relation(event))
        })?;
        let full_std_dev = alone * of_full / recipe.full_share.sqrt();
        let multiplier = least_scale(budget, copies, |multiplier| {
            run.event(full_std_dev, multiplier * of_step).unwrap_or_else(unstated)
        })?;
        let std_dev = multiplier * of_step;
        let updates = run.steps.updates();
        let steps = recipe.resolved_schedule(updates).prepare(updates)?;
        let weights = recipe.averaging.prepare(updates)?;
        run.steps.check_range(&steps, run.largest_sum(full_std_dev, std_dev), std_dev)?;
        let promise = Promise::new(run.event(full_std_dev, std_dev)?, budget, copies)?;
        let recipe = recipe.clone();
        let derivation = DpSvrgDerivation { recipe, relation: A::KIND, n, dim, full_std_dev, std_dev };
        Ok(Self { derivation, run, steps, weights, promise, relation: PhantomData })
    }

    /// The L2 sensitivity of the sum of all records' gradients, rounding allowed for.
    pub fn full_sensitivity(&self) -> Result<f64, Error> {
        self.run.full_sensitivity()
    }

    /// The L2 sensitivity of a batch's sum of differences in units of D, rounding allowed for: to a record's presence under
    /// Poisson sampling, else to the relation's change of a record.
    pub fn sensitivity(&self) -> Result<f64, Error> {
        self.run.steps.sensitivity()
    }

    /// σ_g: standard deviation of the noise on each coordinate of the sum of all records' gradients.
    pub fn full_std_dev(&self) -> f64 {
        self.derivation.full_std_dev
    }

    /// σ: standard deviation of the noise on each coordinate of a batch's sum of differences, in units of D.
    pub fn std_dev(&self) -> f64 {
        self.derivation.std_dev
    }

    /// Number of steps of all epochs.
    pub fn steps(&self) -> u64 {
        self.run.steps.updates()
    }

    /// What a batch's sum is divided by: the mean number of records in it.
    pub fn divisor(&self) -> f64 {
        self.run.steps.divisor
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &DpSvrgDerivation {
        &self.derivation
    }

    /// The steps, as they are run.
    #[cfg(feature = "audit")]
    pub(crate) fn steps_run(&self) -> &crate::recipes::noisy_run::NoisyRun {
        &self.run.steps
    }

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// The source must keep the bounds on rows and targets that its description states
    /// ([`MemorySource`](crate::MemorySource) enforces them) and deliver the same records in every pass and step. Batches and
    /// noise are drawn from `rng`, each from a key of its own; a generator that is not secret marks the result as not
    /// private.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], a
    /// floating-point type other than planned. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn SampleSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        self.train_observing(source, rng, control, &mut |_| {})
    }

    /// The same, showing each release to `observe`.
    pub(crate) fn train_observing<F: Real>(
        &self,
        source: &mut dyn SampleSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observe: &mut dyn FnMut(Observation<'_, F>),
    ) -> Result<Trained<F, A>, Error> {
        let DpSvrgDerivation { recipe, full_std_dev, std_dev, .. } = &self.derivation;
        let following = Following {
            full_std_dev: *full_std_dev,
            std_dev: *std_dev,
            noise_mode: recipe.noise_mode,
            steps: &self.steps,
            weights: &self.weights,
        };
        let (weights, log) =
            self.run.train(&following, self.promise.event(), source, &mut rng.lend(), control, observe)?;
        Ok(self.promise.kept(weights, log, Derivation::DpSvrg(self.derivation.clone()), recipe.noise_mode))
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> Derivation {
        Derivation::DpSvrg(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let DpSvrgDerivation { n, full_std_dev, std_dev, .. } = &self.derivation;
        let (run, root) = (&self.run, (self.run.steps.parameters() as f64).sqrt());
        Summary {
            sensitivity: None,
            rows: n.saturating_mul(run.epochs).saturating_add(run.steps.rows()),
            text: format!(
                "{} gradients of all records with noise of norm {:.4e}, {} with noise of norm {:.4e} times the bound on a \
                 record's difference, lambda {:e}",
                run.epochs,
                full_std_dev * root,
                run.steps.describe_batches(),
                std_dev * root,
                run.steps.lambda,
            ),
        }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn SampleSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        self.train(source, rng, control)
    }
}
