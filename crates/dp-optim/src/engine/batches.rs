//! The engine's batches: passes of a row source, cut into consecutive batches.

use core::marker::PhantomData;

use std::sync::Arc;

use dp_data::{Block, BlockBuffer, Description, Order, PassRequest, RowSource, Rows, SourceError};
use dp_losses::Model;

use super::expect_rows;
use crate::error::Error;

/// The sizes of the batches of a pass; public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchSizes {
    /// All of this size, except that the last one holds the remaining examples.
    Equal(usize),
    /// These sizes in order; examples beyond their sum are delivered and not used.
    Listed(Arc<[usize]>),
}

impl BatchSizes {
    /// Returns the size of batch `index` (from 0) of a pass; `None` after the last.
    #[inline]
    pub fn at(&self, index: usize) -> Option<usize> {
        match self {
            Self::Equal(size) => Some((*size).max(1)),
            Self::Listed(sizes) => sizes.get(index).map(|&size| size.max(1)),
        }
    }

    /// Returns the size of the largest batch, used to allocate buffers.
    pub fn largest(&self) -> usize {
        match self {
            Self::Equal(size) => (*size).max(1),
            Self::Listed(sizes) => sizes.iter().copied().max().unwrap_or(1).max(1),
        }
    }
}

/// A visitor that processes the batches of a pass.
pub trait Visit<F, M: Model<F>> {
    /// Processes the next batch, of `examples` examples.
    ///
    /// # Errors
    /// Any error ends the pass.
    fn batch(&mut self, batch: M::Batch<'_>, examples: usize) -> Result<(), Error>;
}

/// A source that delivers the examples once per pass, in batches that a model `M` reads.
///
/// A table's rows, a ranker's query lists and a network's images implement this trait; the engine sees batches only. The calls
/// are resolved at compile time, so that a batch of one example costs no virtual call.
pub trait Batches<F, M: Model<F>> {
    /// Returns the numbers of examples and of features; public, the same in every pass.
    ///
    /// # Errors
    /// Errors of the source.
    fn describe(&mut self) -> Result<Description, Error>;

    /// Delivers the examples of a pass to `visit`, in batches of exactly these sizes, except that the last one holds the
    /// remaining examples. Returns the number of examples, used or not.
    ///
    /// # Errors
    /// Errors of the source or of `visit`.
    fn pass<V: Visit<F, M>>(&mut self, pass: u32, sizes: &BatchSizes, visit: &mut V) -> Result<u64, Error>;

    /// Returns whether the examples come in the same order in every pass, as noise that is correlated over the steps requires.
    fn same_order_each_pass(&self) -> bool {
        false
    }
}

/// Batches of rows from a [`RowSource`].
///
/// A source's blocks have any length: a batch within one block is borrowed from it, and one that spans several is assembled in
/// a small buffer. The batches, and with them the run, do not depend on the source's block lengths.
pub struct RowBatches<'s, F, S: ?Sized> {
    source: &'s mut S,
    order: Order,
    /// Number of features and the engine's name, once the source has been asked.
    described: Option<(usize, &'static str)>,
    carry: BlockBuffer<F>,
    float: PhantomData<F>,
}

impl<'s, F: Copy, S: RowSource<F> + ?Sized> RowBatches<'s, F, S> {
    /// Creates batches of `source`, read in `order`.
    pub fn new(source: &'s mut S, order: Order) -> Self {
        Self { source, order, described: None, carry: BlockBuffer::default(), float: PhantomData }
    }
}

impl<F, M, S> Batches<F, M> for RowBatches<'_, F, S>
where
    F: Copy + 'static,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    S: RowSource<F> + ?Sized,
{
    fn describe(&mut self) -> Result<Description, Error> {
        Ok(self.source.describe()?)
    }

    fn same_order_each_pass(&self) -> bool {
        match self.order {
            Order::Declared => true,
            Order::Keyed { fresh_each_pass, .. } => !fresh_each_pass,
        }
    }

    fn pass<V: Visit<F, M>>(&mut self, pass: u32, sizes: &BatchSizes, visit: &mut V) -> Result<u64, Error> {
        self.cut(pass, sizes, &mut Whole { visit, model: PhantomData::<M> })
    }
}

/// What a pass does with the rows between block boundaries, as one virtual call for each block.
trait Cut<F> {
    /// Processes a batch that was assembled from several blocks, or the remaining examples.
    fn carried(&mut self, batch: Block<'_, F>) -> Result<(), Error>;

    /// Processes the batches that lie within the block from `start` on, the first of them of number `index`. Returns the
    /// position and the number behind the last.
    fn within(
        &mut self,
        block: &Block<'_, F>,
        start: usize,
        index: usize,
        sizes: &BatchSizes,
    ) -> Result<(usize, usize), Error>;
}

struct Whole<'v, V, M> {
    visit: &'v mut V,
    model: PhantomData<M>,
}

impl<F, M, V> Cut<F> for Whole<'_, V, M>
where
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    V: Visit<F, M>,
{
    fn carried(&mut self, batch: Block<'_, F>) -> Result<(), Error> {
        let examples = batch.len();
        self.visit.batch(batch, examples)
    }

    fn within(
        &mut self,
        block: &Block<'_, F>,
        mut start: usize,
        mut index: usize,
        sizes: &BatchSizes,
    ) -> Result<(usize, usize), Error> {
        while let Some(size) = sizes.at(index)
            && size <= block.len() - start
        {
            self.visit.batch(block.slice(start..start + size), size)?;
            start += size;
            index += 1;
        }
        Ok((start, index))
    }
}

impl<F: Copy + 'static, S: RowSource<F> + ?Sized> RowBatches<'_, F, S> {
    fn cut(&mut self, pass: u32, sizes: &BatchSizes, cut: &mut dyn Cut<F>) -> Result<u64, Error> {
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
        let (mut rows, mut index) = (0, 0);
        while let Some(block) = stream.next_block()? {
            check_shape(&block, dim, &mut sparse, engine)?;
            rows += block.len() as u64;
            let mut start = 0;
            if carry.rows() > 0
                && !block.is_empty()
                && let Some(size) = sizes.at(index)
            {
                start = block.len().min(size - carry.rows());
                carry.push(&block.slice(0..start))?;
                if carry.rows() < size {
                    continue;
                }
                cut.carried(carry.block(dim))?;
                carry.clear();
                index += 1;
            }
            (start, index) = cut.within(&block, start, index, sizes)?;
            if start < block.len() && sizes.at(index).is_some() {
                carry.push(&block.slice(start..block.len()))?;
            }
        }
        if carry.rows() > 0 {
            cut.carried(carry.block(dim))?;
        }
        // A source that miscounts must not pass for one that delivered every row.
        expect_rows(stream.receipt()?.rows, rows)?;
        Ok(rows)
    }
}

/// Checks a block before a model reads it. Refuses a width other than described, contradictory lengths, and rows stored
/// otherwise than in earlier blocks, since these could not be combined in one batch. The check depends on shapes only, never
/// on a value.
pub(crate) fn check_shape<F>(
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
