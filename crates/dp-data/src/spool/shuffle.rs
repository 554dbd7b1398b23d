//! Rows of one file in another order in a second file, with the memory of one bucket.

use std::path::Path;

use super::layout::damaged;
use super::row_file::{RowFile, Span, buffer, failed};
use super::store::Store;
use super::{BLOCK_BYTES, Layout};
use crate::encode::Stored;
use crate::keyed_order::KeyedOrder;
use crate::memory::filled;
use crate::source::SourceError;

/// Bytes that wait to be written to all buckets together.
const WAITING: usize = 8 << 20;
/// Bounds on the bytes that wait to be written to one bucket.
const OF_BUCKET: core::ops::RangeInclusive<usize> = 512..=1 << 18;
/// The name of the lists of buckets in error messages.
const BUCKETS: &str = "the buckets of the temporary file";

/// A bucket's place in the file.
#[derive(Clone, Copy, Default)]
struct Bucket {
    rows: u32,
    start: u64,
    /// Where the next row goes, at last the end.
    end: u64,
}

/// Returns a file with the rows in this order: each row is written to its bucket, and each bucket then shuffled in memory.
///
/// # Errors
/// A file that cannot be created, read or written; exhausted memory.
pub(super) fn shuffled<F: Stored>(
    rows: &RowFile,
    order: &KeyedOrder,
    layout: Layout,
    (folder, encrypted): (&Path, bool),
) -> Result<RowFile, SourceError> {
    let scattered = Store::create(folder, encrypted).map_err(failed)?;
    let buckets = scatter::<F>(rows, order, &scattered)?;
    // The rows of a bucket are written where it was read. Another key serves for them, so that no key is used twice.
    let data = scattered.with_another_key().map_err(failed)?;
    let mut out = RowFile::on(data, folder, encrypted, layout).map_err(failed)?;
    let mut shuffles = order.shuffles();
    let mut starts = Vec::new();
    for bucket in buckets {
        let length = usize::try_from(bucket.end - bucket.start).map_err(|_| damaged())?;
        let mut bytes = buffer(length)?;
        scattered.read(&mut bytes, bucket.start).map_err(failed)?;
        starts.clear();
        let mut at = 0;
        while at < length {
            let size = layout.size_of_first::<F>(&bytes[at..]).ok_or_else(damaged)?;
            starts.push((at, size));
            at += size;
        }
        if starts.len() != bucket.rows as usize {
            return Err(damaged());
        }
        for position in shuffles.next(bucket.rows)? {
            let (at, size) = starts[position as usize];
            out.append(|rows| rows.extend_from_slice(&bytes[at..at + size])).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
    }
    Ok(out)
}

/// Writes each row to its bucket.
fn scatter<F: Stored>(rows: &RowFile, order: &KeyedOrder, out: &Store) -> Result<Vec<Bucket>, SourceError> {
    let mut buckets = filled(Bucket::default(), order.buckets(), BUCKETS)?;
    each_row::<F>(rows, order, |bucket, row| {
        let bucket = &mut buckets[bucket];
        (bucket.rows, bucket.end) = (bucket.rows + 1, bucket.end + row.len() as u64);
        Ok(())
    })?;
    let mut start = 0;
    for bucket in &mut buckets {
        let length = core::mem::replace(&mut bucket.end, start);
        bucket.start = start;
        start += length;
    }
    let of_bucket = (WAITING / buckets.len()).clamp(*OF_BUCKET.start(), *OF_BUCKET.end());
    let mut waiting = filled(Vec::<u8>::new(), buckets.len(), BUCKETS)?;
    let write = |bucket: &mut Bucket, bytes: &mut Vec<u8>| {
        out.write(bytes, bucket.end).map_err(failed)?;
        bucket.end += bytes.len() as u64;
        bytes.clear();
        Ok::<_, SourceError>(())
    };
    each_row::<F>(rows, order, |bucket, row| {
        let (bucket, bytes) = (&mut buckets[bucket], &mut waiting[bucket]);
        bytes.extend_from_slice(row);
        if bytes.len() >= of_bucket { write(bucket, bytes) } else { Ok(()) }
    })?;
    buckets.iter_mut().zip(&mut waiting).try_for_each(|(bucket, bytes)| write(bucket, bytes))?;
    Ok(buckets)
}

/// Passes each row's bucket and bytes to `each`.
fn each_row<F: Stored>(
    rows: &RowFile,
    order: &KeyedOrder,
    mut each: impl FnMut(usize, &[u8]) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let (n, mut assignment, mut span) = (rows.rows(), order.assignment(), Span::default());
    let of_block = (BLOCK_BYTES / (rows.length() / n.max(1)).max(1)).max(1);
    let mut start = 0;
    while start < n {
        let end = n.min(start + of_block);
        rows.each_row::<F>(start..end, &mut span, |row| each(assignment.next().ok_or_else(damaged)?, row))?;
        start = end;
    }
    Ok(())
}
