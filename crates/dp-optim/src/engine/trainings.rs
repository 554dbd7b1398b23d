//! Several trainings on the records of one source: side by side on several threads, or one after the other.

#[cfg(test)]
mod tests;

use core::iter;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use dp_data::{Reader, RowSource, Workers, memory};
use dp_losses::Real;
use dp_mechanisms::{LentRng, ReleaseRng as _};

use super::control::{Control, Progress};
use crate::error::Error;

/// The time between two checks for a cancellation.
const INTERVAL: Duration = Duration::from_millis(20);

/// The numbers of several trainings.
pub(crate) struct Trainings<'r> {
    /// Number of trainings.
    pub number: u64,
    /// Bytes that each takes besides the records.
    pub memory: u64,
    /// Their sizes, if their progress is reported.
    pub sizes: Option<Sizes<'r>>,
}

/// Public sizes, in which progress is counted.
pub(crate) struct Sizes<'r> {
    /// Number of records of the source.
    pub records: u64,
    /// Number of records of each training.
    pub records_of_each: u64,
    /// Returns the number of rows that a training reads.
    pub rows: &'r (dyn Fn(u64) -> u64 + Sync),
}

/// One of several trainings, by its number, on a source, with a generator and a control of its own.
type Train<'t, F> =
    dyn Fn(u64, &mut dyn RowSource<F>, &mut LentRng<'_>, &mut Control<'_>) -> Result<(), Error> + Sync + 't;

impl Trainings<'_> {
    /// Calls `train` with each number below [`number`](Self::number). No bit of what a training draws or computes depends on the
    /// number of threads.
    ///
    /// Trainings run side by side if the source has [readers](RowSource::readers), as many as there are threads and memory for.
    /// Progress is that of all together, and reported on the calling thread.
    ///
    /// # Errors
    /// An error of `train` or of the source, the first in time; no training is begun once it is known. [`Error::Interrupted`].
    ///
    /// # Panics
    /// If `train` panics.
    pub fn run<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        train: &Train<'_, F>,
    ) -> Result<(), Error> {
        let threads = control.workers.threads().min(usize::try_from(self.number).unwrap_or(usize::MAX));
        if threads > 1 {
            let records = source.describe()?.n;
            if let Some(readers) = source.readers(threads)? {
                // The source may have taken memory for them.
                let threads = self.fitting(threads, records);
                if threads > 1 && self.side_by_side(readers, threads, rng, control, train)? {
                    return Ok(());
                }
            }
        }
        let &mut Control { cancelled, ref mut progress, gradients, workers } = control;
        let mut shown = Shown::new(self.sizes.as_ref(), progress);
        let reports = shown.show.is_some();
        for i in 0..self.number {
            let mut show = |at| {
                shown.training_is(i, at);
                shown.show();
            };
            let progress = reports.then_some(&mut show as &mut dyn FnMut(Progress));
            let own = &mut Control { cancelled, progress, gradients, workers };
            train(i, source, &mut rng.child().lend(), own)?;
            shown.is_finished(i);
            shown.show();
        }
        Ok(())
    }

    /// Returns the number of threads, at most `threads`, for whose trainings there is memory. Each training holds positions, targets
    /// and marks of up to `records` records.
    fn fitting(&self, threads: usize, records: u64) -> usize {
        const OF_RECORD: u64 = 17;
        let each = self.memory.saturating_add(records.saturating_mul(OF_RECORD));
        let fits = |threads: usize| {
            let all = usize::try_from(each.saturating_mul(threads as u64)).unwrap_or(usize::MAX);
            memory::check(all, "trainings side by side").is_ok()
        };
        (2..=threads).rev().find(|&threads| fits(threads)).unwrap_or(1)
    }

    /// As [`run`](Self::run), and returns the results in the order of the trainings.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn collect<F: Real, T: Send>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        train: impl Fn(u64, &mut dyn RowSource<F>, &mut LentRng<'_>, &mut Control<'_>) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let results = Mutex::new(BTreeMap::new());
        self.run(source, rng, control, &|i, source, rng, control| {
            let result = train(i, source, rng, control)?;
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(i, result);
            Ok(())
        })?;
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect())
    }

    /// Returns false, with nothing done, if no thread can be started.
    fn side_by_side<F: Real>(
        &self,
        readers: Vec<Reader<'_, F>>,
        threads: usize,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        train: &Train<'_, F>,
    ) -> Result<bool, Error> {
        let &mut Control { cancelled, ref mut progress, gradients, workers } = control;
        let workers = Workers::new(NonZeroUsize::new(workers.threads() / threads).unwrap_or(NonZeroUsize::MIN));
        let mut shown = Shown::new(self.sizes.as_ref(), progress);
        let (reports, stop) = (shown.show.is_some(), AtomicBool::new(false));
        // Claimed in order, so that a training has the same generator on any thread.
        let claims = Mutex::new((0..self.number, rng));
        let claim = || {
            let mut claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
            let (numbers, rng) = &mut *claims;
            numbers.next().filter(|_| !stop.load(Ordering::Relaxed)).map(|i| (i, rng.child()))
        };
        let work = |mut source: Reader<'_, F>, reports_to: Sender<Report>| {
            let _stops = StopsOnPanic(&stop);
            while let Some((i, mut rng)) = claim() {
                let mut show = |at| drop(reports_to.send(Report::Progress(i, at)));
                let progress = reports.then_some(&mut show as &mut dyn FnMut(Progress));
                let own = &mut Control { cancelled: Some(&stop), progress, gradients, workers };
                let result = train(i, &mut *source, &mut rng.lend(), own);
                let fails = result.is_err();
                drop(reports_to.send(Report::Finished(i, result)));
                // After the report: so the caller gets this error before those of the trainings that it stops.
                if fails {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        };
        thread::scope(|scope| {
            let (mut started, mut outcome) = (Vec::new(), Ok(()));
            let _stops = StopsOnPanic(&stop);
            let (sender, receiver) = channel();
            for reader in readers.into_iter().take(threads) {
                let (sender, work) = (sender.clone(), &work);
                started.extend(thread::Builder::new().spawn_scoped(scope, move || work(reader, sender)));
            }
            drop(sender);
            loop {
                if outcome.is_ok() && cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                    outcome = Err(Error::Interrupted);
                    stop.store(true, Ordering::Relaxed);
                }
                let first = match receiver.recv_timeout(INTERVAL) {
                    Ok(report) => report,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                // All that wait are shown at once, so that a slow caller is not behind.
                for report in iter::once(first).chain(receiver.try_iter()) {
                    match report {
                        Report::Progress(i, at) => shown.training_is(i, at),
                        Report::Finished(i, Ok(())) => shown.is_finished(i),
                        Report::Finished(_, Err(error)) if outcome.is_ok() => outcome = Err(error),
                        Report::Finished(_, Err(_)) => {}
                    }
                }
                shown.show();
            }
            let any = !started.is_empty();
            for thread in started {
                if let Err(panic) = thread.join() {
                    resume_unwind(panic);
                }
            }
            outcome.map(|()| any)
        })
    }
}

/// A message about a training.
enum Report {
    Progress(u64, Progress),
    Finished(u64, Result<(), Error>),
}

/// Stops all trainings if a thread panics.
struct StopsOnPanic<'s>(&'s AtomicBool);

impl Drop for StopsOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// The progress of all trainings together.
struct Shown<'s, 'c> {
    sizes: Option<&'s Sizes<'s>>,
    show: Option<&'s mut (dyn FnMut(Progress) + 'c)>,
    /// Rows of finished trainings.
    finished: u64,
    /// Rows that each of the others has read.
    running: BTreeMap<u64, u64>,
    is_new: bool,
}

impl<'s, 'c> Shown<'s, 'c> {
    fn new(sizes: Option<&'s Sizes<'s>>, progress: &'s mut Option<&'c mut dyn FnMut(Progress)>) -> Self {
        let show = progress.as_deref_mut().filter(|_| sizes.is_some());
        Self { sizes, show, finished: 0, running: BTreeMap::new(), is_new: false }
    }

    fn training_is(&mut self, i: u64, at: Progress) {
        let Some(sizes) = self.sizes else { return };
        self.running.insert(i, at.pass.saturating_mul(sizes.records_of_each).saturating_add(at.rows));
        self.is_new = true;
    }

    /// A training that reports nothing, since its time may depend on the records, does not count at its end either.
    fn is_finished(&mut self, i: u64) {
        let (Some(sizes), Some(_)) = (self.sizes, self.running.remove(&i)) else { return };
        self.finished = self.finished.saturating_add((sizes.rows)(i));
        self.is_new = true;
    }

    /// Shows what has changed.
    fn show(&mut self) {
        let (Some(sizes), Some(show), true) = (self.sizes, &mut self.show, self.is_new) else { return };
        self.is_new = false;
        let rows = self.running.values().fold(self.finished, |sum, rows| sum.saturating_add(*rows));
        let records = sizes.records.max(1);
        show(Progress { pass: rows / records, rows: rows % records });
    }
}
