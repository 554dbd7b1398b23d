//! `bst14-convex` and `bst14-strongly-convex`.

use dp_accountant::AdjacencyKind;
use dp_optim::defaults::Defaults;
use dp_optim::recipes::{Bst14, Bst14Calibration, Convexity, Sampling};

use super::{Built, PrivateAlgorithm, Request, refusal, steps};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

const FLAGS: &[&str] = &["--lambda", "--passes", "--batch-size", "--sampling", "--radius", "--averaging", "--variant"];

/// Radius of the ball of the convex algorithm, as in the paper's experiments.
const RADIUS: f64 = 10.0;

/// What the paper multiplies its variance by for the logistic loss.
const IOTA: f64 = 1.0;

pub(super) const CONVEX: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::Bst14Convex,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
    flags: FLAGS,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: |request| build(request, Convexity::Convex),
};

pub(super) const STRONGLY_CONVEX: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::Bst14StronglyConvex,
    build: |request| build(request, Convexity::StronglyConvex),
    ..CONVEX
};

fn build(request: &Request<'_>, algorithm: Convexity) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let settings = &config.settings;
    let refused = |error: dp_optim::Error| refusal(&error);
    let mut recipe = match algorithm {
        Convexity::Convex => Bst14::convex(config.loss, RADIUS),
        Convexity::StronglyConvex => {
            let defaults = Defaults::new(config.loss, shape.n, shape.dim, budget, relation).map_err(refused)?;
            Bst14::strongly_convex(config.loss, settings.lambda.unwrap_or(defaults.lambda()))
        }
    };
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.radius = settings.radius.unwrap_or(recipe.radius);
    recipe.passes = settings.passes.unwrap_or(recipe.passes);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.sampling = match settings.sampling {
        // As in the paper, where there is a proof of it.
        None if settings.variant.is_some() && relation == AdjacencyKind::ReplaceOne => Sampling::FixedSize,
        None => recipe.sampling,
        Some(args::BatchSampling::Poisson) => Sampling::Poisson,
        Some(args::BatchSampling::Fixed) => Sampling::FixedSize,
        Some(args::BatchSampling::Passes) => Sampling::Passes,
    };
    if steps::as_published(settings)? {
        recipe.calibration = Bst14Calibration::AsPublished { iota: IOTA };
    } else {
        recipe.calibration = Bst14Calibration::Accountant;
    }
    recipe.averaging = steps::averaging(settings, shape.n, recipe.batch_size, recipe.passes);
    recipe.noise_mode = config.noise;
    recipe.float = config.float;
    Ok(recipe.into())
}
