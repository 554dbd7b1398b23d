//! A model that protects all rows of a unit together, such as all visits of one patient.
//!
//! # Privacy
//! At most `K` rows of each unit are used, drawn independently of their contents. In the plan every unit has exactly `K`
//! records: null records fill up missing rows. So the number of records is public, `K` times the number of units, and the
//! number of a unit's rows is protected like their contents. Two tables that differ in one unit are at most `K` changes of one
//! record apart.
//!
//! The release is that of the recipe for single records, with a guarantee for `K` records at once ([`DpEvent::Group`]).
//! Composition holds for any pair of tables, so each release is bounded separately. Noise that is calibrated to a sensitivity
//! (Gaussian, Laplace, a Laplace ball) protects `K` records like one record of `K` times the sensitivity, which is the tight
//! bound for bounded contributions. Other releases are bounded by group privacy (Renyi divergences along the chain of changes).
//! The plan searches the largest budget for one record with which `K` records stay within the unit's budget.
//!
//! # References
//! Dwork and Roth 2014, Theorem 2.2 (groups); Amin, Kulesza, Munoz Medina and Vassilvitskii 2019, "Bounding user contributions".
//! [`rdp::group_of`](dp_accountant::rdp::group_of) derives the bound of chains.

mod derivation;
mod plan;

#[cfg(test)]
mod tests;

pub use derivation::PerUnitDerivation;
pub use plan::PerUnitPlan;

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{DpEvent, Epsilon, bound, gaussian};

use super::any::AnyRecipe;
use super::recipe::{Budget, Planned, Recipe, RecordAdjacency, check_copies, repeated};
use crate::error::Error;
use crate::tuning::calibration;

const RECIPE: &str = "per-unit";

/// Maximum number of rows of a unit: the noise grows in proportion.
pub const MOST_ROWS: u64 = 1_000_000;

/// The fraction of the budget at which the search for the noise ends.
const CLOSE: f64 = 1.0 - 1e-4;

/// The range of an epsilon.
const REACHABLE: &str = "the range that some noise can reach for all rows of a unit: raise epsilon, or use fewer rows";

/// The recipe of a model that protects all rows of a unit together: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ZeroOut};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{BoltOn, Budget, PerUnit, Planned, Recipe};
///
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
/// let of_record = BoltOn::strongly_convex(LossKind::Logistic, 0.01);
/// // 2,000 patients with at most 5 visits each.
/// let of_patient = PerUnit::new(of_record.clone(), 5, "patient");
/// let plan = of_patient.plan::<ZeroOut>(5 * 2000, 10, budget)?;
/// assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.999);
/// // Noise for 5 changes of one record.
/// let alone = of_record.plan::<ZeroOut>(5 * 2000, 10, Budget { epsilon: Epsilon::new(0.2)?, ..budget })?;
/// assert!((plan.record_epsilon() / alone.reached().epsilon - 1.0).abs() < 1e-3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PerUnit {
    /// The algorithm that trains the model.
    pub recipe: Box<AnyRecipe>,
    /// Largest number of rows of a unit, from 1 to [`MOST_ROWS`].
    pub rows: u64,
    /// The column that names the unit.
    pub column: String,
}

impl PerUnit {
    /// Creates the recipe for at most `rows` rows of each unit that `column` names.
    pub fn new(recipe: impl Into<AnyRecipe>, rows: u64, column: &str) -> Self {
        Self { recipe: Box::new(recipe.into()), rows, column: column.to_owned() }
    }

    /// Returns roughly the budget for one record with which `rows` records stay within `budget`; exact for one release with
    /// noise. Choices by public numbers use it.
    ///
    /// # Errors
    /// A number of rows outside `1..=MOST_ROWS`.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, Epsilon};
    /// use dp_optim::recipes::{Budget, PerUnit};
    /// let pure = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
    /// assert_eq!(PerUnit::budget_of_a_record(pure, 4)?.epsilon.get(), 0.25);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn budget_of_a_record(budget: Budget, rows: u64) -> Result<Budget, Error> {
        check_rows(rows)?;
        if rows == 1 {
            return Ok(budget);
        }
        let rows = rows as f64;
        let epsilon = if budget.delta.get() > 0.0 {
            let mu = 1.0 / gaussian::noise_multiplier(budget.epsilon, budget.delta)?.get();
            // The search needs a start above 0.
            gaussian::epsilon(mu / rows, budget.delta)?.max(1e-3 * budget.epsilon.get() / rows)
        } else {
            budget.epsilon.get() / rows
        };
        Ok(Budget { epsilon: Epsilon::new(epsilon.min(budget.epsilon.get()))?, ..budget })
    }
}

/// Rejects a number of rows for which there is no plan.
fn check_rows(rows: u64) -> Result<(), Error> {
    if (1..=MOST_ROWS).contains(&rows) {
        return Ok(());
    }
    Err(Error::Count { name: "rows of a unit", value: rows, range: "1 to 1000000" })
}

/// Returns the release as a statement about all rows of a unit.
fn of_unit(event: DpEvent, rows: u64) -> DpEvent {
    DpEvent::Group { size: rows, event: Box::new(event) }
}

impl Recipe for PerUnit {
    type Plan<A: RecordAdjacency> = PerUnitPlan<A>;

    /// `n` is the number of units times [`rows`](Self::rows).
    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<Self::Plan<A>, Error> {
        check_copies(copies)?;
        check_rows(self.rows)?;
        if !n.is_multiple_of(self.rows) {
            let why = "every unit has the same number of records, null records included";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
        let attempt = |epsilon: Epsilon| {
            let plan = self.recipe.plan_copies::<A>(n, dim, Budget { epsilon, ..budget }, copies)?;
            let event = repeated(of_unit(plan.event(), self.rows), copies);
            let cost = bound::epsilon(&event, budget.delta)?.value;
            Ok((plan, cost))
        };
        let first = Self::budget_of_a_record(budget, self.rows)?.epsilon.get();
        let (plan, _) = calibration::largest(budget.epsilon, first, CLOSE, REACHABLE, attempt)?;
        let derivation =
            PerUnitDerivation { of_record: Box::new(plan.derivation()), rows: self.rows, column: self.column.clone() };
        let event = derivation.event()?;
        PerUnitPlan::new(plan, derivation, event, budget, copies)
    }
}
