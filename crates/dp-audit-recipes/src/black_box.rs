//! Black-box audits of any recipe: it is trained many times on few records, and only its release is observed.
//!
//! The attack knows neither the algorithm nor its noise: a pilot chooses the [`Pair`] of data sets, a regression on the
//! releases of some runs chooses the direction, further runs choose the threshold, and [`dp_audit`] counts on separate runs.
//! It is weaker than the canaries of [`RECIPES`](super::RECIPES), which know the law of their observations, and needs no code
//! for an algorithm. The release consists of the weights and, if a tuning chose among candidates, the choice.

mod pairs;

pub use dp_optim::audit::AddedUp;
pub use pairs::{DIM, Extreme, FEWEST_RECORDS, MOST_RECORDS, Pair, Pairs, SignedPermutation};

use std::sync::Arc;

use dp_accountant::certificate::EpsilonDelta;
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};
use dp_audit::subject::from_fn;
use dp_audit::{Claim, Lineup, Side, Statistic, Subject};
use dp_data::{Examples, RowSource};
use dp_mechanisms::{ReleaseRng as _, SeededRng};

use dp_optim::Error;
use dp_optim::MemorySource;
use dp_optim::audit::mean_repetitions;
use dp_optim::engine::Control;
use dp_optim::recipes::{AnyRecipe, Budget, Planned, Recipe, RecordAdjacency, TrainsAny};
use dp_optim::{Choice, DerivesModel as _};

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
#[derive(Clone)]
pub struct Target {
    observed: Arc<Observed>,
    source: Arc<Source>,
    relation: AdjacencyKind,
    n: u64,
    classes: u32,
    claim: Claim,
    cost: f64,
}

/// Trains on a source and returns what is released: the weights, and the choice among candidates if there was one.
type Observed =
    dyn Fn(&mut dyn RowSource<f64>, &mut SeededRng) -> Result<(Vec<f64>, Option<Choice>), Error> + Send + Sync;

/// Returns a source of records with row norms of at most 1 and targets within the bound.
type Source = dyn Fn(Examples<f64>, f64) -> Result<Box<dyn RowSource<f64>>, Error> + Send + Sync;

impl core::fmt::Debug for Target {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { relation, n, classes, claim, cost, .. } = self;
        let mut target = f.debug_struct("Target");
        target.field("relation", relation).field("n", n).field("classes", classes);
        target.field("claim", claim).field("cost", cost).finish_non_exhaustive()
    }
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
        fn under<A: TrainsAny<f64>>(recipe: &AnyRecipe, budget: Budget, n: u64, classes: u32) -> Result<Target, Error> {
            let plan = recipe.plan_copies::<A>(n, DIM, budget, 1)?;
            // The training that this crate compiles.
            Ok(Target::trained_by(plan, n, classes, of_a_run(recipe), |plan, source, rng| {
                let trained = A::train_any(plan, source, &mut rng.lend(), &mut Control::default())?;
                Ok((trained.weights.get().clone(), trained.derivation.choice()))
            }))
        }
        match relation {
            AdjacencyKind::ReplaceOne => under::<ReplaceOne>(recipe, budget, n, classes),
            AdjacencyKind::ZeroOut => under::<ZeroOut>(recipe, budget, n, classes),
            adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        }
    }

    /// Uses the plan of any recipe, of this crate or of another, for `n` records of [`DIM`] features and this many classes.
    /// `cost` is the cost of one training without reading rows, in units of releasing one number; typically a few tens.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, Epsilon, ZeroOut};
    /// use dp_losses::LossKind;
    /// use dp_audit_recipes::black_box::{DIM, Target};
    /// use dp_optim::recipes::{BoltOn, Budget, Recipe};
    ///
    /// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
    /// let plan = BoltOn::strongly_convex(LossKind::Logistic, 0.1).plan::<ZeroOut>(3, DIM, budget)?;
    /// let target = Target::planned(plan, 3, 2, 40.0);
    /// # let _ = target;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn planned<A, P>(plan: P, n: u64, classes: u32, cost: f64) -> Self
    where
        A: RecordAdjacency,
        P: Planned<A> + Send + Sync + 'static,
    {
        Self::trained_by(plan, n, classes, cost, |plan, source, rng| {
            let trained = plan.train::<f64>(source, rng, &mut Control::default())?;
            Ok((trained.weights.get().clone(), trained.derivation.choice()))
        })
    }

    fn trained_by<A, P>(
        plan: P,
        n: u64,
        classes: u32,
        cost: f64,
        train: impl Fn(&P, &mut dyn RowSource<f64>, &mut SeededRng) -> Result<(Vec<f64>, Option<Choice>), Error>
        + Send
        + Sync
        + 'static,
    ) -> Self
    where
        A: RecordAdjacency,
        P: Planned<A> + Send + Sync + 'static,
    {
        let cost = cost + COST_OF_A_ROW * plan.summary().rows as f64;
        let claim = claim(plan.reached());
        let observed = Arc::new(move |source: &mut dyn RowSource<f64>, rng: &mut SeededRng| train(&plan, source, rng));
        let source = Arc::new(|examples, target_bound| -> Result<Box<dyn RowSource<f64>>, Error> {
            Ok(Box::new(MemorySource::new(examples, 1.0, target_bound)))
        });
        Self { observed, source, relation: A::KIND, n, classes, claim, cost }
    }

    /// Trains on records that are not held in memory: `source` takes records with row norms of at most 1, and the bound on
    /// their targets.
    pub fn with_source(
        self,
        source: impl Fn(Examples<f64>, f64) -> Result<Box<dyn RowSource<f64>>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self { source: Arc::new(source), ..self }
    }

    /// Returns the recipe on one pair of data sets.
    ///
    /// # Errors
    /// [`Error::Adjacency`] for a pair of another relation, [`Error::Shape`] for one of another size or with more classes.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::AdjacencyKind;
    /// use dp_audit::{Auditor, Verdict};
    /// use dp_losses::LossKind;
    /// use dp_audit_recipes::black_box::{Pairs, Target};
    /// use dp_optim::recipes::{AnyRecipe, BoltOn, Budget};
    ///
    /// let recipe = AnyRecipe::from(BoltOn::strongly_convex(LossKind::Logistic, 0.1));
    /// let budget = Budget::new(1.0, 1e-3)?;
    /// let pairs = Pairs::new(AdjacencyKind::ReplaceOne, 2)?;
    /// let pair = &pairs.all()[0];
    /// let target = Target::new(&recipe, AdjacencyKind::ReplaceOne, budget, pair.n(), 2)?;
    /// let subject = target.subject("bolt-on", pair)?;
    /// assert_eq!(Auditor::exactly(1000)?.audit(&subject)?.verdict, Verdict::NotRefuted);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn subject(&self, name: impl Into<String>, pair: &Pair) -> Result<Box<dyn Subject>, Error> {
        if !pair.fits(self.relation) {
            return Err(Error::Adjacency { recipe: RECIPE, adjacency: self.relation });
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
        let (observed, source, subject) = (self.observed.clone(), self.source.clone(), name.clone());
        let trial = move |side: Side, rng: &mut SeededRng, features: &mut Vec<f64>| {
            let examples = examples[usize::from(side == Side::Neighbour)].clone();
            let released = source(examples, f64::from(classes.max(2) - 1));
            let (weights, choice) = released
                .and_then(|mut source| observed(&mut *source, rng))
                .map_err(|error| dp_audit::Error::Trial { subject: subject.clone(), reason: error.to_string() })?;
            describe(&weights, choice, features);
            Ok(())
        };
        let subject = from_fn(name, pair.describe(), self.claim.clone(), Statistic::Learned, trial);
        Ok(Box::new(subject.with_relative_cost(self.cost)))
    }
}

/// Returns the cost of a training without reading rows.
fn of_a_run(recipe: &AnyRecipe) -> f64 {
    let sum = |all: &[AnyRecipe]| all.iter().map(of_a_run).sum::<f64>();
    match recipe {
        AnyRecipe::OneVsAll(models) => f64::from(models.classes) * of_a_run(&models.recipe),
        AnyRecipe::Portions(tuning) => sum(&tuning.candidates),
        AnyRecipe::Composition(tuning) => tuning.candidates.iter().map(|candidate| of_a_run(&candidate.recipe)).sum(),
        AnyRecipe::RandomStopping(tuning) => {
            mean_repetitions(tuning.repetitions) * sum(&tuning.candidates) / tuning.candidates.len().max(1) as f64
        }
        // Step sizes are searched until the budget is spent.
        AnyRecipe::SearchedDescent(search) if search.batch_size.is_some() => 2000.0,
        AnyRecipe::SearchedDescent(_) => 600.0,
        AnyRecipe::DpSvrg(_) => 300.0,
        AnyRecipe::DpNewton(_) => 150.0,
        AnyRecipe::AdmmObjPert(_) | AnyRecipe::DpFtrl(_) => 90.0,
        _ => 40.0,
    }
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
        if let Some(target) = targets.iter().find(|target| target.relation != pairs.relation()) {
            return Err(Error::Adjacency { recipe: RECIPE, adjacency: target.relation });
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

/// Appends what was released: the weights, or for each candidate whether it was chosen, and its weights if so.
fn describe(weights: &[f64], choice: Option<Choice>, features: &mut Vec<f64>) {
    let Some(Choice { chosen, candidates }) = choice else {
        features.extend(weights);
        return;
    };
    for candidate in 0..candidates {
        let released = f64::from(chosen == Some(candidate));
        features.push(released);
        features.extend(weights.iter().map(|weight| released * weight));
    }
}

#[cfg(test)]
mod tests;
