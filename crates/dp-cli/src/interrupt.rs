//! Ctrl-C: temporary files are removed, then the process ends with 130, wherever it was.
//!
//! A file gets its final name while the registry is locked, so an interrupt finds either the temporary file, which it
//! removes, or the complete one. Where JSON was asked for, stdout gets its one value all the same, unless a result was
//! begun already.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::Console;

static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Whether stdout still waits for its one JSON value.
static JSON_AWAITED: AtomicBool = AtomicBool::new(false);

/// Says that stdout is to hold one JSON value, even after an interrupt.
pub(crate) fn await_json() {
    JSON_AWAITED.store(true, Ordering::SeqCst);
}

/// Says that the one JSON value is being written.
pub(crate) fn json_begins() {
    JSON_AWAITED.store(false, Ordering::SeqCst);
}

fn registry() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler for SIGINT, SIGTERM and SIGHUP.
pub(crate) fn install() {
    // Fails only where a handler exists already, as when several commands run in one process.
    let _ = ctrlc::set_handler(|| {
        // Held until the process is gone: no file can get its final name any more.
        let paths = registry();
        for path in paths.iter() {
            let _ = std::fs::remove_file(path);
        }
        if JSON_AWAITED.load(Ordering::SeqCst) {
            let failure = Failure::new(ExitStatus::Interrupted, "run.interrupted", "interrupted by a signal");
            Console { json: true, ..Console::default() }
                .failure(&failure.help("run the command again; nothing half-written is left"));
        }
        std::process::exit(i32::from(ExitStatus::Interrupted.number()));
    });
}

/// Creates a temporary file and registers it in one step that an interrupt cannot split.
pub(crate) fn register<T>(create: impl FnOnce() -> std::io::Result<(T, PathBuf)>) -> std::io::Result<T> {
    let mut paths = registry();
    let (file, path) = create()?;
    paths.push(path);
    Ok(file)
}

/// Runs `rename` with interrupts held off and forgets `path` afterwards.
pub(crate) fn finish<T>(path: &Path, rename: impl FnOnce() -> T) -> T {
    let mut paths = registry();
    let result = rename();
    paths.retain(|known| known != path);
    result
}
