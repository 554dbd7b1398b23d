//! A portion of the records for each candidate, and one more for the choice.
//!
//! ```text
//! S_1, ..., S_(l+1)   portions of ⌊n/(l+1)⌋ records each, cut at random, whatever the records are; the rest is not used
//! w_i = A(S_i; θ_i)   candidate i, trained on its portion at the whole budget (ε, δ), for i = 1..l
//! χ_i                 mistakes of w_i on S_(l+1)
//! i with probability proportional to exp(-ε (χ_i - min χ)/2);   w_i and i are released
//! ```
//! Under [`ZeroOut`](dp_accountant::ZeroOut) the presence of a record can only add mistakes, for every candidate, and the
//! exponent is `ε (χ_i - min χ)`.
//!
//! # Privacy
//! Neighbours differ in one record, which lies in one portion, the same for both. If it is `S_i`, only the law of `w_i`
//! differs, which is (ε, δ)-indistinguishable; the release is a function of it, of the other models, whose laws are the same,
//! and of coins. If it is `S_(l+1)`, the models' law is the same, and given them the choice is that of the exponential
//! mechanism: ε-DP, since one record moves no count by more than 1. So the whole costs as much as one part, (ε, δ), under
//! replace-one and under add-remove with a null record: parts are fixed by position
//! ([`DpEvent::Parallel`](dp_accountant::DpEvent::Parallel)). By the theorem all models may be published; only the chosen one
//! is.
//!
//! # Loss of accuracy
//! Each candidate, the chosen one included, is trained on `1/(l+1)` of the records, so that its noise is up to `l + 1` times
//! that of a training on all of them. Unless the best candidate is far better than a good default, the default on all records
//! is better: see the measurements in [`tuning`](crate::tuning).
//!
//! # References
//! Wu, Li, Kumar, Chaudhuri, Jha, Naughton, "Bolt-on differential privacy for scalable stochastic gradient
//! descent-based analytics", SIGMOD 2017, Algorithm 3, after Chaudhuri, Monteleoni, Sarwate, JMLR 2011, Algorithm 3.

mod derivation;
mod plan;

pub use derivation::PortionsDerivation;
pub use plan::PortionsPlan;

use super::check_candidates;
use crate::error::Error;
use crate::recipes::AnyRecipe;
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency};

const RECIPE: &str = "tuning by portions";

/// Candidates, each to be trained on a portion of the records; public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_data::Examples;
/// use dp_losses::LossKind;
/// use dp_mechanisms::SeededRng;
/// use dp_optim::MemorySource;
/// use dp_optim::engine::Control;
/// use dp_optim::recipes::{BoltOn, Budget, Planned, Recipe};
/// use dp_optim::tuning::Portions;
///
/// let n = 4000;
/// let rows = (0..n).flat_map(|i| [if i % 2 == 0 { 0.8 } else { -0.8 }, 0.6]).collect();
/// let labels = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
/// let mut source = MemorySource::new(Examples::dense(rows, labels, 2)?, 1.0, 1.0);
///
/// let recipe = Portions::new([0.02, 0.05].map(|lambda| BoltOn::strongly_convex(LossKind::Logistic, lambda)));
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
/// let plan = recipe.plan_copies::<ReplaceOne>(n as u64, 2, budget, 1)?;
/// assert_eq!((plan.portion(), plan.reached().epsilon), (1333, 1.0));
/// let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default())?;
/// assert!(trained.weights.get()[0] > 0.0, "the first feature tells the label");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Portions<R = AnyRecipe> {
    /// The candidates: algorithms that train the same kind of model, with the same loss, bounds and kind of noise.
    pub candidates: Vec<R>,
}

impl<R> Portions<R> {
    /// Creates a choice among `candidates`.
    pub fn new(candidates: impl IntoIterator<Item = R>) -> Self {
        Self { candidates: candidates.into_iter().collect() }
    }
}

impl Portions {
    /// Returns the number of records, of `n`, on which each of `candidates` candidates is trained, and on which the choice is
    /// made.
    ///
    /// # Examples
    /// ```
    /// // MNIST and a grid of six.
    /// assert_eq!(dp_optim::tuning::Portions::records_of_portion(60_000, 6), 8571);
    /// ```
    pub const fn records_of_portion(n: u64, candidates: usize) -> u64 {
        n / (candidates as u64 + 1)
    }
}

impl<R: Recipe> Recipe for Portions<R> {
    type Plan<A: RecordAdjacency> = PortionsPlan<R::Plan<A>, A>;

    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<PortionsPlan<R::Plan<A>, A>, Error> {
        check_candidates(RECIPE, self.candidates.len(), copies)?;
        PortionsPlan::new(self, n, dim, budget)
    }
}
