//! The canaries of the bolt-on recipes.

use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};

use super::canary::distance;
use super::likelihood::{Law, log_ratio};
use super::scored::{Sides, scored, trained};
use super::{Audited, Canary, Distance, Parameters, Search, mode_name};
use dp_optim::Averaging;
use dp_optim::Error;
use dp_optim::MemorySource;
use dp_optim::Schedule;
use dp_optim::audit;
use dp_optim::audit::size;
use dp_optim::recipes::bolt_on::OutputNoiseScale;
use dp_optim::recipes::{AnyPlan, BoltOn, OutputNoise, Plan, Recipe as _, Stopping, TrainsAny};

/// Maximum number of rows read by the search for the farthest pair.
const ROWS_OF_A_SEARCH: u64 = 50_000_000;

/// Minimum number of pairs tried for any length of run: the constructed extremes.
const FEWEST_PAIRS: u64 = 8;

/// Maximum number of canary positions in the likelihood of a hidden position.
const MOST_PLACES: u64 = 256;

/// Costs of a row and of a run, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.1;
const COST_OF_A_RUN: f64 = 4.0;

/// Rough number of passes to a certified minimiser.
const PASSES_TO_A_MINIMISER: f64 = 30.0;

/// Default λ of recipes that need one.
const LAMBDA: f64 = 0.5;

pub(super) fn convex(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let recipe = BoltOn { lambda: parameters.lambda.unwrap_or(0.0), ..BoltOn::convex(parameters.loss) };
    // Early records affect more of the averaged iterates, so that hiding the position has an effect.
    let uneven = BoltOn { averaging: Averaging::Uniform, ..recipe.clone() };
    variants(Variants { name: "bolt-on-convex", recipe, uneven }, parameters)
}

pub(super) fn strongly_convex(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let lambda = parameters.lambda.unwrap_or(LAMBDA);
    let recipe = BoltOn::strongly_convex(parameters.loss, lambda);
    // With a constant step size, the regulariser shrinks the effect of early records.
    let constants = parameters.loss.constants(dp_losses::L2::new(lambda)?, &dp_losses::Domain::unit_rows());
    let schedule = Some(Schedule::Constant { step: 1.0 / constants.smoothness });
    let uneven = BoltOn { schedule, ..recipe.clone() };
    variants(Variants { name: "bolt-on-strongly-convex", recipe, uneven }, parameters)
}

struct Variants {
    name: &'static str,
    recipe: BoltOn,
    /// The recipe with records whose effect depends on their position.
    uneven: BoltOn,
}

fn variants(variants: Variants, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    match parameters.relation {
        AdjacencyKind::ReplaceOne => build::<ReplaceOne>(variants, parameters),
        AdjacencyKind::ZeroOut => build::<ZeroOut>(variants, parameters),
        adjacency => Err(Error::Adjacency { recipe: variants.name, adjacency }),
    }
}

fn build<A: TrainsAny<f64> + 'static>(variants: Variants, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let mut all = Vec::new();
    for mode in parameters.modes() {
        all.extend(drawn::<A>(&variants, mode, parameters)?);
    }
    Ok(all)
}

fn drawn<A: TrainsAny<f64> + 'static>(
    variants: &Variants,
    noise_mode: NoiseMode,
    parameters: &Parameters,
) -> Result<Vec<Audited>, Error> {
    let Variants { name, recipe, uneven } = variants;
    let shaped = |recipe: &BoltOn| BoltOn {
        noise_mode,
        passes: parameters.passes,
        batch_size: parameters.batch_size,
        radius: parameters.radius,
        ..recipe.clone()
    };
    // The canary at the worst position, in an order that the attacker knows: the claim holds for every order.
    let known = |output_noise| BoltOn { output_noise, declared_order: true, ..shaped(recipe) };
    let budget = parameters.budget()?;
    let plan = |recipe: &BoltOn| recipe.plan::<A>(parameters.n, parameters.dim, budget);
    let mut forms = vec![("laplace-ball", plan(&known(OutputNoise::LaplaceBall))?)];
    if recipe.lambda > 0.0 && parameters.radius.is_none() {
        let stopping = Stopping::CertifiedMinimiser { tolerance: None };
        forms.push(("certified-minimiser", plan(&BoltOn { stopping, ..known(OutputNoise::LaplaceBall) })?));
    }
    if parameters.delta > 0.0 {
        forms.push(("gaussian", plan(&known(OutputNoise::Gaussian))?));
        let hidden = plan(&BoltOn { output_noise: OutputNoise::Gaussian, ..shaped(uneven) })?;
        let gains = matches!(hidden.derivation().calibrated.noise, OutputNoiseScale::HiddenPositionGaussian { .. });
        if gains && hidden.run().growth().updates_per_pass() <= MOST_PLACES {
            forms.push(("hidden-position", hidden));
        }
    }
    let mode = mode_name(noise_mode);
    forms.into_iter().map(|(form, plan)| audited(format!("{name}/{form}/{mode}"), plan, parameters)).collect()
}

/// Finds the canary of a plan and the laws of its releases.
pub(super) fn audited<A: TrainsAny<f64> + 'static>(
    name: String,
    plan: Plan<BoltOn, A>,
    parameters: &Parameters,
) -> Result<Audited, Error> {
    let (n, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let recipe = &plan.derivation().recipe;
    let output = |canary: &Canary, side, at| {
        let mut source = MemorySource::new(canary.examples(side, n, at)?, recipe.row_norm, recipe.target_bound);
        audit::train_without_noise(plan.run(), &mut source)
    };
    let batch_size = size("batch size", plan.run().growth().batch_size.min(parameters.n))?;
    let by_position = plan.run().growth().sensitivity().map(|sensitivity| sensitivity.by_position).unwrap_or_default();
    let worst = (0..by_position.len()).max_by(|&i, &j| by_position[i].total_cmp(&by_position[j])).unwrap_or(0);
    let at = worst * batch_size;
    let reads = parameters.n.saturating_mul(plan.run().growth().passes).saturating_mul(2).max(1);
    let search = Search {
        dim,
        row_norm: recipe.row_norm,
        target_bound: recipe.target_bound,
        classes: recipe.loss.is_classification(),
        relation: A::KIND,
        pairs: u64::from(parameters.pairs).min((ROWS_OF_A_SEARCH / reads).max(FEWEST_PAIRS)) as u32,
    };
    let (canary, reached, pairs) = search
        .farthest(|canary| Ok(distance(&output(canary, Side::Base, at)?, &output(canary, Side::Neighbour, at)?)))?;
    let noise = plan.derivation().calibrated.noise;
    let hidden = matches!(noise, OutputNoiseScale::HiddenPositionGaussian { .. });
    // If the position is hidden, the law is a mixture over the batches that may contain the canary.
    let places: Vec<(f64, usize)> = if hidden {
        let places = 0..plan.run().growth().updates_per_pass();
        places.zip((0..).step_by(batch_size)).map(|(r, at)| (plan.run().growth().position_weight(r), at)).collect()
    } else {
        vec![(1.0, at)]
    };
    let law = |side| -> Result<Law, Error> {
        let centres = places.iter().map(|&(weight, at)| Ok((weight, output(&canary, side, at)?)));
        Ok(Law::new(noise, centres.collect::<Result<Vec<_>, Error>>()?))
    };
    let laws = [law(Side::Base)?, law(Side::Neighbour)?];
    let distance = Distance { reached, claimed: plan.run().sensitivity(), pairs };
    let pure = matches!(noise, OutputNoiseScale::LaplaceBall { .. });
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: if pure { 0.0 } else { parameters.delta } };
    let sides = Sides::new(recipe.row_norm, recipe.target_bound, |side| canary.examples(side, n, at))?;
    let cost = cost(&plan);
    let plan = AnyPlan::BoltOn(plan);
    let subject = scored(name, canary.describe(), claim, cost, move |side, rng| {
        trained(&plan, sides.source(side), rng).map(|released| log_ratio(&laws, &released))
    });
    Ok(Audited { subject, distance })
}

/// Returns the cost of a run in units of releasing one number.
fn cost<A: TrainsAny<f64>>(plan: &Plan<BoltOn, A>) -> f64 {
    let growth = plan.run().growth();
    let minimised = plan.derivation().recipe.stopping != Stopping::Passes;
    let passes = growth.passes as f64 + if minimised { PASSES_TO_A_MINIMISER } else { 0.0 };
    let dim = plan.derivation().dim as f64;
    COST_OF_A_RUN + dim + COST_OF_A_ROW * growth.n as f64 * passes * (1.0 + dim / 8.0)
}
