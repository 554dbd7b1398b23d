//! Lines of the form `grade qid:ID index:value ... # comment`.

use std::io::BufReader;

use dp_data::error::DataErrorKind;
use dp_data::memory::{OutOfMemory, read_line, reserve};
use dp_data::read::{Input, failed_read};

use super::error::{Column, Problem, ReadError, quote};
use super::gather::{Gather, parse_grade, parse_number};
use super::{ListOptions, Loaded};

/// The largest length of a line.
const LONGEST: usize = 64 * 1024 * 1024;
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
    let file = input.name().to_owned();
    let mut gather = Gather::new(&file, options)?;
    let mut source = BufReader::with_capacity(256 * 1024, input);
    let mut row = Row { limit: options.features.unwrap_or(WIDEST), entries: Vec::new(), rows_seen: Vec::new(), row: 0 };
    let (mut bytes, mut line) = (Vec::new(), 0_u64);
    loop {
        bytes.clear();
        line += 1;
        let read = read_line(&mut source, LONGEST, &mut bytes).map_err(|error| {
            let error = failed_read(&file, error);
            let problem = match error.kind() {
                DataErrorKind::FileTruncated => Problem::Cut,
                DataErrorKind::FileCorrupt => Problem::Damaged,
                DataErrorKind::FileChanged => return ReadError::from_data(&file, error),
                DataErrorKind::MemoryExhausted => return ReadError::from_data(&file, error).at(line, None),
                _ => Problem::Unreadable(error.message()),
            };
            ReadError::new(&file, problem).at(line, None)
        })?;
        if read == 0 {
            return gather.finish();
        }
        if read == LONGEST {
            let problem = Problem::Unreadable("a line is longer than 64 MiB".to_owned());
            return Err(ReadError::new(&file, problem).at(line, None));
        }
        let content = bytes.split(|&byte| byte == b'#').next().unwrap_or_default();
        let skipped = if line == 1 && content.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut parts = Parts { content, at: skipped };
        let Some((at, label)) = parts.next() else { continue };
        let refused = |at: usize| {
            let file = &file;
            move |problem| ReadError::new(file, problem).at(line, Some(Column::At(at + 1)))
        };
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
        row.reserve(content.len()).map_err(|error| ReadError::exhausted(&file, error, Some(line)))?;
        for (at, part) in parts {
            let (index, value) = row.parse(part).map_err(refused(at))?;
            row.reserve_index(index).map_err(|error| ReadError::exhausted(&file, error, Some(line)))?;
            row.feature(index, value).map_err(refused(at))?;
        }
        gather.row(query, grade, &row.entries, || (line, Some(Column::At(query_at + 1))))?;
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
        let index = parse_index(name)
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

fn parse_index(name: &[u8]) -> Option<usize> {
    let digits = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(name).ok()?.parse().ok()).flatten()
}
