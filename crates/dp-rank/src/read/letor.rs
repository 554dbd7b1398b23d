//! Lines of the form `grade qid:ID index:value ... # comment`.

use dp_data::encode::{parse_number, parse_whole};
use dp_data::error::{DataError, DataErrorKind};
use dp_data::memory::{OutOfMemory, reserve};
use dp_data::read::{Input, Line, Lines};

use super::error::{Column, Problem, ReadError, quote};
use super::gather::{Gather, parse_grade};
use super::{ListOptions, Loaded};

/// Number of lines that are parsed before they are gathered, on one thread.
const PART: usize = 256;
/// The largest feature index accepted without a declaration: larger dense rows are rarely intended.
const WIDEST: usize = 1 << 20;

/// Reads lists in the format of LETOR, MSLR-WEB and SVMrank: one document per line, `grade qid:ID index:value index:value ... #
/// comment`.
///
/// Features are numbered from 1, in any order; features absent from a line are 0. Blank lines and comments are skipped. The grade
/// may be absent unless [`ListOptions::grades_needed`].
///
/// # Errors
/// [`ReadError`], with file, line and byte: a line without `qid:` or without a grade, a grade that is not an integer from 0 to
/// [`ListOptions::largest_grade`], a feature index that is 0, repeated or above the declared number, a value that is not a finite
/// number, a split list under `SplitLists::Refuse`, no lines, or an unreadable input.
///
/// # Examples
/// ```
/// use dp_data::read::Input;
/// use dp_rank::read::{ListOptions, load_letor};
///
/// let text = "2 qid:10 1:0.5 3:1 # docid = GX1\n0 qid:10 2:0.25\n1 qid:11 1:1\n";
/// let loaded = load_letor(Input::from_bytes("train.txt", text.into()), &ListOptions::default())?;
/// assert_eq!((loaded.lists.len(), loaded.lists.width(), loaded.split_lists), (2, 3, 0));
/// assert_eq!(loaded.lists.list(0).features().values(), [0.5, 0.0, 1.0, 0.0, 0.25, 0.0]);
///
/// let broken = Input::from_bytes("train.txt", b"2 qid:10 1:0.5\n1 1:1\n".to_vec());
/// let error = load_letor(broken, &ListOptions::default()).unwrap_err();
/// assert!(error.to_string().starts_with("train.txt:2:3: the query is missing"));
/// # Ok::<(), dp_rank::read::ReadError>(())
/// ```
pub fn load_letor(input: Input, options: &ListOptions) -> Result<Loaded, ReadError> {
    let mut lines = Lines::new(input);
    let file = lines.file().to_owned();
    let mut gather = Gather::new(&file, options)?;
    let parser = Parser { file: &file, options };
    let in_chunks = lines.for_each_chunk(
        |lines| parser.parse(lines, usize::MAX),
        |part, lines_before| part.gather(&mut gather, lines_before).map_err(Failed::Refused),
    );
    match in_chunks {
        Ok(()) => {}
        Err(Failed::Unread(error)) => return Err(unreadable(&file, error)),
        Err(Failed::Refused(error)) => return Err(error),
    }
    loop {
        let part = parser.parse(&mut lines, PART);
        let is_last = part.is_last;
        part.gather(&mut gather, 0)?;
        if is_last {
            return gather.finish();
        }
    }
}

/// Lines that cannot be read, or were refused.
enum Failed {
    Unread(DataError),
    Refused(ReadError),
}

impl From<DataError> for Failed {
    fn from(error: DataError) -> Self {
        Self::Unread(error)
    }
}

/// Documents of some lines, and the error after them.
#[derive(Default)]
struct Part {
    documents: Vec<Document>,
    queries: Vec<u8>,
    entries: Vec<(u32, f64)>,
    error: Option<ReadError>,
    /// True if there are no lines left.
    is_last: bool,
}

/// A document, with the ends of its query and its features in the part's buffers.
struct Document {
    grade: u32,
    query_end: usize,
    entries_end: usize,
    line: u64,
    column: usize,
}

impl Part {
    /// Gathers the documents; this number of lines precedes the part.
    fn gather(self, gather: &mut Gather<'_>, lines_before: u64) -> Result<(), ReadError> {
        let (mut query_start, mut entries_start) = (0, 0);
        for document in &self.documents {
            let Document { grade, query_end, entries_end, line, column } = *document;
            let query = &self.queries[query_start..query_end];
            let entries = &self.entries[entries_start..entries_end];
            gather.row(query, grade, entries, || (line + lines_before, Some(Column::At(column))))?;
            (query_start, entries_start) = (query_end, entries_end);
        }
        self.error.map_or(Ok(()), |error| Err(error.after_lines(lines_before)))
    }
}

/// The parser of a file's lines.
struct Parser<'a> {
    file: &'a str,
    options: &'a ListOptions,
}

impl Parser<'_> {
    /// Parses the next lines, at most this many.
    fn parse(&self, lines: &mut Lines, most: usize) -> Part {
        let mut part = Part::default();
        part.error = self.parse_into(lines, most, &mut part).err();
        part
    }

    fn parse_into(&self, lines: &mut Lines, most: usize, part: &mut Part) -> Result<(), ReadError> {
        let limit = self.options.features.unwrap_or(WIDEST);
        let mut row = Row { limit, entries: Vec::new(), rows_seen: Vec::new(), row: 0 };
        for _ in 0..most {
            let Some(line) = lines.next_line().map_err(|error| unreadable(self.file, error))? else {
                part.is_last = true;
                break;
            };
            self.parse_line(line, &mut row, part)?;
        }
        Ok(())
    }

    fn parse_line(&self, line: Line<'_>, row: &mut Row, part: &mut Part) -> Result<(), ReadError> {
        let Self { file, options } = *self;
        let line_number = line.number;
        let content = line.bytes.split(|&byte| byte == b'#').next().unwrap_or_default();
        let mut parts = Parts { content, at: 0 };
        let Some((at, label)) = parts.next() else { return Ok(()) };
        let refused =
            |at: usize| move |problem| ReadError::new(file, problem).at(line_number, Some(Column::At(at + 1)));
        let exhausted = |error| ReadError::exhausted(file, error, Some(line_number));
        let (grade, (at, query)) = if label.starts_with(b"qid:") {
            if options.grades_needed {
                return Err(refused(at)(Problem::MissingGrade));
            }
            (0, (at, label))
        } else {
            let grade = parse_grade(label, options.largest_grade).map_err(refused(at))?;
            (grade, parts.next().unwrap_or((content.trim_ascii_end().len(), &[])))
        };
        let query_at = at;
        let query = query
            .strip_prefix(b"qid:")
            .filter(|id| !id.is_empty())
            .ok_or(Problem::MissingQuery)
            .map_err(refused(at))?;
        row.clear();
        row.reserve(content.len()).map_err(exhausted)?;
        for (at, part) in parts {
            let (index, value) = row.parse(part).map_err(refused(at))?;
            row.reserve_index(index).map_err(exhausted)?;
            row.feature(index, value).map_err(refused(at))?;
        }
        reserve(&mut part.queries, query.len(), PARSED).map_err(exhausted)?;
        reserve(&mut part.entries, row.entries.len(), PARSED).map_err(exhausted)?;
        reserve(&mut part.documents, 1, PARSED).map_err(exhausted)?;
        part.queries.extend_from_slice(query);
        part.entries.extend_from_slice(&row.entries);
        part.documents.push(Document {
            grade,
            query_end: part.queries.len(),
            entries_end: part.entries.len(),
            line: line_number,
            column: query_at + 1,
        });
        Ok(())
    }
}

/// The content of a part, for messages.
const PARSED: &str = "some lines of the file";

/// Converts an error of reading lines.
fn unreadable(file: &str, error: DataError) -> ReadError {
    let line = error.line();
    let error = match error.kind() {
        DataErrorKind::FileChanged => return ReadError::from_data(file, error),
        DataErrorKind::MemoryExhausted => ReadError::from_data(file, error),
        DataErrorKind::FileTruncated => ReadError::new(file, Problem::Cut),
        DataErrorKind::FileCorrupt => ReadError::new(file, Problem::Damaged),
        _ => ReadError::new(file, Problem::Unreadable(error.message())),
    };
    match line {
        Some(line) => error.at(line, None),
        None => error,
    }
}

/// The parts of a line between blanks, each with its start.
struct Parts<'a> {
    content: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Parts<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.content[self.at..];
        let start = self.at + rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let part = &self.content[start..];
        let length = part.iter().position(u8::is_ascii_whitespace).unwrap_or(part.len());
        self.at = start + length;
        Some((start, &part[..length]))
    }
}

/// The features of the current line.
struct Row {
    limit: usize,
    entries: Vec<(u32, f64)>,
    /// For each index the last row that had it, which detects repetitions without clearing.
    rows_seen: Vec<u64>,
    row: u64,
}

impl Row {
    fn clear(&mut self) {
        self.entries.clear();
        self.row += 1;
    }

    /// Reserves memory for the features of a line of this length: each has at least four characters, including the blank before
    /// it.
    fn reserve(&mut self, length: usize) -> Result<(), OutOfMemory> {
        reserve(&mut self.entries, length / 4 + 1, "one line of the file")
    }

    /// Reserves memory to record a feature of this index.
    fn reserve_index(&mut self, index: usize) -> Result<(), OutOfMemory> {
        let more = (index + 1).saturating_sub(self.rows_seen.len());
        reserve(&mut self.rows_seen, more, "the indices of the file")?;
        self.rows_seen.resize(self.rows_seen.len() + more, 0);
        Ok(())
    }

    /// Returns the index of a feature, from 0, and its value.
    fn parse(&self, part: &[u8]) -> Result<(usize, f64), Problem> {
        let colon =
            part.iter().position(|&byte| byte == b':').ok_or_else(|| Problem::BadFeature { found: quote(part) })?;
        let (name, cell) = (&part[..colon], &part[colon + 1..]);
        let index = parse_whole(name)
            .and_then(|index| usize::try_from(index).ok())
            .filter(|index| (1..=self.limit).contains(index))
            .ok_or_else(|| Problem::BadIndex { found: quote(name), limit: self.limit })?
            - 1;
        let value = parse_number(cell).ok_or_else(|| Problem::BadValue { found: quote(cell) })?;
        Ok((index, value))
    }

    /// Adds a feature; memory for its index must be reserved.
    fn feature(&mut self, index: usize, value: f64) -> Result<(), Problem> {
        if self.rows_seen[index] == self.row {
            return Err(Problem::DuplicateFeature { found: quote((index + 1).to_string().as_bytes()) });
        }
        self.rows_seen[index] = self.row;
        self.entries.push((index as u32, value));
        Ok(())
    }
}
