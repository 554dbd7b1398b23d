//! The canary of a choice on portions: a record of the last portion that one of two models classifies correctly and the other
//! incorrectly.
//!
//! The records of the other portions are those of the candidates' own audits.

use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_data::Examples;
use dp_mechanisms::scores::Scores;

use super::scored::{Sides, scored};
use super::{Audited, Distance, Parameters, mode_name};
use dp_optim::Error;
use dp_optim::audit;
use dp_optim::audit::size;
use dp_optim::audit::{agreement, agreement_sensitivity};
use dp_optim::engine::Control;
use dp_optim::recipes::AnyRecipe;
use dp_optim::recipes::{BoltOn, OutputNoise, Recipe, RecordAdjacency};
use dp_optim::tuning::Portions;

/// Number of candidates; they differ in their number of passes.
const CANDIDATES: u64 = 2;

/// Costs of a row, and of a choice, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.02;
const COST_OF_A_CHOICE: f64 = 4.0;

pub(super) fn portions(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if !parameters.loss.is_classification() {
        return Ok(Vec::new()); // It counts mistakes.
    }
    match parameters.relation {
        AdjacencyKind::ReplaceOne => build::<ReplaceOne>(parameters),
        AdjacencyKind::ZeroOut => build::<ZeroOut>(parameters),
        adjacency => Err(Error::Adjacency { recipe: "portions", adjacency }),
    }
}

fn build<A: RecordAdjacency + 'static>(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    parameters.modes().into_iter().map(|mode| audited::<A>(parameters, mode)).collect()
}

fn audited<A: RecordAdjacency + 'static>(parameters: &Parameters, noise_mode: NoiseMode) -> Result<Audited, Error> {
    let candidate = |further| BoltOn {
        lambda: parameters.lambda.unwrap_or(0.0),
        passes: if parameters.passes == 0 { 0 } else { parameters.passes + further },
        batch_size: parameters.batch_size,
        radius: parameters.radius,
        output_noise: OutputNoise::LaplaceBall,
        noise_mode,
        ..BoltOn::convex(parameters.loss)
    };
    let recipe = Portions::new((0..CANDIDATES).map(|further| AnyRecipe::from(candidate(further))));
    // Each portion has as many records as other audits have in total.
    let n = parameters.n.saturating_mul(CANDIDATES + 1);
    let plan = recipe.plan_copies::<A>(n, parameters.dim, parameters.budget()?, 1)?;
    let (rows, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let models = [1.0, -1.0].map(|sign| {
        let mut weights = vec![0.0; dim];
        weights[0] = sign;
        weights
    });
    // Records that contradict the first model, so that it is rarely chosen: a rare choice is most informative.
    let claimed = agreement_sensitivity("portions", A::KIND)?;
    let against = (rows - 1).min(claimed as usize + 1);
    let sides = Sides::new(1.0, 1.0, |side| {
        let (mut values, mut targets) = (vec![0.0; rows * dim], vec![1.0; rows]);
        for i in 0..rows {
            let null = i > against || (i == 0 && side == Side::Neighbour && A::KIND == AdjacencyKind::ZeroOut);
            values[i * dim] = if null { f64::NAN } else { 1.0 };
            if i > 0 || side == Side::Neighbour {
                targets[i] = -1.0;
            }
        }
        Examples::dense(values, targets, dim).map_err(|_| Error::Count {
            name: "rows",
            value: rows as u64,
            range: "one target each",
        })
    })?;
    let scores = |side| -> Result<Vec<i64>, Error> {
        let mut source = sides.source(side);
        models.iter().map(|model| agreement(&mut source, model, &Control::default())).collect()
    };
    let (base, neighbour) = (scores(Side::Base)?, scores(Side::Neighbour)?);
    let moved = base.iter().zip(&neighbour).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
    let distance = Distance { reached: moved as f64, claimed: claimed as f64, pairs: 1 };
    let law = |scores: Vec<i64>| -> Result<Vec<f64>, Error> {
        let scores = scores.into_iter().map(|score| score as f64).collect();
        Ok(plan.choice().probabilities(&Scores::new(scores)?)?)
    };
    let (base, neighbour) = (law(base)?, law(neighbour)?);
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: 0.0 };
    let mode = mode_name(noise_mode);
    let other = if A::KIND == AdjacencyKind::ZeroOut { "a null record" } else { "one that only the second gets right" };
    let pair =
        format!("a record that only the first of two models gets right against {other}, beside {against} others");
    let cost = COST_OF_A_CHOICE + COST_OF_A_ROW * (CANDIDATES * parameters.n) as f64;
    let subject = scored(format!("portions/choice/{mode}"), pair, claim, cost, move |side, rng| {
        let models = [&models[0][..], &models[1][..]];
        audit::chosen_portion(&plan, &models, &mut sides.source(side), rng)
            .map(|chosen| (neighbour[chosen] / base[chosen]).ln())
    });
    Ok(Audited { subject, distance })
}
