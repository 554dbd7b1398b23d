//! `dp-adam` and `dp-adambc`.

use dp_optim::recipes::DpSgd;

use super::dp_sgd::{as_asked, with_steps_as_asked};
use super::{Built, PrivateAlgorithm, Request, refusal};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

const FLAGS: &[&str] = &[
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
];

pub(super) const DP_ADAM: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::DpAdam,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: FLAGS,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: |request| build(request, DpSgd::adam(request.config.loss)),
};

pub(super) const DP_ADAMBC: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::DpAdambc,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: FLAGS,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: |request| build(request, DpSgd::adam_bc(request.config.loss)),
};

/// DP-SGD's batches with the steps of `adaptive`.
fn build(request: &Request<'_>, adaptive: DpSgd) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let refused = |error: dp_optim::Error| refusal(&error);
    let recipe = DpSgd::recommended(config.loss, shape.n, shape.dim, budget, relation).map_err(refused)?;
    let recipe = as_asked(DpSgd { descent: adaptive.descent, ..recipe }, request)?;
    let recipe = recipe.with_adaptive_steps(shape.n, shape.dim, budget, relation).map_err(refused)?;
    Ok(with_steps_as_asked(recipe, request)?.into())
}
