//! Black-box audits of any private training of a ranker: repeated runs on few lists, of which only the weights are observed.
//!
//! The counterpart of [`crate::black_box`]: the attack uses neither the loss nor the noise. It is weaker than the
//! canaries of [`RECIPES`](super::RECIPES), which see every noisy sum and know its distribution.
//!
//! # Pairs
//! ```text
//! documents    at 0 or at a unit vector along an axis, of either sign; relevant or not
//! lists        two documents at different places of which one is relevant, or none; or no list, which adds nothing
//! number       m = 2..7
//! the others   all equal, or half of one kind and half of another: documents on either side of 0, or no list
//! the one      what the relation allows: other grades; there or not; any other list; another document
//! ```
//! Two pairs are equivalent if a signed permutation of the axes, or an exchange of the two data sets, maps one to the other. For
//! a linear scorer, which starts at 0 and has no intercept, the axes and their signs are interchangeable: scores and gradients
//! are inner products, clipping depends on norms, and the noise has the same symmetric distribution in each coordinate. A network
//! does not start at 0, so all its pairs are listed. The position of the differing list does not matter: each list is drawn
//! independently, and sums do not depend on the order. The order of a list's documents matters only to ListMLE, which breaks ties
//! by it; one order is used.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use crate::black_box::SignedPermutation;
pub use crate::black_box::{DIM, FEWEST_RECORDS as FEWEST_LISTS, MOST_RECORDS as MOST_LISTS};
use dp_accountant::DpEvent;
use dp_audit::subject::from_fn;
use dp_audit::{Claim, Lineup, Side, Statistic, Subject};
use dp_mechanisms::SeededRng;
use dp_optim::recipes::Budget;

use dp_rank::Error;
use dp_rank::QueryLists;
use dp_rank::loss::ListLoss;
use dp_rank::scorer::Scorer;
use dp_rank::train::{PrivateRanking, Protect, Protected, RankingPlan, Scaling, TrainError};

/// Costs of an update, of each weight in it, and of the rest of a run, in units of releasing one number.
const COST_OF_AN_UPDATE: f64 = 4.0;
const COST_OF_A_WEIGHT: f64 = 1.0;
const COST_OF_A_RUN: f64 = 20.0;

/// The grade of a relevant document.
const RELEVANT: u32 = 2;

/// The position of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    Unit { axis: u8, negative: bool },
    Zeros,
}

impl Place {
    const ALL: [Self; 5] = [
        Self::Unit { axis: 0, negative: false },
        Self::Unit { axis: 0, negative: true },
        Self::Unit { axis: 1, negative: false },
        Self::Unit { axis: 1, negative: true },
        Self::Zeros,
    ];

    fn moved(self, by: SignedPermutation) -> Self {
        match self {
            Self::Unit { axis, negative } => {
                let (axis, negative) = by.of(axis, negative);
                Self::Unit { axis, negative }
            }
            Self::Zeros => Self::Zeros,
        }
    }

    fn features(self) -> [f64; DIM as usize] {
        let mut features = [0.0; DIM as usize];
        if let Self::Unit { axis, negative } = self {
            features[usize::from(axis)] = if negative { -1.0 } else { 1.0 };
        }
        features
    }

    fn describe(self) -> String {
        match self {
            Self::Unit { axis, negative } => format!("{}e{}", if negative { "-" } else { "" }, axis + 1),
            Self::Zeros => "0".to_owned(),
        }
    }
}

/// A list of the attacker's data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum List {
    /// Two documents by position; `relevant` says which of them is relevant.
    Two { places: [Place; 2], relevant: Option<bool> },
    /// A list that contributes 0.
    Empty,
}

impl List {
    /// Returns a relevant document at the first position, and an irrelevant one at the other.
    const fn of(relevant: Place, other: Place) -> Self {
        Self::Two { places: [relevant, other], relevant: Some(false) }
    }

    /// Returns the list with its documents sorted by position.
    fn sorted(self) -> Self {
        match self {
            Self::Two { places: [first, second], relevant } if second < first => {
                Self::Two { places: [second, first], relevant: relevant.map(|second| !second) }
            }
            list => list,
        }
    }

    fn moved(self, by: SignedPermutation) -> Self {
        match self {
            Self::Two { places, relevant } => {
                Self::Two { places: places.map(|place| place.moved(by)), relevant }.sorted()
            }
            Self::Empty => Self::Empty,
        }
    }

    /// Returns all lists of two documents.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (i, first) in Place::ALL.into_iter().enumerate() {
            for &second in &Place::ALL[i + 1..] {
                all.extend(
                    [Some(false), Some(true), None].map(|relevant| Self::Two { places: [first, second], relevant }),
                );
            }
        }
        all.into_iter().map(Self::sorted).collect()
    }

    /// Returns the possible values of the lists that do not differ.
    fn others() -> Vec<Self> {
        let opposite = |list: &Self| match list {
            Self::Two { places: [Place::Unit { axis, .. }, Place::Unit { axis: other, .. }], relevant: Some(_) } => {
                axis == other
            }
            _ => false,
        };
        Self::all().into_iter().filter(opposite).chain([Self::Empty]).collect()
    }

    /// Returns features and grades.
    fn documents(self) -> (Vec<f64>, Vec<u32>) {
        match self {
            Self::Two { places, relevant } => {
                let grades = [false, true].map(|second| if relevant == Some(second) { RELEVANT } else { 0 });
                (places.into_iter().flat_map(Place::features).collect(), grades.to_vec())
            }
            Self::Empty => (Place::Zeros.features().to_vec(), vec![0]),
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Two { places, relevant } => {
                let [first, second] = [0, 1].map(|i| {
                    let grade = if relevant == Some(i == 1) { RELEVANT } else { 0 };
                    format!("{}: {grade}", places[i].describe())
                });
                format!("({first}, {second})")
            }
            Self::Empty => "none".to_owned(),
        }
    }

    /// Returns whether two lists are neighbours under this protection.
    fn is_neighbour(self, other: Self, protected: Protected) -> bool {
        match (protected, self, other) {
            (Protected::WholeList, ..) => true,
            (Protected::ListPresence, Self::Two { .. }, Self::Empty) => true,
            (Protected::Grades, Self::Two { places, .. }, Self::Two { places: others, .. }) => places == others,
            (Protected::Document, Self::Two { .. }, Self::Two { .. }) => {
                let documents = |list: Self| -> Vec<(Vec<f64>, u32)> {
                    let (features, grades) = list.documents();
                    features.chunks_exact(DIM as usize).map(<[f64]>::to_vec).zip(grades).collect()
                };
                let (these, others) = (documents(self), documents(other));
                these.iter().filter(|document| others.contains(document)).count() == 1
            }
            _ => false,
        }
    }
}

/// Two neighbouring sets of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    m: u8,
    base: List,
    neighbour: List,
    /// The value of the first half of the other lists, and of the second half.
    others: [List; 2],
}

impl Pair {
    /// Returns the number of lists.
    pub fn lists(&self) -> u64 {
        self.m.into()
    }

    /// Returns a description in words.
    pub fn describe(&self) -> String {
        let [base, neighbour, first, second] =
            [self.base, self.neighbour, self.others[0], self.others[1]].map(List::describe);
        let others = if first == second {
            format!("all others {first}")
        } else {
            format!("the others half {first}, then half {second}")
        };
        format!("list 1 of {} is {base} against {neighbour}, {others}", self.m)
    }

    fn query_lists(&self, side: Side) -> Result<QueryLists, Error> {
        let differing = match side {
            Side::Base => self.base,
            Side::Neighbour => self.neighbour,
        };
        let first_half = (usize::from(self.m) - 1).div_ceil(2);
        let others = (0..usize::from(self.m) - 1).map(|other| self.others[usize::from(other >= first_half)]);
        let mut lists = QueryLists::new(DIM as usize, RELEVANT)?;
        for (id, list) in [differing].into_iter().chain(others).enumerate() {
            let (features, grades) = list.documents();
            lists.push(&id.to_string(), &features, &grades)?;
        }
        Ok(lists)
    }

    fn moved(self, by: SignedPermutation) -> Self {
        let [base, neighbour] = [self.base, self.neighbour].map(|list| list.moved(by));
        let others = self.others.map(|list| list.moved(by));
        Self { base: base.min(neighbour), neighbour: base.max(neighbour), others, ..self }.with_others_sorted()
    }

    /// Sorts the two halves of the other lists if they are of equal size, since they can then be exchanged.
    fn with_others_sorted(self) -> Self {
        let [first, second] = self.others;
        if self.m % 2 == 1 && second < first { Self { others: [second, first], ..self } } else { self }
    }

    /// Returns the smallest of all pairs that are equivalent under these symmetries.
    fn least(self, symmetries: &[SignedPermutation]) -> Self {
        symmetries.iter().map(|&symmetry| self.moved(symmetry)).min().unwrap_or(self)
    }
}

/// All pairs for one protection, each once up to symmetry.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    protected: Protected,
    all: Vec<Pair>,
    leading: usize,
}

impl Pairs {
    /// Returns all pairs, up to symmetry if the scorer is linear and starts at 0; some pairs are moved to the front.
    ///
    /// # Examples
    /// ```
    /// use dp_audit_recipes::rank::black_box::Pairs;
    /// use dp_rank::train::Protected;
    ///
    /// let pairs = Pairs::new(Protected::Grades, true);
    /// assert_eq!(
    ///     pairs.all()[0].describe(),
    ///     "list 1 of 2 is (e1: 2, -e1: 0) against (e1: 0, -e1: 2), all others none"
    /// );
    /// assert_eq!(pairs.all().len(), 489);
    /// ```
    pub fn new(protected: Protected, linear: bool) -> Self {
        let symmetries = SignedPermutation::all();
        let symmetries = if linear { &symmetries[..] } else { &symmetries[..1] };
        let (mut all, mut known) = (Vec::new(), HashSet::new());
        let mut add = |pair: Pair, all: &mut Vec<Pair>| {
            let pair = pair.least(symmetries);
            if known.insert(pair) {
                all.push(pair);
            }
        };
        let [up, down, across, _, zero] = Place::ALL;
        let (base, neighbour) = match protected {
            Protected::Grades | Protected::WholeList => (List::of(up, down), List::of(down, up)),
            Protected::ListPresence => (List::of(up, down), List::Empty),
            Protected::Document => (List::of(up, zero), List::of(down, zero)),
        };
        let (opposed, across) = (List::of(down, up), List::of(across, Place::ALL[3]));
        for (m, other) in [(2, List::Empty), (2, opposed), (3, across), (7, List::Empty)] {
            let pair = Pair { m, base, neighbour, others: [other; 2] };
            add(
                Pair {
                    base: base.sorted(),
                    neighbour: neighbour.sorted(),
                    others: pair.others.map(List::sorted),
                    ..pair
                },
                &mut all,
            );
        }
        let leading = all.len();
        let (mut lists, others) = (List::all(), List::others());
        lists.push(List::Empty);
        for &base in &lists {
            for &neighbour in lists.iter().filter(|&&other| base < other && base.is_neighbour(other, protected)) {
                for m in FEWEST_LISTS as u8..=MOST_LISTS as u8 {
                    for &first in &others {
                        for &second in others.iter().filter(|&&second| m > 2 || second == first) {
                            add(Pair { m, base, neighbour, others: [first, second] }, &mut all);
                        }
                    }
                }
            }
        }
        Self { protected, all, leading }
    }

    /// Returns the pairs.
    pub fn all(&self) -> &[Pair] {
        &self.all
    }
}

/// A training on all pairs, planned for each number of lists.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use dp_audit::{Auditor, Unwatched, Verdict};
/// use dp_optim::recipes::Budget;
/// use dp_audit_recipes::rank::black_box::{Family, Pairs};
/// use dp_rank::loss::BayesRank;
/// use dp_rank::scorer::Linear;
/// use dp_rank::train::{Descent, PrivateRanking, Protected};
///
/// let budget = Budget::new(1.0, 1e-3)?;
/// let usual = PrivateRanking::new(BayesRank::TOP_1);
/// let recipe = PrivateRanking { descent: Descent { updates: 20, ..usual.descent }, ..usual };
/// let pairs = Arc::new(Pairs::new(Protected::Grades, true));
/// let family = Family::new("grades", recipe, budget, Linear::new(2)?, vec![0.0; 2], pairs)?;
/// let (audit, _) = Auditor::exactly(1000)?.audit_among(&family, &Unwatched)?;
/// assert_eq!(audit.verdict, Verdict::NotRefuted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Family<L, S, P> {
    name: String,
    recipe: PrivateRanking<L, P>,
    budget: Budget,
    /// Plans by number of lists, from [`FEWEST_LISTS`] on, made on demand.
    plans: Vec<OnceLock<Arc<RankingPlan<L, P>>>>,
    scorer: S,
    start: Vec<f64>,
    pairs: Arc<Pairs>,
    shuffled: bool,
    cost: f64,
}

impl<L: ListLoss + Copy, S: Scorer, P: Protect> Family<L, S, P> {
    /// Plans the training of `scorer`, for documents of [`DIM`] features, from `start`.
    ///
    /// # Errors
    /// If the training refuses its parameters, or the pairs are for another protection.
    pub fn new(
        name: impl Into<String>,
        recipe: PrivateRanking<L, P>,
        budget: Budget,
        scorer: S,
        start: Vec<f64>,
        pairs: Arc<Pairs>,
    ) -> Result<Self, TrainError> {
        if pairs.protected != P::PROTECTED {
            return Err(TrainError::Protected { what: "what these pairs differ in" });
        }
        let weights = scorer.parameters() as u64;
        let each = COST_OF_AN_UPDATE + COST_OF_A_WEIGHT * weights as f64;
        // Relative cost of a step with bounds on gradients over all grades, larger if they cover thinned grades.
        let bounds = match (recipe.scaling, recipe.thin) {
            (Scaling::Clip, _) => 1.0,
            (_, false) => 3.0,
            (_, true) => 8.0,
        };
        let cost = COST_OF_A_RUN + each * bounds * recipe.descent.updates as f64;
        let plans = (FEWEST_LISTS..=MOST_LISTS).map(|_| OnceLock::new()).collect();
        let family = Self { name: name.into(), recipe, budget, plans, scorer, start, pairs, shuffled: false, cost };
        // The training's refusals do not depend on the number of lists.
        family.plan(FEWEST_LISTS)?;
        Ok(family)
    }

    fn plan(&self, lists: u64) -> Result<Arc<RankingPlan<L, P>>, TrainError> {
        let new = || -> Result<_, TrainError> {
            Ok(Arc::new(self.recipe.plan(lists, self.scorer.parameters() as u64, self.budget)?))
        };
        match self.plans.get(lists.saturating_sub(FEWEST_LISTS) as usize) {
            Some(place) => match place.get() {
                Some(plan) => Ok(plan.clone()),
                None => new().map(|plan| place.get_or_init(|| plan).clone()),
            },
            None => new(),
        }
    }

    /// Shuffles the documents of each list, for a loss that breaks ties by their order.
    pub fn shuffled(self) -> Self {
        Self { shuffled: true, ..self }
    }
}

impl<L, S, P> Lineup for Family<L, S, P>
where
    L: ListLoss + Copy + Send + Sync + 'static,
    S: Scorer + Clone + Send + Sync + 'static,
    P: Protect,
{
    fn pairs(&self) -> usize {
        self.pairs.all.len()
    }

    fn leading(&self) -> usize {
        self.pairs.leading
    }

    fn subject(&self, pair: usize) -> Result<Box<dyn Subject>, dp_audit::Error> {
        let name = format!("{}/pair={}", self.name, pair + 1);
        let refused = |reason: String| dp_audit::Error::Trial { subject: name.clone(), reason };
        let Some(pair) = self.pairs.all.get(pair) else { return Err(refused("there is no such pair".to_owned())) };
        let plan = self.plan(pair.lists()).map_err(|error| refused(error.to_string()))?;
        let lists = |side| -> Result<QueryLists, dp_audit::Error> {
            let mut lists = pair.query_lists(side).map_err(|error| refused(error.to_string()))?;
            if self.shuffled {
                lists.shuffle_documents(0);
            }
            Ok(lists)
        };
        let (epsilon, delta) = (plan.reached().epsilon, plan.reached().delta);
        let claim = Claim { event: DpEvent::ApproximateDp { epsilon, delta }, delta };
        let lists = [lists(Side::Base)?, lists(Side::Neighbour)?];
        let (scorer, start, subject) = (self.scorer.clone(), self.start.clone(), name.clone());
        let trial = move |side: Side, rng: &mut SeededRng, features: &mut Vec<f64>| {
            let lists = &lists[usize::from(side == Side::Neighbour)];
            let trained = plan
                .train(&scorer, start.clone(), lists, rng, &mut |_, _| ())
                .map_err(|error| dp_audit::Error::Trial { subject: subject.clone(), reason: error.to_string() })?;
            features.extend(trained.weights.get());
            Ok(())
        };
        let subject = from_fn(name.clone(), pair.describe(), claim, Statistic::Learned, trial);
        Ok(Box::new(subject.with_relative_cost(self.cost)))
    }
}

#[cfg(test)]
mod tests;
