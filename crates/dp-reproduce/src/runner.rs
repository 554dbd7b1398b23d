//! Running cells in parallel, keeping each as it finishes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::algorithm;
use crate::dataset::{DataSet, Prepared};
use crate::error::Error;
use crate::setting::Cell;
use crate::store::Store;

/// How far the runs have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Runs that have finished, those of earlier calls not counted.
    pub finished: u64,
    /// Runs to do.
    pub total: u64,
    /// What is learnt from now.
    pub data: DataSet,
}

/// Where data come from, how many threads there are, and who watches.
pub struct Runner<'r> {
    /// The folder with the files of the data sets.
    pub folder: &'r Path,
    /// Threads; timed runs have the machine to themselves whatever this says.
    pub threads: usize,
    /// Ends the runs soon after it becomes true; what had finished is kept.
    pub cancelled: &'r AtomicBool,
    /// Called when a data set has been read and after every run.
    pub progress: &'r mut dyn FnMut(Progress),
}

/// What is done with the result of a run.
type Keep<'k> = dyn FnMut(&Cell, Result<algorithm::Outcome, Error>) -> Result<Progress, Error> + 'k;

/// A run whose algorithm refused its public numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Which run.
    pub run: String,
    /// Why.
    pub reason: String,
}

/// Whether an algorithm refused what it was asked for, before any record was read.
fn is_refusal(error: &dp_optim::Error) -> bool {
    use dp_optim::Error as E;
    // Of the accountant's errors the one that says that no noise suffices, as under too small a regulariser.
    let no_noise = |error: &dp_accountant::Error| matches!(error, dp_accountant::Error::Unreachable { .. });
    match error {
        E::OutOfRange { .. } | E::Count { .. } | E::NotProved { .. } => true,
        E::Accountant(error) => no_noise(error),
        _ => false,
    }
}

impl Runner<'_> {
    /// Runs every cell that `store` does not have yet, once each however often it is named.
    ///
    /// The result of a cell depends on its setting and repetition alone: neither on the number of threads nor on the
    /// order. Only times do, which is why timed cells come last and one by one.
    ///
    /// What an algorithm refuses at its public numbers, such as a published noise whose epsilon no theorem shows, is
    /// returned and not kept: it has no result.
    ///
    /// # Errors
    /// The first failure; runs that had finished are in the store.
    pub fn run(&mut self, cells: &[Cell], store: &mut Store) -> Result<Vec<Refused>, Error> {
        let mut pending: BTreeMap<DataSet, BTreeMap<String, Cell>> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| store.get(cell).is_none()) {
            pending.entry(cell.setting.data).or_default().insert(cell.key(), *cell);
        }
        let total = pending.values().map(BTreeMap::len).sum::<usize>() as u64;
        let (mut finished, mut refused) = (0, Vec::new());
        for (data, cells) in pending {
            (self.progress)(Progress { finished, total, data });
            let prepared = data.load(self.folder)?;
            let (timed, free): (Vec<Cell>, Vec<Cell>) = cells.into_values().partition(|cell| cell.setting.timed);
            for (cells, threads) in [(free, self.threads.max(1)), (timed, 1)] {
                self.run_on(&cells, threads, &prepared, &mut |cell, result| {
                    match result {
                        Ok(outcome) => store.append(cell, outcome)?,
                        Err(Error::Training { run, source }) if is_refusal(&source) => {
                            refused.push(Refused { run, reason: source.to_string() });
                        }
                        Err(error) => return Err(error),
                    }
                    finished += 1;
                    Ok(Progress { finished, total, data })
                })?;
            }
        }
        Ok(refused)
    }

    fn run_on(&mut self, cells: &[Cell], threads: usize, data: &Prepared, keep: &mut Keep<'_>) -> Result<(), Error> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let cancelled = self.cancelled;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..threads.min(cells.len()) {
                let (sender, next, stop) = (sender.clone(), &next, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                        // The receiver is gone after a failure elsewhere.
                        if sender.send((cell, algorithm::run(cell, data, cancelled))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut failure = None;
            for (cell, result) in receiver {
                match keep(cell, result) {
                    Ok(progress) => (self.progress)(progress),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        failure.get_or_insert(error);
                    }
                }
                if cancelled.load(Ordering::Relaxed) {
                    stop.store(true, Ordering::Relaxed);
                    failure.get_or_insert(Error::Interrupted);
                }
            }
            failure.map_or(Ok(()), Err)
        })
    }
}
