//! The joint release of all classes' models.

use dp_accountant::{Adjacency, DpEvent};

use super::RECIPE;
use crate::derivation::Derivation;
use crate::error::Error;
use crate::recipes::AnyRecipe;
use crate::recipes::algorithm::Run as _;
use crate::recipes::bolt_on::{BoltOn, OutputNoiseScale, OutputRun};
use crate::recipes::noise_scale::OneNoise;
use crate::recipes::problem::Problem;
use crate::recipes::recipe::Budget;

/// Returns the event of the release of `classes` stacked models, from the derivation of one with the noise of all.
pub(super) fn event(one: &Derivation<BoltOn>, classes: u32) -> Result<DpEvent, Error> {
    let noise = one.calibrated.noise;
    if matches!(noise, OutputNoiseScale::HiddenPositionGaussian { .. }) {
        return Err(Error::NotProved { recipe: RECIPE, why: "a joint release does not count on hidden positions" });
    }
    OutputRun::new(&one.recipe, &one.problem()?, classes, noise)?.event()
}

/// Plans the joint release, with the derivation of one model with the noise of all.
pub(super) fn plan<A: Adjacency>(
    recipe: &AnyRecipe,
    n: u64,
    dim: u64,
    classes: u32,
    budget: Budget,
    copies: u64,
) -> Result<(OutputRun, Derivation<BoltOn>), Error> {
    let AnyRecipe::BoltOn(recipe) = recipe else {
        return Err(Error::NotProved {
            recipe: RECIPE,
            why: "only the bolt-on recipes release once, at the end: choose the composed share",
        });
    };
    // The stack's sensitivity holds for every position, so hiding it gains nothing.
    let recipe = BoltOn { hide_position: false, ..recipe.clone() };
    let run = OutputRun::calibrated(&recipe, &Problem::new(&recipe, n, dim, A::KIND)?, classes, budget, copies)?;
    let calibrated = OneNoise { noise: run.noise() };
    Ok((run, Derivation { recipe, relation: A::KIND, n, dim, calibrated }))
}
