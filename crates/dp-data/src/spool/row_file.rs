//! Rows in a temporary file: appended once, then read in order or by position.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::ENGINE;
use super::layout::{Layout, damaged};
use super::store::Store;
use crate::block_buffer::BlockBuffer;
use crate::encode::Stored;
use crate::memory::{filled, reserve};
use crate::source::SourceError;

/// Number of bytes that are written at a time, and the most that are read for one or a few rows.
const WRITTEN: usize = 1 << 20;
/// Rows at most this many bytes apart are read together.
const GAP: u64 = 4096;
/// Size of an offset.
const OFFSET: usize = 8;
/// The name of the buffers in error messages.
const ROWS: &str = "some rows of the temporary file";

/// Rows in a file, and for sparse rows a second file with the end of each.
pub(super) struct RowFile {
    layout: Layout,
    rows: u64,
    /// Number of bytes of all rows.
    length: u64,
    data: Store,
    ends: Option<Store>,
    /// Appended bytes that are not yet written.
    pending: Vec<u8>,
    pending_ends: Vec<u8>,
}

/// Buffers for reading: the bytes of consecutive rows, and where each begins and the last ends.
#[derive(Default)]
pub(super) struct Span {
    bytes: Vec<u8>,
    offsets: Vec<u64>,
}

impl Span {
    fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    fn row(&self, at: usize) -> &[u8] {
        let first = self.offsets[0];
        &self.bytes[(self.offsets[at] - first) as usize..(self.offsets[at + 1] - first) as usize]
    }
}

impl RowFile {
    /// Creates an empty file in a folder.
    pub(super) fn create(folder: &Path, encrypted: bool, layout: Layout) -> io::Result<Self> {
        Self::on(Store::create(folder, encrypted)?, folder, encrypted, layout)
    }

    /// Creates an empty one that writes its rows to `data`.
    pub(super) fn on(data: Store, folder: &Path, encrypted: bool, layout: Layout) -> io::Result<Self> {
        let ends = layout.sparse.then(|| Store::create(folder, encrypted)).transpose()?;
        Ok(Self { layout, rows: 0, length: 0, data, ends, pending: Vec::new(), pending_ends: Vec::new() })
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of bytes of all rows.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Appends the row that `add` appends to some bytes.
    pub(super) fn append(&mut self, add: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let before = self.pending.len();
        add(&mut self.pending);
        self.length += (self.pending.len() - before) as u64;
        self.rows += 1;
        if self.ends.is_some() {
            self.pending_ends.extend_from_slice(&self.length.to_le_bytes());
        }
        if self.pending.len() >= WRITTEN || self.pending_ends.len() >= WRITTEN { self.flush() } else { Ok(()) }
    }

    /// Writes what was appended.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Self { length, rows, data, ends, pending, pending_ends, .. } = self;
        let start = *length - pending.len() as u64;
        data.write(pending, start)?;
        pending.clear();
        if let Some(ends) = ends {
            let start = *rows * OFFSET as u64 - pending_ends.len() as u64;
            ends.write(pending_ends, start)?;
            pending_ends.clear();
        }
        Ok(())
    }

    /// Reads consecutive rows, which must exist and be written.
    fn read<F: Stored>(&self, rows: Range<u64>, Span { bytes, offsets }: &mut Span) -> Result<(), SourceError> {
        offsets.clear();
        let (start, count) = (rows.start, usize::try_from(rows.end - rows.start).map_err(|_| damaged())?);
        reserve(offsets, count + 1, ROWS)?;
        match (self.layout.row_bytes::<F>(), &self.ends) {
            (Some(size), _) => offsets.extend((rows.start..=rows.end).map(|row| row * size as u64)),
            (None, Some(ends)) => {
                let before = usize::from(start > 0);
                resize(bytes, (count + before) * OFFSET)?;
                ends.read(bytes, (start - before as u64) * OFFSET as u64).map_err(failed)?;
                if before == 0 {
                    offsets.push(0);
                }
                offsets.extend(bytes.as_chunks::<OFFSET>().0.iter().map(|end| u64::from_le_bytes(*end)));
            }
            (None, None) => return Err(damaged()),
        }
        let (first, last) = (offsets[0], offsets[count]);
        let is_ordered = last <= self.length && offsets.is_sorted();
        let length = last.checked_sub(first).filter(|_| is_ordered).ok_or_else(damaged)?;
        resize(bytes, usize::try_from(length).map_err(|_| damaged())?)?;
        self.data.read(bytes, first).map_err(failed)
    }

    /// Appends consecutive rows to `out`.
    pub(super) fn read_rows<F: Stored>(
        &self,
        rows: Range<u64>,
        span: &mut Span,
        out: &mut BlockBuffer<F>,
    ) -> Result<(), SourceError> {
        self.each_row::<F>(rows, span, |row| self.layout.read(row, out))
    }

    /// Passes the bytes of consecutive rows to `each`.
    pub(super) fn each_row<F: Stored>(
        &self,
        rows: Range<u64>,
        span: &mut Span,
        each: impl FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.read::<F>(rows, span)?;
        (0..span.rows()).map(|at| span.row(at)).try_for_each(each)
    }

    /// Appends the rows at ascending positions, which must exist, to `out`.
    pub(super) fn gather<F: Stored>(
        &self,
        mut positions: &[u32],
        span: &mut Span,
        out: &mut BlockBuffer<F>,
    ) -> Result<(), SourceError> {
        let mean = (self.length / self.rows.max(1)).max(1);
        let (gap, most) = (GAP / mean + 1, (WRITTEN as u64 / mean).max(1));
        while let Some(&first) = positions.first() {
            let near = |pair: &[u32]| u64::from(pair[1] - pair[0]) <= gap && u64::from(pair[1] - first) < most;
            let count = 1 + positions.windows(2).take_while(|pair| near(pair)).count();
            let (together, later) = positions.split_at(count);
            positions = later;
            self.read::<F>(u64::from(first)..u64::from(together[count - 1]) + 1, span)?;
            for &position in together {
                self.layout.read(span.row((position - first) as usize), out)?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn damage(&self, at: u64) {
        let mut byte = [0];
        self.data.read(&mut byte, at).unwrap();
        self.data.write(&mut [byte[0] ^ 4], at).unwrap();
    }

    #[cfg(test)]
    pub(super) fn shorten(&self, length: u64) {
        self.data.shorten(length);
    }
}

/// Sets the length of a buffer whose contents are overwritten.
fn resize(bytes: &mut Vec<u8>, length: usize) -> Result<(), SourceError> {
    let more = length.saturating_sub(bytes.len());
    // How many bytes a sparse row takes depends on the record.
    reserve(bytes, more, ROWS).map_err(|error| error.without_sizes())?;
    bytes.resize(length, 0);
    Ok(())
}

/// Returns an empty buffer of this length.
pub(super) fn buffer(length: usize) -> Result<Vec<u8>, SourceError> {
    Ok(filled(0, length, ROWS).map_err(|error| error.without_sizes())?)
}

/// The error for a file that cannot be read or, once it is filled, written.
pub(super) fn failed(error: io::Error) -> SourceError {
    SourceError::Engine { engine: ENGINE, message: format!("the temporary file of the rows: {error}") }
}
