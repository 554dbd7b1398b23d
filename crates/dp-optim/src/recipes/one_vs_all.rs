//! Several classes with a binary algorithm: one model for each class against all others.
//!
//! # Formula
//! For `C` models of sensitivity `Δ` each, in `d` dimensions, the noise on every weight (for the Laplace ball its expected
//! square) is
//! ```text
//!                  Gaussian at (ε, δ)        Laplace ball at ε
//! split            σ(Δ; ε/C, δ/C)            (d + 1) C² Δ²/ε²
//! composed         σ(√C Δ; ε, δ)             (d + 1) C² Δ²/ε²
//! joint            σ(√C Δ; ε, δ)             (Cd + 1) C Δ²/ε²
//! softmax          σ(√2 Δ; ε, δ)             (Cd + 1) 2 Δ²/ε²
//! ```
//! with `σ(Δ; ε, δ)` the least standard deviation for sensitivity `Δ`. For 10 classes at `ε = 1`, `δ = 10⁻⁶` splitting the
//! budget costs 3.1 times the Gaussian noise of the other two; the factor grows with the number of classes. Softmax regression
//! ([`Softmax`](dp_losses::Softmax)) trains all classes in one model, whose gradient is `√2` times as long for any number of classes: its noise is
//! smaller by another factor `√(C/2)`. Prefer it if the algorithm can train it.
//!
//! # Privacy
//! Every record takes part in every model. Replacing one changes all of them, and no class can be omitted from the sum: two
//! opposite rows of the same class move each of the `C` models by the maximum, so that `√C Δ` is attained. Under
//! [`ZeroOut`](dp_accountant::ZeroOut) the same holds with the smaller `Δ` of that relation.
//!
//! # References
//! Wu et al. 2017, section 4.3, train MNIST's ten classes with the budget split evenly. The joint release is the mechanism for
//! the vector of all models; a composition of Gaussians costs the same as one joint Gaussian.

mod derivation;
mod plan;
mod source;

#[cfg(test)]
mod tests;

pub use derivation::OneVsAllDerivation;
pub use plan::OneVsAllPlan;
pub use source::OneAgainstRest;

use dp_accountant::Epsilon;

use crate::error::Error;
use crate::recipes::AnyRecipe;
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency, check_copies};

const RECIPE: &str = "one-vs-all";

/// The division of the budget among the models of the classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Share {
    /// Each model gets `(ε/C, δ/C)`, as in the literature. The stated guarantee is that of the composition by the accountant,
    /// which is less than requested.
    Split,
    /// One release of all models together; for the bolt-on recipes only.
    Joint,
    /// Each model is released separately, with the noise with which all of them together stay within the budget.
    #[default]
    Composed,
}

impl Share {
    /// Returns roughly the budget of one of `classes` models, for the choice of its settings only: the joint plan ensures the
    /// budget. `C` Gaussian releases cost about as much as one at `ε/√C`; split budgets and pure ones divide by `C`.
    ///
    /// # Errors
    /// An epsilon too small to be divided.
    pub fn budget_of_each(self, classes: u32, budget: Budget) -> Result<Budget, Error> {
        let classes = f64::from(classes.max(1));
        let parts = if self == Self::Split || budget.delta.get() == 0.0 { classes } else { classes.sqrt() };
        Ok(Budget { epsilon: Epsilon::new(budget.epsilon.get() / parts)?, ..budget })
    }
}

/// One model for each class against all others; public parameters only.
///
/// The model of class `c` is trained on targets +1 for records of class `c` and -1 for all others. The released weights are
/// ordered by class, like those of softmax regression, and the class of the largest score is predicted.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_data::Examples;
/// use dp_losses::LossKind;
/// use dp_mechanisms::SeededRng;
/// use dp_optim::MemorySource;
/// use dp_optim::engine::Control;
/// use dp_optim::recipes::{BoltOn, Budget, OneVsAll, Planned, Recipe};
///
/// // Three classes, each with a separate feature.
/// let n = 3000;
/// let rows = (0..n).flat_map(|i| [0, 1, 2].map(|j| if i % 3 == j { 1.0 } else { 0.0 })).collect();
/// let targets = (0..n).map(|i| (i % 3) as f64).collect();
/// let mut source = MemorySource::new(Examples::dense(rows, targets, 3)?, 1.0, 2.0);
///
/// let recipe = OneVsAll::new(BoltOn::strongly_convex(LossKind::Logistic, 0.05), 3);
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = recipe.plan_copies::<ZeroOut>(n as u64, 3, budget, 1)?;
/// let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut Control::default())?;
/// let weights = trained.weights.get();
/// assert!(weights.len() == 9 && weights[0] > weights[3] && weights[4] > weights[1] && weights[8] > weights[5]);
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct OneVsAll<R = AnyRecipe> {
    /// The algorithm that trains each model, with a binary loss.
    pub recipe: Box<R>,
    /// Number of classes, at least 2; public.
    pub classes: u32,
    /// The division of the budget.
    pub share: Share,
}

impl<R: Recipe> OneVsAll<R> {
    /// Creates `classes` models trained by `recipe`, each released separately, together within the budget.
    pub fn new(recipe: R, classes: u32) -> Self {
        Self { recipe: Box::new(recipe), classes, share: Share::default() }
    }
}

impl<R: Recipe> Recipe for OneVsAll<R> {
    type Plan<A: RecordAdjacency> = OneVsAllPlan<R::Plan<A>, A>;

    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<OneVsAllPlan<R::Plan<A>, A>, Error> {
        check_copies(copies)?;
        OneVsAllPlan::new(self, n, dim, budget, copies)
    }
}
