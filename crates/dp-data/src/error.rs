//! Errors of schemas and files, with a message for the curator and one for the public.

mod kind;

use core::fmt;

pub use kind::{DataErrorKind, codes};

use crate::examples::ShapeError;
use crate::images::ImagesError;
use crate::memory::OutOfMemory;

/// A refused schema or input.
///
/// `Display` and [`message`](Self::message) are for the *curator*, who may see the file: they name the line and may quote the
/// cell. [`public_message`](Self::public_message) contains neither the row nor the value, and only it may enter a report, a
/// certificate or anything else that others read. `Debug` shows only the public part.
///
/// # Privacy
/// The refusal of a file may depend on the records (a cell that is not a number, under `on_missing = "error"`). The fact that
/// a run stopped is therefore outside the guarantee; `on_missing = "neutral"` avoids this.
///
/// # Examples
/// ```
/// # #[cfg(feature = "files")] {
/// use dp_data::{draft, read::Input};
///
/// let ragged = Input::from_bytes("people.csv", b"age,income\n41\n".to_vec());
/// let error = draft::draft(ragged, &draft::DraftOptions::new("income"), &Default::default()).unwrap_err();
/// assert_eq!((error.code(), error.line()), ("csv.ragged", Some(2)));
/// assert_eq!(error.public_message(), "a row has another number of cells than the header");
/// # }
/// ```
pub struct DataError(Box<Inner>);

struct Inner {
    kind: DataErrorKind,
    message: String,
    content: Option<String>,
    expected: Option<String>,
    help: Option<String>,
    place: Place,
    source: Option<std::io::Error>,
}

#[derive(Default)]
struct Place {
    file: Option<String>,
    line: Option<u64>,
    column: Option<String>,
    field: Option<String>,
}

impl DataError {
    /// Creates an error whose `message` is public.
    pub(crate) fn new(kind: DataErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            content: None,
            expected: None,
            help: None,
            place: Place::default(),
            source: None,
        }))
    }

    /// Adds text for the curator only, usually the offending cell.
    pub(crate) fn found(mut self, content: impl Into<String>) -> Self {
        self.0.content = Some(content.into());
        self
    }

    /// Adds an offending cell for the curator, shortened.
    pub(crate) fn found_cell(self, cell: &[u8]) -> Self {
        const SHOWN: usize = 60;
        let text = String::from_utf8_lossy(cell);
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        self.found(format!("`{}`", shown.escape_debug()))
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    pub(crate) fn in_file(mut self, file: &str) -> Self {
        self.0.place.file.get_or_insert_with(|| file.to_owned());
        self
    }

    pub(crate) fn at_line(mut self, line: u64) -> Self {
        self.0.place.line.get_or_insert(line);
        self
    }

    /// Adds the number of lines before the part in which the error was found.
    #[cfg(feature = "files")]
    pub(crate) fn after_lines(mut self, lines: u64) -> Self {
        self.0.place.line = self.0.place.line.map(|line| line + lines);
        self
    }

    pub(crate) fn at_column(mut self, column: impl Into<String>) -> Self {
        self.0.place.column = Some(column.into());
        self
    }

    pub(crate) fn at_field(mut self, field: impl Into<String>) -> Self {
        self.0.place.field = Some(field.into());
        self
    }

    #[cfg(feature = "files")]
    pub(crate) fn caused_by(mut self, source: std::io::Error) -> Self {
        self.0.source = Some(source);
        self
    }

    /// Creates the error of a [table](crate::table::Table) whose source, in another crate, cannot be read. The message is public.
    #[cfg(feature = "files")]
    pub fn of_table(message: &str) -> Self {
        Self::new(DataErrorKind::TableRead, message)
    }

    /// Creates the error of memory exhausted while this line of this file was read: for formats that this crate does not know.
    pub fn exhausted(error: OutOfMemory, file: &str, line: Option<u64>) -> Self {
        let error = Self::from(error).in_file(file);
        match line {
            Some(line) => error.at_line(line),
            None => error,
        }
    }

    /// Returns the kind of error.
    pub fn kind(&self) -> DataErrorKind {
        self.0.kind
    }

    /// Returns the stable code of the kind, e.g. `csv.ragged`.
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// Returns a description without place, row or value.
    pub fn public_message(&self) -> &str {
        &self.0.message
    }

    /// Returns a description for the curator, which quotes the offending cell if there is one.
    pub fn message(&self) -> String {
        match &self.0.content {
            Some(content) => format!("{}: {content}", self.0.message),
            None => self.0.message.clone(),
        }
    }

    /// Returns the text for the curator only, if there is one.
    #[cfg(feature = "files")]
    pub(crate) fn content(&self) -> Option<&str> {
        self.0.content.as_deref()
    }

    /// Returns the file, as named by the caller.
    pub fn file(&self) -> Option<&str> {
        self.0.place.file.as_deref()
    }

    /// Returns the line, counted from 1, including the header. For the curator.
    pub fn line(&self) -> Option<u64> {
        self.0.place.line
    }

    /// Returns the name of the column.
    pub fn column(&self) -> Option<&str> {
        self.0.place.column.as_deref()
    }

    /// Returns the position in a schema, e.g. `columns.age.min`.
    pub fn field(&self) -> Option<&str> {
        self.0.place.field.as_deref()
    }

    /// Returns the expected contents.
    pub fn expected_text(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// Returns the remedy.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl From<ShapeError> for DataError {
    /// Encoders and builders agree on the width, so that only exhausted memory is expected.
    fn from(error: ShapeError) -> Self {
        match error {
            ShapeError::Memory(error) => error.into(),
            error => Self::new(DataErrorKind::SchemaColumns, error.to_string()),
        }
    }
}

impl From<ImagesError> for DataError {
    fn from(error: ImagesError) -> Self {
        let kind = match error {
            ImagesError::Shape { .. } => DataErrorKind::IdxShape,
            ImagesError::Counts { .. } => DataErrorKind::IdxCounts,
            ImagesError::Label { .. } => DataErrorKind::ImagesLabel,
            ImagesError::TooMany { .. } => DataErrorKind::ImagesNumber,
            ImagesError::Memory(error) => return error.into(),
        };
        Self::new(kind, error.to_string())
    }
}

impl From<OutOfMemory> for DataError {
    fn from(error: OutOfMemory) -> Self {
        Self::new(DataErrorKind::MemoryExhausted, error.to_string())
            .help("use fewer rows or features, single precision, a sparse format, or a machine with more memory")
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = self.file() {
            write!(f, "{file}")?;
            match (self.line(), self.field()) {
                (Some(line), _) => write!(f, ":{line}: ")?,
                (None, Some(field)) => write!(f, ", {field}: ")?,
                (None, None) => f.write_str(": ")?,
            }
        } else if let Some(field) = self.field() {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message())?;
        if let Some(expected) = self.expected_text() {
            write!(f, "; expected {expected}")?;
        }
        if let Some(help) = self.help_text() {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataError")
            .field("code", &self.code())
            .field("message", &self.0.message)
            .field("file", &self.0.place.file)
            .field("field", &self.0.place.field)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for DataError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}
