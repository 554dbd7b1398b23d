//! The plan of a model that protects all rows of a unit.

use dp_accountant::{DpEvent, EventLog, bound};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::PerUnitDerivation;
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::any::AnyPlan;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary, repeated};
use crate::trained::Trained;

/// The plan of a model that protects all rows of a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct PerUnitPlan<A: RecordAdjacency> {
    of_record: Box<AnyPlan<A>>,
    derivation: PerUnitDerivation,
    promise: Promise,
    record_epsilon: f64,
}

impl<A: RecordAdjacency> PerUnitPlan<A> {
    pub(super) fn new(
        of_record: AnyPlan<A>,
        derivation: PerUnitDerivation,
        event: DpEvent,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        let promise = Promise::new(event, budget, copies)?;
        let record_epsilon = bound::epsilon(&repeated(of_record.event(), copies), budget.delta)?.value;
        Ok(Self { of_record: Box::new(of_record), derivation, promise, record_epsilon })
    }

    /// Returns the plan for single records.
    pub fn of_record(&self) -> &AnyPlan<A> {
        &self.of_record
    }

    /// Returns the epsilon of one record, at the delta of the budget.
    pub fn record_epsilon(&self) -> f64 {
        self.record_epsilon
    }
}

impl<A: RecordAdjacency> Planned<A> for PerUnitPlan<A> {
    type Derivation = PerUnitDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> PerUnitDerivation {
        self.derivation.clone()
    }

    fn memory(&self) -> u64 {
        self.of_record.memory()
    }

    fn summary(&self) -> Summary {
        let summary = self.of_record.summary();
        let text = format!("{}; for {} rows of a unit at once", summary.text, self.derivation.rows);
        Summary { text, ..summary }
    }

    /// The source has the plan's number of rows for each unit, some of them null records.
    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, PerUnitDerivation>, Error> {
        let Trained { weights, log, derivation, noise, .. } = self.of_record.train::<F>(source, rng, control)?;
        let log = EventLog::accounting_for(super::of_unit(log.to_event(), self.derivation.rows), &log, &[]);
        // For a choice among candidates, the derivation states which one was chosen.
        let derivation = PerUnitDerivation { of_record: Box::new(derivation), ..self.derivation.clone() };
        self.promise.kept(weights, log, derivation, noise)
    }
}
