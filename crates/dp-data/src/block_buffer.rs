//! Examples copied from several blocks into one.

use core::fmt;

use crate::block::{Block, Rows};
use crate::memory::{OutOfMemory, reserve};
use crate::selection::Selection;

/// Examples copied from several blocks: a batch that straddles two of them, or rows chosen by position.
///
/// # Examples
/// ```
/// use dp_data::{BlockBuffer, Examples};
/// let examples = Examples::dense(vec![0.1, 0.2, 0.3], vec![1.0, -1.0, 1.0], 1)?;
/// let mut buffer = BlockBuffer::default();
/// buffer.push(&examples.block().slice(2..3))?;
/// buffer.push(&examples.block().slice(0..1))?;
/// assert_eq!(buffer.block(1).targets, &[1.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BlockBuffer<F> {
    sparse: bool,
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<F>,
    targets: Vec<F>,
    valid: Vec<bool>,
    any_marked: bool,
}

/// Reserves memory for `more` elements. The error states no sizes: the number of examples in a random batch is secret, and the
/// number of features that a sparse row stores depends on the record.
fn make_room<T>(elements: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    reserve(elements, more, "the rows of a batch").map_err(OutOfMemory::without_sizes)
}

impl<F> Default for BlockBuffer<F> {
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

impl<F: Copy> BlockBuffer<F> {
    /// Returns the number of examples.
    pub fn rows(&self) -> usize {
        self.targets.len()
    }

    /// Removes the examples and keeps the memory.
    pub fn clear(&mut self) {
        self.sparse = false;
        self.offsets.clear();
        self.indices.clear();
        self.values.clear();
        self.targets.clear();
        self.valid.clear();
        self.any_marked = false;
    }

    /// Appends the examples of a block. All blocks since [`clear`](Self::clear) must have the same storage, dense or sparse.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the contents must then be [cleared](Self::clear).
    pub fn push(&mut self, block: &Block<'_, F>) -> Result<(), OutOfMemory> {
        let rows = block.targets.len();
        make_room(&mut self.targets, rows)?;
        make_room(&mut self.valid, rows)?;
        match block.rows {
            Rows::Dense { values, .. } => {
                self.sparse = false;
                make_room(&mut self.values, values.len())?;
                self.values.extend_from_slice(values);
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                self.sparse = true;
                if self.offsets.is_empty() {
                    self.offsets.push(0);
                }
                let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return Ok(()) };
                make_room(&mut self.offsets, rows)?;
                make_room(&mut self.indices, last - first)?;
                make_room(&mut self.values, last - first)?;
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
        Ok(())
    }

    /// Appends an example with `stored` features; `fill` appends them to the values and, if sparse, to the columns.
    #[cfg(feature = "spool")]
    pub(crate) fn push_row(
        &mut self,
        sparse: bool,
        stored: usize,
        target: F,
        is_valid: bool,
        fill: impl FnOnce(&mut Vec<F>, &mut Vec<u32>),
    ) -> Result<(), OutOfMemory> {
        make_room(&mut self.targets, 1)?;
        make_room(&mut self.valid, 1)?;
        make_room(&mut self.values, stored)?;
        self.sparse = sparse;
        if sparse {
            make_room(&mut self.indices, stored)?;
            make_room(&mut self.offsets, 2)?;
            if self.offsets.is_empty() {
                self.offsets.push(0);
            }
        }
        fill(&mut self.values, &mut self.indices);
        if sparse {
            self.offsets.push(self.values.len());
        }
        self.targets.push(target);
        self.any_marked |= !is_valid;
        self.valid.push(is_valid);
        Ok(())
    }

    /// Replaces the contents by selected examples. `fetch` is called with a row's values and columns (none of dense rows) some
    /// rows before the row is copied, so that it can prefetch them.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    ///
    /// # Examples
    /// ```
    /// let examples = dp_data::Examples::dense(vec![0.1, 0.2, 0.3], vec![1.0, -1.0, 1.0], 1)?;
    /// let mut buffer = dp_data::BlockBuffer::default();
    /// buffer.copy(&examples.select(&[1, 0])?, |_, _| ())?;
    /// assert_eq!(buffer.block(1).targets, &[-1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy(&mut self, selection: &Selection<'_, F>, fetch: impl Fn(&[F], &[u32])) -> Result<(), OutOfMemory> {
        self.clear();
        let (block, positions) = selection.parts();
        let rows = positions.len();
        let (positions, ahead) = (positions.iter().map(|&position| position as usize), selection.rows_ahead());
        let later = positions.clone().skip(ahead).map(Some).chain(core::iter::repeat(None));
        let first = positions.clone().take(ahead);
        match block.rows {
            Rows::Dense { values, dim } => {
                make_room(&mut self.values, rows.saturating_mul(dim))?;
                let row = |position: usize| &values[position * dim..(position + 1) * dim];
                first.for_each(|position| fetch(row(position), &[]));
                for (position, later) in positions.clone().zip(later) {
                    if let Some(later) = later {
                        fetch(row(later), &[]);
                    }
                    self.values.extend_from_slice(row(position));
                }
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                self.sparse = rows > 0;
                make_room(&mut self.offsets, rows + 1)?;
                let ends = |position: usize| offsets[position]..offsets[position + 1];
                let stored = positions.clone().map(|position| ends(position).len()).sum();
                make_room(&mut self.indices, stored)?;
                make_room(&mut self.values, stored)?;
                first.for_each(|position| fetch(&values[ends(position)], &indices[ends(position)]));
                self.offsets.push(0);
                for (position, later) in positions.clone().zip(later) {
                    if let Some(later) = later {
                        fetch(&values[ends(later)], &indices[ends(later)]);
                    }
                    self.indices.extend_from_slice(&indices[ends(position)]);
                    self.values.extend_from_slice(&values[ends(position)]);
                    self.offsets.push(self.values.len());
                }
            }
        }
        make_room(&mut self.targets, rows)?;
        self.targets.extend(positions.clone().map(|position| block.targets[position]));
        if let Some(valid) = block.valid {
            self.any_marked = true;
            make_room(&mut self.valid, rows)?;
            self.valid.extend(positions.map(|position| valid[position]));
        }
        Ok(())
    }

    /// Returns the examples as one block of `dim` features; dense if there are none.
    pub fn block(&self, dim: usize) -> Block<'_, F> {
        let rows = if self.sparse {
            Rows::Sparse { offsets: &self.offsets, indices: &self.indices, values: &self.values, dim }
        } else {
            Rows::Dense { values: &self.values, dim }
        };
        Block { rows, targets: &self.targets, valid: self.any_marked.then_some(&self.valid[..]) }
    }
}

impl<F> fmt::Debug for BlockBuffer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockBuffer").field("rows", &self.targets.len()).finish_non_exhaustive()
    }
}
