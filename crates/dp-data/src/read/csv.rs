//! Splitting CSV into records.
//!
//! Most lines of most files contain no quote. Such a line is split at its delimiters in place; every other record is parsed by
//! `csv-core`, which supports all of RFC 4180. A property test checks that the two agree.

mod chunks;
mod rows;
mod tape;

use std::collections::HashMap;
use std::io::Read as _;

use csv_core::ReadRecordResult;
use rows::Line;
pub(super) use rows::RegularRows;

use super::Input;
use super::encoding::TextEncoding;
use super::text::{LONGEST, PIECE, RECORD, Text, lengthen, no_room};
use crate::error::{DataError, DataErrorKind};
use crate::memory::{self, reserve};
use crate::schema::{FileFormat, Schema};
use crate::workers::Workers;

/// The CSV format. `None` stands for what the schema says, else for the usual value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CsvOptions {
    /// The byte between cells; usually a comma.
    pub delimiter: Option<u8>,
    /// The byte around cells that contain delimiters, line ends or quotes, doubled inside; usually `"`.
    pub quote: Option<u8>,
    /// True if the first row names the columns, as usual. Otherwise they are named `column1`, `column2`, ...
    pub header: Option<bool>,
    /// The encoding of the text; usually UTF-8.
    pub encoding: Option<TextEncoding>,
}

impl CsvOptions {
    /// Replaces `None` by what the schema says.
    ///
    /// # Examples
    /// ```
    /// use dp_data::{Schema, read::CsvOptions};
    /// let schema = Schema::parse(
    ///     "s.toml",
    ///     "file = { delimiter = ';' }\n\
    ///      label = { column = 'y', positive = '1', negative = '0' }\n\
    ///      columns.x = { type = 'indicator' }",
    /// )?;
    /// assert_eq!(CsvOptions::default().for_schema(&schema).delimiter, Some(b';'));
    /// let tab = CsvOptions { delimiter: Some(b'\t'), ..CsvOptions::default() };
    /// assert_eq!(tab.for_schema(&schema).delimiter, Some(b'\t'));
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    #[must_use]
    pub fn for_schema(self, schema: &Schema) -> Self {
        let FileFormat { delimiter, encoding, header, .. } = schema.file();
        Self {
            delimiter: self.delimiter.or(delimiter.and_then(|mark| u8::try_from(mark).ok())),
            quote: self.quote,
            header: self.header.or(*header),
            encoding: self.encoding.or_else(|| TextEncoding::of_label(encoding.as_ref()?)),
        }
    }

    fn marks(self) -> Result<Marks, DataError> {
        Marks { delimiter: self.delimiter.unwrap_or(b','), quote: self.quote.unwrap_or(b'"') }.check()
    }
}

/// The bytes that divide a text into cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    delimiter: u8,
    quote: u8,
}

impl Marks {
    fn check(self) -> Result<Self, DataError> {
        let usable = |byte: u8| byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0);
        if usable(self.delimiter) && usable(self.quote) && self.delimiter != self.quote {
            return Ok(self);
        }
        Err(DataError::new(DataErrorKind::CsvOptions, "the delimiter or the quote cannot be used")
            .expected("two different ASCII characters that do not end a line"))
    }
}

/// Reads a CSV file with a header, record by record, without allocating for each.
///
/// Lines end with LF, CRLF or CR; blank lines are skipped; a byte order mark is dropped. Reading stops with an error unless every
/// record has as many cells as the header, a closing quote is followed by a delimiter or the end of the line, and the text is
/// UTF-8.
///
/// # Examples
/// ```
/// use dp_data::read::{CsvReader, Input};
///
/// let input = Input::from_bytes("a.csv", b"name,note\r\nAda,\"first, of many\"\r\n".to_vec());
/// let mut reader = CsvReader::new(input, Default::default())?;
/// assert_eq!(reader.header(), ["name", "note"]);
/// let record = reader.next_record()?.unwrap();
/// assert_eq!((record.cell(1), record.line()), (&b"first, of many"[..], 2));
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub struct CsvReader {
    file: String,
    splitter: Splitter,
    header: Vec<String>,
    /// The position of each name in the header.
    positions: HashMap<String, usize>,
    /// For each column, whether cells may look as if they had swallowed rows; `None` if all may.
    line_ends: Option<Vec<bool>>,
    workers: Workers,
}

/// Returns the error for a column that is not among those of a table.
pub(crate) fn missing_column<'c>(name: &str, columns: impl ExactSizeIterator<Item = &'c str>) -> DataError {
    let all = columns.len();
    // The first row of a file without a header is a record: it is for the curator, and it may be long.
    let shown = columns.take(12).map(|column| {
        let short: String = column.chars().take(40).collect();
        format!("`{}{}`", short.escape_debug(), if short.len() < column.len() { "…" } else { "" })
    });
    let shown: Vec<_> = shown.collect();
    let more = if all > shown.len() { ", ..." } else { "" };
    DataError::new(DataErrorKind::CsvMissingColumn, format!("there is no column `{name}`"))
        .at_column(name)
        .found(format!("columns {}{more}", shown.join(", ")))
        .help("check the spelling")
}

impl CsvReader {
    /// Reads the header.
    ///
    /// # Errors
    /// `csv.options`, `csv.empty`, `csv.duplicate_column`, `csv.not_utf8`, `csv.unclosed_quote`, `csv.after_quote`,
    /// `csv.long_record`, `file.*`.
    pub fn new(input: Input, options: CsvOptions) -> Result<Self, DataError> {
        let marks = options.marks()?;
        let (file, source, workers) = input.into_parts();
        let text = Text::new(match options.encoding {
            Some(encoding) => encoding.decoded(source),
            None => source,
        });
        let has_header = options.header.unwrap_or(true);
        let of_file = |error: DataError| error.in_file(&file);
        let text = if has_header { text } else { with_header(text, marks).map_err(of_file)? };
        let mut splitter = Splitter::new(text, marks);
        let (header, positions) = read_header(&mut splitter).map_err(of_file)?;
        if !has_header {
            // The names are on no line of the file.
            splitter.text.line -= 1;
        }
        Ok(Self { file, splitter, header, positions, line_ends: None, workers })
    }

    /// Returns the names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns the name used in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the byte between cells.
    pub(crate) fn delimiter(&self) -> u8 {
        self.splitter.options.delimiter
    }

    /// Returns the position of the column of this name in the header.
    ///
    /// # Errors
    /// `csv.missing_column`.
    pub fn position(&self, name: &str) -> Result<usize, DataError> {
        self.positions.get(name).copied().ok_or_else(|| {
            missing_column(name, self.header.iter().map(String::as_str))
                .in_file(&self.file)
                .at_line(1)
                .help("check the spelling and the delimiter")
        })
    }

    /// From now on, refuses cells that may have swallowed rows, except in the columns of these names: cells that contain line ends
    /// and as many delimiters as a row. A stray quote makes one such cell of the rest of its row and of the following rows, up to
    /// the next quote, and swallows them silently.
    ///
    /// # Examples
    /// ```
    /// use dp_data::read::{CsvReader, Input};
    ///
    /// let input = || Input::from_bytes("a.csv", b"name,note\nAda,\"two\nlines\"\nBen,\"x\nCem,y\"\n".to_vec());
    /// let mut reader = CsvReader::new(input(), Default::default())?;
    /// reader.refuse_line_ends(|_| false);
    /// assert_eq!(reader.next_record()?.unwrap().cell(1), b"two\nlines");
    /// let error = reader.next_record().err().unwrap();
    /// assert_eq!((error.code(), error.line(), error.column()), ("csv.line_end", Some(4), Some("note")));
    ///
    /// let mut reader = CsvReader::new(input(), Default::default())?;
    /// reader.refuse_line_ends(|column| column == "note");
    /// reader.next_record()?;
    /// assert_eq!(reader.next_record()?.unwrap().cell(1), b"x\nCem,y");
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    pub fn refuse_line_ends(&mut self, but_in: impl Fn(&str) -> bool) {
        self.line_ends = Some(self.header.iter().map(|column| but_in(column)).collect());
    }

    /// Returns the next record, or `None` at the end.
    ///
    /// # Errors
    /// `csv.ragged`, `csv.not_utf8`, `csv.after_quote` and `csv.line_end`, after which the next record may be read;
    /// `csv.unclosed_quote`, `csv.long_record`, `file.*`.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, DataError> {
        match self.splitter.next() {
            Ok(false) => Ok(None),
            Ok(true) => {
                let record = self.splitter.record();
                // This check comes first: a quote that swallowed the next row also gives rows of a different length.
                if let Some(allowed) = &self.line_ends
                    && let Some((position, line)) = record
                        .swallowing(self.header.len(), self.splitter.options.delimiter)
                        .find(|(position, _)| !allowed.get(*position).is_some_and(|allowed| *allowed))
                {
                    let error = line_end(line, self.header.get(position));
                    return Err(error.in_file(&self.file));
                }
                if let Some(found) = self.splitter.after_quote {
                    return Err(after_quote(found, self.header.get(found.0)).in_file(&self.file));
                }
                if record.len() == self.header.len() {
                    return Ok(Some(record));
                }
                let error =
                    DataError::new(DataErrorKind::CsvRagged, "a row has another number of cells than the header");
                Err(error
                    .found(format!("{} cells", record.len()))
                    .in_file(&self.file)
                    .at_line(record.line())
                    .expected(format!("{} cells", self.header.len()))
                    .help("check quotes and delimiter on that line"))
            }
            Err(error) => Err(error.in_file(&self.file)),
        }
    }
}

/// Returns a text with a row of names before it.
fn with_header(mut text: Text, marks: Marks) -> Result<Text, DataError> {
    text.begins_with_record = true;
    let mut first = Splitter::new(text, marks);
    if !first.next()? {
        return Ok(first.text);
    }
    let names: Vec<String> = (1..=first.record().len()).map(|number| format!("column{number}")).collect();
    let names = names.join(&char::from(marks.delimiter).to_string()) + "\n";
    let mut named = Text::new(Box::new(std::io::Cursor::new(names).chain(first.text.again())));
    named.begins_with_record = true;
    Ok(named)
}

/// Returns the names of the columns, and the position of each.
fn read_header(splitter: &mut Splitter) -> Result<(Vec<String>, HashMap<String, usize>), DataError> {
    if !splitter.next()? {
        return Err(DataError::new(DataErrorKind::CsvEmpty, "the file is empty")
            .at_line(1)
            .expected("a header that names the columns"));
    }
    if let Some(found) = splitter.after_quote {
        return Err(after_quote(found, None));
    }
    let record = splitter.record();
    // Each name is stored twice, each time in its own allocation; a table of the map's size is 8/7 of its entries.
    const BYTES_PER_NAME: usize = 2 * (size_of::<String>() + 16) + size_of::<usize>() + 16;
    let bytes = record.len().saturating_mul(BYTES_PER_NAME).saturating_add(record.bytes.len().saturating_mul(2));
    memory::check(bytes, HEADER).map_err(|error| DataError::from(error).at_line(record.line()))?;
    let mut header: Vec<String> = Vec::with_capacity(record.len());
    let mut positions = HashMap::with_capacity(record.len());
    for (position, cell) in record.cells().enumerate() {
        let name = String::from_utf8_lossy(cell).into_owned();
        if positions.insert(name.clone(), position).is_some() {
            // Without a header this is a record, so that the name is for the curator.
            return Err(DataError::new(DataErrorKind::CsvDuplicateColumn, "a column name occurs twice in the header")
                .found_cell(name.as_bytes())
                .at_line(record.line())
                .expected("each name once")
                .help("rename one of them; add --header no if the first row is a record"));
        }
        header.push(name);
    }
    Ok((header, positions))
}

/// One record: its cells without quotes, and its first line.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    bytes: &'a [u8],
    bounds: Bounds<'a>,
    line: u64,
    /// True if some cell may contain line ends.
    quoted: bool,
}

/// The places of a record's cells.
#[derive(Clone, Copy)]
enum Bounds<'a> {
    Pairs(&'a [(usize, usize)]),
    Line(Line<'a>),
}

impl Bounds<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Pairs(pairs) => pairs.len(),
            Self::Line(line) => line.len(),
        }
    }

    #[inline]
    fn cell(&self, text: &[u8], position: usize) -> (usize, usize) {
        match self {
            Self::Pairs(pairs) => pairs[position],
            Self::Line(line) => line.cell(text, position),
        }
    }
}

impl<'a> Record<'a> {
    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.bounds.len()
    }

    /// Returns whether there are no cells, which never happens for records from a reader.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of a cell, which are UTF-8.
    ///
    /// # Panics
    /// If there is no such cell.
    #[inline]
    pub fn cell(&self, position: usize) -> &'a [u8] {
        let (start, end) = self.bounds.cell(self.bytes, position);
        &self.bytes[start..end]
    }

    /// Returns all cells.
    pub fn cells(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let record = *self;
        (0..self.len()).map(move |position| record.cell(position))
    }

    /// Returns the first line of the record, counted from 1, including the header.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the cells that may have swallowed rows of a table of this width: their positions, and the lines of their opening
    /// quotes. Where a quote opens in some column and the next one closes in the same column of a later row, so that the record
    /// looks whole, the cell between holds line ends and at least `width - 1` delimiters.
    pub(crate) fn swallowing(&self, width: usize, delimiter: u8) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        // A record on one line has no quoted line end.
        let (record, mut line) = (*self, self.line);
        (0..if self.quoted { self.len() } else { 0 }).filter_map(move |position| {
            let (cell, opened) = (record.cell(position), line);
            line += memchr::memchr_iter(b'\n', cell).count() as u64;
            memchr::memchr2(b'\n', b'\r', cell)?;
            (memchr::memchr_iter(delimiter, cell).count() + 1 >= width).then_some((position, opened))
        })
    }
}

/// Splits text into records with any number of cells.
struct Splitter {
    text: Text,
    options: Marks,
    slow: csv_core::Reader,
    bounds: Vec<(usize, usize)>,
    record_line: u64,
    /// Cells of a record with quotes, one after another; otherwise the cells lie in the text's buffer.
    unquoted: Vec<u8>,
    ends: Vec<usize>,
    in_unquoted: bool,
    /// The first cell of the record that continues after its closing quote, and the line of that quote.
    after_quote: Option<(usize, u64)>,
}

impl Splitter {
    fn new(text: Text, options: Marks) -> Self {
        let mut slow = csv_core::ReaderBuilder::new().delimiter(options.delimiter).quote(options.quote).build();
        skip_mark(&mut slow);
        Self {
            text,
            options,
            slow,
            bounds: Vec::new(),
            record_line: 0,
            unquoted: vec![0; 1024],
            ends: vec![0; 64],
            in_unquoted: false,
            after_quote: None,
        }
    }

    /// Returns the record found last.
    fn record(&self) -> Record<'_> {
        let bytes = if self.in_unquoted { &self.unquoted } else { &self.text.buffer };
        Record { bytes, bounds: Bounds::Pairs(&self.bounds), line: self.record_line, quoted: self.in_unquoted }
    }

    /// Finds the next record; returns false at the end.
    fn next(&mut self) -> Result<bool, DataError> {
        self.text.begin()?;
        let mut searched = 0;
        loop {
            let pending = &self.text.buffer[self.text.start..self.text.end];
            if let Some(found) = memchr::memchr(b'\n', &pending[searched..]) {
                let length = searched + found;
                if length == 0 || pending[..length] == *b"\r" {
                    self.text.start += length + 1;
                    self.text.line += 1;
                    searched = 0;
                    continue;
                }
                if !self.fast_record(length)? {
                    return self.slow_record();
                }
                self.text.start += 1;
                self.text.line += 1;
                return Ok(true);
            }
            searched = pending.len();
            if self.text.at_end_of_source {
                return Ok(!pending.is_empty() && (self.fast_record(searched)? || self.slow_record()?));
            }
            // A record may also end with CR alone, which only the slow path looks for.
            if searched >= PIECE && memchr::memchr2(b'\r', self.options.quote, pending).is_some() {
                return self.slow_record();
            }
            if searched >= LONGEST {
                return Err(long_record(self.text.line));
            }
            self.text.fill()?;
        }
    }

    /// Splits the line of this length and advances past it, if it needs nothing more.
    fn fast_record(&mut self, length: usize) -> Result<bool, DataError> {
        let line = &self.text.buffer[self.text.start..self.text.start + length];
        let content = line.strip_suffix(b"\r").unwrap_or(line);
        if content.is_empty() || memchr::memchr2(self.options.quote, b'\r', content).is_some() {
            return Ok(false);
        }
        self.record_line = self.text.line;
        self.in_unquoted = false;
        self.after_quote = None;
        self.bounds.clear();
        let mut cell_start = self.text.start;
        for found in memchr::memchr_iter(self.options.delimiter, content) {
            let cell_end = self.text.start + found;
            reserve(&mut self.bounds, 1, RECORD).map_err(|error| no_room(error, self.text.line))?;
            self.bounds.push((cell_start, cell_end));
            cell_start = cell_end + 1;
        }
        reserve(&mut self.bounds, 1, RECORD).map_err(|error| no_room(error, self.text.line))?;
        self.bounds.push((cell_start, self.text.start + content.len()));
        if let Err(error) = std::str::from_utf8(content) {
            let cell = self.bounds.iter().filter(|bounds| bounds.1 < self.text.start + error.valid_up_to()).count();
            // The next record may be read.
            self.text.start = (self.text.start + length + 1).min(self.text.end);
            self.text.line += 1;
            return Err(not_utf8(self.record_line, Some(cell)));
        }
        self.text.start += length;
        Ok(true)
    }

    /// Reads one record by `csv-core`, from the start of the pending bytes; returns false if only blank lines are left.
    fn slow_record(&mut self) -> Result<bool, DataError> {
        let (mut length, mut written, mut cells) = (0, 0, 0);
        loop {
            let rest = &self.text.buffer[self.text.start + length..self.text.end];
            if rest.is_empty() && !self.text.at_end_of_source {
                self.text.fill()?;
                continue;
            }
            // At the end of the source one more line end closes every record except one inside a quoted cell.
            let closing = rest.is_empty();
            let input = if closing { &b"\n"[..] } else { rest };
            let (result, read, added, ended) =
                self.slow.read_record(input, &mut self.unquoted[written..], &mut self.ends[cells..]);
            length += if closing { 0 } else { read };
            written += added;
            cells += ended;
            match result {
                ReadRecordResult::Record => break,
                ReadRecordResult::InputEmpty if closing && written + cells > 0 => {
                    return Err(DataError::new(DataErrorKind::CsvUnclosedQuote, "a quoted cell is never closed")
                        .at_line(self.line_after_blank_ones(length))
                        .expected("a closing quote before the end of the file")
                        .help("look for a stray quote on that line, or for a file that was cut"));
                }
                ReadRecordResult::InputEmpty if closing => return Ok(false),
                ReadRecordResult::InputEmpty if length >= LONGEST => return Err(long_record(self.text.line)),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    let longer = self.unquoted.len() * 2;
                    lengthen(&mut self.unquoted, longer).map_err(|error| no_room(error, self.text.line))?;
                }
                ReadRecordResult::OutputEndsFull => {
                    let longer = self.ends.len() * 2;
                    lengthen(&mut self.ends, longer).map_err(|error| no_room(error, self.text.line))?;
                }
                ReadRecordResult::End => return Ok(false),
            }
        }
        let raw = &self.text.buffer[self.text.start..self.text.start + length];
        self.record_line = self.line_after_blank_ones(length);
        let lines = memchr::memchr_iter(b'\n', raw).count() as u64;
        if std::str::from_utf8(raw).is_err() {
            self.text.line += lines;
            self.text.start += length;
            return Err(not_utf8(self.record_line, None));
        }
        self.in_unquoted = true;
        self.after_quote = text_after_quote(raw, self.options).map(|(cell, line)| (cell, self.text.line + line));
        self.bounds.clear();
        reserve(&mut self.bounds, cells, RECORD).map_err(|error| no_room(error, self.text.line))?;
        let mut cell_start = 0;
        for &cell_end in &self.ends[..cells] {
            self.bounds.push((cell_start, cell_end));
            cell_start = cell_end;
        }
        self.text.line += lines;
        self.text.start += length;
        Ok(true)
    }

    /// Returns the line of the first of so many pending bytes that is not a line end.
    fn line_after_blank_ones(&self, length: usize) -> u64 {
        let raw = &self.text.buffer[self.text.start..self.text.start + length];
        let blank = raw.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        self.text.line + blank.filter(|&&byte| byte == b'\n').count() as u64
    }
}

/// Makes the first call of a reader, which would drop a byte order mark: it is one only at the start of the file.
fn skip_mark(slow: &mut csv_core::Reader) {
    let _ = slow.read_record(b"\n", &mut [0; 1], &mut [0; 1]);
}

/// The content, for messages.
const HEADER: &str = "the names of the columns";

/// Returns the first cell of a record, as written, that continues after its closing quote, and the number of lines between the
/// first line and the quote. `csv-core` reads `"1"2` as 12.
fn text_after_quote(raw: &[u8], Marks { delimiter, quote }: Marks) -> Option<(usize, u64)> {
    let (mut cell, mut line, mut starts, mut at) = (0, 0, true, 0);
    while let Some(&byte) = raw.get(at) {
        at += 1;
        if starts && byte == quote {
            loop {
                // A cell that is never closed is refused elsewhere.
                let found = at + memchr::memchr(quote, &raw[at..])?;
                line += memchr::memchr_iter(b'\n', &raw[at..found]).count() as u64;
                at = found + 1;
                if raw.get(at) != Some(&quote) {
                    break;
                }
                at += 1;
            }
            match raw.get(at) {
                Some(&next) if next != delimiter && next != b'\n' && next != b'\r' => return Some((cell, line)),
                _ => {}
            }
        }
        starts = byte == delimiter || (starts && (byte == b'\n' || byte == b'\r'));
        cell += usize::from(byte == delimiter);
        line += u64::from(byte == b'\n');
    }
    None
}

/// Returns the error of a cell that continues after its closing quote, on this line.
fn after_quote((_, line): (usize, u64), column: Option<&String>) -> DataError {
    let error = DataError::new(DataErrorKind::CsvAfterQuote, "a quoted cell goes on after its closing quote")
        .at_line(line)
        .expected("a delimiter or the end of the line after a closing quote")
        .help("write a quote inside a quoted cell twice, or remove the quotes");
    match column {
        Some(column) => error.at_column(column),
        None => error,
    }
}

/// Returns the error of a cell that may have swallowed rows, whose quote opens on this line.
pub(crate) fn line_end(line: u64, column: Option<&String>) -> DataError {
    let error = DataError::new(DataErrorKind::CsvLineEnd, "a quoted cell holds line ends and as many delimiters as a row")
        .at_line(line)
        .expected("no other rows inside a quoted cell")
        .help("look for a stray quote on that line; a column whose cells do hold such text has `line_ends = true` in the schema");
    match column {
        Some(column) => error.at_column(column),
        None => error,
    }
}

fn long_record(line: u64) -> DataError {
    DataError::new(DataErrorKind::CsvLongRecord, "a row is longer than 64 MiB")
        .at_line(line)
        .help("look for a quote that is never closed, or a file that is no CSV")
}

fn not_utf8(line: u64, cell: Option<usize>) -> DataError {
    let error = DataError::new(DataErrorKind::CsvNotUtf8, "the text is not UTF-8")
        .at_line(line)
        .expected("UTF-8 text")
        .help("if it is written in another encoding, name it: --encoding windows-1252 (also called latin1)");
    match cell {
        Some(cell) => error.found(format!("cell {}", cell + 1)),
        None => error,
    }
}
