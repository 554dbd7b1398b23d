//! `dp-ftrl`.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, Request, steps};
use crate::error::Error;
use crate::recipes::DpFtrl;
use crate::recipes::dp_ftrl::PASSES;

pub(super) const DP_FTRL: Entry = Entry {
    name: "dp-ftrl",
    docs: include_str!("../recipes/dp_ftrl.rs"),
    about: "DP-FTRL: gradient descent on batches in order, with noise correlated over the steps instead of random \
            sampling (Kairouz et al. 2021)",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &[
        "lambda",
        "passes",
        "batch-size",
        "bands",
        "in-order",
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
    let usual = DpFtrl { passes: PASSES, ..DpFtrl::new(request.loss) };
    let mut recipe = DpFtrl {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        passes: settings.passes.unwrap_or(usual.passes),
        bands: settings.bands,
        clipping: steps::clipping(settings)?,
        radius: settings.radius,
        declared_order: settings.in_order.unwrap_or(false),
        noise_mode: request.noise_mode,
        float: request.float,
        ..usual
    };
    recipe = match settings.batch_size {
        Some(batch_size) => DpFtrl { batch_size, ..recipe }.with_suited_steps(n, dim, budget, relation)?,
        None => recipe.with_suited_batches(n, dim, budget, relation)?,
    };
    if let Some(schedule) = request.schedule(recipe.lambda)? {
        recipe.schedule = Some(schedule);
    }
    recipe.averaging = steps::averaging_or(settings, recipe.averaging);
    Ok(recipe.into())
}
