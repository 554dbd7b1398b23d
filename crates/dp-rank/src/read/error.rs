//! Errors of files of lists, with their location.

use core::fmt;

use dp_data::{DataError, OutOfMemory};

use crate::error::Error;

/// The problem of a row, or of a file as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file or its text cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A truncated compressed file.
    #[error("the compressed file ends before its content is complete")]
    Cut,
    /// A damaged compressed file.
    #[error("the compressed file is damaged")]
    Damaged,
    /// No rows.
    #[error("there is no document in the file")]
    NoRows,
    /// A row whose second part is not `qid:...`.
    #[error("the query is missing; expected `label qid:ID index:value ...`")]
    MissingQuery,
    /// A row that begins with its query although grades are needed.
    #[error("the grade is missing; expected `grade qid:ID index:value ...`")]
    MissingGrade,
    /// A grade that is not an integer from 0.
    #[error("a grade is not a whole number from 0: {found}")]
    BadGrade {
        /// The cell.
        found: String,
    },
    /// A grade above the declared largest one.
    #[error("a grade is above the declared largest grade, {limit}: {found}")]
    GradeTooLarge {
        /// The cell.
        found: String,
        /// The declared largest grade.
        limit: u32,
    },
    /// A feature that is not `index:value`.
    #[error("a feature is not of the form index:value: {found}")]
    BadFeature {
        /// The part of the line.
        found: String,
    },
    /// An index that is not an integer from 1 to the number of features.
    #[error("a feature index is not a whole number from 1 to {limit}: {found}")]
    BadIndex {
        /// The index.
        found: String,
        /// The largest accepted index.
        limit: usize,
    },
    /// An index that occurs twice in a row.
    #[error("a feature occurs twice in a row: {found}")]
    DuplicateFeature {
        /// The index.
        found: String,
    },
    /// A value that is not a finite number.
    #[error("a value is not a finite number: {found}")]
    BadValue {
        /// The cell.
        found: String,
    },
    /// A row of a query whose rows ended earlier, under `SplitLists::Refuse`.
    #[error("the rows of query {query} do not lie together; sort the file by query, or allow lists to be joined")]
    SplitList {
        /// The query.
        query: String,
    },
    /// Inconsistent declarations.
    #[error("{0}")]
    Options(Error),
}

impl Problem {
    /// Returns the problem, without any value from the file.
    pub fn public_message(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "the file cannot be read",
            Self::Cut => "the compressed file ends before its content is complete",
            Self::Damaged => "the compressed file is damaged",
            Self::MissingGrade => "the grade of a row is missing",
            Self::NoRows => "there is no document in the file",
            Self::MissingQuery => "the query of a row is missing",
            Self::BadGrade { .. } => "a grade is not a whole number from 0",
            Self::GradeTooLarge { .. } => "a grade is above the declared largest grade",
            Self::BadFeature { .. } => "a feature is not of the form index:value",
            Self::BadIndex { .. } => "a feature index is out of range",
            Self::DuplicateFeature { .. } => "a feature occurs twice in a row",
            Self::BadValue { .. } => "a value is not a finite number",
            Self::SplitList { .. } => "the rows of a query do not lie together",
            Self::Options(_) => "the declared number of features or largest grade cannot be used",
        }
    }
}

/// A position in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// The byte at which the invalid part starts, from 1.
    At(usize),
    /// A column of a CSV file.
    Named(String),
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(byte) => write!(f, "{byte}"),
            Self::Named(name) => write!(f, "column `{name}`"),
        }
    }
}

/// A file of lists that was refused.
///
/// `Display` is for the curator, who may see the file: it names the location and quotes the cell.
/// [`public_message`](Self::public_message) omits both, and `Debug` shows only that message.
pub struct ReadError {
    file: String,
    line: Option<u64>,
    column: Option<Column>,
    problem: Problem,
    source: Option<DataError>,
}

impl ReadError {
    pub(super) fn new(file: &str, problem: Problem) -> Self {
        Self { file: file.to_owned(), line: None, column: None, problem, source: None }
    }

    /// Adds lines that come before those in which the error was found.
    pub(super) fn after_lines(mut self, lines: u64) -> Self {
        self.line = self.line.map(|line| line + lines);
        self
    }

    pub(super) fn at(mut self, line: u64, column: Option<Column>) -> Self {
        (self.line, self.column) = (Some(line), column);
        self
    }

    pub(super) fn from_data(file: &str, error: DataError) -> Self {
        Self {
            file: error.file().unwrap_or(file).to_owned(),
            line: error.line(),
            column: error.column().map(|name| Column::Named(name.to_owned())),
            problem: Problem::Unreadable(error.message()),
            source: Some(error),
        }
    }

    /// Returns the error of running out of memory at this line.
    pub(super) fn exhausted(file: &str, error: OutOfMemory, line: Option<u64>) -> Self {
        // How much is held depends on the lists, which may be secret.
        Self::from_data(file, DataError::exhausted(error.without_sizes(), file, line))
    }

    /// Returns the input, as named by the caller.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line, from 1. For the curator.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// Returns the position in the row. For the curator.
    pub fn column(&self) -> Option<&Column> {
        self.column.as_ref()
    }

    /// Returns the problem. For the curator.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the problem, without location, row or value.
    pub fn public_message(&self) -> &str {
        self.source.as_ref().map_or_else(|| self.problem.public_message(), DataError::public_message)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        match &self.column {
            Some(Column::At(byte)) => write!(f, ":{byte}: ")?,
            Some(named) => write!(f, ", {named}: ")?,
            None => f.write_str(": ")?,
        }
        write!(f, "{}", self.problem)
    }
}

impl fmt::Debug for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadError")
            .field("file", &self.file)
            .field("message", &self.public_message())
            .finish_non_exhaustive()
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Quotes a cell for messages: shortened, control characters escaped.
pub(super) fn quote(cell: &[u8]) -> String {
    const SHOWN: usize = 60;
    let text = String::from_utf8_lossy(cell);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", shown.escape_debug())
}
