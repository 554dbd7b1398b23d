//! Loading of a file into examples in memory.

use std::collections::HashSet;

use super::Input;
use super::csv::{CsvOptions, CsvReader, missing_column};
use super::idx::ImageReader;
use super::owners::{Owners, is_identifier};
use super::records::RecordReader;
use super::unit_names::UnitNames;
use super::warning::{ClassCounts, CuratorWarning, from_columns, from_label};
use crate::encode::{
    Coordinates, Encoder, Encoding, InputFormat, LibsvmFormat, MAX_FEATURES, RowBuffer, Stage, Stored,
};
use crate::error::{DataError, DataErrorKind};
use crate::examples::{Builder, Examples, ShapeError};
use crate::schema::{Column, ColumnKind, Schema};

/// Examples read from a file.
#[derive(Debug)]
pub struct Loaded<F> {
    /// The examples, each of norm at most 1, in the order of the file.
    pub examples: Examples<F>,
    /// Warnings for the curator only.
    pub warnings: Vec<CuratorWarning>,
}

/// Reads the input format of `encoder`. `options` are used for tables only.
///
/// # Errors
/// As [`load_csv`], [`load_libsvm`] and [`load_images`].
pub fn load<F: Stored>(input: Input, encoder: &Encoder, options: &CsvOptions) -> Result<Loaded<F>, DataError> {
    read(input, encoder, options, Stage::Features, None, &mut stay).map(|read| read.loaded)
}

/// Called with the rows so far, repeatedly while rows are read; it may move them elsewhere.
pub(crate) type Settle<'s, F> = &'s mut dyn FnMut(&mut Builder<F>) -> Result<(), DataError>;

/// The rows stay where they are.
fn stay<F>(_: &mut Builder<F>) -> Result<(), DataError> {
    Ok(())
}

/// Number of rows between two calls of [`Settle`] where rows are read one by one.
const SETTLED: usize = 1024;

/// Rows that were read.
#[cfg_attr(not(feature = "spool"), allow(dead_code))]
pub(crate) struct ReadRows<F> {
    /// Those that [`Settle`] left.
    pub(crate) loaded: Loaded<F>,
    /// The largest number of features of a libsvm line.
    pub(crate) widest: u32,
    /// The unit of each row of a table.
    pub(crate) units: UnitNames,
}

/// Reads rows of this stage, and the column that names their unit, if there is one.
pub(crate) fn read<F: Stored>(
    input: Input,
    encoder: &Encoder,
    options: &CsvOptions,
    stage: Stage,
    unit: Option<&str>,
    settle: Settle<'_, F>,
) -> Result<ReadRows<F>, DataError> {
    let without_units = |(loaded, widest)| ReadRows { loaded, widest, units: UnitNames::default() };
    match (encoder.input(), unit) {
        (InputFormat::Table(_), _) => read_csv(input, encoder, options, stage, unit, settle),
        (_, Some(unit)) => Err(missing_column(unit, std::iter::empty()).in_file(input.name())),
        (InputFormat::Libsvm(_), None) => read_libsvm(input, encoder, settle).map(without_units),
        (InputFormat::Images(_), None) => read_images(input, encoder, settle).map(|loaded| without_units((loaded, 0))),
    }
}

/// Reads a CSV file with labels into examples, in one pass.
///
/// Memory is that of the examples and a buffer. Rows are dense or sparse according to [`Encoder::prefers_sparse`].
///
/// # Errors
/// `csv.*`, `label.*` and `file.*`, with line and column; `schema.columns` if the encoder is not one for tables.
///
/// # Examples
/// ```
/// use dp_data::{Encoder, Encoding, Schema, read};
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100 }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
/// let input = read::Input::from_bytes("toy.csv", b"age,y\n0,no\n100,yes\n".to_vec());
/// let loaded = read::load_csv::<f64>(input, &encoder, &Default::default())?;
/// assert_eq!(loaded.examples.targets(), &[-1.0, 1.0]);
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn load_csv<F: Stored>(input: Input, encoder: &Encoder, options: &CsvOptions) -> Result<Loaded<F>, DataError> {
    read_csv(input, encoder, options, Stage::Features, None, &mut stay).map(|read| read.loaded)
}

/// Reads a CSV file with labels into coordinates, of which [`Coordinates::encode`] makes examples once a map is chosen, and
/// returns them with warnings for the curator.
///
/// # Errors
/// As [`load_csv`].
pub fn load_coordinates<F: Stored>(
    input: Input,
    encoder: &Encoder,
    options: &CsvOptions,
) -> Result<(Coordinates<F>, Vec<CuratorWarning>), DataError> {
    let read = read_csv(input, encoder, options, Stage::Coordinates, None, &mut stay)?;
    Ok((Coordinates::new(read.loaded.examples), read.loaded.warnings))
}

/// Reads a CSV file with labels into rows of this stage.
fn read_csv<F: Stored>(
    input: Input,
    encoder: &Encoder,
    options: &CsvOptions,
    stage: Stage,
    unit: Option<&str>,
    settle: Settle<'_, F>,
) -> Result<ReadRows<F>, DataError> {
    let file = input.name().to_owned();
    // Without a unit, look for an identifier that several rows share.
    let suspected = |header: &[String]| encoder.schema().and_then(|schema| suspected(header, schema)).cloned();
    let kept = |header: &[String]| unit.map(str::to_owned).or_else(|| suspected(header)).into_iter().collect();
    let mut records = RecordReader::of_table(input, encoder, options, stage, true, &kept)?;
    let suspected = if unit.is_some() { None } else { suspected(records.header()) };
    let header: Vec<String> = records.header().iter().filter(|name| unit != Some(name)).cloned().collect();
    let mut warnings = encoder.schema().map_or_else(Vec::new, |schema| unused_columns(&header, schema));
    let empty = || {
        let (dim, sparse) = encoder.shape_of(stage);
        let owners = suspected.is_some().then(Owners::default);
        Collector::of_rows(encoder, dim, sparse).map(|collector| Collector { owners, ..collector })
    };
    let mut collector = collect(&mut records, &file, empty, settle)?;
    if let Some(column) = &suspected
        && let Some(most) = collector.owners.take().and_then(|owners| owners.most()).filter(|most| *most > 1)
    {
        warnings.push(CuratorWarning::SharedIdentifier { column: column.clone(), most });
    }
    if collector.is_empty() {
        return Err(no_rows().in_file(&file));
    }
    warnings.extend(from_columns(encoder, records.row()));
    warnings.extend(from_label(encoder, records.row()));
    let (loaded, units) = collector.finish(encoder, warnings);
    Ok(ReadRows { loaded, widest: 0, units })
}

/// The error for a table without records.
pub(crate) fn no_rows() -> DataError {
    DataError::new(DataErrorKind::CsvNoRows, "the table holds no rows").expected("at least one row")
}

/// Reads all records, chunks of them on several threads, into what `empty` returns.
fn collect<F: Stored>(
    records: &mut RecordReader<'_>,
    file: &str,
    empty: impl Fn() -> Result<Collector<F>, DataError> + Sync,
    settle: Settle<'_, F>,
) -> Result<Collector<F>, DataError> {
    let mut collector = empty()?;
    let of_chunk = |records: &mut RecordReader<'_>| {
        let mut chunk = empty()?;
        chunk.push_all(records, file, &mut stay)?;
        Ok(chunk)
    };
    records.for_each_chunk(of_chunk, |chunk| {
        collector.append(chunk).map_err(|error| error.in_file(file))?;
        collector.settle(settle)
    })?;
    collector.push_all(records, file, settle)?;
    // Called with all rows, so that where they end up does not depend on how the file was cut.
    collector.settle(settle)?;
    Ok(collector)
}

/// Reads a libsvm file into sparse examples, in one pass, and returns them with their encoder.
///
/// Values are used unchanged; the intercept is appended and the row norm bounded according to `encoding`. If `format.features` is
/// `None` the width is that of the largest index, which the encoder's format then states by `features_from_data`.
///
/// # Privacy
/// A width taken from the data is an assumption to be recorded: a single record may have the largest index.
///
/// # Errors
/// `libsvm.*`, `label.*` and `file.*`, with the line.
///
/// # Examples
/// ```
/// use dp_data::{encode::{Encoding, LibsvmFormat}, read};
///
/// let input = read::Input::from_bytes("a.libsvm", b"+1 1:3 4:4\n-1 2:1 # comment\n".to_vec());
/// let format = LibsvmFormat { features: Some(123), ..Default::default() };
/// let (encoder, loaded) = read::load_libsvm::<f64>(input, &format, Encoding::UNIT_ROWS)?;
/// assert_eq!((encoder.dim(), loaded.examples.targets()), (124, &[1.0, -1.0][..]));
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn load_libsvm<F: Stored>(
    input: Input,
    format: &LibsvmFormat,
    encoding: Encoding,
) -> Result<(Encoder, Loaded<F>), DataError> {
    let encoder = Encoder::libsvm(provisional(format), encoding)?;
    let (mut loaded, widest) = read_libsvm(input, &encoder, &mut stay)?;
    let encoder = match format.features {
        Some(_) => encoder,
        None => {
            let found = LibsvmFormat { features: Some(widest), features_from_data: true, ..format.clone() };
            let narrowed = Encoder::libsvm(found, encoding)?;
            loaded.examples = loaded.examples.narrowed(narrowed.dim(), narrowed.intercept_index());
            narrowed
        }
    };
    Ok((encoder, loaded))
}

/// Returns the format to read with. Any width is valid while it is unknown: rows are encoded one by one, and only the
/// intercept's index depends on it.
pub(crate) fn provisional(format: &LibsvmFormat) -> LibsvmFormat {
    LibsvmFormat { features: format.features.or(Some(MAX_FEATURES)), ..format.clone() }
}

/// Reads images and their labels ([`Input::with_labels`]) into examples, in one pass.
///
/// # Errors
/// `idx.*`, `label.*` and `file.*`, with the number of the image as the line; `schema.columns` if the encoder is not one for
/// images.
///
/// # Examples
/// ```
/// use dp_data::encode::{Encoder, Encoding, ImageFormat};
/// use dp_data::{read, schema::Label};
///
/// // Two images of one row and two columns, and their labels.
/// let images = [&[0, 0, 8, 3][..], &[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2], &[255, 0, 0, 51]].concat();
/// let labels = vec![0, 0, 8, 1, 0, 0, 0, 2, 7, 9];
/// let label = Label::classes("digit", ["7", "8", "9"].map(String::from).to_vec());
/// let encoder = Encoder::images(ImageFormat::new(vec![1, 2], label), Encoding::UNIT_ROWS)?;
/// let input = read::Input::from_bytes("images", images).with_labels(read::Input::from_bytes("labels", labels));
/// let loaded = read::load_images::<f64>(input, &encoder)?;
/// assert_eq!(loaded.examples.targets(), &[0.0, 2.0]);
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn load_images<F: Stored>(input: Input, encoder: &Encoder) -> Result<Loaded<F>, DataError> {
    read_images(input, encoder, &mut stay)
}

fn read_images<F: Stored>(input: Input, encoder: &Encoder, settle: Settle<'_, F>) -> Result<Loaded<F>, DataError> {
    let file = input.name().to_owned();
    let mut reader = ImageReader::new(input, encoder, true)?;
    let mut row = RowBuffer::new(encoder);
    let mut collector = Collector::new(encoder)?;
    while reader.next_image(encoder, &mut row)?.is_some() {
        collector.push(&row).map_err(|error| error.in_file(&file))?;
        if collector.rows.len().is_multiple_of(SETTLED) {
            collector.settle(settle)?;
        }
    }
    collector.settle(settle)?;
    Ok(collector.finish(encoder, from_label(encoder, &row)).0)
}

/// Reads libsvm lines, and returns the largest number of features of a line.
fn read_libsvm<F: Stored>(
    input: Input,
    encoder: &Encoder,
    settle: Settle<'_, F>,
) -> Result<(Loaded<F>, u32), DataError> {
    let file = input.name().to_owned();
    let mut records = RecordReader::new(input, encoder, &CsvOptions::default(), true)?;
    let collector = collect(&mut records, &file, || Collector::new(encoder), settle)?;
    if collector.is_empty() {
        return Err(DataError::new(DataErrorKind::LibsvmEmpty, "the file holds no example").in_file(&file));
    }
    Ok((collector.finish(encoder, from_label(encoder, records.row())).0, records.widest().max(1)))
}

/// Returns the position of each column of the schema in the file; dropped columns need not exist.
pub(super) fn column_positions(reader: &CsvReader, schema: &Schema) -> Result<Vec<usize>, DataError> {
    schema
        .columns()
        .iter()
        .map(|column| match column.kind {
            ColumnKind::Drop => Ok(0),
            _ => reader.position(column.source()),
        })
        .collect()
}

/// Returns the first column with the name of an identifier, if the name is unique and the column is not a feature.
fn suspected<'h>(header: &'h [String], schema: &Schema) -> Option<&'h String> {
    let is_feature = |name: &String| {
        schema.columns().iter().any(|column| column.source() == name && column.kind != ColumnKind::Drop)
            || schema.label().column == *name
    };
    let is_single = |name: &String| header.iter().filter(|other| *other == name).count() == 1;
    header.iter().find(|name| is_identifier(name) && !is_feature(name) && is_single(name))
}

pub(crate) fn unused_columns(header: &[String], schema: &Schema) -> Vec<CuratorWarning> {
    let named: HashSet<&str> = schema.columns().iter().map(Column::source).collect();
    let unused = |name: &&String| !named.contains(name.as_str()) && **name != schema.label().column;
    let columns: Vec<String> = header.iter().filter(unused).cloned().collect();
    if columns.is_empty() { Vec::new() } else { vec![CuratorWarning::UnusedColumns { columns }] }
}

/// The error for a row that is not added. It states no sizes and no line: how far memory lasts depends on the records.
fn refusal(error: ShapeError) -> DataError {
    match error {
        ShapeError::Memory(error) => error.without_sizes().into(),
        error => error.into(),
    }
}

/// Collects encoded rows and the statistics for the curator.
struct Collector<F> {
    rows: Builder<F>,
    /// The units of the rows, if they are kept.
    units: UnitNames,
    /// The rows of each value of a column that is watched.
    owners: Option<Owners>,
    /// Number of rows that were moved elsewhere.
    settled: u64,
    classes: ClassCounts,
    null: u64,
}

impl<F: Stored> Collector<F> {
    fn new(encoder: &Encoder) -> Result<Self, DataError> {
        Self::of_rows(encoder, encoder.dim(), encoder.prefers_sparse())
    }

    fn of_rows(encoder: &Encoder, dim: usize, sparse: bool) -> Result<Self, DataError> {
        let rows = Builder::new(dim, sparse, encoder.can_be_neutral())?;
        let classes = ClassCounts::new(encoder.label());
        let units = UnitNames::default();
        Ok(Self { rows, units, owners: None, settled: 0, classes, null: 0 })
    }

    fn is_empty(&self) -> bool {
        self.settled == 0 && self.rows.len() == 0
    }

    fn settle(&mut self, settle: Settle<'_, F>) -> Result<(), DataError> {
        let before = self.rows.len();
        settle(&mut self.rows)?;
        self.settled += (before - self.rows.len()) as u64;
        Ok(())
    }

    fn push(&mut self, row: &RowBuffer) -> Result<(), DataError> {
        let pushed = match row.target() {
            Some(target) => {
                self.classes.count(target);
                // Every float type represents the targets of classes exactly; those of numbers are rounded within their bound.
                self.rows.push(row.indices(), row.values(), F::narrow(target))
            }
            None => {
                self.null += 1;
                self.rows.push_null()
            }
        };
        pushed.map_err(refusal)
    }

    fn push_all(&mut self, records: &mut RecordReader<'_>, file: &str, settle: Settle<'_, F>) -> Result<(), DataError> {
        while let Some(record) = records.next_record()? {
            self.push(record.row()).map_err(|error| error.in_file(file))?;
            let mut named = Ok(());
            record.for_each_kept(|name| match &mut self.owners {
                Some(owners) => owners.see(name.trim().as_bytes()),
                None => named = self.units.push(name),
            });
            named?;
            if self.rows.len().is_multiple_of(SETTLED) {
                self.settle(settle)?;
            }
        }
        Ok(())
    }

    /// Adds the rows of another collector for the same encoder.
    fn append(&mut self, other: Self) -> Result<(), DataError> {
        self.classes.append(&other.classes);
        self.null += other.null;
        self.units.append(&other.units)?;
        if let (Some(owners), Some(other)) = (&mut self.owners, &other.owners) {
            owners.append(other);
        }
        self.rows.append(other.rows).map_err(refusal)
    }

    fn finish(self, encoder: &Encoder, mut warnings: Vec<CuratorWarning>) -> (Loaded<F>, UnitNames) {
        if self.null > 0 {
            warnings.push(CuratorWarning::Neutral { records: self.null });
        }
        warnings.extend(self.classes.warning(encoder.label()));
        (Loaded { examples: self.rows.finish(), warnings }, self.units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::OutOfMemory;

    #[test]
    fn errors_of_memory_state_no_sizes() {
        let error = OutOfMemory { what: "the rows", held: 3 << 30, needed: 5 << 20 };
        assert!(error.to_string().contains("GiB"));
        let refused = refusal(ShapeError::Memory(error));
        assert_eq!((refused.public_message(), refused.line()), ("there is no memory for the rows", None));
    }
}
