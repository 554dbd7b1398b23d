//! From a target back to what reaches it: noise, sampling rate, number of steps, number of releases left.
//!
//! Each search takes a closure that builds, for a trial value, everything that would be released with it, and asks an
//! [`Evaluator`] what that costs. The answer is always on the safe side: the evaluator was asked at exactly that value
//! and its *upper* bound met the target. Real values are within 1e-6, relatively, of the best that does; counts are
//! exact: `steps` meets the target and `steps + 1` does not.
//!
//! | looked for | function | cost must |
//! |---|---|---|
//! | noise: a standard deviation, scale or multiplier | [`least_scale`] | not grow with it |
//! | sampling rate | [`largest_rate`] | not fall with it |
//! | number of steps | [`most_steps`] | not fall with it |
//! | further releases after those already made | [`releases_left`] | - |
//! | epsilon, delta | [`Evaluator::epsilon`], [`Evaluator::delta`] | - |
//!
//! Within a [limit](crate::work::limited) evaluations are coarse once it is reached; the answer still meets the target, also
//! when it is evaluated without a limit: coarse evaluations count 0.2% higher. [`Limited::is_short`](crate::work::Limited::is_short)
//! tells whether it is less close for it.
//!
//! Where the cost is not monotone the answer still meets the target, but another may be better. A target that nothing
//! reaches, or everything, is [`Error::Unreachable`]. [`Calibration`] is the same with an evaluator, a relation and a
//! starting point of the caller's choice; it tells what the answer costs and, if asked, proves that it is tight.
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
use crate::error::{Error, positive};
use crate::event::DpEvent;
use crate::exact;
use crate::leaves::leaves_under;
use crate::params::{Delta, Epsilon};
use crate::rounding::mul_up;
use crate::work;
use most::Most;
use search::{Found, Range, Start};

/// Scales are looked for between the inverse of this and this.
const FARTHEST_SCALE: f64 = 1e120;

/// Smallest sampling rate looked for.
const LEAST_RATE: f64 = 1e-12;

/// From this rate on, whether everything may be taken is asked too.
const NEAR_ONE: f64 = 0.5;

/// Largest number of steps looked for: all below it are exact as floating point numbers.
const MOST_STEPS: u64 = 1 << 53;

/// How far beyond the answer [`Calibration::certifying`] proves that the target is missed, relatively.
const BEYOND: f64 = 1e-4;

/// What a calibration found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated<T> {
    /// The value that was looked for.
    pub value: T,
    /// The evaluator's epsilon at that value; at most the target.
    pub epsilon: f64,
    /// How often the evaluator was asked.
    pub evaluations: u32,
    /// The proof that the answer is tight; [`Calibration::certifying`] asks for it.
    pub beyond: Option<Beyond<T>>,
}

/// A value just beyond the answer, and what is certainly spent there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beyond<T> {
    /// The answer made worse by 1e-4, relatively (counts: by at least one).
    pub value: T,
    /// A certified lower bound of epsilon there, of the dominating pairs of laws that the events stand for. Above the
    /// target, it proves that no accountant that knows no more than the events finds an answer beyond this value
    /// (epsilon growing that way).
    pub epsilon_lower: f64,
}

/// Relative margin of evaluations that a limit on work changed. Without the limit the ends are within [`exact::WIDE`] of each
/// other, or lie no higher than the changed ones, since everything that a limit leaves out is asked besides.
const MARGIN: f64 = 2.0 * exact::WIDE;

/// A target, with the way of evaluating it.
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
    /// At most `target` at `delta`, by the [tightest](Evaluator::Tightest) bound.
    pub fn new(target: Epsilon, delta: Delta) -> Self {
        Self { target, delta, evaluator: Evaluator::Tightest, relation: None, start: None, certifying: false }
    }

    /// The same by another evaluator.
    pub fn with_evaluator(self, evaluator: Evaluator) -> Self {
        Self { evaluator, ..self }
    }

    /// The same with events refused that do not hold under `relation`.
    pub fn under(self, relation: AdjacencyKind) -> Self {
        Self { relation: Some(relation), ..self }
    }

    /// The same with the search starting at `value`. A good guess saves evaluations and changes nothing else.
    pub fn near(self, value: f64) -> Self {
        Self { start: Some(value), ..self }
    }

    /// The same with a [proof](Beyond) that the answer is tight, where an exact curve exists: one more evaluation.
    pub fn certifying(self) -> Self {
        Self { certifying: true, ..self }
    }

    /// The evaluator.
    pub fn evaluator(&self) -> Evaluator {
        self.evaluator
    }

    /// As the function [`least_scale`].
    ///
    /// # Errors
    /// Those of [`least_scale`], and [`Error::NotUnderRelation`] after [`under`](Self::under).
    pub fn least_scale(&self, event_at: impl Fn(f64) -> DpEvent) -> Result<Calibrated<f64>, Error> {
        let start = Start { x: self.start_or(1.0)?.ln(), slope: -1.0 };
        self.scale_from(FARTHEST_SCALE.recip(), start, event_at)
    }

    /// As the function [`largest_rate`].
    ///
    /// # Errors
    /// Those of [`largest_rate`], and [`Error::NotUnderRelation`] after [`under`](Self::under).
    pub fn largest_rate(&self, event_at: impl Fn(f64) -> DpEvent) -> Result<Calibrated<f64>, Error> {
        let range = Range { low: 0.0, high: -LEAST_RATE.ln() };
        let start = Start { x: -self.start_or(0.01)?.ln(), slope: -1.0 };
        let (found, epsilon, evaluations) = self.search(range, start, |x| event_at((-x).exp()))?;
        let mut found = match found {
            Found::At(x) => Calibrated { value: (-x).exp(), epsilon, evaluations, beyond: None },
            Found::EverywhereSafe => Calibrated { value: 1.0, epsilon, evaluations, beyond: None },
            Found::NowhereSafe => {
                return Err(unreachable("sampling rate", "a part of what is released does not depend on it"));
            }
        };
        if found.value >= NEAR_ONE && found.value < 1.0 {
            // Without sampling a tighter theorem may hold than with nearly none.
            let count = Cell::new(found.evaluations);
            let epsilon = self.epsilon(&event_at(1.0), &count)?;
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
        // Conversion of a float saturates.
        let start = (self.start_or(1000.0)? as u64).clamp(1, MOST_STEPS);
        let evaluations = Cell::new(0);
        let search = || {
            let best = Cell::new((0, f64::NAN));
            let found = most::most(MOST_STEPS, start, |count| {
                let epsilon = self.epsilon(&event_at(count), &evaluations)?;
                if epsilon <= self.target.get() && (best.get().1.is_nan() || count >= best.get().0) {
                    best.set((count, epsilon));
                }
                Ok(self.excess(epsilon))
            })?;
            Ok::<_, Error>((found, best.get().1))
        };
        let (found, epsilon) = search()?;
        let value = match found {
            Most::At(count) => count,
            Most::Unlimited => return Err(unreachable(what, "any number meets it")),
            Most::NotEvenNone => return Err(unreachable(what, "what is released besides costs more")),
        };
        let beyond = value.saturating_add(((value as f64) * BEYOND).max(1.0) as u64);
        let beyond = self.beyond(true, beyond, || event_at(beyond))?;
        Ok(Calibrated { value, epsilon, evaluations: evaluations.get(), beyond })
    }

    /// The search on a logarithmic scale, with epsilon at the answer and the number of evaluations.
    fn search(
        &self,
        range: Range,
        start: Start,
        event_at: impl Fn(f64) -> DpEvent,
    ) -> Result<(Found, f64, u32), Error> {
        let evaluations = Cell::new(0);
        let search = || {
            let best = Cell::new((f64::INFINITY, f64::NAN));
            let found = search::least_safe(range, start, |x| {
                let epsilon = self.epsilon(&event_at(x), &evaluations)?;
                if epsilon <= self.target.get() && x <= best.get().0 {
                    best.set((x, epsilon));
                }
                Ok(self.excess(epsilon))
            })?;
            Ok::<_, Error>((found, best.get().1))
        };
        let (found, epsilon) = search()?;
        Ok((found, epsilon, evaluations.get()))
    }

    fn epsilon(&self, event: &DpEvent, evaluations: &Cell<u32>) -> Result<f64, Error> {
        if let Some(relation) = self.relation {
            leaves_under(event, 1, relation)?;
        }
        evaluations.set(evaluations.get() + 1);
        let before = work::changes();
        let epsilon = self.evaluator.epsilon(event, self.delta)?;
        Ok(if work::changes() > before { mul_up(epsilon, 1.0 + MARGIN) } else { epsilon })
    }

    /// Logarithm of epsilon over the target: not positive exactly where the target is met.
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

fn unreachable(what: &'static str, why: &'static str) -> Error {
    Error::Unreachable { what, why }
}

/// The least noise scale for which `event_at(scale)` costs at most `target` at `delta`, by [`bound::epsilon`](crate::bound::epsilon).
///
/// `event_at` builds, for a noise scale (a standard deviation, a Laplace scale, a noise multiplier: whatever unit the
/// caller likes), everything that would be released with it. Epsilon must not grow with the scale; the answer always
/// meets the target, and is within 1e-6, relatively, of the least one that does (1e-9 where the cost has a closed
/// form).
///
/// # Errors
/// [`Error::Unreachable`] where no scale up to 1e120 meets the target (noise cannot help: a part of the event does not
/// depend on the scale) or every scale down to 1e-120 (1e-3 for a noise multiplier of DP-SGD) does; and what `event_at`'s events give [`bound::epsilon`](crate::bound::epsilon).
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

/// The largest sampling rate, up to 1, for which `event_at(rate)` costs at most `target` at `delta`, by
/// [`bound::epsilon`](crate::bound::epsilon).
///
/// Epsilon must not fall as the rate grows.
///
/// # Errors
/// [`Error::Unreachable`] where not even a rate of 1e-12 meets the target; and what `event_at`'s events give
/// [`bound::epsilon`](crate::bound::epsilon).
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

/// The largest number of steps for which `event_at(steps)` costs at most `target` at `delta`, by [`bound::epsilon`](crate::bound::epsilon):
/// that many meet the target and one more does not. It is 0 where not even one step does but none do.
///
/// Epsilon must not fall as the number grows.
///
/// # Errors
/// [`Error::Unreachable`] where `event_at(0)` already costs more, or 2^53 steps still cost less; and what `event_at`'s
/// events give [`bound::epsilon`](crate::bound::epsilon).
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

/// How often `next` can still be released after `spent`, with everything together costing at most `target` at `delta`,
/// by [`bound::epsilon`](crate::bound::epsilon).
///
/// # Privacy
/// A plan, made before anything is released: what is composed has parameters fixed in advance. Where later parameters
/// depend on earlier outcomes, this number included, ask a [filter](crate::filter) instead.
///
/// # Errors
/// [`Error::Unreachable`] where `spent` alone costs more than the target, or `next` costs nothing; and what the events
/// give [`bound::epsilon`](crate::bound::epsilon).
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
