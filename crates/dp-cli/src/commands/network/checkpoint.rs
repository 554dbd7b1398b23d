//! The checkpoint of a training: written now and then, and once more when a signal ends the command.
//!
//! A checkpoint names the steps that may begin before the next one is written. It is on disk before they do, so that a training
//! that goes on after a power failure makes none of them twice.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use dp::network::{Checkpoint, NetworkPlan, NetworkStep};
use dp_data::memory;

use super::config::NetworkConfig;
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::Console;

/// Number of checkpoints of a whole training.
const CHECKPOINTS: u64 = 50;

/// Largest size of a checkpoint in bytes.
const LARGEST: u64 = 1 << 36;

/// Writes the checkpoints of a training.
pub(super) struct Keeper<'c> {
    path: &'c Path,
    console: &'c Console,
    steps: u64,
    /// Number of steps from one checkpoint to the next.
    every: u64,
    /// The last step that the checkpoint on disk allows for.
    begun: u64,
    signalled: interrupt::Awaited,
    /// The reason why a checkpoint could not be written.
    failure: Option<Failure>,
}

/// Returns the keeper of the checkpoints, if they are asked for, and the checkpoint from which the training goes on.
///
/// # Errors
/// `checkpoint.*`, `file.open`, `output.*`.
pub(super) fn keeper<'c>(
    config: &'c NetworkConfig,
    plan: &NetworkPlan,
    console: &'c Console,
) -> Result<(Option<Keeper<'c>>, Option<Checkpoint>), Failure> {
    let Some(path) = config.checkpoint.as_deref() else { return Ok((None, None)) };
    let resumed = config.resume.then(|| read(path, plan)).transpose()?;
    let steps = plan.training().method.steps();
    let every = steps.div_ceil(CHECKPOINTS).max(1);
    let over = resumed.as_ref().map_or(0, Checkpoint::over);
    let begun = steps.min(over.saturating_add(every));
    let first = match &resumed {
        Some(checkpoint) => checkpoint.clone().serving_until(begun),
        None => plan.initial_checkpoint(begun),
    };
    write(path, config.force || config.resume, &first)?;
    let (signalled, failure) = (interrupt::await_before_end(), None);
    Ok((Some(Keeper { path, console, steps, every, begun, signalled, failure }), resumed))
}

/// Reads a checkpoint and counts the steps that may have begun.
fn read(path: &Path, plan: &NetworkPlan) -> Result<Checkpoint, Failure> {
    let at_file = |failure: Failure| failure.at_flag("--resume").at_file(atomic::shown(path));
    let unreadable = |error: io::Error| match memory::of_io(&error) {
        Some(error) => at_file(error.into()),
        None => at_file(
            Failure::new(ExitStatus::Failed, "file.open", format!("cannot read the checkpoint: {error}"))
                .help("omit --resume to start a training"),
        ),
    };
    let bytes = File::open(path).and_then(|file| memory::read(file, LARGEST, "the checkpoint")).map_err(unreadable)?;
    let checkpoint = Checkpoint::parse(&bytes).map_err(|error| at_file(error.into()))?;
    plan.check_checkpoint(&checkpoint).map_err(|error| at_file(error.into()))?;
    Ok(checkpoint.after_loss())
}

fn write(path: &Path, replace: bool, checkpoint: &Checkpoint) -> Result<(), Failure> {
    atomic::write(path, replace, &checkpoint.to_bytes()?)
}

impl Keeper<'_> {
    /// Writes a checkpoint after a step if it is time; sets `cancelled` if it cannot.
    ///
    /// If a signal ends the command, it writes one after which nothing is lost, and does not return.
    pub(super) fn see(&mut self, step: &NetworkStep<'_>, cancelled: &AtomicBool) {
        let ends = self.signalled.is_asked();
        if !ends && step.number < self.begun {
            return;
        }
        let begun = if ends { step.number } else { self.steps.min(step.number.saturating_add(self.every)) };
        // Only ADMM keeps more than vectors.
        let Some(checkpoint) = step.checkpoint(begun) else { return };
        match write(self.path, true, &checkpoint) {
            Ok(()) => self.begun = begun,
            Err(failure) => {
                cancelled.store(true, Ordering::Relaxed);
                self.failure = Some(failure);
                return;
            }
        }
        if ends {
            self.console.note(&format!(
                "interrupted after step {} of {}: the same command with --resume goes on",
                step.number, self.steps
            ));
            self.signalled.give_way();
        }
    }

    /// Returns the reason why a checkpoint could not be written, if that ended the training.
    pub(super) fn failure(self) -> Option<Failure> {
        self.failure
    }
}
