//! The engine's batches: passes of a row source, cut into consecutive batches.

use core::marker::PhantomData;
use core::ops::Range;
use std::sync::Arc;

use dp_data::{Block, BlockBuffer, Description, Order, PassRequest, RowSource, Rows, SourceError, Unexpanded};
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

/// The place of some consecutive examples within their batch: all of it, or a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Number of examples.
    pub examples: usize,
    /// True for the first examples of a batch.
    pub starts: bool,
    /// True for the last examples of a batch.
    pub ends: bool,
}

impl Piece {
    /// Returns the place of a whole batch.
    pub const fn whole(examples: usize) -> Self {
        Self { examples, starts: true, ends: true }
    }
}

/// The pieces in which a visitor takes a batch that is longer than a block of its source. The visitor's results must not depend on
/// where a batch was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pieces {
    /// No pieces: the batch is first copied into one block.
    #[default]
    Whole,
    /// Exactly this many examples, except for the last piece, whatever the source.
    Of(usize),
    /// Any multiple of this many examples, except for the last piece.
    MultiplesOf(usize),
}

impl Pieces {
    /// Returns the length of the next piece of a batch with `left` remaining examples, `available` of them in one block. A
    /// longer piece has to be copied together.
    pub(super) fn next(self, left: usize, available: usize) -> usize {
        match self {
            Self::Whole => left,
            Self::Of(size) => left.min(size.max(1)),
            Self::MultiplesOf(_) if left <= available => left,
            Self::MultiplesOf(size) => left.min((available / size.max(1)).max(1).saturating_mul(size.max(1))),
        }
    }

    /// Cuts a batch of `examples` examples into pieces; where there is a choice, into the longest ones of at most `near`
    /// examples. An empty batch is one piece.
    pub(super) fn of_batch(self, examples: usize, near: usize) -> impl Iterator<Item = (Range<usize>, Piece)> {
        let mut start = Some(0);
        core::iter::from_fn(move || {
            let from = start?;
            let length = self.next(examples - from, near.min(examples - from));
            let end = from + length;
            start = (end < examples).then_some(end);
            Some((from..end, Piece { examples: length, starts: from == 0, ends: end == examples }))
        })
    }
}

/// A visitor that processes the batches of a pass.
pub trait Visit<F, M: Model<F>> {
    /// Returns the pieces in which it takes long batches.
    fn pieces(&self) -> Pieces {
        Pieces::Whole
    }

    /// Processes the next batch, or the next piece of one.
    ///
    /// # Errors
    /// Any error ends the pass.
    fn batch(&mut self, batch: M::Batch<'_>, piece: Piece) -> Result<(), Error>;
}

/// A source that delivers the examples once per pass, in batches that a model `M` reads.
///
/// A table's rows, a ranker's query lists and a network's images implement this trait; the engine sees batches only. The calls
/// are resolved at compile time, so that a batch of one example costs no virtual call.
///
/// # Privacy
/// Neighbouring data sets must give the same batches but for the differing example: an example's position in a pass depends on its
/// index and public numbers, never on its own value or another's. Numbers of examples and features are public. An error
/// because of a record's value reveals it: no guarantee covers it.
pub trait Batches<F, M: Model<F>> {
    /// Returns the numbers of examples and of features; public, the same in every pass.
    ///
    /// # Errors
    /// Errors of the source.
    fn describe(&mut self) -> Result<Description, Error>;

    /// Delivers the examples of a pass to `visit`, in batches of exactly these sizes, except that the last one holds the
    /// remaining examples. A long batch may come in the [`Pieces`] that `visit` takes. Returns the number of examples, used or
    /// not.
    ///
    /// # Errors
    /// Errors of the source or of `visit`.
    fn pass<V: Visit<F, M>>(&mut self, pass: u32, sizes: &BatchSizes, visit: &mut V) -> Result<u64, Error>;

    /// Returns the examples in the order of every pass, if their features are [computed when they are read](Unexpanded).
    fn unexpanded(&mut self) -> Option<&dyn Unexpanded<F>> {
        None
    }

    /// Returns whether the examples come in the same order in every pass, as noise that is correlated over the steps requires.
    fn same_order_each_pass(&self) -> bool {
        false
    }
}

/// Batches of rows from a [`RowSource`].
///
/// A source's blocks have any length: a batch within one block is borrowed from it, and one that spans several comes in
/// [`Pieces`], which are borrowed or assembled in a small buffer. The run does not depend on the source's block lengths.
pub struct RowBatches<'s, F, S: ?Sized> {
    source: &'s mut S,
    order: Order,
    /// The source's description, once it has been asked.
    described: Option<Description>,
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

    fn unexpanded(&mut self) -> Option<&dyn Unexpanded<F>> {
        if self.order == Order::Declared { self.source.unexpanded() } else { None }
    }

    fn same_order_each_pass(&self) -> bool {
        match self.order {
            Order::Declared => true,
            Order::Keyed { fresh_each_pass, .. } => !fresh_each_pass,
        }
    }

    fn pass<V: Visit<F, M>>(&mut self, pass: u32, sizes: &BatchSizes, visit: &mut V) -> Result<u64, Error> {
        let pieces = visit.pieces();
        self.cut(pass, sizes, pieces, &mut Whole { visit, model: PhantomData::<M> })
    }
}

/// The processing of the batches of a pass, with one virtual call for each block.
trait Cut<F> {
    /// Processes a batch or a piece of one.
    fn piece(&mut self, rows: Block<'_, F>, piece: Piece) -> Result<(), Error>;

    /// Processes the batches that lie within the block from `start` on and are at most as long as a piece, the first of them
    /// with number `index`. Returns the position and the number after the last.
    fn within(
        &mut self,
        block: &Block<'_, F>,
        start: usize,
        index: usize,
        sizes: &BatchSizes,
        longest: usize,
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
    fn piece(&mut self, rows: Block<'_, F>, piece: Piece) -> Result<(), Error> {
        self.visit.batch(rows, piece)
    }

    fn within(
        &mut self,
        block: &Block<'_, F>,
        mut start: usize,
        mut index: usize,
        sizes: &BatchSizes,
        longest: usize,
    ) -> Result<(usize, usize), Error> {
        while let Some(size) = sizes.at(index)
            && size <= block.len() - start
            && size <= longest
        {
            self.visit.batch(block.slice(start..start + size), Piece::whole(size))?;
            start += size;
            index += 1;
        }
        Ok((start, index))
    }
}

impl<F: Copy + 'static, S: RowSource<F> + ?Sized> RowBatches<'_, F, S> {
    fn cut(&mut self, pass: u32, sizes: &BatchSizes, pieces: Pieces, cut: &mut dyn Cut<F>) -> Result<u64, Error> {
        let Self { source, order, described, carry, .. } = self;
        carry.clear();
        let described = match described {
            Some(described) => described,
            None => described.insert(source.describe()?),
        };
        let Description { n, dim, engine, .. } = *described;
        let longest = if let Pieces::Of(size) = pieces { size.max(1) } else { usize::MAX };
        let mut sparse = None;
        let mut stream = source.open_pass(&PassRequest { pass, order: *order })?;
        // `used` examples are in earlier batches. The current batch has number `index`, and `seen` of its examples were
        // processed.
        let (mut rows, mut used, mut seen, mut index) = (0u64, 0u64, 0usize, 0usize);
        while let Some(block) = stream.next_block()? {
            check_shape(&block, dim, &mut sparse, engine)?;
            rows += block.len() as u64;
            if rows > n {
                break;
            }
            let mut start = 0;
            while start < block.len() {
                if seen == 0 && carry.rows() == 0 {
                    let before = start;
                    (start, index) = cut.within(&block, start, index, sizes, longest)?;
                    used += (start - before) as u64;
                }
                let available = block.len() - start;
                // The last batch holds the remaining examples.
                let left_of_pass = usize::try_from(n - used).unwrap_or(usize::MAX);
                let Some(size) = sizes.at(index).map(|size| size.min(left_of_pass)).filter(|_| available > 0) else {
                    break;
                };
                let length = pieces.next(size - seen, if carry.rows() == 0 { available } else { 0 });
                let piece = Piece { examples: length, starts: seen == 0, ends: seen + length == size };
                if carry.rows() == 0 && length <= available {
                    cut.piece(block.slice(start..start + length), piece)?;
                    start += length;
                } else {
                    let more = available.min(length - carry.rows());
                    carry.push(&block.slice(start..start + more))?;
                    start += more;
                    if carry.rows() < length {
                        break;
                    }
                    cut.piece(carry.block(dim), piece)?;
                    carry.clear();
                }
                seen += length;
                if piece.ends {
                    used += size as u64;
                    (seen, index) = (0, index + 1);
                }
            }
        }
        // A source that miscounts must not pass for one that delivered every row.
        if rows <= n {
            expect_rows(stream.receipt()?.rows, rows)?;
        }
        expect_rows(n, rows)?;
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
