//! `dp-newton`.

use dp_optim::recipes::DpNewton;

use super::{Built, PrivateAlgorithm, Request};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

pub(super) const DP_NEWTON: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::DpNewton,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda", "--steps", "--curvature", "--curvature-share"],
    records_to_check: |_| 1,
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Failure> {
    let (config, settings) = (request.config, &request.config.settings);
    let usual = match settings.curvature {
        None | Some(args::Curvature::EachStep) => DpNewton::new(config.loss),
        Some(args::Curvature::Once) => DpNewton::with_one_curvature(config.loss),
    };
    let recipe = DpNewton {
        lambda: settings.lambda,
        steps: settings.steps.unwrap_or(usual.steps),
        share: settings.curvature_share.unwrap_or(usual.share),
        noise_mode: config.noise,
        ..usual
    };
    Ok(recipe.into())
}
