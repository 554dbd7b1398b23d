//! What the release of every additive mechanism has in common: the checks before it, the log entry with it.

use dp_accountant::{Adjacency, DpEvent, EventLog};
use nalgebra::RealField;

use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::float_range::holds;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::L2Sensitivity;

/// Opens a bounded vector, adds noise and logs the event.
///
/// `spread` is a typical size of one coordinate's noise: the float type must be able to hold it.
///
/// # Errors
/// Those of [`Mechanism::release`](crate::Mechanism::release); nothing is drawn or logged then.
pub(crate) fn release<F: RealField + Copy, A: Adjacency, R: ReleaseRng + ?Sized>(
    input: Bounded<Vec<F>, A>,
    built_for: L2Sensitivity<A>,
    spread: f64,
    event: DpEvent,
    log: &mut EventLog<A>,
    rng: &mut R,
    add_noise: impl FnOnce(Vec<F>, &mut R) -> Result<Vec<F>, Error>,
) -> Result<Released<Vec<F>>, Error> {
    let found = input.sensitivity().get();
    if !(found <= built_for.get()) {
        return Err(Error::SensitivityExceeded { found, built_for: built_for.get() });
    }
    if !holds::<F>(spread) {
        return Err(Error::ScaleOverflow { scale: spread });
    }
    let value = input.into_inner();
    dimension(value.len() as u64)?;
    if !value.iter().all(|coordinate| coordinate.is_finite()) {
        return Err(Error::NonFiniteInput);
    }
    let noisy = add_noise(value, rng)?;
    log.record(event, 1);
    if !R::SECRET {
        log.mark_not_private();
    }
    Ok(Released::new(noisy))
}
