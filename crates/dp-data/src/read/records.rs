//! Record-by-record reading for prediction: the original cells together with the encoded row.

use std::borrow::Cow;

use super::Input;
use super::csv::{CsvOptions, CsvReader, Record, RegularRows, missing_column};
use super::idx::ImageReader;
use super::libsvm::LibsvmLine;
use super::lines::Lines;
use super::load::column_positions;
use super::text::{Chunk, ReadsChunks};
use super::warning::{CuratorWarning, from_columns, from_label};
use crate::encode::{Encoder, InputFormat, NumericBlock, RowBuffer, Stage, TextBuffer};
use crate::error::{DataError, DataErrorKind};
use crate::schema::{ColumnKind, Schema};
use crate::table::{Batch, Rows, Table};
use crate::workers::Workers;

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
    /// Number of records until the end of a part.
    left: u64,
    has_ended: bool,
    /// The threads that encode typed cells; those of text are with its reader.
    workers: Workers,
}

/// Maximum number of records of a part that is read on one thread.
const PART: u64 = 1024;

/// Batches of typed cells of each thread that wait to be used.
const BATCHES_AHEAD: usize = 2;

enum Format {
    Table(Box<TextTable>),
    Typed(Box<TypedTable>),
    Libsvm(Libsvm),
    Images(ImageReader),
}

/// Returns the columns to keep as they are, given those of a table that can be kept.
pub(super) type KeptOf<'k> = &'k dyn Fn(&[String]) -> Vec<String>;

/// A table of text, and the positions of the schema's columns in it.
struct TextTable {
    reader: CsvReader,
    stage: Stage,
    positions: Vec<usize>,
    label: Option<usize>,
    /// The positions of the columns that are kept as they are.
    kept: Vec<usize>,
    file: String,
    rows: RegularRows,
}

/// A table of typed cells, and the places of the schema's columns among those that are read.
struct TypedTable {
    rows: Rows,
    stage: Stage,
    /// The names of all columns.
    header: Vec<String>,
    places: Vec<usize>,
    label: Option<usize>,
    /// The places of the columns that are kept as they are.
    kept: Vec<usize>,
    file: String,
    /// Rows whose numbers are encoded together, and how many of them were used.
    block: NumericBlock,
    used: usize,
}

impl TypedTable {
    fn start(
        table: Table,
        encoder: &Encoder,
        stage: Stage,
        with_labels: bool,
        kept: KeptOf<'_>,
    ) -> Result<Self, DataError> {
        let schema = schema_of(encoder)?;
        let readable = table.columns().iter().filter(|column| column.unreadable.is_none());
        let kept = kept(&readable.map(|column| column.name.clone()).collect::<Vec<_>>());
        let mut used = Vec::new();
        let mut place = |position: usize| {
            // Several columns of the schema may use one of the table.
            Ok::<_, DataError>(used.iter().position(|one| *one == position).unwrap_or_else(|| {
                used.push(position);
                used.len() - 1
            }))
        };
        let is_used = |kind: &ColumnKind| *kind != ColumnKind::Drop;
        let places = schema
            .columns()
            .iter()
            .map(|column| if is_used(&column.kind) { place(table.position_of(column)?) } else { Ok(0) });
        let places = places.collect::<Result<_, _>>()?;
        let label = with_labels.then(|| place(table.position(&schema.label().column)?)).transpose()?;
        let kept = kept.iter().map(|name| place(table.find(name, true)?)).collect::<Result<_, _>>()?;
        let (file, header) =
            (table.name().to_owned(), table.columns().iter().map(|column| column.name.clone()).collect());
        let block = NumericBlock::new(encoder);
        Ok(Self { rows: table.start(used)?, stage, header, places, label, kept, file, block, used: 0 })
    }

    fn read<'a>(
        &'a mut self,
        encoder: &Encoder,
        row: &'a mut RowBuffer,
    ) -> Result<Option<EncodedRecord<'a>>, DataError> {
        let Self { rows, stage, places, label, kept, file, block, used, .. } = self;
        if *used == block.len() {
            block.clear();
            *used = 0;
            let ahead = rows.ahead().map_err(|error| error.in_file(file))?;
            for next in 0..ahead.min(block.rows_at_once()) {
                block.push_cells(encoder, |column| rows.cell_ahead(places[column], next), row);
            }
            block.scale();
            row.prepare(places.len());
            block.give_tallies(row);
        }
        if !rows.advance().map_err(|error| error.in_file(file))? {
            return Ok(None);
        }
        let line = rows.number();
        let label = label.map(|label| rows.cell(label));
        encoder
            .encode_row_of_block((block, *used), *stage, |column| rows.cell(places[column]), label, row)
            .map_err(|error| error.in_file(file).at_line(line))?;
        *used += 1;
        Ok(Some(EncodedRecord { cells: Cells::Typed(rows), kept, row, line }))
    }
}

fn schema_of(encoder: &Encoder) -> Result<&Schema, DataError> {
    encoder.schema().ok_or_else(|| DataError::new(DataErrorKind::SchemaColumns, "the encoder is not one for tables"))
}

/// Lines, and the number of features that they need.
struct Libsvm {
    lines: Lines,
    with_labels: bool,
    file: String,
    widest: u32,
}

impl Libsvm {
    fn read<'a>(&mut self, encoder: &Encoder, row: &'a mut RowBuffer) -> Result<Option<EncodedRecord<'a>>, DataError> {
        let Self { lines, with_labels, file, widest } = self;
        let Some(line) = LibsvmLine::next(lines)? else { return Ok(None) };
        row.clear();
        if let InputFormat::Libsvm(format) = encoder.input() {
            *widest = (*widest).max(line.collect(format, row).map_err(|error| error.in_file(file))?);
        }
        let label = with_labels.then_some(line.label.into());
        encoder
            .check_libsvm_label(line.label, *with_labels)
            .and_then(|()| encoder.finish_row(label, row))
            .map_err(|error| error.in_file(file).at_line(line.line))?;
        Ok(Some(EncodedRecord { cells: Cells::None, kept: &[], row, line: line.line }))
    }
}

impl TextTable {
    fn read<'a>(
        &'a mut self,
        encoder: &Encoder,
        row: &'a mut RowBuffer,
    ) -> Result<Option<EncodedRecord<'a>>, DataError> {
        let Self { reader, stage, positions, label, kept, file, rows } = self;
        let (record, encoded);
        if reader.has_regular(rows, encoder, row) {
            record = reader.take_regular(rows);
            let cell = |column: usize| record.cell(positions[column]);
            let label = label.map(|position| record.cell(position));
            encoded = encoder.encode_row_of_block(rows.row(), *stage, cell, label, row);
        } else {
            let Some(next) = reader.next_record()? else { return Ok(None) };
            record = next;
            let cell = |column: usize| record.cell(positions[column]);
            let label = label.map(|position| record.cell(position));
            encoded = encoder.encode_stage(*stage, cell, label, row);
        }
        encoded.map_err(|error| error.in_file(file).at_line(record.line()))?;
        Ok(Some(EncodedRecord { cells: Cells::Text(record), kept, row, line: record.line() }))
    }
}

impl ReadsChunks for RecordReader<'_> {
    fn load(&mut self, chunk: Chunk) -> Vec<u8> {
        match &mut self.format {
            Format::Table(table) => table.reader.load(chunk),
            Format::Libsvm(libsvm) => libsvm.lines.load(chunk),
            Format::Typed(_) | Format::Images(_) => Vec::new(),
        }
    }

    fn lines(&self) -> u64 {
        match &self.format {
            Format::Table(table) => table.reader.lines(),
            Format::Libsvm(libsvm) => libsvm.lines.lines(),
            Format::Typed(_) | Format::Images(_) => 0,
        }
    }
}

/// One record and its encoding.
pub struct EncodedRecord<'a> {
    cells: Cells<'a>,
    kept: &'a [usize],
    row: &'a RowBuffer,
    line: u64,
}

/// Returns the text of a cell; bytes that are not UTF-8, which only a typed table holds, as `x'00ff'`.
fn text(cell: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(cell) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let digits =
                |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]));
            Cow::Owned("x'".chars().chain(cell.iter().flat_map(digits)).chain(['\'']).collect())
        }
    }
}

/// The cells of a record as they were read.
#[derive(Clone, Copy)]
enum Cells<'a> {
    Text(Record<'a>),
    Typed(&'a Rows),
    None,
}

impl<'e> RecordReader<'e> {
    /// Opens a file whose records `encoder` encodes. With `with_labels` the label column is required and read; otherwise it is
    /// ignored and need not exist.
    ///
    /// # Errors
    /// `csv.missing_column` and the errors of the header; `file.*`.
    pub fn new(input: Input, encoder: &'e Encoder, options: &CsvOptions, with_labels: bool) -> Result<Self, DataError> {
        Self::keeping(input, encoder, options, with_labels, &[])
    }

    /// As [`new`](Self::new), for a table of which some columns are also [kept](EncodedRecord::for_each_kept) as they are,
    /// whether the schema names them or not: such as identifiers.
    ///
    /// # Errors
    /// As [`new`](Self::new), and `csv.missing_column` for a column that is not there.
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
    /// let mut reader = RecordReader::keeping(input, &encoder, &Default::default(), false, &["name".to_owned()])?;
    /// reader.next_record()?.unwrap().for_each_kept(|cell| assert_eq!(cell, "Ada"));
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    pub fn keeping(
        input: Input,
        encoder: &'e Encoder,
        options: &CsvOptions,
        with_labels: bool,
        kept: &[String],
    ) -> Result<Self, DataError> {
        if let (InputFormat::Libsvm(_) | InputFormat::Images(_), Some(name)) = (encoder.input(), kept.first()) {
            return Err(missing_column(name, std::iter::empty()).in_file(input.name()));
        }
        let format = match encoder.input() {
            InputFormat::Table(_) => {
                return Self::of_table(input, encoder, options, Stage::Features, with_labels, &|_| kept.to_vec());
            }
            InputFormat::Libsvm(_) => {
                let file = input.name().to_owned();
                Format::Libsvm(Libsvm { lines: Lines::new(input), with_labels, file, widest: 0 })
            }
            InputFormat::Images(_) => Format::Images(ImageReader::new(input, encoder, with_labels)?),
        };
        Ok(Self::of_format(encoder, format))
    }

    /// Creates a reader of records that are encoded as far as `stage`.
    pub(super) fn of_table(
        mut input: Input,
        encoder: &'e Encoder,
        options: &CsvOptions,
        stage: Stage,
        with_labels: bool,
        kept: KeptOf<'_>,
    ) -> Result<Self, DataError> {
        let schema = schema_of(encoder)?;
        if let Some(table) = input.take_table() {
            let workers = input.workers();
            let table = TypedTable::start(table, encoder, stage, with_labels, kept)?;
            return Ok(Self { workers, ..Self::of_format(encoder, Format::Typed(Box::new(table))) });
        }
        let mut reader = CsvReader::new(input, options.for_schema(schema))?;
        let with_line_ends = schema.with_line_ends();
        reader.refuse_line_ends(|column| with_line_ends.contains(column));
        let positions = column_positions(&reader, schema)?;
        let label = with_labels.then(|| reader.position(&schema.label().column)).transpose()?;
        let kept = kept(reader.header()).iter().map(|name| reader.position(name)).collect::<Result<_, _>>()?;
        let rows = RegularRows::new(encoder, &positions);
        let file = reader.file().to_owned();
        let table = TextTable { reader, stage, positions, label, kept, file, rows };
        Ok(Self::of_format(encoder, Format::Table(Box::new(table))))
    }

    fn of_format(encoder: &'e Encoder, format: Format) -> Self {
        let row = RowBuffer::new(encoder);
        Self { encoder, format, row, left: u64::MAX, has_ended: false, workers: Workers::ONE }
    }

    /// Passes `of_part(reader)` to `each` for one part of the records after another, in the order of the file. The reader that
    /// `of_part` gets ends after the records of that part, which it must read to their end; their
    /// [lines](EncodedRecord::line) are counted from the part's. Parts of text are read, and used by `of_part`, on the
    /// [threads](Input::with_workers) of the input.
    ///
    /// # Errors
    /// Those of the first part that has one; those of `each`.
    ///
    /// # Examples
    /// ```
    /// use dp_data::{DataError, Encoder, Encoding, Schema, Workers, read::{Input, RecordReader}};
    ///
    /// let schema = Schema::parse(
    ///     "toy.toml",
    ///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
    ///      columns.age = { type = 'numeric', min = 0, max = 100 }",
    /// )?;
    /// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
    /// let input = Input::from_bytes("new.csv", b"name,age\nAda,100\nBen,0\n".to_vec()).with_workers(Workers::available());
    /// let mut reader = RecordReader::new(input, &encoder, &Default::default(), false)?;
    /// let mut ages = Vec::new();
    /// let of_part = |part: &mut RecordReader<'_>| {
    ///     let mut ages = Vec::new();
    ///     while let Some(record) = part.next_record()? {
    ///         ages.push(record.row().values()[0]);
    ///     }
    ///     Ok(ages)
    /// };
    /// reader.for_each_part(of_part, |part| {
    ///     ages.extend(part);
    ///     Ok::<_, DataError>(())
    /// })?;
    /// assert!(ages[0] > 0.7 && ages[1] < -0.7);
    /// # Ok::<(), DataError>(())
    /// ```
    pub fn for_each_part<T: Send, E: From<DataError>>(
        &mut self,
        of_part: impl Fn(&mut Self) -> Result<T, DataError> + Sync,
        mut each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.for_each_chunk(&of_part, &mut each)?;
        while !self.has_ended {
            self.left = PART;
            each(of_part(self)?)?;
            if self.left == PART {
                // If the function reads nothing, the loop would never end.
                break;
            }
        }
        Ok(())
    }

    /// As [`for_each_part`](Self::for_each_part), for the records that are read on several threads; the others are left.
    pub(super) fn for_each_chunk<T: Send, E: From<DataError>>(
        &mut self,
        of_chunk: impl Fn(&mut Self) -> Result<T, DataError> + Sync,
        mut each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { encoder, format, row, workers, .. } = self;
        let of_chunk = |records: &mut Self| {
            let part = of_chunk(records)?;
            Ok((part, records.row.take_tallies(), records.widest()))
        };
        match format {
            Format::Table(table) => {
                let TextTable { reader, stage, positions, label, kept, file, .. } = &mut **table;
                let records = |reader| {
                    let rows = RegularRows::new(encoder, positions);
                    let (positions, kept, file) = (positions.clone(), kept.clone(), file.clone());
                    let table = TextTable { reader, stage: *stage, positions, label: *label, kept, file, rows };
                    Self::of_format(encoder, Format::Table(Box::new(table)))
                };
                reader.for_each_chunk(records, of_chunk, |(part, tallies, _), _| {
                    row.append_tallies(&tallies);
                    each(part)
                })
            }
            Format::Libsvm(Libsvm { lines, with_labels, file, widest }) => {
                let (with_labels, file) = (*with_labels, &*file);
                let records = |lines| {
                    let libsvm = Libsvm { lines, with_labels, file: file.clone(), widest: 0 };
                    Self::of_format(encoder, Format::Libsvm(libsvm))
                };
                lines.for_each_chunk_with(records, of_chunk, |outcome, lines_before| {
                    let (part, tallies, width) = outcome.map_err(|error: DataError| error.after_lines(lines_before))?;
                    row.append_tallies(&tallies);
                    *widest = width.max(*widest);
                    each(part)
                })
            }
            Format::Typed(table) if *workers != Workers::ONE => {
                let TypedTable { rows, stage, places, label, kept, file, .. } = &mut **table;
                let encoder = *encoder;
                let (stage, label, mut before) = (*stage, *label, rows.last_number());
                let (places, kept, file) = (&*places, &*kept, &*file);
                let mut has_failed = false;
                let batches = std::iter::from_fn(move || {
                    let batch = if has_failed { None } else { rows.next_batch().transpose() };
                    has_failed = matches!(batch, Some(Err(_)));
                    batch
                });
                let of_batch = |(): &mut (), batch: Result<Batch, DataError>| {
                    let batch = batch.map_err(|error| error.in_file(file))?;
                    let (length, rows, header) = (batch.len() as u64, Rows::of_batch(batch), Vec::new());
                    let (places, kept, file) = (places.clone(), kept.clone(), file.clone());
                    let block = NumericBlock::new(encoder);
                    let table = TypedTable { rows, stage, header, places, label, kept, file, block, used: 0 };
                    let part = of_chunk(&mut Self::of_format(encoder, Format::Typed(Box::new(table))));
                    Ok::<_, DataError>((part, length))
                };
                workers.for_each(
                    batches,
                    BATCHES_AHEAD * workers.threads(),
                    || (),
                    of_batch,
                    |outcome| {
                        let (part, length) = outcome?;
                        let (part, tallies, _) = part.map_err(|error| error.after_lines(before))?;
                        before += length;
                        row.append_tallies(&tallies);
                        each(part)
                    },
                )
            }
            Format::Typed(_) | Format::Images(_) => Ok(()),
        }
    }

    /// Returns the number of features that the lines so far need; 0 for other formats.
    pub(super) fn widest(&self) -> u32 {
        match &self.format {
            Format::Libsvm(libsvm) => libsvm.widest,
            Format::Table(_) | Format::Typed(_) | Format::Images(_) => 0,
        }
    }

    /// Returns the statistics of all records so far, once the last is read.
    pub(super) fn row(&self) -> &RowBuffer {
        &self.row
    }

    /// Returns the warnings about columns and numeric labels whose values were clamped or replaced, once the last record is read.
    pub fn warnings(&self) -> Vec<CuratorWarning> {
        let all = from_columns(self.encoder, &self.row).into_iter().chain(from_label(self.encoder, &self.row));
        // A column may well be constant in a table that is only scored.
        all.filter(|warning| matches!(warning, CuratorWarning::Clamped { .. } | CuratorWarning::Replaced { .. }))
            .collect()
    }

    /// Returns the names of the columns of the file; none for libsvm and images.
    pub fn header(&self) -> &[String] {
        match &self.format {
            Format::Table(table) => table.reader.header(),
            Format::Typed(table) => &table.header,
            Format::Libsvm(_) | Format::Images(_) => &[],
        }
    }

    /// Returns the next record, or `None` at the end.
    ///
    /// # Errors
    /// As [`load_csv`](super::load_csv), [`load_libsvm`](super::load_libsvm) and [`load_images`](super::load_images).
    pub fn next_record(&mut self) -> Result<Option<EncodedRecord<'_>>, DataError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let record = Self::read(self.encoder, &mut self.format, &mut self.row)?;
        self.has_ended = record.is_none();
        Ok(record)
    }

    fn read<'a>(
        encoder: &Encoder,
        format: &'a mut Format,
        row: &'a mut RowBuffer,
    ) -> Result<Option<EncodedRecord<'a>>, DataError> {
        match format {
            Format::Table(table) => table.read(encoder, row),
            Format::Typed(table) => table.read(encoder, row),
            Format::Libsvm(libsvm) => libsvm.read(encoder, row),
            Format::Images(reader) => {
                let image = reader.next_image(encoder, row)?;
                Ok(image.map(|line| EncodedRecord { cells: Cells::None, kept: &[], row, line }))
            }
        }
    }
}

impl<'a> EncodedRecord<'a> {
    /// Returns the cells of the record as text, in the order of the file; none for libsvm, images and typed cells.
    pub fn cells(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        // The reader refuses text that is not UTF-8: nothing is replaced.
        let record = if let Cells::Text(record) = self.cells { Some(record) } else { None };
        record.into_iter().flat_map(|record| record.cells()).map(|cell| std::str::from_utf8(cell).unwrap_or(""))
    }

    /// Passes the cells of the columns that are [kept](RecordReader::keeping), as text, one after another. Cells that are not
    /// UTF-8, which only a typed table holds, are written as `x'00ff'`.
    pub fn for_each_kept(&self, mut each: impl FnMut(&str)) {
        for &place in self.kept {
            match self.cells {
                Cells::Text(record) => each(&text(record.cell(place))),
                Cells::Typed(rows) => each(&text(rows.cell(place).text(&mut TextBuffer::default()))),
                Cells::None => {}
            }
        }
    }

    /// Returns the encoded row with its target.
    pub fn row(&self) -> &'a RowBuffer {
        self.row
    }

    /// Returns the first line of the record, counted from 1, including the header; for images and typed cells its number. For
    /// the curator.
    pub fn line(&self) -> u64 {
        self.line
    }
}
