//! `bolt-on-convex` and `bolt-on-strongly-convex`.

use dp_optim::defaults::{Defaults, passes_to_converge};
use dp_optim::recipes::{Convexity, Stopping};

use super::{Built, PrivateAlgorithm, Request, private_arithmetic, refusal, steps};
use crate::args::{self, Adjacency};
use crate::failure::Failure;
use crate::input::conflict;

const FLAGS: &[&str] = &[
    "--lambda",
    "--passes",
    "--batch-size",
    "--radius",
    "--step-size",
    "--schedule",
    "--averaging",
    "--order",
    "--stop",
    "--gradients",
    "--output-noise",
];

pub(super) const CONVEX: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::BoltOnConvex,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
    flags: FLAGS,
    records_to_check: |settings| settings.batch_size.unwrap_or(1),
    build: |request| build(request, Convexity::Convex),
};

pub(super) const STRONGLY_CONVEX: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::BoltOnStronglyConvex,
    build: |request| build(request, Convexity::StronglyConvex),
    ..CONVEX
};

fn build(request: &Request<'_>, algorithm: Convexity) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let settings = &config.settings;
    let refused = |error: dp_optim::Error| refusal(&error);
    let defaults = Defaults::new(config.loss, shape.n, shape.dim, budget, relation).map_err(refused)?;
    let mut recipe = defaults.recipe(algorithm).map_err(refused)?;
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.passes = match (settings.passes, algorithm) {
        (Some(passes), _) => passes,
        (None, Convexity::Convex) => recipe.passes,
        (None, Convexity::StronglyConvex) => {
            passes_to_converge(config.loss, recipe.lambda, shape.n, recipe.batch_size).map_err(refused)?
        }
    };
    recipe.radius = settings.radius.or(recipe.radius);
    recipe.order = settings.order.unwrap_or(recipe.order);
    recipe.stopping = settings.stopping.unwrap_or(recipe.stopping);
    if settings.gradients.is_some() && recipe.stopping == Stopping::Passes {
        return Err(conflict("--gradients", "without --stop certified the passes are a public number already"));
    }
    recipe.output_noise = steps::output_noise(settings);
    recipe.noise_mode = config.noise;
    recipe.float = config.float;
    recipe.arithmetic = private_arithmetic(config, shape, recipe.passes, recipe.batch_size, recipe.radius);
    recipe.averaging = steps::averaging(settings, shape.n, recipe.batch_size, recipe.passes);
    recipe.schedule = match (steps::schedule(config, recipe.lambda, shape.n)?, algorithm) {
        (Some(schedule), _) => Some(schedule),
        (None, Convexity::Convex) => {
            Some(defaults.schedule(recipe.passes, recipe.batch_size, recipe.lambda).map_err(refused)?)
        }
        (None, Convexity::StronglyConvex) => None,
    };
    Ok(recipe.into())
}
