//! Models, rankers and schemas from files, with the command's advice on errors.

use dp::network::{self, NetworkFile};
use dp::{Error, ErrorKind, ModelFile, RankerFile, Sealed, model};
use dp_data::encode::{InputFormat, UnknownCategory};
use dp_data::memory;
use dp_data::{Encoder, Schema};

use crate::args::{FileName, Format};
use crate::exit_code::ExitStatus;
use crate::failure::{Failure, out_of_memory};
use crate::input::{InputConfig, LARGEST_SCHEMA, conflict, read_whole};

/// Reads `name` (`-` for standard input) and checks its seals.
///
/// # Errors
/// `model.read`, `file.too_large`, `memory.exhausted`, `model.format`, `verify.certificate_hash`, `verify.model_hash`.
pub fn sealed(name: &FileName) -> Result<Sealed, Failure> {
    let bytes = read_whole(name, dp::sealed::LARGEST_MODEL, |error| {
        Failure::new(ExitStatus::Failed, "model.read", format!("cannot read the model: {error}"))
            .help("name the file that `dp train --out` or `dp rank train --out` wrote")
    })?;
    Sealed::parse(&bytes).map_err(|error| Failure::from(error).at_file(name))
}

/// A model of records, of either kind.
pub enum AnyModel {
    /// A linear model.
    Linear(Box<ModelFile>),
    /// A network of images.
    Network(Box<NetworkFile>),
}

/// Reads the model or network `name` (`-` for standard input) and checks its seals.
///
/// # Errors
/// Those of [`sealed`], and a file that holds a ranker.
pub fn any_model(name: &FileName) -> Result<AnyModel, Failure> {
    let sealed = sealed(name)?;
    match sealed.format() {
        Some(network::SCHEMA) => match NetworkFile::from_sealed(sealed) {
            Ok(file) => Ok(AnyModel::Network(Box::new(file))),
            Err(error) => Err(Failure::from(error).at_file(name)),
        },
        _ => linear(sealed, name).map(|file| AnyModel::Linear(Box::new(file))),
    }
}

/// Reads the linear model `name` (`-` for standard input) and checks its seals.
///
/// # Errors
/// Those of [`sealed`], and a file that holds something else.
pub fn model(name: &FileName) -> Result<ModelFile, Failure> {
    linear(sealed(name)?, name)
}

fn linear(sealed: Sealed, name: &FileName) -> Result<ModelFile, Failure> {
    let help = match sealed.format() {
        Some(network::SCHEMA) => "networks are read by `dp evaluate`, `dp predict` without --sql, and `dp verify`",
        Some(dp::ranker::SCHEMA) => "use `dp rank evaluate` or `dp rank predict`; `dp verify` reads both",
        _ => "`dp verify` reads it",
    };
    ModelFile::from_sealed(sealed).map_err(|error| {
        let failure = Failure::from(error.clone()).at_file(name);
        match error.kind() {
            ErrorKind::OtherKind => made_by_train(failure, model::SCHEMA).help(help),
            _ => failure,
        }
    })
}

/// Returns the model that decides at this probability instead of its own threshold.
///
/// # Errors
/// `usage.value` and `model.mismatch` for a threshold that does not suit it.
pub fn deciding_at(file: ModelFile, name: &FileName, threshold: Option<f64>) -> Result<ModelFile, Failure> {
    let Some(threshold) = threshold else { return Ok(file) };
    if !(threshold > 0.0 && threshold < 1.0) {
        return Err(Failure::usage("--threshold", format!("--threshold is {threshold}"))
            .expected("a probability above 0 and below 1"));
    }
    let model = file.model.deciding_at(threshold).ok_or_else(|| no_threshold(name))?;
    Ok(ModelFile { model, ..file })
}

/// Creates the failure for a model without a threshold.
pub fn no_threshold(name: &FileName) -> Failure {
    Failure::new(ExitStatus::Input, "model.mismatch", "the model gives no probability of a positive class")
        .at_file(name)
        .expected("a model of two classes with the logistic loss")
        .help("omit --threshold")
}

/// Reads the ranker `name` (`-` for standard input) and checks its seals.
///
/// # Errors
/// Those of [`sealed`], and a file that holds another model.
pub fn ranker(name: &FileName) -> Result<RankerFile, Failure> {
    RankerFile::from_sealed(sealed(name)?).map_err(|error| {
        let failure = Failure::from(error.clone()).at_file(name);
        match error.kind() {
            ErrorKind::OtherKind => {
                made_by_train(failure, dp::ranker::SCHEMA).help("name the file that `dp rank train --out` wrote")
            }
            _ => failure,
        }
    })
}

/// Returns the encoder of a model for records in the format that `input` names.
///
/// # Errors
/// `model.mismatch` if the model was trained on another format; `usage.conflict` for categories of records without columns.
pub fn encoder_for(
    file: &ModelFile,
    input: &InputConfig,
    on_unknown: Option<UnknownCategory>,
) -> Result<Encoder, Failure> {
    let (trained_on, same) = match file.model.encoder.input() {
        InputFormat::Table(_) => ("a table", input.format.is_table()),
        InputFormat::Libsvm(_) => ("libsvm", input.format == Format::Libsvm),
        InputFormat::Images(_) => ("IDX images", input.format == Format::Idx),
        _ => ("another form", false),
    };
    if !same {
        let message = format!("the model does not read {}", input.format.name());
        return Err(Failure::new(ExitStatus::Input, "model.mismatch", message)
            .at_file(&input.data)
            .expected(format!("{trained_on}, as in training"))
            .help(format!("if it is {trained_on}, say so with --format")));
    }
    let encoder = file.encoder_counting(input.zero_based).map_err(|error| Failure::from_data(&error))?;
    match on_unknown {
        None => Ok(encoder),
        Some(_) if encoder.schema().is_none() => Err(conflict("--on-unknown", "these records have no categories")),
        Some(treatment) => Ok(encoder.with_unknown(treatment)),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::NotFinite | ErrorKind::Unwritable | ErrorKind::Memory | ErrorKind::Random => ExitStatus::Failed,
            ErrorKind::Format { .. }
            | ErrorKind::OtherKind
            | ErrorKind::Checkpoint
            | ErrorKind::OtherTraining
            | ErrorKind::Work { .. }
            | ErrorKind::Key
            | ErrorKind::WeakKey
            | ErrorKind::SignatureFormat => ExitStatus::Input,
            _ => ExitStatus::Verification,
        };
        let mut failure = match error.kind() {
            ErrorKind::Memory => out_of_memory(error.to_string()),
            _ => Self::new(exit, error.code(), error.to_string()),
        };
        failure.details.location.field = error.field().map(str::to_owned);
        failure.details.expected = error.expected().map(str::to_owned);
        if let Some(help) = error.help() {
            failure = failure.help(help);
        }
        match error.kind() {
            ErrorKind::Format { schema } => made_by_train(failure, schema),
            ErrorKind::NotFinite => failure
                .at_flag("--out")
                .expected("settings under which the arithmetic does not overflow")
                .help("check --lambda, --step-size and --radius for extreme values; no model was written"),
            ErrorKind::Checkpoint => {
                failure.help("omit --resume to start again: what the interrupted training has cost counts, too")
            }
            ErrorKind::OtherTraining => failure.help("repeat the flags of the interrupted training, with --resume"),
            ErrorKind::NotPrivate => failure.help("train again with privacy and without --seed"),
            ErrorKind::Work { needed } => failure
                .at_flag("--work")
                .help(format!("if you trust the file that far, allow for more: --work {needed}")),
            _ => failure,
        }
    }
}

/// Adds the command that writes files of this schema.
fn made_by_train(failure: Failure, schema: &str) -> Failure {
    let writer = if [model::SCHEMA, network::SCHEMA].contains(&schema) { "dp train" } else { "dp rank train" };
    let kind = match schema {
        model::SCHEMA => "linear model",
        network::SCHEMA => "network",
        _ => "ranker",
    };
    failure.expected(format!("a {kind} of format {schema}, as `{writer} --out` writes it"))
}

/// Bytes of memory per byte of a schema. Measured: 20 for categories, 36 for columns.
const BYTES_PER_BYTE_OF_SCHEMA: usize = 40;

/// Reads a schema.
///
/// # Errors
/// `file.open`, `file.too_large`, `schema.*`.
pub fn schema(file: &FileName) -> Result<Schema, Failure> {
    let shown = if &**file == "-" { "standard input" } else { file };
    let bytes = read_whole(file, LARGEST_SCHEMA, |error| {
        Failure::new(ExitStatus::Failed, "file.open", format!("cannot read the schema: {error}"))
            .help("draft one with `dp schema`")
    })
    .map_err(|failure| failure.at_flag("--schema"))?;
    // The memory of the schema while it is read and used to encode, with a string for each name and value.
    memory::check(bytes.len().saturating_mul(BYTES_PER_BYTE_OF_SCHEMA), "what the schema says")
        .map_err(|error| Failure::from(error).at_file(shown).at_flag("--schema"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let mut failure = Failure::new(ExitStatus::Input, "schema.syntax", "the schema is not UTF-8 text")
            .at_file(shown)
            .help("convert the file, for instance with `iconv -f latin1 -t utf-8`");
        failure.details.location.line = Some(valid.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1);
        failure
    })?;
    Schema::parse(shown, &text).map_err(|error| Failure::from_data(&error))
}
