//! Examples at chosen positions of others, before they are copied.

use core::fmt;
use core::ops::Range;

use crate::block::{Block, Rows};
use crate::examples::{Examples, OrderError};
use crate::memory::{OutOfMemory, reserve};

/// Reserves memory for positions. The error states no sizes: the number of examples of a random batch is secret.
fn reserve_positions(positions: &mut Vec<u32>, more: usize) -> Result<(), OutOfMemory> {
    reserve(positions, more, "the positions of a batch").map_err(OutOfMemory::without_sizes)
}

/// Bytes of rows that are fetched ahead of copying. With 55 features, 2.5 to 8 KiB are equally fast, 16 KiB a little slower.
const BYTES_AHEAD: usize = 8 * 1024;

/// Examples at chosen positions, in that order; a position may occur more than once.
///
/// A batch that is drawn from examples in memory is read from where its rows are, so that threads can each copy their part of it.
/// Its `Debug` shows the shape, never a value.
///
/// # Examples
/// ```
/// let examples = dp_data::Examples::dense(vec![0.1, 0.2, 0.3], vec![1.0, -1.0, 1.0], 1)?;
/// let positions = [2, 0, 2, 1];
/// let selection = examples.select(&positions)?;
/// assert_eq!(selection.slice(1..4).example(2).targets, &[-1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Selection<'a, F> {
    block: Block<'a, F>,
    /// Below the number of the block's examples.
    positions: &'a [u32],
}

impl<F: Copy> Examples<F> {
    /// Returns the examples at `positions`, without copying them.
    ///
    /// # Errors
    /// [`OrderError::OutOfRange`].
    pub fn select<'a>(&'a self, positions: &'a [u32]) -> Result<Selection<'a, F>, OrderError> {
        let rows = self.len();
        match positions.iter().find(|&&position| position as usize >= rows) {
            Some(&position) => Err(OrderError::OutOfRange { position, rows }),
            None => Ok(Selection { block: self.block(), positions }),
        }
    }
}

impl<'a, F: Copy> Block<'a, F> {
    /// Returns the examples that are valid, in `positions`; `None` if all are.
    ///
    /// # Errors
    /// [`OutOfMemory`] for the list of positions.
    ///
    /// # Examples
    /// ```
    /// use dp_data::{Block, Rows};
    /// let rows = Rows::Dense { values: &[0.1, 0.2, 0.3], dim: 1 };
    /// let block = Block { rows, targets: &[1.0, 0.0, -1.0], valid: Some(&[true, false, true]) };
    /// let mut positions = Vec::new();
    /// assert_eq!(block.valid(&mut positions)?.map(|valid| valid.len()), Some(2));
    /// # Ok::<(), dp_data::OutOfMemory>(())
    /// ```
    pub fn valid<'b>(&self, positions: &'b mut Vec<u32>) -> Result<Option<Selection<'b, F>>, OutOfMemory>
    where
        'a: 'b,
    {
        let Some(valid) = self.valid.filter(|valid| valid.contains(&false)) else { return Ok(None) };
        positions.clear();
        reserve_positions(positions, valid.len())?;
        positions.extend((0..).zip(valid).filter(|(_, valid)| **valid).map(|(position, _)| position));
        Ok(Some(Selection { block: *self, positions }))
    }
}

impl<'a, F> Selection<'a, F> {
    /// Returns the number of chosen examples.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns whether none is chosen.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the number of features per example.
    pub fn dim(&self) -> usize {
        self.block.dim()
    }

    /// Returns the number of stored features of an example, rounded up; for sparse rows the mean over all examples, chosen or not.
    pub fn stored_features(&self) -> usize {
        match self.block.rows {
            Rows::Dense { dim, .. } => dim,
            Rows::Sparse { values, .. } => values.len().div_ceil(self.block.len().max(1)),
        }
    }

    /// Returns the examples at `positions`, all of which are below the number of the block's.
    #[cfg(feature = "spool")]
    pub(crate) fn of_block(block: Block<'a, F>, positions: &'a [u32]) -> Self {
        Self { block, positions }
    }

    /// Returns all examples, and the positions of the chosen ones.
    pub(crate) fn parts(&self) -> (&Block<'a, F>, &'a [u32]) {
        (&self.block, self.positions)
    }

    /// Returns the number of rows that are fetched ahead of copying.
    pub(crate) fn rows_ahead(&self) -> usize {
        let of_feature = match self.block.rows {
            Rows::Dense { .. } => size_of::<F>(),
            Rows::Sparse { .. } => size_of::<F>() + size_of::<u32>(),
        };
        (BYTES_AHEAD / (self.stored_features() * of_feature).max(1)).clamp(1, 64)
    }

    /// Returns chosen example `i`.
    ///
    /// # Panics
    /// If `i` is not below `len`.
    pub fn example(&self, i: usize) -> Block<'a, F> {
        let position = self.positions[i] as usize;
        self.block.slice(position..position + 1)
    }

    /// Returns the chosen examples of `range`.
    ///
    /// # Panics
    /// If `range` leaves `0..len`.
    pub fn slice(&self, range: Range<usize>) -> Self
    where
        F: Copy,
    {
        Self { positions: &self.positions[range], ..*self }
    }

    /// Returns the chosen examples that are valid; `buffer` is used if some are not.
    ///
    /// # Errors
    /// [`OutOfMemory`] for the list of positions.
    pub fn valid<'b>(&self, buffer: &'b mut Vec<u32>) -> Result<Selection<'b, F>, OutOfMemory>
    where
        'a: 'b,
        F: Copy,
    {
        let is_valid = |position: &u32| self.block.valid.is_none_or(|valid| valid[*position as usize]);
        if self.positions.iter().all(is_valid) {
            return Ok(*self);
        }
        buffer.clear();
        reserve_positions(buffer, self.positions.len())?;
        buffer.extend(self.positions.iter().copied().filter(is_valid));
        Ok(Selection { block: self.block, positions: buffer })
    }
}

impl<F> fmt::Debug for Selection<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("examples", &self.len()).field("dim", &self.dim()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_examples_within_range_are_chosen() {
        let mut examples = Examples::dense(vec![0.0, 1.0, f64::NAN, 3.0], vec![0.0, 1.0, 2.0, 3.0], 1).unwrap();
        let mut buffer = Vec::new();
        assert!(examples.select(&[0, 4]).is_err());
        assert_eq!(examples.select(&[2, 1]).unwrap().valid(&mut buffer).unwrap().len(), 2);
        examples.enforce_bounds(5.0, 5.0);
        for (positions, valid) in
            [(&[3, 2, 2, 1][..], &[3.0, 1.0][..]), (&[1, 3], &[1.0, 3.0]), (&[2], &[]), (&[], &[])]
        {
            let chosen = examples.select(positions).unwrap();
            let kept = chosen.valid(&mut buffer).unwrap();
            let targets: Vec<f64> = (0..kept.len()).map(|i| kept.example(i).targets[0]).collect();
            assert_eq!((targets.as_slice(), chosen.len(), kept.is_empty()), (valid, positions.len(), valid.is_empty()));
        }
    }

    #[test]
    fn sparse_examples_are_chosen_too() {
        let examples = Examples::sparse(vec![0, 2, 2, 5], vec![0, 3, 0, 1, 2], vec![1.0; 5], vec![0.0; 3], 4).unwrap();
        let chosen = examples.select(&[2, 1, 0]).unwrap();
        assert_eq!((chosen.stored_features(), chosen.dim()), (2, 4));
        let lengths = [0, 1, 2].map(|i| match chosen.example(i).rows {
            Rows::Sparse { offsets, .. } => offsets[1] - offsets[0],
            Rows::Dense { .. } => unreachable!(),
        });
        assert_eq!(lengths, [3, 0, 2]);
    }
}
