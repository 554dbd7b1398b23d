//! The joint plan of a model and its threshold, and their releases one after the other.

use dp_accountant::{DpEvent, EventLog};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::AtBaseRateDerivation;
use crate::derivation::DerivesModel as _;
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::majority::Majority;
use crate::recipes::plan::Plan;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary};
use crate::trained::Trained;

/// The plan of a model that decides at the base rate.
#[derive(Debug, Clone, PartialEq)]
pub struct AtBaseRatePlan<P: Planned<A>, A: RecordAdjacency> {
    model: Box<P>,
    rate: Plan<Majority, A>,
    derivation: AtBaseRateDerivation<P::Derivation>,
    promise: Promise,
}

impl<P: Planned<A>, A: RecordAdjacency> AtBaseRatePlan<P, A> {
    pub(super) fn new(
        model: P,
        rate: Plan<Majority, A>,
        derivation: AtBaseRateDerivation<P::Derivation>,
        event: DpEvent,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        let promise = Promise::new(event, budget, copies)?;
        Ok(Self { model: Box::new(model), rate, derivation, promise })
    }
}

impl<P: Planned<A>, A: RecordAdjacency> Planned<A> for AtBaseRatePlan<P, A> {
    type Derivation = AtBaseRateDerivation<P::Derivation>;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> Self::Derivation {
        self.derivation.clone()
    }

    fn memory(&self) -> u64 {
        self.model.memory()
    }

    fn summary(&self) -> Summary {
        let model = self.model.summary();
        let scale = self.rate.run().scale();
        let text = format!("{}; threshold from two counts with noise of scale {scale:.4e}", model.text);
        Summary { rows: model.rows.saturating_add(self.derivation.records()), text, ..model }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Self::Derivation>, Error> {
        let rng = &mut rng.lend();
        let mut log = EventLog::new();
        let counts = self.rate.run().noisy_counts(&mut *source, &mut log, rng, control)?;
        // Checks the source, and finishes it.
        let Trained { weights, log: of_model, .. } = self.model.train::<F>(source, rng, control)?;
        log.record_all(of_model);
        let threshold = counts.map(|counts| self.rate.run().answer(&counts)).into_inner();
        let released = weights.map(|mut weights| {
            weights.push(threshold);
            weights
        });
        self.promise.kept(released, log, self.derivation.clone(), self.derivation.model_terms().noise_mode)
    }
}
