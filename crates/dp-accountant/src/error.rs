//! What can go wrong: a parameter outside its range, or an event that an accountant has no theorem for.
//!
//! Every parameter error names the parameter, its value and the accepted range, in the caller's words.

use crate::adjacency::AdjacencyKind;
use crate::relations::Relations;

/// Errors of this crate. Every parameter error names the parameter, its value and the accepted range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number that must be finite is NaN or infinite.
    #[error("{name} = {value:?} must be finite")]
    NotFinite {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
    },
    /// A number that must be positive is zero or negative.
    #[error("{name} = {value:?} must be greater than 0")]
    NotPositive {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
    },
    /// A number lies outside its range.
    #[error("{name} = {value:?} must lie in {range}")]
    OutOfRange {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// The accepted range in words, e.g. `[0, 1)`.
        range: &'static str,
    },
    /// Two lists that belong together differ in length, or are empty.
    #[error("{left} has {left_length} entries and {right} has {right_length}; they must be as many, and at least one")]
    LengthMismatch {
        /// The first list's name.
        left: &'static str,
        /// Its length.
        left_length: usize,
        /// The second list's name.
        right: &'static str,
        /// Its length.
        right_length: usize,
    },
    /// An event tree is nested too deeply.
    #[error("the event tree is nested more than {limit} levels deep")]
    TooDeep {
        /// The greatest accepted depth.
        limit: usize,
    },
    /// No theorem of this accountant covers the event.
    #[error("the {accountant} accountant has no theorem for {event}")]
    Unsupported {
        /// Which accountant was asked.
        accountant: &'static str,
        /// The event's name.
        event: &'static str,
    },
    /// Two statements under different neighbouring relations were to be combined.
    #[error("adjacency mismatch: expected {expected}, found {found}")]
    AdjacencyMismatch {
        /// The relation that was required.
        expected: AdjacencyKind,
        /// The relation that was found.
        found: AdjacencyKind,
    },
    /// A theorem was asked for under a relation that it does not hold under.
    #[error("{event} holds under {holds_under}, not under {found}")]
    NotUnderRelation {
        /// The event's name.
        event: &'static str,
        /// The relations that it holds under.
        holds_under: Relations,
        /// The relation that was asked for.
        found: AdjacencyKind,
    },
    /// Parts of an event tree hold under no relation in common.
    #[error("{left} holds under {left_holds_under} and {right} under {right_holds_under}: they cannot be combined")]
    RelationsConflict {
        /// One event's name.
        left: &'static str,
        /// The relations that it holds under.
        left_holds_under: Relations,
        /// The other event's name.
        right: &'static str,
        /// The relations that the other holds under.
        right_holds_under: Relations,
    },
    /// No parameter reaches the target.
    #[error("no {what} meets the target: {why}")]
    Unreachable {
        /// What was looked for.
        what: &'static str,
        /// Why there is none.
        why: &'static str,
    },
}

/// Checks `value > 0` and finite (NaN fails).
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, Error> {
    if !value.is_finite() {
        return Err(Error::NotFinite { name, value });
    }
    if !(value > 0.0) {
        return Err(Error::NotPositive { name, value });
    }
    Ok(value)
}

/// Checks `value >= 0` and finite (NaN fails).
pub(crate) fn non_negative(name: &'static str, value: f64) -> Result<f64, Error> {
    if !value.is_finite() {
        return Err(Error::NotFinite { name, value });
    }
    if !(value >= 0.0) {
        return Err(Error::OutOfRange { name, value, range: "[0, inf)" });
    }
    Ok(value)
}
