//! Questions that have no answer.

/// The reason for which a question is refused, or cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Refusal {
    /// The fault.
    pub kind: RefusalKind,
    /// The code, such as `usage.value`.
    pub code: &'static str,
    /// The message.
    pub message: String,
    /// The number of the [`Request`](super::Request), by its name.
    pub field: Option<String>,
    /// The expected form.
    pub expected: Option<String>,
    /// The advice.
    pub help: Option<String>,
}

/// The fault of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// A number is out of range, missing, or contradicts another.
    Question,
    /// The text of a question or an event has no meaning.
    Text,
    /// No theorem gives the guarantee.
    Privacy,
    /// The certificate claims no guarantee.
    Unproved,
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), field: None, expected: None, help: None }
    }

    /// Creates the refusal of a line that is not a question.
    pub fn of_line(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Text, "account.line", message)
    }

    /// Names the field.
    #[must_use]
    pub fn at_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub(super) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
