//! Reading a table on several threads, in chunks of whole records.
//!
//! One thread at a time reads text and cuts it; the records of a chunk are split and used on any thread; results are used in the
//! order of the file. Where text cannot be cut safely, chunks end, and the reader is left at the next record.

use core::ops::Range;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{CsvOptions, CsvReader, Splitter, lengthen, skip_mark};
use crate::error::DataError;
use crate::workers::Workers;

/// Length from which on text without the end of a record is not cut.
const LONG: usize = 1 << 20;
/// Maximum number of chunks per thread that are read and not yet used.
const AHEAD: usize = 4;

/// Text of whole records, or the last text of a source. The rest of `bytes` is memory.
struct Chunk {
    bytes: Vec<u8>,
    records: Range<usize>,
}

/// What reads the records of chunks.
pub(in crate::read) trait ReadsChunks {
    /// Returns the reader of the records, if they are a table's.
    fn csv_reader(&mut self) -> Option<&mut CsvReader>;
}

impl CsvReader {
    /// Passes `part(buffers)` to `each` for chunk after chunk, in the order of the file. Each thread makes its buffers of a
    /// reader, which then reads the records of a chunk and ends.
    ///
    /// Afterwards this reader is at the first record that was in no chunk. With one thread there are no chunks.
    ///
    /// # Errors
    /// Those of the first chunk that has one, with the line of the file; those of `each`.
    pub(in crate::read) fn for_each_chunk<B: ReadsChunks, T: Send, E: From<DataError>>(
        &mut self,
        buffers: impl Fn(Self) -> B + Sync,
        part: impl Fn(&mut B) -> Result<T, DataError> + Sync,
        mut each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { file, splitter, header, line_ends, workers, .. } = self;
        if *workers == Workers::ONE {
            return Ok(());
        }
        let (spare, options) = (Mutex::new(Vec::new()), splitter.options);
        let reader = || Self {
            file: file.clone(),
            splitter: Splitter::new(Box::new(std::io::empty()), options),
            header: header.clone(),
            positions: HashMap::new(),
            line_ends: line_ends.clone(),
            workers: Workers::ONE,
        };
        let lines_of_header = splitter.line - 1;
        let mut lines_before = lines_of_header;
        let of_chunk = |buffers: &mut B, chunk: Result<Chunk, DataError>| -> Result<_, DataError> {
            let chunk = chunk?;
            if let Some(reader) = buffers.csv_reader() {
                give_back(&spare, reader.splitter.load(chunk));
            }
            let result = part(buffers);
            Ok((result, buffers.csv_reader().map_or(0, |reader| reader.splitter.lines())))
        };
        workers.for_each(
            Chunks { splitter: &mut *splitter, spare: &spare, has_failed: false },
            AHEAD * workers.threads(),
            || buffers(reader()),
            of_chunk,
            |outcome| {
                let of_text = |error: DataError| error.after_lines(lines_before - lines_of_header).in_file(file);
                let (result, lines) = outcome.map_err(of_text)?;
                let result = result.map_err(|error| error.after_lines(lines_before))?;
                lines_before += lines;
                each(result)
            },
        )?;
        splitter.line = lines_before + 1;
        Ok(())
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

/// Cuts the text of a splitter.
struct Chunks<'s> {
    splitter: &'s mut Splitter,
    spare: &'s Spare,
    has_failed: bool,
}

impl Iterator for Chunks<'_> {
    type Item = Result<Chunk, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let chunk = self.splitter.next_chunk(self.spare);
        self.has_failed = chunk.is_err();
        chunk.transpose()
    }
}

impl Splitter {
    /// Reads the next chunk; `None` if no text is left or it cannot be cut.
    fn next_chunk(&mut self, spare: &Spare) -> Result<Option<Chunk>, DataError> {
        loop {
            let pending = &self.buffer[self.start..self.end];
            let length = match whole_records(pending, self.options) {
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
                lengthen(&mut bytes, tail.len())?;
            }
            bytes[..tail.len()].copy_from_slice(tail);
            let chunk = Range { start: self.start, end: self.start + length };
            (self.start, self.end) = (0, tail.len());
            return Ok(Some(Chunk { bytes: core::mem::replace(&mut self.buffer, bytes), records: chunk }));
        }
    }

    /// Continues with a chunk as if it were the whole source, and returns the memory of the one before.
    fn load(&mut self, Chunk { bytes, records }: Chunk) -> Vec<u8> {
        (self.start, self.end) = (records.start, records.end);
        self.filled += 1;
        self.at_end_of_source = true;
        self.line = 1;
        self.slow.reset();
        skip_mark(&mut self.slow);
        core::mem::replace(&mut self.buffer, bytes)
    }

    /// Returns the number of lines of a chunk that was read, with the blank ones at its end.
    fn lines(&self) -> u64 {
        self.line - 1 + memchr::memchr_iter(b'\n', &self.buffer[self.start..self.end]).count() as u64
    }
}

/// Returns the length of the whole records with which `text` begins; `None` if a quote is not what RFC 4180 says. `text` begins
/// with a record.
fn whole_records(text: &[u8], CsvOptions { delimiter, quote }: CsvOptions) -> Option<usize> {
    let (mut whole, mut at) = (0, 0);
    loop {
        let found = memchr::memchr(quote, &text[at..]);
        let outside = &text[at..found.map_or(text.len(), |found| at + found)];
        if let Some(line_end) = memchr::memrchr(b'\n', outside) {
            whole = at + line_end + 1;
        }
        let Some(found) = found else { return Some(whole) };
        at += found + 1;
        let before = at.checked_sub(2).map_or(b'\n', |before| text[before]);
        if before != delimiter && before != b'\n' && before != b'\r' {
            // Inside a cell without quotes, a quote is text.
            continue;
        }
        loop {
            let Some(found) = memchr::memchr(quote, &text[at..]) else { return Some(whole) };
            at += found + 1;
            match text.get(at) {
                Some(&next) if next == quote => at += 1,
                Some(&next) if next == delimiter || next == b'\n' || next == b'\r' => break,
                Some(_) => return None,
                None => return Some(whole),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_records_end_with_a_line_outside_quotes() {
        for (text, whole) in [
            ("", Some(0)),
            ("1,2", Some(0)),
            ("1,2\n3", Some(4)),
            ("1,\"2\n3\"", Some(0)),
            ("1,\"2\n3\"\n", Some(8)),
            ("1,\"2\n\"\"", Some(0)),
            ("\"1\"\r\n\"2", Some(5)),
            ("1\"\n2\"\n", Some(6)),
            ("\"1\"2\n", None),
            ("\n\n\"a\"\n\"", Some(6)),
        ] {
            assert_eq!(whole_records(text.as_bytes(), CsvOptions::default()), whole, "{text:?}");
        }
    }
}
