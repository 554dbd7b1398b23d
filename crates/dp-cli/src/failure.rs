//! Errors of a command, in one form for people and programs.
//!
//! A message has a stable code, what happened, the location, what was expected and a remedy. Anything that depends on the
//! *content* of a record (its line, its value) is kept separate: it is for the curator alone, printed to standard error,
//! included under `error.private` only with `--show-private`, and never part of anything that may be published.

use dp::wording::one_line;
use dp_data::OutOfMemory;
use dp_data::error::{DataError, DataErrorKind};
use serde::Serialize;

use crate::exit_code::ExitStatus;

/// The location of an error; nothing in it depends on the value of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The file, as named on the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The name of the column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The line of a schema file, from 1. Lines of records are private and are kept in [`PrivateDetail`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The field of a schema or model file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The flag, including its dashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

impl Location {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The part of a message that depends on records: for the curator only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PrivateDetail {
    /// Line of the input file, counted from 1, including the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The error in the content.
    pub detail: String,
}

/// An error that ended a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Stable code; `dp explain CODE` has a page for each.
    pub code: &'static str,
    /// The error, in one sentence.
    pub message: String,
    /// The exit status.
    pub exit: ExitStatus,
    /// Location, expectation and remedy.
    pub details: Box<Details>,
}

/// The parts of a failure besides code and message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The location.
    pub location: Location,
    /// The expected value or condition.
    pub expected: Option<String>,
    /// The remedy.
    pub help: Option<String>,
    /// The part that depends on records.
    pub private: Option<PrivateDetail>,
}

#[derive(Serialize)]
struct JsonError<'a> {
    error: JsonBody<'a>,
}

#[derive(Serialize)]
struct JsonBody<'a> {
    code: &'a str,
    message: &'a str,
    r#where: &'a Location,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    private: Option<&'a PrivateDetail>,
}

impl Failure {
    /// Creates a failure from a code, an exit status and one sentence.
    pub fn new(exit: ExitStatus, code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), exit, details: Box::default() }
    }

    /// Creates a failure for an unusable value of a flag.
    pub fn usage(flag: &str, message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, "usage.value", message).at_flag(flag)
    }

    /// Sets the flag.
    #[must_use]
    pub fn at_flag(mut self, flag: &str) -> Self {
        self.details.location.flag = Some(flag.to_owned());
        self
    }

    /// Sets the file.
    #[must_use]
    pub fn at_file(mut self, file: impl Into<String>) -> Self {
        self.details.location.file = Some(file.into());
        self
    }

    /// Sets the column.
    #[must_use]
    pub fn at_column(mut self, column: impl Into<String>) -> Self {
        self.details.location.column = Some(column.into());
        self
    }

    /// Sets the field of a schema or model file.
    #[must_use]
    pub fn at_field(mut self, field: impl Into<String>) -> Self {
        self.details.location.field = Some(field.into());
        self
    }

    /// Sets what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.details.expected = Some(expected.into());
        self
    }

    /// Sets the remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.details.help = Some(help.into());
        self
    }

    /// Adds the part for the curator alone.
    #[must_use]
    pub fn private(mut self, line: Option<u64>, detail: impl Into<String>) -> Self {
        self.details.private = Some(PrivateDetail { line, detail: detail.into() });
        self
    }

    /// Converts an error of the schema and record readers.
    pub fn from_data(error: &DataError) -> Self {
        let exit = match error.kind() {
            DataErrorKind::FileOpen
            | DataErrorKind::FileRead
            | DataErrorKind::FileChanged
            | DataErrorKind::MemoryExhausted
            | DataErrorKind::SpoolFolder
            | DataErrorKind::SpoolWrite
            | DataErrorKind::SpoolRead
            | DataErrorKind::TableOpen => ExitStatus::Failed,
            _ => ExitStatus::Input,
        };
        let mut failure = Self::new(exit, error.code(), error.public_message());
        failure.details.location.file = error.file().map(str::to_owned);
        failure.details.location.column = error.column().map(str::to_owned);
        failure.details.location.field = error.field().map(str::to_owned);
        failure.details.expected = error.expected_text().map(str::to_owned);
        failure.details.help = error.help_text().map(str::to_owned);
        // A schema and its line numbers are public; line numbers of records are not.
        let of_schema = ["schema.", "bounds."].iter().any(|area| error.code().starts_with(area));
        if of_schema {
            failure.details.location.line = error.line();
        } else {
            // The curator's message is the public message followed by the finding.
            let message = error.message();
            let found = message.strip_prefix(error.public_message()).unwrap_or_default().trim_start_matches(": ");
            if error.line().is_some() || !found.is_empty() {
                failure = failure.private(error.line(), found);
            }
        }
        failure
    }

    /// Returns whether the reader of the output closed the pipe, which is no error if it has read all it needs.
    pub fn is_closed_pipe(&self) -> bool {
        self.code == crate::output::CLOSED_PIPE
    }

    /// Returns the JSON form: one object with the single member `error`. Record-dependent parts are included only on request,
    /// because logs keep standard output.
    pub fn to_json(&self, show_private: bool) -> String {
        let body = JsonBody {
            code: self.code,
            message: &self.message,
            r#where: &self.details.location,
            expected: self.details.expected.as_deref(),
            help: self.details.help.as_deref(),
            private: self.details.private.as_ref().filter(|_| show_private),
        };
        serde_json::to_string(&JsonError { error: body })
            .unwrap_or_else(|_| format!("{{\"error\":{{\"code\":\"{}\"}}}}", self.code))
    }

    /// Returns the part for the curator alone, in one line.
    pub fn private_line(&self) -> Option<String> {
        let private = self.details.private.as_ref()?;
        let line = private.line.map(|line| format!("line {line}"));
        let parts: Vec<String> =
            line.into_iter().chain(Some(one_line(&private.detail)).filter(|found| !found.is_empty())).collect();
        (!parts.is_empty()).then(|| parts.join(": "))
    }

    /// Returns the text form, several lines ending in a newline; `paint` styles the head.
    pub fn to_text(&self, paint: impl Fn(&str) -> String) -> String {
        let mut text = format!("{}: {}\n", paint(&format!("error[{}]", self.code)), one_line(&self.message));
        if !self.details.location.is_empty()
            || self.details.private.as_ref().is_some_and(|private| private.line.is_some())
        {
            let line =
                self.details.location.line.or_else(|| self.details.private.as_ref().and_then(|private| private.line));
            let line = line.map(|line| format!("line {line}"));
            let column = self.details.location.column.as_ref().map(|column| format!("column `{}`", one_line(column)));
            let field = self.details.location.field.as_ref().map(|field| one_line(field));
            let file = self.details.location.file.as_ref().map(|file| one_line(file));
            let parts: Vec<String> =
                [file, line, field, column, self.details.location.flag.clone()].into_iter().flatten().collect();
            text.push_str(&format!("  --> {}\n", parts.join(", ")));
        }
        if let Some(private) = &self.details.private
            && !private.detail.is_empty()
        {
            text.push_str(&format!("  found (for your eyes only): {}\n", one_line(&private.detail)));
        }
        if let Some(expected) = &self.details.expected {
            text.push_str(&format!("  expected: {}\n", one_line(expected)));
        }
        if let Some(help) = &self.details.help {
            text.push_str(&format!("  do: {}\n", one_line(help)));
        }
        text
    }
}

/// Creates the failure for exhausted memory.
pub(crate) fn out_of_memory(message: impl Into<String>) -> Failure {
    Failure::new(ExitStatus::Failed, DataErrorKind::MemoryExhausted.code(), message).help(
        "use fewer rows or features, single precision (--float f32), a sparse format (libsvm), or a machine with more \
         memory; nothing was released and nothing half-written is left",
    )
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Self::from_data(&error)
    }
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Self {
        out_of_memory(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Failure {
        Failure::new(ExitStatus::Input, "bounds.missing", "column `age` has no range")
            .at_file("schema.toml")
            .at_field("[columns.age]")
            .expected("min and max")
            .help("add `min = 0`")
    }

    #[test]
    fn text_has_the_four_parts() {
        let text = sample().to_text(str::to_owned);
        assert_eq!(
            text,
            "error[bounds.missing]: column `age` has no range\n  --> schema.toml, [columns.age]\n  \
             expected: min and max\n  do: add `min = 0`\n"
        );
    }

    #[test]
    fn content_sits_under_private() {
        let failure = sample().private(Some(4711), "cell `nan`");
        let value: serde_json::Value = serde_json::from_str(&failure.to_json(true)).unwrap();
        assert_eq!(value["error"]["private"]["line"], 4711);
        let public =
            serde_json::to_string(&value["error"]["where"]).unwrap() + value["error"]["message"].as_str().unwrap();
        assert!(!public.contains("4711") && !public.contains("nan"));
        assert!(failure.to_text(str::to_owned).contains("line 4711"));
        let quiet = failure.to_json(false);
        assert!(!quiet.contains("private") && !quiet.contains("4711") && !quiet.contains("nan"), "{quiet}");
        assert_eq!(failure.private_line().as_deref(), Some("line 4711: cell `nan`"));
    }

    #[test]
    fn a_cell_cannot_drive_the_terminal() {
        let failure = sample().private(Some(2), "\u{1b}[2J\nerror[fake]: \u{202e}txt");
        let text = failure.to_text(str::to_owned);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && text.lines().count() == 5, "{text:?}");
    }
}
