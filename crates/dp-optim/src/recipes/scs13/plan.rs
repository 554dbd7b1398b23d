//! A recipe with everything derived that does not need data, and the training that follows it.

use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;
use dp_mechanisms::steps::StepNoise;
use dp_mechanisms::{PrivacyEvent, steps::StepPlan};

use super::derivation::Scs13Derivation;
use super::noise::Calibrated;
use super::training::{Observation, Training};
use super::{Scs13, Terms};
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::AnyDerivation;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary};
use crate::trained::Trained;

/// A release of SCS13, planned: sensitivity, noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    pub(super) derivation: Scs13Derivation,
    pub(super) terms: Terms,
    pub(super) noise: StepNoise<A>,
    noise_norm: f64,
    pub(super) promise: Promise,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &Scs13, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let terms = recipe.terms(n, dim, A::KIND)?;
        let calibrated = Calibrated::new(recipe, &terms, budget, copies)?;
        let noise_norm = calibrated.mean_squared_norm(terms.dim).sqrt();
        recipe.check_range(&terms, noise_norm)?;
        let noise = calibrated.mechanism::<A>(recipe, &terms)?;
        let promise = Promise::new(terms.steps.event(noise.event()), budget, copies)?;
        let derivation = Scs13Derivation { recipe: recipe.clone(), relation: A::KIND, n, dim, noise: calibrated.scale };
        Ok(Self { derivation, terms, noise, noise_norm, promise })
    }

    /// The L2 sensitivity of the sum of a batch's gradients, rounding allowed for.
    pub fn sensitivity(&self) -> f64 {
        self.terms.sensitivity
    }

    /// The noise on the sum of each batch.
    pub fn noise(&self) -> &StepNoise<A> {
        &self.noise
    }

    /// Root of the expected squared norm of the noise on a batch's sum.
    pub fn noise_norm(&self) -> f64 {
        self.noise_norm
    }

    /// How the steps share the records.
    pub fn steps(&self) -> StepPlan {
        self.terms.steps
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &Scs13Derivation {
        &self.derivation
    }

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// The source must keep the bounds on rows and targets that its description states
    /// ([`MemorySource`](crate::MemorySource) enforces them) and deliver the same records in every pass. A generator that
    /// is not secret marks the result as not private.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], a
    /// floating-point type other than planned. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.train_observing(source, &mut rng.lend(), control, |_| {})
    }

    /// The same, showing every update.
    ///
    /// # Privacy
    /// What is shown is covered by the event, like the released model. It may be published with its certificate, once the
    /// training has ended.
    ///
    /// # Errors
    /// As [`train`](Self::train).
    pub fn train_observing<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observe: impl FnMut(Observation<'_, F>),
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.derivation.recipe.float.expect::<F>()?;
        Training { plan: self, source, rng, control, observe, float: core::marker::PhantomData }.run()
    }

    /// The sum of the gradients of a batch at some parameters, as training computes it before its noise.
    #[cfg(feature = "audit")]
    pub(crate) fn sum_without_noise(
        &self,
        batch: &dp_data::Examples<f64>,
        parameters: &[f64],
    ) -> Result<Vec<f64>, Error> {
        let loss = self.derivation.recipe.loss;
        let dim = crate::recipes::linear::size("dimension", self.derivation.dim)?;
        loss.visit_model(dim, super::training::Sum { plan: self, batch: batch.block(), parameters })
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::Scs13(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let recipe = &self.derivation.recipe;
        let momentum = recipe.descent.in_words();
        Summary {
            sensitivity: Some(self.sensitivity()),
            rows: self.derivation.n.saturating_mul(recipe.passes),
            text: format!(
                "sensitivity {:.4e} of each of {} sums, noise of norm {:.4e} on each, {} passes, batches of {}{momentum}, lambda {:e}",
                self.sensitivity(),
                self.terms.steps.steps(),
                self.noise_norm,
                recipe.passes,
                self.terms.batch_size,
                recipe.lambda
            ),
        }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.train(source, rng, control)
    }
}
