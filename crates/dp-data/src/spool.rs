//! Rows in a private temporary file, for more of them than memory holds.

mod held;
mod layout;
mod row_file;
mod shuffle;
mod store;
#[cfg(test)]
pub(crate) mod tests;

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

pub use held::{Held, HeldCoordinates, Room};
use layout::Layout;
use row_file::{RowFile, Span};

use crate::block::{Block, Rows};
use crate::block_buffer::BlockBuffer;
use crate::encode::Stored;
use crate::error::{DataError, DataErrorKind};
use crate::examples::Examples;
use crate::keyed_order::KeyedOrder;
use crate::memory::{Bytes, OutOfMemory, collect};
use crate::selection::Selection;
use crate::source::{Description, Order, PassReceipt, PassRequest, RowSource, RowStream, SourceError};
use crate::workers::Workers;

/// The kind of engine, for messages.
const ENGINE: &str = "the spool";
/// Bytes that are read at a time.
const BLOCK_BYTES: u64 = 4 << 20;
/// Maximum number of rows of a block.
const MOST_ROWS: usize = 8192;
/// Larger blocks have a multiple of this number of rows, since gradients are summed in chunks of this size.
const CHUNK: usize = 1024;

/// Where a [`Spool`] puts its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolOptions {
    /// The folder.
    pub folder: PathBuf,
    /// True if the files are encrypted, under keys that never leave the process: for rows that were not on this disk before.
    pub encrypted: bool,
    /// The threads that read single rows; with more than one, passes are read ahead.
    pub workers: Workers,
}

impl Default for SpoolOptions {
    /// The folder that `TMPDIR` names, else `/var/tmp` where there is one, since `/tmp` is often kept in memory, else the
    /// temporary folder of the system; without encryption, on one thread.
    fn default() -> Self {
        let on_disk = Path::new("/var/tmp");
        let is_usual = cfg!(unix) && std::env::var_os("TMPDIR").is_none_or(|folder| folder.is_empty());
        let folder = if is_usual && on_disk.is_dir() { on_disk.to_owned() } else { std::env::temp_dir() };
        Self { folder, encrypted: false, workers: Workers::ONE }
    }
}

impl SpoolOptions {
    /// Checks that a file can be created in the folder; none is left.
    ///
    /// # Errors
    /// [`SpoolError::Folder`].
    pub fn check(&self) -> Result<(), SpoolError> {
        self.create(Layout { dim: 1, sparse: false }).map(drop)
    }

    fn create(&self, layout: Layout) -> Result<RowFile, SpoolError> {
        RowFile::create(&self.folder, self.encrypted, layout)
            .map_err(|error| SpoolError::Folder { folder: self.folder.clone(), error })
    }
}

/// The reason for which rows could not be spooled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// No file can be created in the folder.
    #[error("no temporary file can be created in `{}`: {error}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The file cannot be written: the disk is full.
    #[error("the temporary file of the rows in `{}` cannot be written{}: {error}", folder.display(), after(*written))]
    Write {
        /// The folder.
        folder: PathBuf,
        /// Number of bytes written; `None` for sparse rows, whose size depends on the records.
        written: Option<u64>,
        /// The error of the system.
        error: std::io::Error,
    },
    /// Rows of another width, or stored otherwise, than those before.
    #[error("rows of another shape than those before")]
    Shape,
}

fn after(written: Option<u64>) -> String {
    written.map_or_else(String::new, |written| format!(" after {}", Bytes(written)))
}

/// Rows that are written once to a temporary file, in their order of arrival.
///
/// # Privacy
/// Every row is clipped as [`Examples::enforce_bounds`] does before it is written, so that the [`Spool`]'s description holds.
///
/// # Examples
/// ```
/// use dp_data::spool::{SpoolOptions, SpoolWriter};
/// use dp_data::{Examples, Order, PassRequest, RowSource};
///
/// let mut writer = SpoolWriter::create(&SpoolOptions::default(), 2, false)?.with_bounds(1.0, 1.0);
/// writer.append(Examples::dense(vec![0.6, 0.8, 3.0, 4.0], vec![1.0, -1.0], 2)?)?;
/// let mut spool = writer.finish()?;
/// assert_eq!(spool.describe()?.n, 2);
/// assert_eq!(spool.gather(&[1])?.targets, &[-1.0]);
/// let order = Order::Keyed { key: [1; 32], fresh_each_pass: false };
/// let mut pass = spool.open_pass(&PassRequest { pass: 0, order })?;
/// assert_eq!(pass.next_block()?.map(|block| block.len()), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SpoolWriter<F> {
    options: SpoolOptions,
    layout: Layout,
    row_norm: f64,
    target_bound: f64,
    rows: RowFile,
    float: PhantomData<F>,
}

impl<F: Stored> SpoolWriter<F> {
    /// Creates the file, for rows of `dim` features, all dense or all sparse, without bounds.
    ///
    /// # Errors
    /// [`SpoolError::Folder`].
    pub fn create(options: &SpoolOptions, dim: usize, sparse: bool) -> Result<Self, SpoolError> {
        let layout = Layout { dim, sparse };
        let rows = options.create(layout)?;
        let (row_norm, target_bound) = (f64::INFINITY, f64::INFINITY);
        Ok(Self { options: options.clone(), layout, row_norm, target_bound, rows, float: PhantomData })
    }

    /// Sets the bounds on the L2 norm of every row and on the size of every target.
    #[must_use]
    pub fn with_bounds(self, row_norm: f64, target_bound: f64) -> Self {
        Self { row_norm, target_bound, ..self }
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows.rows()
    }

    /// Appends rows.
    ///
    /// # Errors
    /// [`SpoolError::Write`]; [`SpoolError::Shape`] for rows of another width or storage.
    pub fn append(&mut self, mut examples: Examples<F>) -> Result<(), SpoolError> {
        examples.enforce_bounds(self.row_norm, self.target_bound);
        let block = examples.block();
        let is_sparse = matches!(block.rows, Rows::Sparse { .. });
        if block.dim() != self.layout.dim || is_sparse != self.layout.sparse {
            return Err(SpoolError::Shape);
        }
        let Self { layout, rows, .. } = self;
        (0..block.len())
            .try_for_each(|i| rows.append(|bytes| layout.append(&block, i, bytes)))
            .map_err(|error| self.not_written(error))
    }

    fn not_written(&self, error: std::io::Error) -> SpoolError {
        let written = (!self.layout.sparse).then(|| self.rows.length());
        SpoolError::Write { folder: self.options.folder.clone(), written, error }
    }

    /// Returns the rows as a source.
    ///
    /// # Errors
    /// [`SpoolError::Write`].
    pub fn finish(mut self) -> Result<Spool<F>, SpoolError> {
        self.rows.flush().map_err(|error| self.not_written(error))?;
        let Self { options, layout, row_norm, target_bound, rows, .. } = self;
        let (block, sorted, buffers) = (BlockBuffer::default(), BlockBuffer::default(), Buffers::default());
        let rows = Arc::new(rows);
        Ok(Spool { options, layout, row_norm, target_bound, rows, arranged: None, block, sorted, buffers })
    }
}

/// Rows in a private temporary file: a source that needs the memory of a few blocks, whatever the number of rows.
///
/// The file has no name (or loses it at once), so that nothing is left of it even if the process is killed. Each row has a
/// checksum: a file that is damaged or too short gives an error, never fewer or other rows. Under the same key the rows come in
/// the order of those in memory ([`KeyedOrder`]): the first pass in an order writes them to a second file in this order, which
/// takes their size again.
pub struct Spool<F> {
    options: SpoolOptions,
    layout: Layout,
    row_norm: f64,
    target_bound: f64,
    /// The rows in their order of arrival.
    rows: Arc<RowFile>,
    /// The rows in the order of the last keyed pass, with the number of the pass if each has its own order.
    arranged: Option<(Order, Option<u32>, Arc<RowFile>)>,
    /// The rows that were read last.
    block: BlockBuffer<F>,
    /// The same in the order of the file, where another was asked for.
    sorted: BlockBuffer<F>,
    buffers: Buffers<F>,
}

impl<F: Stored> Spool<F> {
    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        self.rows.rows()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the rows at ascending positions into the block; several threads read parts of many.
    fn gather_ascending(&mut self, positions: &[u32]) -> Result<(), SourceError> {
        let Self { options, rows, block, buffers, .. } = self;
        let parts = options.workers.threads().min(positions.len() / LEAST_FOR_A_THREAD);
        if parts < 2 {
            return rows.gather(positions, &mut buffers.span, block);
        }
        let of_part = positions.len().div_ceil(parts);
        let read = |span: &mut Span, part: usize| {
            let mut block = BlockBuffer::default();
            let [start, end] = [part * of_part, (part + 1) * of_part].map(|at| at.min(positions.len()));
            rows.gather(&positions[start..end], span, &mut block)?;
            Ok::<_, SourceError>(block)
        };
        for part in options.workers.map(parts, Span::default, read) {
            block.push(&part?.block(self.layout.dim))?;
        }
        Ok(())
    }

    /// Returns the number of rows that are read at a time.
    fn rows_of_block(&self) -> u64 {
        let mean = (self.rows.length() / self.len().max(1)).max(1);
        let rows = usize::try_from(BLOCK_BYTES / mean).unwrap_or(usize::MAX).clamp(1, MOST_ROWS);
        // A multiple of the chunks that gradients are summed in.
        (if rows >= CHUNK { rows / CHUNK * CHUNK } else { rows }) as u64
    }
}

impl<F: Stored> RowSource<F> for Spool<F> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        let Self { layout, row_norm, target_bound, .. } = *self;
        Ok(Description { n: self.len(), dim: layout.dim, row_norm, target_bound, engine: ENGINE })
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        let fresh = request.order.is_fresh().then_some(request.pass);
        let n = u32::try_from(self.len())
            .map_err(|_| SourceError::Order { engine: ENGINE, why: "more than 2^32 - 1 rows" })?;
        if let Some(order) = KeyedOrder::of_pass(n, request)
            && !self.arranged.as_ref().is_some_and(|(order, pass, _)| (*order, *pass) == (request.order, fresh))
        {
            // The space of the last order is needed first.
            self.arranged = None;
            let SpoolOptions { folder, encrypted, .. } = &self.options;
            let rows = shuffle::shuffled::<F>(&self.rows, &order, self.layout, (folder, *encrypted))?;
            self.arranged = Some((request.order, fresh, Arc::new(rows)));
        }
        let (n, dim, of_block) = (self.len(), self.layout.dim, self.rows_of_block());
        let rows = match (&self.arranged, request.order) {
            (Some((.., rows)), Order::Keyed { .. }) => rows,
            _ => &self.rows,
        };
        // A pass of one block has nothing to read ahead.
        let is_ahead = self.options.workers != Workers::ONE && n > of_block;
        let ahead = if is_ahead { Ahead::start(rows, n, of_block, &mut self.buffers) } else { None };
        let (block, buffers) = (&mut self.block, &mut self.buffers);
        Ok(Box::new(SpoolPass { rows, block, buffers, at: 0, n, dim, of_block, ahead }))
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        if positions.iter().any(|position| u64::from(*position) >= self.len()) {
            return Err(SourceError::Shape { engine: ENGINE, what: "positions lie beyond its last row" });
        }
        self.block.clear();
        if positions.is_sorted() {
            self.gather_ascending(positions)?;
            return Ok(self.block.block(self.layout.dim));
        }
        let listed = || collect(0..positions.len() as u32, POSITIONS).map_err(OutOfMemory::without_sizes);
        let (mut order, mut places) = (listed()?, listed()?);
        order.sort_unstable_by_key(|&at| positions[at as usize]);
        let ascending = collect(order.iter().map(|&at| positions[at as usize]), POSITIONS);
        self.gather_ascending(&ascending.map_err(OutOfMemory::without_sizes)?)?;
        (0..).zip(&order).for_each(|(place, &at)| places[at as usize] = place);
        let Self { layout, block, sorted, .. } = self;
        core::mem::swap(block, sorted);
        block.copy(&Selection::of_block(sorted.block(layout.dim), &places), |_, _| ())?;
        Ok(block.block(layout.dim))
    }

    fn finish(&mut self) -> Result<(), SourceError> {
        self.arranged = None;
        Ok(())
    }
}

/// Number of single rows that are worth a thread.
const LEAST_FOR_A_THREAD: usize = 256;

/// The name of the lists in error messages.
const POSITIONS: &str = "the positions of a batch";

/// Buffers that passes hand on to the next. If each thread allocated its own, the allocator would keep memory for every thread.
struct Buffers<F> {
    span: Span,
    blocks: Vec<BlockBuffer<F>>,
}

impl<F> Default for Buffers<F> {
    fn default() -> Self {
        Self { span: Span::default(), blocks: Vec::new() }
    }
}

/// One pass over a file.
struct SpoolPass<'s, F: Stored> {
    rows: &'s RowFile,
    block: &'s mut BlockBuffer<F>,
    buffers: &'s mut Buffers<F>,
    at: u64,
    n: u64,
    dim: usize,
    of_block: u64,
    /// The thread that reads ahead.
    ahead: Option<Ahead<F>>,
}

impl<F: Stored> RowStream<F> for SpoolPass<'_, F> {
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError> {
        let end = self.n.min(self.at + self.of_block);
        if self.at == end {
            return Ok(None);
        }
        match &self.ahead {
            Some(ahead) => ahead.next(self.block)?,
            None => {
                self.block.clear();
                self.rows.read_rows(self.at..end, &mut self.buffers.span, self.block)?;
            }
        }
        self.at = end;
        Ok(Some(self.block.block(self.dim)))
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.at })
    }
}

impl<F: Stored> Drop for SpoolPass<'_, F> {
    fn drop(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            *self.buffers = ahead.end();
        }
    }
}

/// A thread that reads the blocks of a pass before they are asked for.
struct Ahead<F> {
    blocks: Receiver<Result<BlockBuffer<F>, SourceError>>,
    used: Sender<BlockBuffer<F>>,
    thread: JoinHandle<(Buffers<F>, Receiver<BlockBuffer<F>>)>,
}

impl<F: Stored> Ahead<F> {
    /// Starts the thread with these buffers; `None` if the system has none. It ends with the pass, or at its next block once nobody
    /// reads.
    fn start(rows: &Arc<RowFile>, n: u64, of_block: u64, buffers: &mut Buffers<F>) -> Option<Self> {
        let ((send, blocks), (used, returned)) = (sync_channel(1), channel::<BlockBuffer<F>>());
        let (rows, mut buffers) = (Arc::clone(rows), core::mem::take(buffers));
        let read = move || {
            let mut at = 0;
            while at < n {
                let end = n.min(at + of_block);
                buffers.blocks.extend(returned.try_iter());
                let mut block = buffers.blocks.pop().unwrap_or_default();
                block.clear();
                let outcome = rows.read_rows(at..end, &mut buffers.span, &mut block);
                let failed = outcome.is_err();
                match send.send(outcome.map(|()| block)) {
                    Ok(()) if !failed => at = end,
                    Ok(()) => break,
                    Err(unread) => {
                        buffers.blocks.extend(unread.0);
                        break;
                    }
                }
            }
            (buffers, returned)
        };
        let thread = thread::Builder::new().spawn(read).ok()?;
        Some(Self { blocks, used, thread })
    }

    /// Replaces `block` by the next one.
    fn next(&self, block: &mut BlockBuffer<F>) -> Result<(), SourceError> {
        let next = self.blocks.recv().unwrap_or_else(|_| Err(layout::damaged()))?;
        // The thread may have ended, and needs no buffer then.
        let _ = self.used.send(core::mem::replace(block, next));
        Ok(())
    }

    /// Ends the thread and returns its buffers.
    fn end(self) -> Buffers<F> {
        let unread: Vec<_> = self.blocks.try_iter().flatten().collect();
        drop((self.blocks, self.used));
        let Ok((mut buffers, returned)) = self.thread.join() else { return Buffers::default() };
        buffers.blocks.extend(unread);
        buffers.blocks.extend(returned.try_iter());
        buffers
    }
}

impl From<SpoolError> for DataError {
    fn from(error: SpoolError) -> Self {
        let kind = match error {
            SpoolError::Folder { .. } => DataErrorKind::SpoolFolder,
            SpoolError::Write { .. } => DataErrorKind::SpoolWrite,
            SpoolError::Shape => DataErrorKind::SchemaColumns,
        };
        Self::new(kind, error.to_string())
    }
}

/// Returns the error for a spool that cannot be read before training.
fn unread(error: SourceError) -> DataError {
    match error {
        SourceError::Memory(error) => error.into(),
        error => DataError::new(DataErrorKind::SpoolRead, error.to_string()),
    }
}
