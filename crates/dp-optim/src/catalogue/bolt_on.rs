//! `bolt-on-convex` and `bolt-on-strongly-convex`.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, Request, Stop, conflict, steps};
use crate::defaults::{Defaults, passes_to_converge};
use crate::error::Error;
use crate::recipes::{Convexity, Stopping};

const SETTINGS: &[&str] = &[
    "lambda",
    "passes",
    "batch-size",
    "radius",
    "step-size",
    "schedule",
    "averaging",
    "order",
    "stop",
    "gradients",
    "output-noise",
];

pub(super) const CONVEX: Entry = Entry {
    name: "bolt-on-convex",
    docs: include_str!("../recipes/bolt_on.rs"),
    about: "Bolt-on private SGD for convex losses: output perturbation of the trained weights (Wu et al. 2017, \
            Algorithm 1)",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: SETTINGS,
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1),
    build: |request| build(request, Convexity::Convex),
};

pub(super) const STRONGLY_CONVEX: Entry = Entry {
    name: "bolt-on-strongly-convex",
    docs: include_str!("../recipes/bolt_on.rs"),
    about: "Bolt-on private SGD for strongly convex objectives: L2 regularisation makes the sensitivity smaller (Wu \
            et al. 2017, Algorithm 2)",
    build: |request| build(request, Convexity::StronglyConvex),
    ..CONVEX
};

fn build(request: &Request<'_>, algorithm: Convexity) -> Result<Built, Error> {
    let &Request { settings, budget, relation, n, dim, .. } = request;
    let defaults = Defaults::new(request.loss, n, dim, budget, relation)?;
    let mut recipe = defaults.recipe(algorithm)?;
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.passes = match (settings.passes, algorithm) {
        (Some(passes), _) => passes,
        (None, Convexity::Convex) => recipe.passes,
        (None, Convexity::StronglyConvex) => passes_to_converge(request.loss, recipe.lambda, n, recipe.batch_size)?,
    };
    recipe.radius = settings.radius.or(recipe.radius);
    recipe.order = settings.order.map_or(recipe.order, Into::into);
    if settings.stop == Some(Stop::Certified) {
        recipe.stopping = Stopping::CertifiedMinimiser { tolerance: None };
    }
    if settings.gradients.is_some() && recipe.stopping == Stopping::Passes {
        return Err(conflict("gradients", "without `stop certified` the passes are a public number already"));
    }
    recipe.output_noise = steps::output_noise(settings);
    recipe.noise_mode = request.noise_mode;
    recipe.float = request.float;
    recipe.arithmetic = request.private_arithmetic(recipe.passes, recipe.batch_size, recipe.radius);
    recipe.averaging = steps::averaging(settings, n, recipe.batch_size, recipe.passes);
    recipe.schedule = match (request.schedule(recipe.lambda)?, algorithm) {
        (Some(schedule), _) => Some(schedule),
        (None, Convexity::Convex) => Some(defaults.schedule(recipe.passes, recipe.batch_size, recipe.lambda)?),
        (None, Convexity::StronglyConvex) => None,
    };
    Ok(recipe.into())
}
