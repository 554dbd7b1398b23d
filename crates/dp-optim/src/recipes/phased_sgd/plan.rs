//! A recipe with everything derived that does not need data.

#[cfg(any(test, feature = "audit"))]
use dp_data::Order;
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::derivation::{Derived, PhasedSgdDerivation};
use super::{PhasedSgd, RECIPE, training};
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::AnyDerivation;
#[cfg(any(test, feature = "audit"))]
use crate::recipes::phases::Unreleased;
use crate::recipes::phases::{Phase, PhaseNoise, Releases, noise_multiplier, order};
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary};
use crate::trained::Trained;

/// A Phased-SGD release, planned: phases, sensitivities, noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: PhasedSgdDerivation,
    derived: Derived,
    noise: PhaseNoise<A>,
    promise: Promise,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &PhasedSgd, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let noise_multiplier = noise_multiplier(RECIPE, budget, copies)?;
        let derived = Derived::new(recipe, n, dim, A::KIND, noise_multiplier)?;
        let noise = PhaseNoise::new(&derived.sensitivities, noise_multiplier, recipe.noise_mode)?;
        let promise = Promise::new(noise.event(), budget, copies)?;
        let derivation = PhasedSgdDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, noise_multiplier };
        Ok(Self { derivation, derived, noise, promise })
    }

    /// The phases, in order.
    pub fn phases(&self) -> &[Phase] {
        &self.derived.phases
    }

    /// The L2 sensitivity of each phase's average, rounding allowed for.
    pub fn sensitivities(&self) -> &[f64] {
        &self.derived.sensitivities
    }

    /// Standard deviation of each phase's noise.
    pub fn std_devs(&self) -> Vec<f64> {
        self.noise.std_devs().collect()
    }

    /// Root of the expected squared norm of the last phase's noise, which stays.
    pub fn noise_norm(&self) -> f64 {
        self.noise.std_devs().last().unwrap_or(0.0)
            * (self.derivation.recipe.loss.parameters(self.derivation.dim) as f64).sqrt()
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &PhasedSgdDerivation {
        &self.derivation
    }

    /// Trains on `source`, one pass, and releases the model.
    ///
    /// The order of the rows and the noise are drawn from `rng`. A generator that is not secret marks the result as not
    /// private.
    ///
    /// # Privacy
    /// As [`Planned::train`].
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], single
    /// precision, in which the later phases' steps would vanish. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        let Releases { last: weights, log, .. } = self.releases(source, rng, control)?;
        self.promise.kept(
            weights,
            log,
            AnyDerivation::PhasedSgd(self.derivation.clone()),
            self.derivation.recipe.noise_mode,
        )
    }

    /// All that a training releases.
    pub(crate) fn releases<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Releases<F, A>, Error> {
        let PhasedSgdDerivation { recipe, dim, .. } = &self.derivation;
        let order = order(recipe.declared_order, rng);
        let sink = self.noise.start(recipe.loss.parameters(*dim), recipe.radius)?;
        training::run(&self.derivation, &self.derived.phases, sink, source, order, &mut rng.lend(), control)?.finish()
    }

    /// The first phase's result before its noise, for audits and tests of the sensitivity.
    #[cfg(any(test, feature = "audit"))]
    pub(crate) fn first_phase_without_noise(
        &self,
        source: &mut crate::memory::MemorySource<f64>,
        start: Vec<f64>,
    ) -> Result<Vec<f64>, Error> {
        let sink = Unreleased { start, outputs: Vec::new() };
        // What is drawn from the generator is not used.
        let rng = &mut dp_mechanisms::SeededRng::new(0);
        let run = training::run(
            &self.derivation,
            &self.derived.phases,
            sink,
            source,
            Order::Declared,
            rng,
            &mut Control::default(),
        );
        Ok(run?.outputs.swap_remove(0))
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::PhasedSgd(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let first = self.derived.phases.first().map_or(0.0, |phase| phase.step);
        Summary {
            // Each phase has its own.
            sensitivity: None,
            rows: self.derivation.n,
            text: format!(
                "{} phases, the first with step {first:.4e}, noise of norm {:.4e} in the last, radius {:e}, lambda {:e}",
                self.derived.phases.len(),
                self.noise_norm(),
                self.derivation.recipe.radius,
                self.derivation.recipe.lambda
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
