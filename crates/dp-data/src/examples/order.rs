//! Reordering of examples, so that a pass over them reads memory sequentially.

use super::{Examples, Storage};
use crate::memory::{OutOfMemory, collect, filled, with_capacity};

/// An invalid order for the examples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The length of the order differs from the number of examples.
    #[error("an order of {order} positions for {rows} rows")]
    Length {
        /// Number of positions in the order.
        order: usize,
        /// Number of examples.
        rows: usize,
    },
    /// A position is out of range.
    #[error("position {position} of {rows} rows")]
    OutOfRange {
        /// The position.
        position: u32,
        /// Number of examples.
        rows: usize,
    },
    /// A position occurs twice in a permutation.
    #[error("position {position} occurs more than once")]
    Repeated {
        /// The position.
        position: u32,
    },
    /// Memory for the reordered examples is exhausted.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// The contents, for messages.
const COPY: &str = "a copy of the rows in another order";
const ORDER: &str = "the order of the rows";

impl<F: Copy> Examples<F> {
    /// Copies the examples at `positions`, in that order; a position may occur any number of times.
    ///
    /// This covers subsets too: folds of a cross-validation, a train and test split.
    ///
    /// # Errors
    /// [`OrderError::OutOfRange`], [`OrderError::Memory`].
    ///
    /// # Examples
    /// ```
    /// let examples = dp_data::Examples::dense(vec![1.0, 2.0, 3.0], vec![-1.0, 1.0, -1.0], 1)?;
    /// assert_eq!(examples.gather(&[2, 1])?.targets(), &[-1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn gather(&self, positions: &[u32]) -> Result<Self, OrderError> {
        let rows = self.len();
        if let Some(&position) = positions.iter().find(|&&position| position as usize >= rows) {
            return Err(OrderError::OutOfRange { position, rows });
        }
        let places = || positions.iter().map(|&position| position as usize);
        let storage = match &self.storage {
            Storage::Dense(values) => {
                let mut gathered = with_capacity(positions.len().saturating_mul(self.dim), COPY)?;
                for place in places() {
                    gathered.extend_from_slice(&values[place * self.dim..(place + 1) * self.dim]);
                }
                Storage::Dense(gathered)
            }
            Storage::Sparse { offsets, indices, values } => gather_sparse(places(), offsets, indices, values)?,
        };
        Ok(Self {
            storage,
            targets: collect(places().map(|place| self.targets[place]), COPY)?,
            valid: match &self.valid {
                Some(valid) => Some(collect(places().map(|place| valid[place]), COPY)?),
                None => None,
            },
            dim: self.dim,
        })
    }

    /// Returns a copy in the order of `order`: example `i` of the result is example `order[i]` of these.
    ///
    /// # Errors
    /// [`OrderError`] unless `order` is a permutation of `0..len` and there is memory for a copy.
    pub fn permuted(&self, order: &[u32]) -> Result<Self, OrderError> {
        check_permutation(order, self.len())?;
        self.gather(order)
    }

    /// Reorders the examples in place: example `i` becomes the previous example `order[i]`.
    ///
    /// Dense rows move along the cycles of the permutation with one row and one bit per example of extra memory. Sparse rows have
    /// different lengths and are rewritten, which temporarily takes their size again.
    ///
    /// # Errors
    /// [`OrderError`] unless `order` is a permutation of `0..len` and there is that memory; otherwise the examples are unchanged.
    ///
    /// # Examples
    /// ```
    /// let mut examples = dp_data::Examples::dense(vec![1.0, 2.0, 3.0], vec![-1.0, 1.0, -1.0], 1)?;
    /// examples.permute(&[1, 2, 0])?;
    /// assert_eq!(examples.targets(), &[1.0, -1.0, -1.0]);
    /// assert!(examples.permute(&[0, 0, 1]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn permute(&mut self, order: &[u32]) -> Result<(), OrderError> {
        check_permutation(order, self.len())?;
        let mut spare = Spare::new(order.len(), self.dim)?;
        let mut spare_of_marks = Spare::new(order.len(), 1)?;
        match &mut self.storage {
            Storage::Dense(values) => permute_in_place(values, self.dim, order, &mut spare),
            Storage::Sparse { offsets, indices, values } => {
                self.storage =
                    gather_sparse(order.iter().map(|&position| position as usize), offsets, indices, values)?;
            }
        }
        permute_in_place(&mut self.targets, 1, order, &mut spare);
        if let Some(valid) = &mut self.valid {
            permute_in_place(valid, 1, order, &mut spare_of_marks);
        }
        Ok(())
    }
}

fn gather_sparse<F: Copy>(
    places: impl Iterator<Item = usize> + Clone,
    offsets: &[usize],
    indices: &[u32],
    values: &[F],
) -> Result<Storage<F>, OutOfMemory> {
    let total = places.clone().map(|place| offsets[place + 1] - offsets[place]).sum();
    let mut new_offsets = with_capacity(places.size_hint().0 + 1, COPY)?;
    // The number of stored features depends on the records.
    let mut new_indices = with_capacity(total, COPY).map_err(OutOfMemory::without_sizes)?;
    let mut new_values = with_capacity(total, COPY).map_err(OutOfMemory::without_sizes)?;
    new_offsets.push(0);
    for place in places {
        let row = offsets[place]..offsets[place + 1];
        new_indices.extend_from_slice(&indices[row.clone()]);
        new_values.extend_from_slice(&values[row]);
        new_offsets.push(new_values.len());
    }
    Ok(Storage::Sparse { offsets: new_offsets, indices: new_indices, values: new_values })
}

/// One bit per position.
struct Marks(Vec<u64>);

impl Marks {
    fn new(positions: usize) -> Result<Self, OutOfMemory> {
        filled(0, positions.div_ceil(64), ORDER).map(Self)
    }

    /// Sets the mark and returns whether it was set before.
    fn replace(&mut self, position: usize) -> bool {
        let word = &mut self.0[position / 64];
        let bit = 1 << (position % 64);
        let before = *word & bit != 0;
        *word |= bit;
        before
    }
}

fn check_permutation(order: &[u32], rows: usize) -> Result<(), OrderError> {
    if order.len() != rows {
        return Err(OrderError::Length { order: order.len(), rows });
    }
    let mut seen = Marks::new(rows)?;
    for &position in order {
        if position as usize >= rows {
            return Err(OrderError::OutOfRange { position, rows });
        }
        if seen.replace(position as usize) {
            return Err(OrderError::Repeated { position });
        }
    }
    Ok(())
}

/// The extra memory for moving rows in place: the marks of moved rows, and the held row.
struct Spare<T> {
    done: Marks,
    held: Vec<T>,
}

impl<T> Spare<T> {
    fn new(rows: usize, dim: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { done: Marks::new(rows)?, held: with_capacity(dim, ORDER)? })
    }
}

/// Moves row `order[i]` to row `i`; `order` is a permutation of the rows.
fn permute_in_place<T: Copy>(values: &mut [T], dim: usize, order: &[u32], Spare { done, held }: &mut Spare<T>) {
    done.0.fill(0);
    for start in 0..order.len() {
        if done.replace(start) {
            continue;
        }
        held.clear();
        held.extend_from_slice(&values[start * dim..(start + 1) * dim]);
        // Each step fills the gap at `hole` with its row, which moves the gap to that row's place; the cycle closes at `start`,
        // whose row is held.
        let mut hole = start;
        loop {
            let from = order[hole] as usize;
            if from == start {
                break;
            }
            values.copy_within(from * dim..(from + 1) * dim, hole * dim);
            done.replace(from);
            hole = from;
        }
        values[hole * dim..(hole + 1) * dim].copy_from_slice(held);
    }
}
