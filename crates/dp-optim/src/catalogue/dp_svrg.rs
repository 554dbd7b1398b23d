//! `dp-svrg`.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, Request, steps};
use crate::error::Error;
use crate::recipes::DpSvrg;

pub(super) const DP_SVRG: Entry = Entry {
    name: "dp-svrg",
    docs: include_str!("../recipes/dp_svrg.rs"),
    about: "Variance-reduced SGD: occasional full gradients, and batch gradients whose noise shrinks with the \
            distance from the last of these (Johnson, Zhang 2013; Wang et al. 2017)",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &[
        "lambda",
        "passes",
        "steps",
        "batch-size",
        "sampling",
        "full-share",
        "clip",
        "radius",
        "step-size",
        "schedule",
        "averaging",
    ],
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { settings, budget, relation, n, dim, .. } = request;
    let usual = DpSvrg::recommended(request.loss, n, dim, budget, relation)?;
    let recipe = DpSvrg {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        sampling: steps::sampling(settings).unwrap_or(usual.sampling),
        batch_size: settings.batch_size.unwrap_or(usual.batch_size),
        epochs: settings.passes.unwrap_or(usual.epochs),
        epoch_steps: settings.steps.or(usual.epoch_steps),
        full_share: settings.full_share.unwrap_or(usual.full_share),
        clipping: steps::clipping(settings)?,
        radius: settings.radius,
        noise_mode: request.noise_mode,
        float: request.float,
        ..usual
    };
    // Depends on the requested number of steps.
    let mut recipe = recipe.with_suited_steps(n, dim, budget, relation)?;
    if let Some(schedule) = request.schedule(recipe.lambda)? {
        recipe.schedule = Some(schedule);
    }
    recipe.averaging = steps::averaging_or(settings, recipe.averaging);
    Ok(recipe.into())
}
