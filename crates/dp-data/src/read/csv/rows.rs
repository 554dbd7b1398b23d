//! Rows that are split and parsed several at a time.
//!
//! A line that begins with a record is regular if it has valid UTF-8, no line end but its own, as many cells as the header, and
//! quotes only at both ends of cells. Regular lines are found by a [`Tape`], and their numeric cells encoded by a
//! [`NumericBlock`]. All other records, and the last line of a text if it is incomplete, are left to
//! [`CsvReader::next_record`].
//!
//! A delimiter or a line feed between quotes is no end of a cell, but a tape takes it for one: the cells around it then begin or
//! end with a single quote, and the line is not regular.

use core::ops::Range;

use pulp::Arch;

use super::tape::{LONGEST, Tape};
use super::{Bounds, CsvReader, Record, Splitter, Text};
use crate::encode::{Encoder, NumericBlock, RowBuffer};

/// Regular lines at the front of a reader's text.
pub(in crate::read) struct RegularRows {
    arch: Arch,
    tape: Tape,
    /// The text of the tape: the count of [`Text::filled`] when it was read, its first byte in the buffer, and its length.
    filled: u64,
    first: usize,
    length: usize,
    to_check: ToCheck,
    /// The line of the tape that comes next.
    line: usize,
    block: NumericBlock,
    /// The positions of the block's columns in the file, and their runs of consecutive ones.
    places: Vec<usize>,
    runs: Vec<Range<usize>>,
    /// The rows of the block that were used.
    used: usize,
}

/// Which unusual bytes a text contains; each of its lines is then checked for them.
#[derive(Default, Clone, Copy)]
struct ToCheck {
    quotes: bool,
    carriage_returns: bool,
    /// Bytes that are not ASCII.
    others: bool,
}

impl RegularRows {
    /// Creates the rows of a reader with the columns of the encoder's schema at `positions`.
    pub(in crate::read) fn new(encoder: &Encoder, positions: &[usize]) -> Self {
        let block = NumericBlock::new(encoder);
        let places: Vec<usize> = block.columns().iter().map(|&column| positions[column]).collect();
        let runs =
            places.chunk_by(|before, after| before + 1 == *after).map(|run| run[0]..run[0] + run.len()).collect();
        Self {
            arch: Arch::new(),
            tape: Tape::default(),
            filled: 0,
            first: 0,
            length: 0,
            to_check: ToCheck::default(),
            line: 0,
            block,
            places,
            runs,
            used: 0,
        }
    }

    /// Returns the block of rows, and the number of the row found last.
    pub(in crate::read) fn row(&self) -> (&NumericBlock, usize) {
        (&self.block, self.used - 1)
    }

    /// Advances to the next record if it is a regular line; otherwise gives the statistics of the rows so far to `row`.
    fn advance(&mut self, splitter: &Splitter, width: usize, encoder: &Encoder, row: &mut RowBuffer) -> bool {
        // The remaining rows of a text that was left early are not used with the next text.
        if self.used == self.block.len() || self.filled != splitter.text.filled {
            self.used = 0;
            self.fill(splitter, width, encoder, row);
            if self.block.len() == 0 {
                self.block.give_tallies(row);
                return false;
            }
        }
        self.used += 1;
        self.line += 1;
        true
    }

    /// Fills the block with the next regular lines, if there are any.
    fn fill(&mut self, splitter: &Splitter, width: usize, encoder: &Encoder, row: &mut RowBuffer) {
        self.block.clear();
        let is_used_up = self.line == self.tape.lines() && splitter.text.start > self.first;
        if self.filled != splitter.text.filled || (is_used_up && self.first + self.length < splitter.text.end) {
            self.read_tape(splitter);
        }
        // Other records may have come between.
        let start = (splitter.text.start - self.first) as u32;
        let begins = |line: usize| self.tape.line(line)[0].wrapping_add(1);
        while self.line < self.tape.lines() && begins(self.line) < start {
            self.line += 1;
        }
        if self.line == self.tape.lines() || begins(self.line) != start {
            return;
        }
        for line in (self.line..self.tape.lines()).take(self.block.rows_at_once()) {
            let ends = self.tape.line(line);
            let Some(line) = self.regular(splitter, ends, width) else { break };
            let text = &splitter.text.buffer;
            match line.plain() {
                Some(ends) => {
                    self.block.push_runs(text, line.first, self.runs.iter().map(|run| &ends[run.start..=run.end]));
                }
                None => self.block.push(text, self.places.iter().map(|&place| line.cell(text, place))),
            }
        }
        self.block.encode(encoder, &splitter.text.buffer, row);
    }

    fn read_tape(&mut self, splitter: &Splitter) {
        self.length = (splitter.text.end - splitter.text.start).min(LONGEST);
        let text = &splitter.text.buffer[splitter.text.start..splitter.text.start + self.length];
        (self.filled, self.first, self.line) = (splitter.text.filled, splitter.text.start, 0);
        self.to_check = ToCheck {
            quotes: memchr::memchr(splitter.options.quote, text).is_some(),
            carriage_returns: memchr::memchr(b'\r', text).is_some(),
            others: !text.is_ascii(),
        };
        if self.tape.read(self.arch, text, splitter.options.delimiter).is_err() {
            self.tape = Tape::default();
        }
    }

    /// Returns the line with these ends of cells, if it is regular.
    fn regular<'t>(&self, splitter: &Splitter, ends: &'t [u32], width: usize) -> Option<Line<'t>> {
        let line = self.line_of(&splitter.text.buffer, splitter.options.quote, ends);
        let start = line.cell_with_quotes(0).0;
        let content = &splitter.text.buffer[start..line.cell_with_quotes(line.len() - 1).1];
        let ToCheck { quotes, carriage_returns, others } = self.to_check;
        let is_odd = line.len() != width
            || content.is_empty()
            || (quotes && !line.is_quoted_well(&splitter.text.buffer, content))
            || (carriage_returns && memchr::memchr(b'\r', content).is_some())
            || (others && std::str::from_utf8(content).is_err());
        (!is_odd).then_some(line)
    }

    fn line_of<'t>(&self, text: &[u8], quote: u8, ends: &'t [u32]) -> Line<'t> {
        let ToCheck { quotes, carriage_returns, .. } = self.to_check;
        let mut line = Line { first: self.first, ends, trimmed: 0, quote: quotes.then_some(quote) };
        let (start, end) = line.cell_with_quotes(line.len() - 1);
        line.trimmed = usize::from(carriage_returns && text[start..end].ends_with(b"\r"));
        line
    }
}

/// The places of a line's cells in a buffer.
#[derive(Clone, Copy)]
pub(super) struct Line<'t> {
    /// The place in the buffer from which `ends` count.
    first: usize,
    /// The end of the line before, and those of the cells.
    ends: &'t [u32],
    /// Number of bytes between the last cell and the line feed.
    trimmed: usize,
    /// The quote, if some cell may begin and end with it.
    quote: Option<u8>,
}

impl Line<'_> {
    /// Returns the number of cells.
    pub(super) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Returns the ends if each cell is all between two of them.
    fn plain(&self) -> Option<&[u32]> {
        (self.trimmed == 0 && self.quote.is_none()).then_some(self.ends)
    }

    /// Returns the place of a cell of this text.
    #[inline]
    pub(super) fn cell(&self, text: &[u8], position: usize) -> (usize, usize) {
        let (start, end) = self.cell_with_quotes(position);
        let is_quoted = self.quote.is_some_and(|quote| start < end && text[start] == quote);
        if is_quoted { (start + 1, end - 1) } else { (start, end) }
    }

    #[inline]
    fn cell_with_quotes(&self, position: usize) -> (usize, usize) {
        let start = self.first + self.ends[position].wrapping_add(1) as usize;
        let end = self.first + self.ends[position + 1] as usize;
        (start, if position + 2 == self.ends.len() { end - self.trimmed } else { end })
    }

    /// Returns whether quotes are only at both ends of cells.
    fn is_quoted_well(&self, text: &[u8], content: &[u8]) -> bool {
        let Some(quote) = self.quote else { return true };
        let of_cells = (0..self.len()).filter(|&position| {
            let (start, end) = self.cell_with_quotes(position);
            end >= start + 2 && text[start] == quote && text[end - 1] == quote
        });
        // Each of these cells has two quotes; any other quote makes the line irregular.
        memchr::memchr_iter(quote, content).count() == 2 * of_cells.count()
    }
}

impl CsvReader {
    /// Returns whether the next record is a regular line, which [`take_regular`](Self::take_regular) returns. If not, `row` has the
    /// statistics of all rows so far.
    pub(in crate::read) fn has_regular(&self, rows: &mut RegularRows, encoder: &Encoder, row: &mut RowBuffer) -> bool {
        rows.advance(&self.splitter, self.header.len(), encoder, row)
    }

    /// Takes the regular line that comes next.
    pub(in crate::read) fn take_regular<'r>(&'r mut self, rows: &'r RegularRows) -> Record<'r> {
        let Splitter { text: Text { buffer, start, line, .. }, options, .. } = &mut self.splitter;
        let ends = rows.tape.line(rows.line - 1);
        let bounds = Bounds::Line(rows.line_of(buffer, options.quote, ends));
        let record = Record { bytes: buffer, bounds, line: *line, quoted: false };
        *start = rows.first + ends[ends.len() - 1] as usize + 1;
        *line += 1;
        record
    }
}
