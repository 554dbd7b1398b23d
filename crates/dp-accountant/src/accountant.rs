//! The interface common to all accountants.

use crate::adjacency::Adjacency;
use crate::error::Error;
use crate::event::DpEvent;
use crate::event_log::EventLog;
use crate::guarantee::Guarantee;
use crate::params::{Delta, Epsilon};

/// Converts events into privacy loss under the relation `A`, one release after another.
///
/// The relation is part of the accountant's type, so that adding a log kept under another relation does not compile:
///
/// ```compile_fail,E0308
/// use dp_accountant::{Accountant, AddRemoveOne, EventLog, ReplaceOne, rdp::RdpAccountant};
/// let log = EventLog::<AddRemoveOne>::new();
/// RdpAccountant::<ReplaceOne>::new().compose_log(&log)?;
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// Later releases may depend on the outcomes of earlier ones; their privacy parameters may not.
///
/// # Examples
/// ```
/// use dp_accountant::{Accountant, Delta, DpEvent, EventLog, ReplaceOne, rdp::RdpAccountant};
///
/// let mut log = EventLog::<ReplaceOne>::new();
/// log.record(DpEvent::PureDp { epsilon: 0.5 }, 2);
/// let mut accountant = RdpAccountant::<ReplaceOne>::new();
/// accountant.compose_log(&log)?;
/// let guarantee = accountant.guarantee(Delta::new(1e-9)?)?;
/// assert!(guarantee.epsilon().get() < 1.0001);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub trait Accountant<A: Adjacency> {
    /// Adds `count` occurrences of `event`. On an error nothing is added.
    ///
    /// # Errors
    /// A number out of range, or an event that this accountant has no theorem for, at any depth.
    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), Error>;

    /// Returns an upper bound on epsilon at `delta`: 0 if nothing was released, infinite if there is no guarantee.
    fn epsilon(&self, delta: Delta) -> f64;

    /// Returns an upper bound on delta at `epsilon`: 0 if nothing was released, 1 if there is no guarantee.
    ///
    /// # Errors
    /// `epsilon` negative, NaN or infinite.
    fn delta(&self, epsilon: f64) -> Result<f64, Error>;

    /// Adds everything in `log`. A log that is not private counts as a release without any guarantee.
    ///
    /// # Errors
    /// Those of [`compose`](Self::compose); in this case nothing is added.
    fn compose_log(&mut self, log: &EventLog<A>) -> Result<(), Error> {
        if log.is_private() { self.compose(&log.to_event(), 1) } else { self.compose(&DpEvent::NonPrivate, 1) }
    }

    /// Returns the guarantee for one record at `delta`.
    ///
    /// # Errors
    /// [`Error::NotFinite`] where there is no guarantee.
    fn guarantee(&self, delta: Delta) -> Result<Guarantee<A>, Error> {
        let epsilon = self.epsilon(delta).max(Epsilon::MIN.get());
        Ok(Guarantee::new(Epsilon::new(epsilon)?, delta))
    }
}

#[cfg(test)]
mod tests;
