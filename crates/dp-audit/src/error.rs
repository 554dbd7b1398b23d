//! Errors of audits.

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number lies outside its range.
    #[error("{name} = {value:?} must lie in {range}")]
    OutOfRange {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// The accepted range, in words.
        range: &'static str,
    },
    /// A trial failed: the subject rejected its own input.
    #[error("{subject}: {reason}")]
    Trial {
        /// The subject's name.
        subject: String,
        /// The reason.
        reason: String,
    },
    /// Two subjects of a suite have the same name, and would share their random numbers.
    #[error("two subjects are named {subject}")]
    DuplicateName {
        /// The name.
        subject: String,
    },
    /// One run gives no evidence on a claim under this relation.
    #[error("{subject}: one run audits claims for adding or removing a record, not {}", relation.as_str())]
    Relation {
        /// The subject's name.
        subject: String,
        /// The claim's relation.
        relation: dp_accountant::AdjacencyKind,
    },
    /// No threads could be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// The requested number of threads.
        threads: usize,
        /// The message of the system.
        reason: String,
    },
    /// The audit was stopped by its monitor.
    #[error("the audit was cancelled")]
    Cancelled,
    /// The accountant rejects the claim.
    #[error(transparent)]
    Accountant(#[from] dp_accountant::Error),
    /// A mechanism rejected its parameters or its input.
    #[error(transparent)]
    Mechanism(#[from] dp_mechanisms::Error),
}

/// Checks a failure probability, strictly between 0 and 1 (NaN fails).
pub(crate) fn failure_probability(value: f64) -> Result<f64, Error> {
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        Err(Error::OutOfRange { name: "failure probability", value, range: "(0, 1)" })
    }
}

/// Checks delta, `[0, 1)` (NaN fails).
pub(crate) fn delta(value: f64) -> Result<f64, Error> {
    if (0.0..1.0).contains(&value) {
        Ok(value)
    } else {
        Err(Error::OutOfRange { name: "delta", value, range: "[0, 1)" })
    }
}
