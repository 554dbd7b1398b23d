//! The promise of a planned release.

use dp_accountant::certificate::{EpsilonDelta, NoiseMode};
use dp_accountant::{Delta, DpEvent, EventLog, bound, work};
use dp_mechanisms::Released;

use super::recipe::{Budget, RecordAdjacency, repeated};
use crate::error::Error;
use crate::trained::Trained;

/// The event of a planned release, the requested guarantee, and the reached one.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    event: DpEvent,
    requested: EpsilonDelta,
    reached: EpsilonDelta,
}

impl Promise {
    /// Creates the promise of a release of which `copies` share the budget.
    ///
    /// A release that stays within epsilon at delta = 0 promises delta = 0. A [limit](work) on the search for the noise does
    /// not apply here: verification recomputes the guarantee without one.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the guarantee exceeds the budget.
    pub fn new(event: DpEvent, budget: Budget, copies: u64) -> Result<Self, Error> {
        let all = repeated(event.clone(), copies);
        let most = budget.epsilon.get();
        for delta in [Delta::ZERO, budget.delta] {
            let epsilon = work::unlimited(|| bound::epsilon(&all, delta))?.value;
            if epsilon <= most {
                let requested = EpsilonDelta { epsilon: most, delta: budget.delta.get() };
                return Ok(Self { event, requested, reached: EpsilonDelta { epsilon, delta: delta.get() } });
            }
        }
        Err(Error::OutOfRange { name: "epsilon", value: most, range: "the range that this noise can reach" })
    }

    /// Returns the event of one release, as the accountant sees it.
    pub fn event(&self) -> &DpEvent {
        &self.event
    }

    /// Returns the requested guarantee, for all copies.
    pub fn requested(&self) -> EpsilonDelta {
        self.requested
    }

    /// Returns the reached guarantee of all copies together, at most the requested one.
    pub fn reached(&self) -> EpsilonDelta {
        self.reached
    }

    /// Returns the result of a training that has kept the promise.
    ///
    /// # Errors
    /// [`Error::NotAsPlanned`] if `log` holds an event other than promised.
    pub fn kept<F, A: RecordAdjacency, D>(
        &self,
        weights: Released<Vec<F>>,
        log: EventLog<A>,
        derivation: D,
        noise: NoiseMode,
    ) -> Result<Trained<F, A, D>, Error> {
        if log.to_event() != self.event {
            return Err(Error::NotAsPlanned);
        }
        Ok(Trained { weights, log, derivation, noise, requested: self.requested, reached: self.reached })
    }
}
