//! Training from a file that need not fit into memory: each pass reads and encodes it again.

use super::Input;
use super::csv::CsvOptions;
use super::records::RecordReader;
use crate::block::{Block, Rows};
use crate::encode::{Encoder, RowBuffer, Stored};
use crate::error::{DataError, DataErrorKind};
use crate::source::{Description, Order, PassReceipt, PassRequest, RowSource, RowStream, SourceError};

/// The kind of engine, for messages.
const ENGINE: &str = "file";
/// Number of values in a block, which fits into the second-level cache.
const BLOCK: usize = 16 * 1024;
/// Maximum number of rows of a block.
const MOST_ROWS: usize = 1024;

/// A source that reads a file again in each pass, in the file's order, with the memory of one block.
///
/// Its rows are bit for bit those of [`load`](super::load).
///
/// # Privacy
/// [`open`](Self::open) reads the whole file once, so that every invalid record is found before training starts; afterwards
/// nothing fails because of a record's value unless the file is changed. The number of records is taken to be public. Rows come
/// in [`Order::Declared`] only: the curator vouches that their order does not depend on their values.
///
/// # Examples
/// ```
/// use dp_data::read::{CsvOptions, FileSource, Input};
/// use dp_data::{Encoder, Encoding, Order, PassRequest, RowSource, Schema};
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100 }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
/// let open = || Ok(Input::from_bytes("toy.csv", b"age,y\n0,no\n100,yes\n".to_vec()));
/// let mut source = FileSource::<f64, _>::open(open, &encoder, CsvOptions::default())?;
/// assert_eq!(source.describe()?.n, 2);
/// let mut pass = source.open_pass(&PassRequest { pass: 0, order: Order::Declared })?;
/// assert_eq!(pass.next_block()?.map(|block| block.targets), Some(&[-1.0, 1.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileSource<'e, F, O> {
    open: O,
    encoder: &'e Encoder,
    options: CsvOptions,
    n: u64,
    block: RowBlock<F>,
}

impl<'e, F: Stored, O: FnMut() -> Result<Input, DataError>> FileSource<'e, F, O> {
    /// Reads the file that `open` opens once, to count and check its records. Each pass opens it again.
    ///
    /// # Errors
    /// As [`load`](super::load).
    pub fn open(mut open: O, encoder: &'e Encoder, options: CsvOptions) -> Result<Self, DataError> {
        let mut reader = RecordReader::new(open()?, encoder, &options, true)?;
        let mut n = 0;
        while reader.next_record()?.is_some() {
            n += 1;
        }
        if n == 0 {
            return Err(DataError::new(DataErrorKind::CsvNoRows, "the file holds no records").expected("at least one"));
        }
        Ok(Self { open, encoder, options, n, block: RowBlock::new(encoder) })
    }
}

impl<F: Stored, O: FnMut() -> Result<Input, DataError>> RowSource<F> for FileSource<'_, F, O> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(Description {
            n: self.n,
            dim: self.encoder.dim(),
            row_norm: self.encoder.row_bound(),
            target_bound: self.encoder.target_bound(),
            engine: ENGINE,
        })
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        if request.order != Order::Declared {
            let why = "it is read from its first row to its last; declare its order, or load it into memory";
            return Err(SourceError::Order { engine: ENGINE, why });
        }
        let input = (self.open)().map_err(|error| failed(&error))?;
        let reader = RecordReader::new(input, self.encoder, &self.options, true).map_err(|error| failed(&error))?;
        Ok(Box::new(FileStream { reader, block: &mut self.block, rows: 0 }))
    }
}

/// Keeps only the error's code: its message may quote a record.
fn failed(error: &DataError) -> SourceError {
    SourceError::Engine {
        engine: ENGINE,
        message: format!("{}: it could be read when it was opened, and not any more", error.code()),
    }
}

/// One pass.
struct FileStream<'s, F> {
    reader: RecordReader<'s>,
    block: &'s mut RowBlock<F>,
    rows: u64,
}

impl<F: Stored> RowStream<F> for FileStream<'_, F> {
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError> {
        self.block.clear();
        while !self.block.is_full() {
            match self.reader.next_record() {
                Ok(Some(record)) => self.block.push(record.row()),
                Ok(None) => break,
                Err(error) => return Err(failed(&error)),
            }
        }
        self.rows += self.block.targets.len() as u64;
        Ok((!self.block.targets.is_empty()).then(|| self.block.borrow()))
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.rows })
    }
}

/// The rows of a block, stored as [`load`](super::load) stores all rows.
struct RowBlock<F> {
    dim: usize,
    most_rows: usize,
    values: Vec<F>,
    targets: Vec<F>,
    valid: Option<Vec<bool>>,
    sparse: Option<Compressed>,
}

struct Compressed {
    offsets: Vec<usize>,
    indices: Vec<u32>,
}

impl<F: Stored> RowBlock<F> {
    fn new(encoder: &Encoder) -> Self {
        let dim = encoder.dim();
        Self {
            dim,
            most_rows: (BLOCK / dim.max(1)).clamp(1, MOST_ROWS),
            values: Vec::new(),
            targets: Vec::new(),
            valid: encoder.can_be_neutral().then(Vec::new),
            sparse: encoder.prefers_sparse().then(|| Compressed { offsets: vec![0], indices: Vec::new() }),
        }
    }

    fn clear(&mut self) {
        self.values.clear();
        self.targets.clear();
        if let Some(valid) = &mut self.valid {
            valid.clear();
        }
        if let Some(sparse) = &mut self.sparse {
            sparse.offsets.truncate(1);
            sparse.indices.clear();
        }
    }

    fn is_full(&self) -> bool {
        self.targets.len() >= self.most_rows
    }

    fn push(&mut self, row: &RowBuffer) {
        let target = row.target();
        // A record without a target is invalid, whatever its features.
        let (indices, values) = if target.is_some() { (row.indices(), row.values()) } else { (&[][..], &[][..]) };
        match &mut self.sparse {
            Some(sparse) => {
                sparse.indices.extend_from_slice(indices);
                self.values.extend(values.iter().map(|&value| F::narrow(value)));
                sparse.offsets.push(self.values.len());
            }
            None => {
                let start = self.values.len();
                self.values.resize(start + self.dim, F::default());
                let place = &mut self.values[start..];
                for (&index, &value) in indices.iter().zip(values) {
                    place[index as usize] = F::narrow(value);
                }
            }
        }
        self.targets.push(target.map_or_else(F::default, F::narrow));
        match (&mut self.valid, target) {
            (Some(valid), target) => valid.push(target.is_some()),
            (None, Some(_)) => {}
            (None, None) => {
                // Not expected for this encoder; marks are stored from here on.
                let mut valid = vec![true; self.targets.len() - 1];
                valid.push(false);
                self.valid = Some(valid);
            }
        }
    }

    fn borrow(&self) -> Block<'_, F> {
        let rows = match &self.sparse {
            None => Rows::Dense { values: &self.values, dim: self.dim },
            Some(sparse) => {
                Rows::Sparse { offsets: &sparse.offsets, indices: &sparse.indices, values: &self.values, dim: self.dim }
            }
        };
        Block { rows, targets: &self.targets, valid: self.valid.as_deref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Encoding;
    use crate::read::load;
    use crate::schema::Schema;

    const SCHEMA: &str = "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
        columns.age = { type = 'numeric', min = 0, max = 100, on_missing = 'neutral' }\n\
        columns.town = { type = 'categorical', categories = ['a', 'b', 'c'] }";

    fn text(rows: usize) -> Vec<u8> {
        let mut text = String::from("age,town,y\n");
        for i in 0..rows {
            let age = if i % 17 == 3 { String::new() } else { (i % 101).to_string() };
            text.push_str(&format!("{age},{},{}\n", ["a", "b", "c"][i % 3], ["yes", "no"][i % 2]));
        }
        text.into_bytes()
    }

    fn encoder(columns: &str) -> Encoder {
        let schema = Schema::parse("s.toml", &format!("{SCHEMA}{columns}")).unwrap();
        Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap()
    }

    /// Returns values in dense form, targets and marks of a block.
    fn flat(block: &Block<'_, f64>) -> (Vec<f64>, Vec<f64>, Vec<bool>) {
        let mut values = vec![0.0; block.len() * block.dim()];
        match block.rows {
            Rows::Dense { values: dense, .. } => values.copy_from_slice(dense),
            Rows::Sparse { offsets, indices, values: stored, dim } => {
                for i in 0..block.len() {
                    for at in offsets[i]..offsets[i + 1] {
                        values[i * dim + indices[at] as usize] = stored[at];
                    }
                }
            }
        }
        let valid = block.valid.map_or_else(|| vec![true; block.len()], <[bool]>::to_vec);
        (values, block.targets.to_vec(), valid)
    }

    #[test]
    fn each_pass_delivers_what_loading_would() {
        let many: Vec<String> = (0..40).map(|i| format!("'t{i}'")).collect();
        let wide = format!("\ncolumns.y2 = {{ type = 'categorical', categories = [{}] }}", many.join(","));
        for (columns, sparse) in [("", false), (wide.as_str(), true)] {
            let encoder = encoder(columns);
            assert_eq!(encoder.prefers_sparse(), sparse);
            let mut bytes = text(5000);
            if sparse {
                let lines = String::from_utf8(bytes).unwrap();
                let more = lines.lines().enumerate();
                let line = |(i, line): (usize, &str)| {
                    if i == 0 { format!("{line},y2\n") } else { format!("{line},t{}\n", i % 40) }
                };
                bytes = more.map(line).collect::<String>().into_bytes();
            }
            let open = || Ok(Input::from_bytes("a.csv", bytes.clone()));
            let loaded = load::<f64>(open().unwrap(), &encoder, &CsvOptions::default()).unwrap().examples;
            let expected = flat(&loaded.block());
            assert!(expected.2.iter().any(|valid| !valid));
            let mut source = FileSource::<f64, _>::open(open, &encoder, CsvOptions::default()).unwrap();
            let description = source.describe().unwrap();
            assert_eq!((description.n, description.dim), (5000, encoder.dim()));
            for pass in 0..2 {
                let mut stream = source.open_pass(&PassRequest { pass, order: Order::Declared }).unwrap();
                let mut found = (Vec::new(), Vec::new(), Vec::new());
                let mut blocks = 0;
                while let Some(block) = stream.next_block().unwrap() {
                    assert_eq!(matches!(block.rows, Rows::Sparse { .. }), sparse);
                    let (values, targets, valid) = flat(&block);
                    found.0.extend(values);
                    found.1.extend(targets);
                    found.2.extend(valid);
                    blocks += 1;
                }
                assert!(blocks > 1 && found == expected);
                assert_eq!(stream.receipt().unwrap().rows, 5000);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_found_before_training_and_no_record_is_quoted_after() {
        let encoder = encoder("");
        let good = text(10);
        let bad = b"age,town,y\n5,a,yes\n5,a,secret\n".to_vec();
        let open = || Ok(Input::from_bytes("a.csv", bad.clone()));
        assert!(FileSource::<f64, _>::open(open, &encoder, CsvOptions::default()).is_err());
        let empty = || Ok(Input::from_bytes("a.csv", b"age,town,y\n".to_vec()));
        let error = FileSource::<f64, _>::open(empty, &encoder, CsvOptions::default()).err().unwrap();
        assert_eq!(error.code(), "csv.no_rows");
        // A file that is changed after it was opened.
        let mut opened = 0;
        let open = || {
            opened += 1;
            Ok(Input::from_bytes("a.csv", if opened > 1 { bad.clone() } else { good.clone() }))
        };
        let mut source = FileSource::<f64, _>::open(open, &encoder, CsvOptions::default()).unwrap();
        let mut stream = source.open_pass(&PassRequest { pass: 0, order: Order::Declared }).unwrap();
        let error = stream.next_block().err().unwrap().to_string();
        assert!(error.contains("label.") && !error.contains("secret"), "{error}");
        drop(stream);
        let keyed = Order::Keyed { key: [0; 32], fresh_each_pass: false };
        let refused = source.open_pass(&PassRequest { pass: 0, order: keyed }).err().unwrap();
        assert!(matches!(refused, SourceError::Order { .. }));
    }
}
