//! Threads for one computation, passed as a value.

use core::fmt;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The number of threads that a computation may use: one by default, the caller's.
///
/// The parts of a computation are cut by constants of the code, each part is computed by one thread, and the results are used in
/// the order of the parts. The result therefore has the same bits with any number of threads, as long as a part's result depends
/// on the part alone.
///
/// # Examples
/// ```
/// use core::num::NonZeroUsize;
/// use dp_data::Workers;
///
/// let numbers: Vec<u64> = (0..10_000).collect();
/// let sum = |workers: Workers| -> u64 {
///     let parts = workers.map(10, || (), |(), part| numbers[1000 * part..][..1000].iter().sum::<u64>());
///     parts.into_iter().sum()
/// };
/// assert_eq!(sum(Workers::ONE), 49_995_000);
/// assert_eq!(sum(Workers::new(NonZeroUsize::new(3).unwrap())), 49_995_000);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Workers(NonZeroUsize);

impl Default for Workers {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers({})", self.0)
    }
}

impl Workers {
    /// The calling thread alone.
    pub const ONE: Self = Self(NonZeroUsize::MIN);

    /// Creates a number of threads, of which the calling thread is one.
    pub const fn new(threads: NonZeroUsize) -> Self {
        Self(threads)
    }

    /// Returns as many threads as the system offers this process, or one if it does not say.
    pub fn available() -> Self {
        Self(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Returns the number of threads.
    pub fn threads(self) -> usize {
        self.0.get()
    }

    /// Returns `part(buffers, i)` for each `i` below `parts`, in this order; each thread makes its own buffers by `buffers`.
    ///
    /// The calling thread takes part. Threads that the system does not give are done without.
    ///
    /// # Panics
    /// If `buffers` or `part` panics.
    pub fn map<B, T: Send>(
        self,
        parts: usize,
        buffers: impl Fn() -> B + Sync,
        part: impl Fn(&mut B, usize) -> T + Sync,
    ) -> Vec<T> {
        let threads = self.threads().min(parts);
        if threads <= 1 {
            let mut buffers = buffers();
            return (0..parts).map(|i| part(&mut buffers, i)).collect();
        }
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(parts)));
        let work = || {
            let mut buffers = buffers();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= parts {
                    break;
                }
                let result = part(&mut buffers, i);
                done.lock().unwrap_or_else(PoisonError::into_inner).push((i, result));
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|&(i, _)| i);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn workers(threads: usize) -> Workers {
        Workers::new(NonZeroUsize::new(threads).unwrap())
    }

    #[test]
    fn results_come_in_order_though_early_parts_take_longest() {
        for (threads, parts) in [(1, 7), (2, 7), (3, 2), (8, 20), (4, 0), (2, 1)] {
            let made = AtomicUsize::new(0);
            let results = workers(threads).map(
                parts,
                || made.fetch_add(1, Ordering::Relaxed),
                |_, i| {
                    thread::sleep(Duration::from_millis(10 * (parts - i) as u64 / parts as u64));
                    3 * i
                },
            );
            assert_eq!(results, (0..parts).map(|i| 3 * i).collect::<Vec<_>>());
            assert!(
                made.load(Ordering::Relaxed) <= threads.min(parts).max(1),
                "buffers for each thread, not each part"
            );
        }
        assert_eq!(Workers::default(), Workers::ONE);
        assert!(Workers::available().threads() >= 1);
    }

    #[test]
    fn the_threads_of_a_computation_work_at_the_same_time() {
        // Each part waits until both have begun: one thread alone would never end.
        let barrier = std::sync::Barrier::new(2);
        let leaders = workers(2).map(2, || (), |(), _| barrier.wait().is_leader());
        assert_eq!(leaders.iter().filter(|&&leader| leader).count(), 1);
    }

    #[test]
    fn a_panic_of_any_part_reaches_the_caller() {
        for threads in [1, 3] {
            let failing = |(): &mut (), i: usize| assert!(i != 5, "part 5");
            let ended = std::panic::catch_unwind(|| workers(threads).map(9, || (), failing));
            assert!(ended.is_err());
        }
    }
}
