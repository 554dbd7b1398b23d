//! The canaries of PrivGene and of the constant prediction: a record of one class, with the other class in the neighbour.

use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_data::Examples;
use dp_mechanisms::ReleaseRng as _;
use dp_mechanisms::scores::Scores;

use super::likelihood::{Law, log_ratio};
use super::scored::{Sides, scored, trained};
use super::{Audited, Distance, Parameters, mode_name};
use dp_optim::Error;
use dp_optim::audit::{self, Observed, size};
use dp_optim::recipes::bolt_on::OutputNoiseScale;
use dp_optim::recipes::{AnyPlan, Majority, PrivGene, Recipe as _};

/// Costs of a row and of a run, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.1;
const COST_OF_A_RUN: f64 = 8.0;

pub(super) fn priv_gene(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if parameters.loss.scalar().is_none() || matches!(parameters.loss, dp_losses::LossKind::Squared) {
        return Ok(Vec::new()); // Losses of one prediction whose slope is bounded.
    }
    // The choice is always exact.
    if parameters.noise_mode == Some(NoiseMode::Rounded) {
        return Ok(Vec::new());
    }
    // One round, after which the model is the choice itself.
    let recipe = PrivGene { rounds: Some(1), ..PrivGene::new(parameters.loss) };
    let audited = match parameters.relation {
        AdjacencyKind::ReplaceOne => one_choice::<ReplaceOne>(&recipe, parameters)?,
        AdjacencyKind::ZeroOut => one_choice::<ZeroOut>(&recipe, parameters)?,
        adjacency => return Err(Error::Adjacency { recipe: "priv-gene", adjacency }),
    };
    Ok(vec![audited])
}

pub(super) fn majority(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if parameters.loss.scalar().is_none() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for noise_mode in parameters.modes() {
        let recipe = Majority { noise_mode, ..Majority::new(parameters.loss) };
        all.push(match parameters.relation {
            AdjacencyKind::ReplaceOne => two_counts::<ReplaceOne>(&recipe, parameters)?,
            AdjacencyKind::ZeroOut => two_counts::<ZeroOut>(&recipe, parameters)?,
            adjacency => return Err(Error::Adjacency { recipe: "majority", adjacency }),
        });
    }
    Ok(all)
}

/// Returns records along the first axis with alternating classes; the first of them differs between the sides.
fn examples<A: Observed>(parameters: &Parameters, side: Side) -> Result<Examples<f64>, Error> {
    let (rows, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let mut values = vec![0.0; rows * dim];
    (0..rows).for_each(|row| values[row * dim] = 1.0);
    let mut targets: Vec<f64> = (0..rows).map(|row| if row % 2 == 0 { 1.0 } else { -1.0 }).collect();
    match side {
        Side::Base => {}
        Side::Neighbour if A::KIND == AdjacencyKind::ReplaceOne => targets[0] = -1.0,
        Side::Neighbour => values[0] = f64::NAN,
    }
    Examples::dense(values, targets, dim).map_err(|_| Error::Count {
        name: "rows",
        value: parameters.n,
        range: "what memory can address",
    })
}

fn pair<A: Observed>() -> String {
    let other = if A::KIND == AdjacencyKind::ReplaceOne { "the other" } else { "none" };
    format!("a record of the one class against one of {other}, all others in equal parts")
}

fn one_choice<A: Observed + 'static>(recipe: &PrivGene, parameters: &Parameters) -> Result<Audited, Error> {
    let plan = recipe.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let sides = Sides::new(recipe.row_norm, recipe.target_bound, |side| examples::<A>(parameters, side))?;
    let weights = vec![0.0; parameters.dim as usize];
    let utilities = |side| audit::utilities(plan.run(), &mut sides.source(side), &weights, recipe.step);
    let (base, neighbour) = (utilities(Side::Base)?, utilities(Side::Neighbour)?);
    let reached = base.iter().zip(&neighbour).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let distance = Distance { reached, claimed: plan.run().choice::<A>()?.sensitivity().get(), pairs: 1 };
    let law = |scores| Ok::<_, Error>(plan.run().choice::<A>()?.probabilities(&Scores::new(scores)?)?);
    let (base, neighbour) = (law(base)?, law(neighbour)?);
    let cost = COST_OF_A_RUN + COST_OF_A_ROW * parameters.n as f64 * (1.0 + parameters.dim as f64);
    let plan = AnyPlan::PrivGene(plan);
    let subject = scored("priv-gene/exact".to_owned(), pair::<A>(), claim, cost, move |side, rng| {
        trained(&plan, sides.source(side), rng).map(|weights| {
            let coordinate = weights.iter().position(|&weight| weight != 0.0).unwrap_or(0);
            let chosen = 2 * coordinate + usize::from(weights.get(coordinate).is_some_and(|&weight| weight < 0.0));
            (neighbour[chosen] / base[chosen]).ln()
        })
    });
    Ok(Audited { subject, distance })
}

fn two_counts<A: Observed + 'static>(recipe: &Majority, parameters: &Parameters) -> Result<Audited, Error> {
    let plan = recipe.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
    let claim = Claim { event: plan.derivation().event()?, delta: 0.0 };
    let sides = Sides::new(recipe.row_norm, recipe.target_bound, |side| examples::<A>(parameters, side))?;
    let counts = |side| audit::counts(plan.run(), &mut sides.source(side));
    let counts = [counts(Side::Base)?, counts(Side::Neighbour)?];
    let [[p, q], [other_p, other_q]] = counts;
    let distance = Distance { reached: (p - other_p).hypot(q - other_q), claimed: plan.run().sensitivity(), pairs: 1 };
    let noise = OutputNoiseScale::LaplaceBall { scale: plan.run().scale() };
    let laws = counts.map(|counts| Law::new(noise, [(1.0, counts.to_vec())]));
    let mode = mode_name(recipe.noise_mode);
    let cost = COST_OF_A_RUN + COST_OF_A_ROW * parameters.n as f64;
    // The attacker sees the noisy counts.
    let subject = scored(format!("majority/{mode}"), pair::<A>(), claim, cost, move |side, rng| {
        A::noisy_counts(plan.run(), &mut sides.source(side), &mut rng.lend()).map(|noisy| log_ratio(&laws, noisy.get()))
    });
    Ok(Audited { subject, distance })
}
