//! Errors of model files and of verification.

use dp_data::OutOfMemory;
use dp_data::error::DataErrorKind;

/// An error of a model file, a key or a signature, or a failed verification.
///
/// Nothing in it depends on the value of a record: it may be shown to anyone.
///
/// # Examples
/// ```
/// let error = dp::ModelFile::parse(b"{}").unwrap_err();
/// assert_eq!((error.code(), error.to_string()), ("model.format", "the member `model` is missing".to_owned()));
/// assert_eq!(error.field(), Some("model"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    details: Box<Details>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Details {
    field: Option<String>,
    expected: Option<String>,
    help: Option<String>,
}

/// The kinds of [`Error`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not a model of this format.
    Format {
        /// [`model::SCHEMA`](crate::model::SCHEMA) or [`ranker::SCHEMA`](crate::ranker::SCHEMA).
        schema: &'static str,
    },
    /// The file holds a model of another kind.
    OtherKind,
    /// The certificate does not match its hash.
    CertificateHash,
    /// The model does not match the hash in the certificate.
    ModelHash,
    /// Released weights are not finite.
    NotFinite,
    /// The file is not the whole and unchanged checkpoint of a training.
    Checkpoint,
    /// The checkpoint is of another training.
    OtherTraining,
    /// The model cannot be written as JSON within the size limit for reading.
    Unwritable,
    /// Memory ran out.
    Memory,
    /// The certificate itself states that there is no guarantee.
    NotPrivate,
    /// The text is not a key of the requested kind.
    Key,
    /// A key for which anyone can sign.
    WeakKey,
    /// The text is not a signature.
    SignatureFormat,
    /// The signature is not valid for this certificate and key.
    Signature,
    /// The system's generator failed.
    Random,
    /// The guarantee does not follow from the recipe.
    Guarantee,
    /// The stated assumptions differ from those of the guarantee.
    Assumption,
    /// The weights cannot have been released by the recipe.
    Weights,
    /// Recomputing the guarantee takes more steps than allowed.
    Work {
        /// Approximate number of steps.
        needed: u64,
    },
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Box::default() }
    }

    pub(crate) fn at(mut self, field: impl Into<String>) -> Self {
        self.details.field = Some(field.into());
        self
    }

    pub(crate) fn expecting(mut self, expected: impl Into<String>) -> Self {
        self.details.expected = Some(expected.into());
        self
    }

    pub(crate) fn advising(mut self, help: impl Into<String>) -> Self {
        self.details.help = Some(help.into());
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns a code that is stable across versions; `dp explain CODE` has a page for each.
    pub fn code(&self) -> &'static str {
        match self.kind {
            ErrorKind::Format { .. } | ErrorKind::OtherKind => "model.format",
            ErrorKind::CertificateHash => "verify.certificate_hash",
            ErrorKind::ModelHash => "verify.model_hash",
            ErrorKind::NotFinite => "train.not_finite",
            ErrorKind::Checkpoint => "checkpoint.format",
            ErrorKind::OtherTraining => "checkpoint.other",
            ErrorKind::Unwritable => "output.write",
            ErrorKind::Memory => DataErrorKind::MemoryExhausted.code(),
            ErrorKind::NotPrivate => "verify.not_private",
            ErrorKind::Key | ErrorKind::WeakKey => "key.format",
            ErrorKind::SignatureFormat => "signature.format",
            ErrorKind::Signature => "verify.signature",
            ErrorKind::Random => "sign.random",
            ErrorKind::Guarantee => "verify.guarantee",
            ErrorKind::Assumption => "verify.assumption",
            ErrorKind::Weights => "verify.weights",
            ErrorKind::Work { .. } => "verify.work",
        }
    }

    /// Returns the member of the file.
    pub fn field(&self) -> Option<&str> {
        self.details.field.as_deref()
    }

    /// Returns what was expected.
    pub fn expected(&self) -> Option<&str> {
        self.details.expected.as_deref()
    }

    /// Returns the remedy.
    pub fn help(&self) -> Option<&str> {
        self.details.help.as_deref()
    }
}

impl From<OutOfMemory> for Error {
    fn from(error: OutOfMemory) -> Self {
        Self::new(ErrorKind::Memory, error.to_string())
    }
}
