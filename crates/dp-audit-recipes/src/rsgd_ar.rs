//! The canaries of RSGD-AR, NSGD and OutPert-GD: those of the corresponding bolt-on recipes, against their own events.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Claimed};
use dp_losses::{Domain, L2};

use super::{Audited, Parameters, bolt_on, mode_name};
use dp_optim::Error;
use dp_optim::audit;
use dp_optim::recipes::bolt_on::OutputNoiseScale;
use dp_optim::recipes::{BoltOn, Recipe as _, RsgdAr, TrainsAny};

/// Maximum number of canary positions in the likelihood of a hidden position.
const MOST_PLACES: u64 = 256;

pub(super) fn rsgd_ar(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let recipe = RsgdAr::new(parameters.loss, parameters.lambda.unwrap_or(0.0));
    // Each pass is a stretch. There are at least two, so that one restarts from the average of another.
    let passes = parameters.passes.saturating_mul(2);
    each("rsgd-ar", &RsgdAr { restart_every: Some(1), passes, ..recipe }, parameters)
}

pub(super) fn nsgd(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let recipe = RsgdAr::nsgd(parameters.loss, parameters.lambda.unwrap_or(0.0));
    each("nsgd", &RsgdAr { passes: parameters.passes, ..recipe }, parameters)
}

pub(super) fn full_gradient(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let recipe = RsgdAr::full_gradient(parameters.loss, parameters.lambda.unwrap_or(0.0));
    each("out-pert-gd", &RsgdAr { passes: parameters.passes, ..recipe }, parameters)
}

fn each(name: &str, recipe: &RsgdAr, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if !(parameters.delta > 0.0) {
        return Ok(Vec::new());
    }
    let constants = parameters.loss.constants(L2::new(recipe.lambda)?, &Domain::unit_rows());
    // So short that the gradient of the canary is as long at the end as at the beginning.
    let step = 0.25 / (parameters.n.max(1) as f64).sqrt();
    let recipe = RsgdAr {
        step: step.min(1.0 / constants.smoothness),
        batch_size: if recipe.batch_size == u64::MAX { u64::MAX } else { parameters.batch_size },
        radius: parameters.radius,
        ..recipe.clone()
    };
    let mut all = Vec::new();
    for noise_mode in parameters.modes() {
        let recipe = RsgdAr { noise_mode, ..recipe.clone() };
        let mode = mode_name(noise_mode);
        let name = format!("{name}/{mode}");
        all.push(match parameters.relation {
            AdjacencyKind::ReplaceOne => audited::<ReplaceOne>(name, &recipe, parameters)?,
            AdjacencyKind::ZeroOut => audited::<ZeroOut>(name, &recipe, parameters)?,
            adjacency => return Err(Error::Adjacency { recipe: "rsgd-ar", adjacency }),
        });
    }
    Ok(all)
}

fn audited<A: TrainsAny<f64> + 'static>(
    name: String,
    recipe: &RsgdAr,
    parameters: &Parameters,
) -> Result<Audited, Error> {
    let budget = parameters.budget()?;
    let plan = recipe.plan::<A>(parameters.n, parameters.dim, budget)?;
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let places = plan.run().growth().updates_per_pass();
    let hidden = matches!(plan.derivation().calibrated.noise, OutputNoiseScale::HiddenPositionGaussian { .. })
        && places <= MOST_PLACES;
    // Otherwise the canary at the worst position, in an order that the attacker knows: the claim holds for every order.
    let known = BoltOn { declared_order: !hidden, ..audit::recipe_of(plan.run()).clone() };
    let planned = known.plan::<A>(parameters.n, parameters.dim, budget)?;
    let Audited { subject, distance } = bolt_on::audited(name, planned, parameters)?;
    // The event that a verifier recomputes.
    Ok(Audited { subject: Box::new(Claimed::new(subject, claim)), distance })
}
