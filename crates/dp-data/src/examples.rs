//! Examples held in memory, dense or sparse, each example contiguous.

use crate::block::{Block, Rows};

/// Storage of the features.
#[derive(Clone)]
pub enum Storage<F> {
    /// Row-major values.
    Dense(Vec<F>),
    /// Compressed rows.
    Sparse {
        /// Start of each row, and the end of the last.
        offsets: Vec<usize>,
        /// Column of each value.
        indices: Vec<u32>,
        /// The values.
        values: Vec<F>,
    },
}

/// Examples with their targets, owned. Shapes are checked once, here.
#[derive(Clone)]
pub struct Examples<F> {
    storage: Storage<F>,
    targets: Vec<F>,
    dim: usize,
}

/// A shape that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// The number of values is not rows times features.
    #[error("{values} values for {rows} rows of {dim} features")]
    Dense {
        /// Number of values.
        values: usize,
        /// Number of targets.
        rows: usize,
        /// Features per row.
        dim: usize,
    },
    /// Offsets, columns and values of compressed rows contradict one another.
    #[error("compressed rows: {why}")]
    Sparse {
        /// What is wrong.
        why: &'static str,
    },
}

impl<F: Copy> Examples<F> {
    /// Dense examples: `values.len() == targets.len() * dim`.
    ///
    /// # Errors
    /// [`ShapeError::Dense`].
    pub fn dense(values: Vec<F>, targets: Vec<F>, dim: usize) -> Result<Self, ShapeError> {
        if dim == 0 || values.len() != targets.len() * dim {
            return Err(ShapeError::Dense { values: values.len(), rows: targets.len(), dim });
        }
        Ok(Self { storage: Storage::Dense(values), targets, dim })
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Features per example.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All examples, in order.
    pub fn block(&self) -> Block<'_, F> {
        let rows = match &self.storage {
            Storage::Dense(values) => Rows::Dense { values, dim: self.dim },
            Storage::Sparse { offsets, indices, values } => Rows::Sparse { offsets, indices, values, dim: self.dim },
        };
        Block { rows, targets: &self.targets, valid: None }
    }
}
