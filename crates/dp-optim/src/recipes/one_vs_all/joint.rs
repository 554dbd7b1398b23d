//! One release of all classes' models together.

use dp_accountant::DpEvent;
use dp_losses::LossKind;

use super::RECIPE;
use crate::error::{Error, positive};
use crate::recipes::AnyRecipe;
use crate::recipes::bolt_on::{self, BoltOn, BoltOnDerivation, Derived, Noise, NoiseScale};
use crate::recipes::recipe::{Budget, RecordAdjacency};

/// `√classes · sensitivity`, rounded up.
fn stacked(sensitivity: f64, classes: u32) -> f64 {
    sensitivity * f64::from(classes).sqrt() * (1.0 + 4.0 * f64::EPSILON)
}

/// The event of the release of `classes` stacked models, from the derivation of one with the noise of all.
pub(super) fn event(one: &BoltOnDerivation, classes: u32) -> Result<DpEvent, Error> {
    let derived = Derived::new(&one.recipe, one.n, one.dim, one.relation)?;
    let sensitivity = stacked(derived.sensitivity, classes);
    match one.noise {
        NoiseScale::LaplaceBall { scale } => Ok(DpEvent::LaplaceBall {
            scale: positive("noise scale", scale)?,
            sensitivity,
            dim: weights(one.recipe.loss, one.dim, classes),
        }),
        NoiseScale::Gaussian { std_dev } => {
            Ok(DpEvent::Gaussian { std_dev: positive("standard deviation", std_dev)?, sensitivity })
        }
        NoiseScale::HiddenPositionGaussian { .. } => {
            Err(Error::NotProved { recipe: RECIPE, why: "a joint release does not count on hidden positions" })
        }
    }
}

fn weights(loss: LossKind, dim: u64, classes: u32) -> u64 {
    loss.parameters(dim).saturating_mul(u64::from(classes))
}

/// The joint release, planned.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Joint<A: RecordAdjacency> {
    /// What trains each model; its own noise is not used.
    pub(super) each: bolt_on::Plan<A>,
    pub(super) noise: Noise<A>,
    pub(super) derivation: BoltOnDerivation,
    pub(super) sensitivity: f64,
    weights: u64,
}

impl<A: RecordAdjacency> Joint<A> {
    pub(super) fn new(
        recipe: &AnyRecipe,
        n: u64,
        dim: u64,
        classes: u32,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        let AnyRecipe::BoltOn(recipe) = recipe else {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "only the bolt-on recipes release once, at the end: choose the composed share",
            });
        };
        // The stack's sensitivity holds for every position; nothing is gained by hiding it.
        let recipe = BoltOn { hide_position: false, ..recipe.clone() };
        let each = bolt_on::Plan::new(&recipe, n, dim, budget, copies)?;
        let mut derived = Derived::new(&recipe, n, dim, A::KIND)?;
        derived.sensitivity = stacked(derived.sensitivity, classes);
        let weights = weights(recipe.loss, dim, classes);
        let noise = Noise::<A>::calibrate(&recipe, &derived, weights, budget, copies)?;
        let derivation = BoltOnDerivation { recipe, relation: A::KIND, n, dim, noise: noise.scale() };
        Ok(Self { each, noise, derivation, sensitivity: derived.sensitivity, weights })
    }

    /// Root of the expected squared norm of the noise on all models.
    pub(super) fn noise_norm(&self) -> f64 {
        self.noise.mean_squared_norm(self.weights).sqrt()
    }
}
