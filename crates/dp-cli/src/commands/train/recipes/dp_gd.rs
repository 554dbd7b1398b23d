//! `dp-gd`.

use dp_optim::recipes::DpSgd;

use super::dp_sgd::{as_asked, with_steps_as_asked};
use super::{Built, PrivateAlgorithm, Request, refusal};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

pub(super) const DP_GD: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::DpGd,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &[
        "--lambda",
        "--passes",
        "--clip",
        "--radius",
        "--step-size",
        "--schedule",
        "--averaging",
        "--penalty",
        "--l1",
    ],
    records_to_check: |_| 1,
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let refused = |error: dp_optim::Error| refusal(&error);
    let recipe = DpSgd::full_gradient(config.loss, shape.n, shape.dim, budget, relation).map_err(refused)?;
    let recipe = as_asked(recipe, request)?.with_suited_steps(shape.n, shape.dim, budget, relation);
    Ok(with_steps_as_asked(recipe.map_err(refused)?, request)?.into())
}
