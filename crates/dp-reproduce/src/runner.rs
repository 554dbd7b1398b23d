//! Parallel execution of cells; each result is stored as it finishes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::algorithm::{self, Outcome};
use crate::cell::{Cell, Experiment};
use crate::dataset::{DataSet, Fold, ImageSets, Prepared, Records};
use crate::error::Error;
use crate::store::Store;
use crate::{network, ranker};

/// The progress of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of finished runs, excluding those of earlier calls.
    pub finished: u64,
    /// Number of runs to do.
    pub total: u64,
    /// The current data set.
    pub data: DataSet,
}

/// The data folder, the number of threads, and the observer.
pub struct Runner<'r> {
    /// The folder with the files of the data sets.
    pub folder: &'r Path,
    /// Number of threads; timed runs always run alone. If no thread can be started, the calling one does everything.
    pub threads: usize,
    /// Ends the runs soon after it becomes true; finished runs are kept.
    pub cancelled: &'r AtomicBool,
    /// Called when a data set has been read and after every run.
    pub progress: &'r mut dyn FnMut(Progress),
}

/// Runs measured by one training.
type Job = Vec<Cell>;

/// The handler of the results of a training.
type Keep<'k> = dyn FnMut(&Job, Result<Vec<Outcome>, Error>) -> Result<Progress, Error> + 'k;

/// A data set in memory.
enum Content {
    Rows(Box<Prepared>),
    Lists(Vec<Fold>),
    Images(Box<ImageSets>),
}

impl Content {
    fn load(data: DataSet, folder: &Path) -> Result<Self, Error> {
        match data.records() {
            Records::Rows => data.load(folder).map(|rows| Self::Rows(Box::new(rows))),
            Records::Lists => data.load_lists(folder).map(Self::Lists),
            Records::Images => data.load_images(folder).map(|images| Self::Images(Box::new(images))),
        }
    }

    /// Returns the outcomes of the runs of a job, in their order.
    fn run(&self, job: &Job, cancelled: &AtomicBool) -> Result<Vec<Outcome>, Error> {
        match self {
            Self::Rows(rows) => {
                let one = |cell: &Cell| match cell.experiment {
                    Experiment::Model(setting) => algorithm::run(cell, &setting, rows, cancelled),
                    _ => Err(unfit(cell)),
                };
                job.iter().map(one).collect()
            }
            Self::Lists(folds) => {
                let ranker = |cell: &Cell| match cell.experiment {
                    Experiment::Ranker(setting) => Ok((*cell, setting)),
                    _ => Err(unfit(cell)),
                };
                ranker::run(&job.iter().map(ranker).collect::<Result<Vec<_>, _>>()?, folds, cancelled)
            }
            Self::Images(images) => {
                let network = |cell: &Cell| match cell.experiment {
                    Experiment::Network(setting) => Ok((*cell, setting)),
                    _ => Err(unfit(cell)),
                };
                network::run(&job.iter().map(network).collect::<Result<Vec<_>, _>>()?, images, cancelled)
            }
        }
    }
}

/// Creates the error for an experiment with other records than those of its data set, such as a ranker of rows.
fn unfit(cell: &Cell) -> Error {
    Error::Data { file: cell.experiment.data().to_string(), what: format!("it does not fit what is run: {cell}") }
}

/// A run whose algorithm refused its public numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The run.
    pub run: String,
    /// The reason.
    pub reason: String,
}

/// Converts an error of an algorithm that refused its numbers before reading any record; returns other errors unchanged.
fn refused(error: Error) -> Result<Refused, Error> {
    use dp_optim::Error as E;
    use dp_rank::train::TrainError as R;
    // Of the accountant's errors, only that no noise suffices, for example because the regulariser is too small.
    let no_noise = |error: &dp_accountant::Error| matches!(error, dp_accountant::Error::Unreachable { .. });
    let refuses = match &error {
        Error::Training { source, .. } => match source {
            E::OutOfRange { .. } | E::Count { .. } | E::NotProved { .. } => true,
            E::Accountant(error) => no_noise(error),
            _ => false,
        },
        Error::Ranking { source, .. } => match source {
            R::OutOfRange { .. } => true,
            R::Accountant(error) => no_noise(error),
            _ => false,
        },
        _ => false,
    };
    match error {
        Error::Training { run, source } if refuses => Ok(Refused { run, reason: source.to_string() }),
        Error::Ranking { run, source } if refuses => Ok(Refused { run, reason: source.to_string() }),
        error => Err(error),
    }
}

impl Runner<'_> {
    /// Runs every cell that `store` does not contain, once each even if repeated; cells of the same training are measured
    /// together.
    ///
    /// The result of a cell depends only on its setting and repetition, not on the number of threads or the order. Only times
    /// do, so timed cells run last and one by one.
    ///
    /// A refusal by an algorithm at its public numbers, for example of published noise whose epsilon no theorem proves, is
    /// returned and not stored: it has no result.
    ///
    /// # Errors
    /// The first failure; finished runs are in the store.
    pub fn run(&mut self, cells: &[Cell], store: &mut Store) -> Result<Vec<Refused>, Error> {
        let mut pending: BTreeMap<DataSet, BTreeMap<String, BTreeMap<String, Cell>>> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| store.get(cell).is_none()) {
            let of_training =
                pending.entry(cell.experiment.data()).or_default().entry(cell.training().key()).or_default();
            of_training.insert(cell.key(), *cell);
        }
        let total = pending.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum::<usize>() as u64;
        let (mut finished, mut without_result) = (0, Vec::new());
        for (data, trainings) in pending {
            (self.progress)(Progress { finished, total, data });
            let content = Content::load(data, self.folder)?;
            let jobs = trainings.into_values().map(|cells| cells.into_values().collect::<Job>());
            let (timed, free): (Vec<Job>, Vec<Job>) =
                jobs.partition(|job| job.iter().any(|cell| cell.experiment.is_timed()));
            for (jobs, threads) in [(free, self.threads.max(1)), (timed, 1)] {
                self.run_on(&jobs, threads, &content, &mut |job, result| {
                    match result {
                        Ok(outcomes) => {
                            job.iter().zip(outcomes).try_for_each(|(cell, outcome)| store.append(cell, outcome))?;
                        }
                        Err(error) => without_result.push(refused(error)?),
                    }
                    finished += job.len() as u64;
                    Ok(Progress { finished, total, data })
                })?;
            }
        }
        Ok(without_result)
    }

    fn run_on(&mut self, jobs: &[Job], threads: usize, content: &Content, keep: &mut Keep<'_>) -> Result<(), Error> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let cancelled = self.cancelled;
        let following = || {
            let more = !stop.load(Ordering::Relaxed);
            more.then(|| jobs.get(next.fetch_add(1, Ordering::Relaxed))).flatten()
        };
        let work = |sender: mpsc::Sender<_>| {
            while let Some(job) = following() {
                // The receiver is gone after a failure elsewhere.
                if sender.send((job, content.run(job, cancelled))).is_err() {
                    return;
                }
            }
        };
        let mut failure = None;
        let mut settle = |job, result| {
            match keep(job, result) {
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
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..threads.min(jobs.len()) {
                let (sender, work) = (sender.clone(), &work);
                // Fewer threads than requested suffice.
                if std::thread::Builder::new().spawn_scoped(scope, move || work(sender)).is_err() {
                    break;
                }
            }
            drop(sender);
            receiver.into_iter().for_each(|(job, result)| settle(job, result));
        });
        // Everything that is left if no thread could be started, otherwise nothing.
        while let Some(job) = following() {
            settle(job, content.run(job, cancelled));
        }
        failure.map_or(Ok(()), Err)
    }
}
