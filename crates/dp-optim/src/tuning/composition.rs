//! Several candidates, each trained on the same records; the best model is released.
//!
//! ```text
//! S, S'   the records, cut in two at random, whatever they are: S' has a tenth of them, S the others
//! w_i     candidate i, trained on S in its encoding, i = 1..l
//! χ_i     mistakes of w_i on S'
//! i with probability proportional to exp(-ε (χ_i - min χ)/2);   w_i and i are released
//! ```
//! Under [`ZeroOut`](dp_accountant::ZeroOut) the exponent is `ε (χ_i - min χ)`, as in [`portions`](crate::tuning::portions).
//!
//! Candidates may read the records in different encodings ([`RowSource::alternative`](dp_data::RowSource::alternative)): so one
//! can train with and without features that help on some tables and harm on others. Their mistakes are counted on other records
//! than those of the training, because a model with more features fits those better, noise included.
//!
//! # Privacy
//! Neighbours differ in one record, which lies in `S` or in `S'`, the same for both. If it is in `S`, all models may be published:
//! they are releases one after the other on the same records, whose costs compose; the choice is a function of them and of
//! records that do not differ. If it is in `S'`, the models have the same law, and given them the choice is the exponential
//! mechanism's. So the whole costs what the trainings together cost, or ε
//! ([`DpEvent::Parallel`](dp_accountant::DpEvent::Parallel)).
//!
//! # Calibration
//! Candidate `i` is planned at epsilon `t v_i`, `v_i` its [weight](Candidate::weight). `t` is the largest, to within 1e-4, for
//! which the accountant's bound of all trainings meets the budget. With a delta the noise of `l` candidates of equal weight is
//! about `√l` times that of one training. Up to about four candidates this is less noise than with [random
//! stopping](crate::tuning::random_stopping).

mod derivation;
mod plan;

#[cfg(test)]
mod tests;

pub use derivation::CompositionDerivation;
pub use plan::CompositionPlan;

use dp_accountant::{Epsilon, gaussian};

use super::{check_candidates, check_number};
use crate::error::{Error, positive};
use crate::recipes::AnyRecipe;
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency};

const RECIPE: &str = "tuning by composition";

/// One of several trainings.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Candidate<R = AnyRecipe> {
    /// The algorithm.
    pub recipe: R,
    /// Its epsilon relative to those of the others: a larger one means less noise.
    pub weight: f64,
    /// The encoding in which it reads the records; `None` for that of the source itself.
    pub encoding: Option<Alternative>,
}

/// Another encoding of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Alternative {
    /// Its number among the source's [alternatives](dp_data::RowSource::alternative), from 0.
    pub number: u32,
    /// Number of its features, intercept included.
    pub dim: u64,
}

impl<R> Candidate<R> {
    /// Creates a candidate of weight 1 in the encoding of the source itself.
    pub fn new(recipe: R) -> Self {
        Self { recipe, weight: 1.0, encoding: None }
    }
}

/// Candidates that are all trained on the same records; public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_data::{Alternatives, Examples};
/// use dp_losses::LossKind;
/// use dp_mechanisms::SeededRng;
/// use dp_optim::MemorySource;
/// use dp_optim::engine::Control;
/// use dp_optim::recipes::{BoltOn, Budget, Planned, Recipe};
/// use dp_optim::tuning::Composition;
/// use dp_optim::tuning::composition::{Alternative, Candidate};
///
/// // The label follows from the product of two numbers: the second encoding has it as a feature.
/// let n = 4000;
/// let pair = |i: usize| [if i % 2 == 0 { 0.5 } else { -0.5 }, if i / 2 % 2 == 0 { 0.5 } else { -0.5 }];
/// let labels: Vec<f64> = (0..n).map(|i| 4.0 * pair(i)[0] * pair(i)[1]).collect();
/// let rows = (0..n).flat_map(pair).collect();
/// let longer = (0..n).flat_map(|i| [pair(i)[0], pair(i)[1], 2.0 * pair(i)[0] * pair(i)[1]]).collect();
/// let mut plain = MemorySource::new(Examples::dense(rows, labels.clone(), 2)?, 1.0, 1.0);
/// let mut with_product = MemorySource::new(Examples::dense(longer, labels, 3)?, 1.0, 1.0);
///
/// let candidate = Candidate::new(BoltOn::strongly_convex(LossKind::Logistic, 0.05));
/// let encoding = Some(Alternative { number: 0, dim: 3 });
/// let recipe = Composition::new([candidate.clone(), Candidate { encoding, ..candidate }]);
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = recipe.plan::<ZeroOut>(n as u64, 2, budget)?;
/// assert!(plan.reached().epsilon <= 1.0);
/// let mut source = Alternatives::new(&mut plain, vec![&mut with_product]);
/// let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default())?;
/// assert_eq!((trained.derivation.chosen, trained.weights.get().len()), (Some(1), 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Composition<R = AnyRecipe> {
    /// The candidates: algorithms that train the same kind of model, with the same loss, bounds and kind of noise.
    pub candidates: Vec<Candidate<R>>,
}

impl Composition {
    /// Returns the number of records, of `n`, on which the choice is made: a tenth, at least one.
    ///
    /// # Examples
    /// ```
    /// use dp_optim::tuning::Composition;
    /// assert_eq!((Composition::records_of_choice(999), Composition::records_of_choice(2)), (99, 1));
    /// ```
    pub const fn records_of_choice(n: u64) -> u64 {
        if n < 10 { 1 } else { n / 10 }
    }
}

impl<R> Composition<R> {
    /// Creates a choice among `candidates`.
    pub fn new(candidates: impl IntoIterator<Item = Candidate<R>>) -> Self {
        Self { candidates: candidates.into_iter().collect() }
    }

    /// Returns roughly the budget of a candidate of this weight. Choices by public numbers use it.
    ///
    /// # Errors
    /// A weight that is not positive and finite.
    pub fn budget_of(&self, weight: f64, budget: Budget) -> Result<Budget, Error> {
        Ok(Budget { epsilon: Epsilon::new(weight * self.first_unit(budget)?)?, ..budget })
    }

    /// Returns roughly `t`: epsilons add up without delta; with one, the squares of the Gaussians' `μ` do.
    fn first_unit(&self, Budget { epsilon, delta }: Budget) -> Result<f64, Error> {
        let weights = || self.candidates.iter().map(|candidate| candidate.weight);
        if delta.get() == 0.0 {
            return Ok(epsilon.get() / weights().sum::<f64>());
        }
        let norm = weights().map(|weight| weight * weight).sum::<f64>().sqrt();
        let largest = weights().fold(0.0, f64::max);
        let mu = 1.0 / gaussian::noise_multiplier(epsilon, delta)?.get();
        // The search needs a start above 0.
        let of_largest = gaussian::epsilon(mu * largest / norm, delta)?.max(1e-3 * epsilon.get());
        Ok(of_largest / largest)
    }

    fn check(&self) -> Result<(), Error> {
        check_number(self.candidates.len())?;
        self.candidates.iter().try_for_each(|candidate| positive("weight of a candidate", candidate.weight).map(drop))
    }
}

impl<R: Recipe> Recipe for Composition<R> {
    type Plan<A: RecordAdjacency> = CompositionPlan<R::Plan<A>, A>;

    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<CompositionPlan<R::Plan<A>, A>, Error> {
        check_candidates(RECIPE, self.candidates.len(), copies)?;
        self.check()?;
        CompositionPlan::new(self, n, dim, budget)
    }
}
