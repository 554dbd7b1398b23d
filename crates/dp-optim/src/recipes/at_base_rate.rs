//! A model of two classes that decides at the base rate: its threshold is the noisy log-odds of the positive class.
//!
//! # Formula
//! ```text
//! positive if score > t,     t = ln(p / q),     p and q the noisy numbers of positive and of negative records
//! ```
//! A logistic model that decides at 0 finds few records of a rare class, since hardly any of them has a probability above one
//! half. Deciding at the base rate `p / (p + q)` maximises the sum of true-positive and true-negative rates, if the probabilities are
//! right; accuracy becomes lower. Null records are in neither count.
//!
//! # Privacy
//! The threshold is the answer of [`Majority`] for a share of epsilon; the model has the rest, and delta. The certificate
//! states the composition of the two.
//!
//! # References
//! With equal costs of the two error rates, the Bayes decision compares the likelihood ratio with 1, and the posterior
//! probability with the prior one: Duda, Hart, Stork, Pattern Classification, 2001, section 2.2.

mod derivation;
mod plan;

#[cfg(test)]
mod tests;

pub use derivation::AtBaseRateDerivation;
pub use plan::AtBaseRatePlan;

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{Delta, Epsilon};
use dp_losses::LossKind;

use super::any::AnyRecipe;
use super::majority::Majority;
use super::recipe::{Budget, Planned, Recipe, RecordAdjacency, check_copies};
use crate::derivation::DerivesModel as _;
use crate::error::Error;

const RECIPE: &str = "at-base-rate";

/// The recipe of a model that decides at the base rate: public parameters only. Its release has one weight more than the
/// model's: the threshold.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ZeroOut};
/// use dp_data::Examples;
/// use dp_losses::LossKind;
/// use dp_mechanisms::SeededRng;
/// use dp_optim::MemorySource;
/// use dp_optim::engine::Control;
/// use dp_optim::recipes::{AtBaseRate, BoltOn, Budget, Planned, Recipe};
///
/// // One record of eight is positive.
/// let targets = (0..8000).map(|i| if i % 8 == 0 { 1.0 } else { -1.0 }).collect();
/// let mut source = MemorySource::new(Examples::dense(vec![1.0; 8000], targets, 1)?, 1.0, 1.0);
///
/// let recipe = AtBaseRate::new(BoltOn::strongly_convex(LossKind::Logistic, 0.01));
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
/// let plan = recipe.plan::<ZeroOut>(8000, 1, budget)?;
/// let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut Control::default())?;
/// let threshold = trained.weights.get()[1];
/// assert!((threshold - (1.0_f64 / 7.0).ln()).abs() < 0.1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct AtBaseRate<R = AnyRecipe> {
    /// The algorithm that trains the model, with the logistic loss.
    pub recipe: Box<R>,
    /// The share of epsilon for the base rate, in (0, 1).
    pub share: f64,
}

impl<R: Recipe> AtBaseRate<R> {
    /// Default [share](Self::share): the noise on the two counts has scale `20/ε` under zero-out.
    pub const SHARE: f64 = 0.05;

    /// Creates the recipe with the default share.
    pub fn new(recipe: R) -> Self {
        Self { recipe: Box::new(recipe), share: Self::SHARE }
    }
}

impl<R: Recipe> Recipe for AtBaseRate<R> {
    type Plan<A: RecordAdjacency> = AtBaseRatePlan<R::Plan<A>, A>;

    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<Self::Plan<A>, Error> {
        check_copies(copies)?;
        if !(self.share > 0.0 && self.share < 1.0) {
            return Err(Error::OutOfRange { name: "share of the base rate", value: self.share, range: "(0, 1)" });
        }
        // Rounded down, so that the sum of both is at most epsilon.
        let epsilon = budget.epsilon.get() * (1.0 - 8.0 * f64::EPSILON);
        let for_rate = Budget { epsilon: Epsilon::new(self.share * epsilon)?, delta: Delta::ZERO };
        let for_model = Budget { epsilon: Epsilon::new((1.0 - self.share) * epsilon)?, ..budget };
        let model = self.recipe.plan_copies::<A>(n, dim, for_model, copies)?;
        let terms = model.derivation().model_terms();
        let rate = Majority { noise_mode: terms.noise_mode, ..Majority::new(LossKind::Logistic) };
        let rate = rate.plan_copies::<A>(n, 1, for_rate, copies)?;
        let derivation = AtBaseRateDerivation { model: Box::new(model.derivation()), rate: rate.derivation().clone() };
        let event = derivation.event()?;
        AtBaseRatePlan::new(model, rate, derivation, event, budget, copies)
    }
}
