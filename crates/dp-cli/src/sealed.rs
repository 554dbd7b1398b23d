//! Model and certificate in one JSON object, tied together by hashes: what files of all kinds of models share.
//!
//! ```json
//! { "model": { "schema": "…", … }, "certificate": { … }, "certificate_sha256": "…" }
//! ```

use dp_data::memory::{self, Bytes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::FileName;
use crate::canonical;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::read_whole;
use crate::model_file;

/// The parts of a file whose seals are intact; what they mean is not known yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed {
    /// The model.
    pub model: Value,
    /// Its certificate.
    pub certificate: Value,
    /// SHA-256 of the canonical certificate.
    pub certificate_sha256: String,
}

impl Sealed {
    /// The format of the model, as its own member `schema` names it.
    pub fn format(&self) -> Option<&str> {
        self.model.get("schema").and_then(Value::as_str)
    }

    /// Reads `name` (`-` for standard input) and checks its seals.
    ///
    /// # Errors
    /// `model.read`, `file.too_large`, `memory.exhausted`, `model.format`, `verify.certificate_hash`, `verify.model_hash`.
    pub fn open(name: &FileName) -> Result<Self, Failure> {
        let bytes = read_whole(name, LARGEST_MODEL, |error| {
            Failure::new(ExitStatus::Failed, "model.read", format!("cannot read the model: {error}"))
                .help("name the file that `dp train --out` or `dp rank train --out` wrote")
        })?;
        Self::parse(&bytes).map_err(|failure| failure.at_file(name))
    }

    /// Reads the content of a file and checks its seals.
    ///
    /// # Errors
    /// `memory.exhausted`, `model.format`, `verify.certificate_hash`, `verify.model_hash`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        memory::check(memory_of(bytes), "the content of the model's file")
            .map_err(|error| Failure::from(error).help("read it where there is more memory"))?;
        let malformed = |message: String| malformed(message, model_file::SCHEMA);
        let text = std::str::from_utf8(bytes).map_err(|_| malformed("the file is not text".to_owned()))?;
        let value = canonical::parse(text).map_err(|error| malformed(format!("not a model file: {error}")))?;
        let Value::Object(mut members) = value else {
            return Err(malformed("not a model file: no object".to_owned()));
        };
        let mut member = |name: &str| {
            members.remove(name).ok_or_else(|| malformed(format!("the member `{name}` is missing")).at_field(name))
        };
        let (model, certificate, seal) = (member("model")?, member("certificate")?, member("certificate_sha256")?);
        if let Some(name) = members.keys().next() {
            return Err(malformed("a member has no meaning here".to_owned()).at_field(name));
        }
        // The seals first: after an edit, what the edited part means is of no interest.
        let certificate_sha256 = canonical::sha256(&certificate);
        if seal != certificate_sha256 {
            return Err(Failure::new(
                ExitStatus::Verification,
                "verify.certificate_hash",
                "the certificate was changed after it was written",
            )
            .expected(format!("SHA-256 {certificate_sha256} under `certificate_sha256`"))
            .help("ask for the original file"));
        }
        let model_sha256 = canonical::sha256(&model);
        if certificate.get("model_sha256") != Some(&Value::String(model_sha256.clone())) {
            return Err(Failure::new(
                ExitStatus::Verification,
                "verify.model_hash",
                "the certificate is not one of this model: the model was changed, or belongs to another certificate",
            )
            .expected(format!("SHA-256 {model_sha256} under `certificate.model_sha256`"))
            .help("ask for the original file"));
        }
        Ok(Self { model, certificate, certificate_sha256 })
    }
}

/// The most bytes of a file with a model; no model is written that is larger.
pub const LARGEST_MODEL: u64 = 4 << 30;

/// The bytes of a file with this many weights, at the most: the longest double, blanks in front and the end of its line.
pub(crate) fn text_of(weights: u64) -> u64 {
    weights.saturating_mul(34)
}

/// The memory that reading a file takes, from how many values it holds at the most: as JSON as it was read and again as it
/// would be written, as a double, and as text for the hash and for the comparison of both.
fn memory_of(bytes: &[u8]) -> usize {
    const BYTES_PER_VALUE: usize = 3 * size_of::<Value>() + size_of::<f64>();
    let values = bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    values.saturating_mul(BYTES_PER_VALUE).saturating_add(bytes.len().saturating_mul(3))
}

/// The text of a file.
///
/// # Errors
/// A number that JSON cannot hold; `output.write` if the text is longer than [`LARGEST_MODEL`].
pub fn to_text(model: &impl Serialize, certificate: &impl Serialize, seal: &str) -> Result<String, Failure> {
    let value = serde_json::json!({
        "model": to_value(model)?,
        "certificate": to_value(certificate)?,
        "certificate_sha256": seal,
    });
    let text = serde_json::to_string_pretty(&value).map_err(|error| unwritable(&error))? + "\n";
    if text.len() as u64 > LARGEST_MODEL {
        let message = format!("the model takes {} as JSON", Bytes(text.len() as u64));
        let failure = Failure::new(ExitStatus::Failed, "output.write", message);
        return Err(failure.expected(format!("at most {}", Bytes(LARGEST_MODEL))).help("train with fewer features"));
    }
    Ok(text)
}

/// Reads a member and makes sure that nothing in it was passed over.
pub(crate) fn typed<T: Serialize + for<'de> Deserialize<'de>>(
    value: &Value,
    field: &str,
    format: &str,
) -> Result<T, Failure> {
    let read: T = T::deserialize(value).map_err(|error| malformed(error.to_string(), format).at_field(field))?;
    if canonical::text(&to_value(&read)?) != canonical::text(value) {
        let message = "something in it has no meaning here, or is not written as it would be";
        return Err(malformed(message, format).at_field(field));
    }
    Ok(read)
}

pub(crate) fn to_value(part: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(part).map_err(|error| unwritable(&error))
}

fn unwritable(error: &serde_json::Error) -> Failure {
    Failure::new(ExitStatus::Failed, "output.write", format!("the model cannot be written as JSON: {error}"))
}

/// A file that is no model of the format.
pub(crate) fn malformed(message: impl Into<String>, format: &str) -> Failure {
    let writer = if format == model_file::SCHEMA { "dp train" } else { "dp rank train" };
    Failure::new(ExitStatus::Input, "model.format", message)
        .expected(format!("a model of format {format}, as `{writer} --out` writes it"))
}
