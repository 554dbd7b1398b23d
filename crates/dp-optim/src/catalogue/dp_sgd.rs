//! `dp-sgd`.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, Request, steps};
use crate::error::Error;
use crate::recipes::DpSgd;

pub(super) const DP_SGD: Entry = Entry {
    name: "dp-sgd",
    docs: include_str!("../recipes/dp_sgd.rs"),
    about: "DP-SGD: Gaussian noise on the clipped gradients of each step, on random batches (Abadi et al. 2016)",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &[
        "lambda",
        "passes",
        "steps",
        "batch-size",
        "sampling",
        "clip",
        "radius",
        "step-size",
        "schedule",
        "averaging",
        "penalty",
        "l1",
    ],
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { budget, relation, n, dim, .. } = request;
    let recipe = DpSgd::recommended(request.loss, n, dim, budget, relation)?;
    let recipe = as_asked(recipe, request)?;
    // Depends on the requested number of steps.
    let recipe = recipe.with_suited_steps(n, dim, budget, relation)?;
    Ok(with_steps_as_asked(recipe, request)?.into())
}

/// Applies the given settings to the recipe, except step sizes and averages.
pub(super) fn as_asked(mut recipe: DpSgd, request: &Request<'_>) -> Result<DpSgd, Error> {
    let settings = request.settings;
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.passes = settings.passes.unwrap_or(recipe.passes);
    recipe.steps = settings.steps;
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.sampling = steps::sampling(settings).unwrap_or(recipe.sampling);
    recipe.clipping = steps::clipping(settings)?.or(recipe.clipping);
    recipe.radius = settings.radius;
    recipe.penalty = settings.any_penalty().or(recipe.penalty);
    recipe.intercept = recipe.penalty.is_some() && request.intercept;
    recipe.noise_mode = request.noise_mode;
    recipe.float = request.float;
    Ok(recipe)
}

/// Applies the given step sizes and average to the recipe.
pub(super) fn with_steps_as_asked(mut recipe: DpSgd, request: &Request<'_>) -> Result<DpSgd, Error> {
    let &Request { settings, .. } = request;
    if let Some(schedule) = request.schedule(recipe.lambda)? {
        recipe.schedule = Some(schedule);
    }
    recipe.averaging = steps::averaging_or(settings, recipe.averaging);
    Ok(recipe)
}
