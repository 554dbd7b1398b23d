//! The model file: model, certificate and the seal that ties them together, in one JSON object.
//!
//! ```json
//! { "model": { "schema": "dp.model/1", … }, "certificate": { … }, "certificate_sha256": "…" }
//! ```
//! Hashes go one way: the certificate holds the SHA-256 of the canonical model, the file that of the canonical
//! certificate. They find out accidents and thoughtless edits; what an edit that repairs them cannot get past is that
//! the guarantee has to follow from the recipe (see [`crate::commands::verify`]).

use std::io::Read;

use dp_accountant::certificate::{Assumption, Certificate};
use dp_data::encode::{Encoder, InputFormat, LibsvmFormat};
use dp_data::schema::{Label, Review};
use dp_losses::LossKind;
use dp_optim::Derivation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::Format;
use crate::canonical;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::InputConfig;

/// The format of the model member.
pub const SCHEMA: &str = "dp.model/1";

/// How the schema's part of the certificate names a width that was taken from libsvm data.
pub const FEATURE_COUNT: &str = "number of features";

/// A released linear classifier, with all that is needed to apply it to raw records.
///
/// # Formula
/// ```text
/// score(record) = Σ_j weights[j] · encode(record)[j],    class = positive if score > 0, else negative
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// [`SCHEMA`].
    pub schema: String,
    /// `linear-classifier`.
    pub kind: ModelKind,
    /// The loss that it was trained with.
    pub loss: LossKind,
    /// What predictions are called.
    pub classes: Classes,
    /// From raw cells to features; public.
    pub encoder: Encoder,
    /// Names of the features, one for each weight.
    pub features: Vec<String>,
    /// The released weights.
    pub weights: Vec<f64>,
}

/// What kind of model it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// A weighted sum of features, thresholded at 0.
    LinearClassifier,
}

/// What the two classes are called in predictions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// Where the score is greater than 0.
    pub positive: String,
    /// Elsewhere.
    pub negative: String,
}

impl Classes {
    /// The first declared value of each class; `other` for the class that all other values fall in.
    pub fn of(label: &Label) -> Self {
        let first = |values: &[String]| values.first().cloned().unwrap_or_else(|| "other".to_owned());
        Self { positive: first(&label.positive), negative: first(&label.negative) }
    }
}

impl Model {
    /// A model from its released weights.
    pub fn new(encoder: Encoder, loss: LossKind, weights: Vec<f64>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            kind: ModelKind::LinearClassifier,
            loss,
            classes: Classes::of(encoder.label()),
            features: encoder.feature_names(),
            encoder,
            weights,
        }
    }

    /// SHA-256 of the canonical form.
    ///
    /// # Errors
    /// A weight that JSON cannot hold.
    pub fn sha256(&self) -> Result<String, Failure> {
        Ok(canonical::sha256(&to_value(self)?))
    }

    /// What of the schema the certificate has to name.
    pub fn schema_assumption(&self) -> Assumption {
        let columns = assumed_public(&self.encoder);
        if columns.is_empty() { Assumption::PublicSchema } else { Assumption::AssumedPublic { columns } }
    }

    /// Whether the parts fit each other.
    fn check(&self) -> Result<(), &'static str> {
        if self.schema != SCHEMA {
            return Err("the model is of another format");
        }
        if self.weights.len() != self.encoder.dim() || self.features != self.encoder.feature_names() {
            return Err("weights, feature names and encoder do not fit each other");
        }
        if self.classes != Classes::of(self.encoder.label()) {
            return Err("the names of the classes are not those of the label");
        }
        Ok(())
    }
}

/// What of the encoder was taken from the data and declared public, by name.
pub fn assumed_public(encoder: &Encoder) -> Vec<String> {
    match encoder.input() {
        InputFormat::Table(schema) => {
            let label = schema.label();
            let columns = schema.columns().iter().map(|column| (&column.name, column.review));
            columns
                .chain([(&label.column, label.review)])
                .filter(|(_, review)| *review != Review::Reviewed)
                .map(|(name, _)| name.clone())
                .collect()
        }
        InputFormat::Libsvm(format) if format.features_from_data => vec![FEATURE_COUNT.to_owned()],
        _ => Vec::new(),
    }
}

/// A model file.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The model.
    pub model: Model,
    /// Its certificate.
    pub certificate: Certificate<Derivation>,
    /// SHA-256 of the canonical certificate.
    pub certificate_sha256: String,
}

impl ModelFile {
    /// Puts a model and its certificate together.
    ///
    /// # Errors
    /// A number that JSON cannot hold.
    pub fn seal(model: Model, certificate: Certificate<Derivation>) -> Result<Self, Failure> {
        let certificate_sha256 = canonical::sha256(&to_value(&certificate)?);
        Ok(Self { model, certificate, certificate_sha256 })
    }

    /// The text of the file.
    ///
    /// # Errors
    /// A number that JSON cannot hold.
    pub fn to_text(&self) -> Result<String, Failure> {
        let value = serde_json::json!({
            "model": to_value(&self.model)?,
            "certificate": to_value(&self.certificate)?,
            "certificate_sha256": self.certificate_sha256,
        });
        serde_json::to_string_pretty(&value).map(|text| text + "\n").map_err(|error| unwritable(&error))
    }

    /// The encoder for records of the form that `input` names.
    ///
    /// # Errors
    /// `model.mismatch` where the model was trained on another form.
    pub fn encoder_for(&self, input: &InputConfig) -> Result<Encoder, Failure> {
        let mismatch = |found: &str, expected: &str| {
            Failure::new(ExitStatus::Input, "model.mismatch", format!("the model does not read {found}"))
                .at_file(&input.data)
                .expected(format!("{expected}, as in training"))
                .help(format!("if it is {expected}, say so with --format"))
        };
        match (self.model.encoder.input(), input.format) {
            (InputFormat::Table(_), Format::Csv) => Ok(self.model.encoder.clone()),
            (InputFormat::Libsvm(trained), Format::Libsvm) => {
                let zero_based = input.zero_based.unwrap_or(trained.zero_based);
                Encoder::libsvm(LibsvmFormat { zero_based, ..trained.clone() }, self.model.encoder.encoding())
                    .map_err(|error| Failure::from_data(&error))
            }
            (InputFormat::Table(_), _) => Err(mismatch("libsvm", "CSV")),
            _ => Err(mismatch("CSV", "libsvm")),
        }
    }

    /// The recipe's parameters as JSON.
    pub fn derivation_json(&self) -> Value {
        serde_json::to_value(&self.certificate.derivation).unwrap_or_default()
    }

    /// Reads `name` (`-` for standard input) and checks its seals.
    ///
    /// # Errors
    /// `model.read`, `model.format`, `verify.certificate_hash`, `verify.model_hash`.
    pub fn open(name: &str) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        let read = match name {
            "-" => std::io::stdin().lock().read_to_end(&mut bytes),
            _ => std::fs::File::open(name).and_then(|mut file| file.read_to_end(&mut bytes)),
        };
        read.map_err(|error| {
            Failure::new(ExitStatus::Failed, "model.read", format!("cannot read the model: {error}"))
                .at_file(name)
                .help("name the file that `dp train --out` wrote")
        })?;
        Self::parse(&bytes).map_err(|failure| failure.at_file(name))
    }

    /// Reads the content of a model file and checks its seals.
    ///
    /// # Errors
    /// `model.format`, `verify.certificate_hash`, `verify.model_hash`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(bytes).map_err(|_| malformed("the file is not text"))?;
        let value = canonical::parse(text).map_err(|error| malformed(format!("not a model file: {error}")))?;
        let Value::Object(mut members) = value else { return Err(malformed("not a model file: no object")) };
        let mut member = |name: &str| {
            members.remove(name).ok_or_else(|| malformed(format!("the member `{name}` is missing")).at_field(name))
        };
        let (model, certificate, seal) = (member("model")?, member("certificate")?, member("certificate_sha256")?);
        if let Some(name) = members.keys().next() {
            return Err(malformed("a member has no meaning here").at_field(name));
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
        let file = Self {
            model: typed(&model, "model")?,
            certificate: typed(&certificate, "certificate")?,
            certificate_sha256,
        };
        file.model.check().map_err(|why| malformed(why).at_field("model"))?;
        Ok(file)
    }
}

/// Reads a member and makes sure that nothing in it was passed over.
fn typed<T: Serialize + for<'de> Deserialize<'de>>(value: &Value, field: &str) -> Result<T, Failure> {
    let read: T = T::deserialize(value).map_err(|error| malformed(error.to_string()).at_field(field))?;
    if canonical::text(&to_value(&read)?) != canonical::text(value) {
        return Err(malformed("something in it has no meaning here, or is not written as it would be").at_field(field));
    }
    Ok(read)
}

fn to_value(part: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(part).map_err(|error| unwritable(&error))
}

fn unwritable(error: &serde_json::Error) -> Failure {
    Failure::new(ExitStatus::Failed, "output.write", format!("the model cannot be written as JSON: {error}"))
}

fn malformed(message: impl Into<String>) -> Failure {
    Failure::new(ExitStatus::Input, "model.format", message)
        .expected(format!("a model of format {SCHEMA}, as `dp train --out` writes it"))
}
