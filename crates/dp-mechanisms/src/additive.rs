//! The common part of the release of additive mechanisms: the checks of a vector before noise is added.

use dp_accountant::{Adjacency, EventLog};
use nalgebra::RealField;

use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::float_range::holds;
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::{Norm, Sensitivity};

/// Opens a bounded vector, adds noise and logs the cost.
///
/// `spread` is a typical size of one coordinate's noise; the float type must be able to represent it.
///
/// # Errors
/// Those of [`Mechanism::release`](crate::Mechanism::release); in this case nothing is drawn or logged.
pub(crate) fn release<F: RealField + Copy, N: Norm, A: Adjacency, R: ReleaseRng + ?Sized>(
    input: Bounded<Vec<F>, A, N>,
    built_for: Sensitivity<N, A>,
    spread: f64,
    cost: Cost,
    log: &mut EventLog<A>,
    rng: &mut R,
    add_noise: impl FnOnce(&mut [F], &mut R) -> Result<(), Error>,
) -> Result<Released<Vec<F>>, Error> {
    release::check_sensitivity(&input, built_for)?;
    check_range::<F>(spread)?;
    release::bounded(input, built_for, cost, log, rng, |mut value, rng| {
        check_vector(&value)?;
        add_noise(&mut value, rng)?;
        Ok(value)
    })
}

/// Refuses noise of a size that the float type cannot represent.
pub(crate) fn check_range<F: RealField + Copy>(spread: f64) -> Result<(), Error> {
    if holds::<F>(spread) { Ok(()) } else { Err(Error::ScaleOverflow { scale: spread }) }
}

/// Refuses an empty or non-finite vector: the caller broke the contract.
pub(crate) fn check_vector<F: RealField + Copy>(value: &[F]) -> Result<(), Error> {
    dimension(value.len() as u64)?;
    // A fold to the end without a branch, so that the time does not depend on the value.
    let finite = value.iter().fold(true, |finite, coordinate| finite & coordinate.is_finite());
    if finite { Ok(()) } else { Err(Error::NonFiniteInput) }
}
