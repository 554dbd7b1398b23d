//! The run of descent with a private line search, with all numbers that do not need data.

use dp_accountant::{AdjacencyKind, Delta, DpEvent, EventLog};
use dp_data::RowSource;
use dp_losses::{Real, ScalarLoss};
use dp_mechanisms::{Gaussian, L2Sensitivity, LentRng, Released};

use super::budget::FilterBudget;
use super::training::{Observation, Training};
use super::{RECIPE, SearchedDescent};
use crate::engine::Control;
use crate::engine::grid_sum::GridSum;
use crate::error::Error;
use crate::line_search::Search;
use crate::recipes::algorithm::Run;
use crate::recipes::problem::{Admitted, Problem};
use crate::recipes::recipe::{RecordAdjacency, Summary};

/// A run of descent with a private line search: its budget and its initial costs.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRun {
    pub(super) recipe: SearchedDescent,
    pub(super) problem: Problem,
    pub(super) loss: ScalarLoss,
    pub(super) budget: FilterBudget,
    start: Option<Start>,
}

/// The initial costs of a run. A certificate states the budget only, from which no training can start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Start {
    /// Initial cost of one gradient and of one search, in zCDP before amplification.
    pub(super) share: f64,
    /// The delta of the filter's guarantee; the filter admits the same releases at any other.
    pub(super) delta: Delta,
}

impl SearchRun {
    pub(super) fn new(
        recipe: &SearchedDescent,
        problem: &Problem,
        budget: FilterBudget,
        start: Option<Start>,
    ) -> Result<Self, Error> {
        let loss = recipe.check(problem)?;
        // The divergence of a sampled release is known at one order only; that of other releases at all orders.
        if matches!(budget, FilterBudget::Renyi { .. }) != recipe.batch_size.is_some() {
            return Err(Error::NotProved { recipe: RECIPE, why: "its filter is of another kind" });
        }
        Ok(Self { recipe: recipe.clone(), problem: *problem, loss, budget, start })
    }

    /// Returns the budget, which no run exceeds.
    pub fn budget(&self) -> FilterBudget {
        self.budget
    }

    /// Returns the standard deviation of the noise on the first sum of gradients under the relation `A`.
    ///
    /// # Errors
    /// A run read from a certificate instead of planned.
    pub fn first_std_dev<A: RecordAdjacency>(&self) -> Result<f64, Error> {
        Ok(self.noise::<A>(self.start()?.share, self.recipe.clipping)?.std_dev())
    }

    pub(super) fn start(&self) -> Result<Start, Error> {
        let why = "a certificate states the budget of a run, not how it starts: plan it";
        self.start.ok_or(Error::NotProved { recipe: RECIPE, why })
    }

    /// Returns the number of records in a sum; its mean if the number is secret.
    pub(super) fn divisor(&self) -> Result<f64, Error> {
        let n = self.problem.n;
        self.recipe.law(n).map_or(Ok(n as f64), |law| law.mean_size(n))
    }

    /// Returns the mechanism of a gradient that costs `rho`.
    pub(crate) fn noise<A: RecordAdjacency>(&self, rho: f64, clipping: f64) -> Result<Gaussian<A>, Error> {
        let sensitivity = L2Sensitivity::<A>::new(sensitivity(A::KIND, clipping))?;
        let std_dev = sensitivity.get() / (2.0 * rho).sqrt() * (1.0 + 4.0 * f64::EPSILON);
        Ok(Gaussian::from_std_dev(sensitivity, std_dev)?.with_noise_mode(self.recipe.noise_mode)?)
    }

    /// Returns, for each candidate, the public number with which the private sums are compared: on the grid, in units of the
    /// largest loss.
    pub(crate) fn required(
        &self,
        weights: &[f64],
        direction: &[f64],
        steps: &[f64],
        most_loss: f64,
    ) -> Result<Vec<f64>, Error> {
        let recipe = &self.recipe;
        let grid = GridSum::new(self.problem.n)?;
        let records = self.divisor()?;
        let squared = |vector: &mut dyn Iterator<Item = f64>| vector.map(|x| x * x).sum::<f64>();
        let here = squared(&mut weights.iter().copied());
        let slope = if recipe.search == Search::NoisyMin {
            0.0
        } else {
            recipe.armijo * squared(&mut direction.iter().copied())
        };
        let required = steps.iter().map(|step| {
            let there = squared(&mut weights.iter().zip(direction).map(|(w, d)| w - step * d));
            let of_regulariser = 0.5 * recipe.lambda * (there - here);
            grid.public(records * (of_regulariser + step * slope) / most_loss)
        });
        Ok(required.collect())
    }

    /// As [`Run::train`], passing each release to `observe`.
    pub(crate) fn train_observing<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        observe: impl FnMut(Observation<'_>),
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        Training::<F, A, _>::new(self, source, rng, control, observe)?.descend()
    }
}

fn sensitivity(relation: AdjacencyKind, clipping: f64) -> f64 {
    let records = if relation == AdjacencyKind::ReplaceOne { 2.0 } else { 1.0 };
    records * clipping
}

impl Run for SearchRun {
    fn event(&self) -> Result<DpEvent, Error> {
        self.budget.event()
    }

    fn summary(&self) -> Summary {
        let Self { recipe, problem: Problem { n, relation, .. }, .. } = self;
        let batch = recipe.batch_size.map_or(*n, |batch_size| batch_size.min(*n));
        let budget = match self.budget {
            FilterBudget::Zcdp { rho } => format!("{rho:.4e} zCDP"),
            FilterBudget::Renyi { order, divergence } => format!("{divergence:.4e} at order {order:.2}"),
        };
        Summary {
            sensitivity: Some(sensitivity(*relation, recipe.clipping)),
            rows: batch.saturating_mul(recipe.steps).saturating_mul(2),
            text: format!(
                "budget of {budget}, noise on gradients and choices for {} steps of {} candidates, fewer where some fail",
                recipe.steps, recipe.candidates
            ),
        }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        self.train_observing(source, rng, control, |_| {})
    }
}
