//! Gaussian noise on the sum of each of a run's steps: its cost, and the least noise within a budget.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, DpEvent, ZeroOut};
use dp_mechanisms::steps::StepPlan;
use dp_mechanisms::{Gaussian, L2Sensitivity};

use super::model_sgd::{QuantileClipping, StepSearch};
use super::recipe::{Budget, RecordAdjacency, least_scale};
use crate::engine::StepSum;
use crate::error::{Error, positive};

/// The sums of a run's steps, and the relation under which noise on them protects a record; public.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisySums {
    pub(super) recipe: &'static str,
    pub(super) plan: StepPlan,
    pub(super) sum: StepSum,
    /// The relation of the release.
    pub(super) relation: AdjacencyKind,
    /// The relation of a step's noise: if it is not the release's, a replaced record counts as two.
    pub(super) relation_of_steps: AdjacencyKind,
    /// The release of each step beside its sum.
    pub(super) beside: Option<Beside>,
}

/// The release of a step beside its sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Beside {
    /// The choice of the step's size.
    Search(StepSearch),
    /// The count of gradients below the clipping norm.
    Count(QuantileClipping),
}

impl NoisySums {
    pub(super) fn new(recipe: &'static str, plan: StepPlan, sum: StepSum, relation: AdjacencyKind) -> Self {
        // The theorem on Poisson batches is for a record present or absent; a replacement is a removal and an addition.
        let poisson = matches!(plan, StepPlan::PoissonSampled { .. });
        let relation_of_steps = if poisson { AdjacencyKind::ZeroOut } else { relation };
        Self { recipe, plan, sum, relation, relation_of_steps, beside: None }
    }

    /// Returns the L2 sensitivity of a step's sum, rounding included.
    pub(super) fn sensitivity(&self) -> Result<f64, Error> {
        self.sum.sensitivity(self.relation_of_steps)
    }

    /// Returns the event of all steps, with noise of this standard deviation on each sum.
    pub(super) fn event(&self, std_dev: f64) -> Result<DpEvent, Error> {
        self.event_of(positive("standard deviation", std_dev)?, self.sensitivity()?)
    }

    fn event_of(&self, std_dev: f64, sensitivity: f64) -> Result<DpEvent, Error> {
        let sum = DpEvent::Gaussian { std_dev, sensitivity };
        let beside = match &self.beside {
            None => None,
            // The event is the same under each relation.
            Some(Beside::Search(search)) => Some(search.searcher::<ZeroOut>(std_dev / sensitivity)?.event()),
            Some(Beside::Count(norm)) => Some(norm.event(self.relation_of_steps, std_dev / sensitivity)),
        };
        let step = match beside {
            None => sum,
            Some(beside) => DpEvent::Composed { events: vec![sum, beside] },
        };
        let event = self.plan.event(step);
        let is_own = self.relation == self.relation_of_steps;
        Ok(if is_own { event } else { DpEvent::AddRemoveTwice { event: Box::new(event) } })
    }

    /// Returns the least standard deviation with which all copies together meet the budget.
    pub(super) fn least_std_dev(&self, budget: Budget, copies: u64) -> Result<f64, Error> {
        self.check_delta(budget)?;
        let sensitivity = self.sensitivity()?;
        // A search of an invalid cost counts as non-private.
        let multiplier = least_scale(budget, copies, |multiplier| {
            self.event_of(multiplier * sensitivity, sensitivity).unwrap_or(DpEvent::NonPrivate)
        })?;
        Ok(multiplier * sensitivity)
    }

    /// Rejects a budget that Gaussian noise cannot meet.
    pub(super) fn check_delta(&self, budget: Budget) -> Result<(), Error> {
        if budget.delta.get() > 0.0 {
            Ok(())
        } else {
            Err(Error::NotProved { recipe: self.recipe, why: "Gaussian noise needs delta > 0" })
        }
    }

    pub(super) fn noise<A: RecordAdjacency>(&self, std_dev: f64, mode: NoiseMode) -> Result<Gaussian<A>, Error> {
        let sensitivity = L2Sensitivity::<A>::new(self.sensitivity()?)?;
        Ok(Gaussian::from_std_dev(sensitivity, std_dev)?.with_noise_mode(mode)?)
    }
}
