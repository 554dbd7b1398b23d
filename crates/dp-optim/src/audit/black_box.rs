//! Black-box audits of any recipe: it is trained many times on few records, and only its release is observed.
//!
//! The attack knows neither the algorithm nor its noise: a pilot chooses the [`Pair`] of data sets, a regression on the
//! releases of some runs chooses the direction, further runs choose the threshold, and [`dp_audit`] counts on separate runs.
//! It is weaker than the canaries of [`RECIPES`](super::RECIPES), which know the law of their observations, and needs no code
//! for an algorithm. The release consists of the weights and, if a tuning chose among candidates, the choice.

mod pairs;

pub use pairs::{DIM, Extreme, FEWEST_RECORDS, MOST_RECORDS, Pair, Pairs, SignedPermutation};

use std::sync::Arc;

use dp_accountant::certificate::EpsilonDelta;
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};
use dp_audit::subject::from_fn;
use dp_audit::{Claim, Lineup, Side, Statistic, Subject};
use dp_data::Examples;
use dp_mechanisms::{ReleaseRng as _, SeededRng};

use crate::engine::Control;
use crate::error::Error;
use crate::memory::MemorySource;
use crate::recipes::AnyDerivation;
use crate::recipes::{AnyPlan, AnyRecipe, Budget, Planned, Recipe, TrainsAny};
use crate::tuning::repetitions::mean;

const RECIPE: &str = "black box";

/// Cost of each row that a training reads, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.5;

/// Returns the claim for a reached guarantee: epsilon at the requested delta.
fn claim(EpsilonDelta { epsilon, delta }: EpsilonDelta) -> Claim {
    let event = if delta > 0.0 { DpEvent::ApproximateDp { epsilon, delta } } else { DpEvent::PureDp { epsilon } };
    Claim { event, delta }
}

/// A recipe planned for data sets of one size, ready to be trained on any pair of them.
///
/// The claim is the plan's guarantee.
#[derive(Debug, Clone)]
pub struct Target {
    plan: PlanUnder,
    n: u64,
    classes: u32,
    claim: Claim,
    cost: f64,
}

#[derive(Debug, Clone)]
enum PlanUnder {
    ReplaceOne(Arc<AnyPlan<ReplaceOne>>),
    ZeroOut(Arc<AnyPlan<ZeroOut>>),
}

impl Target {
    /// Plans the recipe for `n` records of this many classes.
    ///
    /// # Errors
    /// Errors of the recipe, and a relation other than [`ReplaceOne`] and [`ZeroOut`].
    pub fn new(
        recipe: &AnyRecipe,
        relation: AdjacencyKind,
        budget: Budget,
        n: u64,
        classes: u32,
    ) -> Result<Self, Error> {
        Ok(match relation {
            AdjacencyKind::ReplaceOne => {
                let plan = recipe.plan_copies::<ReplaceOne>(n, DIM, budget, 1)?;
                let (claim, cost) = (claim(plan.reached()), cost(recipe, plan.summary().rows));
                Self { plan: PlanUnder::ReplaceOne(Arc::new(plan)), n, classes, claim, cost }
            }
            AdjacencyKind::ZeroOut => {
                let plan = recipe.plan_copies::<ZeroOut>(n, DIM, budget, 1)?;
                let (claim, cost) = (claim(plan.reached()), cost(recipe, plan.summary().rows));
                Self { plan: PlanUnder::ZeroOut(Arc::new(plan)), n, classes, claim, cost }
            }
            adjacency => return Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        })
    }

    fn relation(&self) -> AdjacencyKind {
        match self.plan {
            PlanUnder::ReplaceOne(_) => AdjacencyKind::ReplaceOne,
            PlanUnder::ZeroOut(_) => AdjacencyKind::ZeroOut,
        }
    }

    /// Returns the recipe on one pair of data sets.
    ///
    /// # Errors
    /// [`Error::Adjacency`] for a pair of another relation, [`Error::Shape`] for one of another size or with more classes.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{AdjacencyKind, Delta, Epsilon};
    /// use dp_audit::{Auditor, Verdict};
    /// use dp_losses::LossKind;
    /// use dp_optim::audit::black_box::{Pairs, Target};
    /// use dp_optim::recipes::{AnyRecipe, BoltOn, Budget};
    ///
    /// let recipe = AnyRecipe::from(BoltOn::strongly_convex(LossKind::Logistic, 0.1));
    /// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-3)? };
    /// let pairs = Pairs::new(AdjacencyKind::ReplaceOne, 2)?;
    /// let pair = &pairs.all()[0];
    /// let target = Target::new(&recipe, AdjacencyKind::ReplaceOne, budget, pair.n(), 2)?;
    /// let subject = target.subject("bolt-on", pair)?;
    /// assert_eq!(Auditor::exactly(1000)?.audit(&subject)?.verdict, Verdict::NotRefuted);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn subject(&self, name: impl Into<String>, pair: &Pair) -> Result<Box<dyn Subject>, Error> {
        if !pair.fits(self.relation()) {
            return Err(Error::Adjacency { recipe: RECIPE, adjacency: self.relation() });
        }
        for (name, planned, found) in
            [("n", self.n, pair.n()), ("classes", self.classes.into(), pair.classes_at_least().into())]
        {
            if found > planned || (name == "n" && found != planned) {
                return Err(Error::Shape { name, planned, found });
            }
        }
        let (name, classes) = (name.into(), self.classes);
        let examples = [pair.examples(Side::Base, classes)?, pair.examples(Side::Neighbour, classes)?];
        let (plan, subject) = (self.plan.clone(), name.clone());
        let trial = move |side: Side, rng: &mut SeededRng, features: &mut Vec<f64>| {
            let examples = &examples[usize::from(side == Side::Neighbour)];
            match &plan {
                PlanUnder::ReplaceOne(plan) => observe(plan, examples, classes, rng, features),
                PlanUnder::ZeroOut(plan) => observe(plan, examples, classes, rng, features),
            }
            .map_err(|error| dp_audit::Error::Trial { subject: subject.clone(), reason: error.to_string() })
        };
        let subject = from_fn(name, pair.describe(), self.claim.clone(), Statistic::Learned, trial);
        Ok(Box::new(subject.with_relative_cost(self.cost)))
    }
}

fn cost(recipe: &AnyRecipe, rows: u64) -> f64 {
    fn of_a_run(recipe: &AnyRecipe) -> f64 {
        let sum = |all: &[AnyRecipe]| all.iter().map(of_a_run).sum::<f64>();
        match recipe {
            AnyRecipe::OneVsAll(models) => f64::from(models.classes) * of_a_run(&models.recipe),
            AnyRecipe::Portions(tuning) => sum(&tuning.candidates),
            AnyRecipe::RandomStopping(tuning) => {
                mean(tuning.repetitions) * sum(&tuning.candidates) / tuning.candidates.len().max(1) as f64
            }
            // Steps are searched until a budget is spent.
            AnyRecipe::SearchedDescent(search) if search.batch_size.is_some() => 2000.0,
            AnyRecipe::SearchedDescent(_) => 600.0,
            AnyRecipe::DpSvrg(_) => 300.0,
            AnyRecipe::DpNewton(_) => 150.0,
            AnyRecipe::AdmmObjPert(_) | AnyRecipe::DpFtrl(_) => 90.0,
            _ => 40.0,
        }
    }
    of_a_run(recipe) + COST_OF_A_ROW * rows as f64
}

/// A recipe on all pairs of data sets of the planned sizes.
pub struct Family {
    name: String,
    targets: Vec<Target>,
    pairs: Arc<Pairs>,
    /// Positions in `pairs` of the pairs of these sizes.
    places: Vec<u32>,
    leading: usize,
}

impl Family {
    /// Creates a family from plans for one or several sizes; every claim must hold for each of them.
    ///
    /// # Errors
    /// [`Error::Adjacency`] for plans under a relation other than that of the pairs, [`Error::Count`] for no pairs.
    pub fn new(name: impl Into<String>, targets: Vec<Target>, pairs: Arc<Pairs>) -> Result<Self, Error> {
        if let Some(target) = targets.iter().find(|target| target.relation() != pairs.relation()) {
            return Err(Error::Adjacency { recipe: RECIPE, adjacency: target.relation() });
        }
        let planned = |pair: &Pair| targets.iter().any(|target| target.n == pair.n());
        let fitting = pairs.all().iter().zip(0..).filter(|(pair, _)| planned(pair));
        let places: Vec<u32> = fitting.map(|(_, place)| place).collect();
        let leading = places.iter().take_while(|&&place| (place as usize) < pairs.leading()).count();
        if places.is_empty() {
            return Err(Error::Count { name: "pairs of data sets", value: 0, range: "1 or more" });
        }
        // All pairs have the same number of runs: the number for the most expensive size.
        let cost = targets.iter().map(|target| target.cost).fold(0.0, f64::max);
        let targets = targets.into_iter().map(|target| Target { cost, ..target }).collect();
        Ok(Self { name: name.into(), targets, pairs, places, leading })
    }
}

impl Lineup for Family {
    fn pairs(&self) -> usize {
        self.places.len()
    }

    fn leading(&self) -> usize {
        self.leading
    }

    fn subject(&self, pair: usize) -> Result<Box<dyn Subject>, dp_audit::Error> {
        let name = format!("{}/pair={}", self.name, pair + 1);
        let found = self.places.get(pair).and_then(|&place| self.pairs.all().get(place as usize));
        let target = found.and_then(|pair| Some((self.targets.iter().find(|target| target.n == pair.n())?, pair)));
        match target {
            Some((target, pair)) => target
                .subject(name.clone(), pair)
                .map_err(|error| dp_audit::Error::Trial { subject: name, reason: error.to_string() }),
            None => Err(dp_audit::Error::Trial { subject: name, reason: "there is no such pair".to_owned() }),
        }
    }
}

fn observe<A: TrainsAny<f64>>(
    plan: &AnyPlan<A>,
    examples: &Examples<f64>,
    classes: u32,
    rng: &mut SeededRng,
    features: &mut Vec<f64>,
) -> Result<(), Error> {
    let mut source = MemorySource::new(examples.clone(), 1.0, f64::from(classes.max(2) - 1));
    let trained = A::train_any(plan, &mut source, &mut rng.lend(), &mut Control::default())?;
    let weights = trained.weights.get();
    let Some((chosen, candidates)) = choice(&trained.derivation) else {
        features.extend(weights);
        return Ok(());
    };
    // For each candidate, whether it was chosen, and its weights if so.
    for candidate in 0..candidates {
        let released = f64::from(chosen == Some(candidate));
        features.push(released);
        features.extend(weights.iter().map(|weight| released * weight));
    }
    Ok(())
}

/// Returns the chosen candidate and the number of candidates, if there was a choice.
fn choice(derivation: &AnyDerivation) -> Option<(Option<usize>, usize)> {
    let (chosen, candidates) = match derivation {
        AnyDerivation::Portions(derivation) => (derivation.chosen, derivation.each.len()),
        AnyDerivation::RandomStopping(derivation) => (derivation.chosen, derivation.each.len()),
        _ => return None,
    };
    Some((chosen.map(|chosen| chosen as usize), candidates))
}

#[cfg(test)]
mod tests;
