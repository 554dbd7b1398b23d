//! Progress reports and cancellation of a run.

use core::sync::atomic::{AtomicBool, Ordering};

use dp_data::Workers;

use crate::error::Error;

/// The progress of a run, for a progress bar: it contains nothing that depends on a record.
///
/// A run on sampled batches has no passes: it counts the mean size of a batch, never the actual size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current pass, from 0.
    pub pass: u64,
    /// Rows read in this pass.
    pub rows: u64,
}

/// Cancellation, progress and threads of a run; by default it has one thread, and the others are not set.
///
/// # Examples
/// ```
/// use core::sync::atomic::AtomicBool;
/// use dp_optim::engine::Control;
/// let cancelled = AtomicBool::new(false);
/// let mut show = |progress: dp_optim::engine::Progress| assert_eq!(progress.pass, 0);
/// let control = Control { cancelled: Some(&cancelled), progress: Some(&mut show), ..Control::default() };
/// # let _ = control;
/// ```
#[derive(Default)]
pub struct Control<'c> {
    /// The run ends with [`Error::Interrupted`] soon after this becomes true. Nothing is released then.
    pub cancelled: Option<&'c AtomicBool>,
    /// Called at the end of each pass and at regular intervals within it.
    pub progress: Option<&'c mut dyn FnMut(Progress)>,
    /// Minimum number of gradients that the search for a certified minimiser computes, see
    /// [`minimise`](crate::engine::minimise): idle gradients follow where fewer were enough.
    pub gradients: Option<u64>,
    /// The threads of full gradients, of sums of second moments, and of several trainings side by side. No bit of the result depends
    /// on their number.
    pub workers: Workers,
}

/// Rows between two checks of the cancellation flag.
const INTERVAL: u64 = 1 << 14;

impl Control<'_> {
    /// Returns an error if the run has been cancelled.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<(), Error> {
        match self.cancelled {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    pub(super) fn report(&mut self, progress: Progress) {
        if let Some(show) = &mut self.progress {
            show(progress);
        }
    }
}

/// Counts the rows of a pass and checks the [`Control`] at regular intervals.
pub(crate) struct Pace<'p, 'c> {
    control: &'p mut Control<'c>,
    progress: Progress,
    next: u64,
    quiet: bool,
    /// Rows reported as one pass, for runs without passes.
    per_pass: Option<u64>,
}

impl<'p, 'c> Pace<'p, 'c> {
    pub(crate) fn new(control: &'p mut Control<'c>, pass: u64) -> Self {
        Self { control, progress: Progress { pass, rows: 0 }, next: INTERVAL, quiet: false, per_pass: None }
    }

    /// For runs without passes: every `records` rows are reported as one pass.
    pub(crate) fn nominal(control: &'p mut Control<'c>, records: u64) -> Self {
        Self { per_pass: Some(records.max(1)), ..Self::new(control, 0) }
    }

    /// For runs with a private number of passes: they can be cancelled, and report nothing.
    pub(crate) fn quiet(control: &'p mut Control<'c>) -> Self {
        Self { quiet: true, ..Self::new(control, 0) }
    }

    #[inline]
    pub(crate) fn advance(&mut self, rows: usize) -> Result<(), Error> {
        self.progress.rows += rows as u64;
        if self.progress.rows < self.next {
            return Ok(());
        }
        self.next = self.progress.rows + INTERVAL;
        self.control.check()?;
        if !self.quiet {
            self.control.report(self.reported());
        }
        Ok(())
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.control.check()
    }

    fn reported(&self) -> Progress {
        let Progress { pass, rows } = self.progress;
        match self.per_pass {
            Some(records) => Progress { pass: rows / records, rows: rows % records },
            None => Progress { pass, rows },
        }
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        self.control.check()?;
        self.control.report(self.reported());
        Ok(())
    }
}
