//! Work without the interpreter lock, which ends soon after Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Time between two looks at the signals.
const LOOK: Duration = Duration::from_millis(50);

/// Keeps panics off the terminal: [`interruptible`] makes an exception of them.
pub(crate) fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|_| ()));
}

/// Runs `work` on another thread without the interpreter lock. On a signal it sets the flag that `work` gets, and raises what the
/// signal's handler raises; what `work` still returns is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    let (sender, mut receiver) = sync_channel(1);
    let run = move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&flag)));
        let _ = sender.send(outcome);
    };
    let started = thread::Builder::new().name("dp".to_owned()).spawn(run);
    started.map_err(|error| PyRuntimeError::new_err(format!("no thread can be started: {error}")))?;
    loop {
        // A receiver is not `Sync`, so that it goes into the closure and comes back.
        let received = py.detach(move || {
            let received = receiver.recv_timeout(LOOK);
            (receiver, received)
        });
        receiver = received.0;
        match received.1 {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(panic)) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
                return Err(PyRuntimeError::new_err(format!("internal error, please report it: {text}")));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("internal error, please report it: a thread ended early"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    cancelled.store(true, Ordering::Relaxed);
                    // Most work ends at once; what does not is left to end by itself.
                    let _ = py.detach(move || receiver.recv_timeout(LOOK));
                    return Err(raised);
                }
            }
        }
    }
}
