//! `dp-adam` and `dp-adambc`.

use dp_accountant::AdjacencyKind;

use super::dp_sgd::{as_asked, with_steps_as_asked};
use super::{Built, Entry, Request};
use crate::error::Error;
use crate::recipes::DpSgd;

const SETTINGS: &[&str] =
    &["lambda", "passes", "steps", "batch-size", "sampling", "clip", "radius", "step-size", "schedule", "averaging"];

pub(super) const DP_ADAM: Entry = Entry {
    name: "dp-adam",
    docs: include_str!("../recipes/dp_sgd/adam.rs"),
    about: "DP-SGD with Adam's step sizes (Kingma and Ba 2015)",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: SETTINGS,
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: |request| build(request, DpSgd::adam(request.loss)),
};

pub(super) const DP_ADAMBC: Entry = Entry {
    name: "dp-adambc",
    docs: include_str!("../recipes/dp_sgd/adam.rs"),
    about: "DP-Adam with the noise variance subtracted from the second moments (Tang et al. 2024)",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: SETTINGS,
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: |request| build(request, DpSgd::adam_bc(request.loss)),
};

/// Builds a recipe with the batches of DP-SGD and the steps of `adaptive`.
fn build(request: &Request<'_>, adaptive: DpSgd) -> Result<Built, Error> {
    let &Request { budget, relation, n, dim, .. } = request;
    let recipe = DpSgd::recommended(request.loss, n, dim, budget, relation)?;
    let recipe = as_asked(DpSgd { descent: adaptive.descent, ..recipe }, request)?;
    let recipe = recipe.with_adaptive_steps(n, dim, budget, relation)?;
    Ok(with_steps_as_asked(recipe, request)?.into())
}
