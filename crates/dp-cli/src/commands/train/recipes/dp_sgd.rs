//! `dp-sgd`.

use dp_mechanisms::clip::ClippingNorm;
use dp_optim::Averaging;
use dp_optim::recipes::{DpSgd, Sampling};

use super::{Built, PrivateAlgorithm, Request, refusal, steps};
use crate::args::{self, Adjacency};
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
    recipe.sampling = match settings.sampling {
        None => recipe.sampling,
        Some(args::BatchSampling::Poisson) => Sampling::Poisson,
        Some(args::BatchSampling::Fixed) => Sampling::FixedSize,
        Some(args::BatchSampling::Passes) => Sampling::Passes,
    };
    recipe.clipping = match settings.clip {
        None => recipe.clipping,
        Some(norm) => Some(ClippingNorm::new(norm).map_err(|error| refusal(&error.into()))?),
    };
    recipe.radius = settings.radius;
    recipe.penalty = settings.any_penalty().or(recipe.penalty);
    recipe.intercept = recipe.penalty.is_some() && config.encoding.intercept > 0.0;
    recipe.noise_mode = config.noise;
    recipe.float = config.float;
    Ok(recipe)
}

/// The recipe with the step sizes and the average that were asked for.
pub(super) fn with_steps_as_asked(mut recipe: DpSgd, request: &Request<'_>) -> Result<DpSgd, Failure> {
    let &Request { config, shape, .. } = request;
    if let Some(schedule) = steps::schedule(config, recipe.lambda, shape.n)? {
        recipe.schedule = Some(schedule);
    }
    if let Some(averaging) = config.settings.averaging {
        recipe.averaging = match averaging {
            args::Averaging::Last => Averaging::Last,
            args::Averaging::Uniform => Averaging::Uniform,
            // The half that is recommended.
            args::Averaging::Suffix => recipe.averaging,
            args::Averaging::Polynomial => Averaging::Polynomial,
        };
    }
    Ok(recipe)
}
