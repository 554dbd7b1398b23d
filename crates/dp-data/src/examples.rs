//! Examples held in memory, dense or sparse, each example contiguous.

mod bounds;
mod builder;
mod order;
#[cfg(test)]
mod tests;

pub use bounds::Feature;
#[cfg(feature = "spool")]
pub(crate) use bounds::clip_factor;
#[cfg(feature = "files")]
pub(crate) use builder::Builder;
pub use builder::{DenseBuilder, SparseBuilder};
pub use order::OrderError;

use core::fmt;

use crate::block::{Block, Rows};
use crate::memory::OutOfMemory;
#[cfg(feature = "spool")]
use crate::memory::collect;

/// Storage of the features.
#[derive(Clone)]
pub enum Storage<F> {
    /// Row-major values.
    Dense(Vec<F>),
    /// Compressed rows.
    Sparse {
        /// Start of each row, and the end of the last one.
        offsets: Vec<usize>,
        /// Column of each value.
        indices: Vec<u32>,
        /// The values.
        values: Vec<F>,
    },
}

/// Owned examples with their targets. Shapes are checked once, on creation; values are not checked.
///
/// An example with [`Block::valid`] `false` is a null record: every feature 0 and target 0, so that its data gradient is zero in
/// any model that is linear in the features. It keeps its place, so that the number of examples, the batch boundaries and the
/// step sizes do not depend on which records are null.
///
/// `Debug` shows the shape, never a value.
///
/// # Examples
/// ```
/// use dp_data::Examples;
///
/// let mut examples = Examples::dense(vec![0.6, 0.8, 1.0, 0.0, 0.0, 1.0], vec![1.0, -1.0, 1.0], 2)?;
/// examples.permute(&[2, 0, 1])?;
/// assert_eq!(examples.block().targets, &[1.0, 1.0, -1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Examples<F> {
    storage: Storage<F>,
    targets: Vec<F>,
    valid: Option<Vec<bool>>,
    dim: usize,
}

impl<F> fmt::Debug for Examples<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = match self.storage {
            Storage::Dense(_) => "dense",
            Storage::Sparse { .. } => "sparse",
        };
        f.debug_struct("Examples")
            .field("storage", &storage)
            .field("rows", &self.targets.len())
            .field("dim", &self.dim)
            .finish_non_exhaustive()
    }
}

/// An invalid shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// The number of values differs from rows times features, or there are no features.
    #[error("{values} values for {rows} rows of {dim} features")]
    Dense {
        /// Number of values.
        values: usize,
        /// Number of targets.
        rows: usize,
        /// Number of features per row.
        dim: usize,
    },
    /// Offsets, columns and values of compressed rows contradict one another.
    #[error("compressed rows: {why}")]
    Sparse {
        /// The contradiction.
        why: &'static str,
    },
    /// The number of validity marks differs from the number of rows.
    #[error("{marks} validity marks for {rows} rows")]
    Valid {
        /// Number of marks.
        marks: usize,
        /// Number of rows.
        rows: usize,
    },
    /// Memory is exhausted.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

impl<F: Copy> Examples<F> {
    /// Creates dense examples: `values.len() == targets.len() * dim`.
    ///
    /// # Shapes
    /// `values` holds `dim` values for each example, example by example; `targets` one per example.
    ///
    /// # Errors
    /// [`ShapeError::Dense`].
    pub fn dense(values: Vec<F>, targets: Vec<F>, dim: usize) -> Result<Self, ShapeError> {
        if dim == 0 || targets.len().checked_mul(dim) != Some(values.len()) {
            return Err(ShapeError::Dense { values: values.len(), rows: targets.len(), dim });
        }
        Ok(Self { storage: Storage::Dense(values), targets, valid: None, dim })
    }

    /// Creates sparse examples in compressed rows.
    ///
    /// # Shapes
    /// Example `i` holds `values[offsets[i]..offsets[i + 1]]` at the columns `indices` of the same range, columns
    /// strictly increasing and below `dim`; `offsets` starts at 0, ends at `values.len()` and has one entry more than
    /// `targets`.
    ///
    /// # Errors
    /// [`ShapeError::Sparse`].
    ///
    /// # Examples
    /// ```
    /// use dp_data::Examples;
    ///
    /// let examples = Examples::sparse(vec![0, 2, 3], vec![0, 4, 1], vec![0.6, 0.8, 1.0], vec![1.0, -1.0], 5)?;
    /// assert_eq!((examples.len(), examples.dim()), (2, 5));
    /// assert!(Examples::sparse(vec![0, 2], vec![4, 0], vec![0.6, 0.8], vec![1.0], 5).is_err());
    /// # Ok::<(), dp_data::examples::ShapeError>(())
    /// ```
    pub fn sparse(
        offsets: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<F>,
        targets: Vec<F>,
        dim: usize,
    ) -> Result<Self, ShapeError> {
        let refuse = |why| Err(ShapeError::Sparse { why });
        if dim == 0 {
            return refuse("no features");
        }
        if offsets.len() != targets.len() + 1 {
            return refuse("offsets must have one entry more than there are targets");
        }
        if indices.len() != values.len() {
            return refuse("as many columns as values are needed");
        }
        if offsets.first() != Some(&0) || offsets.last() != Some(&values.len()) {
            return refuse("offsets must start at 0 and end at the number of values");
        }
        if offsets.windows(2).any(|pair| pair[0] > pair[1]) {
            return refuse("offsets must not decrease");
        }
        for row in offsets.windows(2) {
            let columns = &indices[row[0]..row[1]];
            if columns.windows(2).any(|pair| pair[0] >= pair[1]) {
                return refuse("columns of a row must strictly increase");
            }
            if columns.last().is_some_and(|&last| last as usize >= dim) {
                return refuse("a column is not below the number of features");
            }
        }
        Ok(Self { storage: Storage::Sparse { offsets, indices, values }, targets, valid: None, dim })
    }

    /// Sets a validity mark for each example.
    ///
    /// The caller must ensure that an example marked `false` has only zero features and target 0.
    ///
    /// # Errors
    /// [`ShapeError::Valid`] unless there is one mark per example.
    pub fn with_valid(mut self, valid: Vec<bool>) -> Result<Self, ShapeError> {
        if valid.len() != self.targets.len() {
            return Err(ShapeError::Valid { marks: valid.len(), rows: self.targets.len() });
        }
        self.valid = Some(valid);
        Ok(self)
    }

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
        self.dim
    }

    /// Returns whether the features are stored as compressed rows.
    pub fn is_sparse(&self) -> bool {
        matches!(self.storage, Storage::Sparse { .. })
    }

    /// Returns the storage of the features.
    pub fn storage(&self) -> &Storage<F> {
        &self.storage
    }

    /// Returns one target per example.
    pub fn targets(&self) -> &[F] {
        &self.targets
    }

    /// Returns all examples, in order.
    pub fn block(&self) -> Block<'_, F> {
        let rows = match &self.storage {
            Storage::Dense(values) => Rows::Dense { values, dim: self.dim },
            Storage::Sparse { offsets, indices, values } => Rows::Sparse { offsets, indices, values, dim: self.dim },
        };
        Block { rows, targets: &self.targets, valid: self.valid.as_deref() }
    }

    /// Replaces the targets, for one-vs-all training or another task on the same rows.
    ///
    /// # Errors
    /// [`ShapeError::Dense`] unless there is one target per example.
    pub fn with_targets(mut self, targets: Vec<F>) -> Result<Self, ShapeError> {
        if targets.len() != self.targets.len() {
            return Err(ShapeError::Dense {
                values: self.targets.len() * self.dim,
                rows: targets.len(),
                dim: self.dim,
            });
        }
        self.targets = targets;
        Ok(self)
    }
}

#[cfg(feature = "files")]
impl<F> Examples<F> {
    /// Reduces sparse examples to `dim` features, if they were built before their width was known. The intercept, if there is
    /// one, is the last value of each nonempty row and moves to column `intercept`; null rows have none.
    pub(crate) fn narrowed(mut self, dim: usize, intercept: Option<usize>) -> Self {
        self.dim = dim;
        if let (Storage::Sparse { offsets, indices, .. }, Some(intercept)) = (&mut self.storage, intercept) {
            for row in offsets.windows(2).filter(|row| row[0] < row[1]) {
                indices[row[1] - 1] = intercept as u32;
            }
        }
        self
    }
}

#[cfg(feature = "spool")]
impl<F: Copy> Examples<F> {
    /// Returns a copy of a block.
    pub(crate) fn of_block(block: &Block<'_, F>) -> Result<Self, ShapeError> {
        let copy = |values: &[F]| collect(values.iter().copied(), ROWS).map_err(OutOfMemory::without_sizes);
        let storage = match block.rows {
            Rows::Dense { values, .. } => Storage::Dense(copy(values)?),
            Rows::Sparse { offsets, indices, values, .. } => {
                let place = offsets.first().copied().unwrap_or(0)..offsets.last().copied().unwrap_or(0);
                Storage::Sparse {
                    offsets: collect(offsets.iter().map(|offset| offset - place.start), ROWS)?,
                    indices: collect(indices[place.clone()].iter().copied(), ROWS)
                        .map_err(OutOfMemory::without_sizes)?,
                    values: copy(&values[place])?,
                }
            }
        };
        let valid = block.valid.map(|valid| collect(valid.iter().copied(), ROWS)).transpose()?;
        Ok(Self { storage, targets: copy(block.targets)?, valid, dim: block.dim() })
    }
}

/// The contents, for messages.
#[cfg(feature = "spool")]
const ROWS: &str = "a copy of some rows";

impl Examples<f64> {
    /// Returns the examples in single precision, with features rounded **towards zero**.
    ///
    /// Rounding towards zero makes no feature larger, so the norm of a row stays at most 1 exactly; rounding to nearest would
    /// not ensure this. Targets are rounded to nearest (they are -1, 0 and 1 in classification).
    ///
    /// # Examples
    /// ```
    /// use dp_data::Examples;
    ///
    /// let examples = Examples::dense(vec![0.1_f64], vec![1.0], 1)?.to_f32();
    /// let dp_data::Rows::Dense { values, .. } = examples.block().rows else { unreachable!() };
    /// assert!(f64::from(values[0]) <= 0.1 && 0.1_f32 > values[0]);
    /// # Ok::<(), dp_data::examples::ShapeError>(())
    /// ```
    pub fn to_f32(&self) -> Examples<f32> {
        let convert = |values: &[f64]| values.iter().map(|&v| f32_towards_zero(v)).collect();
        let storage = match &self.storage {
            Storage::Dense(values) => Storage::Dense(convert(values)),
            Storage::Sparse { offsets, indices, values } => {
                Storage::Sparse { offsets: offsets.clone(), indices: indices.clone(), values: convert(values) }
            }
        };
        let targets = self.targets.iter().map(|&t| t as f32).collect();
        Examples { storage, targets, valid: self.valid.clone(), dim: self.dim }
    }
}

/// Returns the single-precision number nearest to `value` among those that are not larger in magnitude.
pub(crate) fn f32_towards_zero(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest).abs() > value.abs() {
        // `nearest` is nonzero, so its magnitude bits can be lowered by one: the next number towards zero.
        f32::from_bits(nearest.to_bits() - 1)
    } else {
        nearest
    }
}
