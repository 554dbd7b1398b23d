//! One model for each class against the rest, by any private algorithm for two classes.

use dp_accountant::Epsilon;
use dp_optim::recipes::{AnyRecipe, Budget, Share};

use super::refusal;
use crate::commands::train::config::OneVsAll;
use crate::failure::Failure;

/// About what one of the models may spend, for the choice of its settings only: the plan of all of them together is what
/// keeps the budget. `C` Gaussian releases cost about what one at `ε/√C` does; split budgets and pure ones divide by `C`.
pub(super) fn budget_of_each(models: OneVsAll, budget: Budget) -> Result<Budget, Failure> {
    let classes = f64::from(models.classes.max(1));
    let parts = if models.share == Share::Split || budget.delta.get() == 0.0 { classes } else { classes.sqrt() };
    let epsilon = Epsilon::new(budget.epsilon.get() / parts).map_err(|error| refusal(&error.into()))?;
    Ok(Budget { epsilon, ..budget })
}

pub(super) fn wrapped(models: OneVsAll, each: AnyRecipe) -> AnyRecipe {
    let OneVsAll { share, classes } = models;
    dp_optim::recipes::OneVsAll { recipe: Box::new(each), classes, share }.into()
}
