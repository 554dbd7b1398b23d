//! `bst14-convex` and `bst14-strongly-convex`.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, Request, steps};
use crate::defaults::Defaults;
use crate::error::Error;
use crate::recipes::{Bst14, Bst14Calibration, Convexity, Sampling};

const SETTINGS: &[&str] = &["lambda", "passes", "batch-size", "sampling", "radius", "averaging", "variant"];

/// Radius of the ball of the convex algorithm, as in the paper's experiments.
const RADIUS: f64 = 10.0;

/// The paper's factor on the variance for the logistic loss.
const IOTA: f64 = 1.0;

pub(super) const CONVEX: Entry = Entry {
    name: "bst14-convex",
    docs: include_str!("../recipes/bst14.rs"),
    about: "Projected SGD with noise on each step's gradient, random batches and a learning rate from the expected \
            gradient norm (Bassily et al. 2014)",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: SETTINGS,
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: |request| build(request, Convexity::Convex),
};

pub(super) const STRONGLY_CONVEX: Entry = Entry {
    name: "bst14-strongly-convex",
    docs: include_str!("../recipes/bst14.rs"),
    about: "The BST14 algorithm for strongly convex objectives, with learning rate 1/(lambda step) (Bassily et al. \
            2014)",
    build: |request| build(request, Convexity::StronglyConvex),
    ..CONVEX
};

fn build(request: &Request<'_>, algorithm: Convexity) -> Result<Built, Error> {
    let &Request { settings, budget, relation, n, dim, .. } = request;
    let mut recipe = match algorithm {
        Convexity::Convex => Bst14::convex(request.loss, RADIUS),
        Convexity::StronglyConvex => {
            let defaults = Defaults::new(request.loss, n, dim, budget, relation)?;
            Bst14::strongly_convex(request.loss, settings.lambda.unwrap_or(defaults.lambda()))
        }
    };
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.radius = settings.radius.unwrap_or(recipe.radius);
    recipe.passes = settings.passes.unwrap_or(recipe.passes);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    let published = steps::as_published(settings)?;
    // The published variant samples as in the paper if there is a proof for it.
    let usual = if published && relation == AdjacencyKind::ReplaceOne { Sampling::FixedSize } else { recipe.sampling };
    recipe.sampling = steps::sampling(settings).unwrap_or(usual);
    recipe.calibration =
        if published { Bst14Calibration::AsPublished { iota: IOTA } } else { Bst14Calibration::Accountant };
    recipe.averaging = steps::averaging(settings, n, recipe.batch_size, recipe.passes);
    recipe.noise_mode = request.noise_mode;
    recipe.float = request.float;
    Ok(recipe.into())
}
