//! Several trainings on the records of one source: side by side on several threads, or one after the other.

#[cfg(test)]
mod tests;

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use dp_data::{Reader, RowSource, Workers};
use dp_losses::Real;
use dp_mechanisms::{LentRng, ReleaseRng as _};

use super::control::{Control, Progress};
use crate::error::Error;

/// The time between two checks for a cancellation.
const INTERVAL: Duration = Duration::from_millis(20);

/// The numbers of several trainings; sizes are for progress reports only.
pub(crate) struct Trainings<'r> {
    /// Number of trainings.
    pub number: u64,
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
    /// If the source has [readers](RowSource::readers), trainings run side by side. Progress is that of all together, and reported
    /// on the calling thread.
    ///
    /// # Errors
    /// An error of `train` or of the source, after which no training is begun; [`Error::Interrupted`].
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
            let readers = source.readers(threads)?.unwrap_or_default();
            if self.side_by_side(readers, rng, control, train)? {
                return Ok(());
            }
        }
        let &mut Control { cancelled, ref mut progress, gradients, workers } = control;
        let (reports, mut shown) = (progress.is_some(), Shown::new(self, progress));
        for i in 0..self.number {
            let mut show = |at| shown.training_is(i, at);
            let progress = reports.then_some(&mut show as &mut dyn FnMut(Progress));
            let own = &mut Control { cancelled, progress, gradients, workers };
            train(i, source, &mut rng.child().lend(), own)?;
            shown.is_finished(i);
        }
        Ok(())
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

    /// Returns false, with nothing done, if there are no readers or no threads for them.
    fn side_by_side<F: Real>(
        &self,
        readers: Vec<Reader<'_, F>>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        train: &Train<'_, F>,
    ) -> Result<bool, Error> {
        let &mut Control { cancelled, ref mut progress, gradients, workers } = control;
        let (reports, mut shown) = (progress.is_some(), Shown::new(self, progress));
        let stop = AtomicBool::new(false);
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
                let own =
                    &mut Control { cancelled: Some(&stop), progress, gradients, workers: self.workers_of(i, workers) };
                let result = train(i, &mut *source, &mut rng.lend(), own);
                let fails = result.is_err();
                drop(reports_to.send(Report::Finished(i, result)));
                // After the report, which so comes before those of the trainings that this stops.
                if fails {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        };
        let (mut started, mut outcome) = (false, Ok(()));
        thread::scope(|scope| {
            let _stops = StopsOnPanic(&stop);
            let (sender, receiver) = channel();
            for reader in readers {
                let (sender, work) = (sender.clone(), &work);
                started |= thread::Builder::new().spawn_scoped(scope, move || work(reader, sender)).is_ok();
            }
            drop(sender);
            loop {
                if outcome.is_ok() && cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                    outcome = Err(Error::Interrupted);
                    stop.store(true, Ordering::Relaxed);
                }
                match receiver.recv_timeout(INTERVAL) {
                    Ok(Report::Progress(i, at)) => shown.training_is(i, at),
                    Ok(Report::Finished(i, Ok(()))) => shown.is_finished(i),
                    Ok(Report::Finished(_, Err(error))) => {
                        if outcome.is_ok() {
                            outcome = Err(error);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        outcome.map(|()| started)
    }

    /// Returns the threads of a training: the last ones have several if fewer trainings than threads are left.
    fn workers_of(&self, i: u64, workers: Workers) -> Workers {
        let threads = workers.threads() as u64;
        let together = threads.min(self.number - i / threads * threads);
        Workers::new(NonZeroUsize::new((threads / together) as usize).unwrap_or(NonZeroUsize::MIN))
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
    trainings: &'s Trainings<'s>,
    progress: &'s mut Option<&'c mut dyn FnMut(Progress)>,
    /// Rows of finished trainings.
    finished: u64,
    /// Rows that each of the others has read.
    running: BTreeMap<u64, u64>,
}

impl<'s, 'c> Shown<'s, 'c> {
    fn new(trainings: &'s Trainings<'s>, progress: &'s mut Option<&'c mut dyn FnMut(Progress)>) -> Self {
        Self { trainings, progress, finished: 0, running: BTreeMap::new() }
    }

    fn training_is(&mut self, i: u64, at: Progress) {
        self.running.insert(i, at.pass.saturating_mul(self.trainings.records_of_each).saturating_add(at.rows));
        self.show();
    }

    fn is_finished(&mut self, i: u64) {
        self.running.remove(&i);
        if self.progress.is_some() {
            self.finished = self.finished.saturating_add((self.trainings.rows)(i));
            self.show();
        }
    }

    fn show(&mut self) {
        let Some(show) = &mut self.progress else { return };
        let rows = self.running.values().fold(self.finished, |sum, rows| sum.saturating_add(*rows));
        let records = self.trainings.records.max(1);
        show(Progress { pass: rows / records, rows: rows % records });
    }
}
