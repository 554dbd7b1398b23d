//! The canary of noisy Newton steps: the only record that is not null, with a slope of nearly 1 at the current iterate. It is
//! compared with the null record, or with a record that pulls in nearly the opposite direction. The attacker sees all sums of
//! a step.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::Claim;
use dp_losses::LossKind;

use super::canary::distance;
use super::likelihood::{Law, log_ratio};
use super::scored::{Sides, scored};
use super::{Audited, Canary, Distance, Parameters, Record, mode_name};
use dp_optim::Error;
use dp_optim::audit::size;
use dp_optim::audit::{self, Observed};
use dp_optim::recipes::bolt_on::OutputNoiseScale;
use dp_optim::recipes::{DpNewton, Plan, Recipe as _};

const NAME: &str = "dp-newton";

/// Cost of a run in units of releasing one number.
const COST_OF_A_RUN: f64 = 30.0;
/// Norm of weights at which the slope of a logistic loss is 1 within `e^-40`.
const FAR: f64 = 4000.0;
/// Sine of the angle between two rows that pull in nearly opposite directions there.
const TILT: f64 = 0.01;

pub(super) fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    // Smooth losses of a margin; all noise is Gaussian.
    let smooth = matches!(parameters.loss, LossKind::Logistic | LossKind::HuberSvm(_));
    if !smooth || !(parameters.delta > 0.0) {
        return Ok(Vec::new());
    }
    // One step, all sums of which the attacker sees.
    let recipe = DpNewton { steps: 1, lambda: parameters.lambda, ..DpNewton::new(parameters.loss) };
    let recipes = parameters.modes().into_iter().map(|noise_mode| DpNewton { noise_mode, ..recipe.clone() });
    recipes
        .map(|recipe| match parameters.relation {
            AdjacencyKind::ReplaceOne => audited::<ReplaceOne>(&recipe, parameters),
            AdjacencyKind::ZeroOut => audited::<ZeroOut>(&recipe, parameters),
            adjacency => Err(Error::Adjacency { recipe: NAME, adjacency }),
        })
        .collect()
}

fn audited<A: Observed + 'static>(recipe: &DpNewton, parameters: &Parameters) -> Result<Audited, Error> {
    let plan = recipe.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
    let (rows, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let record = |first: f64, second: f64, target: f64| {
        let mut features = vec![0.0; dim];
        features[0] = first;
        if let Some(entry) = features.get_mut(1) {
            *entry = second;
        }
        Record { features, target }
    };
    let mut weights = vec![0.0; dim];
    let (base, other) = match parameters.loss {
        // Just before the kink, where slope and curvature are both at their maximum; beyond it the curvature is zero.
        LossKind::HuberSvm(loss) => {
            weights[0] = 1.0 - loss.h() * (1.0 - 1e-9);
            (record(1.0, 0.0, 1.0), record(1.0, 0.0, -1.0))
        }
        _ if dim > 1 => {
            weights[1] = -FAR;
            let cosine = (1.0 - TILT * TILT).sqrt();
            (record(cosine, TILT, 1.0), record(-cosine, TILT, 1.0))
        }
        _ => {
            weights[0] = -FAR;
            (record(1.0, 0.0, 1.0), record(1.0, 0.0, -1.0))
        }
    };
    let neighbour = if A::KIND == AdjacencyKind::ReplaceOne { other } else { Record::null(dim) };
    let canary = Canary { common: Record::null(dim), base, neighbour };
    let [base, neighbour] = [&canary.base, &canary.neighbour].map(|record| sums(record, &weights, &plan));
    let reached = distance(&base, &neighbour);
    let distance = Distance { reached, claimed: plan.run().sensitivity(), pairs: 1 };
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let mode = mode_name(recipe.noise_mode);
    let noise = OutputNoiseScale::Gaussian { std_dev: plan.run().std_dev() };
    let laws = [base, neighbour].map(|centre| Law::new(noise, [(1.0, centre)]));
    let sides = Sides::new(recipe.row_norm, recipe.target_bound, |side| canary.examples(side, rows, 0))?;
    let subject = scored(format!("{NAME}/{mode}"), canary.describe(), claim, COST_OF_A_RUN, move |side, rng| {
        A::newton_sums(plan.run(), &mut sides.source(side), &weights, rng)
            .map(|released| log_ratio(&laws, released.get()))
    });
    Ok(Audited { subject, distance })
}

/// Returns one record's contribution to a step's sums, by the formula.
fn sums<A: Observed>(record: &Record, weights: &[f64], plan: &Plan<DpNewton, A>) -> Vec<f64> {
    let dim = weights.len();
    let count = dim + dim * (dim + 1) / 2;
    if record.features.iter().any(|x| x.is_nan()) || record.target == 0.0 {
        return vec![0.0; count]; // A null record contributes nothing.
    }
    let margin = record.target * record.features.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>();
    let (slope, bend) = match plan.derivation().recipe.loss {
        LossKind::HuberSvm(loss) => {
            let slope = ((1.0 + loss.h() - margin) / (2.0 * loss.h())).clamp(0.0, 1.0);
            (slope, if slope > 0.0 && slope < 1.0 { 0.5 / loss.h() } else { 0.0 })
        }
        _ => {
            let slope = 1.0 / (1.0 + margin.exp());
            (slope, slope * (1.0 - slope))
        }
    };
    let x = &record.features;
    let mut all: Vec<f64> = x.iter().map(|x| -record.target * slope * x).collect();
    for (i, first) in x.iter().enumerate() {
        let squares = x[i..].iter().enumerate();
        let weight = audit::newton_weight(plan.run()) * bend * first;
        all.extend(squares.map(|(j, second)| weight * second * if j == 0 { 1.0 } else { core::f64::consts::SQRT_2 }));
    }
    all
}
