//! The bytes of a row.
//!
//! ```text
//! dense    target, dim values, CRC-32
//! sparse   number of stored values (4 bytes), target, values, columns (4 bytes each), CRC-32
//! ```
//! Numbers are little-endian, in the float type of the training. A null record has the target NaN, which no other has.

use crate::block::{Block, Rows};
use crate::block_buffer::BlockBuffer;
use crate::encode::Stored;
use crate::source::SourceError;

use super::ENGINE;

/// Size of the checksum, and of the number of stored values.
const WORD: usize = 4;

/// The shape of the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) dim: usize,
    pub(super) sparse: bool,
}

/// The error for rows that differ from what was written.
pub(super) fn damaged() -> SourceError {
    SourceError::Engine { engine: ENGINE, message: "the temporary file of the rows is damaged".to_owned() }
}

impl Layout {
    /// Returns the size of a row; that of a sparse row depends on its stored values.
    pub(super) fn row_bytes<F>(&self) -> Option<usize> {
        (!self.sparse).then(|| size_of::<F>() * (self.dim + 1) + WORD)
    }

    /// Appends example `i` of a block of this shape.
    pub(super) fn append<F: Stored>(&self, block: &Block<'_, F>, i: usize, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        let is_valid = block.valid.is_none_or(|valid| valid[i]);
        let target = [if is_valid { block.targets[i] } else { F::narrow(f64::NAN) }];
        match block.rows {
            Rows::Dense { values, dim } => {
                F::append_le(&target, bytes);
                F::append_le(&values[i * dim..(i + 1) * dim], bytes);
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                let place = offsets[i]..offsets[i + 1];
                bytes.extend_from_slice(&(place.len() as u32).to_le_bytes());
                F::append_le(&target, bytes);
                F::append_le(&values[place.clone()], bytes);
                bytes.extend(indices[place].iter().flat_map(|index| index.to_le_bytes()));
            }
        }
        let checksum = crc32fast::hash(&bytes[start..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Returns the size of the row at the start of `bytes`; `None` if they are too few for one.
    pub(super) fn size_of_first<F>(&self, bytes: &[u8]) -> Option<usize> {
        let size = match self.row_bytes::<F>() {
            Some(size) => size,
            None => {
                let stored = u32::from_le_bytes(*bytes.first_chunk::<WORD>()?) as usize;
                stored.checked_mul(size_of::<F>() + WORD)?.checked_add(WORD + size_of::<F>() + WORD)?
            }
        };
        (size <= bytes.len()).then_some(size)
    }

    /// Appends the row of these bytes to a buffer.
    ///
    /// # Errors
    /// Bytes that are not those of one row as it was written; exhausted memory.
    pub(super) fn read<F: Stored>(&self, row: &[u8], rows: &mut BlockBuffer<F>) -> Result<(), SourceError> {
        let (content, checksum) = row.split_last_chunk::<WORD>().ok_or_else(damaged)?;
        if crc32fast::hash(content).to_le_bytes() != *checksum {
            return Err(damaged());
        }
        let numbers = if self.sparse { content.get(WORD..).ok_or_else(damaged)? } else { content };
        let (target, numbers) = numbers.split_at_checked(size_of::<F>()).ok_or_else(damaged)?;
        let target = F::from_le(target).ok_or_else(damaged)?;
        let of_value = size_of::<F>() + if self.sparse { WORD } else { 0 };
        let stored = numbers.len() / of_value;
        if numbers.len() % of_value != 0 || !(self.sparse || stored == self.dim) {
            return Err(damaged());
        }
        let (values, indices) = numbers.split_at(stored * size_of::<F>());
        let is_valid = !target.widen().is_nan();
        let target = if is_valid { target } else { F::default() };
        Ok(rows.push_row(self.sparse, stored, target, is_valid, |all_values, all_indices| {
            F::extend_le(all_values, values);
            all_indices.extend(indices.as_chunks::<WORD>().0.iter().map(|index| u32::from_le_bytes(*index)));
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Examples;

    fn examples(sparse: bool) -> Examples<f64> {
        let targets = vec![1.0, 0.0, -1.0];
        let examples = if sparse {
            Examples::sparse(vec![0, 2, 2, 3], vec![0, 4, 3], vec![0.5, -0.25, 0.125], targets, 5)
        } else {
            Examples::dense((0..15).map(|i| f64::from(i) / 16.0).collect(), targets, 5)
        };
        examples.unwrap().with_valid(vec![true, false, true]).unwrap()
    }

    #[test]
    fn rows_come_back_and_damage_is_found() {
        for sparse in [false, true] {
            let (layout, examples) = (Layout { dim: 5, sparse }, examples(sparse));
            let block = examples.block();
            let mut rows = BlockBuffer::<f64>::default();
            for i in 0..3 {
                let mut bytes = Vec::new();
                layout.append(&block, i, &mut bytes);
                assert_eq!(layout.size_of_first::<f64>(&bytes), Some(bytes.len()));
                assert_eq!(layout.size_of_first::<f64>(&bytes[..bytes.len() - 1]), None);
                layout.read(&bytes, &mut rows).unwrap();
                let before = rows.rows();
                for at in 0..bytes.len() {
                    let mut bad = bytes.clone();
                    bad[at] ^= 4;
                    assert!(layout.read(&bad, &mut rows).is_err(), "{at}");
                    assert!(layout.read(&bytes[..at], &mut rows).is_err());
                }
                assert_eq!(rows.rows(), before);
            }
            let read = rows.block(5);
            assert_eq!((read.targets, read.valid), (block.targets, block.valid));
            match (read.rows, block.rows) {
                (Rows::Dense { values, .. }, Rows::Dense { values: expected, .. }) => assert_eq!(values, expected),
                (
                    Rows::Sparse { offsets, indices, values, .. },
                    Rows::Sparse { offsets: o, indices: i, values: v, .. },
                ) => assert_eq!((offsets, indices, values), (o, i, v)),
                _ => panic!("another storage"),
            }
        }
    }
}
