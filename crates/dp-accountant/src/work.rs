//! A limit on the work for a result, counted in steps and not in time.
//!
//! Most results take milliseconds. A few distributions, and curves of many points, take long on fine grids. Within [`limited`]
//! the engines count their work in steps of somewhat less than a nanosecond. Once the limit is reached they use coarse grids and
//! short sums: the certified interval becomes wider, and both its ends remain valid. The count depends only on the arguments, so
//! that the same call gives the same result on every machine.
//!
//! A limit applies to the computation of its closure on the calling thread; threads that it starts have no limit. Without a limit
//! nothing is cut short.
//!
//! ```
//! use dp_accountant::{Delta, DpEvent, exact, work};
//!
//! let step = DpEvent::LaplaceBall { scale: 2.0, sensitivity: 1.0, dim: 50 };
//! let event = DpEvent::SelfComposed { event: Box::new(step), count: 10 };
//! let delta = Delta::new(1e-6)?;
//! let hurried = work::limited(3e6, || exact::epsilon(&event, delta));
//! let whole = exact::epsilon(&event, delta)?;
//! assert!(hurried.is_short);
//! let hurried = hurried.value?;
//! assert!(hurried.lower <= whole.upper && whole.lower <= hurried.upper);
//! # Ok::<(), dp_accountant::Error>(())
//! ```

use core::cell::{Cell, RefCell};
use std::rc::Rc;

/// Enough for nearly every call, and about one second of work.
pub const USUAL: f64 = 1.5e9;

/// Fraction of the limit that each part of a computation may take even if nothing is left.
const LEAST_SHARE: f64 = 1.0 / 1024.0;

/// Number of steps between two reports to an observer.
const REPORT: f64 = 5e7;

/// The result of a computation within a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limited<T> {
    /// The value of the closure.
    pub value: T,
    /// Number of steps taken. Somewhat more than the limit if that was reached, since each part of a computation may take a small
    /// fraction of it in any case.
    pub spent: f64,
    /// True if an engine did less than without a limit, and its interval is wider because of it.
    pub is_short: bool,
}

#[derive(Debug, Clone, Copy)]
struct Meter {
    limit: f64,
    spent: f64,
    is_short: bool,
    changes: u64,
}

impl Meter {
    const fn new(limit: f64) -> Self {
        Self { limit, spent: 0.0, is_short: false, changes: 0 }
    }
}

type Observer = Rc<dyn Fn(f64)>;

thread_local! {
    static METER: Cell<Meter> = const { Cell::new(Meter::new(f64::INFINITY)) };
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
    static UNREPORTED: Cell<f64> = const { Cell::new(0.0) };
}

/// Restores the previous meter, with the steps taken since; also if a closure panics.
struct Restore(Meter);

impl Restore {
    fn now(self) -> Meter {
        METER.get()
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        let Meter { spent, is_short, changes, .. } = METER.get();
        let Meter { limit, .. } = self.0;
        METER.set(Meter {
            limit,
            spent: self.0.spent + spent,
            is_short: self.0.is_short || is_short,
            changes: self.0.changes + changes,
        });
    }
}

/// Computes `f` within `limit` steps, or within the remainder of an outer limit if that is less. A limit that is negative or NaN
/// counts as 0; an infinite one only measures the steps.
///
/// # Formula
/// A step is somewhat less than a nanosecond on one core; [`USUAL`] steps are about a second.
pub fn limited<T>(limit: f64, f: impl FnOnce() -> T) -> Limited<T> {
    let outer = METER.get();
    let limit = limit.max(0.0).min(allowance());
    let restore = Restore(outer);
    METER.set(Meter::new(limit));
    let value = f();
    let Meter { spent, is_short, .. } = restore.now();
    Limited { value, spent, is_short }
}

/// Computes `f` without a limit, even inside one: for a claim that others recompute without one.
pub fn unlimited<T>(f: impl FnOnce() -> T) -> T {
    let _restore = Restore(METER.get());
    METER.set(Meter::new(f64::INFINITY));
    f()
}

/// Computes `f`, and returns whether the limit changed it. Its work counts, but not that it was cut short: for a first attempt.
pub(crate) fn tried<T>(f: impl FnOnce() -> T) -> (T, bool) {
    let before = METER.get();
    let value = f();
    let Meter { spent, changes, .. } = METER.get();
    METER.set(Meter { spent, ..before });
    (value, changes > before.changes)
}

/// Calls `observer` from time to time while `f` computes, with the steps taken since its last call.
pub fn observed<T>(observer: Rc<dyn Fn(f64)>, f: impl FnOnce() -> T) -> T {
    struct Former(Option<Observer>);
    impl Drop for Former {
        fn drop(&mut self) {
            OBSERVER.set(self.0.take());
        }
    }
    let _former = Former(OBSERVER.replace(Some(observer)));
    UNREPORTED.set(0.0);
    f()
}

/// Adds to the count of steps.
pub(crate) fn charge(steps: f64) {
    let meter = METER.get();
    METER.set(Meter { spent: meter.spent + steps, ..meter });
    let unreported = UNREPORTED.get() + steps;
    if unreported < REPORT {
        UNREPORTED.set(unreported);
        return;
    }
    UNREPORTED.set(0.0);
    let observer = OBSERVER.with_borrow(Clone::clone);
    if let Some(observer) = observer {
        observer(unreported);
    }
}

/// Returns the steps counted since the innermost limit began.
pub(crate) fn spent() -> f64 {
    METER.get().spent
}

/// Returns the number of steps that one part of a computation may take now.
pub(crate) fn allowance() -> f64 {
    let Meter { limit, spent, .. } = METER.get();
    (limit - spent).max(limit * LEAST_SHARE)
}

/// Returns whether the limit is reached.
pub(crate) fn is_exhausted() -> bool {
    let Meter { limit, spent, .. } = METER.get();
    spent >= limit
}

/// Records that a computation was cut short.
pub(crate) fn cut_short() {
    change();
    METER.set(Meter { is_short: true, ..METER.get() });
}

/// Records that the limit changed a computation; use [`cut_short`] if the result is less tight because of it.
pub(crate) fn change() {
    let meter = METER.get();
    METER.set(Meter { changes: meter.changes + 1, ..meter });
}

/// Returns the number of computations that the limit changed.
pub(crate) fn changes() -> u64 {
    METER.get().changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_nest_and_end() {
        let outer = limited(100.0, || {
            charge(30.0);
            let inner = limited(1000.0, || {
                // The remainder of the outer limit.
                assert_eq!(allowance(), 70.0);
                charge(80.0);
                cut_short();
                allowance()
            });
            assert!(inner.is_short && inner.spent == 80.0 && inner.value == 70.0 * LEAST_SHARE);
            assert!(is_exhausted());
            assert_eq!(unlimited(allowance), f64::INFINITY);
            limited(f64::NAN, is_exhausted).value
        });
        assert!(outer.value && outer.is_short && outer.spent == 110.0);
        let attempt = limited(100.0, || {
            charge(30.0);
            tried(|| {
                charge(20.0);
                cut_short();
            })
        });
        assert!(attempt.value.1 && !attempt.is_short && attempt.spent == 50.0);
        assert!(!limited(100.0, || tried(|| charge(1.0))).value.1);
        assert!(!is_exhausted() && allowance() == f64::INFINITY);
    }

    #[test]
    fn a_panic_ends_its_limit() {
        let caught = std::panic::catch_unwind(|| limited(1.0, || panic!("within")));
        assert!(caught.is_err() && allowance() == f64::INFINITY);
    }

    #[test]
    fn an_observer_hears_of_all_but_the_last_steps() {
        let heard = Rc::new(Cell::new(0.0));
        let tell = Rc::clone(&heard);
        observed(Rc::new(move |steps| tell.set(tell.get() + steps)), || (0..10).for_each(|_| charge(0.5 * REPORT)));
        assert_eq!(heard.get(), 5.0 * REPORT);
        charge(2.0 * REPORT);
        assert_eq!(heard.get(), 5.0 * REPORT);
    }
}
