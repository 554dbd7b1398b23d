//! Where the engine's batches come from: passes of a row source, cut into consecutive batches.

use core::marker::PhantomData;

use dp_data::{Block, Description, Order, PassRequest, PassSource, Rows, SourceError};
use dp_losses::Model;

use super::expect_rows;
use crate::error::Error;

/// What is done with each batch of a pass.
pub trait Visit<F, M: Model<F>> {
    /// Takes the next batch, of `examples` examples.
    ///
    /// # Errors
    /// Ends the pass.
    fn batch(&mut self, batch: M::Batch<'_>, examples: usize) -> Result<(), Error>;
}

/// Something that can hand out the examples once per pass, in batches that a model `M` reads.
///
/// A table's rows, a ranker's query lists and a network's images come through here; the engine sees batches only. The
/// calls are resolved at compile time, so that a batch of one example costs no virtual call.
pub trait Batches<F, M: Model<F>> {
    /// Number of examples and of features; public, the same in every pass.
    ///
    /// # Errors
    /// The source could not say.
    fn describe(&mut self) -> Result<Description, Error>;

    /// Hands all examples of a pass to `visit`, in batches of exactly `batch_size`, the last one of what is left.
    /// Returns how many examples there were.
    ///
    /// # Errors
    /// The source failed, or `visit` did.
    fn pass<V: Visit<F, M>>(&mut self, pass: u32, batch_size: usize, visit: &mut V) -> Result<u64, Error>;
}

/// Batches of rows from a [`PassSource`].
///
/// A source's blocks have any length: a batch that lies within a block is borrowed from it, one that straddles blocks is
/// put together in a small buffer. The batches, and with them the run, do not depend on how a source cuts its blocks.
pub struct RowBatches<'s, F, S: ?Sized> {
    source: &'s mut S,
    order: Order,
    /// Features of a row and the engine's name, once the source has been asked.
    described: Option<(usize, &'static str)>,
    carry: Carry<F>,
    float: PhantomData<F>,
}

impl<'s, F: Copy, S: PassSource<F> + ?Sized> RowBatches<'s, F, S> {
    /// Batches of `source`, read in `order`.
    pub fn new(source: &'s mut S, order: Order) -> Self {
        Self { source, order, described: None, carry: Carry::default(), float: PhantomData }
    }
}

impl<F, M, S> Batches<F, M> for RowBatches<'_, F, S>
where
    F: Copy + 'static,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    S: PassSource<F> + ?Sized,
{
    fn describe(&mut self) -> Result<Description, Error> {
        Ok(self.source.describe()?)
    }

    fn pass<V: Visit<F, M>>(&mut self, pass: u32, batch_size: usize, visit: &mut V) -> Result<u64, Error> {
        let batch_size = batch_size.max(1);
        let Self { source, order, described, carry, .. } = self;
        carry.clear();
        let (dim, engine) = match *described {
            Some(described) => described,
            None => {
                let description = source.describe()?;
                *described.insert((description.dim, description.engine))
            }
        };
        let mut sparse = None;
        let mut stream = source.open_pass(&PassRequest { pass, order: *order })?;
        let mut rows = 0;
        while let Some(block) = stream.next_block()? {
            check_shape(&block, dim, &mut sparse, engine)?;
            rows += block.len() as u64;
            let mut start = 0;
            if carry.rows() > 0 {
                start = block.len().min(batch_size - carry.rows());
                carry.push(&block.slice(0..start));
                if carry.rows() == batch_size {
                    visit.batch(carry.block(dim), batch_size)?;
                    carry.clear();
                }
            }
            while block.len() - start >= batch_size {
                visit.batch(block.slice(start..start + batch_size), batch_size)?;
                start += batch_size;
            }
            if start < block.len() {
                carry.push(&block.slice(start..block.len()));
            }
        }
        let left = carry.rows();
        if left > 0 {
            visit.batch(carry.block(dim), left)?;
        }
        // A source that miscounts must not pass for one that delivered everything.
        expect_rows(stream.receipt()?.rows, rows)?;
        Ok(rows)
    }
}

/// Refuses a block before a model sees it: another width than described, lengths that contradict one another, or rows
/// stored otherwise than in the blocks before, which could not be put together in one batch. About shapes only: never
/// about a value.
fn check_shape<F>(
    block: &Block<'_, F>,
    dim: usize,
    sparse: &mut Option<bool>,
    engine: &'static str,
) -> Result<(), SourceError> {
    let stored_sparse = matches!(block.rows, Rows::Sparse { .. });
    let whole = match block.rows {
        Rows::Dense { values, dim } => values.len() == block.targets.len().saturating_mul(dim),
        Rows::Sparse { offsets, indices, values, .. } => {
            let within = offsets.last().is_some_and(|&end| end <= values.len() && end <= indices.len());
            offsets.len() == block.targets.len() + 1 && within && offsets.is_sorted()
        }
    };
    let what = if block.dim() != dim {
        "rows do not have the described number of features"
    } else if !whole || block.valid.is_some_and(|valid| valid.len() != block.targets.len()) {
        "rows, targets and marks differ in number"
    } else if *sparse.get_or_insert(stored_sparse) != stored_sparse {
        "rows are stored otherwise than those before"
    } else {
        return Ok(());
    };
    Err(SourceError::Shape { engine, what })
}

/// The rows of a batch that is not complete yet.
struct Carry<F> {
    sparse: bool,
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<F>,
    targets: Vec<F>,
    valid: Vec<bool>,
    any_marked: bool,
}

impl<F> Default for Carry<F> {
    fn default() -> Self {
        Self {
            sparse: false,
            offsets: Vec::new(),
            indices: Vec::new(),
            values: Vec::new(),
            targets: Vec::new(),
            valid: Vec::new(),
            any_marked: false,
        }
    }
}

impl<F: Copy> Carry<F> {
    fn rows(&self) -> usize {
        self.targets.len()
    }

    fn clear(&mut self) {
        self.offsets.clear();
        self.indices.clear();
        self.values.clear();
        self.targets.clear();
        self.valid.clear();
        self.any_marked = false;
    }

    fn push(&mut self, block: &Block<'_, F>) {
        match block.rows {
            Rows::Dense { values, .. } => {
                self.sparse = false;
                self.values.extend_from_slice(values);
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                self.sparse = true;
                if self.offsets.is_empty() {
                    self.offsets.push(0);
                }
                let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return };
                let shift = self.values.len();
                self.offsets.extend(offsets[1..].iter().map(|&end| end - first + shift));
                self.indices.extend_from_slice(&indices[first..last]);
                self.values.extend_from_slice(&values[first..last]);
            }
        }
        self.targets.extend_from_slice(block.targets);
        match block.valid {
            Some(valid) => {
                self.any_marked = true;
                self.valid.extend_from_slice(valid);
            }
            None => self.valid.resize(self.targets.len(), true),
        }
    }

    fn block(&self, dim: usize) -> Block<'_, F> {
        let rows = if self.sparse {
            Rows::Sparse { offsets: &self.offsets, indices: &self.indices, values: &self.values, dim }
        } else {
            Rows::Dense { values: &self.values, dim }
        };
        Block { rows, targets: &self.targets, valid: self.any_marked.then_some(&self.valid[..]) }
    }
}
