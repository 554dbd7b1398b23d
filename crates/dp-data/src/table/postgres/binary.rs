//! PostgreSQL's binary format of COPY.
//!
//! After a header, each row is the number of its fields (two bytes) and the fields: a length (four bytes, -1 for NULL) and that many
//! bytes, all in network order. A number of fields of -1 ends the rows. See the documentation of COPY, "Binary Format".

use crate::encode::Cell;
use crate::error::{DataError, DataErrorKind};
use crate::memory::reserve;
use crate::table::{Batch, Batches};

/// The reader of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Boolean,
    /// An integer of two, four or eight bytes.
    Whole,
    /// A floating-point number of four or eight bytes.
    Real,
    Text,
    /// Something that the server converts to text.
    AsText,
    /// A number of any length, as text without zeros at the end of its fraction.
    Decimal,
    /// Days since 2000-01-01.
    Date,
    /// Microseconds since 2000-01-01; with a time zone those of UTC.
    Moment,
}

/// Days from 1970-01-01 to 2000-01-01.
const TO_2000: i32 = 10_957;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// The rows of a table, from pieces that may end anywhere.
pub(super) struct Tuples<'a, 'b> {
    meanings: &'a [Meaning],
    names: &'a [&'a str],
    batches: &'b mut Batches,
    batch: Batch,
    /// Number of rows so far.
    rows: u64,
    /// The start of a row whose end has not come.
    pending: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Header,
    Rows,
    Ended,
}

fn damaged() -> DataError {
    DataError::new(DataErrorKind::TableRead, "what the server sends is not its binary format")
}

impl<'a, 'b> Tuples<'a, 'b> {
    pub(super) fn new(meanings: &'a [Meaning], names: &'a [&'a str], batches: &'b mut Batches) -> Self {
        let batch = Batch::new(meanings.len());
        Self { meanings, names, batches, batch, rows: 0, pending: Vec::new(), state: State::Header }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// `table.read`: it is not what the format says, a text is not UTF-8, or nobody reads any more; `memory.exhausted`.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), DataError> {
        if self.pending.is_empty() {
            let used = self.read(piece)?;
            return self.keep(&piece[used..]);
        }
        self.keep(piece)?;
        let pending = std::mem::take(&mut self.pending);
        let used = self.read(&pending)?;
        self.pending = pending;
        self.pending.drain(..used);
        Ok(())
    }

    /// Sends the last rows.
    ///
    /// # Errors
    /// `table.read` if the end of the rows did not come.
    pub(super) fn end(self) -> Result<(), DataError> {
        if self.state != State::Ended {
            return Err(DataError::new(DataErrorKind::TableRead, "the server stopped within the rows"));
        }
        self.batches.send(self.batch)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        let room = |error: crate::OutOfMemory| DataError::from(error.without_sizes());
        reserve(&mut self.pending, bytes.len(), "a row of the table").map_err(room)?;
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads what is whole; returns its number of bytes.
    fn read(&mut self, bytes: &[u8]) -> Result<usize, DataError> {
        let mut rest = bytes;
        if self.state == State::Header {
            let Some(length) = header(rest)? else { return Ok(0) };
            rest = &rest[length..];
            self.state = State::Rows;
        }
        while self.state == State::Rows {
            let Some((count, fields)) = rest.split_first_chunk() else { break };
            let count = i16::from_be_bytes(*count);
            if count == -1 {
                self.state = State::Ended;
                rest = fields;
                break;
            }
            if usize::try_from(count) != Ok(self.meanings.len()) {
                return Err(damaged());
            }
            let Some(length) = length_of(fields, self.meanings.len())? else { break };
            self.rows += 1;
            self.push(&fields[..length]).map_err(|error| error.at_line(self.rows))?;
            rest = &fields[length..];
        }
        if self.state == State::Ended && !rest.is_empty() {
            return Err(damaged());
        }
        Ok(bytes.len() - rest.len())
    }

    /// Appends a row of whole fields.
    fn push(&mut self, mut fields: &[u8]) -> Result<(), DataError> {
        for (column, meaning) in self.meanings.iter().enumerate() {
            let (length, rest) = fields.split_first_chunk().ok_or_else(damaged)?;
            let length = i32::from_be_bytes(*length);
            let (value, rest) = rest.split_at_checked(length.max(0) as usize).ok_or_else(damaged)?;
            fields = rest;
            if length < 0 {
                self.batch.push(column, Cell::Missing)?;
                continue;
            }
            let pushed = push_cell(&mut self.batch, column, *meaning, value);
            pushed.map_err(|error| error.at_column(self.names.get(column).copied().unwrap_or_default()))?;
        }
        if self.batch.is_full() {
            self.batches.send(std::mem::replace(&mut self.batch, Batch::new(self.meanings.len())))?;
        }
        Ok(())
    }
}

/// Returns the length of the header; `None` if it is not whole.
fn header(bytes: &[u8]) -> Result<Option<usize>, DataError> {
    let start = bytes.len().min(SIGNATURE.len());
    if bytes[..start] != SIGNATURE[..start] {
        return Err(damaged());
    }
    let Some((flags, rest)) = bytes.get(SIGNATURE.len()..).and_then(<[u8]>::split_first_chunk) else { return Ok(None) };
    let Some((extension, rest)) = rest.split_first_chunk() else { return Ok(None) };
    // Bit 16 says that rows have an object identifier before their fields; no server sends it any more.
    if u32::from_be_bytes(*flags) >> 16 != 0 {
        return Err(damaged());
    }
    let extension = usize::try_from(i32::from_be_bytes(*extension)).map_err(|_| damaged())?;
    Ok((extension <= rest.len()).then_some(SIGNATURE.len() + 8 + extension))
}

/// Returns the length of so many fields; `None` if they are not whole.
fn length_of(bytes: &[u8], fields: usize) -> Result<Option<usize>, DataError> {
    let mut rest = bytes;
    for _ in 0..fields {
        let Some((length, after)) = rest.split_first_chunk() else { return Ok(None) };
        let length = match i32::from_be_bytes(*length) {
            -1 => 0,
            length => usize::try_from(length).map_err(|_| damaged())?,
        };
        let Some(after) = after.get(length..) else { return Ok(None) };
        rest = after;
    }
    Ok(Some(bytes.len() - rest.len()))
}

/// Appends the cell of these bytes.
fn push_cell(batch: &mut Batch, column: usize, meaning: Meaning, bytes: &[u8]) -> Result<(), DataError> {
    let cell = match (meaning, bytes) {
        (Meaning::Boolean, &[value]) => Cell::Boolean(value != 0),
        (Meaning::Whole, &[a, b]) => return batch.push_whole(column, i16::from_be_bytes([a, b]).into()),
        (Meaning::Whole, &[a, b, c, d]) => return batch.push_whole(column, i32::from_be_bytes([a, b, c, d]).into()),
        (Meaning::Whole, &[a, b, c, d, e, f, g, h]) => {
            return batch.push_whole(column, i64::from_be_bytes([a, b, c, d, e, f, g, h]).into());
        }
        (Meaning::Real, &[a, b, c, d]) => Cell::Number(f32::from_be_bytes([a, b, c, d]).into()),
        (Meaning::Real, &[a, b, c, d, e, f, g, h]) => Cell::Number(f64::from_be_bytes([a, b, c, d, e, f, g, h])),
        (Meaning::Date, &[a, b, c, d]) => match i32::from_be_bytes([a, b, c, d]) {
            i32::MAX => Cell::Text(b"infinity"),
            i32::MIN => Cell::Text(b"-infinity"),
            days => Cell::Date(days.saturating_add(TO_2000)),
        },
        (Meaning::Moment, &[a, b, c, d, e, f, g, h]) => match i64::from_be_bytes([a, b, c, d, e, f, g, h]) {
            i64::MAX => Cell::Text(b"infinity"),
            i64::MIN => Cell::Text(b"-infinity"),
            micros => return batch.push_moment(column, micros, 1_000_000, TO_2000),
        },
        (Meaning::Text | Meaning::AsText | Meaning::Decimal, text) => return batch.push_text(column, text),
        _ => return Err(damaged()),
    };
    batch.push(column, cell)
}

#[cfg(test)]
mod tests;
