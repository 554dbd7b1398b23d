//! Forecasts of the cost of privacy before any data is seen: by epsilon and method, and the number of records needed.
//!
//! Everything follows from public numbers: records, features, loss, relation, budget. [`dp_optim::auto::ExpectedCost`] states the
//! formulas and how they were measured.

use dp_accountant::certificate::EpsilonDelta;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon, Evaluation, Evaluator, ReplaceOne, ZeroOut};
use dp_data::Encoder;
use dp_losses::LossKind;
use dp_optim::Auto;
use dp_optim::auto::{ExpectedCost, Method};
use dp_optim::catalogue::{self, Request, Settings};
use dp_optim::recipes::{AnyRecipe, Budget, PerUnit, Planned as _, Recipe as _, RecordAdjacency};
use serde::Serialize;

use crate::training::{TrainError, budgets_of_a_record, suggested_delta, with_chosen_map};

/// The largest number of records that is tried by [`Planning::records_needed`].
const MOST_RECORDS: f64 = 1e12;
/// The factor between tried numbers.
const STEP: f64 = 1.25;

/// The columns of a planned training.
#[derive(Debug, Clone)]
pub enum Columns {
    /// This number of features, including the intercept, each used as it is.
    Features(u64),
    /// The columns of an encoder; `auto` chooses the functions of numeric ones.
    Encoded(Box<Encoder>),
}

/// The public numbers of a planned training by `auto`, except epsilon and the number of records.
///
/// # Examples
/// ```
/// use dp::planning::{Columns, Planning};
/// use dp_losses::LossKind;
///
/// let planning = Planning::new(Columns::Features(31), LossKind::Logistic);
/// let forecast = planning.at(20_000, 1.0)?;
/// assert!(forecast.expected_loss > 0.005 && forecast.expected_loss < 0.05);
/// let needed = planning.records_needed(1.0, 0.01)?.ok_or("no number of records is enough")?;
/// assert!(planning.at(needed, 1.0)?.expected_loss <= 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Planning {
    /// The columns.
    pub columns: Columns,
    /// The loss.
    pub loss: LossKind,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Delta; `None` for [`suggested_delta`] of the number of units.
    pub delta: Option<Delta>,
    /// Largest number of records of a unit; 1 to protect records.
    pub records_of_unit: u64,
    /// Number of units; `None` if each has its largest number of records.
    pub units: Option<u64>,
}

/// The expected cost of a training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// Epsilon.
    pub epsilon: f64,
    /// Delta.
    pub delta: f64,
    /// Number of features, the intercept included.
    pub dim: u64,
    /// The method that `auto` chooses.
    pub method: Method,
    /// Its expected loss: the fraction of the possible gain over the majority class, or over the mean label.
    pub expected_loss: f64,
    /// Range of most measured losses.
    pub expected_loss_range: [f64; 2],
    /// The expected loss of each method.
    pub methods: Vec<MethodForecast>,
    /// The expected loss of the best method if delta is 0.
    pub expected_loss_without_delta: f64,
}

/// The expected loss of a method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MethodForecast {
    /// The method.
    pub method: Method,
    /// Its expected loss.
    pub expected_loss: f64,
}

impl Planning {
    /// Creates a planning for records under zero-out, with the suggested delta.
    pub fn new(columns: Columns, loss: LossKind) -> Self {
        Self { columns, loss, relation: AdjacencyKind::ZeroOut, delta: None, records_of_unit: 1, units: None }
    }

    /// Returns the expected cost for `n` records.
    ///
    /// # Errors
    /// As [`Auto::choose`], and more records of a unit than [`PerUnit`] supports.
    pub fn at(&self, n: u64, epsilon: f64) -> Result<Forecast, TrainError> {
        let (budget, of_record, dim) = self.budgets(n, epsilon)?;
        let (method, expected_cost) = self.cost(n, dim, of_record)?;
        let forecast = |forecast: &dp_optim::auto::Forecast| MethodForecast {
            method: forecast.method,
            expected_loss: forecast.expected_cost.share,
        };
        let forecasts = Auto::new(self.loss).forecasts(n, dim, of_record, self.relation)?;
        // With the same features, or the losses would not compare.
        let (pure, _) = budgets_of_a_record(Budget { delta: Delta::ZERO, ..budget }, self.records_of_unit)?;
        let (_, without_delta) = self.cost(n, dim, pure)?;
        let (low, high) = expected_cost.range();
        Ok(Forecast {
            epsilon,
            // Units of several rows may take a guarantee without delta.
            delta: if of_record.delta == Delta::ZERO { 0.0 } else { budget.delta.get() },
            dim,
            method,
            expected_loss: expected_cost.share,
            expected_loss_range: [low, high],
            methods: forecasts.iter().map(forecast).collect(),
            expected_loss_without_delta: without_delta.share,
        })
    }

    /// Returns the smallest number of records, to two digits, with an expected loss of at most `most`; `None` if there is none up
    /// to 10¹². The number of units grows in proportion.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn records_needed(&self, epsilon: f64, most: f64) -> Result<Option<u64>, TrainError> {
        let planning = Self { units: None, ..self.clone() };
        // Errors do not depend on the number.
        planning.expected_loss(1, epsilon)?;
        let is_enough = |n: f64| planning.expected_loss(n as u64, epsilon).is_ok_and(|loss| loss <= most);
        Ok(smallest(1.0, MOST_RECORDS, is_enough).map(|n| n as u64))
    }

    /// Returns the guarantee of two such releases together, at twice the delta.
    ///
    /// # Errors
    /// As [`at`](Self::at), and noise that cannot be calibrated.
    pub fn of_two(&self, n: u64, epsilon: f64) -> Result<EpsilonDelta, TrainError> {
        let (budget, of_record, dim) = self.budgets(n, epsilon)?;
        let n = self.planned(n);
        let recipe = Auto::new(self.loss).choose(n, dim, of_record, self.relation)?.recipe;
        let recipe = match self.records_of_unit {
            1 => recipe,
            most => PerUnit::new(recipe, most, "unit").into(),
        };
        let (event, reached) = match self.relation {
            AdjacencyKind::ReplaceOne => released::<ReplaceOne>(&recipe, n, dim, budget)?,
            _ => released::<ZeroOut>(&recipe, n, dim, budget)?,
        };
        let epsilon = (2.0 * reached.epsilon).next_up();
        let delta = if reached.delta > 0.0 { (2.0 * reached.delta).next_up() } else { 0.0 };
        let both = DpEvent::SelfComposed { event: Box::new(event), count: 2 };
        let composed = Evaluation::new(Evaluator::Tightest, &both, self.relation)
            .and_then(|evaluation| evaluation.epsilon(Delta::new(delta)?));
        // Without a theorem for the composed event, basic composition of the guarantees.
        Ok(EpsilonDelta { epsilon: composed.map_or(epsilon, |composed| composed.upper.min(epsilon)), delta })
    }

    fn expected_loss(&self, n: u64, epsilon: f64) -> Result<f64, TrainError> {
        let (_, of_record, dim) = self.budgets(n, epsilon)?;
        Ok(self.cost(n, dim, of_record)?.1.share)
    }

    /// Returns the method that `auto` chooses for this budget of a record, and its expected cost for `n` records.
    fn cost(&self, n: u64, dim: u64, of_record: Budget) -> Result<(Method, ExpectedCost), TrainError> {
        let auto = Auto::new(self.loss);
        let planned = auto.choose(self.planned(n), dim, of_record, self.relation)?;
        let of_records = auto.forecasts(n, dim, of_record, self.relation)?;
        let of_method = of_records.iter().find(|forecast| forecast.method == planned.method);
        Ok((planned.method, of_method.map_or(planned.expected_cost, |forecast| forecast.expected_cost)))
    }

    /// Returns the number of records that a training of `n` is planned for: the units fill up to their largest number.
    fn planned(&self, n: u64) -> u64 {
        if self.records_of_unit == 1 { n } else { self.units(n).saturating_mul(self.records_of_unit) }
    }

    fn units(&self, n: u64) -> u64 {
        self.units.unwrap_or(n.div_ceil(self.records_of_unit.max(1)))
    }

    /// Returns the budget, that of one record, and the number of features.
    fn budgets(&self, n: u64, epsilon: f64) -> Result<(Budget, Budget, u64), TrainError> {
        let delta = match self.delta {
            Some(delta) => delta,
            None => suggested_delta(self.units(n))?,
        };
        let budget = Budget { epsilon: Epsilon::new(epsilon)?, delta };
        let (with_delta, pure) = budgets_of_a_record(budget, self.records_of_unit)?;
        let dim = self.dim(n, with_delta)?;
        let n = self.planned(n);
        let of_record = match pure {
            Some(pure) if self.cost(n, dim, pure)?.1.share < self.cost(n, dim, with_delta)?.1.share => pure,
            _ => with_delta,
        };
        Ok((budget, of_record, dim))
    }

    /// Returns the number of features, with the functions of numeric columns that `auto` chooses.
    fn dim(&self, n: u64, budget: Budget) -> Result<u64, TrainError> {
        let encoder = match &self.columns {
            Columns::Features(dim) => return Ok(*dim),
            Columns::Encoded(encoder) => encoder,
        };
        let settings = Settings::default();
        let request = Request {
            intercept: encoder.encoding().intercept > 0.0,
            sparse: encoder.prefers_sparse(),
            ..Request::new(&settings, self.loss, budget, self.relation, self.planned(n), encoder.dim() as u64)
        };
        Ok(with_chosen_map(catalogue::AUTO, &request, encoder)?.dim() as u64)
    }
}

fn released<A: RecordAdjacency>(
    recipe: &AnyRecipe,
    n: u64,
    dim: u64,
    budget: Budget,
) -> Result<(DpEvent, EpsilonDelta), TrainError> {
    let plan = recipe.plan::<A>(n, dim, budget)?;
    Ok((plan.event(), plan.reached()))
}

/// Returns the smallest sufficient number of two significant digits that is at least `from`, or `most` if that is smaller; `None`
/// if `most` is not sufficient. Every number above a sufficient one is taken for sufficient.
pub fn smallest(from: f64, most: f64, mut is_enough: impl FnMut(f64) -> bool) -> Option<f64> {
    let number = |place: i64| of_two_digits(place).min(most);
    let first = place_of(from);
    let (mut low, mut high) = (first - 1, first);
    while !is_enough(number(high)) {
        if number(high) >= most {
            return None;
        }
        (low, high) = (high, place_of(STEP * number(high)));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_enough(number(middle)) { high = middle } else { low = middle }
    }
    Some(number(high))
}

/// Numbers of two digits from 10 to 99.
const OF_A_DECADE: i64 = 90;

/// Returns a number of two significant digits by its place in their order; 10 has place 0.
fn of_two_digits(place: i64) -> f64 {
    let (decade, digits) = (place.div_euclid(OF_A_DECADE), 10 + place.rem_euclid(OF_A_DECADE));
    format!("{digits}e{decade}").parse().unwrap_or(f64::INFINITY)
}

/// Returns the place of the smallest number of two significant digits that is at least `number`, which is positive.
fn place_of(number: f64) -> i64 {
    let mut place = OF_A_DECADE * (number.log10().floor() as i64 - 1);
    while of_two_digits(place) < number {
        place += 1;
    }
    place
}

#[cfg(test)]
mod tests {
    use dp_data::Encoding;
    use dp_data::schema::Schema;

    use super::*;

    #[test]
    fn the_smallest_number_is_found() {
        for threshold in [1.0, 1.01, 7.0, 99.0, 100.5, 2345.0, 8.7e9] {
            let found = smallest(1.0, 1e12, |number| number >= threshold).unwrap();
            let before = of_two_digits(place_of(found) - 1);
            assert!(found >= threshold && (before < threshold || found == 1.0), "{threshold} {found}");
            assert_eq!(of_two_digits(place_of(found)), found);
        }
        assert_eq!(smallest(1.0, 1000.0, |_| false), None);
        assert_eq!(smallest(0.1, 10.0, |number| number >= 0.48), Some(0.48));
        assert_eq!(smallest(10.0, 1e12, |number| number >= 945.0), Some(950.0));
        assert_eq!(smallest(1.0, 123.0, |number| number >= 121.0), Some(123.0));
        assert_eq!(
            [0.471, 1234.0, 99.5, 20.0].map(|number| of_two_digits(place_of(number))),
            [0.48, 1300.0, 100.0, 20.0]
        );
    }

    #[test]
    fn more_records_or_budget_cost_less_and_a_unit_of_more_records_costs_more() {
        for loss in [LossKind::Logistic, "softmax:4".parse().unwrap(), "log-cosh:0.5".parse().unwrap()] {
            let planning = Planning::new(Columns::Features(20), loss);
            let mut before = 1.0;
            for epsilon in [0.1, 0.3, 1.0, 3.0] {
                let forecast = planning.at(20_000, epsilon).unwrap();
                assert!(forecast.expected_loss <= before);
                assert!(forecast.expected_loss_without_delta >= 0.99 * forecast.expected_loss);
                assert!(
                    forecast.methods.iter().any(
                        |method| method.method == forecast.method && method.expected_loss == forecast.expected_loss
                    )
                );
                assert!(planning.at(40_000, epsilon).unwrap().expected_loss < forecast.expected_loss);
                let units = Planning { records_of_unit: 5, units: Some(20_000), ..planning.clone() };
                let unit = units.at(60_000, epsilon).unwrap();
                // Three records of a person on average, five at most.
                assert!(unit.expected_loss >= 1.5 * forecast.expected_loss, "{unit:?} {forecast:?}");
                before = forecast.expected_loss;
            }
            let needed = planning.records_needed(0.5, 0.05).unwrap().unwrap();
            assert!(planning.at(needed, 0.5).unwrap().expected_loss <= 0.05);
            assert!(planning.at(needed * 9 / 10, 0.5).unwrap().expected_loss > 0.05);
            // The number of units is scaled too; with a fixed one, delta would differ.
            let of_many = Planning { units: Some(1 << 50), ..planning.clone() };
            assert_eq!(of_many.records_needed(0.5, 0.05).unwrap(), Some(needed));
        }
    }

    /// A delta costs nothing, for units of several records neither.
    #[test]
    fn no_delta_is_better_than_one() {
        for records_of_unit in [1, 2, 5, 20] {
            for features in [2, 10, 40] {
                let planning = Planning::new(Columns::Features(features), LossKind::Logistic);
                let planning = Planning { records_of_unit, ..planning };
                for epsilon in [0.3, 1.0, 4.0] {
                    let forecast = planning.at(20_000, epsilon).unwrap();
                    let pure = forecast.expected_loss_without_delta;
                    assert!(
                        forecast.expected_loss <= pure * (1.0 + 1e-9),
                        "{records_of_unit} {features}: {forecast:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn two_releases_cost_more_than_one_and_at_most_twice_as_much() {
        for (relation, records_of_unit, delta) in [
            (AdjacencyKind::ZeroOut, 1, None),
            (AdjacencyKind::ReplaceOne, 1, None),
            (AdjacencyKind::ZeroOut, 3, None),
            (AdjacencyKind::ZeroOut, 1, Some(Delta::ZERO)),
        ] {
            let planning = Planning {
                relation,
                records_of_unit,
                delta,
                ..Planning::new(Columns::Features(60), LossKind::Logistic)
            };
            for epsilon in [0.2, 2.0] {
                let both = planning.of_two(5000, epsilon).unwrap();
                assert!(both.epsilon > 1.1 * epsilon && both.epsilon <= 2.0 * epsilon * (1.0 + 1e-12), "{both:?}");
                let delta = delta.map_or(1e-6, Delta::get);
                assert!(both.delta <= 2.0 * delta * (1.0 + 1e-12));
            }
        }
    }

    #[test]
    fn numeric_columns_become_curves_where_records_allow_it() {
        let schema = Schema::parse(
            "schema.toml",
            "label = { column = 'y', positive = '1', negative = '0' }\n\
             columns.age = { type = 'numeric', min = 0, max = 90 }\n\
             columns.ward = { type = 'categorical', categories = ['a', 'b', 'c'] }",
        );
        let encoder = Encoder::new(&schema.unwrap(), Encoding::UNIT_ROWS).unwrap();
        let lines = encoder.dim() as u64;
        let planning = Planning::new(Columns::Encoded(Box::new(encoder)), LossKind::Logistic);
        assert_eq!(planning.at(100, 0.1).unwrap().dim, lines);
        assert!(planning.at(100_000, 1.0).unwrap().dim > lines);
    }

    #[test]
    fn nonsense_is_refused() {
        let planning = Planning::new(Columns::Features(3), LossKind::Logistic);
        assert!(planning.at(100, 0.0).is_err() && planning.at(100, f64::NAN).is_err() && planning.at(0, 1.0).is_err());
        assert!(Planning { records_of_unit: 0, ..planning.clone() }.at(100, 1.0).is_err());
        assert!(Planning { relation: AdjacencyKind::AddRemoveOne, ..planning.clone() }.at(100, 1.0).is_err());
        assert!(Planning::new(Columns::Features(0), LossKind::Logistic).records_needed(1.0, 0.1).is_err());
        assert_eq!(planning.records_needed(1e-9, 1e-9).unwrap(), None);
    }
}
