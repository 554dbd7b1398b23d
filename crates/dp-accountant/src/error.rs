//! Errors: a parameter out of its range, or an event for which an accountant has no theorem.
//!
//! Every parameter error names the parameter, its value and the accepted range, in the caller's words.

use crate::adjacency::AdjacencyKind;
use crate::relations::Relations;

/// The error type of this crate. Every parameter error names the parameter, its value and the accepted range.
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
    /// Two lists that must have the same length differ in length, or are empty.
    #[error("{left} has {left_length} entries and {right} has {right_length}; the numbers must be equal and positive")]
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
        /// The accountant.
        accountant: &'static str,
        /// The event's name.
        event: &'static str,
    },
    /// An attempt to combine two statements under different neighbouring relations.
    #[error("adjacency mismatch: expected {expected}, found {found}")]
    AdjacencyMismatch {
        /// The relation that was required.
        expected: AdjacencyKind,
        /// The relation that was found.
        found: AdjacencyKind,
    },
    /// A theorem was requested under a relation for which it does not hold.
    #[error("{event} holds under {holds_under}, not under {found}")]
    NotUnderRelation {
        /// The event's name.
        event: &'static str,
        /// The relations under which it holds.
        holds_under: Relations,
        /// The requested relation.
        found: AdjacencyKind,
    },
    /// Parts of an event tree have no relation in common under which they hold.
    #[error("{left} holds under {left_holds_under} and {right} under {right_holds_under}: they cannot be combined")]
    RelationsConflict {
        /// One event's name.
        left: &'static str,
        /// The relations under which it holds.
        left_holds_under: Relations,
        /// The other event's name.
        right: &'static str,
        /// The relations under which the other event holds.
        right_holds_under: Relations,
    },
    /// No parameter reaches the target.
    #[error("no {what} meets the target: {why}")]
    Unreachable {
        /// The quantity of the search.
        what: &'static str,
        /// The reason.
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
