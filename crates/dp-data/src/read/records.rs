//! Record-by-record reading for prediction: the original cells together with the encoded row.

use super::Input;
use super::csv::{CsvOptions, CsvReader, Record};
use super::idx::ImageReader;
use super::libsvm::LibsvmReader;
use super::load::column_positions;
use crate::encode::{Encoder, InputFormat, RowBuffer};
use crate::error::DataError;

/// Streams the records of a file, each with its cells and its encoding, in constant memory.
///
/// # Examples
/// ```
/// use dp_data::{Encoder, Encoding, Schema, read::{Input, RecordReader}};
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100 }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
/// let input = Input::from_bytes("new.csv", b"name,age\nAda,100\n".to_vec());
/// let mut reader = RecordReader::new(input, &encoder, &Default::default(), false)?;
/// let record = reader.next_record()?.unwrap();
/// assert_eq!(record.cells().collect::<Vec<_>>(), ["Ada", "100"]);
/// assert!((record.row().dot(&[1.0, 0.0]) - 0.5_f64.sqrt()).abs() < 1e-12);
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub struct RecordReader<'e> {
    encoder: &'e Encoder,
    format: Format,
    row: RowBuffer,
}

enum Format {
    Table { reader: Box<CsvReader>, positions: Vec<usize>, label: Option<usize>, file: String },
    Libsvm { reader: LibsvmReader, with_labels: bool, file: String },
    Images(ImageReader),
}

/// One record and its encoding.
pub struct EncodedRecord<'a> {
    record: Option<Record<'a>>,
    row: &'a RowBuffer,
    line: u64,
}

impl<'e> RecordReader<'e> {
    /// Opens a file whose records `encoder` encodes. With `with_labels` the label column is required and read; otherwise it is
    /// ignored and need not exist.
    ///
    /// # Errors
    /// `csv.missing_column` and the errors of the header; `file.*`.
    pub fn new(input: Input, encoder: &'e Encoder, options: &CsvOptions, with_labels: bool) -> Result<Self, DataError> {
        let format = match encoder.input() {
            InputFormat::Table(schema) => {
                let mut reader = Box::new(CsvReader::new(input, *options)?);
                let with_line_ends = schema.with_line_ends();
                reader.refuse_line_ends(|column| with_line_ends.contains(column));
                let positions = column_positions(&reader, schema)?;
                let label = with_labels.then(|| reader.position(&schema.label().column)).transpose()?;
                let file = reader.file().to_owned();
                Format::Table { reader, positions, label, file }
            }
            InputFormat::Libsvm(_) => {
                let reader = LibsvmReader::new(input);
                let file = reader.file().to_owned();
                Format::Libsvm { reader, with_labels, file }
            }
            InputFormat::Images(_) => Format::Images(ImageReader::new(input, encoder, with_labels)?),
        };
        Ok(Self { encoder, format, row: RowBuffer::new(encoder) })
    }

    /// Returns the names of the columns of the file; none for libsvm and images.
    pub fn header(&self) -> &[String] {
        match &self.format {
            Format::Table { reader, .. } => reader.header(),
            Format::Libsvm { .. } | Format::Images(_) => &[],
        }
    }

    /// Returns the next record, or `None` at the end.
    ///
    /// # Errors
    /// As [`load_csv`](super::load_csv), [`load_libsvm`](super::load_libsvm) and [`load_images`](super::load_images).
    pub fn next_record(&mut self) -> Result<Option<EncodedRecord<'_>>, DataError> {
        match &mut self.format {
            Format::Table { reader, positions, label, file } => {
                let Some(record) = reader.next_record()? else { return Ok(None) };
                self.encoder
                    .encode_row(
                        |column| record.cell(positions[column]),
                        label.map(|position| record.cell(position)),
                        &mut self.row,
                    )
                    .map_err(|error| error.in_file(file).at_line(record.line()))?;
                Ok(Some(EncodedRecord { record: Some(record), row: &self.row, line: record.line() }))
            }
            Format::Libsvm { reader, with_labels, file } => {
                let Some(line) = reader.next_line()? else { return Ok(None) };
                self.row.clear();
                if let InputFormat::Libsvm(format) = self.encoder.input() {
                    line.collect(format, &mut self.row).map_err(|error| error.in_file(file))?;
                }
                let label = with_labels.then_some(line.label.into());
                self.encoder
                    .check_libsvm_label(line.label, *with_labels)
                    .and_then(|()| self.encoder.finish_row(label, &mut self.row))
                    .map_err(|error| error.in_file(file).at_line(line.line))?;
                Ok(Some(EncodedRecord { record: None, row: &self.row, line: line.line }))
            }
            Format::Images(reader) => {
                let image = reader.next_image(self.encoder, &mut self.row)?;
                Ok(image.map(|line| EncodedRecord { record: None, row: &self.row, line }))
            }
        }
    }
}

impl<'a> EncodedRecord<'a> {
    /// Returns the cells of the record as text, in the order of the file; none for libsvm and images.
    pub fn cells(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        // The reader refuses text that is not UTF-8, so the fallback never replaces anything.
        self.record.into_iter().flat_map(|record| record.cells()).map(|cell| std::str::from_utf8(cell).unwrap_or(""))
    }

    /// Returns the encoded row with its target.
    pub fn row(&self) -> &'a RowBuffer {
        self.row
    }

    /// Returns the first line of the record, counted from 1, including the header; for images their number. For the curator.
    pub fn line(&self) -> u64 {
        self.line
    }
}
