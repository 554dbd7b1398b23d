//! Errors of lists, shapes and settings.

/// Errors of this crate. File readers have `read::ReadError`, which gives the location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A list without documents.
    #[error("a list must have at least one document")]
    EmptyList,
    /// Scores and labels of one list differ in number.
    #[error("a list has {scores} scores and {labels} labels; the numbers must be equal")]
    LengthMismatch {
        /// The number of scores.
        scores: usize,
        /// The number of labels.
        labels: usize,
    },
    /// Two related inputs have different sizes.
    #[error("{what} has {found} numbers; expected {expected}")]
    Shape {
        /// The input.
        what: &'static str,
        /// Its number of elements.
        found: usize,
        /// The required number of elements.
        expected: usize,
    },
    /// A score that is NaN.
    #[error("the score of document {document} is NaN")]
    NanScore {
        /// The document's position in the list, from 0.
        document: usize,
    },
    /// A feature that is NaN or infinite.
    #[error("feature {feature} of document {document} is not a finite number")]
    FeatureNotFinite {
        /// The document's position in the list, from 0.
        document: usize,
        /// The feature, from 0.
        feature: usize,
    },
    /// A grade above the declared largest one, or above the largest that metrics support.
    #[error("the label of document {document} is {label}; grades above {limit} are refused")]
    GradeTooLarge {
        /// The document's position in the list, from 0.
        document: usize,
        /// The refused label.
        label: u32,
        /// The largest accepted label.
        limit: u32,
    },
    /// Two lists of one query: the unit of privacy is a list, so a query has one list.
    #[error("the query `{id}` has a list already; all its documents belong in one list")]
    DuplicateQuery {
        /// The query.
        id: String,
    },
    /// A cut-off of 0, at which no metric and no loss is defined.
    #[error("the cut-off k must be at least 1")]
    ZeroCutoff,
    /// A mean over no lists.
    #[error("a mean needs at least one list")]
    NoLists,
    /// A number that must be positive is 0.
    #[error("{what} must be at least 1")]
    Zero {
        /// The name of the number.
        what: &'static str,
    },
    /// Out of memory while adding a list.
    #[error(transparent)]
    Memory(#[from] dp_data::OutOfMemory),
    /// A prefix of a ranking that is empty, repeats a document or names one outside the list.
    #[error("a ranking's prefix must name 1 to {documents} different documents of the list")]
    NotAPrefix {
        /// The number of documents.
        documents: usize,
    },
}
