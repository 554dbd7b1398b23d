//! Ctrl-C: temporary files are removed, then the process ends with 130, wherever it was.
//!
//! A file gets its final name while the registry is locked, so an interrupt finds either the temporary file, which it
//! removes, or the complete one.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exit_code::ExitStatus;

static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

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
