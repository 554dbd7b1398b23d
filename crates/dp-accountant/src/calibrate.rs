//! Calibration: the noise, sampling rate, number of steps or number of remaining releases that meets a privacy target.
//!
//! Each search takes a closure that builds, for a trial value, everything that would be released with it, and evaluates its cost
//! with an [`Evaluator`]. The result is always safe: it was itself evaluated, and its *upper* bound meets the target. Real values
//! are within 1e-6, relatively, of the best value that meets the target; counts are exact: `steps` meets the target and `steps +
//! 1` does not.
//!
//! | searched value | function | the cost must |
//! |---|---|---|
//! | noise: a standard deviation, scale or multiplier | [`least_scale`] | not grow with it |
//! | sampling rate | [`largest_rate`] | not fall with it |
//! | number of steps | [`most_steps`] | not fall with it |
//! | further releases after those already made | [`releases_left`] | - |
//! | epsilon, delta | [`Evaluator::epsilon`], [`Evaluator::delta`] | - |
//!
//! Once a [limit](crate::work::limited) on work is reached, evaluations are coarse. The result still meets the target. Coarse
//! evaluations other than closed forms are increased by 0.2%, so that an evaluation without a limit usually meets the target too;
//! check it ([`unlimited`](crate::work::unlimited)) before you rely on it.
//! [`Limited::is_short`](crate::work::Limited::is_short) tells whether the limit made the result less tight.
//!
//! If the cost is not monotone, the result still meets the target, but another value may be better. A target that no value or
//! every value meets gives [`Error::Unreachable`]. [`Calibration`] does the same with an evaluator, a relation and a starting
//! point of the caller's choice; it returns the cost of the result and, on request, a proof that it is tight.
//!
//! ```
//! use dp_accountant::calibrate::{Calibration, Evaluator};
//! use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon};
//!
//! let releases = |std_dev: f64| DpEvent::SelfComposed {
//!     event: Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 }),
//!     count: 10,
//! };
//! let calibration = Calibration::new(Epsilon::new(1.0)?, Delta::new(1e-5)?);
//! let tightest = calibration.least_scale(releases)?;
//! let renyi = calibration.with_evaluator(Evaluator::Renyi).under(AdjacencyKind::ReplaceOne).least_scale(releases)?;
//! assert!(tightest.epsilon <= 1.0 && renyi.epsilon <= 1.0);
//! assert!((tightest.value - 11.797293).abs() < 1e-5 && renyi.value > tightest.value);
//! # Ok::<(), dp_accountant::Error>(())
//! ```

mod dp_sgd;
mod most;
mod search;

pub use crate::evaluator::Evaluator;
pub use dp_sgd::DpSgd;

use core::cell::Cell;

use crate::adjacency::AdjacencyKind;
use crate::bound;
use crate::error::{Error, positive};
use crate::event::DpEvent;
use crate::exact;
use crate::leaves::leaves_under;
use crate::params::{Delta, Epsilon};
use crate::rounding::mul_up;
use crate::work;
use most::Most;
use search::{FROM_A_GUESS, FROM_A_RESULT, Found, Range, Start};

/// Scales are searched between the inverse of this and this.
const FARTHEST_SCALE: f64 = 1e120;

/// Smallest sampling rate of the search.
const LEAST_RATE: f64 = 1e-12;

/// From this rate on, a rate of 1 is tried as well.
const NEAR_ONE: f64 = 0.5;

/// Largest number of steps of the search: all integers below it are exact in floating point.
const MOST_STEPS: u64 = 1 << 53;

/// Relative distance beyond the result at which [`Calibration::certifying`] proves that the target is missed.
const BEYOND: f64 = 1e-4;

/// The result of a calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated<T> {
    /// The calibrated value.
    pub value: T,
    /// The evaluator's epsilon at that value; at most the target.
    pub epsilon: f64,
    /// Number of evaluations.
    pub evaluations: u32,
    /// The proof that the result is tight, if [`Calibration::certifying`] asked for it.
    pub beyond: Option<Beyond<T>>,
}

/// A value just beyond the result, with a lower bound on epsilon there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beyond<T> {
    /// The result made worse by 1e-4, relatively (a count by at least one).
    pub value: T,
    /// A certified lower bound on epsilon there, for the dominating pairs of the events. If it is above the target, no accountant
    /// that knows only the events finds a result beyond this value (if epsilon grows in that direction).
    pub epsilon_lower: f64,
}

/// Relative margin for evaluations that a limit on work changed. Without the limit, either the ends are within [`exact::ends::WIDE`] of
/// each other, so that the upper one is at most this much higher; or they stay apart, and everything that the limit omitted is
/// evaluated in addition. The second case has no proof: a coarse grid can be luckier than a fine one. A caller that relies on
/// the result without a limit must evaluate it once more, as the promises of `dp-optim` do.
const MARGIN: f64 = 2.0 * exact::ends::WIDE;

/// Each evaluation of a search may take the first share of the work that is left. If a limit changed one of them, a second search
/// starts from the result of the first, with the second share.
const SHARES: [f64; 2] = [1.0 / 256.0, 0.25];

/// A privacy target and the method of evaluating it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    target: Epsilon,
    delta: Delta,
    evaluator: Evaluator,
    relation: Option<AdjacencyKind>,
    start: Option<f64>,
    certifying: bool,
}

impl Calibration {
    /// Creates the target epsilon at most `target` at `delta`, with the [tightest](Evaluator::Tightest) bound.
    pub fn new(target: Epsilon, delta: Delta) -> Self {
        Self { target, delta, evaluator: Evaluator::Tightest, relation: None, start: None, certifying: false }
    }

    /// Sets the evaluator.
    pub fn with_evaluator(self, evaluator: Evaluator) -> Self {
        Self { evaluator, ..self }
    }

    /// Refuses events that do not hold under `relation`.
    pub fn under(self, relation: AdjacencyKind) -> Self {
        Self { relation: Some(relation), ..self }
    }

    /// Sets the start of the search. A good guess saves evaluations and changes nothing else.
    pub fn near(self, value: f64) -> Self {
        Self { start: Some(value), ..self }
    }

    /// Requests a [proof](Beyond) that the result is tight, if an exact curve exists: one more evaluation.
    pub fn certifying(self) -> Self {
        Self { certifying: true, ..self }
    }

    /// Returns the evaluator.
    pub fn evaluator(&self) -> Evaluator {
        self.evaluator
    }

    /// As the function [`least_scale`].
    ///
    /// # Errors
    /// Those of [`least_scale`], and [`Error::NotUnderRelation`] after [`under`](Self::under).
    pub fn least_scale(&self, event_at: impl Fn(f64) -> DpEvent) -> Result<Calibrated<f64>, Error> {
        let start = Start { x: self.start_or(1.0)?.ln(), slope: -1.0, reach: FROM_A_GUESS };
        self.scale_from(FARTHEST_SCALE.recip(), start, event_at)
    }

    /// As the function [`largest_rate`].
    ///
    /// # Errors
    /// Those of [`largest_rate`], and [`Error::NotUnderRelation`] after [`under`](Self::under).
    pub fn largest_rate(&self, event_at: impl Fn(f64) -> DpEvent) -> Result<Calibrated<f64>, Error> {
        let range = Range { low: 0.0, high: -LEAST_RATE.ln() };
        let start = Start { x: -self.start_or(0.01)?.ln(), slope: -1.0, reach: FROM_A_GUESS };
        let (found, epsilon, evaluations) = self.search(range, start, |x| event_at((-x).exp()))?;
        let mut found = match found {
            Found::At(x) => Calibrated { value: (-x).exp(), epsilon, evaluations, beyond: None },
            Found::EverywhereSafe => Calibrated { value: 1.0, epsilon, evaluations, beyond: None },
            Found::NowhereSafe => {
                return Err(unreachable(
                    "sampling rate",
                    "it needs a delta above 0, or a part of what is released does not depend on it",
                ));
            }
        };
        if found.value >= NEAR_ONE && found.value < 1.0 {
            // A tighter theorem may hold without sampling than with a rate just below 1.
            let count = Cell::new(found.evaluations);
            let epsilon = self.epsilon(&event_at(1.0), f64::INFINITY, &count)?;
            found.evaluations = count.get();
            if epsilon <= self.target.get() {
                found = Calibrated { value: 1.0, epsilon, ..found };
            }
        }
        let beyond = found.value * (1.0 + BEYOND);
        found.beyond = self.beyond(beyond <= 1.0, beyond, || event_at(beyond))?;
        Ok(found)
    }

    /// As the function [`most_steps`].
    ///
    /// # Errors
    /// Those of [`most_steps`], and [`Error::NotUnderRelation`] after [`under`](Self::under).
    pub fn most_steps(&self, event_at: impl Fn(u64) -> DpEvent) -> Result<Calibrated<u64>, Error> {
        self.count("number of steps", event_at)
    }

    /// As the function [`releases_left`].
    ///
    /// # Errors
    /// Those of [`releases_left`], and [`Error::NotUnderRelation`] after [`under`](Self::under).
    pub fn releases_left(&self, spent: &DpEvent, next: &DpEvent) -> Result<Calibrated<u64>, Error> {
        self.count("number of releases", |count| match count {
            0 => spent.clone(),
            count => DpEvent::Composed {
                events: vec![spent.clone(), DpEvent::SelfComposed { event: Box::new(next.clone()), count }],
            },
        })
    }

    fn scale_from(
        &self,
        least: f64,
        start: Start,
        event_at: impl Fn(f64) -> DpEvent,
    ) -> Result<Calibrated<f64>, Error> {
        let range = Range { low: least.ln(), high: FARTHEST_SCALE.ln() };
        let (found, epsilon, evaluations) = self.search(range, start, |x| event_at(x.exp()))?;
        let scale = match found {
            Found::At(x) => x.exp(),
            Found::EverywhereSafe => {
                return Err(unreachable("noise scale", "what is released costs less than the target without noise"));
            }
            Found::NowhereSafe => {
                return Err(unreachable("noise scale", "a part of what is released does not depend on it"));
            }
        };
        let beyond = scale * (1.0 - BEYOND);
        let beyond = self.beyond(true, beyond, || event_at(beyond))?;
        Ok(Calibrated { value: scale, epsilon, evaluations, beyond })
    }

    fn count(&self, what: &'static str, event_at: impl Fn(u64) -> DpEvent) -> Result<Calibrated<u64>, Error> {
        // The conversion from a float saturates.
        let start = (self.start_or(1000.0)? as u64).clamp(1, MOST_STEPS);
        let evaluations = Cell::new(0);
        let best = Cell::new((0, f64::NAN));
        let search = |start, limit| {
            most::most(MOST_STEPS, start, |count| {
                let epsilon = self.epsilon(&event_at(count), limit, &evaluations)?;
                if epsilon <= self.target.get() && (best.get().1.is_nan() || count >= best.get().0) {
                    best.set((count, epsilon));
                }
                Ok(self.excess(epsilon))
            })
        };
        let found = in_turns(|limit| search(if best.get().0 > 0 { best.get().0 } else { start }, limit))?;
        let (most, epsilon) = best.get();
        let value = match found {
            Most::Unlimited => return Err(unreachable(what, "any number meets it")),
            Most::NotEvenNone if epsilon.is_nan() => {
                return Err(unreachable(what, "what is released besides costs more"));
            }
            Most::At(_) | Most::NotEvenNone => most,
        };
        let beyond = value.saturating_add(((value as f64) * BEYOND).max(1.0) as u64);
        let beyond = self.beyond(true, beyond, || event_at(beyond))?;
        Ok(Calibrated { value, epsilon, evaluations: evaluations.get(), beyond })
    }

    /// Runs the search on a logarithmic scale; returns its result with epsilon there and the number of evaluations.
    fn search(
        &self,
        range: Range,
        start: Start,
        event_at: impl Fn(f64) -> DpEvent,
    ) -> Result<(Found, f64, u32), Error> {
        let evaluations = Cell::new(0);
        let best = Cell::new((f64::INFINITY, f64::NAN));
        let search = |start, limit| {
            search::least_safe(range, start, |x| {
                let epsilon = self.epsilon(&event_at(x), limit, &evaluations)?;
                if epsilon <= self.target.get() && x <= best.get().0 {
                    best.set((x, epsilon));
                }
                Ok(self.excess(epsilon))
            })
        };
        let found = in_turns(|limit| {
            let (x, _) = best.get();
            search(if x.is_finite() { Start { x, reach: FROM_A_RESULT, ..start } } else { start }, limit)
        })?;
        let (least, epsilon) = best.get();
        let found = if found != Found::EverywhereSafe && least.is_finite() { Found::At(least) } else { found };
        Ok((found, epsilon, evaluations.get()))
    }

    fn epsilon(&self, event: &DpEvent, limit: f64, evaluations: &Cell<u32>) -> Result<f64, Error> {
        if let Some(relation) = self.relation {
            leaves_under(event, 1, relation)?;
        }
        evaluations.set(evaluations.get() + 1);
        let before = work::changes();
        let evaluate = || match self.evaluator {
            Evaluator::Tightest => {
                bound::epsilon(event, self.delta).map(|bound| (bound.value, bound.theorem.takes_no_work()))
            }
            evaluator => evaluator.epsilon(event, self.delta).map(|epsilon| (epsilon, false)),
        };
        let (epsilon, is_unlimited) = work::limited(limit, evaluate).value?;
        Ok(if work::changes() == before || is_unlimited { epsilon } else { mul_up(epsilon, 1.0 + MARGIN) })
    }

    /// Returns the logarithm of epsilon over the target: at most 0 exactly if the target is met.
    fn excess(&self, epsilon: f64) -> f64 {
        let ratio = (epsilon / self.target.get()).ln();
        if epsilon <= self.target.get() {
            ratio.min(0.0)
        } else if ratio.is_nan() {
            f64::INFINITY
        } else {
            ratio.max(f64::MIN_POSITIVE)
        }
    }

    /// Returns a value just beyond the result with a lower bound on epsilon there, if it is in range, wanted and known.
    fn beyond<T>(&self, in_range: bool, value: T, event: impl FnOnce() -> DpEvent) -> Result<Option<Beyond<T>>, Error> {
        if !(self.certifying && in_range) {
            return Ok(None);
        }
        match exact::epsilon(&event(), self.delta) {
            Ok(bracket) => Ok(Some(Beyond { value, epsilon_lower: bracket.lower })),
            Err(Error::Unsupported { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn start_or(&self, otherwise: f64) -> Result<f64, Error> {
        self.start.map_or(Ok(otherwise), |start| positive("starting point", start))
    }
}

/// Searches with the work of an evaluation limited by the [`SHARES`] in turn, until no limit changes an evaluation. Returns the last
/// result.
fn in_turns<T>(search: impl Fn(f64) -> Result<T, Error>) -> Result<T, Error> {
    let [first, second] = SHARES.map(|share| move || share * work::allowance());
    let (found, is_changed) = work::tried(|| search(first()));
    if is_changed { found.and_then(|_| search(second())) } else { found }
}

fn unreachable(what: &'static str, why: &'static str) -> Error {
    Error::Unreachable { what, why }
}

/// Returns the least noise scale for which `event_at(scale)` costs at most `target` at `delta`, by
/// [`bound::epsilon`].
///
/// `event_at` builds everything that would be released with a given noise scale (a standard deviation, a Laplace scale or a noise
/// multiplier, in any unit). Epsilon must not grow with the scale. The result always meets the target, and is within 1e-6,
/// relatively, of the least one that does (1e-9 if the cost has a closed form).
///
/// # Errors
/// [`Error::Unreachable`] if no scale up to 1e120 meets the target (a part of the event does not depend on the scale), or if
/// every scale down to 1e-120 (1e-3 for a noise multiplier of DP-SGD) does; and the errors of
/// [`bound::epsilon`].
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, Epsilon, bound, calibrate};
///
/// let ten_releases = |std_dev: f64| DpEvent::SelfComposed {
///     event: Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 }),
///     count: 10,
/// };
/// let (target, delta) = (Epsilon::new(1.0)?, Delta::new(1e-5)?);
/// let std_dev = calibrate::least_scale(target, delta, ten_releases)?;
/// assert!((std_dev - 3.730631634815942 * 10f64.sqrt()).abs() < 1e-8);
/// assert!(bound::epsilon(&ten_releases(std_dev), delta)?.value <= 1.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn least_scale(target: Epsilon, delta: Delta, event_at: impl Fn(f64) -> DpEvent) -> Result<f64, Error> {
    Ok(Calibration::new(target, delta).least_scale(event_at)?.value)
}

/// Returns the largest sampling rate, up to 1, for which `event_at(rate)` costs at most `target` at `delta`, by
/// [`bound::epsilon`].
///
/// Epsilon must not decrease as the rate grows.
///
/// # Errors
/// [`Error::Unreachable`] if a rate of 1e-12 does not meet the target; and the errors of
/// [`bound::epsilon`].
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, Epsilon, calibrate};
///
/// let shuffles = |rate: f64| DpEvent::Gaussian { std_dev: 10.0, sensitivity: rate }; // a mean over 1/rate records
/// let rate = calibrate::largest_rate(Epsilon::new(1.0)?, Delta::new(1e-5)?, shuffles)?;
/// assert_eq!(rate, 1.0); // even then epsilon is 0.31
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn largest_rate(target: Epsilon, delta: Delta, event_at: impl Fn(f64) -> DpEvent) -> Result<f64, Error> {
    Ok(Calibration::new(target, delta).largest_rate(event_at)?.value)
}

/// Returns the largest number of steps for which `event_at(steps)` costs at most `target` at `delta`, by
/// [`bound::epsilon`]: one more step does not meet the target. Returns 0 if one step misses the target and
/// zero steps meet it.
///
/// Epsilon must not decrease as the number grows.
///
/// # Errors
/// [`Error::Unreachable`] if `event_at(0)` already costs more, or 2^53 steps still cost less; and the errors of
/// [`bound::epsilon`].
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, Epsilon, calibrate};
///
/// let steps = |count: u64| DpEvent::SelfComposed {
///     event: Box::new(DpEvent::Gaussian { std_dev: 100.0, sensitivity: 1.0 }),
///     count,
/// };
/// // The least multiplier of one release is 3.7306...: (100 / 3.7306)^2 = 718.5.
/// assert_eq!(calibrate::most_steps(Epsilon::new(1.0)?, Delta::new(1e-5)?, steps)?, 718);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn most_steps(target: Epsilon, delta: Delta, event_at: impl Fn(u64) -> DpEvent) -> Result<u64, Error> {
    Ok(Calibration::new(target, delta).most_steps(event_at)?.value)
}

/// Returns how many times `next` can still be released after `spent` such that everything together costs at most `target` at
/// `delta`, by [`bound::epsilon`].
///
/// # Privacy
/// This is a plan made before anything is released: the composed parameters are fixed in advance. If later parameters depend on
/// earlier outcomes, including this number, use a [filter](crate::filter) instead.
///
/// # Errors
/// [`Error::Unreachable`] if `spent` alone costs more than the target, or `next` costs nothing; and the errors of
/// [`bound::epsilon`].
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, Epsilon, calibrate};
///
/// let (spent, next) = (DpEvent::PureDp { epsilon: 0.75 }, DpEvent::PureDp { epsilon: 0.0625 });
/// assert_eq!(calibrate::releases_left(Epsilon::new(1.0)?, Delta::ZERO, &spent, &next)?, 4);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn releases_left(target: Epsilon, delta: Delta, spent: &DpEvent, next: &DpEvent) -> Result<u64, Error> {
    Ok(Calibration::new(target, delta).releases_left(spent, next)?.value)
}

#[cfg(test)]
mod tests;
