//! Any recipe as a black box: trained again and again on few records, nothing seen but the released model.
//!
//! The attack knows neither the algorithm nor its noise: a regression on the weights of some runs chooses the direction,
//! further runs the threshold, and [`dp_audit`] counts on runs of their own. It is weaker than the canaries of
//! [`RECIPES`](super::RECIPES), which know the law of what they see, and needs nothing to be written for an algorithm.

use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side, Statistic, Subject};
use dp_data::Examples;
use dp_mechanisms::{ReleaseRng as _, SeededRng};

use super::Record;
use crate::engine::Control;
use crate::error::Error;
use crate::memory::MemorySource;
use crate::recipes::{AnyPlan, AnyRecipe, Budget, Planned, Recipe, TrainsAny};

/// Features of the records: a direction along which the pair differs, and one across it.
pub const DIM: u64 = 2;

/// Most records of a data set.
pub const MOST_RECORDS: u64 = 7;

/// What one training costs in units of releasing one number, each row that it goes through, and all of it where steps are
/// searched for until a budget is spent.
const COST_OF_A_RUN: f64 = 40.0;
const COST_OF_A_ROW: f64 = 0.5;
const COST_OF_A_SEARCH: f64 = 600.0;

/// A record that the attacker puts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extreme {
    /// The unit vector along an axis, with a sign and a label.
    Unit { axis: usize, sign: i8, label: i8 },
    /// A row of zeros with a label: a record like any other.
    Zeros { label: i8 },
    /// The null record of [`ZeroOut`], which is not there.
    Null,
}

impl Extreme {
    fn record(self) -> Record {
        let mut record = Record::null(DIM as usize);
        match self {
            Self::Unit { axis, sign, label } => {
                record.features[axis] = f64::from(sign);
                record.target = f64::from(label);
            }
            Self::Zeros { label } => record.target = f64::from(label),
            Self::Null => {}
        }
        record
    }

    fn describe(self) -> String {
        match self {
            Self::Unit { axis, sign, label } => {
                format!("({}e{}; {label:+})", if sign < 0 { "-" } else { "" }, axis + 1)
            }
            Self::Zeros { label } => format!("(0; {label:+})"),
            Self::Null => "none".to_owned(),
        }
    }
}

/// Two neighbouring data sets of 2 to 7 extreme records: unit vectors of either sign and label, rows of zeros, and under
/// [`ZeroOut`] a null record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    n: u64,
    at: usize,
    common: Extreme,
    base: Extreme,
    neighbour: Extreme,
}

const ALONG: Extreme = Extreme::Unit { axis: 0, sign: 1, label: 1 };
const OTHER_LABEL: Extreme = Extreme::Unit { axis: 0, sign: 1, label: -1 };
const OTHER_SIGN: Extreme = Extreme::Unit { axis: 0, sign: -1, label: 1 };
const OTHER_OF_BOTH: Extreme = Extreme::Unit { axis: 0, sign: -1, label: -1 };
const ACROSS: Extreme = Extreme::Unit { axis: 1, sign: 1, label: 1 };
const ZEROS: Extreme = Extreme::Zeros { label: 1 };

/// Number of records, place of the one that differs, all others, and the one that differs in either data set.
const REPLACED: [(u64, usize, Extreme, Extreme, Extreme); 6] = [
    (2, 0, ZEROS, ALONG, OTHER_LABEL),
    (2, 1, ALONG, ALONG, OTHER_SIGN),
    (3, 1, OTHER_LABEL, ALONG, OTHER_LABEL),
    (5, 4, ZEROS, OTHER_OF_BOTH, OTHER_SIGN),
    (5, 2, ACROSS, ALONG, ZEROS),
    (7, 0, ACROSS, ALONG, OTHER_LABEL),
];
const LEFT_OUT: [(u64, usize, Extreme, Extreme, Extreme); 6] = [
    (2, 0, ZEROS, ALONG, Extreme::Null),
    (2, 1, ALONG, OTHER_LABEL, Extreme::Null),
    (3, 1, Extreme::Null, OTHER_SIGN, Extreme::Null),
    (5, 4, OTHER_LABEL, ALONG, Extreme::Null),
    (5, 2, ACROSS, OTHER_OF_BOTH, Extreme::Null),
    (7, 0, Extreme::Null, ALONG, Extreme::Null),
];

impl Pair {
    /// The pairs that are tried under a relation: every extreme, and the first, a middle and the last place.
    ///
    /// # Errors
    /// [`Error::Adjacency`] for a relation other than [`ReplaceOne`] and [`ZeroOut`].
    pub fn all(relation: AdjacencyKind) -> Result<Vec<Self>, Error> {
        let all = match relation {
            AdjacencyKind::ReplaceOne => REPLACED,
            AdjacencyKind::ZeroOut => LEFT_OUT,
            adjacency => return Err(Error::Adjacency { recipe: "black box", adjacency }),
        };
        Ok(all.map(|(n, at, common, base, neighbour)| Self { n, at, common, base, neighbour }).to_vec())
    }

    /// Number of records, those that are null among them.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// In words.
    pub fn describe(&self) -> String {
        let Self { n, at, common, base, neighbour } = self;
        let (base, neighbour, common) = (base.describe(), neighbour.describe(), common.describe());
        format!("record {} of {n} is {base} against {neighbour}, all others {common}", at + 1)
    }

    fn examples(&self, side: Side) -> Result<Examples<f64>, Error> {
        let differing = match side {
            Side::Base => self.base,
            Side::Neighbour => self.neighbour,
        };
        let (mut values, mut targets, mut valid) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..self.n as usize {
            let extreme = if row == self.at { differing } else { self.common };
            let record = extreme.record();
            values.extend(record.features);
            targets.push(record.target);
            valid.push(extreme != Extreme::Null);
        }
        let shape = |_| Error::Count { name: "rows", value: self.n, range: "what memory can address" };
        Examples::dense(values, targets, DIM as usize).and_then(|examples| examples.with_valid(valid)).map_err(shape)
    }
}

/// A recipe that is trained on the two data sets of a pair; its features are the released weights.
///
/// What is claimed is what the plan states, epsilon at the delta that was asked for.
pub struct BlackBox<A: TrainsAny<f64>> {
    name: String,
    pair: String,
    claim: Claim,
    plan: AnyPlan<A>,
    /// By side.
    examples: [Examples<f64>; 2],
    cost: f64,
}

impl<A: TrainsAny<f64>> BlackBox<A> {
    /// Plans the recipe for the records of a pair.
    ///
    /// # Errors
    /// What the recipe refuses, and a pair of another relation.
    pub fn new(name: impl Into<String>, recipe: &AnyRecipe, budget: Budget, pair: &Pair) -> Result<Self, Error> {
        if !Pair::all(A::KIND)?.contains(pair) {
            return Err(Error::Adjacency { recipe: "black box", adjacency: A::KIND });
        }
        let plan = recipe.plan_copies::<A>(pair.n, DIM, budget, 1)?;
        let reached = plan.reached();
        let (epsilon, delta) = (reached.epsilon, reached.delta);
        let cost = match &plan {
            AnyPlan::SearchedDescent(_) => COST_OF_A_SEARCH,
            _ => COST_OF_A_RUN + COST_OF_A_ROW * plan.summary().rows as f64,
        };
        let event = if delta > 0.0 { DpEvent::ApproximateDp { epsilon, delta } } else { DpEvent::PureDp { epsilon } };
        Ok(Self {
            name: name.into(),
            pair: pair.describe(),
            claim: Claim { event, delta },
            plan,
            examples: [pair.examples(Side::Base)?, pair.examples(Side::Neighbour)?],
            cost,
        })
    }
}

/// A [`BlackBox`] under a relation that is chosen at run time.
///
/// # Errors
/// Those of [`BlackBox::new`].
///
/// # Examples
/// ```
/// use dp_accountant::{AdjacencyKind, Delta, Epsilon};
/// use dp_audit::{Auditor, Verdict};
/// use dp_losses::LossKind;
/// use dp_optim::audit::black_box::{Pair, subject};
/// use dp_optim::recipes::{AnyRecipe, BoltOn, Budget};
///
/// let recipe = AnyRecipe::from(BoltOn::strongly_convex(LossKind::Logistic, 0.1));
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-3)? };
/// let relation = AdjacencyKind::ReplaceOne;
/// let pairs = Pair::all(relation)?;
/// let subject = subject("bolt-on", &recipe, relation, budget, &pairs[0])?;
/// assert_eq!(Auditor::exactly(1000)?.audit(&subject)?.verdict, Verdict::NotRefuted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn subject(
    name: impl Into<String>,
    recipe: &AnyRecipe,
    relation: AdjacencyKind,
    budget: Budget,
    pair: &Pair,
) -> Result<Box<dyn Subject>, Error> {
    Ok(match relation {
        AdjacencyKind::ReplaceOne => Box::new(BlackBox::<ReplaceOne>::new(name, recipe, budget, pair)?),
        AdjacencyKind::ZeroOut => Box::new(BlackBox::<ZeroOut>::new(name, recipe, budget, pair)?),
        adjacency => return Err(Error::Adjacency { recipe: "black box", adjacency }),
    })
}

impl<A: TrainsAny<f64>> Subject for BlackBox<A> {
    fn name(&self) -> &str {
        &self.name
    }

    fn pair(&self) -> &str {
        &self.pair
    }

    fn claim(&self) -> &Claim {
        &self.claim
    }

    fn statistic(&self) -> Statistic {
        Statistic::Learned
    }

    fn relative_cost(&self) -> f64 {
        self.cost
    }

    fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), dp_audit::Error> {
        let examples = match side {
            Side::Base => &self.examples[0],
            Side::Neighbour => &self.examples[1],
        };
        let mut source = MemorySource::new(examples.clone(), 1.0, 1.0);
        let trained = A::train_any(&self.plan, &mut source, &mut rng.lend(), &mut Control::default())
            .map_err(|error| dp_audit::Error::Trial { subject: self.name.clone(), reason: error.to_string() })?;
        features.extend(trained.weights.get());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_differ_in_one_record_and_hold_every_extreme() {
        for relation in [AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut] {
            let pairs = Pair::all(relation).unwrap();
            for pair in &pairs {
                let rows = |side| {
                    let examples = pair.examples(side).unwrap();
                    let block = examples.block();
                    let dp_data::Rows::Dense { values, .. } = block.rows else { panic!("dense") };
                    let row = |i: usize| (values[2 * i..2 * i + 2].to_vec(), block.targets[i], block.valid.unwrap()[i]);
                    (0..block.len()).map(row).collect::<Vec<_>>()
                };
                let (base, neighbour) = (rows(Side::Base), rows(Side::Neighbour));
                let differing: Vec<usize> = (0..base.len()).filter(|&i| base[i] != neighbour[i]).collect();
                assert_eq!(differing, [pair.at], "{}", pair.describe());
                assert_eq!(neighbour[pair.at].2, relation == AdjacencyKind::ReplaceOne);
                assert!((2..=MOST_RECORDS as usize).contains(&base.len()));
            }
            let within = |extreme| pairs.iter().any(|pair| [pair.common, pair.base, pair.neighbour].contains(&extreme));
            let all = [ALONG, OTHER_LABEL, OTHER_SIGN, OTHER_OF_BOTH, ACROSS, ZEROS];
            assert!(all.into_iter().all(within), "{relation}");
            assert!(pairs.iter().any(|pair| pair.at == 0) && pairs.iter().any(|pair| pair.at as u64 == pair.n - 1));
            assert!(pairs.iter().any(|pair| pair.at > 0 && (pair.at as u64) < pair.n - 1));
        }
        assert!(matches!(Pair::all(AdjacencyKind::AddRemoveOne), Err(Error::Adjacency { .. })));
    }

    #[test]
    fn a_pair_of_another_relation_is_refused() {
        use dp_accountant::{Delta, Epsilon};
        let recipe = AnyRecipe::from(crate::recipes::BoltOn::strongly_convex(dp_losses::LossKind::Logistic, 0.1));
        let budget = Budget { epsilon: Epsilon::new(1.0).unwrap(), delta: Delta::ZERO };
        let pair = Pair::all(AdjacencyKind::ZeroOut).unwrap()[0];
        let refused = subject("x", &recipe, AdjacencyKind::ReplaceOne, budget, &pair);
        assert!(matches!(refused, Err(Error::Adjacency { .. })));
    }
}
