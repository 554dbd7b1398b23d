//! What can be wrong with a ranked list or a cut-off.

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A list without documents.
    #[error("a list must have at least one document")]
    EmptyList,
    /// Scores and labels of one list differ in number.
    #[error("a list has {scores} scores and {labels} labels; they must be as many")]
    LengthMismatch {
        /// The number of scores.
        scores: usize,
        /// The number of labels.
        labels: usize,
    },
    /// A score that cannot be ordered.
    #[error("the score of document {document} is NaN")]
    NanScore {
        /// The document's position in the list, from 0.
        document: usize,
    },
    /// A grade whose gain `2^grade - 1` is not an exact float.
    #[error("the label of document {document} is {label}; grades above {limit} are refused")]
    GradeTooLarge {
        /// The document's position in the list, from 0.
        document: usize,
        /// The refused label.
        label: u32,
        /// The largest accepted label.
        limit: u32,
    },
    /// A cut-off of 0, at which no metric is defined.
    #[error("the cut-off k must be at least 1")]
    ZeroCutoff,
    /// A mean over no lists.
    #[error("a mean needs at least one list")]
    NoLists,
}
