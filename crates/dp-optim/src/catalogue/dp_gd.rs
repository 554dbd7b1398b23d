//! `dp-gd`.

use dp_accountant::AdjacencyKind;

use super::dp_sgd::{as_asked, with_steps_as_asked};
use super::{Built, Entry, Request};
use crate::error::Error;
use crate::recipes::DpSgd;

pub(super) const DP_GD: Entry = Entry {
    name: "dp-gd",
    docs: include_str!("../recipes/dp_sgd.rs"),
    about: "Full-batch gradient descent with noise on each step's gradient sum; the number of steps follows from \
            public numbers",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &["lambda", "passes", "clip", "radius", "step-size", "schedule", "averaging", "penalty", "l1"],
    data_dependent_time: false,
    records_to_check: |_| 1,
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { budget, relation, n, dim, .. } = request;
    let recipe = DpSgd::full_gradient(request.loss, n, dim, budget, relation)?;
    let recipe = as_asked(recipe, request)?.with_suited_steps(n, dim, budget, relation);
    Ok(with_steps_as_asked(recipe?, request)?.into())
}
