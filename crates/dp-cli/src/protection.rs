//! Warnings about budgets that give little protection.

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
