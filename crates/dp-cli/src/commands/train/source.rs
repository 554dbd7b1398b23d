//! The source of the records and the facts known about them.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use dp::training::{Records, key_of_units};
use dp::wording::one_line;
use dp_data::draft::{DraftOptions, LabelHint, draft};
use dp_data::encode::{Encoder, ImageFormat, InputFormat, LibsvmFormat, PROJECTION_SEEDS, Projection, Stored};
use dp_data::memory::Bytes;
use dp_data::read::{CsvReader, CuratorWarning, IdxHeader, RecordReader};
use dp_data::schema::{Label, LabelKind, Others, Schema};
use dp_data::spool::{Held, Room};
use dp_data::sums;
use dp_data::{DataError, Encoding, UnitBound};
use dp_mechanisms::rng::{OsSeeded, Purpose, ReleaseRng, SeededRng};

use super::algorithm;
use super::config::TrainConfig;
use super::knowledge::{Knowledge, NamedLabel};
use super::refusal::refusal;
use crate::args;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::files;
use crate::input::{Repeatable, TypedTable, conflict};
use crate::interrupt;
use crate::output::Console;
use crate::progress::{Counted, Progress};

/// The records, and warnings for the curator.
pub(super) type LoadedRecords<F> = (Records<F>, Vec<CuratorWarning>);

/// The encoding, as far as it is known before the records are read.
pub(super) enum Known {
    /// The complete encoder.
    Encoder(Box<Encoder>, Repeatable),
    /// Everything except the number of features of a libsvm file.
    Libsvm(LibsvmFormat, Encoding, Repeatable),
}

impl Known {
    /// Resolves the schema. Reads no record unless the schema is inferred from the data.
    pub(super) fn new(config: &TrainConfig, console: &Console) -> Result<Self, Failure> {
        match &config.knowledge {
            Knowledge::Schema { file, label, named, assume_public } => {
                let mut schema = files::schema(file)?;
                agrees(&schema, label.as_deref(), named)?;
                let unreviewed: HashSet<String> = schema.unreviewed().into_iter().map(str::to_owned).collect();
                schema.assume_public(assume_public).map_err(|error| from_data(&error).at_file(file))?;
                for name in assume_public.iter().filter(|name| !unreviewed.contains(*name)) {
                    console.warn(&format!("`{}` is reviewed: --assume-public changes nothing", one_line(name)));
                }
                schema.check_reviewed().map_err(|error| from_data(&error).at_file(file))?;
                Ok(Self::Encoder(Box::new(encoder(&schema, config)?), Repeatable::of(&config.input, false)?))
            }
            Knowledge::FromData { label, named } => {
                let data = Repeatable::of(&config.input, true)?;
                let mut options = DraftOptions::new(label);
                options.positive = named.positive.clone();
                options.negative = named.negative.clone();
                options.hint = named.hint.clone();
                options.unit = config.unit.as_ref().map(|unit| unit.column.clone());
                options.written_to = config.input.typed.as_ref().is_some_and(TypedTable::is_database);
                let drafted = draft(data.open()?.with_workers(config.workers), &options, &config.input.csv)
                    .map_err(|error| from_data(&error))?;
                for note in &drafted.notes {
                    let shown = format!("`{}`: {} (for your eyes only)", one_line(&note.column), one_line(&note.text));
                    if note.is_open { console.warn(&shown) } else { console.detail(&shown) }
                }
                let mut schema = drafted.schema;
                schema.assume_all_public();
                Ok(Self::Encoder(Box::new(encoder(&schema, config)?), data))
            }
            Knowledge::Libsvm { features, named } => {
                let format = libsvm_format(*features, named, config.input.zero_based.unwrap_or(false));
                let data = Repeatable::once(&config.input.data);
                match features {
                    Some(_) => {
                        let encoder = projected(Encoder::libsvm(format, config.encoding), config)?;
                        Ok(Self::Encoder(Box::new(encoder), data))
                    }
                    None => Ok(Self::Libsvm(format, config.encoding, data)),
                }
            }
            Knowledge::Images { named, max } => {
                // The header is read before the images.
                let data = Repeatable::of(&config.input, true)?;
                let shape = IdxHeader::read(data.open()?).map_err(|error| from_data(&error))?.shape;
                let format = ImageFormat { max: *max, ..ImageFormat::new(shape, image_label(named)) };
                let images = Encoder::images(format, config.encoding);
                images.as_ref().map_err(|error| from_data(error).at_file(&config.input.data))?;
                Ok(Self::Encoder(Box::new(projected(images, config)?), data))
            }
        }
    }

    /// Returns the label.
    pub(super) fn label(&self) -> &Label {
        match self {
            Self::Encoder(encoder, _) => encoder.label(),
            Self::Libsvm(format, ..) => &format.label,
        }
    }

    /// Reads all records.
    pub(super) fn load<F: Stored>(self, config: &TrainConfig, console: &Console) -> Result<LoadedRecords<F>, Failure> {
        if config.input.typed.as_ref().is_some_and(TypedTable::is_query) {
            console.note(
                "the guarantee is for one row of the query's result: where a person has several rows, as a join can make \
                 them, it covers each row by itself",
            );
        }
        if let Some(connections) = config.sums {
            return self.elsewhere(config, connections, console);
        }
        let Room { memory, spool } = &config.room;
        let folder = one_line(&spool.folder.display().to_string());
        console.detail(&format!("rows that need more than {} go to a temporary file in `{folder}`", Bytes(*memory)));
        let start = |total| Progress::start(config.progress, console, "read", Counted::Bytes, total);
        let csv = &config.input.csv;
        let (records, warnings) = match self {
            Self::Encoder(encoder, data) => {
                let input = config.input.and_labels(data.open_metered(start)?)?.with_workers(config.workers);
                let bound = bound(config)?;
                let chooses = config.map_is_chosen && encoder.schema().is_some();
                let map = |encoder: &Encoder, n| algorithm::mapped(&config.for_records(n), encoder, n);
                let map = chooses.then_some(map);
                Records::read(input, *encoder, csv, &config.room, bound.as_ref(), map, config.tried)?
            }
            Self::Libsvm(format, encoding, data) => {
                let (encoder, rows, warnings) =
                    Held::read_libsvm(data.open_metered(start)?, &format, encoding, &config.room)?;
                (Records { encoder, rows, tried: None }, warnings)
            }
        };
        let of_trial = records.tried.as_ref().map(|tried| &tried.rows);
        if [Some(&records.rows), of_trial].into_iter().flatten().any(|rows| matches!(rows, Held::Spool(_))) {
            let text =
                format!("the rows are in a temporary file in `{folder}`: they need more than {}", Bytes(*memory));
            // How much sparse rows of a libsvm file need depends on what they hold.
            match records.encoder.input() {
                InputFormat::Libsvm(_) => console.warn_curator(&text),
                _ => console.note(&text),
            }
        }
        Ok((records, warnings))
    }

    /// Leaves the records where they are.
    fn elsewhere<F: Stored>(
        self,
        config: &TrainConfig,
        connections: NonZeroUsize,
        console: &Console,
    ) -> Result<LoadedRecords<F>, Failure> {
        let Self::Encoder(encoder, _) = self else { return Err(conflict("--sums", "--sums is for tables")) };
        let (shown, source) = match &config.input.typed {
            Some(TypedTable::Postgres(address, relation)) => {
                (&**address, sums::postgres::open(address, relation, &encoder, connections))
            }
            Some(TypedTable::Runner(command, relation)) => {
                ("the runner", sums::runner::open(command, relation, &encoder, config.sums_timeout))
            }
            _ => return Err(conflict("--sums", "--sums is for rows that an engine keeps")),
        };
        let source = source.map_err(|error| from_data(&error))?;
        interrupt::cancel_at_end(source.cancel());
        let n = source.len();
        if n == 0 {
            return Err(Failure::new(ExitStatus::Input, "csv.no_rows", "the table has no rows").at_file(shown));
        }
        console.detail("the rows stay where they are: their engine adds up the gradients of each step");
        let warnings = source.warnings();
        let rows = Held::Elsewhere(Box::new(source), n);
        Ok((Records { encoder: *encoder, rows, tried: None }, warnings))
    }

    /// Checks only the header, and returns the encoder if it is known.
    pub(super) fn check_header(self, config: &TrainConfig) -> Result<Option<Encoder>, Failure> {
        let Self::Encoder(encoder, data) = self else { return Ok(None) };
        if let Some(schema) = encoder.schema() {
            let used = schema.columns().iter().filter(|column| column.kind != dp_data::schema::ColumnKind::Drop);
            let unit = config.unit.as_ref().map(|unit| unit.column.as_str());
            let mut used = used.map(|column| column.source()).chain([schema.label().column.as_str()]).chain(unit);
            let found = match &config.input.typed {
                // Asking a runner may start a cluster.
                Some(TypedTable::Runner(..)) => Ok(()),
                Some(table) => {
                    let table = table.open()?;
                    used.try_for_each(|name| table.position(name).map(drop))
                }
                None => CsvReader::new(data.open()?, config.input.csv.for_schema(schema))
                    .and_then(|reader| used.try_for_each(|name| reader.position(name).map(drop))),
            };
            found.map_err(|error| from_data(&error))?;
        }
        if let InputFormat::Images(_) = encoder.input() {
            let input = config.input.and_labels(data.open()?)?;
            RecordReader::new(input, &encoder, &config.input.csv, true).map_err(|error| from_data(&error))?;
        }
        Ok(Some(*encoder))
    }
}

fn from_data(error: &DataError) -> Failure {
    Failure::from_data(error)
}

fn encoder(schema: &Schema, config: &TrainConfig) -> Result<Encoder, Failure> {
    let encoder = projected(Encoder::new(schema, config.encoding), config)?;
    if config.tried.is_some() {
        // Refused before the records are read.
        encoder.with_fourier(config.tried).map_err(|error| from_data(&error))?;
    }
    Ok(encoder)
}

/// Returns the bound on the rows of a unit, with the key that draws which of them are used.
fn bound(config: &TrainConfig) -> Result<Option<UnitBound>, Failure> {
    let Some(unit) = &config.unit else { return Ok(None) };
    let key = key_of_units(config.seed).map_err(|error| refusal(&error.into()))?;
    Ok(Some(UnitBound { column: unit.column.clone(), most: unit.most, key }))
}

/// Adds the requested projection to the encoder.
fn projected(encoder: Result<Encoder, DataError>, config: &TrainConfig) -> Result<Encoder, Failure> {
    let encoder = encoder.map_err(|error| from_data(&error))?;
    let Some(args::Project { kind, features }) = config.projection else { return Ok(encoder) };
    let seed = match (config.projection_seed, config.seed) {
        (Some(seed), _) => seed,
        (None, Some(seed)) => below_limit(SeededRng::new(seed).derive_key(PROJECTION)),
        // A separate generator, so that the published seed reveals nothing about the noise.
        (None, None) => below_limit(OsSeeded::new().map_err(|error| refusal(&error.into()))?.derive_key(PROJECTION)),
    };
    let projection = Projection { kind, ..Projection::gaussian(features, seed) };
    encoder.projected(projection).map_err(|error| from_data(&error).at_flag("--project"))
}

/// The key derivation purpose of the projection seed.
const PROJECTION: Purpose = Purpose::Custom(u32::from_be_bytes(*b"proj"));

fn below_limit([a, b, c, d, e, f, g, h, ..]: [u8; 32]) -> u64 {
    u64::from_le_bytes([a, b, c, d, e, f, g, h]) % PROJECTION_SEEDS
}

/// Returns whether the classes of the label are exactly those listed, ignoring the treatment of other values.
fn same_classes(hint: &LabelHint, kind: &LabelKind) -> bool {
    matches!((hint, kind), (LabelHint::Classes(listed), LabelKind::Classes { classes, .. }) if listed == classes)
}

/// Checks that a label or class given besides the schema is that of the schema.
fn agrees(schema: &Schema, label: Option<&str>, named: &NamedLabel) -> Result<(), Failure> {
    let declared = schema.label();
    if let Some(label) = label
        && label != declared.column
    {
        return Err(conflict("--label", format!("--label is `{label}`, the schema's label is `{}`", declared.column))
            .help("omit --label, or change [label] in the schema"));
    }
    if let Some(hint) = &named.hint
        && LabelKind::from(hint.clone()) != declared.kind
        && !same_classes(hint, &declared.kind)
    {
        let flag = if matches!(hint, LabelHint::Number(_)) { "--label-range" } else { "--classes" };
        return Err(conflict(flag, format!("{flag} is not what the schema says of its label"))
            .help(format!("omit {flag}, or change [label] in the schema")));
    }
    let LabelKind::TwoClasses { positive, negative, others } = &declared.kind else {
        let given = [("--positive", &named.positive), ("--negative", &named.negative)];
        return match given.iter().find(|(_, value)| value.is_some()) {
            None => Ok(()),
            Some((flag, _)) => Err(conflict(flag, "the label of the schema is not one of two classes")
                .help(format!("omit {flag}, or change [label] in the schema"))),
        };
    };
    let sides = [
        ("--positive", "positive", &named.positive, positive, negative, Others::Positive),
        ("--negative", "negative", &named.negative, negative, positive, Others::Negative),
    ];
    for (flag, class, side, values, opposite, of_others) in sides {
        if let Some(value) = side
            && !(values.contains(value) || (*others == of_others && !opposite.contains(value)))
        {
            return Err(conflict(flag, format!("`{value}` is not {class} in the schema"))
                .help(format!("omit {flag}, or change [label] in the schema")));
        }
    }
    Ok(())
}

/// Returns the label of images: the ten digits, or the given classes.
fn image_label(named: &NamedLabel) -> Label {
    let LibsvmFormat { label, .. } = libsvm_format(None, named, false);
    if *named == NamedLabel::default() {
        Label::classes(&label.column, (0..10).map(|digit| digit.to_string()).collect())
    } else {
        label
    }
}

fn libsvm_format(features: Option<u32>, named: &NamedLabel, zero_based: bool) -> LibsvmFormat {
    let usual = LibsvmFormat::default();
    if let Some(hint) = &named.hint {
        let label = Label { kind: hint.clone().into(), ..usual.label };
        return LibsvmFormat { features, zero_based, label, ..usual };
    }
    let values = |side: &Option<String>| side.iter().cloned().collect::<Vec<_>>();
    let (positive, negative) = (values(&named.positive), values(&named.negative));
    let (positive, negative, others) = match (&named.positive, &named.negative) {
        (None, None) => (vec!["+1".into()], vec!["-1".into(), "0".into()], Others::Error),
        (Some(_), None) => (positive, negative, Others::Negative),
        (None, Some(_)) => (positive, negative, Others::Positive),
        (Some(_), Some(_)) => (positive, negative, Others::Error),
    };
    let label = Label::two_classes(&usual.label.column, positive, negative, others);
    LibsvmFormat { features, zero_based, label, ..usual }
}
