//! Warnings about trainings that give little protection, or none.

use dp::protection::{large_delta, large_epsilon};
use dp_optim::recipes::Budget;

use crate::output::Console;

/// Prints the warnings of [`dp::protection::warnings`] before training.
pub fn warn(budget: Budget, n: u64, units: &str, console: &Console) {
    if let Some(sentence) = large_epsilon(budget.epsilon.get()) {
        console.warn(&sentence);
    }
    if let Some(sentence) = large_delta(budget.delta.get(), n, units) {
        console.warn(&format!("{sentence}\nchoose a delta far below one over the number of {units}"));
    }
}

/// Warns that what is trained with a seed is not private.
pub fn warn_seeded(what: &str, console: &Console) {
    console.warn(&format!(
        "NOT PRIVATE: --seed makes the noise reproducible, so that anyone who guesses the seed can subtract it\n\
         the certificate states no guarantee; omit --seed for a {what} to be published"
    ));
}
