//! The only module in which a private value is opened, its cost logged, and the result marked as released.
//!
//! Every mechanism ends here. [`bounded`] refuses a value whose sensitivity exceeds the mechanism's, passes the value to the
//! mechanism's own draw, and then, in the same call, appends to the log the event, the noise mode and the assumptions of the
//! value's sensitivity. Nothing is logged for a refused value.
//!
//! Before a value is read, two words of the generator are compared, because a stuck generator would release the value without
//! noise. Neither this check nor its result depends on the value.

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{Adjacency, DpEvent, EventLog, LogId};

use crate::bounded::{Bounded, Secret};
use crate::error::Error;
use crate::released::Released;
use crate::rng::{ReleaseRng, refuse_stuck};
use crate::sensitivity::{Norm, Sensitivity};

/// The log entry of a release, all of it public and known before the draw.
pub(crate) struct Cost {
    /// The event of one release.
    pub(crate) event: DpEvent,
    pub(crate) noise: NoiseMode,
    /// Assumptions of the mechanism itself, such as declared monotonic scores.
    pub(crate) assumptions: Vec<Assumption>,
}

/// Releases a value with a sensitivity.
///
/// # Errors
/// [`Error::SensitivityExceeded`], [`Error::StuckGenerator`], and those of `draw`; in these cases nothing is logged.
pub(crate) fn bounded<V, O, N: Norm, A: Adjacency, R: ReleaseRng + ?Sized>(
    input: Bounded<V, A, N>,
    built_for: Sensitivity<N, A>,
    mut cost: Cost,
    log: &mut EventLog<A>,
    rng: &mut R,
    draw: impl FnOnce(V, &mut R) -> Result<O, Error>,
) -> Result<Released<O>, Error> {
    check_sensitivity(&input, built_for)?;
    let (value, assumptions) = input.open();
    cost.assumptions.extend(assumptions);
    drawn(value, cost, log, rng, draw)
}

/// Releases a value of a finite set, any two members of which may be neighbours: it needs no sensitivity.
///
/// # Errors
/// [`Error::StuckGenerator`], and those of `draw`; in these cases nothing is logged.
pub(crate) fn secret<V, O, A: Adjacency, R: ReleaseRng + ?Sized>(
    input: Secret<V>,
    cost: Cost,
    log: &mut EventLog<A>,
    rng: &mut R,
    draw: impl FnOnce(V, &mut R) -> Result<O, Error>,
) -> Result<Released<O>, Error> {
    drawn(input.into_inner(), cost, log, rng, draw)
}

/// Releases several values, each with a sensitivity that the caller has [checked](check_sensitivity), at one cost.
///
/// # Errors
/// Those of `draw`; in these cases nothing is logged.
pub(crate) fn together<V, O, N: Norm, A: Adjacency, R: ReleaseRng + ?Sized>(
    inputs: Vec<Bounded<V, A, N>>,
    mut cost: Cost,
    log: &mut EventLog<A>,
    rng: &mut R,
    draw: impl FnOnce(Vec<V>, &mut R) -> Result<O, Error>,
) -> Result<Released<O>, Error> {
    let mut values = Vec::with_capacity(inputs.len());
    for input in inputs {
        let (value, assumptions) = input.open();
        values.push(value);
        cost.assumptions.extend(assumptions);
    }
    drawn(values, cost, log, rng, draw)
}

/// Refuses a sensitivity above that of the mechanism.
pub(crate) fn check_sensitivity<V, N: Norm, A: Adjacency>(
    input: &Bounded<V, A, N>,
    built_for: Sensitivity<N, A>,
) -> Result<(), Error> {
    let found = input.sensitivity().get();
    if found <= built_for.get() {
        Ok(())
    } else {
        Err(Error::SensitivityExceeded { found, built_for: built_for.get() })
    }
}

fn drawn<V, O, A: Adjacency, R: ReleaseRng + ?Sized>(
    value: V,
    cost: Cost,
    log: &mut EventLog<A>,
    rng: &mut R,
    draw: impl FnOnce(V, &mut R) -> Result<O, Error>,
) -> Result<Released<O>, Error> {
    refuse_stuck(rng)?;
    let output = draw(value, rng)?;
    record(cost, log, rng);
    Ok(Released::new(output))
}

/// Releases an answer that was paid for in the log `paid_in` when its mechanism started. No event is logged, but the
/// assumptions of the value's sensitivity and whether the generator is secret are; so it must be the same log.
///
/// # Errors
/// [`Error::OtherLog`], [`Error::SensitivityExceeded`], [`Error::StuckGenerator`], and those of `draw`; in these cases nothing is
/// logged.
pub(crate) fn prepaid<V, O, N: Norm, A: Adjacency, R: ReleaseRng + ?Sized>(
    input: Bounded<V, A, N>,
    built_for: Sensitivity<N, A>,
    paid_in: LogId,
    log: &mut EventLog<A>,
    rng: &mut R,
    draw: impl FnOnce(V, &mut R) -> Result<O, Error>,
) -> Result<Released<O>, Error> {
    if log.id() != paid_in {
        return Err(Error::OtherLog);
    }
    check_sensitivity(&input, built_for)?;
    refuse_stuck(rng)?;
    let (value, assumptions) = input.open();
    let output = draw(value, rng)?;
    for assumption in assumptions {
        log.assume(assumption);
    }
    if !rng.is_secret() {
        log.mark_not_private();
    }
    Ok(Released::new(output))
}

/// Writes a cost to the log. A mechanism that answers several times at one cost calls it when it starts.
pub(crate) fn record<A: Adjacency, R: ReleaseRng + ?Sized>(cost: Cost, log: &mut EventLog<A>, rng: &R) {
    log.record(cost.event, 1);
    if cost.noise == NoiseMode::Rounded {
        log.assume(Assumption::IdealisedFloat);
    }
    for assumption in cost.assumptions {
        log.assume(assumption);
    }
    if !rng.is_secret() {
        log.mark_not_private();
    }
}
