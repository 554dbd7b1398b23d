//! What is known of the records, and reading them.

use dp_data::draft::{DraftOptions, draft};
use dp_data::encode::{Encoder, LibsvmFormat, Stored};
use dp_data::read::{self, CsvReader, Loaded};
use dp_data::schema::{Label, Others, Schema};
use dp_data::{DataError, Encoding};

use super::config::{Knowledge, NamedClasses, TrainConfig};
use crate::exit_code::ExitStatus;
use crate::failure::{Failure, one_line};
use crate::input::{Repeatable, conflict};
use crate::output::Console;
use crate::progress::{Counted, Progress};

/// What is known before the records are read.
pub(super) enum Known {
    /// Everything.
    Encoder(Encoder, Repeatable),
    /// All but the number of features of a libsvm file.
    Libsvm(LibsvmFormat, Encoding, Repeatable),
}

impl Known {
    /// Resolves the schema. Reads no record unless the schema is to come from the data.
    pub(super) fn new(config: &TrainConfig, console: &Console) -> Result<Self, Failure> {
        match &config.knowledge {
            Knowledge::Schema { file, label, classes, assume_public } => {
                let mut schema = read_schema(file)?;
                agrees(&schema, label.as_deref(), classes)?;
                schema.assume_public(assume_public).map_err(|error| from_data(&error).at_file(file))?;
                schema.check_reviewed().map_err(|error| from_data(&error).at_file(file))?;
                Ok(Self::Encoder(encoder(&schema, config)?, Repeatable::once(&config.input.data)))
            }
            Knowledge::FromData { label, classes } => {
                let data = Repeatable::new(&config.input.data)?;
                let mut options = DraftOptions::new(label);
                options.positive = classes.positive.clone();
                options.negative = classes.negative.clone();
                let drafted = draft(data.open()?, &options, &config.input.csv).map_err(|error| from_data(&error))?;
                for note in &drafted.notes {
                    console.detail(&format!(
                        "`{}`: {} (for your eyes only)",
                        one_line(&note.column),
                        one_line(&note.text)
                    ));
                }
                let mut schema = drafted.schema;
                schema.assume_all_public();
                Ok(Self::Encoder(encoder(&schema, config)?, data))
            }
            Knowledge::Libsvm { features, classes } => {
                let format = libsvm_format(*features, classes, config.input.zero_based.unwrap_or(false));
                let data = Repeatable::once(&config.input.data);
                match features {
                    Some(_) => {
                        let encoder = Encoder::libsvm(format, config.encoding).map_err(|error| from_data(&error))?;
                        Ok(Self::Encoder(encoder, data))
                    }
                    None => Ok(Self::Libsvm(format, config.encoding, data)),
                }
            }
        }
    }

    /// Reads all records.
    pub(super) fn load<F: Stored>(
        self,
        config: &TrainConfig,
        console: &Console,
    ) -> Result<(Encoder, Loaded<F>), Failure> {
        let start = |total| Progress::start(config.progress, console, "read", Counted::Bytes, total);
        match self {
            Self::Encoder(encoder, data) => {
                let loaded = read::load(data.open_metered(start)?, &encoder, &config.input.csv)
                    .map_err(|error| from_data(&error))?;
                Ok((encoder, loaded))
            }
            Self::Libsvm(format, encoding, data) => {
                read::load_libsvm(data.open_metered(start)?, &format, encoding).map_err(|error| from_data(&error))
            }
        }
    }

    /// Checks the header alone, and gives the encoder where it is known.
    pub(super) fn check_header(self, config: &TrainConfig) -> Result<Option<Encoder>, Failure> {
        let Self::Encoder(encoder, data) = self else { return Ok(None) };
        if let Some(schema) = encoder.schema() {
            let reader = CsvReader::new(data.open()?, config.input.csv).map_err(|error| from_data(&error))?;
            let used = schema.columns().iter().filter(|column| column.kind != dp_data::schema::ColumnKind::Drop);
            for name in used.map(|column| &column.name).chain([&schema.label().column]) {
                reader.position(name).map_err(|error| from_data(&error))?;
            }
        }
        Ok(Some(encoder))
    }
}

fn from_data(error: &DataError) -> Failure {
    Failure::from_data(error)
}

fn encoder(schema: &Schema, config: &TrainConfig) -> Result<Encoder, Failure> {
    Encoder::new(schema, config.encoding).map_err(|error| from_data(&error))
}

fn read_schema(file: &str) -> Result<Schema, Failure> {
    let shown = if file == "-" { "standard input" } else { file };
    let bytes = match file {
        "-" => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map(|_| bytes)
        }
        _ => std::fs::read(file),
    };
    let bytes = bytes.map_err(|error| {
        Failure::new(ExitStatus::Failed, "file.open", format!("cannot read the schema: {error}"))
            .at_file(shown)
            .at_flag("--schema")
            .help("draft one with `dp schema`")
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(ExitStatus::Input, "schema.syntax", "the schema is not UTF-8 text").at_file(shown))?;
    Schema::parse(shown, &text).map_err(|error| from_data(&error))
}

/// A label or class that is named besides the schema must be the schema's.
fn agrees(schema: &Schema, label: Option<&str>, classes: &NamedClasses) -> Result<(), Failure> {
    let declared = schema.label();
    if let Some(label) = label
        && label != declared.column
    {
        return Err(conflict("--label", format!("--label is `{label}`, the schema's label is `{}`", declared.column))
            .help("leave --label away, or change [label] in the schema"));
    }
    let sides = [
        ("--positive", "positive", &classes.positive, &declared.positive, &declared.negative, Others::Positive),
        ("--negative", "negative", &classes.negative, &declared.negative, &declared.positive, Others::Negative),
    ];
    for (flag, class, named, values, opposite, others) in sides {
        if let Some(value) = named
            && !(values.contains(value) || (declared.others == others && !opposite.contains(value)))
        {
            return Err(conflict(flag, format!("`{value}` is not {class} in the schema"))
                .help(format!("leave {flag} away, or change [label] in the schema")));
        }
    }
    Ok(())
}

fn libsvm_format(features: Option<u32>, classes: &NamedClasses, zero_based: bool) -> LibsvmFormat {
    let usual = LibsvmFormat::default();
    let values = |named: &Option<String>| named.iter().cloned().collect::<Vec<_>>();
    let (positive, negative) = (values(&classes.positive), values(&classes.negative));
    let label = match (&classes.positive, &classes.negative) {
        (None, None) => Label { positive: vec!["+1".into()], negative: vec!["-1".into(), "0".into()], ..usual.label },
        (Some(_), None) => Label { positive, negative, others: Others::Negative, ..usual.label },
        (None, Some(_)) => Label { positive, negative, others: Others::Positive, ..usual.label },
        (Some(_), Some(_)) => Label { positive, negative, others: Others::Error, ..usual.label },
    };
    LibsvmFormat { features, zero_based, label, ..usual }
}
