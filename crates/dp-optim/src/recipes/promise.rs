//! What a planned release promises.

use dp_accountant::certificate::{EpsilonDelta, NoiseMode};
use dp_accountant::{Delta, DpEvent, EventLog, bound, work};
use dp_mechanisms::Released;

use super::recipe::{Budget, RecordAdjacency, repeated};
use crate::error::Error;
use crate::trained::Trained;

/// The event of a planned release, and what it reaches of what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    event: DpEvent,
    requested: EpsilonDelta,
    reached: EpsilonDelta,
}

impl Promise {
    /// The promise of a release of which `copies` share the budget.
    ///
    /// What needs no delta to stay within epsilon promises none. A [limit](work) on the search for the noise does not hold here:
    /// verification recomputes the figure without one.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more than was asked for.
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
        Err(Error::OutOfRange { name: "epsilon", value: most, range: "what this noise can reach" })
    }

    /// The event of one release, as the accountant sees it.
    pub fn event(&self) -> &DpEvent {
        &self.event
    }

    /// What was asked for, for all copies.
    pub fn requested(&self) -> EpsilonDelta {
        self.requested
    }

    /// What all copies reach together: at most what was asked for.
    pub fn reached(&self) -> EpsilonDelta {
        self.reached
    }

    /// What a training that has kept the promise returns.
    ///
    /// # Errors
    /// [`Error::NotAsPlanned`] if `log` holds another event than was promised.
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
