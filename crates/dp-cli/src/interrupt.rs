//! Ctrl-C: temporary files are removed, then the process ends with 130, wherever it was.
//!
//! Files of one run get their final names while the registry is locked, so an interrupt finds either the temporary files,
//! which it removes, or the complete ones. Where JSON was asked for, stdout gets its one value all the same, unless a result was
//! begun already.

use std::path::PathBuf;
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

/// Ends the process: what is registered is removed, and no file gets its final name any more.
fn end() -> ! {
    // Held until the process is gone.
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
}

/// Installs the handler for SIGINT, SIGTERM and SIGHUP, but for those that this process was started to ignore, as `nohup`
/// does; and makes a file beyond the limit of its size (`ulimit -f`) an error of the write, not the end of the process.
///
/// Where no thread can be started the signals do what they do by default: the process ends, and leaves a `.part` file.
#[cfg(unix)]
pub(crate) fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

    // Nobody looks at the flag: with a handler, whatever it does, the write fails.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::new(AtomicBool::new(false)));
    let ignored = ignored();
    let signals = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |&signal| ignored >> (signal - 1) & 1 == 0);
    let (sender, installed) = std::sync::mpsc::channel();
    // Installed on the thread itself: a handler without a thread that waits for it would swallow signals.
    let thread = std::thread::Builder::new().spawn(move || {
        let signals = signal_hook::iterator::Signals::new(signals);
        drop(sender);
        if let Ok(mut signals) = signals
            && signals.forever().next().is_some()
        {
            end();
        }
    });
    if thread.is_ok() {
        // An error says that it is installed, as far as it could be.
        let _: Result<(), _> = installed.recv();
    }
}

/// The signals that this process was started to ignore, a bit for each; none where the system does not say.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Installs the handler for Ctrl-C and requests to end.
#[cfg(not(unix))]
pub(crate) fn install() {
    // Fails only where a handler exists already, as when several commands run in one process.
    let _ = ctrlc::set_handler(|| end());
}

/// Creates a temporary file and registers it in one step that an interrupt cannot split.
pub(crate) fn register<T>(create: impl FnOnce() -> std::io::Result<(T, PathBuf)>) -> std::io::Result<T> {
    let mut paths = registry();
    let (file, path) = create()?;
    paths.push(path);
    Ok(file)
}

/// Runs `rename` with interrupts held off and forgets the temporary files afterwards.
pub(crate) fn finish<T>(temporary: &[PathBuf], rename: impl FnOnce() -> T) -> T {
    let mut paths = registry();
    let result = rename();
    paths.retain(|known| !temporary.contains(known));
    result
}
