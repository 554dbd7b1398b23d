//! The checkpoint of a training: written now and then, and once more when a signal ends the command.
//!
//! A checkpoint names the steps that may begin before the next one is written. It is on disk before they do, so that a training
//! that goes on makes none of them twice. After a power failure this needs a file system that keeps a folder once it is flushed.
//! The file is locked while a training uses it.

#[cfg(unix)]
use std::fs::Metadata;
use std::fs::{File, TryLockError};
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

/// A checkpoint from which a training goes on.
pub(super) struct Resumed {
    pub(super) checkpoint: Checkpoint,
    /// Locked until the next checkpoint is.
    _held: File,
}

/// Writes the checkpoints of a training.
pub(super) struct Keeper<'c> {
    path: &'c Path,
    console: &'c Console,
    /// The checkpoint on disk, locked.
    held: Option<File>,
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
/// `checkpoint.*`, `output.*`.
pub(super) fn keeper<'c>(
    config: &'c NetworkConfig,
    plan: &NetworkPlan,
    resumed: Option<&Resumed>,
    console: &'c Console,
) -> Result<Option<Keeper<'c>>, Failure> {
    let Some(path) = config.args.checkpoint.as_deref() else { return Ok(None) };
    if let Some(Resumed { checkpoint, .. }) = resumed {
        plan.check_checkpoint(checkpoint).map_err(|error| at_file(error.into(), path))?;
    } else if path.exists() {
        open(path)?;
        console.warn("the checkpoint of an earlier training is replaced: what that training has cost adds to this one");
    }
    let steps = plan.training().method.steps();
    let every = steps.div_ceil(CHECKPOINTS).max(1);
    let over = resumed.map_or(0, |resumed| resumed.checkpoint.over());
    let begun = steps.min(over.saturating_add(every));
    let first = match resumed {
        Some(Resumed { checkpoint, .. }) => checkpoint.clone().allowing_until(begun),
        None => plan.initial_checkpoint(begun),
    };
    let held = atomic::write_locked(path, config.args.force || config.args.resume, &first.to_bytes()?)?;
    interrupt::advise("run the same command with --resume to go on");
    let (signalled, failure) = (interrupt::await_before_end(), None);
    Ok(Some(Keeper { path, console, held, steps, every, begun, signalled, failure }))
}

fn at_file(failure: Failure, path: &Path) -> Failure {
    failure.at_flag("--checkpoint").at_file(atomic::shown(path))
}

/// Opens a checkpoint that no other training uses, and locks it.
fn open(path: &Path) -> Result<File, Failure> {
    let unreadable = |error: io::Error| {
        let failure = Failure::new(ExitStatus::Failed, "file.open", format!("cannot read the checkpoint: {error}"));
        at_file(failure.help("omit --resume to start a training"), path)
    };
    let file = File::open(path).map_err(unreadable)?;
    // It may have been replaced between the opening and the lock. A file system without locks has no second training to find.
    let is_used = matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !is_at(&file, path);
    if is_used {
        let failure = Failure::new(ExitStatus::Failed, "checkpoint.used", "another training uses the checkpoint");
        return Err(at_file(failure.help("let it end, or name another file"), path));
    }
    Ok(file)
}

/// Returns whether `path` names this file.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let of = |metadata: Metadata| (metadata.dev(), metadata.ino());
        matches!((file.metadata().map(of), path.metadata().map(of)), (Ok(opened), Ok(named)) if opened == named)
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

/// Reads the checkpoint from which a training is to go on, if it is, and counts the steps that may have begun.
///
/// # Errors
/// `checkpoint.format`, `checkpoint.used`, `file.open`, `memory.exhausted`.
pub(super) fn resumed(config: &NetworkConfig) -> Result<Option<Resumed>, Failure> {
    let Some(path) = config.args.checkpoint.as_deref().filter(|_| config.args.resume) else { return Ok(None) };
    let held = open(path)?;
    let checkpoint = read(&held, path)?.after_loss();
    Ok(Some(Resumed { checkpoint, _held: held }))
}

/// Refuses to replace a file that is no checkpoint.
///
/// # Errors
/// As [`resumed`].
pub(super) fn check_replaced(config: &NetworkConfig) -> Result<(), Failure> {
    let replaced =
        config.args.checkpoint.as_deref().filter(|path| config.args.force && !config.args.resume && path.exists());
    replaced.map_or(Ok(()), |path| {
        let help = "name another file, or remove this one if no training is to go on from it";
        read(&open(path)?, path).map(drop).map_err(|failure| failure.help(help))
    })
}

fn read(file: &File, path: &Path) -> Result<Checkpoint, Failure> {
    let bytes = memory::read(file, LARGEST, "the checkpoint").map_err(|error| {
        let failure = match memory::of_io(&error) {
            Some(error) => error.into(),
            None => Failure::new(ExitStatus::Failed, "file.open", format!("cannot read the checkpoint: {error}")),
        };
        at_file(failure, path)
    })?;
    Checkpoint::parse(&bytes).map_err(|error| at_file(error.into(), path))
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
        let no_state = || Failure::new(ExitStatus::Failed, "train.failed", "this algorithm has no checkpoints");
        let written = step
            .checkpoint(begun)
            .ok_or_else(no_state)
            .and_then(|checkpoint| atomic::write_locked(self.path, true, &checkpoint.to_bytes()?));
        match written {
            // The old one is unlocked only now.
            Ok(held) => (self.held, self.begun) = (held, begun),
            Err(failure) => {
                cancelled.store(true, Ordering::Relaxed);
                let help = "the last checkpoint is still there, and the steps since then are paid for: make room, then run the \
                            same command with --resume";
                self.failure = Some(failure.help(help));
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

    /// Ends the keeping, so that signals no longer wait for a step. Returns the checkpoint, locked.
    ///
    /// # Errors
    /// The reason why a checkpoint could not be written, if that ended the training.
    pub(super) fn end(self) -> Result<Option<File>, Failure> {
        self.failure.map_or(Ok(self.held), Err)
    }
}
