//! Noisy moments with everything derived that does not need data, and the release that follows it.

use core::marker::PhantomData;

use dp_accountant::EventLog;
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;
use nalgebra::convert;

use super::stage::Stage;
use super::{NoisyMoments, NoisyMomentsDerivation};
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::AnyDerivation;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// A release of noisy moments, planned: noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: NoisyMomentsDerivation,
    sensitivity: f64,
    promise: Promise,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &NoisyMoments, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        recipe.check(n, dim)?;
        let stage = recipe.stage(n, dim);
        let (sensitivity, moments) = (stage.sensitivity::<A>()?, stage.moments());
        let unit = NoiseScale::new(!(budget.delta.get() > 0.0), 1.0);
        let at = |multiplier: f64| unit.with_scale(multiplier * sensitivity);
        let multiplier = least_scale(budget, copies, |multiplier| at(multiplier).event(sensitivity, moments))?;
        let noise = at(multiplier);
        let derivation = NoisyMomentsDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, noise };
        let promise = Promise::new(stage.event::<A>(noise)?, budget, copies)?;
        Ok(Self { derivation, sensitivity, promise, relation: PhantomData })
    }

    /// The noise on the moments.
    pub fn noise(&self) -> NoiseScale {
        self.derivation.noise
    }

    /// What the moments are taken of.
    pub(crate) fn stage(&self) -> Stage {
        let NoisyMomentsDerivation { recipe, n, dim, .. } = &self.derivation;
        recipe.stage(*n, *dim)
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &NoisyMomentsDerivation {
        &self.derivation
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::NoisyMoments(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let NoisyMomentsDerivation { recipe, n, noise, .. } = &self.derivation;
        let moments = self.stage().moments();
        Summary {
            sensitivity: Some(self.sensitivity),
            rows: *n,
            text: format!(
                "sensitivity {:.4e} of {moments} moments, noise of norm {:.4e} on them, lambda {:e}",
                self.sensitivity,
                noise.coordinate_std_dev(moments) * (moments as f64).sqrt(),
                recipe.lambda,
            ),
        }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        let NoisyMomentsDerivation { recipe, n, dim, noise, .. } = &self.derivation;
        let (row_norm, target_bound) = (recipe.row_norm, recipe.target_bound);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        let mut log = EventLog::new();
        let (stage, ridge) = (self.stage(), recipe.lambda * *n as f64);
        let moments = stage.moments_released::<F, A>(*noise, recipe.noise_mode, source, &mut log, rng, control)?;
        source.finish()?;
        let weights = stage.solve(moments, *noise, ridge)?.map(|weights| weights.into_iter().map(convert).collect());
        self.promise.kept(weights, log, Planned::<A>::derivation(self), recipe.noise_mode)
    }
}
