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
        /// The accepted range in words.
        range: &'static str,
    },
    /// A trial failed: the subject refused its own input.
    #[error("{subject}: {reason}")]
    Trial {
        /// The subject's name.
        subject: String,
        /// What it said.
        reason: String,
    },
    /// The claim cannot be accounted for.
    #[error(transparent)]
    Accountant(#[from] dp_accountant::Error),
    /// A mechanism refused its parameters or its input.
    #[error(transparent)]
    Mechanism(#[from] dp_mechanisms::Error),
}
