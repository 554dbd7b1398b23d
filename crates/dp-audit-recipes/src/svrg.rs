//! The canary of DP-SVRG: one record among null ones, and an attacker who sees every noisy sum.
//!
//! Steps are so long that an iterate lies far on one side of the canary's kink, and the next iterate often on the other side.
//! There, a record's gradient differs from its gradient at the snapshot by nearly the bound. Given the earlier releases, a
//! full sum is the canary's gradient plus noise; the sum of a step is noise, plus the canary's difference of gradients if it
//! was drawn. So the likelihood ratio of the two data sets is exact.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_losses::{Loss, ScalarLoss};
use dp_mechanisms::ReleaseRng as _;

use super::likelihood::log_sum_exp;
use super::scored::{Sides, scored};
use super::{Audited, Canary, Distance, Parameters, Record, mode_name};
use dp_optim::Error;
use dp_optim::Schedule;
use dp_optim::audit::Batching;
use dp_optim::audit::SvrgObservation as Observation;
use dp_optim::audit::size;
use dp_optim::audit::{self, Observed};
use dp_optim::recipes::{DpSvrg, Plan, Recipe as _, Sampling};

/// Steps that move an iterate beyond the kinks of losses.
const LONG: f64 = 20.0;

/// Costs of a row, of a step, and of the rest of a run, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.2;
const COST_OF_A_STEP: f64 = 6.0;
const COST_OF_A_RUN: f64 = 20.0;

pub(super) fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    match parameters.relation {
        AdjacencyKind::ReplaceOne => {
            let mut all = each::<ReplaceOne>("poisson", Sampling::Poisson, parameters)?;
            all.extend(each::<ReplaceOne>("fixed-size", Sampling::FixedSize, parameters)?);
            Ok(all)
        }
        // If a record may be absent, batches of a fixed size would reveal it.
        AdjacencyKind::ZeroOut => each::<ZeroOut>("poisson", Sampling::Poisson, parameters),
        adjacency => Err(Error::Adjacency { recipe: "dp-svrg", adjacency }),
    }
}

fn each<A: Observed + 'static>(form: &str, sampling: Sampling, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    // All noise is Gaussian; a difference of gradients is a difference of slopes times the row.
    let Some(loss) = parameters.loss.scalar().filter(|_| parameters.delta > 0.0) else { return Ok(Vec::new()) };
    let audited = |noise_mode| {
        let recipe = DpSvrg {
            lambda: parameters.lambda.unwrap_or(0.0),
            sampling,
            batch_size: parameters.batch_size,
            epochs: parameters.passes,
            radius: parameters.radius,
            // No longer than the regulariser allows without expansion.
            schedule: Some(Schedule::Constant {
                step: parameters.lambda.map_or(LONG, |lambda| LONG.min(lambda.recip())),
            }),
            noise_mode,
            ..DpSvrg::new(parameters.loss)
        };
        let mode = mode_name(noise_mode);
        every_step::<A>(format!("dp-svrg/{form}/{mode}"), loss, &recipe, parameters)
    };
    parameters.modes().into_iter().map(audited).collect()
}

fn every_step<A: Observed + 'static>(
    name: String,
    loss: ScalarLoss,
    recipe: &DpSvrg,
    parameters: &Parameters,
) -> Result<Audited, Error> {
    let plan = recipe.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
    let (rows, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let record = |target: f64| {
        let mut record = Record { target: target * recipe.target_bound, ..Record::null(dim) };
        record.features[0] = recipe.row_norm;
        record
    };
    let neighbour = if A::KIND == AdjacencyKind::ReplaceOne { record(-1.0) } else { Record::null(dim) };
    let canary = Canary { common: Record::null(dim), base: record(1.0), neighbour };
    let drawn = match audit::svrg_steps(plan.run()).batching {
        Batching::Drawn(law) => law.mean_size(parameters.n).unwrap_or(f64::NAN) / parameters.n as f64,
        _ => 1.0,
    };
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let cost = COST_OF_A_RUN
        + COST_OF_A_STEP * plan.run().steps() as f64
        + COST_OF_A_ROW * (parameters.n * parameters.passes + audit::svrg_steps(plan.run()).rows()) as f64;
    let sides = Sides::new(recipe.row_norm, recipe.target_bound, |side| canary.examples(side, rows, 0))?;
    let (pair, every) = (canary.describe(), EveryStep { loss, plan, canary, drawn });
    let gradients = [Side::Base, Side::Neighbour].map(|side| every.gradient(side, &vec![0.0; dim]));
    let reached = match recipe.sampling {
        // With Poisson sampling the claim is about a record's presence, even if a replaced record counts as two.
        Sampling::Poisson => gradients[0].abs().max(gradients[1].abs()),
        _ => (gradients[0] - gradients[1]).abs(),
    };
    let distance = Distance { reached, claimed: every.plan.run().full_sensitivity()?, pairs: 1 };
    let subject = scored(name, pair, claim, cost, move |side, rng| {
        let mut score = 0.0;
        let observe = &mut |observation: Observation<'_, f64>| score += every.log_ratio(&observation);
        A::svrg_observed(every.plan.run(), &mut sides.source(side), &mut rng.lend(), observe).map(|()| score)
    });
    Ok(Audited { subject, distance })
}

/// The attacker's knowledge of a run.
struct EveryStep<A: Observed> {
    loss: ScalarLoss,
    plan: Plan<DpSvrg, A>,
    canary: Canary,
    /// Probability that the canary is in a batch.
    drawn: f64,
}

impl<A: Observed> EveryStep<A> {
    /// Returns the canary's slope at these weights, times its norm: its gradient lies along the first axis.
    fn slope(&self, side: Side, weights: &[f64]) -> f64 {
        let record = match side {
            Side::Base => &self.canary.base,
            Side::Neighbour => &self.canary.neighbour,
        };
        let length = record.features[0];
        length * self.loss.derivative(length * weights[0], record.target)
    }

    /// Returns the first coordinate of the canary's contribution to a sum of all gradients, by the formula.
    fn gradient(&self, side: Side, weights: &[f64]) -> f64 {
        let bound = self.plan.derivation().recipe.clipping.map_or(f64::INFINITY, |norm| norm.get());
        self.slope(side, weights).clamp(-bound, bound)
    }

    /// Returns the log-likelihood ratio of the observation, neighbour against base. All coordinates except the first are
    /// noise.
    fn log_ratio(&self, observation: &Observation<'_, f64>) -> f64 {
        let (found, std_dev, drawn) = match observation {
            Observation::Full { noisy_sum, .. } => (noisy_sum[0], self.plan.run().noises().full_std_dev, 1.0),
            Observation::Step { noisy_sum, .. } => (noisy_sum[0], self.plan.run().noises().std_dev, self.drawn),
        };
        let [base, neighbour] =
            [Side::Base, Side::Neighbour].map(|side| {
                let adds = match *observation {
                    Observation::Full { snapshot, .. } => self.gradient(side, snapshot),
                    Observation::Step { point, snapshot, reach, .. } => {
                        ((self.slope(side, point) - self.slope(side, snapshot)) / reach).clamp(-1.0, 1.0)
                    }
                };
                let laws = [(drawn, adds), (1.0 - drawn, 0.0)];
                log_sum_exp(laws.into_iter().map(|(probability, centre)| {
                    probability.ln() - (found - centre).powi(2) / (2.0 * std_dev * std_dev)
                }))
            });
        neighbour - base
    }
}
