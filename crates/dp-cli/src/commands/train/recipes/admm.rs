//! `ss-admm`, `mp-admm` and `dp-admm`.

use dp_losses::Penalty;
use dp_optim::recipes::DpSgd;
use dp_optim::recipes::dp_sgd::consensus::PARTIES;
use dp_optim::{Descent, Schedule};

use super::dp_sgd::{as_asked, with_steps_as_asked};
use super::{Built, PrivateAlgorithm, Request, refusal};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

pub(super) const SS_ADMM: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::SsAdmm,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
    flags: &[
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
        "--penalty",
        "--l1",
        "--rho",
    ],
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: on_batches,
};

pub(super) const MP_ADMM: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::MpAdmm,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
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
        "--rho",
    ],
    records_to_check: |_| 1,
    build: on_all_records,
};

pub(super) const DP_ADMM: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::DpAdmm,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &[
        "--lambda",
        "--passes",
        "--parties",
        "--clip",
        "--radius",
        "--step-size",
        "--schedule",
        "--averaging",
        "--penalty",
        "--l1",
        "--rho",
    ],
    records_to_check: |settings| settings.parties.unwrap_or(PARTIES).clamp(1, 1 << 20),
    build: of_parties,
};

/// λ of the L1 penalty unless another is asked for.
const USUAL_LAMBDA: f64 = 0.001;

fn on_batches(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, relation, shape, .. } = request;
    build(request, DpSgd::ss_admm(config.loss, penalty(request), shape.n, relation))
}

fn on_all_records(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    // As many steps as gradient descent is recommended.
    let suited = DpSgd::full_gradient(config.loss, shape.n, shape.dim, budget, relation);
    let passes = suited.map_err(|error| refusal(&error))?.passes;
    build(request, DpSgd { passes, ..DpSgd::mp_admm(config.loss, penalty(request)) })
}

fn build(request: &Request<'_>, recipe: DpSgd) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let recipe = as_asked(with_rho(recipe, request), request)?;
    let suited = recipe.with_suited_first_step(shape.n, shape.dim, budget, relation);
    let recipe = suited.map_err(|error| refusal(&error))?;
    let suited = recipe.schedule.clone();
    let recipe = with_steps_as_asked(recipe, request)?;
    // A step size by itself is the first one, and the steps fall as they would.
    Ok(match (config.settings.schedule, config.settings.step_size, suited) {
        (None, Some(step), Some(Schedule::PerDrawnPass { batch_size, examples, .. })) => {
            DpSgd { schedule: Some(Schedule::PerDrawnPass { step, batch_size, examples }), ..recipe }.into()
        }
        _ => recipe.into(),
    })
}

fn of_parties(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let settings = &config.settings;
    let recipe = DpSgd::dp_admm(config.loss, settings.parties.unwrap_or(PARTIES));
    let recipe = as_asked(with_rho(recipe, request), request)?;
    let suited = recipe.with_suited_rounds(settings.passes, shape.n, shape.dim, budget, relation);
    Ok(with_steps_as_asked(suited.map_err(|error| refusal(&error))?, request)?.into())
}

pub(super) fn penalty(request: &Request<'_>) -> Penalty {
    request.config.settings.any_penalty().unwrap_or(Penalty::L1 { lambda: USUAL_LAMBDA })
}

fn with_rho(recipe: DpSgd, request: &Request<'_>) -> DpSgd {
    let descent = match (recipe.descent, request.config.settings.rho) {
        (Descent::Admm { output, .. }, Some(rho)) => Descent::Admm { rho, output },
        (Descent::Consensus { parties, .. }, Some(rho)) => Descent::Consensus { rho, parties },
        (descent, _) => descent,
    };
    DpSgd { descent, ..recipe }
}
