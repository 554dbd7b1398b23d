//! The one public shape of a mechanism.

use dp_accountant::{Adjacency, DpEvent, EventLog};

use crate::bounded::Bounded;
use crate::error::Error;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::Norm;

/// What one release costs, as a function of public parameters only.
///
/// Not generic, so that `mechanism.event()` needs no type arguments.
pub trait PrivacyEvent {
    /// The event of one release.
    fn event(&self) -> DpEvent;
}

/// A differentially private mechanism for values of type `V` under the relation `A`.
///
/// A mechanism is a small immutable value made by a checked constructor from public parameters, which may be printed.
/// What is private and what is random are arguments of [`release`](Self::release).
///
/// # Examples
/// Code that does not care which mechanism it is given:
/// ```
/// use dp_accountant::{Adjacency, EventLog};
/// use dp_mechanisms::{Bounded, Error, L2, Mechanism, OsSeeded, Released};
///
/// fn release_with<A: Adjacency, M: Mechanism<Vec<f64>, A, Norm = L2, Output = Vec<f64>>>(
///     mechanism: &M,
///     value: Bounded<Vec<f64>, A>,
///     log: &mut EventLog<A>,
/// ) -> Result<Released<Vec<f64>>, Error> {
///     mechanism.release(value, log, &mut OsSeeded::new()?)
/// }
/// # use dp_accountant::ReplaceOne; use dp_mechanisms::{Gaussian, L2Sensitivity};
/// # let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0)?;
/// # let gaussian = Gaussian::from_std_dev(sensitivity, 1.0)?;
/// # let value = Bounded::with_proven_sensitivity(vec![1.0, 2.0], sensitivity);
/// # assert_eq!(release_with(&gaussian, value, &mut EventLog::new())?.get().len(), 2);
/// # Ok::<(), Error>(())
/// ```
pub trait Mechanism<V, A: Adjacency>: PrivacyEvent {
    /// The norm in which the value's sensitivity is measured.
    type Norm: Norm;
    /// What is released.
    type Output;

    /// Releases the value.
    ///
    /// # Privacy
    /// It takes the value by value (no second release) and appends the event to `log` in the same call.
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
