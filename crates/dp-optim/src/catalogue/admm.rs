//! `ss-admm`, `mp-admm` and `dp-admm`.

use dp_accountant::AdjacencyKind;
use dp_losses::Penalty;

use super::dp_sgd::{as_asked, with_steps_as_asked};
use super::{Built, Entry, Request};
use crate::error::Error;
use crate::recipes::DpSgd;
use crate::recipes::dp_sgd::consensus::PARTIES;
use crate::{Descent, Schedule};

pub(super) const SS_ADMM: Entry = Entry {
    name: "ss-admm",
    docs: include_str!("../recipes/dp_sgd/admm.rs"),
    about: "Linearised ADMM with a sparse copy of the weights; noise on the gradients of random batches",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: &[
        "lambda",
        "passes",
        "steps",
        "batch-size",
        "sampling",
        "clip",
        "radius",
        "step-size",
        "schedule",
        "averaging",
        "penalty",
        "l1",
        "rho",
    ],
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: on_batches,
};

pub(super) const MP_ADMM: Entry = Entry {
    name: "mp-admm",
    docs: include_str!("../recipes/dp_sgd/admm.rs"),
    about: "Linearised ADMM with a sparse copy of the weights, on all records at each step; noise on the weights",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: &["lambda", "passes", "clip", "radius", "step-size", "schedule", "averaging", "penalty", "l1", "rho"],
    data_dependent_time: false,
    records_to_check: |_| 1,
    build: on_all_records,
};

pub(super) const DP_ADMM: Entry = Entry {
    name: "dp-admm",
    docs: include_str!("../recipes/dp_sgd/consensus.rs"),
    about: "Consensus ADMM between parties with separate records, each with noise on its own gradients; a record \
            costs what its own party's releases cost (Huang et al. 2020)",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &[
        "lambda",
        "passes",
        "parties",
        "clip",
        "radius",
        "step-size",
        "schedule",
        "averaging",
        "penalty",
        "l1",
        "rho",
    ],
    data_dependent_time: false,
    records_to_check: |settings| settings.parties.unwrap_or(PARTIES).clamp(1, 1 << 20),
    build: of_parties,
};

/// Default λ of the L1 penalty.
const USUAL_LAMBDA: f64 = 0.001;

fn on_batches(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { relation, n, .. } = request;
    build(request, DpSgd::ss_admm(request.loss, penalty(request), n, relation))
}

fn on_all_records(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { budget, relation, n, dim, .. } = request;
    // The number of steps recommended for gradient descent.
    let suited = DpSgd::full_gradient(request.loss, n, dim, budget, relation);
    let passes = suited?.passes;
    build(request, DpSgd { passes, ..DpSgd::mp_admm(request.loss, penalty(request)) })
}

fn build(request: &Request<'_>, recipe: DpSgd) -> Result<Built, Error> {
    let &Request { settings, budget, relation, n, dim, .. } = request;
    let recipe = as_asked(with_rho(recipe, request), request)?;
    let suited = recipe.with_suited_first_step(n, dim, budget, relation);
    let recipe = suited?;
    let suited = recipe.schedule.clone();
    let recipe = with_steps_as_asked(recipe, request)?;
    // A step size alone is the first one, and the steps fall as by default.
    Ok(match (settings.schedule, settings.step_size, suited) {
        (None, Some(step), Some(Schedule::PerDrawnPass { batch_size, examples, .. })) => {
            DpSgd { schedule: Some(Schedule::PerDrawnPass { step, batch_size, examples }), ..recipe }.into()
        }
        _ => recipe.into(),
    })
}

fn of_parties(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { settings, budget, relation, n, dim, .. } = request;
    let recipe = DpSgd::dp_admm(request.loss, settings.parties.unwrap_or(PARTIES));
    let recipe = as_asked(with_rho(recipe, request), request)?;
    let suited = recipe.with_suited_rounds(settings.passes, n, dim, budget, relation);
    Ok(with_steps_as_asked(suited?, request)?.into())
}

pub(super) fn penalty(request: &Request<'_>) -> Penalty {
    request.settings.any_penalty().unwrap_or(Penalty::L1 { lambda: USUAL_LAMBDA })
}

fn with_rho(recipe: DpSgd, request: &Request<'_>) -> DpSgd {
    let descent = match (recipe.descent, request.settings.rho) {
        (Descent::Admm { output, .. }, Some(rho)) => Descent::Admm { rho, output },
        (Descent::Consensus { parties, .. }, Some(rho)) => Descent::Consensus { rho, parties },
        (descent, _) => descent,
    };
    DpSgd { descent, ..recipe }
}
