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

/// Returns the keeper of the checkpoints, if they are asked for, of a training that may go on from one.
///
/// # Errors
/// `checkpoint.other`, `output.*`.
pub(super) fn keeper<'c>(
    config: &'c NetworkConfig,
    plan: &NetworkPlan,
    resumed: Option<&Checkpoint>,
    console: &'c Console,
) -> Result<Option<Keeper<'c>>, Failure> {
    let Some(path) = config.checkpoint.as_deref() else { return Ok(None) };
    if let Some(checkpoint) = resumed {
        plan.check_checkpoint(checkpoint).map_err(|error| at_file(error.into(), path))?;
    }
    let steps = plan.training().method.steps();
    let every = steps.div_ceil(CHECKPOINTS).max(1);
    let over = resumed.map_or(0, Checkpoint::over);
    let begun = steps.min(over.saturating_add(every));
    let first = match resumed {
        Some(checkpoint) => checkpoint.clone().serving_until(begun),
        None => plan.initial_checkpoint(begun),
    };
    write(path, config.force || config.resume, &first)?;
    let (signalled, failure) = (interrupt::await_before_end(), None);
    Ok(Some(Keeper { path, console, steps, every, begun, signalled, failure }))
}

fn at_file(failure: Failure, path: &Path) -> Failure {
    failure.at_flag("--resume").at_file(atomic::shown(path))
}

/// Reads the checkpoint from which a training is to go on, if it is, and counts the steps that may have begun.
///
/// # Errors
/// `checkpoint.format`, `file.open`, `memory.exhausted`.
pub(super) fn resumed(config: &NetworkConfig) -> Result<Option<Checkpoint>, Failure> {
    let Some(path) = config.checkpoint.as_deref().filter(|_| config.resume) else { return Ok(None) };
    let unreadable = |error: io::Error| {
        let failure = match memory::of_io(&error) {
            Some(error) => error.into(),
            None => Failure::new(ExitStatus::Failed, "file.open", format!("cannot read the checkpoint: {error}"))
                .help("omit --resume to start a training"),
        };
        at_file(failure, path)
    };
    let bytes = File::open(path).and_then(|file| memory::read(file, LARGEST, "the checkpoint")).map_err(unreadable)?;
    let checkpoint = Checkpoint::parse(&bytes).map_err(|error| at_file(error.into(), path))?;
    Ok(Some(checkpoint.after_loss()))
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
            interrupt::advise("run the same command with --resume to go on");
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
