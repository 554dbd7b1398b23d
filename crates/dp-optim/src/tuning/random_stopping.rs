//! A random number of repetitions, each with a random candidate; the best model is released.
//!
//! ```text
//! K                 from a law on 0, 1, 2, ... that everybody knows
//! for k in 1..=K:
//!     j             one of the l candidates, uniformly
//!     w_k           candidate j, trained on all records
//!     s_k           (right - wrong predictions of w_k on all records) + noise on the integers
//! the w_k with the largest s_k, with its j; the earliest of equal ones
//! ```
//! With `K = 0`, possible for a Poisson number, the model of zeros is released.
//!
//! # Privacy
//! One repetition releases `(j, w, s)`: for each `j` the composition of a training and a noisy count. `j` has the same law for
//! neighbours, so that the Renyi divergences are at most the largest over the candidates
//! ([`DpEvent::OneOf`](dp_accountant::DpEvent::OneOf)). The theorem is about the best of `K` such outcomes by a total order.
//! Here the earliest of equal scores wins, which gives the same law as a uniform mark on each outcome, since outcomes are
//! exchangeable. The law of the best has the distribution function `f(F)`, `F` that of one outcome and `f` the generating
//! function of `K`. For a truncated negative binomial `K`, pure ε of one repetition become `(2 + η) ε`, and Renyi curves
//! become those of [`random_stopping`](dp_accountant::rdp::random_stopping): the cost hardly depends on the mean number of
//! repetitions.
//!
//! The number of repetitions, the position of the best among them and all other outcomes stay secret: the theorem does not
//! cover them. **Nor does it cover the running time, the memory or the number of threads of the whole**, which reveal the number of
//! repetitions. Publish the model when it is finished, not the time that it took.
//!
//! # Calibration
//! All candidates and the score are planned at multiples of one epsilon: the largest, to within one percent, for which the
//! accountant's bound of the whole meets the budget.
//!
//! # References
//! Liu, Talwar, "Private selection from private candidates", STOC 2019, Theorem 1.3 (`η = 1`). Papernot, Steinke,
//! "Hyperparameter tuning with Rényi differential privacy", ICLR 2022, Theorems 2 and 6, Corollary 3, arXiv 2110.03620.

mod derivation;
mod plan;
mod score;

pub use derivation::RandomStoppingDerivation;
pub use plan::RandomStoppingPlan;
pub use score::ScoreNoise;

use dp_accountant::Repetitions;

use super::{check_candidates, repetitions};
use crate::error::{Error, positive};
use crate::recipes::AnyRecipe;
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency};

pub(super) const RECIPE: &str = "tuning by random stopping";

/// Candidates in a random number of repetitions; public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ZeroOut};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{BoltOn, Budget, Planned, Recipe};
/// use dp_optim::tuning::RandomStopping;
///
/// let grid = [1e-4, 1e-3, 1e-2, 1e-1].map(|lambda| BoltOn::strongly_convex(LossKind::Logistic, lambda));
/// let recipe = RandomStopping::new(grid, 10.0);
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
/// let plan = recipe.plan_copies::<ZeroOut>(50_000, 10, budget, 1)?;
/// // A logarithmic number of repetitions doubles the cost of one: of model and score together, 0.5.
/// assert!((plan.repetition_epsilon() - 0.4).abs() < 0.01 && plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RandomStopping<R = AnyRecipe> {
    /// The candidates: algorithms that train the same kind of model, with the same loss, bounds and kind of noise.
    pub candidates: Vec<R>,
    /// The law of the number of repetitions: truncated negative binomial with `eta` in (-1, 1] and `gamma` in [1e-6, 1), or
    /// Poisson, which needs a delta.
    pub repetitions: Repetitions,
    /// Ratio of a score's epsilon to a model's; a larger one makes the choice more reliable and the models noisier.
    pub score_share: f64,
}

impl RandomStopping {
    /// The usual share: a count of mistakes needs little noise.
    pub const SCORE_SHARE: f64 = 0.25;

    /// Returns the truncated negative binomial law of shape `eta` with this mean, up to rounding. A mean of at most 1 has
    /// none; planning refuses it.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::Repetitions;
    /// use dp_optim::tuning::RandomStopping;
    /// let Repetitions::TruncatedNegativeBinomial { gamma, .. } = RandomStopping::repetitions_of_mean(1.0, 10.0) else {
    ///     unreachable!()
    /// };
    /// assert!((gamma - 0.1).abs() < 1e-12); // geometric
    /// ```
    pub fn repetitions_of_mean(eta: f64, mean: f64) -> Repetitions {
        Repetitions::TruncatedNegativeBinomial { eta, gamma: repetitions::gamma_of(eta, mean) }
    }
}

impl<R> RandomStopping<R> {
    /// Creates a choice among `candidates` with `mean` repetitions on average. Their number is logarithmic (`eta = 0`), a law
    /// with heavy tails, which costs twice a repetition.
    ///
    /// A mean of at most 1 has no such law; planning refuses it.
    pub fn new(candidates: impl IntoIterator<Item = R>, mean: f64) -> Self {
        let repetitions = RandomStopping::repetitions_of_mean(0.0, mean);
        Self { candidates: candidates.into_iter().collect(), repetitions, score_share: RandomStopping::SCORE_SHARE }
    }

    fn check(&self) -> Result<(), Error> {
        positive("share of the score", self.score_share)?;
        repetitions::check(self.repetitions)
    }
}

impl<R: Recipe> Recipe for RandomStopping<R> {
    type Plan<A: RecordAdjacency> = RandomStoppingPlan<R::Plan<A>, A>;

    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<RandomStoppingPlan<R::Plan<A>, A>, Error> {
        check_candidates(RECIPE, self.candidates.len(), copies)?;
        self.check()?;
        RandomStoppingPlan::new(self, n, dim, budget)
    }
}
