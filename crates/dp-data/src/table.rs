//! Tables whose cells have types: Parquet files and databases.

#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "xlsx")]
pub mod xlsx;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::encode::Cell;
use crate::error::{DataError, DataErrorKind};
use crate::memory::reserve;
use crate::read::missing_column;
use crate::schema::{CellFormat, Column};

/// Number of rows that a source sends at a time, at most.
pub const ROWS_OF_A_BATCH: usize = 256;

/// Number of bytes of texts with which a batch is full.
const TEXT_OF_A_BATCH: usize = 1 << 20;

/// Batches that wait to be encoded.
const AHEAD: usize = 4;

/// Integers up to this size are exact as numbers: 2^53.
const MOST_EXACT: u128 = 1 << 53;

/// The part of a database to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relation {
    /// A table or view of this name.
    Table(String),
    /// The result of a query.
    Query(String),
    /// The only table or view that there is.
    Only,
}

impl Relation {
    /// Returns the query in parentheses; `None` for a table.
    #[cfg(any(feature = "postgres", feature = "runner", feature = "sqlite"))]
    pub(crate) fn subquery(&self) -> Option<String> {
        let Self::Query(query) = self else { return None };
        let query = query.trim_end();
        // It may end with a comment.
        Some(format!("({}\n)", query.strip_suffix(';').unwrap_or(query)))
    }

    /// Returns the error for a `whole`, such as a database, with no `part`, such as a table, or several.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "xlsx"))]
    fn not_named(whole: &str, part: &str, names: &[String]) -> DataError {
        let message = if names.is_empty() {
            format!("the {whole} has no {part}")
        } else {
            format!("the {whole} has several {part}s")
        };
        let shown: Vec<_> = names.iter().take(12).map(|name| format!("`{name}`")).collect();
        let error = DataError::new(DataErrorKind::TableOpen, message);
        if names.is_empty() {
            return error;
        }
        error.expected(format!("one of {}", shown.join(", "))).help("name one with --table")
    }
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The name.
    pub name: String,
    /// The reason for which its cells cannot be read as numbers, Booleans or text; `None` if they can.
    pub unreadable: Option<Unreadable>,
}

/// A reason for which the cells of a column cannot be read as numbers, Booleans or text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// They are of a type that is neither a number, nor a Boolean, nor text, nor a date.
    Type(String),
    /// They are dates or times of this type, which only a column of dates of a schema can read.
    Date(String),
    /// The role lacks the privilege to read them.
    Denied,
}

type Read = Box<dyn FnOnce(&[usize], &mut Batches) -> Result<(), DataError> + Send>;

/// A table that is read once, from its first row to its last. Cells have types, and only the columns that are used are read.
///
/// The source runs on a thread of its own and stays a few batches ahead.
/// [`Input::from_table`](crate::read::Input::from_table) makes it a source of records like a CSV file: the same records have the
/// same encoding.
///
/// # Examples
/// ```
/// use dp_data::encode::Cell;
/// use dp_data::table::{Batch, Table, TableColumn};
/// use dp_data::{Encoder, Encoding, Schema, read};
///
/// let columns = ["age", "y"].map(|name| TableColumn { name: name.to_owned(), unreadable: None });
/// let table = Table::new("people", columns.to_vec(), |used, batches| {
///     let mut batch = Batch::new(used.len());
///     for (place, column) in used.iter().enumerate() {
///         batch.push(place, if *column == 0 { Cell::Number(100.0) } else { Cell::Boolean(true) })?;
///     }
///     batches.send(batch)
/// });
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'true', negative = 'false' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100 }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
/// let loaded = read::load_csv::<f64>(read::Input::from_table(table), &encoder, &Default::default())?;
/// assert_eq!(loaded.examples.targets(), &[1.0]);
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub struct Table {
    name: String,
    columns: Vec<TableColumn>,
    read: Read,
    cancel: Option<Cancel>,
    first_row: u64,
}

/// Cancels what another process, such as a server, does for a table. It is to be called before this process ends.
pub type Cancel = Arc<dyn Fn() + Send + Sync>;

impl Table {
    /// Creates a table of these columns. `read` gets the positions of the columns that are used, and sends their cells, in this
    /// order, batch after batch.
    pub fn new(
        name: &str,
        columns: Vec<TableColumn>,
        read: impl FnOnce(&[usize], &mut Batches) -> Result<(), DataError> + Send + 'static,
    ) -> Self {
        Self { name: name.to_owned(), columns, read: Box::new(read), cancel: None, first_row: 1 }
    }

    /// Sets the function that cancels what another process does for this table. It may be called on any thread, also after the
    /// last row.
    pub fn with_cancel(self, cancel: impl Fn() + Send + Sync + 'static) -> Self {
        Self { cancel: Some(Arc::new(cancel)), ..self }
    }

    /// Sets the number of the first row in its source: 1 by default. Messages count from it.
    #[must_use]
    pub fn with_first_row(self, first_row: u64) -> Self {
        Self { first_row, ..self }
    }

    /// Returns the function that cancels what another process does for this table, if there is one.
    pub fn cancel(&self) -> Option<Cancel> {
        self.cancel.clone()
    }

    /// Returns the name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// Returns the position of a column whose cells can be read.
    ///
    /// # Errors
    /// `csv.missing_column`, `csv.duplicate_column`, `table.type`, `table.open` for a column that the role may not read.
    pub fn position(&self, name: &str) -> Result<usize, DataError> {
        self.find(name, false)
    }

    /// Returns the position of the column that a column of a schema is taken from.
    ///
    /// # Errors
    /// As [`position`](Self::position), and `table.type` for dates unless the schema calls them dates.
    pub(crate) fn position_of(&self, column: &Column) -> Result<usize, DataError> {
        self.find(column.source(), matches!(column.format, Some(CellFormat::Date(_))))
    }

    pub(crate) fn find(&self, name: &str, as_date: bool) -> Result<usize, DataError> {
        let mut found = self.columns.iter().enumerate().filter(|(_, column)| column.name == name);
        let error = match (found.next(), found.next()) {
            (Some((position, TableColumn { unreadable: None, .. })), None) => return Ok(position),
            (Some((position, TableColumn { unreadable: Some(Unreadable::Date(_)), .. })), None) if as_date => {
                return Ok(position);
            }
            (Some((_, TableColumn { unreadable: Some(Unreadable::Date(kind)), .. })), None) => {
                DataError::new(DataErrorKind::TableType, format!("a column of type {kind} is read as a date only"))
                    .at_column(name)
                    .expected("a column of dates")
                    .help("give it `type = \"date\"` (or \"weekday\", \"month\", \"hour\") and a `format` in the schema, or convert it in a query or a view")
            }
            (None, _) => missing_column(name, self.columns.iter().map(|column| column.name.as_str())),
            (Some(_), Some(_)) => {
                DataError::new(DataErrorKind::CsvDuplicateColumn, format!("two columns are named `{name}`"))
                    .at_column(name)
            }
            (Some((_, TableColumn { unreadable: Some(Unreadable::Type(kind)), .. })), None) => {
                DataError::new(DataErrorKind::TableType, format!("a column of type {kind} cannot be read"))
                    .at_column(name)
                    .expected("numbers, Booleans, text, days, or days with times")
                    .help("convert it in a query or a view, or give it `type = \"drop\"` in the schema")
            }
            (Some(_), None) => DataError::new(DataErrorKind::TableOpen, "the role may not read this column")
                .at_column(name)
                .expected("the privilege SELECT on it")
                .help("have it granted, or give the column `type = \"drop\"` in the schema"),
        };
        Err(error.in_file(&self.name))
    }

    /// Starts reading these columns.
    pub(crate) fn start(self, used: Vec<usize>) -> Result<Rows, DataError> {
        let (sender, received) = sync_channel(AHEAD);
        let Self { name, read, first_row, .. } = self;
        // The thread is not joined: it ends with the table, or at its next batch once the receiver is dropped.
        let reader = move || {
            let mut batches = Batches { sender, stopped: false };
            let outcome = read(&used, &mut batches);
            if !batches.stopped {
                let _ = batches.sender.send(outcome.map(|()| None));
            }
        };
        thread::Builder::new().spawn(reader).map_err(|error| {
            DataError::new(DataErrorKind::TableRead, format!("no thread can be started: {error}")).in_file(&name)
        })?;
        Ok(Rows { received, batch: Batch::new(0), next: 0, before: 0, first_row, ended: false })
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("name", &self.name).finish_non_exhaustive()
    }
}

type Message = Result<Option<Batch>, DataError>;

/// Where a source sends its batches.
pub struct Batches {
    sender: SyncSender<Message>,
    stopped: bool,
}

impl Batches {
    /// Sends the next rows. Waits while some batches are not used yet.
    ///
    /// # Errors
    /// `table.read` if nobody reads any more: the source should stop.
    pub fn send(&mut self, batch: Batch) -> Result<(), DataError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.sender.send(Ok(Some(batch))).map_err(|_| {
            self.stopped = true;
            DataError::new(DataErrorKind::TableRead, "the rows are not read to their end")
        })
    }
}

/// Cells of some consecutive rows, column by column.
#[derive(Debug, Clone)]
pub struct Batch {
    columns: Vec<Cells>,
    /// Number of bytes of all texts.
    text: usize,
}

#[derive(Debug, Clone, Default)]
struct Cells {
    /// All cells while they are numbers or missing, which is NaN; then `slots` is empty.
    numbers: Vec<f64>,
    slots: Vec<Slot>,
    /// The bytes of all texts.
    bytes: Vec<u8>,
}

impl Cells {
    fn len(&self) -> usize {
        self.numbers.len().max(self.slots.len())
    }
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Missing,
    Number(f64),
    Boolean(bool),
    Date(i32),
    DateTime { day: i32, nanoseconds: i64 },
    Text { start: usize, end: usize },
}

impl Batch {
    /// Creates an empty batch of so many columns.
    pub fn new(columns: usize) -> Self {
        Self { columns: vec![Cells::default(); columns], text: 0 }
    }

    /// Appends a cell to a column, by its place among those that are used. All columns must end with the same number of cells.
    ///
    /// # Errors
    /// `memory.exhausted`.
    pub fn push(&mut self, column: usize, cell: Cell<'_>) -> Result<(), DataError> {
        let Some(Cells { numbers, slots, bytes }) = self.columns.get_mut(column) else { return Ok(()) };
        let room = |error: crate::OutOfMemory| DataError::from(error.without_sizes());
        reserve(slots, numbers.len() + 1, CELLS).map_err(room)?;
        slots.extend(numbers.drain(..).map(|number| match number.is_nan() {
            true => Slot::Missing,
            false => Slot::Number(number),
        }));
        slots.push(match cell {
            Cell::Missing => Slot::Missing,
            Cell::Number(number) => Slot::Number(number),
            Cell::Boolean(value) => Slot::Boolean(value),
            Cell::Date(day) => Slot::Date(day),
            Cell::DateTime { day, nanoseconds } => Slot::DateTime { day, nanoseconds },
            Cell::Text(text) => {
                reserve(bytes, text.len(), CELLS).map_err(room)?;
                let start = bytes.len();
                bytes.extend_from_slice(text);
                self.text += text.len();
                Slot::Text { start, end: bytes.len() }
            }
        });
        Ok(())
    }

    /// Appends numbers to a column, of which NaN is a missing value: what [`push`](Self::push) does one by one, at the cost of a
    /// copy.
    ///
    /// # Errors
    /// `memory.exhausted`.
    ///
    /// # Examples
    /// ```
    /// let mut batch = dp_data::table::Batch::new(1);
    /// batch.push_numbers(0, &[1.0, f64::NAN])?;
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    pub fn push_numbers(&mut self, column: usize, values: &[f64]) -> Result<(), DataError> {
        let Some(Cells { numbers, slots, .. }) = self.columns.get_mut(column) else { return Ok(()) };
        if slots.is_empty() {
            reserve(numbers, values.len(), CELLS).map_err(|error| DataError::from(error.without_sizes()))?;
            numbers.extend_from_slice(values);
            return Ok(());
        }
        let cell = |number: f64| if number.is_nan() { Cell::Missing } else { Cell::Number(number) };
        values.iter().try_for_each(|number| self.push(column, cell(*number)))
    }

    /// Appends an integer: a number if that is exact, else its digits.
    ///
    /// # Errors
    /// `memory.exhausted`.
    pub fn push_whole(&mut self, column: usize, value: i128) -> Result<(), DataError> {
        if value.unsigned_abs() <= MOST_EXACT {
            self.push(column, Cell::Number(value as f64))
        } else {
            self.push(column, Cell::Text(value.to_string().as_bytes()))
        }
    }

    /// Appends a date and time: `units` since midnight of the day `epoch`, which counts from 1970-01-01. `in_second` units are
    /// a second; it divides 10^9.
    ///
    /// # Errors
    /// `memory.exhausted`.
    pub fn push_moment(&mut self, column: usize, units: i64, in_second: i64, epoch: i32) -> Result<(), DataError> {
        let in_second = in_second.clamp(1, 1_000_000_000);
        let (whole, of_day) = (units.div_euclid(86_400 * in_second), units.rem_euclid(86_400 * in_second));
        // Days that do not fit are of no year that is read.
        let day = whole.saturating_add(epoch.into()).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        self.push(column, Cell::DateTime { day, nanoseconds: of_day * (1_000_000_000 / in_second) })
    }

    /// Appends a text. One that is not UTF-8 is no number, date or category: its column's rule for such cells applies, so that
    /// no record can stop the reading of a table whose schema refuses none.
    ///
    /// # Errors
    /// `memory.exhausted`.
    pub fn push_text(&mut self, column: usize, text: &[u8]) -> Result<(), DataError> {
        self.push(column, Cell::Text(text))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.columns.iter().map(Cells::len).min().unwrap_or(0)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether it should be sent: it has [`ROWS_OF_A_BATCH`] rows, or long texts.
    pub fn is_full(&self) -> bool {
        self.len() >= ROWS_OF_A_BATCH || (self.text >= TEXT_OF_A_BATCH && !self.is_empty())
    }

    /// Returns the number of bytes of all texts.
    pub fn text_bytes(&self) -> usize {
        self.text
    }

    /// Returns a cell.
    pub(crate) fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        let Some(cells) = self.columns.get(column) else { return Cell::Missing };
        if let Some(&number) = cells.numbers.get(row) {
            return if number.is_nan() { Cell::Missing } else { Cell::Number(number) };
        }
        match cells.slots.get(row) {
            None | Some(Slot::Missing) => Cell::Missing,
            Some(&Slot::Number(number)) => Cell::Number(number),
            Some(&Slot::Boolean(value)) => Cell::Boolean(value),
            Some(&Slot::Date(day)) => Cell::Date(day),
            Some(&Slot::DateTime { day, nanoseconds }) => Cell::DateTime { day, nanoseconds },
            Some(&Slot::Text { start, end }) => Cell::Text(&cells.bytes[start..end]),
        }
    }
}

/// The name of the cells in error messages.
const CELLS: &str = "some rows of the table";

/// The rows of a table that is being read.
pub(crate) struct Rows {
    received: Receiver<Message>,
    batch: Batch,
    /// The row after the current one, within the batch.
    next: usize,
    /// Number of rows in earlier batches.
    before: u64,
    /// The number of the first row.
    first_row: u64,
    ended: bool,
}

impl Rows {
    /// Creates the rows of one batch, which are counted from its own start.
    pub(crate) fn of_batch(batch: Batch) -> Self {
        let (_, received) = sync_channel(1);
        Self { received, batch, next: 0, before: 0, first_row: 1, ended: true }
    }

    /// Returns the next batch; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Batch>, DataError> {
        if self.ended {
            return Ok(None);
        }
        let message = self.received.recv().unwrap_or_else(|_| {
            Err(DataError::new(DataErrorKind::TableRead, "the table cannot be read: its reader failed"))
        });
        self.ended = !matches!(message, Ok(Some(_)));
        message
    }

    /// Goes to the next row; false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, DataError> {
        if self.ahead()? == 0 {
            return Ok(false);
        }
        self.next += 1;
        Ok(true)
    }

    /// Returns the number of rows after the current one that are there already; gets the next batch if there are none. 0 at the
    /// end.
    pub(crate) fn ahead(&mut self) -> Result<usize, DataError> {
        while self.next >= self.batch.len() {
            let Some(batch) = self.next_batch()? else { return Ok(0) };
            self.before += self.batch.len() as u64;
            (self.batch, self.next) = (batch, 0);
        }
        Ok(self.batch.len() - self.next)
    }

    /// Returns a cell of a row [`ahead`](Self::ahead): 0 for the one after the current row.
    pub(crate) fn cell_ahead(&self, column: usize, row: usize) -> Cell<'_> {
        self.batch.cell(column, self.next + row)
    }

    /// Returns the number of the current row in its source.
    pub(crate) fn number(&self) -> u64 {
        self.first_row - 1 + self.before + self.next as u64
    }

    /// Returns a cell of the current row.
    pub(crate) fn cell(&self, column: usize) -> Cell<'_> {
        self.batch.cell(column, self.next - 1)
    }

    /// Returns the number of the last row of the batches so far.
    pub(crate) fn last_number(&self) -> u64 {
        self.first_row - 1 + self.before + self.batch.len() as u64
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn table(kind: Option<&str>, read: impl FnOnce(&mut Batches) -> Result<(), DataError> + Send + 'static) -> Table {
        let unreadable = kind.map(|kind| Unreadable::Type(kind.to_owned()));
        let column = TableColumn { name: "a".to_owned(), unreadable };
        Table::new("t", vec![column], move |_, batches| read(batches))
    }

    fn batch(rows: usize) -> Batch {
        let mut batch = Batch::new(1);
        (0..rows).for_each(|i| batch.push(0, Cell::Number(i as f64)).unwrap());
        batch
    }

    /// One error of each kind that every source has.
    pub(crate) fn one_of_each() -> [DataError; 2] {
        let of_type = table(Some("DATE"), |_| Ok(())).position("a").unwrap_err();
        let mut rows = table(None, |_| Err(DataError::of_table("it is damaged"))).start(vec![0]).unwrap();
        [of_type, rows.advance().unwrap_err()]
    }

    #[test]
    fn rows_come_in_order_and_errors_where_they_are() {
        let read = |batches: &mut Batches| {
            batches.send(batch(3))?;
            batches.send(batch(0))?;
            batches.send(batch(2))?;
            Err(DataError::of_table("no more"))
        };
        let mut rows = table(None, read).start(vec![0]).unwrap();
        for (number, cell) in [(1, 0.0), (2, 1.0), (3, 2.0), (4, 0.0), (5, 1.0)] {
            assert!(rows.advance().unwrap());
            assert_eq!((rows.number(), rows.cell(0)), (number, Cell::Number(cell)));
        }
        assert_eq!(rows.advance().unwrap_err().code(), "table.read");
        assert!(!rows.advance().unwrap());
    }

    /// A source that is not read to its end notices it, and one that dies is an error and no end.
    #[test]
    fn sources_end_with_their_readers_and_readers_with_their_sources() {
        let (ended, has_ended) = sync_channel(1);
        let read = move |batches: &mut Batches| {
            while batches.send(batch(1)).is_ok() {}
            ended.send(()).unwrap();
            Ok(())
        };
        let mut rows = table(None, read).start(vec![0]).unwrap();
        assert!(rows.advance().unwrap());
        drop(rows);
        has_ended.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        let mut rows = table(None, |_| panic!("on purpose")).start(vec![0]).unwrap();
        assert_eq!(rows.advance().unwrap_err().code(), "table.read");
    }
}
