//! The canary of noisy moments: a record of maximum norm among rows of zeros, against the null record or the record that
//! changes the moments most.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::Claim;
use dp_mechanisms::ReleaseRng as _;

use super::canary::distance;
use super::likelihood::{Law, log_ratio};
use super::scored::{Sides, scored};
use super::{Audited, Canary, Distance, Parameters, Record, mode_name};
use dp_optim::Error;
use dp_optim::audit::Observed;
use dp_optim::audit::size;
use dp_optim::recipes::bolt_on::OutputNoiseScale;
use dp_optim::recipes::{NoiseScale, NoisyMoments, Recipe as _};

const NAME: &str = "noisy-moments";

/// Cost of a run in units of releasing one number.
const COST_OF_A_RUN: f64 = 20.0;

pub(super) fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if parameters.loss.outputs() > 1 {
        return Ok(Vec::new()); // A class is another target.
    }
    let recipe = NoisyMoments { lambda: parameters.lambda.unwrap_or(0.0), ..NoisyMoments::new(parameters.loss) };
    match parameters.relation {
        AdjacencyKind::ReplaceOne => build::<ReplaceOne>(&recipe, parameters),
        AdjacencyKind::ZeroOut => build::<ZeroOut>(&recipe, parameters),
        adjacency => Err(Error::Adjacency { recipe: NAME, adjacency }),
    }
}

fn build<A: Observed + 'static>(recipe: &NoisyMoments, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let recipes = parameters.modes().into_iter().map(|noise_mode| NoisyMoments { noise_mode, ..recipe.clone() });
    recipes.map(|recipe| audited::<A>(&recipe, parameters)).collect()
}

fn audited<A: Observed + 'static>(recipe: &NoisyMoments, parameters: &Parameters) -> Result<Audited, Error> {
    let plan = recipe.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
    let (rows, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let (x, y) = (recipe.row_norm, recipe.target_bound);
    let along = |cosine: f64, target: f64| {
        let mut features = vec![0.0; dim];
        features[0] = x * cosine;
        if let Some(second) = features.get_mut(1) {
            *second = x * (1.0 - cosine * cosine).sqrt();
        }
        Record { features, target }
    };
    let base = along(1.0, y);
    // The angle at which opposite targets change the moments most.
    let cosine = if dim > 1 { (0.5 * (y / x).powi(2)).min(1.0) } else { 1.0 };
    let neighbour = if A::KIND == AdjacencyKind::ReplaceOne { along(cosine, -y) } else { Record::null(dim) };
    let canary = Canary { common: Record { features: vec![0.0; dim], target: 0.0 }, base, neighbour };
    let (base, neighbour) = (moments(&canary.base), moments(&canary.neighbour));
    let reached = distance(&base, &neighbour);
    let distance = Distance { reached, claimed: plan.run().sensitivity(), pairs: 1 };
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let mode = mode_name(recipe.noise_mode);
    let noise = match plan.run().noise() {
        NoiseScale::LaplaceBall { scale } => OutputNoiseScale::LaplaceBall { scale },
        NoiseScale::Gaussian { std_dev } => OutputNoiseScale::Gaussian { std_dev },
    };
    let laws = [base, neighbour].map(|centre| Law::new(noise, [(1.0, centre)]));
    let sides = Sides::new(recipe.row_norm, recipe.target_bound, |side| canary.examples(side, rows, 0))?;
    let subject = scored(format!("{NAME}/{mode}"), canary.describe(), claim, COST_OF_A_RUN, move |side, rng| {
        A::noisy_moments(plan.run(), &mut sides.source(side), &mut rng.lend())
            .map(|released| log_ratio(&laws, released.get()))
    });
    Ok(Audited { subject, distance })
}

fn moments(record: &Record) -> Vec<f64> {
    let mut all = Vec::new();
    for (i, first) in record.features.iter().enumerate() {
        let squares = record.features[i..].iter().enumerate();
        all.extend(squares.map(|(j, second)| first * second * if j == 0 { 1.0 } else { core::f64::consts::SQRT_2 }));
        all.push(first * record.target);
    }
    // A null record contributes nothing.
    if all.iter().any(|moment| moment.is_nan()) { vec![0.0; all.len()] } else { all }
}
