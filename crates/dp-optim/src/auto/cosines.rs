//! Choice of the functions of numeric columns from public numbers.

use dp_accountant::AdjacencyKind;

use super::Auto;
use crate::error::Error;
use crate::recipes::Budget;

/// Maximum number of cosines of a column.
pub const MOST_COSINES: u32 = 6;
/// Classification: maximum of the expected cost of one column's cosines, as a fraction of the possible gain. Two cosines may
/// cost twice as much, and four half as much again with delta > 0; a single one has nearly the shape of a line, and is worse. Three
/// were worse than two and than four on HIGGS, Bank Marketing and Occupancy, and level with four on Adult.
pub const COST_OF_A_CURVE: f64 = 0.01;
/// Factor on it for more than four cosines with delta = 0: the noise of the Laplace ball grows on every coordinate with each feature.
/// Chosen on six tables. `benches/ACCURACY.md` has the regret of constants chosen on all tables but the tested one.
const MANY_WHEN_PURE: f64 = 1.0 / 3.0;
/// Regression: the same for the cosines of all columns together. Fewer than three cosines approximate a line badly.
pub const COST_OF_CURVES_FOR_NUMBERS: f64 = 0.022;

impl Auto {
    /// Returns K, the number of cosines for each of `numeric` columns, or 0 for a line; `dim` is the number of features with
    /// lines.
    ///
    /// # Formula
    /// `s = 2 σ/L` is the expected cost of one more feature (see [`ExpectedCost`](super::ExpectedCost)), with σ the noise of one
    /// coordinate of one release on the mean gradient and L the bound on one record's gradient: `2 z Δ/(n L)` with Gaussian
    /// noise. K is the largest number up to [`MOST_COSINES`] with
    /// ```text
    /// classes   (K - 1) s <= COST_OF_A_CURVE        for K > 4, a third of it if delta = 0
    ///           3 s <= 1.5 COST_OF_A_CURVE          for K = 4, COST_OF_A_CURVE if delta = 0
    ///           s <= 2 COST_OF_A_CURVE              for K = 2
    /// numbers   (K - 1) s columns <= COST_OF_CURVES_FOR_NUMBERS  and  K >= 3
    /// ```
    ///
    /// # Privacy
    /// It depends on no record.
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub fn cosines(
        &self,
        n: u64,
        dim: u64,
        numeric: u64,
        budget: Budget,
        relation: AdjacencyKind,
    ) -> Result<u32, Error> {
        if numeric == 0 {
            return Ok(0);
        }
        let of_classes = self.loss.classes().is_some();
        let is_pure = !(budget.delta.get() > 0.0);
        for cosines in (2..=MOST_COSINES).rev().filter(|&cosines| if of_classes { cosines != 3 } else { cosines > 2 }) {
            let added = u64::from(cosines - 1);
            let terms = self.terms(n, dim.saturating_add(numeric.saturating_mul(added)), budget, relation)?;
            let of_a_feature = 2.0 * terms.noise / terms.parameters.sqrt() / terms.character.bound;
            let (columns, most) = match (of_classes, cosines) {
                (true, 2) => (1.0, 2.0 * COST_OF_A_CURVE),
                (true, 4) if !is_pure => (1.0, 1.5 * COST_OF_A_CURVE),
                (true, 5..) if is_pure => (1.0, MANY_WHEN_PURE * COST_OF_A_CURVE),
                (true, _) => (1.0, COST_OF_A_CURVE),
                (false, _) => (numeric as f64, COST_OF_CURVES_FOR_NUMBERS),
            };
            if added as f64 * of_a_feature * columns <= most {
                return Ok(cosines);
            }
        }
        Ok(0)
    }
}
