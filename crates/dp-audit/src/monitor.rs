//! Watching an audit, and stopping it.

/// What an audit tells while it runs.
///
/// It is called from the threads that draw, about a hundred times a phase; neither it nor its answers change a result.
pub trait Monitor: Sync {
    /// So many of the trials of `subject` are done.
    fn progress(&self, subject: &str, done: u64, total: u64) {
        let _ = (subject, done, total);
    }

    /// Whether to stop: the audit then ends with [`Error::Cancelled`](crate::Error::Cancelled).
    fn cancelled(&self) -> bool {
        false
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Monitor for Unwatched {}
