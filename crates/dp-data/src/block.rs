//! Borrowed runs of consecutive examples, provided by a source and read by a model.

use core::fmt;
use core::ops::Range;

/// The features of some consecutive examples, each example contiguous.
///
/// Its `Debug` shows the shape, never a value.
#[derive(Clone, Copy)]
pub enum Rows<'a, F> {
    /// Row-major: `values.len() == rows * dim`.
    Dense {
        /// All values, example by example.
        values: &'a [F],
        /// Number of features per example.
        dim: usize,
    },
    /// Compressed rows: example `i` holds `values[offsets[i]..offsets[i + 1]]` at columns `indices[..]` of the same
    /// range, columns strictly increasing. `offsets` has one more entry than there are rows and need not start at 0.
    Sparse {
        /// Start of each row and end of the last one, as positions in `indices` and `values`.
        offsets: &'a [usize],
        /// Column of each value, below `dim`.
        indices: &'a [u32],
        /// The nonzero values.
        values: &'a [F],
        /// Number of features per example.
        dim: usize,
    },
}

impl<'a, F> Rows<'a, F> {
    /// Returns the number of examples.
    pub fn len(&self) -> usize {
        match self {
            Self::Dense { values, dim } => values.len().checked_div(*dim).unwrap_or(0),
            Self::Sparse { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    /// Returns whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of features per example.
    pub fn dim(&self) -> usize {
        match self {
            Self::Dense { dim, .. } | Self::Sparse { dim, .. } => *dim,
        }
    }

    /// Returns the examples of `range`.
    ///
    /// # Panics
    /// If `range` leaves `0..len`.
    pub fn slice(&self, range: Range<usize>) -> Self {
        match *self {
            Self::Dense { values, dim } => Self::Dense { values: &values[range.start * dim..range.end * dim], dim },
            Self::Sparse { offsets, indices, values, dim } => {
                Self::Sparse { offsets: &offsets[range.start..=range.end], indices, values, dim }
            }
        }
    }
}

impl<F> fmt::Debug for Rows<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = match self {
            Self::Dense { .. } => "Dense",
            Self::Sparse { .. } => "Sparse",
        };
        f.debug_struct(storage).field("rows", &self.len()).field("dim", &self.dim()).finish_non_exhaustive()
    }
}

/// Some consecutive examples with their targets.
///
/// Its `Debug` shows the shape, never a value.
#[derive(Clone, Copy)]
pub struct Block<'a, F> {
    /// The features.
    pub rows: Rows<'a, F>,
    /// One target per example; binary classification uses -1 and +1.
    pub targets: &'a [F],
    /// Validity of each example. An invalid example keeps its place (batch boundaries and step sizes are unchanged) and
    /// contributes a zero data gradient. `None`: all are valid.
    pub valid: Option<&'a [bool]>,
}

impl<F> fmt::Debug for Block<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<'a, F> Block<'a, F> {
    /// Returns the number of examples.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns the number of features per example.
    pub fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// Returns the examples of `range`.
    ///
    /// # Panics
    /// If `range` leaves `0..len`.
    pub fn slice(&self, range: Range<usize>) -> Self {
        Self {
            rows: self.rows.slice(range.clone()),
            targets: &self.targets[range.clone()],
            valid: self.valid.map(|v| &v[range]),
        }
    }
}
