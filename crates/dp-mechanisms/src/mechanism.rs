//! The one public shape of a mechanism.

use dp_accountant::{Adjacency, DpEvent, EventLog};

use crate::bounded::Bounded;
use crate::error::Error;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::Norm;

/// What one release costs, as a function of public parameters only.
pub trait PrivacyEvent {
    /// The event of one release.
    fn event(&self) -> DpEvent;
}

/// A differentially private mechanism for values of type `V` under the relation `A`.
pub trait Mechanism<V, A: Adjacency>: PrivacyEvent {
    /// The norm in which the value's sensitivity is measured.
    type Norm: Norm;
    /// What is released.
    type Output;

    /// Releases the value: takes it by value (no second release) and appends the event to `log` in the same call.
    /// A generator that is not secret marks the log as not private.
    ///
    /// # Errors
    /// [`Error::SensitivityExceeded`] if the value's sensitivity is larger than the mechanism's, and
    /// [`Error::NonFiniteInput`] for a NaN or infinity in an aggregated value. Nothing is logged then.
    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<V, A, Self::Norm>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Self::Output>, Error>;
}
