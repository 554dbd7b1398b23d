//! The canaries of SCS13, against an attacker who sees every noisy sum and so every iterate.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_data::Examples;
use dp_mechanisms::ReleaseRng as _;

use super::canary::distance;
use super::scored::{Sides, scored};
use super::{Audited, Canary, Distance, Parameters, Record, Search, mode_name};
use dp_optim::Error;
use dp_optim::Schedule;
use dp_optim::audit::{self, Observed, Scs13Observation as Observation, size};
use dp_optim::recipes::scs13::{NoiseScale, Scs13, StepLaw, UpdatesRun};
use dp_optim::recipes::{Budget, Plan, Recipe as _};

/// Steps so short that noise does not move the iterates to points where the canary's two gradients are similar.
const STEP: f64 = 1e-4;
/// Cost of an update without its noise, in units of releasing one number.
const COST_OF_AN_UPDATE: f64 = 2.0;

/// Returns the variants of the recipe: each law, the ball by its epsilon and composed tightly, in each mode.
pub(super) fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    match parameters.relation {
        AdjacencyKind::ReplaceOne => build::<ReplaceOne>(parameters),
        AdjacencyKind::ZeroOut => build::<ZeroOut>(parameters),
        adjacency => Err(Error::Adjacency { recipe: "scs13", adjacency }),
    }
}

fn build<A: Observed + 'static>(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let budget = parameters.budget()?;
    let pure = Budget { delta: dp_accountant::Delta::ZERO, ..budget };
    let mut forms = vec![("laplace-ball", StepLaw::LaplaceBall, pure)];
    if parameters.delta > 0.0 {
        forms.push(("laplace-ball-composed", StepLaw::LaplaceBall, budget));
        forms.push(("gaussian", StepLaw::Gaussian, budget));
    }
    let (mut all, mut found) = (Vec::new(), None);
    for noise_mode in parameters.modes() {
        for &(form, law, budget) in &forms {
            let recipe = Scs13 {
                law,
                noise_mode,
                lambda: parameters.lambda.unwrap_or(0.0),
                passes: parameters.passes,
                batch_size: parameters.batch_size,
                radius: parameters.radius,
                schedule: Some(Schedule::Constant { step: STEP }),
                // An order known to the attacker: the claim holds for all orders.
                declared_order: true,
                ..Scs13::new(parameters.loss)
            };
            let plan = recipe.plan::<A>(parameters.n, parameters.dim, budget)?;
            let mode = mode_name(noise_mode);
            // The sums before noise are the same for all variants.
            let farthest = match &found {
                Some(farthest) => farthest,
                None => found.insert(farthest(&plan, parameters)?),
            };
            all.push(audited(format!("scs13/{form}/{mode}"), plan, parameters, farthest, budget.delta.get())?);
        }
    }
    Ok(all)
}

/// The canary that changes the sum of the first batch most at the start of training, the origin, and the distance.
struct Farthest {
    canary: Canary,
    distance: Distance,
}

fn farthest<A: Observed>(plan: &Plan<Scs13, A>, parameters: &Parameters) -> Result<Farthest, Error> {
    let recipe = &plan.derivation().recipe;
    let batch_size = size("batch size", recipe.batch_size.min(parameters.n))?;
    let search = Search {
        dim: size("dimension", parameters.dim)?,
        row_norm: recipe.row_norm,
        target_bound: recipe.target_bound,
        classes: recipe.loss.is_classification(),
        relation: A::KIND,
        pairs: parameters.pairs,
    };
    let origin = vec![0.0; size("dimension", recipe.loss.parameters(parameters.dim))?];
    let sum = |canary: &Canary, side| audit::clipped_sum(plan.run(), &canary.examples(side, batch_size, 0)?, &origin);
    let (canary, reached, pairs) =
        search.farthest(|canary| Ok(distance(&sum(canary, Side::Base)?, &sum(canary, Side::Neighbour)?)))?;
    Ok(Farthest { canary, distance: Distance { reached, claimed: plan.run().sensitivity(), pairs } })
}

fn audited<A: Observed + 'static>(
    name: String,
    plan: Plan<Scs13, A>,
    parameters: &Parameters,
    farthest: &Farthest,
    delta: f64,
) -> Result<Audited, Error> {
    let Farthest { canary, distance } = farthest;
    let n = size("number of records", parameters.n)?;
    let recipe = &plan.derivation().recipe;
    let batch_size = size("batch size", recipe.batch_size.min(parameters.n))?;
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta };
    // The canary is in the first batch.
    let sides = Sides::new(recipe.row_norm, recipe.target_bound, |side| canary.examples(side, n, 0))?;
    let single = |record: &Record| {
        let canary = Canary { common: record.clone(), base: record.clone(), neighbour: record.clone() };
        canary.examples(Side::Base, 1, 0)
    };
    let records =
        Records { common: single(&canary.common)?, base: single(&canary.base)?, neighbour: single(&canary.neighbour)? };
    let updates = plan.run().steps().steps();
    let cost = updates as f64 * (COST_OF_AN_UPDATE + parameters.dim as f64);
    let (updates_per_pass, weights) = (updates / recipe.passes, recipe.loss.parameters(parameters.dim) as usize);
    let subject = scored(name, canary.describe(), claim, cost, move |side, rng| {
        let (mut before, mut ratios) = (vec![0.0; weights], Vec::new());
        let watch = &mut |seen: Observation<'_, f64>| {
            // The canary's batch is the first of each pass; all others have the same law on both sides.
            if (seen.update - 1).is_multiple_of(updates_per_pass) {
                ratios.push(records.log_ratio(plan.run(), batch_size, &before, seen.noisy_sum));
            }
            before.copy_from_slice(seen.iterate);
        };
        A::scs13_observed(plan.run(), &mut sides.source(side), &mut rng.lend(), watch)?;
        ratios.into_iter().sum::<Result<f64, Error>>()
    });
    Ok(Audited { subject, distance: *distance })
}

struct Records {
    common: Examples<f64>,
    base: Examples<f64>,
    neighbour: Examples<f64>,
}

impl Records {
    /// Returns the log-likelihood ratio of one noisy sum of the canary's batch, given the previous iterate.
    fn log_ratio(&self, run: &UpdatesRun, batch_size: usize, iterate: &[f64], noisy_sum: &[f64]) -> Result<f64, Error> {
        let gradient = |record| audit::clipped_sum(run, record, iterate);
        let (common, base, neighbour) = (gradient(&self.common)?, gradient(&self.base)?, gradient(&self.neighbour)?);
        let others = (batch_size - 1) as f64;
        let log_density = |canary: &[f64]| {
            let centre = common.iter().zip(canary).map(|(common, canary)| others * common + canary);
            let squared: f64 = noisy_sum.iter().zip(centre).map(|(y, c)| (y - c) * (y - c)).sum();
            match run.noise() {
                NoiseScale::LaplaceBall { scale } => -squared.sqrt() / scale,
                NoiseScale::Gaussian { std_dev } => -squared / (2.0 * std_dev * std_dev),
            }
        };
        Ok(log_density(&neighbour) - log_density(&base))
    }
}
