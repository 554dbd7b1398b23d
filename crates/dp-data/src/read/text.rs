//! Text that is read piece by piece, and cut into chunks of whole records for several threads.
//!
//! One thread at a time reads text and cuts it; the records of a chunk are used on any thread; results are used in the order of
//! the file. Where text cannot be cut safely, chunks end, and the reader is left at the next record.

use core::ops::Range;
use std::io::{ErrorKind, Read};
use std::sync::{Mutex, PoisonError};

use super::{BYTE_ORDER_MARK, foreign, read_error};
use crate::error::DataError;
use crate::memory::{OutOfMemory, reserve};
use crate::workers::Workers;

/// Number of bytes requested from the source at a time.
pub(super) const PIECE: usize = 256 * 1024;
/// Largest length of a record.
pub(super) const LONGEST: usize = 64 * 1024 * 1024;
/// Length from which on text without the end of a record is not cut.
const LONG: usize = 1 << 20;
/// Maximum number of chunks per thread that are read and not yet used.
const AHEAD: usize = 4;

/// Number of bytes, unless a line is shorter, that show what kind of file it is.
const FIRST: usize = 64;

/// Bytes that were read and not yet used, `buffer[start..end]`, and their source.
pub(super) struct Text {
    source: Box<dyn Read + Send>,
    pub(super) buffer: Vec<u8>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Number of times that the buffer has changed.
    pub(super) filled: u64,
    pub(super) at_end_of_source: bool,
    /// The line of the first byte, counted from 1; 0 before the first.
    pub(super) line: u64,
    /// True if the first line is a record, whose content must not decide whether the file is read.
    pub(super) begins_with_record: bool,
}

/// Text of whole records, or the last text of a source. The rest of `bytes` is memory.
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    records: Range<usize>,
}

/// A reader of the records of chunks.
pub(crate) trait ReadsChunks {
    /// Continues with a chunk as if it were the whole source, and returns the memory of the one before.
    fn load(&mut self, chunk: Chunk) -> Vec<u8>;

    /// Returns the number of lines of a chunk that was read, with the blank ones at its end.
    fn lines(&self) -> u64;
}

impl Text {
    pub(super) fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            filled: 0,
            at_end_of_source: false,
            line: 0,
            begins_with_record: false,
        }
    }

    /// Returns the source from its beginning, as far as it was read without moving the text.
    pub(super) fn again(self) -> Box<dyn Read + Send> {
        let Self { source, mut buffer, end, .. } = self;
        buffer.truncate(end);
        let mark = if buffer.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut begin = std::io::Cursor::new(buffer);
        begin.set_position(mark as u64);
        Box::new(begin.chain(source))
    }

    /// Creates a text for chunks to be [loaded](Self::load).
    pub(super) fn empty() -> Self {
        Self::new(Box::new(std::io::empty()))
    }

    /// Begins the first line, after a byte order mark.
    pub(super) fn begin(&mut self) -> Result<(), DataError> {
        if self.line == 0 {
            // The source may give single bytes.
            while self.end < FIRST
                && !self.at_end_of_source
                && memchr::memchr(b'\n', &self.buffer[..self.end]).is_none()
            {
                self.fill()?;
            }
            let refusal = foreign::refusal(&self.buffer[self.start..self.end]);
            if let Some(refusal) = refusal.filter(|_| !self.begins_with_record) {
                return Err(refusal);
            }
            if self.buffer[self.start..self.end].starts_with(BYTE_ORDER_MARK) {
                self.start += BYTE_ORDER_MARK.len();
            }
            self.line = 1;
        }
        Ok(())
    }

    /// Reads more bytes after the pending ones, which move to the front of the buffer.
    pub(super) fn fill(&mut self) -> Result<(), DataError> {
        self.filled += 1;
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < self.end + PIECE {
            let longer = (self.end + PIECE).max(self.end * 2);
            lengthen(&mut self.buffer, longer).map_err(|error| no_room(error, self.line))?;
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end_of_source = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(read_error(error)),
            }
            return Ok(());
        }
    }

    /// Passes `part(buffers)` and the number of lines before the chunk to `each` for chunk after chunk, in the order of the
    /// file. `whole_records` returns the length of the whole records with which a text begins, or `None` if it cannot be cut.
    ///
    /// Afterwards this text is at the first record that was in no chunk. With one thread there are no chunks.
    ///
    /// # Errors
    /// Those of reading, to which `place` adds their file and, if need be, their line; those of `each`.
    pub(super) fn for_each_chunk<B: ReadsChunks, T: Send, E: From<DataError>>(
        &mut self,
        workers: Workers,
        whole_records: impl Fn(&[u8]) -> Option<usize> + Send,
        buffers: impl Fn() -> B + Sync,
        part: impl Fn(&mut B) -> T + Sync,
        place: impl Fn(DataError, u64) -> DataError,
        mut each: impl FnMut(T, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if workers == Workers::ONE {
            return Ok(());
        }
        self.begin().map_err(|error| place(error, 1))?;
        let spare = Mutex::new(Vec::new());
        let lines_at_start = self.line - 1;
        let mut lines_before = lines_at_start;
        let of_chunk = |buffers: &mut B, chunk: Result<Chunk, DataError>| -> Result<_, DataError> {
            give_back(&spare, buffers.load(chunk?));
            let result = part(buffers);
            Ok((result, buffers.lines()))
        };
        workers.for_each(
            Chunks { text: &mut *self, whole_records, spare: &spare, has_failed: false },
            AHEAD * workers.threads(),
            buffers,
            of_chunk,
            |outcome| {
                let of_text =
                    |error: DataError| place(error.after_lines(lines_before - lines_at_start), lines_before + 1);
                let (result, lines) = outcome.map_err(of_text)?;
                let used = each(result, lines_before);
                lines_before += lines;
                used
            },
        )?;
        self.line = lines_before + 1;
        Ok(())
    }

    /// Reads the next chunk; `None` if no text is left or it cannot be cut.
    fn next_chunk(
        &mut self,
        whole_records: impl Fn(&[u8]) -> Option<usize>,
        spare: &Spare,
    ) -> Result<Option<Chunk>, DataError> {
        loop {
            let pending = &self.buffer[self.start..self.end];
            let length = match whole_records(pending) {
                _ if self.at_end_of_source => pending.len(),
                Some(0) if pending.len() < LONG => {
                    self.fill()?;
                    continue;
                }
                found => found.unwrap_or(0),
            };
            if length == 0 {
                return Ok(None);
            }
            let mut bytes = take(spare);
            let tail = &pending[length..];
            if bytes.len() < tail.len() {
                lengthen(&mut bytes, tail.len()).map_err(|error| no_room(error, self.line))?;
            }
            bytes[..tail.len()].copy_from_slice(tail);
            let chunk = Range { start: self.start, end: self.start + length };
            (self.start, self.end) = (0, tail.len());
            return Ok(Some(Chunk { bytes: core::mem::replace(&mut self.buffer, bytes), records: chunk }));
        }
    }

    /// As [`ReadsChunks::load`].
    pub(super) fn load(&mut self, Chunk { bytes, records }: Chunk) -> Vec<u8> {
        (self.start, self.end) = (records.start, records.end);
        self.filled += 1;
        self.at_end_of_source = true;
        self.line = 1;
        core::mem::replace(&mut self.buffer, bytes)
    }

    /// As [`ReadsChunks::lines`].
    pub(super) fn lines(&self) -> u64 {
        self.line - 1 + memchr::memchr_iter(b'\n', &self.buffer[self.start..self.end]).count() as u64
    }
}

/// Buffers of chunks that were used.
type Spare = Mutex<Vec<Vec<u8>>>;

fn give_back(spare: &Spare, buffer: Vec<u8>) {
    spare.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
}

fn take(spare: &Spare) -> Vec<u8> {
    spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

/// Cuts a text.
struct Chunks<'t, W> {
    text: &'t mut Text,
    whole_records: W,
    spare: &'t Spare,
    has_failed: bool,
}

impl<W: Fn(&[u8]) -> Option<usize>> Iterator for Chunks<'_, W> {
    type Item = Result<Chunk, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let chunk = self.text.next_chunk(&self.whole_records, self.spare);
        self.has_failed = chunk.is_err();
        chunk.transpose()
    }
}

/// The content, for messages.
pub(super) const RECORD: &str = "one row of the file";

/// Extends `numbers` by zeros.
pub(super) fn lengthen<T: Clone + Default>(numbers: &mut Vec<T>, length: usize) -> Result<(), OutOfMemory> {
    reserve(numbers, length - numbers.len(), RECORD)?;
    numbers.resize(length, T::default());
    Ok(())
}

/// Returns the error without sizes: the length of a row depends on its content.
pub(super) fn no_room(error: OutOfMemory, line: u64) -> DataError {
    DataError::from(error.without_sizes()).at_line(line)
}
