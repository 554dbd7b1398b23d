//! A cache of compositions computed for earlier evaluations of one curve.
//!
//! A line of the contour and a tilted spectrum are computed for one epsilon. They bound delta at every other epsilon, closely at
//! nearby ones. A single evaluation computes its own, as do the evaluations of a short curve. After [`PATIENCE`] steps, cached
//! compositions are used if their ends are nearly as close as they were at their own epsilon.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::work;

/// Steps spent on one curve before cached compositions are used.
const PATIENCE: f64 = 3e8;

/// Maximum size of the cache in bytes; the oldest entries are dropped first.
const MOST_BYTES: usize = 128 << 20;

/// Largest factor by which a result may be wider than at the composition's own epsilon.
pub(super) const WIDENING: f64 = 2.0;

/// The cache; a clone starts empty.
#[derive(Debug)]
pub(super) struct Kept<T>(Mutex<Store<T>>);

#[derive(Debug)]
struct Store<T> {
    spent: f64,
    bytes: usize,
    kept: VecDeque<Arc<T>>,
}

/// The memory use of a cached value.
pub(super) trait Size {
    /// Returns the approximate number of bytes.
    fn bytes(&self) -> usize;
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::new(Store { spent: 0.0, bytes: 0, kept: VecDeque::new() }))
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T: Size> Kept<T> {
    /// Returns the compositions that may be used now; empty while few steps have been spent.
    pub(super) fn ready(&self) -> Vec<Arc<T>> {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if store.spent < PATIENCE { Vec::new() } else { store.kept.iter().cloned().collect() }
    }

    /// Calls `make`, caches its composition, if any, and counts the steps taken.
    pub(super) fn keeping<A>(&self, make: impl FnOnce() -> (A, Option<T>)) -> A {
        let before = work::spent();
        let (answer, made) = make();
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        store.spent += (work::spent() - before).max(0.0);
        if let Some(made) = made {
            store.bytes += made.bytes();
            store.kept.push_back(Arc::new(made));
        }
        while store.bytes > MOST_BYTES {
            let Some(oldest) = store.kept.pop_front() else { break };
            store.bytes -= oldest.bytes();
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Size for u32 {
        fn bytes(&self) -> usize {
            *self as usize
        }
    }

    #[test]
    fn what_is_kept_waits() {
        let kept = Kept::default();
        let spend = |steps: f64, item: u32| kept.keeping(|| (work::charge(steps), Some(item)));
        spend(0.6 * PATIENCE, 1);
        assert!(kept.ready().is_empty());
        spend(0.6 * PATIENCE, 2);
        assert_eq!(kept.ready().iter().map(|item| **item).collect::<Vec<_>>(), [1, 2]);
        // The oldest entries are dropped.
        spend(1.0, u32::try_from(MOST_BYTES - 3).unwrap());
        assert_eq!(kept.ready().len(), 3);
        spend(1.0, 3);
        assert_eq!(kept.ready().len(), 2);
        assert!(kept.clone().ready().is_empty());
    }
}
