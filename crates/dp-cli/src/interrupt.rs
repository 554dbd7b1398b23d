//! Signal handling: Ctrl-C removes temporary files and ends the process with exit code 130. Exhausted memory that no caller
//! reports ends it in the same way with exit code 1.
//!
//! A training that keeps checkpoints ends its step and writes one first; a second signal (on
//! Unix) does not wait for that.
//!
//! After the files are removed, statements that a server runs for the process are cancelled; a second signal does not wait for
//! that.
//!
//! Files of one run are renamed while the registry is locked, so an interrupt finds either the temporary files, which it
//! removes, or the complete ones. With `--json`, standard output still gets its one value, unless a result has been started.
//!
//! A failed allocation that no caller handles aborts the process, and no code of ours can run in its place. But an abort
//! raises a signal: its handler wakes a thread that was started early with its message ready, and blocks the failed thread
//! until the process has ended.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use std::sync::atomic::{AtomicBool, Ordering};

use dp_data::table::Cancel;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::Console;

static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// True while standard output still awaits its one JSON value.
static JSON_AWAITED: AtomicBool = AtomicBool::new(false);

/// Sets whether standard output must hold one JSON value, even after an interrupt.
pub(crate) fn await_json(awaited: bool) {
    JSON_AWAITED.store(awaited, Ordering::SeqCst);
}

fn registry() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reaction to an interrupt.
static ADVICE: Mutex<&str> = Mutex::new("run the command again; nothing half-written is left");

/// Sets what to do after an interrupt.
pub(crate) fn advise(help: &'static str) {
    *ADVICE.lock().unwrap_or_else(PoisonError::into_inner) = help;
}

/// True once a signal has had the temporary files removed.
static CLEARED: AtomicBool = AtomicBool::new(false);

/// Functions that cancel what others do for this process, called when a signal ends it.
static CANCELS: Mutex<Vec<Cancel>> = Mutex::new(Vec::new());

/// Registers a function to be called if a signal ends the process.
pub(crate) fn cancel_at_end(cancel: Cancel) {
    CANCELS.lock().unwrap_or_else(PoisonError::into_inner).push(cancel);
}

/// True once a signal has come, while a thread is asked to end its work first.
static ASKED: AtomicBool = AtomicBool::new(false);

/// True while a thread wants to end its work before a signal ends the process.
static AWAITED: AtomicBool = AtomicBool::new(false);

/// True once a second signal has come, of somebody who does not want to wait.
static HURRIED: AtomicBool = AtomicBool::new(false);

/// Work that is ended before a signal ends the process, unless a second signal comes.
pub(crate) struct Awaited(());

/// Has the first signal wait for the work of this thread. One thread at a time may do so.
pub(crate) fn await_before_end() -> Awaited {
    AWAITED.store(true, Ordering::SeqCst);
    Awaited(())
}

impl Awaited {
    /// Returns whether a signal has come.
    pub(crate) fn is_asked(&self) -> bool {
        ASKED.load(Ordering::SeqCst)
    }

    /// Lets the process end and does not return.
    pub(crate) fn give_way(&self) -> ! {
        AWAITED.store(false, Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        AWAITED.store(false, Ordering::SeqCst);
    }
}

/// Waits for the work that is to be ended first.
fn await_work() {
    ASKED.store(true, Ordering::SeqCst);
    while AWAITED.load(Ordering::SeqCst) && !HURRIED.load(Ordering::SeqCst) {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Ends the process: waits for awaited work, removes the registered files, prevents further renames and reports, and cancels
/// what others do for it.
fn end() -> ! {
    await_work();
    // Held until the process ends.
    let paths = registry();
    remove(&paths);
    CLEARED.store(true, Ordering::SeqCst);
    if JSON_AWAITED.load(Ordering::SeqCst) {
        let failure = Failure::new(ExitStatus::Interrupted, "run.interrupted", "interrupted by a signal");
        Console { json: true, ..Console::default() }
            .failure(&failure.help(*ADVICE.lock().unwrap_or_else(PoisonError::into_inner)));
    }
    let cancels = std::mem::take(&mut *CANCELS.lock().unwrap_or_else(PoisonError::into_inner));
    cancels.iter().for_each(|cancel| cancel());
    exit()
}

fn exit() -> ! {
    std::process::exit(i32::from(ExitStatus::Interrupted.number()))
}

/// Waits for the end of the process, if a signal is ending it: the failure of cancelled work must not be reported.
pub(crate) fn give_way() {
    drop(registry());
}

fn remove(paths: &[PathBuf]) {
    for path in paths {
        let _ = std::fs::remove_file(path);
    }
}

/// Installs the handler for SIGINT, SIGTERM and SIGHUP, except those that this process was started to ignore, as under
/// `nohup`. Also turns exceeding the file size limit (`ulimit -f`) into a write error instead of the end of the process.
///
/// If no thread can be started, the signals keep their default action: the process ends and leaves a `.part` file.
#[cfg(unix)]
pub(crate) fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

    // The flag is never read: with any handler installed, the write fails.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::new(AtomicBool::new(false)));
    let ignored = ignored();
    let signals = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |&signal| ignored >> (signal - 1) & 1 == 0);
    let (sender, installed) = std::sync::mpsc::channel();
    // Installed on the thread itself: a handler without a waiting thread would swallow signals.
    let thread = std::thread::Builder::new().spawn(move || {
        let exhausted = exhausted::Exhausted::prepare();
        let aborts = exhausted.is_ok().then_some(signal_hook::consts::SIGABRT);
        let signals = signal_hook::iterator::Signals::new(signals.chain(aborts));
        // Registered after the handler that wakes this thread, so that it is awake when the failed thread is blocked.
        let exhausted = exhausted.and_then(|exhausted| exhausted.hold_aborting_threads());
        drop(sender);
        let Ok(mut signals) = signals else { return };
        match (signals.forever().next(), exhausted) {
            (Some(signal_hook::consts::SIGABRT), Ok(exhausted)) => exhausted.end(),
            (Some(_), exhausted) => {
                exhausted.iter().for_each(exhausted::Exhausted::let_aborts_through);
                if std::thread::Builder::new().spawn(|| end()).is_err() {
                    end();
                }
                // A user who does not want to wait for the cancellation sends another signal. A rename that has begun is
                // finished first.
                signals.forever().next();
                HURRIED.store(true, Ordering::SeqCst);
                while !CLEARED.load(Ordering::SeqCst) {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                exit();
            }
            (None, _) => {}
        }
    });
    if thread.is_ok() {
        // An error means that installation is finished, as far as it was possible.
        let _: Result<(), _> = installed.recv();
    }
}

/// The end of a process without memory.
#[cfg(unix)]
mod exhausted {
    use std::fs::File;
    use std::io::{self, PipeReader, PipeWriter, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use signal_hook::consts::SIGABRT;
    use signal_hook::low_level;

    use super::{JSON_AWAITED, TEMPORARY, remove};
    use crate::exit_code::ExitStatus;
    use crate::failure::{Failure, out_of_memory};

    /// Everything needed at the end, allocated at the start: no memory may be requested later.
    pub(super) struct Exhausted {
        json: Vec<u8>,
        text: Vec<u8>,
        stdout: File,
        stderr: File,
        /// True if an aborting thread ends the process at once, with the same status and without a message.
        through: Arc<AtomicBool>,
        full: (PipeReader, PipeWriter),
    }

    impl Exhausted {
        pub(super) fn prepare() -> io::Result<Self> {
            let failure = failure();
            let through = Arc::new(AtomicBool::new(false));
            let exit = i32::from(ExitStatus::Failed.number());
            let prepared = Self {
                json: (failure.to_json(false) + "\n").into_bytes(),
                text: failure.to_text(str::to_owned).into_bytes(),
                stdout: File::from(io::stdout().as_fd().try_clone_to_owned()?),
                stderr: File::from(io::stderr().as_fd().try_clone_to_owned()?),
                through: Arc::clone(&through),
                full: io::pipe()?,
            };
            signal_hook::flag::register_conditional_shutdown(SIGABRT, exit, through)?;
            Ok(prepared)
        }

        /// Makes the handler of an abort block for ever, by writing to a full pipe.
        pub(super) fn hold_aborting_threads(mut self) -> io::Result<Self> {
            let held = low_level::pipe::register(SIGABRT, self.full.1.try_clone()?)?;
            // Registering has made the pipe non-blocking. It is filled, then made blocking again by the call that does so for
            // any descriptor.
            let full = loop {
                match self.full.1.write(&[0; 4096]) {
                    Ok(0) => break Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            let waits = |pipe: &PipeWriter| UnixStream::from(OwnedFd::from(pipe.try_clone()?)).set_nonblocking(false);
            full.and_then(|()| waits(&self.full.1)).inspect_err(|_| {
                low_level::unregister(held);
                self.let_aborts_through();
            })?;
            Ok(self)
        }

        /// Lets an abort end the process at once from now on.
        pub(super) fn let_aborts_through(&self) {
            self.through.store(true, Ordering::SeqCst);
        }

        /// Ends the process as [`end`](super::end) does, without allocating memory.
        pub(super) fn end(mut self) -> ! {
            // The failed thread may hold the locks of the streams.
            let _ = if JSON_AWAITED.load(Ordering::SeqCst) {
                self.stdout.write_all(&self.json)
            } else {
                self.stderr.write_all(&self.text)
            };
            self.let_aborts_through();
            // It may also hold the registry; a thread that holds it for a rename releases it soon.
            for _ in 0..100 {
                if let Ok(paths) = TEMPORARY.try_lock() {
                    remove(&paths);
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            low_level::exit(ExitStatus::Failed.number().into());
        }
    }

    /// Returns the failure that is reported.
    fn failure() -> Failure {
        out_of_memory("the run was aborted where it was, most likely because memory ran out")
    }
}

/// Returns the signals that this process was started to ignore, one bit each; none if the system does not say.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Installs the handler for Ctrl-C and termination requests.
#[cfg(not(unix))]
pub(crate) fn install() {
    // Fails only if a handler exists already, for example when several commands run in one process.
    let _ = ctrlc::set_handler(|| end());
}

/// Creates and registers a temporary file in one step that an interrupt cannot split.
pub(crate) fn register<T>(create: impl FnOnce() -> std::io::Result<(T, PathBuf)>) -> std::io::Result<T> {
    let mut paths = registry();
    let (file, path) = create()?;
    paths.push(path);
    Ok(file)
}

/// Runs `rename` with interrupts blocked, then unregisters the temporary files.
pub(crate) fn finish<T>(temporary: &[PathBuf], rename: impl FnOnce() -> T) -> T {
    let mut paths = registry();
    let result = rename();
    paths.retain(|known| !temporary.contains(known));
    result
}
