//! The interface between an optimiser and a source of rows: memory, a file, a database.
//!
//! A source streams one pass at a time, in blocks, in an order that depends on a key and on the records' identities but never on
//! their values. In memory a pass is a single borrowed block; a larger-than-memory source refills one buffer, as each of several
//! readers of a source in memory does in a random order. There is one virtual call per block, none per example.

mod alternatives;

pub use alternatives::Alternatives;

use core::ops::Range;

use crate::block::{Block, Rows};
use crate::memory::OutOfMemory;
use crate::selection::Selection;
use crate::sums::SumSource;

/// A source's description of itself before the first pass; all of it is public.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Number of records, valid or not; the same in every pass.
    pub n: u64,
    /// Number of features per record.
    pub dim: usize,
    /// Bound on the L2 norm of every row. The source enforces it for all records: every sensitivity rests on it.
    pub row_norm: f64,
    /// Bound on the size of every target, enforced likewise.
    pub target_bound: f64,
    /// The kind of engine, for messages: `memory`, `sqlite`, ...
    pub engine: &'static str,
}

/// The order of a pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A pseudo-random permutation of the record identities under a secret key.
    Keyed {
        /// The key, from a cryptographic generator.
        key: [u8; 32],
        /// True if each pass has its own permutation.
        fresh_each_pass: bool,
    },
    /// The order in which the source stores its rows; the caller vouches that it does not depend on the records' values.
    Declared,
}

impl Order {
    /// Returns whether each pass has its own order.
    pub const fn is_fresh(self) -> bool {
        matches!(self, Self::Keyed { fresh_each_pass: true, .. })
    }
}

impl core::fmt::Debug for Order {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Keyed { fresh_each_pass, .. } => {
                f.debug_struct("Keyed").field("fresh_each_pass", fresh_each_pass).finish_non_exhaustive()
            }
            Self::Declared => f.write_str("Declared"),
        }
    }
}

/// A request for a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassRequest {
    /// Number of the pass, from 0.
    pub pass: u32,
    /// Its order.
    pub order: Order,
}

/// The report of a finished pass; the trainer checks it before any noise is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassReceipt {
    /// Number of records delivered, valid or not. Must equal [`Description::n`].
    pub rows: u64,
}

/// The reason for which a source could not deliver. Messages contain names, never values of records.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The number of records differs from the description.
    #[error("the number of rows changed: {expected} described, {found} read")]
    CountChanged {
        /// Number of rows described.
        expected: u64,
        /// Number of rows read.
        found: u64,
    },
    /// A block's shape differs from the source's description, or the block contradicts itself or earlier blocks.
    #[error("{engine} delivered a block whose {what}")]
    Shape {
        /// The engine.
        engine: &'static str,
        /// The error in the block.
        what: &'static str,
    },
    /// The source cannot give rows in this order.
    #[error("{engine} cannot deliver rows in the requested order: {why}")]
    Order {
        /// The engine.
        engine: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// Single records were requested, and the engine streams passes only.
    #[error("{engine} cannot hand out single rows; an algorithm that draws its batches needs a source that can")]
    PassesOnly {
        /// The engine.
        engine: &'static str,
    },
    /// Rows were requested of an engine that keeps them and answers with sums.
    #[error(
        "the rows stay where they are ({engine}): only an algorithm that adds noise to each sum over all records runs on sums \
         alone"
    )]
    SumsOnly {
        /// The engine.
        engine: &'static str,
    },
    /// Memory for the rows in the requested order, or for those of a batch, is exhausted.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The engine failed.
    #[error("{engine} failed: {message}")]
    Engine {
        /// The engine.
        engine: &'static str,
        /// The engine's message; no record's value.
        message: String,
    },
}

/// One of the [readers](RowSource::readers) of a source.
pub type Reader<'s, F> = Box<dyn RowSource<F> + Send + 's>;

/// A source of rows: it streams its records once per pass, and may gather single ones for algorithms that sample.
pub trait RowSource<F> {
    /// Returns size and shape, which are the same for the whole training.
    ///
    /// # Errors
    /// The engine could not determine them.
    fn describe(&mut self) -> Result<Description, SourceError>;

    /// Starts a pass.
    ///
    /// # Errors
    /// The engine failed or cannot honour the order.
    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError>;

    /// Returns the records at `positions`, in this order, as one block; a position may occur more than once, and there may be
    /// none at all. Position `i` is the record that a pass in [`Order::Declared`] delivers as number `i`.
    ///
    /// # Errors
    /// A position that is not below [`Description::n`] ([`SourceError::Shape`]), a source that streams passes only
    /// ([`SourceError::PassesOnly`]), or a failure of the engine.
    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        let _ = positions;
        Err(SourceError::PassesOnly { engine: self.describe()?.engine })
    }

    /// Returns the records at `positions` as [`gather`](Self::gather) does, but where they are in memory; `None` if the source
    /// has no rows that can stay where they are.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    fn select<'a>(&'a mut self, positions: &'a [u32]) -> Result<Option<Selection<'a, F>>, SourceError> {
        let _ = positions;
        Ok(None)
    }

    /// Returns the same records in another encoding, by its number from 0; `None` if the source has no such encoding. Position `i`
    /// is the same record in all of them, and a record that is null is null in all. Each row depends on its own record alone.
    fn alternative(&mut self, number: usize) -> Option<&mut dyn RowSource<F>> {
        let _ = number;
        None
    }

    /// Returns the records, in [`Order::Declared`], if their features are computed when they are read; `None` if they are stored.
    /// Passes and single rows deliver the same features.
    fn unexpanded(&mut self) -> Option<&dyn Unexpanded<F>> {
        None
    }

    /// Returns up to `number` readers, for as many threads; `None` if one thread at a time can read.
    ///
    /// A reader describes, delivers, selects and offers [alternatives](Self::alternative) as this source does, and the order of its
    /// passes does not affect the others. [`finish`](Self::finish) is called on this source alone.
    ///
    /// # Errors
    /// [`SourceError::Memory`].
    fn readers(&mut self, number: usize) -> Result<Option<Vec<Reader<'_, F>>>, SourceError> {
        let _ = number;
        Ok(None)
    }

    /// Returns the source of sums in place of rows, if the rows stay where they are. Passes and single rows are then refused.
    fn sums(&mut self) -> Option<&mut dyn SumSource> {
        None
    }

    /// Ends the snapshot from which all passes read.
    ///
    /// # Errors
    /// The engine failed.
    fn finish(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Records whose features are computed when they are read, in a buffer of the reader.
///
/// # Privacy
/// The features are within the bounds that the source [describes](RowSource::describe).
pub trait Unexpanded<F>: Sync {
    /// Returns the number of features per record.
    fn dim(&self) -> usize;

    /// Returns one target per record.
    fn targets(&self) -> &[F];

    /// Returns the [marks](Block::valid) of the records.
    fn valid(&self) -> Option<&[bool]>;

    /// Replaces the contents of `features` by those of the records of a range: [`dim`](Self::dim) numbers for each record.
    ///
    /// # Panics
    /// If `range` leaves `0..len`.
    fn expand(&self, range: Range<usize>, features: &mut Vec<F>);

    /// Returns the number of records.
    fn len(&self) -> usize {
        self.targets().len()
    }

    /// Returns whether there are no records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the records of a range, with their features in `features`.
    ///
    /// # Panics
    /// As [`expand`](Self::expand).
    fn block<'a>(&'a self, range: Range<usize>, features: &'a mut Vec<F>) -> Block<'a, F> {
        self.expand(range.clone(), features);
        Block {
            rows: Rows::Dense { values: features, dim: self.dim() },
            targets: &self.targets()[range.clone()],
            valid: self.valid().map(|valid| &valid[range]),
        }
    }
}

/// One pass: lends block after block, reusing its buffer.
pub trait RowStream<F> {
    /// Returns the next block, or `None` at the end of the pass. Blocks have any positive length.
    ///
    /// # Errors
    /// The engine failed.
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError>;

    /// Returns the receipt of the pass.
    ///
    /// # Errors
    /// The engine failed.
    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError>;
}
