//! The canaries of the recipes that release in phases.
//!
//! Every phase's release may be known, so the attacker uses the first one: it contains the canary, has the longest steps, and
//! starts at a public point.

use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_losses::{ProximalLoss, ProximalVisitor};
use dp_mechanisms::ReleaseRng as _;

use super::canary::distance;
use super::likelihood::{Law, log_ratio};
use super::scored::{Sides, scored};
use super::{Audited, Canary, Distance, Parameters, Search, mode_name};
use dp_optim::Error;
use dp_optim::MemorySource;
use dp_optim::audit::{self, Observed, size};
use dp_optim::recipes::bolt_on::OutputNoiseScale;
use dp_optim::recipes::phases::PhasedRun;
use dp_optim::recipes::{Algorithm, PhasedErm, PhasedSgd, Recipe as _};

/// Default radius, so large that no release is projected, which would change its law.
const RADIUS: f64 = 100.0;

/// Minimum number of records for a phase that reads more than one.
const FEWEST_RECORDS: u64 = 4;

/// Maximum number of pairs in a search that minimises.
const MOST_MINIMISED: u32 = 60;

/// Cost of a run in units of releasing one number.
const COST_OF_A_RUN: f64 = 30.0;

pub(super) fn sgd(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if !parameters.loss.is_smooth() {
        return Ok(Vec::new());
    }
    let radius = parameters.radius.unwrap_or(RADIUS);
    let lambda = parameters.lambda.unwrap_or(0.0);
    let recipe = PhasedSgd { lambda, step: Some(1.0), declared_order: true, ..PhasedSgd::new(parameters.loss, radius) };
    each_mode(parameters, "phased-sgd", false, |noise_mode| PhasedSgd { noise_mode, ..recipe.clone() })
}

pub(super) fn erm(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if parameters.loss.visit_proximal(HasConjugate).is_none() {
        return Ok(Vec::new());
    }
    let radius = parameters.radius.unwrap_or(RADIUS);
    let lambda = parameters.lambda.unwrap_or(0.0);
    let recipe = PhasedErm { lambda, step: Some(0.2), declared_order: true, ..PhasedErm::new(parameters.loss, radius) };
    each_mode(parameters, "phased-erm", true, |noise_mode| PhasedErm { noise_mode, ..recipe.clone() })
}

/// Visitor that checks whether a loss has an implemented conjugate.
struct HasConjugate;

impl ProximalVisitor<f64> for HasConjugate {
    type Output = ();
    fn visit<L: ProximalLoss<f64>>(self, _loss: L) {}
}

/// Returns the audits in each noise mode; none for delta = 0, for which these recipes have no noise, or for too few records.
fn each_mode<R: Algorithm<Run = PhasedRun>>(
    parameters: &Parameters,
    name: &'static str,
    minimises: bool,
    recipe: impl Fn(NoiseMode) -> R,
) -> Result<Vec<Audited>, Error> {
    if parameters.delta == 0.0 || parameters.n < FEWEST_RECORDS {
        return Ok(Vec::new());
    }
    let audit = |mode| {
        let shown = mode_name(mode);
        let name = format!("{name}/first-phase/{shown}");
        match parameters.relation {
            AdjacencyKind::ReplaceOne => audited::<R, ReplaceOne>(name, &recipe(mode), minimises, parameters),
            AdjacencyKind::ZeroOut => audited::<R, ZeroOut>(name, &recipe(mode), minimises, parameters),
            adjacency => Err(Error::Adjacency { recipe: "phases", adjacency }),
        }
    };
    parameters.modes().into_iter().map(audit).collect()
}

fn audited<R: Algorithm<Run = PhasedRun>, A: Observed + 'static>(
    name: String,
    recipe: &R,
    minimises: bool,
    parameters: &Parameters,
) -> Result<Audited, Error> {
    let plan = recipe.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
    let run = plan.run();
    let first = |all: &[f64]| all.first().copied().unwrap_or(0.0);
    let (n, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let search = Search {
        dim,
        row_norm: 1.0,
        target_bound: 1.0,
        classes: parameters.loss.is_classification(),
        relation: A::KIND,
        pairs: if minimises { parameters.pairs.min(MOST_MINIMISED) } else { parameters.pairs },
    };
    let output = |canary: &Canary, side| {
        let mut source = MemorySource::new(canary.examples(side, n, 0)?, 1.0, 1.0);
        audit::first_phase_without_noise(run, &mut source, vec![0.0; dim])
    };
    let (canary, reached, pairs) =
        search.farthest(|canary| Ok(distance(&output(canary, Side::Base)?, &output(canary, Side::Neighbour)?)))?;
    let noise = OutputNoiseScale::Gaussian { std_dev: first(&run.std_devs()) };
    let law = |side| -> Result<Law, Error> { Ok(Law::new(noise, [(1.0, output(&canary, side)?)])) };
    let laws = [law(Side::Base)?, law(Side::Neighbour)?];
    let distance = Distance { reached, claimed: first(run.sensitivities()), pairs };
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let sides = Sides::new(1.0, 1.0, |side| canary.examples(side, n, 0))?;
    let cost = COST_OF_A_RUN + parameters.n as f64 * parameters.dim as f64 * if minimises { 20.0 } else { 0.2 };
    let run = run.clone();
    // The attacker sees the first phase's release of a whole run.
    let subject = scored(name, canary.describe(), claim, cost, move |side, rng| {
        A::phases(&run, &mut sides.source(side), &mut rng.lend()).map(|releases| log_ratio(&laws, releases[0].get()))
    });
    Ok(Audited { subject, distance })
}
