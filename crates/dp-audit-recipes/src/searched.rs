//! The canary of descent with a private line search: one gradient and one choice, both seen by the attacker.
//!
//! All records lie along the first axis, so that the centre of a release and the probabilities of a choice follow from slopes
//! and losses of one number. For batches, which are drawn afresh for the gradient and for the choice, each law is a mixture:
//! the canary is in the batch or not, and all others are null records.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_data::Examples;
use dp_losses::{Loss, ScalarLoss};
use dp_mechanisms::ReleaseRng as _;

use super::likelihood::log_sum_exp;
use super::scored::{Sides, scored};
use super::{Audited, Distance, Parameters, mode_name};
use dp_optim::Error;
use dp_optim::audit::SearchObservation as Observation;
use dp_optim::audit::{self, Observed, size};
use dp_optim::engine::BatchLaw;
use dp_optim::recipes::{Plan, Recipe as _, Search, SearchedDescent};

/// Costs in units of releasing one number: of a row, of the probability of an answer of NoisyBTLS, which is an integral, and
/// of the rest of a run.
const COST_OF_A_ROW: f64 = 1.0;
const COST_OF_AN_INTEGRAL: f64 = 1000.0;
const COST_OF_A_RUN: f64 = 60.0;

pub(super) fn dp_blgd(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let backtracking = SearchedDescent { candidates: 4, shrink: 0.5, ..SearchedDescent::dp_blgd(parameters.loss) };
    let selection = SearchedDescent { search: Search::Selection, ..backtracking.clone() };
    let mut all = each("dp-blgd/backtracking", &backtracking, parameters)?;
    all.extend(each("dp-blgd/selection", &selection, parameters)?);
    // Batches have no proof under replace-one.
    if parameters.relation == AdjacencyKind::ZeroOut {
        let batch_size = Some(parameters.batch_size);
        let in_batches = [("backtracking", backtracking), ("selection", selection)];
        for (search, recipe) in in_batches {
            let name = format!("dp-blgd/in-batches/{search}");
            all.extend(each(&name, &SearchedDescent { batch_size, ..recipe }, parameters)?);
        }
    }
    Ok(all)
}

pub(super) fn dp_agd(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    each("dp-agd", &SearchedDescent { candidates: 4, ..SearchedDescent::dp_agd(parameters.loss) }, parameters)
}

fn each(name: &str, recipe: &SearchedDescent, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let Some(loss) = recipe.loss.scalar().filter(|_| parameters.delta > 0.0) else { return Ok(Vec::new()) };
    let recipe = SearchedDescent { steps: 1, lambda: parameters.lambda.unwrap_or(0.0), ..recipe.clone() };
    let mut all = Vec::new();
    for noise_mode in parameters.modes() {
        let recipe = SearchedDescent { noise_mode, ..recipe.clone() };
        let mode = mode_name(noise_mode);
        let name = format!("{name}/{mode}");
        all.push(match parameters.relation {
            AdjacencyKind::ReplaceOne => audited::<ReplaceOne>(name, &recipe, loss, parameters)?,
            AdjacencyKind::ZeroOut => audited::<ZeroOut>(name, &recipe, loss, parameters)?,
            adjacency => return Err(Error::Adjacency { recipe: "searched-descent", adjacency }),
        });
    }
    Ok(all)
}

fn audited<A: Observed + 'static>(
    name: String,
    recipe: &SearchedDescent,
    loss: ScalarLoss,
    parameters: &Parameters,
) -> Result<Audited, Error> {
    let plan = recipe.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
    let (rows, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let other = if A::KIND == AdjacencyKind::ReplaceOne { Some(-1.0) } else { None };
    let batches = recipe.batch_size.map(|size| BatchLaw::Poisson { mean_darts: size.min(parameters.n) });
    let sides = [Some(1.0), other].map(|first| {
        let of_row = |row: usize| if row.is_multiple_of(2) { 1.0 } else { -1.0 };
        let others = (1..rows).map(|row| batches.is_none().then(|| of_row(row)));
        OnAxis { loss, targets: core::iter::once(first).chain(others).collect(), dim }
    });
    let drawn = match batches {
        None => vec![(1.0, 1.0)],
        Some(law) => {
            let rate = law.sampling_rate(parameters.n)?.get();
            vec![(rate, 1.0), (1.0 - rate, 0.0)]
        }
    };
    let sums = [0, 1].map(|side: usize| sides[side].gradient(0.0, recipe.clipping));
    let claimed = audit::gradient_noise::<A>(plan.run(), 1.0, recipe.clipping)?.sensitivity().get();
    let distance = Distance { reached: (sums[0] - sums[1]).abs(), claimed, pairs: 1 };
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let pair = format!("a record of one class against {}", if other.is_some() { "the other" } else { "a null record" });
    // Under each of the two data sets, for each possible batch.
    let integrals = if recipe.search == Search::Backtracking { 2 * drawn.len() } else { 0 };
    let cost = COST_OF_A_RUN + COST_OF_A_ROW * parameters.n as f64 + COST_OF_AN_INTEGRAL * integrals as f64;
    let data = Sides::new(recipe.row_norm, recipe.target_bound, |side| match side {
        Side::Base => sides[0].examples(),
        Side::Neighbour => sides[1].examples(),
    })?;
    let transcript = Transcript { plan, sides, drawn };
    let subject = scored(name, pair, claim, cost, move |side, rng| {
        let mut ratios = Vec::new();
        let observe = &mut |observation: Observation<'_>| ratios.push(transcript.log_ratio(&observation));
        A::search_observed(transcript.plan.run(), &mut data.source(side), &mut rng.lend(), observe)?;
        ratios.into_iter().sum::<Result<f64, Error>>()
    });
    Ok(Audited { subject, distance })
}

/// Records along the first axis.
struct OnAxis {
    loss: ScalarLoss,
    /// `None` for null records.
    targets: Vec<Option<f64>>,
    dim: usize,
}

impl OnAxis {
    fn examples(&self) -> Result<Examples<f64>, Error> {
        let mut values = vec![0.0; self.targets.len() * self.dim];
        for (value, target) in values.iter_mut().step_by(self.dim).zip(&self.targets) {
            // A NaN row is a null record.
            *value = if target.is_some() { 1.0 } else { f64::NAN };
        }
        let targets: Vec<f64> = self.targets.iter().map(|target| target.unwrap_or(0.0)).collect();
        let rows = targets.len() as u64;
        let refused = |_| Error::Count { name: "rows", value: rows, range: "one target each" };
        Examples::dense(values, targets, self.dim).map_err(refused)
    }

    /// Returns the first coordinate of the sum of clipped gradients; all others are 0.
    fn gradient(&self, prediction: f64, clipping: f64) -> f64 {
        let of_target = |&y: &f64| self.loss.derivative(prediction, y).clamp(-clipping, clipping);
        self.targets.iter().flatten().map(of_target).sum()
    }

    /// Returns sums of clamped losses in units of the clamp.
    fn losses(&self, predictions: impl Iterator<Item = f64>, most: f64) -> Vec<f64> {
        let of_target = |p: f64, y: f64| self.loss.value(p, y).clamp(0.0, most) / most;
        predictions.map(|p| self.targets.iter().flatten().map(|&y| of_target(p, y)).sum()).collect()
    }
}

/// The knowledge of the attacker.
struct Transcript<A: Observed> {
    plan: Plan<SearchedDescent, A>,
    sides: [OnAxis; 2],
    /// Probability of each batch, and its factor on all sums.
    drawn: Vec<(f64, f64)>,
}

impl<A: Observed> Transcript<A> {
    /// Returns the log-likelihood ratio of the observation, neighbour against base.
    fn log_ratio(&self, observation: &Observation<'_>) -> Result<f64, Error> {
        let recipe = &self.plan.derivation().recipe;
        match *observation {
            Observation::Gradient { weights, noisy_sum, std_dev, clipping } => {
                let [base, neighbour] = self.sides.each_ref().map(|side| {
                    let sum = side.gradient(weights[0], clipping);
                    let logs = self.drawn.iter().map(|(probability, share)| {
                        probability.ln() - (noisy_sum[0] - share * sum).powi(2) / (2.0 * std_dev * std_dev)
                    });
                    log_sum_exp(logs)
                });
                Ok(neighbour - base)
            }
            Observation::Choice { weights, direction, steps, rho, chosen } => {
                let required = audit::required_gains(self.plan.run(), weights, direction, steps, recipe.most_loss)?;
                let mut log_ratio = 0.0;
                for (side, sign) in self.sides.iter().zip([-1.0, 1.0]) {
                    let lengths = core::iter::once(0.0).chain(steps.iter().copied());
                    let predictions = lengths.map(|step| weights[0] - step * direction[0]);
                    let all = side.losses(predictions, recipe.most_loss);
                    let mut probability = 0.0;
                    for (of_batch, share) in &self.drawn {
                        let losses = all.iter().map(|loss| share * loss).collect();
                        let law = audit::law_of_choice::<A>(recipe.search, rho, losses, required.clone())?;
                        probability += of_batch * law[chosen];
                    }
                    log_ratio += sign * probability.ln();
                }
                Ok(log_ratio)
            }
        }
    }
}
