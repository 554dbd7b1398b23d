//! Rows in a file on disk, read in blocks, to measure the cost of a table larger than memory.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use dp_data::{Block, Description, Examples, Order, PassReceipt, PassRequest, RowSource, RowStream, Rows, SourceError};

use crate::error::Error;

const ENGINE: &str = "disk";

/// Number of rows in a block.
const BLOCK: usize = 1024;

/// Examples in a temporary file; every pass reads them in the given order.
///
/// The file models a table that was shuffled once, as in databases. A request for a random order under a key fails unless it
/// is the key of that shuffle.
pub struct DiskRows {
    file: File,
    n: usize,
    dim: usize,
    shuffled_by: [u8; 32],
    bytes: Vec<u8>,
    rows: Vec<f64>,
    targets: Vec<f64>,
}

impl DiskRows {
    /// Writes the examples, which the caller has shuffled under `shuffled_by`. Rows must have norm at most 1.
    ///
    /// # Errors
    /// A temporary file that cannot be written, or rows that are not stored densely.
    pub fn new(examples: &Examples<f64>, shuffled_by: [u8; 32]) -> Result<Self, Error> {
        let path = std::env::temp_dir();
        let failed = Error::file(&path);
        let Rows::Dense { values, dim } = examples.block().rows else {
            return Err(Error::Data { file: ENGINE.to_owned(), what: "rows must be dense".to_owned() });
        };
        let write = || -> std::io::Result<File> {
            let mut writer = BufWriter::with_capacity(1 << 18, tempfile::tempfile()?);
            for (row, target) in values.chunks_exact(dim).zip(examples.targets()) {
                for value in row.iter().chain([target]) {
                    writer.write_all(&value.to_le_bytes())?;
                }
            }
            writer.into_inner().map_err(|error| error.into_error())
        };
        Ok(Self {
            file: write().map_err(failed)?,
            n: examples.len(),
            dim,
            shuffled_by,
            bytes: Vec::new(),
            rows: Vec::new(),
            targets: Vec::new(),
        })
    }

    fn forget(&mut self) {
        self.rows.clear();
        self.targets.clear();
    }

    /// Appends the rows in `self.bytes`.
    fn decode(&mut self) {
        for record in self.bytes.chunks_exact(8 * (self.dim + 1)) {
            let mut numbers = record.chunks_exact(8).map(|bytes| {
                let mut number = [0; 8];
                number.copy_from_slice(bytes);
                f64::from_le_bytes(number)
            });
            self.rows.extend(numbers.by_ref().take(self.dim));
            self.targets.extend(numbers.take(1));
        }
    }

    fn block(&self) -> Block<'_, f64> {
        Block { rows: Rows::Dense { values: &self.rows, dim: self.dim }, targets: &self.targets, valid: None }
    }
}

fn engine(error: std::io::Error) -> SourceError {
    SourceError::Engine { engine: ENGINE, message: error.to_string() }
}

impl RowSource<f64> for DiskRows {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(Description { n: self.n as u64, dim: self.dim, row_norm: 1.0, target_bound: 1.0, engine: ENGINE })
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        match request.order {
            Order::Declared => {}
            Order::Keyed { key, fresh_each_pass: false } if key == self.shuffled_by => {}
            Order::Keyed { .. } => {
                return Err(SourceError::Order { engine: ENGINE, why: "the file was shuffled once" });
            }
        }
        self.file.seek(SeekFrom::Start(0)).map_err(engine)?;
        let reader = BufReader::with_capacity(1 << 18, self.file.try_clone().map_err(engine)?);
        Ok(Box::new(DiskPass { reader, left: self.n, delivered: 0, source: self }))
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, f64>, SourceError> {
        self.forget();
        let width = 8 * (self.dim + 1);
        self.bytes.resize(width, 0);
        for &position in positions {
            if position as usize >= self.n {
                return Err(SourceError::Shape { engine: ENGINE, what: "positions lie beyond its end" });
            }
            self.file.seek(SeekFrom::Start(u64::from(position) * width as u64)).map_err(engine)?;
            self.file.read_exact(&mut self.bytes).map_err(engine)?;
            self.decode();
        }
        Ok(self.block())
    }
}

struct DiskPass<'s> {
    reader: BufReader<File>,
    left: usize,
    delivered: u64,
    source: &'s mut DiskRows,
}

impl RowStream<f64> for DiskPass<'_> {
    fn next_block(&mut self) -> Result<Option<Block<'_, f64>>, SourceError> {
        let rows = self.left.min(BLOCK);
        if rows == 0 {
            return Ok(None);
        }
        self.source.forget();
        self.source.bytes.resize(8 * (self.source.dim + 1) * rows, 0);
        self.reader.read_exact(&mut self.source.bytes).map_err(engine)?;
        self.source.decode();
        self.left -= rows;
        self.delivered += rows as u64;
        Ok(Some(self.source.block()))
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.delivered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_written() {
        let n = 2 * BLOCK + 7;
        let values: Vec<f64> = (0..2 * n).map(|i| i as f64 / (4 * n) as f64).collect();
        let examples = Examples::dense(values.clone(), vec![1.0; n], 2).unwrap();
        let mut source = DiskRows::new(&examples, [1; 32]).unwrap();
        for order in [Order::Declared, Order::Keyed { key: [1; 32], fresh_each_pass: false }] {
            let mut stream = source.open_pass(&PassRequest { pass: 0, order }).unwrap();
            let mut read = Vec::new();
            while let Some(block) = stream.next_block().unwrap() {
                let Rows::Dense { values, .. } = block.rows else { unreachable!() };
                read.extend_from_slice(values);
            }
            assert_eq!(stream.receipt().unwrap().rows, n as u64);
            assert_eq!(read, values);
        }
        let other = Order::Keyed { key: [2; 32], fresh_each_pass: false };
        assert!(source.open_pass(&PassRequest { pass: 0, order: other }).is_err());
        let block = source.gather(&[5, 0, 5]).unwrap();
        let Rows::Dense { values: gathered, .. } = block.rows else { unreachable!() };
        assert_eq!(gathered, [&values[10..12], &values[0..2], &values[10..12]].concat());
        assert!(source.gather(&[n as u32]).is_err());
    }
}
