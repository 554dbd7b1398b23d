//! Lines of text, one by one or on several threads.

use core::ops::Range;

use super::Input;
use super::text::{Chunk, LONGEST, ReadsChunks, Text};
use crate::error::{DataError, DataErrorKind};
use crate::workers::Workers;

/// Reads lines, which end with LF, without their ends and without a byte order mark before the first.
///
/// # Examples
/// ```
/// use dp_data::read::{Input, Lines};
///
/// let mut lines = Lines::new(Input::from_bytes("notes.txt", b"one\n\ntwo".to_vec()));
/// let mut found = Vec::new();
/// while let Some(line) = lines.next_line()? {
///     found.push((line.number, line.bytes.to_vec()));
/// }
/// assert_eq!(found, [(1, b"one".to_vec()), (2, b"".to_vec()), (3, b"two".to_vec())]);
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub struct Lines {
    file: String,
    text: Text,
    workers: Workers,
}

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The bytes before the line's end.
    pub bytes: &'a [u8],
    /// The number of the line, counted from 1.
    pub number: u64,
}

impl Lines {
    /// Creates the reader of an input.
    pub fn new(input: Input) -> Self {
        let (file, source, workers) = input.into_parts();
        Self { file, text: Text::new(source), workers }
    }

    /// Returns the name used in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the next line, or `None` at the end.
    ///
    /// # Errors
    /// `file.*`; `libsvm.syntax` for a line longer than 64 MiB; `memory.exhausted`.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, DataError> {
        Ok(self.next_place()?.map(|place| self.line(place)))
    }

    /// As [`next_line`](Self::next_line); returns the place of the line in the buffer.
    pub(super) fn next_place(&mut self) -> Result<Option<Range<usize>>, DataError> {
        self.text.next_line().map_err(|error| placed(error, &self.file, self.text.line.max(1)))
    }

    /// Returns the line at this place, the last one that was read.
    pub(super) fn line(&self, place: Range<usize>) -> Line<'_> {
        Line { bytes: &self.text.buffer[place], number: self.text.line - 1 }
    }

    /// Passes `of_chunk(lines)` and the number of lines before the chunk to `each` for one chunk after another, in the order of
    /// the file. `of_chunk` gets the lines of one chunk, numbered from 1; chunks are read on the [threads](Input::with_workers)
    /// of the input.
    ///
    /// Lines that are in no chunk are left to [`next_line`](Self::next_line): with one thread all of them, and very long ones.
    ///
    /// # Errors
    /// Those of [`next_line`](Self::next_line) and of `each`.
    ///
    /// # Examples
    /// ```
    /// use dp_data::{DataError, Workers, read::{Input, Lines}};
    ///
    /// let input = Input::from_bytes("notes.txt", b"one\ntwo\n".to_vec()).with_workers(Workers::available());
    /// let mut lines = Lines::new(input);
    /// let mut letters = 0;
    /// let count = |lines: &mut Lines| -> Result<usize, DataError> {
    ///     let mut letters = 0;
    ///     while let Some(line) = lines.next_line()? {
    ///         letters += line.bytes.len();
    ///     }
    ///     Ok(letters)
    /// };
    /// lines.for_each_chunk(count, |of_chunk, _| {
    ///     letters += of_chunk?;
    ///     Ok::<_, DataError>(())
    /// })?;
    /// letters += count(&mut lines)?;
    /// assert_eq!(letters, 6);
    /// # Ok::<(), DataError>(())
    /// ```
    pub fn for_each_chunk<T: Send, E: From<DataError>>(
        &mut self,
        of_chunk: impl Fn(&mut Self) -> T + Sync,
        each: impl FnMut(T, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.for_each_chunk_with(|lines| lines, of_chunk, each)
    }

    /// As [`for_each_chunk`](Self::for_each_chunk); each thread makes its buffers of lines.
    pub(super) fn for_each_chunk_with<B: ReadsChunks, T: Send, E: From<DataError>>(
        &mut self,
        buffers: impl Fn(Self) -> B + Sync,
        of_chunk: impl Fn(&mut B) -> T + Sync,
        each: impl FnMut(T, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { file, text, workers } = self;
        let lines = || Self { file: file.clone(), text: Text::empty(), workers: Workers::ONE };
        let whole = |text: &[u8]| Some(memchr::memrchr(b'\n', text).map_or(0, |end| end + 1));
        let place = |error: DataError, line| placed(error, file, line);
        text.for_each_chunk(*workers, whole, || buffers(lines()), of_chunk, place, each)
    }
}

/// Adds the file to an error of reading, and the line where it has none.
fn placed(error: DataError, file: &str, line: u64) -> DataError {
    let error = if error.line().is_some() { error } else { error.at_line(line) };
    error.in_file(file)
}

impl ReadsChunks for Lines {
    fn load(&mut self, chunk: Chunk) -> Vec<u8> {
        self.text.load(chunk)
    }

    fn lines(&self) -> u64 {
        self.text.lines()
    }
}

impl Text {
    /// Returns the place of the next line in the buffer, without its end.
    fn next_line(&mut self) -> Result<Option<Range<usize>>, DataError> {
        self.begin()?;
        let mut searched = 0;
        loop {
            let pending = &self.buffer[self.start..self.end];
            let (length, end) = match memchr::memchr(b'\n', &pending[searched..]) {
                Some(found) => (searched + found, 1),
                None if self.at_end_of_source && pending.is_empty() => return Ok(None),
                None if self.at_end_of_source => (pending.len(), 0),
                None if pending.len() >= LONGEST => {
                    let error = DataError::new(DataErrorKind::LibsvmSyntax, "a line is longer than 64 MiB");
                    return Err(error.at_line(self.line).expected("label index:value index:value ..."));
                }
                None => {
                    searched = pending.len();
                    self.fill()?;
                    continue;
                }
            };
            let line = self.start..self.start + length;
            self.start = line.end + end;
            self.line += 1;
            return Ok(Some(line));
        }
    }
}
