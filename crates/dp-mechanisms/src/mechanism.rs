//! The interface common to all mechanisms.

use dp_accountant::{Adjacency, DpEvent, EventLog};

use crate::bounded::Bounded;
use crate::error::Error;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::Norm;

/// The cost of one release, as a function of public parameters only.
///
/// Not generic, so that `mechanism.event()` needs no type arguments.
pub trait PrivacyEvent {
    /// Returns the event of one release.
    fn event(&self) -> DpEvent;
}

/// A differentially private mechanism for values of type `V` under the relation `A`.
///
/// A mechanism is a small immutable value created by a checked constructor from public parameters, which may be printed. The
/// private value and the randomness are arguments of [`release`](Self::release).
///
/// # Examples
/// Generic code over mechanisms:
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
    /// The released result.
    type Output;

    /// Releases the value.
    ///
    /// # Privacy
    /// The value is moved (no second release), and the event is appended to `log` in the same call. A generator that is not
    /// secret marks the log as not private.
    ///
    /// # Errors
    /// [`Error::SensitivityExceeded`] if the value's sensitivity is larger than the mechanism's, and [`Error::NonFiniteInput`]
    /// for a NaN or infinity in an aggregated value. In these cases nothing is logged.
    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<V, A, Self::Norm>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Self::Output>, Error>;
}
