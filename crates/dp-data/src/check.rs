//! Everything that is wrong with a table under its schema, found in one pass.

mod findings;
mod proposal;
#[cfg(test)]
mod tests;

pub use findings::{Consequence, Example, Findings, Problem};
pub use proposal::{Change, Proposal, propose};

use crate::encode::{Cell, Encoder, Encoding, TextBuffer};
use crate::error::{DataError, DataErrorKind};
use crate::read::{Chunk, CsvOptions, CsvReader, CuratorWarning, Input, ReadsChunks, unused_columns};
use crate::schema::{CellFormat, ColumnKind, Schema};
use crate::table::Table;

/// Reads a table with labels to its end, and returns all that is wrong with it under `schema`.
///
/// Rows that cannot be split into the cells of the header are counted and left out. An error that cannot be skipped, such as a
/// quote that is never closed, ends the reading and is reported as [`Findings::stopped`].
///
/// # Privacy
/// The findings depend on the records: they are for the curator.
///
/// # Errors
/// Those of a table that cannot be opened, or has no header.
///
/// # Examples
/// ```
/// use dp_data::{Schema, check::{Consequence, check}, read::Input};
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100 }",
/// )?;
/// let file = || Input::from_bytes("toy.csv", b"age,y\n41,no\n?,yes\n,yes\n41\n999,maybe\n?,no\n".to_vec());
/// let found = check(file(), &schema, &Default::default())?;
/// let problem = |code: &str| found.problems.iter().find(|problem| problem.code() == code).unwrap();
/// assert_eq!((found.rows, problem("csv.bad_number").count), (6, 2));
/// assert_eq!(problem("csv.bad_number").texts, [("?".to_owned(), 2)]);
/// assert_eq!(problem("csv.ragged").examples[0].line, 5);
/// assert_eq!(problem("value.clamped").consequence, Consequence::Clamped);
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn check(mut input: Input, schema: &Schema, csv: &CsvOptions) -> Result<Findings, DataError> {
    let encoder = Encoder::new(schema, Encoding::UNIT_ROWS)?;
    if let Some(table) = input.take_table() {
        return of_table(table, &encoder, schema);
    }
    let mut reader = CsvReader::new(input, csv.for_schema(schema))?;
    let with_line_ends = schema.with_line_ends();
    reader.refuse_line_ends(|column| with_line_ends.contains(column));
    let (found, places) = begin(schema, reader.header(), |name, _| reader.position(name));
    let mut all = Checker { encoder: &encoder, schema, places, found };
    let of_thread = |reader| OfThread { reader, checker: all.fresh() };
    let of_chunk = |OfThread { reader, checker }: &mut OfThread<'_>| {
        checker.read(reader);
        Ok(std::mem::replace(&mut checker.found, Findings::new(checker.schema)))
    };
    let mut parts = Findings::new(schema);
    let outcome = reader.for_each_chunk(of_thread, of_chunk, |part, lines| {
        parts.append(part, lines);
        if parts.stopped.is_some() { Err(Stop::Found) } else { Ok(()) }
    });
    all.found.append(parts, 0);
    match outcome {
        Ok(()) => all.read(&mut reader),
        Err(Stop::Found) => {}
        Err(Stop::Read(error)) => all.found.stopped = Some(error),
    }
    Ok(all.found.finish(schema))
}

/// The reason for which the reading of chunks ends.
enum Stop {
    /// A chunk could not be read to its end, as its findings say.
    Found,
    /// No chunk could be read.
    Read(DataError),
}

impl From<DataError> for Stop {
    fn from(error: DataError) -> Self {
        Self::Read(error)
    }
}

/// Checks a table of typed cells.
fn of_table(table: Table, encoder: &Encoder, schema: &Schema) -> Result<Findings, DataError> {
    let file = table.name().to_owned();
    let header: Vec<String> = table.columns().iter().map(|column| column.name.clone()).collect();
    let (found, places) = begin(schema, &header, |name, as_date| table.find(name, as_date));
    let mut used: Vec<usize> = places.columns.iter().copied().chain([places.label]).flatten().collect();
    used.sort_unstable();
    used.dedup();
    let place = |position: usize| used.binary_search(&position).ok();
    let places = Places {
        columns: places.columns.iter().map(|position| position.and_then(place)).collect(),
        label: places.label.and_then(place),
    };
    let mut checker = Checker { encoder, schema, places, found };
    let mut rows = table.start(used)?;
    loop {
        match rows.advance() {
            Ok(true) => checker.see(|position| rows.cell(position), rows.number()),
            Ok(false) => break,
            Err(error) => {
                checker.found.stopped = Some(error.in_file(&file));
                break;
            }
        }
    }
    Ok(checker.found.finish(schema))
}

/// The positions of the schema's columns and of the label in a table; `None` for those that are not read.
#[derive(Clone)]
struct Places {
    columns: Vec<Option<usize>>,
    label: Option<usize>,
}

/// Finds the columns of the schema, and begins the findings with the missing ones.
fn begin(
    schema: &Schema,
    header: &[String],
    position: impl Fn(&str, bool) -> Result<usize, DataError>,
) -> (Findings, Places) {
    let mut found = Findings::new(schema);
    found.header = header.to_vec();
    let mut place = |name: &str, column: &str, as_date: bool| match position(name, as_date) {
        Ok(position) => Some(position),
        Err(error) => {
            found.add_error(error.at_column(column));
            None
        }
    };
    let columns = schema.columns().iter().map(|column| match column.kind {
        ColumnKind::Drop => None,
        _ => place(column.source(), &column.name, matches!(column.format, Some(CellFormat::Date(_)))),
    });
    let columns = columns.collect();
    let label = place(&schema.label().column, &schema.label().column, false);
    let unused = unused_columns(header, schema);
    found.notes.extend(unused.iter().map(CuratorWarning::to_string));
    (found, Places { columns, label })
}

/// The findings of the records so far.
struct Checker<'e> {
    encoder: &'e Encoder,
    schema: &'e Schema,
    places: Places,
    found: Findings,
}

impl<'e> Checker<'e> {
    fn fresh(&self) -> Self {
        Self {
            encoder: self.encoder,
            schema: self.schema,
            places: self.places.clone(),
            found: Findings::new(self.schema),
        }
    }

    /// Reads all records.
    fn read(&mut self, reader: &mut CsvReader) {
        loop {
            match reader.next_record() {
                Ok(Some(record)) => self.see(|position| Cell::Text(record.cell(position)), record.line()),
                Ok(None) => return,
                Err(error) => {
                    let is_passed = matches!(
                        error.kind(),
                        DataErrorKind::CsvRagged
                            | DataErrorKind::CsvLineEnd
                            | DataErrorKind::CsvAfterQuote
                            | DataErrorKind::CsvNotUtf8
                    );
                    if !is_passed {
                        self.found.stopped = Some(error);
                        return;
                    }
                    self.found.rows += 1;
                    self.found.add_error(error);
                }
            }
        }
    }

    /// Checks one record.
    fn see<'c>(&mut self, cell: impl Fn(usize) -> Cell<'c>, line: u64) {
        let Self { encoder, places, found, .. } = self;
        found.rows += 1;
        for (column, place) in places.columns.iter().enumerate() {
            let Some(place) = *place else { continue };
            let cell = cell(place);
            let of_error = |kind| encoder.refuse_cell(kind, column, cell);
            found.see(
                Some(column),
                encoder.inspect(column, cell),
                cell.text(&mut TextBuffer::default()),
                line,
                of_error,
            );
        }
        if let Some(place) = places.label {
            let cell = cell(place);
            let of_error = |kind| encoder.refuse_label(kind, cell);
            found.see(None, encoder.inspect_label(cell), cell.text(&mut TextBuffer::default()), line, of_error);
        }
    }
}

/// A thread's reader, and the findings of its records.
struct OfThread<'e> {
    reader: CsvReader,
    checker: Checker<'e>,
}

impl ReadsChunks for OfThread<'_> {
    fn load(&mut self, chunk: Chunk) -> Vec<u8> {
        self.reader.load(chunk)
    }

    fn lines(&self) -> u64 {
        self.reader.lines()
    }
}
