//! The common part of all model files: model and certificate in one JSON object, bound by hashes.
//!
//! ```json
//! { "model": { "schema": "…", … }, "certificate": { … }, "certificate_sha256": "…" }
//! ```

use dp_accountant::certificate::Certificate;
use dp_data::memory::{self, Bytes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::error::{Error, ErrorKind};
use crate::model::{self, check_finite};

/// The parts of a file with valid hashes, not yet interpreted.
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
    /// Returns the format of the model, from its member `schema`.
    pub fn format(&self) -> Option<&str> {
        self.model.get("schema").and_then(Value::as_str)
    }

    /// Returns the certificate, without the meaning of its recipe.
    ///
    /// # Errors
    /// [`ErrorKind::Format`].
    pub fn any_certificate(&self) -> Result<Certificate<Value>, Error> {
        Certificate::deserialize(&self.certificate)
            .map_err(|error| malformed(error.to_string(), model::SCHEMA).at("certificate"))
    }

    /// Returns the model, the certificate and its hash, of a file of this format.
    pub(crate) fn parts<M, D>(self, schema: &'static str) -> Result<(M, Certificate<D>, String), Error>
    where
        M: Serialize + for<'de> Deserialize<'de>,
        D: Serialize + for<'de> Deserialize<'de>,
    {
        // A file of no known format is one of this format that was changed.
        if let Some(holds) = self.format().filter(|format| *format != schema).and_then(holds) {
            return Err(Error::new(ErrorKind::OtherKind, format!("the file holds {holds}")));
        }
        let (model, certificate) =
            (typed(&self.model, "model", schema)?, typed(&self.certificate, "certificate", schema)?);
        Ok((model, certificate, self.certificate_sha256))
    }

    /// Reads the content of a file and checks its seals.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`], `Format`, `CertificateHash`, `ModelHash`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        memory::check(memory_of(bytes), "the content of the model's file")
            .map_err(|error| Error::from(error).advising("read it where there is more memory"))?;
        let malformed = |message: String| malformed(message, model::SCHEMA);
        let text = std::str::from_utf8(bytes).map_err(|_| malformed("the file is not text".to_owned()))?;
        let value = canonical::parse(text).map_err(|error| malformed(format!("not a model file: {error}")))?;
        let Value::Object(mut members) = value else {
            return Err(malformed("not a model file: no object".to_owned()));
        };
        let mut member = |name: &str| {
            members.remove(name).ok_or_else(|| malformed(format!("the member `{name}` is missing")).at(name))
        };
        let (model, certificate, seal) = (member("model")?, member("certificate")?, member("certificate_sha256")?);
        if let Some(name) = members.keys().next() {
            return Err(malformed("a member has no meaning here".to_owned()).at(name));
        }
        // The seals first: the meaning of an edited part is irrelevant.
        let certificate_sha256 = canonical::sha256(&certificate);
        if seal != certificate_sha256 {
            return Err(Error::new(ErrorKind::CertificateHash, "the certificate was changed after it was written")
                .expecting(format!("SHA-256 {certificate_sha256} under `certificate_sha256`"))
                .advising("ask for the original file"));
        }
        let model_sha256 = canonical::sha256(&model);
        if certificate.get("model_sha256") != Some(&Value::String(model_sha256.clone())) {
            return Err(Error::new(
                ErrorKind::ModelHash,
                "the certificate is not one of this model: the model was changed, or belongs to another certificate",
            )
            .expecting(format!("SHA-256 {model_sha256} under `certificate.model_sha256`"))
            .advising("ask for the original file"));
        }
        Ok(Self { model, certificate, certificate_sha256 })
    }
}

/// The content of a file of one format beside its certificate.
pub trait Content: Serialize + for<'de> Deserialize<'de> {
    /// The format.
    const SCHEMA: &'static str;

    /// Returns the released weights, if the file holds them. A file is sealed only if they are finite.
    fn weights(&self) -> &[f64] {
        &[]
    }

    /// Checks that the parts of the content fit each other.
    ///
    /// # Errors
    /// [`ErrorKind::Format`].
    fn checked(&self) -> Result<(), Error>;
}

/// A file: what was released, its certificate, and the hash that binds them.
#[derive(Debug, Clone, PartialEq)]
pub struct File<M, D> {
    /// The release.
    pub model: M,
    /// Its certificate.
    pub certificate: Certificate<D>,
    /// SHA-256 of the canonical certificate.
    pub certificate_sha256: String,
}

impl<M: Content, D: Serialize + for<'de> Deserialize<'de>> File<M, D> {
    /// Combines what was released and its certificate.
    ///
    /// # Errors
    /// [`ErrorKind::NotFinite`]; a number that JSON cannot hold.
    pub fn seal(model: M, certificate: Certificate<D>) -> Result<Self, Error> {
        check_finite(model.weights())?;
        let certificate_sha256 = canonical::sha256(&to_value(&certificate)?);
        Ok(Self { model, certificate, certificate_sha256 })
    }

    /// Adds the program that made the file to the certificate.
    ///
    /// # Errors
    /// Those of [`seal`](Self::seal).
    pub fn made_by(self, name: &str, version: &str) -> Result<Self, Error> {
        Self::seal(self.model, self.certificate.made_by(name, version))
    }

    /// Returns the text of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Unwritable`]: a number that JSON cannot hold, or a text longer than [`LARGEST_MODEL`].
    pub fn to_text(&self) -> Result<String, Error> {
        let value = serde_json::json!({
            "model": to_value(&self.model)?,
            "certificate": to_value(&self.certificate)?,
            "certificate_sha256": self.certificate_sha256,
        });
        let text = serde_json::to_string_pretty(&value).map_err(|error| unwritable(&error))? + "\n";
        if text.len() as u64 > LARGEST_MODEL {
            let message = format!("the model takes {} as JSON", Bytes(text.len() as u64));
            let error = Error::new(ErrorKind::Unwritable, message);
            let error = error.expecting(format!("at most {}", Bytes(LARGEST_MODEL)));
            return Err(error.advising("train with fewer features"));
        }
        Ok(text)
    }

    /// Reads the content of a file and checks its seals.
    ///
    /// # Errors
    /// Those of [`Sealed::parse`] and [`from_sealed`](Self::from_sealed).
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_sealed(Sealed::parse(bytes)?)
    }

    /// Reads the parts of a file whose seals are intact.
    ///
    /// # Errors
    /// [`ErrorKind::Format`], `OtherKind`.
    pub fn from_sealed(sealed: Sealed) -> Result<Self, Error> {
        let (model, certificate, certificate_sha256): (M, _, _) = sealed.parts(M::SCHEMA)?;
        model.checked()?;
        Ok(Self { model, certificate, certificate_sha256 })
    }
}

/// Returns what a file of a format holds.
fn holds(format: &str) -> Option<&'static str> {
    Some(match format {
        "dp.model/1" => "a linear model",
        "dp.network/1" => "a network",
        "dp.ranker/1" => "a ranker, which orders the documents of lists",
        "dp.steps/1" => "the certificate of a training by another program",
        "dp.metrics/1" => "metrics",
        _ => return None,
    })
}

/// Largest size of a model file in bytes, for reading and writing.
pub const LARGEST_MODEL: u64 = 4 << 30;

/// Returns an upper bound on the size of a file with this many weights: the longest double, indentation and line end.
pub fn text_of(weights: u64) -> u64 {
    weights.saturating_mul(34)
}

/// Returns the memory for reading a file, from an upper bound on its number of values. Each value is held as parsed JSON and as
/// JSON to be written, as a double, and as text for the hash and for the comparison.
fn memory_of(bytes: &[u8]) -> usize {
    const BYTES_PER_VALUE: usize = 3 * size_of::<Value>() + size_of::<f64>();
    let values = bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    values.saturating_mul(BYTES_PER_VALUE).saturating_add(bytes.len().saturating_mul(3))
}

/// Parses a member and checks that none of its content was ignored.
pub(crate) fn typed<T: Serialize + for<'de> Deserialize<'de>>(
    value: &Value,
    field: &str,
    schema: &'static str,
) -> Result<T, Error> {
    let read: T = T::deserialize(value).map_err(|error| malformed(error.to_string(), schema).at(field))?;
    if canonical::text(&to_value(&read)?) != canonical::text(value) {
        let message = "something in it has no meaning here, or is not written as it would be";
        return Err(malformed(message, schema).at(field));
    }
    Ok(read)
}

pub(crate) fn to_value(part: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(part).map_err(|error| unwritable(&error))
}

fn unwritable(error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Unwritable, format!("the model cannot be written as JSON: {error}"))
}

/// Creates the error for a file that is not a model of this schema.
pub(crate) fn malformed(message: impl Into<String>, schema: &'static str) -> Error {
    Error::new(ErrorKind::Format { schema }, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_of_each_format_holds_is_known() {
        let formats = [model::SCHEMA, crate::ranker::SCHEMA, crate::steps::SCHEMA, crate::metrics::released::SCHEMA];
        #[cfg(feature = "networks")]
        let formats = [&formats[..], &[crate::network::SCHEMA]].concat();
        for format in formats {
            assert!(holds(format).is_some(), "{format}");
        }
        assert_eq!(holds("dp.other/1"), None);
    }
}
