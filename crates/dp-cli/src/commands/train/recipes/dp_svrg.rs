//! `dp-svrg`.

use dp_optim::recipes::DpSvrg;

use super::dp_sgd::{averaging, clipping, sampling};
use super::{Built, PrivateAlgorithm, Request, refusal, steps};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

pub(super) const DP_SVRG: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::DpSvrg,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &[
        "--lambda",
        "--passes",
        "--steps",
        "--batch-size",
        "--sampling",
        "--full-share",
        "--clip",
        "--radius",
        "--step-size",
        "--schedule",
        "--averaging",
    ],
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let refused = |error: dp_optim::Error| refusal(&error);
    let settings = &config.settings;
    let usual = DpSvrg::recommended(config.loss, shape.n, shape.dim, budget, relation).map_err(refused)?;
    let recipe = DpSvrg {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        sampling: sampling(settings).unwrap_or(usual.sampling),
        batch_size: settings.batch_size.unwrap_or(usual.batch_size),
        epochs: settings.passes.unwrap_or(usual.epochs),
        epoch_steps: settings.steps.or(usual.epoch_steps),
        full_share: settings.full_share.unwrap_or(usual.full_share),
        clipping: clipping(settings)?,
        radius: settings.radius,
        noise_mode: config.noise,
        float: config.float,
        ..usual
    };
    // For the number of steps that was asked for.
    let mut recipe = recipe.with_suited_steps(shape.n, shape.dim, budget, relation).map_err(refused)?;
    if let Some(schedule) = steps::schedule(config, recipe.lambda, shape.n)? {
        recipe.schedule = Some(schedule);
    }
    recipe.averaging = averaging(settings, recipe.averaging);
    Ok(recipe.into())
}
