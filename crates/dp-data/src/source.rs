//! The boundary between an optimiser and wherever rows come from: memory, a file, a database.
//!
//! A source streams one pass at a time, in blocks, in an order that depends on a key and on the records' identities but
//! never on their values. In memory a pass is a single borrowed block; a larger-than-memory source refills one buffer.
//! There is one virtual call per block, none per example.

use crate::block::Block;
use crate::memory::OutOfMemory;

/// What a source says about itself before the first pass; all of it public.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Number of records, valid or not; the same in every pass.
    pub n: u64,
    /// Features per record.
    pub dim: usize,
    /// Bound on the L2 norm of every row that it hands out. The source enforces it, whatever the records are: every
    /// sensitivity rests on it.
    pub row_norm: f64,
    /// Bound on the size of every target that it hands out, enforced likewise.
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
        /// Whether each pass has its own permutation.
        fresh_each_pass: bool,
    },
    /// The order in which the source holds its rows, which the caller vouches does not depend on the records' values.
    Declared,
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

/// Which pass is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassRequest {
    /// Number of the pass, from 0.
    pub pass: u32,
    /// Its order.
    pub order: Order,
}

/// What a pass reports when it is over; the trainer checks it before any noise is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassReceipt {
    /// Records handed out, valid or not. Must equal [`Description::n`].
    pub rows: u64,
}

/// Why a source could not deliver. Messages carry names, never values of records.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The number of records differs from what was described.
    #[error("the number of rows changed: {expected} described, {found} read")]
    CountChanged {
        /// Rows described.
        expected: u64,
        /// Rows read.
        found: u64,
    },
    /// A block does not have the shape that the source described, or contradicts itself or the blocks before it.
    #[error("{engine} delivered a block whose {what}")]
    Shape {
        /// The engine.
        engine: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The source cannot give rows in this order.
    #[error("{engine} cannot deliver rows in the requested order: {why}")]
    Order {
        /// The engine.
        engine: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// Single records were asked for, and the engine streams passes only.
    #[error("{engine} cannot hand out single rows; an algorithm that draws its batches needs a source that can")]
    PassesOnly {
        /// The engine.
        engine: &'static str,
    },
    /// There is no memory for the rows in the order asked for, or for those of a batch.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The engine failed.
    #[error("{engine} failed: {message}")]
    Engine {
        /// The engine.
        engine: &'static str,
        /// What it said; no record's value.
        message: String,
    },
}

/// Where rows come from: it streams its records once per pass, and may gather single ones for algorithms that sample.
pub trait RowSource<F> {
    /// Size and shape. The same answer for the whole training.
    ///
    /// # Errors
    /// The engine could not say.
    fn describe(&mut self) -> Result<Description, SourceError>;

    /// Starts a pass.
    ///
    /// # Errors
    /// The engine failed or cannot honour the order.
    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError>;

    /// The records at `positions`, in this order, as one block; a position may occur more than once, and there may be
    /// none at all. Position `i` is the record that a pass in [`Order::Declared`] delivers as number `i`.
    ///
    /// # Errors
    /// A position that is not below [`Description::n`] ([`SourceError::Shape`]), a source that streams passes only
    /// ([`SourceError::PassesOnly`]), or the engine failed.
    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        let _ = positions;
        Err(SourceError::PassesOnly { engine: self.describe()?.engine })
    }

    /// Ends the snapshot that all passes read.
    ///
    /// # Errors
    /// The engine failed.
    fn finish(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}

/// One pass: lends block after block, reusing its buffer.
pub trait RowStream<F> {
    /// The next block, or `None` at the end of the pass. Blocks have any positive length.
    ///
    /// # Errors
    /// The engine failed.
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError>;

    /// What was delivered.
    ///
    /// # Errors
    /// The engine failed.
    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError>;
}
