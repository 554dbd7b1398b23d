//! A source that counts the records read from it.

use dp_data::{Block, Description, PassReceipt, PassRequest, RowSource, RowStream, SourceError};

/// A wrapper of a source that counts the records it returns: each evaluation of a gradient or loss reads one.
///
/// The number of reads of an adaptive algorithm may depend on the records. A reproduction may publish it; a private release
/// must not.
///
/// # Examples
/// ```
/// use dp_data::{Examples, RowSource};
/// use dp_optim::MemorySource;
/// use dp_reproduce::counted::Counted;
///
/// let rows = Examples::dense(vec![1.0, 2.0, 3.0], vec![1.0; 3], 1)?;
/// let mut source = MemorySource::new(rows, 1.0, 1.0);
/// let mut counted = Counted::new(&mut source);
/// counted.gather(&[0, 2])?;
/// counted.gather(&[1])?;
/// assert_eq!(counted.rows(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Counted<'s> {
    source: &'s mut dyn RowSource<f64>,
    rows: u64,
}

impl<'s> Counted<'s> {
    /// Wraps a source, counting from 0.
    pub fn new(source: &'s mut dyn RowSource<f64>) -> Self {
        Self { source, rows: 0 }
    }

    /// Returns the number of records read.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl RowSource<f64> for Counted<'_> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.source.describe()
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        let Self { source, rows } = self;
        Ok(Box::new(CountedStream { stream: source.open_pass(request)?, rows }))
    }

    fn finish(&mut self) -> Result<(), SourceError> {
        self.source.finish()
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, f64>, SourceError> {
        self.rows += positions.len() as u64;
        self.source.gather(positions)
    }
}

struct CountedStream<'s> {
    stream: Box<dyn RowStream<f64> + 's>,
    rows: &'s mut u64,
}

impl RowStream<f64> for CountedStream<'_> {
    fn next_block(&mut self) -> Result<Option<Block<'_, f64>>, SourceError> {
        let block = self.stream.next_block()?;
        *self.rows += block.as_ref().map_or(0, |block| block.len() as u64);
        Ok(block)
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        self.stream.receipt()
    }
}
