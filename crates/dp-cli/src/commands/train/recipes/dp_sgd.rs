//! `dp-sgd`.

use dp_mechanisms::clip::ClippingNorm;
use dp_optim::Averaging;
use dp_optim::recipes::{DpSgd, Sampling};

use super::{Built, PrivateAlgorithm, Request, refusal, steps};
use crate::args::{self, Adjacency};
use crate::commands::train::settings::Settings;
use crate::failure::Failure;

pub(super) const DP_SGD: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::DpSgd,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &[
        "--lambda",
        "--passes",
        "--steps",
        "--batch-size",
        "--sampling",
        "--clip",
        "--radius",
        "--step-size",
        "--schedule",
        "--averaging",
        "--penalty",
        "--l1",
    ],
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let refused = |error: dp_optim::Error| refusal(&error);
    let recipe = DpSgd::recommended(config.loss, shape.n, shape.dim, budget, relation).map_err(refused)?;
    let recipe = as_asked(recipe, request)?;
    // For the number of steps that was asked for.
    let recipe = recipe.with_suited_steps(shape.n, shape.dim, budget, relation).map_err(refused)?;
    Ok(with_steps_as_asked(recipe, request)?.into())
}

/// The recipe with the settings that were asked for, but those of step sizes and averages.
pub(super) fn as_asked(mut recipe: DpSgd, request: &Request<'_>) -> Result<DpSgd, Failure> {
    let config = request.config;
    let settings = &config.settings;
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.passes = settings.passes.unwrap_or(recipe.passes);
    recipe.steps = settings.steps;
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.sampling = sampling(settings).unwrap_or(recipe.sampling);
    recipe.clipping = clipping(settings)?.or(recipe.clipping);
    recipe.radius = settings.radius;
    recipe.penalty = settings.any_penalty().or(recipe.penalty);
    recipe.intercept = recipe.penalty.is_some() && config.encoding.intercept > 0.0;
    recipe.noise_mode = config.noise;
    recipe.float = config.float;
    Ok(recipe)
}

/// How batches were asked to be drawn.
pub(super) fn sampling(settings: &Settings) -> Option<Sampling> {
    settings.sampling.map(|sampling| match sampling {
        args::BatchSampling::Poisson => Sampling::Poisson,
        args::BatchSampling::Fixed => Sampling::FixedSize,
        args::BatchSampling::Passes => Sampling::Passes,
    })
}

/// The norm that was asked for.
pub(super) fn clipping(settings: &Settings) -> Result<Option<ClippingNorm>, Failure> {
    settings.clip.map(ClippingNorm::new).transpose().map_err(|error| refusal(&error.into()))
}

/// The average that was asked for, where the half that is recommended is `usual`.
pub(super) fn averaging(settings: &Settings, usual: Averaging) -> Averaging {
    match settings.averaging {
        None | Some(args::Averaging::Suffix) => usual,
        Some(args::Averaging::Last) => Averaging::Last,
        Some(args::Averaging::Uniform) => Averaging::Uniform,
        Some(args::Averaging::Polynomial) => Averaging::Polynomial,
    }
}

/// The recipe with the step sizes and the average that were asked for.
pub(super) fn with_steps_as_asked(mut recipe: DpSgd, request: &Request<'_>) -> Result<DpSgd, Failure> {
    let &Request { config, shape, .. } = request;
    if let Some(schedule) = steps::schedule(config, recipe.lambda, shape.n)? {
        recipe.schedule = Some(schedule);
    }
    recipe.averaging = averaging(&config.settings, recipe.averaging);
    Ok(recipe)
}
