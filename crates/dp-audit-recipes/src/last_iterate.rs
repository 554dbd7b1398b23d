//! The canaries of PNSGD and Snowball-SGD.

use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, Delta, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_losses::{Domain, L2};
use dp_mechanisms::SeededRng;

use super::canary::distance;
use super::scored::{Sides, scored, trained};
use super::{Audited, Canary, Distance, Parameters, Record, mode_name};
use dp_optim::Error;
use dp_optim::Schedule;
use dp_optim::audit::size;
use dp_optim::recipes::pnsgd::{Batching, Updates};
use dp_optim::recipes::{AnyPlan, AnyRecipe, Budget, Planned, Pnsgd, Recipe, SnowballSgd, TrainsAny};

/// Default λ, so large that a step removes all earlier noise: only its own noise hides the canary.
const LAMBDA: f64 = 50.0;

/// Costs of a row and of a run, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.1;
const COST_OF_A_RUN: f64 = 4.0;

pub(super) fn pnsgd(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let (lambda, smoothness) = curvature(parameters)?;
    of_modes("pnsgd", parameters, |noise_mode| {
        AnyRecipe::from(Pnsgd {
            lambda,
            passes: parameters.passes,
            batching: Batching::Equal { size: parameters.batch_size },
            // The step with the strongest contraction.
            schedule: Some(Schedule::Constant { step: 2.0 / (smoothness + lambda) * (1.0 - 1e-15) }),
            radius: parameters.radius,
            declared_order: true,
            noise_mode,
            ..Pnsgd::new(parameters.loss)
        })
    })
}

pub(super) fn snowball_sgd(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let (lambda, smoothness) = curvature(parameters)?;
    let all = of_modes("snowball-sgd", parameters, |noise_mode| {
        AnyRecipe::from(SnowballSgd {
            lambda,
            // The longest steps allowed even for a single update.
            distance: 2.8 * parameters.slope() / smoothness,
            radius: parameters.radius,
            declared_order: true,
            noise_mode,
            ..SnowballSgd::new(parameters.loss)
        })
    });
    match all {
        // Too few records for the batches of this budget: there is no such release.
        Err(Error::Count { name: "number of records", value, .. }) if value > 0 => Ok(Vec::new()),
        all => all,
    }
}

impl Parameters {
    fn domain(&self) -> Result<Domain, Error> {
        let domain = Domain::unit_rows().with_target_bound(self.loss.usual_target_bound())?;
        Ok(match self.radius {
            Some(radius) => domain.with_radius(radius)?,
            None => domain,
        })
    }

    /// Returns L; 1 if it is unbounded, which planning refuses.
    fn slope(&self) -> f64 {
        let slope = self.domain().map_or(1.0, |domain| self.loss.constants(L2::NONE, &domain).data_lipschitz);
        if slope.is_finite() { slope } else { 1.0 }
    }
}

fn curvature(parameters: &Parameters) -> Result<(f64, f64), Error> {
    let lambda = parameters.lambda.unwrap_or(LAMBDA);
    Ok((lambda, parameters.loss.constants(L2::new(lambda)?, &parameters.domain()?).smoothness))
}

/// Returns the audits of the recipe under each noise mode; none if only pure guarantees are audited.
fn of_modes(
    name: &'static str,
    parameters: &Parameters,
    recipe: impl Fn(NoiseMode) -> AnyRecipe,
) -> Result<Vec<Audited>, Error> {
    // Checked even if there is nothing to audit.
    let budget = parameters.budget()?;
    let budget = Budget { delta: Delta::new(if parameters.delta > 0.0 { parameters.delta } else { 1e-5 })?, ..budget };
    let mut all = Vec::new();
    for mode in parameters.modes() {
        let recipes = [recipe(mode), recipe(NoiseMode::Rounded)];
        let form = mode_name(mode);
        let name = format!("{name}/last-iterate/{form}");
        all.push(match parameters.relation {
            AdjacencyKind::ReplaceOne => build::<ReplaceOne>(name, &recipes, parameters, budget)?,
            AdjacencyKind::ZeroOut => build::<ZeroOut>(name, &recipes, parameters, budget)?,
            adjacency => return Err(Error::Adjacency { recipe: "amplification by iteration", adjacency }),
        });
    }
    // Gaussian noise has no pure guarantee.
    if parameters.delta == 0.0 {
        all.clear();
    }
    Ok(all)
}

fn build<A: TrainsAny<f64> + 'static>(
    name: String,
    [recipe, rounded]: &[AnyRecipe; 2],
    parameters: &Parameters,
    budget: Budget,
) -> Result<Audited, Error> {
    let plan_of = |recipe: &AnyRecipe| recipe.plan_copies::<A>(parameters.n, parameters.dim, budget, 1);
    let plan = plan_of(recipe)?;
    let (n, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let (run, lambda, bound) = match &plan {
        AnyPlan::Pnsgd(plan) => {
            let recipe = &plan.derivation().recipe;
            (plan.run(), recipe.lambda, recipe.target_bound)
        }
        AnyPlan::SnowballSgd(plan) => {
            let recipe = &plan.derivation().recipe;
            (plan.run(), recipe.lambda, recipe.target_bound)
        }
        _ => return Err(Error::NotProved { recipe: "audit", why: "not a recipe that releases its last iterate" }),
    };
    let (updates, std_dev) = (run.updates(), run.std_dev());
    // A record of the last batch, hidden only by that step's noise, against its opposite or the null record.
    let record = |target: f64| {
        let mut record = Record { target: target * bound, ..Record::null(dim) };
        record.features[0] = 1.0;
        record
    };
    let neighbour = if A::KIND == AdjacencyKind::ReplaceOne { record(-1.0) } else { Record::null(dim) };
    let canary = Canary { common: Record::null(dim), base: record(1.0), neighbour };
    let at = size("record", last_record(updates, parameters.n))?;
    let sides = Sides::new(1.0, bound, |side| canary.examples(side, n, at))?;
    // Both runs have the same noise: rounded samplers draw it independently of the values.
    let coupled = plan_of(rounded)?;
    let weights = |side| trained(&coupled, sides.source(side), &mut SeededRng::new(1));
    let (base, other) = (weights(Side::Base)?, weights(Side::Neighbour)?);
    let reached = distance(&base, &other);
    let constants = parameters.loss.constants(L2::new(lambda)?, &parameters.domain()?);
    let difference = match A::KIND {
        AdjacencyKind::ReplaceOne => constants.gradient_difference,
        _ => constants.data_lipschitz,
    };
    let last = updates.last().map_or(0.0, |update| update.step / update.batch_size as f64);
    let passes = if matches!(plan, AnyPlan::Pnsgd(_)) { parameters.passes.max(1) } else { 1 };
    // Each pass moves the weight once more; the rounding of the grids is negligible.
    let claimed = last * difference * passes as f64 * (1.0 + 1e-6);
    let law = Law::new(updates, passes, lambda, std_dev, base[0] - other[0], A::KIND == AdjacencyKind::ReplaceOne);
    let claim = Claim { event: plan.derivation().event()?, delta: budget.delta.get() };
    let draws = updates.iter().map(|update| update.count).sum::<u64>() as f64 * passes as f64;
    let cost = COST_OF_A_RUN + COST_OF_A_ROW * plan.summary().rows as f64 + draws * parameters.dim as f64;
    let subject = scored(name, canary.describe(), claim, cost, move |side, rng| {
        let weights = trained(&plan, sides.source(side), rng);
        weights.map(|weights| law.score(weights.first().copied().unwrap_or(0.0)))
    });
    Ok(Audited { subject, distance: Distance { reached, claimed, pairs: 1 } })
}

/// The Gaussian law of the first weight if the gradient does not depend on the iterate.
#[derive(Debug, Clone, Copy)]
struct Law {
    /// Means on the two sides.
    means: [f64; 2],
    variance: f64,
}

impl Law {
    fn new(updates: &[Updates], passes: u64, lambda: f64, std_dev: f64, apart: f64, opposite: bool) -> Self {
        let mut variance = 0.0;
        for _ in 0..passes {
            for update in updates {
                for _ in 0..update.count {
                    variance *= (1.0 - update.step * lambda).powi(2);
                    variance += (update.step * std_dev).powi(2);
                }
            }
        }
        Self { means: if opposite { [apart / 2.0, -apart / 2.0] } else { [apart, 0.0] }, variance }
    }

    /// Returns the log-likelihood ratio of the second side to the first.
    fn score(&self, weight: f64) -> f64 {
        let [base, neighbour] = self.means.map(|mean| (weight - mean).powi(2));
        (base - neighbour) / (2.0 * self.variance)
    }
}

fn last_record(updates: &[Updates], n: u64) -> u64 {
    let used =
        updates.iter().fold(0u64, |sum, update| sum.saturating_add(update.count.saturating_mul(update.batch_size)));
    used.min(n).saturating_sub(1)
}
