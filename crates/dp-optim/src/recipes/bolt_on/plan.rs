//! A recipe with everything derived that does not need data, and the training that follows it.

use dp_accountant::EventLog;
use dp_data::{Order, PassSource, SampleSource};
use dp_losses::{Constants, Real};
use dp_mechanisms::ReleaseRng;

use super::BoltOn;
use super::derivation::{BoltOnDerivation, Derived};
use super::noise::Noise;
use crate::derivation::Derivation;
use crate::engine::{BatchSizes, Control, Run, minimise, project};
use crate::error::Error;
use crate::growth::{Growth, OrderPolicy};
use crate::recipes::linear::LinearTraining;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary};
use crate::trained::Trained;

/// A bolt-on release, planned: sensitivity, noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: BoltOnDerivation,
    growth: Growth,
    constants: Constants,
    sensitivity: f64,
    minimise: Option<minimise::Certificate>,
    noise: Noise<A>,
    promise: Promise,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(in crate::recipes) fn new(
        recipe: &BoltOn,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        let derived = Derived::new(recipe, n, dim, A::KIND)?;
        let noise = Noise::<A>::calibrate(recipe, &derived, recipe.loss.parameters(dim), budget, copies)?;
        let promise = Promise::new(noise.event(), budget, copies)?;
        let derivation = BoltOnDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, noise: noise.scale() };
        let Derived { terms, sensitivity, minimise } = derived;
        Ok(Self { derivation, growth: terms.growth, constants: terms.constants, sensitivity, minimise, noise, promise })
    }

    /// The L2 sensitivity of the model before noise, rounding allowed for.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Root of the expected squared norm of the noise.
    pub fn noise_norm(&self) -> f64 {
        self.noise.mean_squared_norm(self.derivation.recipe.loss.parameters(self.derivation.dim)).sqrt()
    }

    /// The loss's constants that the plan rests on.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// The recursion's input: schedule, batches, constants.
    pub fn growth(&self) -> &Growth {
        &self.growth
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &BoltOnDerivation {
        &self.derivation
    }

    /// Trains on `source` and releases the model.
    ///
    /// The order of the rows and the noise are drawn from `rng`. A generator that is not secret marks the result as not
    /// private.
    ///
    /// # Privacy
    /// The released weights and the event are all that may be published. The source must keep the bounds on rows and
    /// targets that its description states ([`MemorySource`](crate::MemorySource) enforces them) and deliver the same
    /// records in every pass.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], a floating-point type other than
    /// planned. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn PassSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        let output = self.train_unreleased(source, rng, control)?;
        let recipe = &self.derivation.recipe;
        let mut log = EventLog::new();
        let mut weights = self.noise.release(output, &mut log, rng)?;
        if let Some(radius) = recipe.radius {
            weights = weights.map(|mut weights| {
                project(&mut weights, radius);
                weights
            });
        }
        Ok(self.promise.kept(weights, log, Derivation::BoltOn(self.derivation.clone()), self.noise.mode()))
    }

    /// The output of a run in the recipe's order, before its noise: as private as the data.
    pub(in crate::recipes) fn train_unreleased<F: Real>(
        &self,
        source: &mut dyn PassSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let recipe = &self.derivation.recipe;
        recipe.float.expect::<F>()?;
        let order = if recipe.declared_order {
            Order::Declared
        } else {
            // A key of its own for each training: a position that was hidden once must not be the same in the next run.
            let mut key = [0; 32];
            rng.fill_bytes(&mut key);
            Order::Keyed { key, fresh_each_pass: recipe.order == OrderPolicy::Fresh }
        };
        self.training()?.train(source, order, control)
    }

    /// The output of a run before its noise, for audits of the sensitivity.
    #[cfg(feature = "audit")]
    pub(crate) fn train_without_noise(
        &self,
        source: &mut dyn PassSource<f64>,
        order: Order,
    ) -> Result<Vec<f64>, Error> {
        self.training()?.train(source, order, &mut Control::default())
    }

    /// The parts of the engine.
    fn training(&self) -> Result<LinearTraining, Error> {
        let (recipe, growth) = (&self.derivation.recipe, &self.growth);
        let updates = growth.updates_per_pass().saturating_mul(growth.passes);
        let size = |name, value: u64| {
            usize::try_from(value).map_err(|_| Error::Count { name, value, range: "what memory can address" })
        };
        Ok(LinearTraining {
            loss: recipe.loss,
            lambda: recipe.lambda,
            radius: recipe.radius,
            dim: size("dimension", self.derivation.dim)?,
            row_norm: recipe.row_norm,
            target_bound: recipe.target_bound,
            run: Run {
                n: growth.n,
                batches: BatchSizes::Equal(size("batch size", growth.batch_size.min(growth.n))?),
                divisor: growth.divisor,
                steps: growth.schedule.prepare(updates)?,
                weights: growth.averaging.prepare(updates)?,
            },
            passes: growth.passes,
            arithmetic: recipe.arithmetic,
            minimise: self.minimise,
        })
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> Derivation {
        Derivation::BoltOn(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let recipe = &self.derivation.recipe;
        Summary {
            sensitivity: Some(self.sensitivity),
            rows: self.derivation.n.saturating_mul(recipe.passes),
            text: format!(
                "sensitivity {:.4e}, noise of norm {:.4e}, {} passes, batches of {}, lambda {:e}",
                self.sensitivity,
                self.noise_norm(),
                recipe.passes,
                recipe.batch_size,
                recipe.lambda
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
