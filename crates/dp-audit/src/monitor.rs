//! Progress and cancellation of an audit.

/// An observer of a running audit.
///
/// It is called from the threads that draw, about a hundred times per phase; it cannot change a result.
pub trait Monitor: Sync {
    /// Reports that `done` of the `total` trials of `subject` are finished.
    fn progress(&self, subject: &str, done: u64, total: u64) {
        let _ = (subject, done, total);
    }

    /// Returns whether to stop: the audit then ends with [`Error::Cancelled`](crate::Error::Cancelled).
    fn cancelled(&self) -> bool {
        false
    }
}

/// A monitor that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Monitor for Unwatched {}
