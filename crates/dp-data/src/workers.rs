//! Threads for one computation, passed as a value.

use core::convert::Infallible;
use core::fmt;
use core::num::NonZeroUsize;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
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

impl From<Workers> for NonZeroUsize {
    fn from(Workers(threads): Workers) -> Self {
        threads
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
    /// The calling thread takes part. If the system provides fewer threads, those do the work.
    ///
    /// # Panics
    /// If `buffers` or `part` panics.
    pub fn map<B, T: Send>(
        self,
        parts: usize,
        buffers: impl Fn() -> B + Sync,
        part: impl Fn(&mut B, usize) -> T + Sync,
    ) -> Vec<T> {
        let mut results = Vec::with_capacity(parts);
        let push = |result| {
            results.push(result);
            Ok::<_, Infallible>(())
        };
        let Ok(()) = self.for_each(0..parts, usize::MAX, buffers, part, push);
        results
    }

    /// Passes `of_part(buffers, part)` to `each` for each of the parts, in this order and on the calling thread, while other
    /// threads compute the next ones. At most `ahead` results wait for their turn, or are computed, at any time. Threads are
    /// started for a second part only.
    ///
    /// # Errors
    /// The first error of `each`, after which no part is begun.
    ///
    /// # Panics
    /// If `parts`, `buffers`, `of_part` or `each` panics.
    ///
    /// # Examples
    /// ```
    /// use dp_data::Workers;
    /// let mut text = String::new();
    /// Workers::available().for_each(0..3, 2, || (), |(), i| i.to_string(), |part| {
    ///     text += &part;
    ///     Ok::<_, std::io::Error>(())
    /// })?;
    /// assert_eq!(text, "012");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn for_each<P: Send, B, T: Send, E>(
        self,
        parts: impl IntoIterator<Item = P, IntoIter: Send>,
        ahead: usize,
        buffers: impl Fn() -> B + Sync,
        of_part: impl Fn(&mut B, P) -> T + Sync,
        each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.for_each_meanwhile(parts, ahead, buffers, of_part, each, None)
    }

    /// As [`for_each`](Self::for_each), with other work for threads that would wait: `meanwhile` does a little of it at each call,
    /// and returns false if nothing is left. A thread is started for it even beside a single part. It is not called on one thread,
    /// and some of the work may be left at the end.
    ///
    /// # Errors
    /// As [`for_each`](Self::for_each).
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each), and if `meanwhile` panics.
    pub fn for_each_meanwhile<P: Send, B, T: Send, E>(
        self,
        parts: impl IntoIterator<Item = P, IntoIter: Send>,
        ahead: usize,
        buffers: impl Fn() -> B + Sync,
        of_part: impl Fn(&mut B, P) -> T + Sync,
        mut each: impl FnMut(T) -> Result<(), E>,
        meanwhile: Option<&(dyn Fn() -> bool + Sync)>,
    ) -> Result<(), E> {
        let (mut parts, ahead) = (parts.into_iter(), ahead.max(1));
        let first = [parts.next(), if self.threads() > 1 && ahead > 1 { parts.next() } else { None }];
        let is_alone = self.threads() == 1 || (first[1].is_none() && meanwhile.is_none());
        let mut parts = first.into_iter().flatten().chain(parts);
        if is_alone {
            let mut buffers = buffers();
            return parts.try_for_each(|part| each(of_part(&mut buffers, part)));
        }
        let parts_ahead = parts.size_hint().1.unwrap_or(usize::MAX).min(ahead);
        // One more for the other work.
        let most = parts_ahead.saturating_add(meanwhile.is_some().into());
        let queue = Queue { ahead, state: Mutex::new(State::new(parts)), changed: Condvar::new(), meanwhile };
        let work = || {
            let _ends = EndsOnPanic(&queue);
            let mut own = None;
            while let Some((i, part)) = queue.claim() {
                queue.put(i, of_part(own.get_or_insert_with(&buffers), part));
            }
        };
        let mut use_results = || {
            // Ends the other threads however this one ends.
            let _ends = Ends(&queue);
            let mut own = None;
            while let Some(next) = queue.next() {
                match next {
                    Next::Result(result) => each(result)?,
                    Next::Part(i, part) => queue.put(i, of_part(own.get_or_insert_with(&buffers), part)),
                }
            }
            Ok(())
        };
        let mut result = Ok(());
        beside(self.threads().min(most).saturating_sub(1), &work, &mut || result = use_results());
        result
    }
}

/// Runs `own` on this thread, and `work` on others meanwhile, or on fewer if the system starts no more. One function for every
/// type of work, since compiling the start of a thread takes long.
fn beside(others: usize, work: &(dyn Fn() + Sync), own: &mut dyn FnMut()) {
    thread::scope(|scope| {
        for _ in 0..others {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        own();
    });
}

/// Parts that threads claim in order, and results that wait for their turn.
struct Queue<'w, I, T> {
    ahead: usize,
    state: Mutex<State<I, T>>,
    changed: Condvar,
    /// Work for threads that would wait.
    meanwhile: Option<&'w (dyn Fn() -> bool + Sync)>,
}

struct State<I, T> {
    /// The parts that are not claimed yet; `None` if there are no more.
    parts: Option<I>,
    claimed: usize,
    /// Number of results that were used.
    used: usize,
    /// Results of claimed parts from `used` on, `None` while they are computed.
    waiting: VecDeque<Option<T>>,
    ended: bool,
}

impl<I, T> State<I, T> {
    fn new(parts: I) -> Self {
        Self { parts: Some(parts), claimed: 0, used: 0, waiting: VecDeque::new(), ended: false }
    }
}

/// The next action of the calling thread.
enum Next<P, T> {
    Result(T),
    Part(usize, P),
}

impl<I: Iterator, T> Queue<'_, I, T> {
    fn lock(&self) -> MutexGuard<'_, State<I, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does some of the other work, if `is_left`, or waits. The state may have changed afterwards, or not.
    fn wait<'q>(&'q self, state: MutexGuard<'q, State<I, T>>, is_left: &mut bool) -> MutexGuard<'q, State<I, T>> {
        match self.meanwhile.filter(|_| *is_left) {
            Some(meanwhile) => {
                drop(state);
                *is_left = meanwhile();
                self.lock()
            }
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Claims the next part, unless as many as allowed are ahead.
    fn try_claim(&self, state: &mut State<I, T>) -> Option<(usize, I::Item)> {
        if state.claimed - state.used >= self.ahead {
            return None;
        }
        // Taken out, so that an iterator that panics is not asked again.
        let mut parts = state.parts.take()?;
        let Some(part) = parts.next() else {
            self.changed.notify_all();
            return None;
        };
        state.parts = Some(parts);
        state.waiting.push_back(None);
        state.claimed += 1;
        Some((state.claimed - 1, part))
    }

    /// Waits for a part to compute; `None` if there is none any more.
    fn claim(&self) -> Option<(usize, I::Item)> {
        let (mut state, mut is_left) = (self.lock(), self.meanwhile.is_some());
        while !state.ended {
            if let Some(claimed) = self.try_claim(&mut state) {
                return Some(claimed);
            }
            if state.parts.is_none() && !is_left {
                return None;
            }
            state = self.wait(state, &mut is_left);
        }
        None
    }

    fn put(&self, i: usize, result: T) {
        let mut state = self.lock();
        let place = i - state.used;
        if let Some(waiting) = state.waiting.get_mut(place) {
            *waiting = Some(result);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Returns the next result, or a part to compute where it is not there yet; `None` after the last.
    fn next(&self) -> Option<Next<I::Item, T>> {
        let (mut state, mut is_left) = (self.lock(), self.meanwhile.is_some());
        while !state.ended {
            if let Some(Some(_)) = state.waiting.front() {
                let result = state.waiting.pop_front().flatten();
                state.used += 1;
                drop(state);
                self.changed.notify_all();
                return result.map(Next::Result);
            }
            if let Some((i, part)) = self.try_claim(&mut state) {
                return Some(Next::Part(i, part));
            }
            if state.waiting.is_empty() {
                return None;
            }
            state = self.wait(state, &mut is_left);
        }
        None
    }

    fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }
}

/// Ends a queue when dropped.
struct Ends<'q, I: Iterator, T>(&'q Queue<'q, I, T>);

impl<I: Iterator, T> Drop for Ends<'_, I, T> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Ends a queue when dropped by a panic, so that nobody waits for the result.
struct EndsOnPanic<'q, I: Iterator, T>(&'q Queue<'q, I, T>);

impl<I: Iterator, T> Drop for EndsOnPanic<'_, I, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};
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
    fn no_more_than_allowed_are_ahead() {
        for (threads, ahead) in [(1, 1), (2, 1), (2, 2), (3, 4), (8, 3)] {
            let (begun, used) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let part = |(): &mut (), i: usize| {
                begun.fetch_add(1, Ordering::SeqCst);
                i
            };
            let each = |i: usize| {
                // This result is still ahead.
                let waiting = begun.load(Ordering::SeqCst) - used.load(Ordering::SeqCst);
                assert!(i == used.fetch_add(1, Ordering::SeqCst) && waiting <= ahead + 1, "{waiting} {ahead}");
                Ok::<(), ()>(())
            };
            workers(threads).for_each(0..200, ahead, || (), part, each).unwrap();
            assert_eq!(used.load(Ordering::SeqCst), 200);
        }
    }

    #[test]
    fn an_error_ends_the_computation() {
        for threads in [1, 2, 5] {
            let begun = AtomicUsize::new(0);
            let part = |(): &mut (), i: usize| {
                begun.fetch_add(1, Ordering::SeqCst);
                i
            };
            let each = |i: usize| if i == 7 { Err(i) } else { Ok(()) };
            assert_eq!(workers(threads).for_each(0..1_000_000, 10, || (), part, each), Err(7));
            assert!(begun.load(Ordering::SeqCst) <= 7 + 10 + threads);
        }
    }

    #[test]
    fn a_panic_of_any_part_reaches_the_caller() {
        for (threads, ahead) in [(1, 4), (3, 4), (3, 100)] {
            for failing in [0, 5, 8] {
                let part = |(): &mut (), i: usize| assert!(i != failing, "part {failing}");
                let each = |()| Ok::<_, ()>(());
                let ended = std::panic::catch_unwind(|| workers(threads).for_each(0..9, ahead, || (), part, each));
                assert!(ended.is_err());
            }
        }
        let each = |i: usize| if i == 3 { panic!("used") } else { Ok::<_, ()>(()) };
        assert!(std::panic::catch_unwind(|| workers(3).for_each(0..50, 9, || (), |(), i| i, each)).is_err());
    }

    /// Threads do other work while they would wait, also beside a single part, and the results keep their order.
    #[test]
    fn waiting_threads_do_other_work() {
        for (threads, parts) in [(2, 1), (3, 5), (2, 0), (8, 3)] {
            let (left, done) = (AtomicUsize::new(20), AtomicUsize::new(0));
            let meanwhile = || {
                let was_left =
                    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                done.fetch_add(was_left.into(), Ordering::SeqCst);
                was_left
            };
            // A part waits until other work was done: one thread alone would never end.
            let part = |(): &mut (), i: usize| {
                while done.load(Ordering::SeqCst) < 20 {
                    thread::yield_now();
                }
                i
            };
            let mut results = Vec::new();
            let each = |i: usize| {
                results.push(i);
                Ok::<_, ()>(())
            };
            workers(threads).for_each_meanwhile(0..parts, 2, || (), part, each, Some(&meanwhile)).unwrap();
            assert_eq!(results, (0..parts).collect::<Vec<_>>());
        }
        // One thread does none of it.
        let each = |i: usize| if i == 2 { Err(i) } else { Ok(()) };
        let none = || -> bool { panic!("one thread does not wait") };
        assert_eq!(Workers::ONE.for_each_meanwhile(0..9, 2, || (), |(), i| i, each, Some(&none)), Err(2));
    }

    /// Other work without end ends with the last result, however few may be ahead, and its panics reach the caller.
    #[test]
    fn other_work_ends_with_the_last_result() {
        for (threads, ahead) in [(2, 9), (5, 9), (3, 1), (3, 0)] {
            let mut sum = 0;
            let each = |i: usize| {
                sum += i;
                Ok::<_, ()>(())
            };
            workers(threads).for_each_meanwhile(0..4, ahead, || (), |(), i| i, each, Some(&|| true)).unwrap();
            assert_eq!(sum, 6);
            let begun = AtomicUsize::new(0);
            let part = |(): &mut (), _: usize| {
                while begun.load(Ordering::SeqCst) == 0 {
                    thread::yield_now();
                }
            };
            let panics = || -> bool {
                begun.fetch_add(1, Ordering::SeqCst);
                panic!("other work")
            };
            let run =
                || workers(threads).for_each_meanwhile(0..1, ahead, || (), part, |()| Ok::<_, ()>(()), Some(&panics));
            assert!(std::panic::catch_unwind(run).is_err());
        }
    }
}
