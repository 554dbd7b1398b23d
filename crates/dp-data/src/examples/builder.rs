//! Building examples row by row, in one pass and without a second copy.

#[cfg(feature = "files")]
use super::Feature;
use super::{Examples, ShapeError, Storage};
#[cfg(feature = "spool")]
use crate::block::{Block, Rows};
use crate::memory::{OutOfMemory, filled, reserve};

/// Collects dense examples one by one.
///
/// # Examples
/// ```
/// use dp_data::examples::DenseBuilder;
///
/// let mut builder = DenseBuilder::new(2)?;
/// builder.push(&[0.6, 0.8], 1.0)?;
/// builder.push_null()?;
/// assert_eq!(builder.finish().block().valid, Some(&[true, false][..]));
/// # Ok::<(), dp_data::examples::ShapeError>(())
/// ```
pub struct DenseBuilder<F> {
    values: Vec<F>,
    targets: Vec<F>,
    valid: Validity,
    dim: usize,
}

/// Collects sparse examples one by one.
///
/// # Examples
/// ```
/// use dp_data::examples::SparseBuilder;
///
/// let mut builder = SparseBuilder::new(1000)?;
/// builder.push(&[3, 999], &[0.6, 0.8], -1.0)?;
/// assert_eq!(builder.finish().len(), 1);
/// # Ok::<(), dp_data::examples::ShapeError>(())
/// ```
pub struct SparseBuilder<F> {
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<F>,
    targets: Vec<F>,
    valid: Validity,
    dim: usize,
}

/// Validity marks that take no memory until the first null record, unless requested from the start.
#[derive(Default)]
struct Validity(Option<Vec<bool>>);

impl Validity {
    /// Reserves memory for the next mark.
    fn reserve(&mut self, valid: bool, rows_before: usize) -> Result<(), OutOfMemory> {
        match &mut self.0 {
            Some(marks) => reserve(marks, 1, MARKS),
            None if !valid => {
                let mut marks = filled(true, rows_before, MARKS)?;
                reserve(&mut marks, 1, MARKS)?;
                self.0 = Some(marks);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn push(&mut self, valid: bool) {
        if let Some(marks) = &mut self.0 {
            marks.push(valid);
        }
    }
}

/// The contents, for messages.
const ROWS: &str = "the rows";
const TARGETS: &str = "the labels";
const MARKS: &str = "the marks of null records";

impl<F: Copy + Default> DenseBuilder<F> {
    /// Creates an empty builder for examples of `dim` features.
    ///
    /// # Errors
    /// [`ShapeError::Dense`] if `dim` is 0.
    pub fn new(dim: usize) -> Result<Self, ShapeError> {
        if dim == 0 {
            return Err(ShapeError::Dense { values: 0, rows: 0, dim });
        }
        Ok(Self { values: Vec::new(), targets: Vec::new(), valid: Validity::default(), dim })
    }

    /// Stores a validity mark per example even while all are valid, so that the storage does not depend on whether a null record
    /// occurs.
    pub fn with_marks(mut self) -> Self {
        self.valid = Validity(Some(vec![true; self.targets.len()]));
        self
    }

    /// Adds an example.
    ///
    /// # Errors
    /// [`ShapeError::Dense`] unless there are `dim` features, [`ShapeError::Memory`]; in these cases nothing is added.
    pub fn push(&mut self, features: &[F], target: F) -> Result<(), ShapeError> {
        if features.len() != self.dim {
            return Err(ShapeError::Dense { values: features.len(), rows: 1, dim: self.dim });
        }
        self.reserve_row(true)?;
        self.values.extend_from_slice(features);
        self.finish_row(target, true);
        Ok(())
    }

    /// Adds an example given by its nonzero features: `value` at each `index`.
    ///
    /// # Errors
    /// [`ShapeError::Dense`] if an index is not below `dim`, [`ShapeError::Memory`]; in these cases nothing is added.
    pub fn push_nonzeros(&mut self, nonzeros: impl IntoIterator<Item = (u32, F)>, target: F) -> Result<(), ShapeError> {
        self.reserve_row(true)?;
        let start = self.values.len();
        self.values.resize(start + self.dim, F::default());
        for (index, value) in nonzeros {
            match self.values[start..].get_mut(index as usize) {
                Some(slot) => *slot = value,
                None => {
                    self.values.truncate(start);
                    return Err(ShapeError::Dense { values: index as usize + 1, rows: 1, dim: self.dim });
                }
            }
        }
        self.finish_row(target, true);
        Ok(())
    }

    /// Adds a null record: all features and the target 0, marked invalid.
    ///
    /// # Errors
    /// [`OutOfMemory`]; in this case nothing is added.
    pub fn push_null(&mut self) -> Result<(), OutOfMemory> {
        self.reserve_row(false)?;
        self.values.resize(self.values.len() + self.dim, F::default());
        self.finish_row(F::default(), false);
        Ok(())
    }

    /// Returns the number of examples so far.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns the examples, after releasing spare capacity.
    pub fn finish(mut self) -> Examples<F> {
        self.values.shrink_to_fit();
        self.targets.shrink_to_fit();
        Examples { storage: Storage::Dense(self.values), targets: self.targets, valid: self.valid.0, dim: self.dim }
    }

    /// Reserves memory for a row before anything of it is added.
    #[inline]
    fn reserve_row(&mut self, valid: bool) -> Result<(), OutOfMemory> {
        reserve(&mut self.values, self.dim, ROWS)?;
        reserve(&mut self.targets, 1, TARGETS)?;
        self.valid.reserve(valid, self.targets.len())
    }

    fn finish_row(&mut self, target: F, valid: bool) {
        self.valid.push(valid);
        self.targets.push(target);
    }
}

impl<F: Copy + Default> SparseBuilder<F> {
    /// Creates an empty builder for examples of `dim` features.
    ///
    /// # Errors
    /// [`ShapeError::Sparse`] if `dim` is 0 or a column would not fit in 32 bits.
    pub fn new(dim: usize) -> Result<Self, ShapeError> {
        check_width(dim)?;
        Ok(Self {
            offsets: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
            targets: Vec::new(),
            valid: Validity::default(),
            dim,
        })
    }

    /// Stores a validity mark per example even while all are valid, so that the storage does not depend on whether a null record
    /// occurs.
    pub fn with_marks(mut self) -> Self {
        self.valid = Validity(Some(vec![true; self.targets.len()]));
        self
    }

    /// Adds an example: `values[k]` at column `indices[k]`, columns strictly increasing.
    ///
    /// # Errors
    /// [`ShapeError::Sparse`], [`ShapeError::Memory`]; in these cases nothing is added.
    pub fn push(&mut self, indices: &[u32], values: &[F], target: F) -> Result<(), ShapeError> {
        if indices.len() != values.len() {
            return Err(ShapeError::Sparse { why: "as many columns as values are needed" });
        }
        self.push_nonzeros(indices.iter().copied().zip(values.iter().copied()), target)
    }

    /// Adds an example given by its nonzero features, columns strictly increasing.
    ///
    /// # Errors
    /// [`ShapeError::Sparse`], [`ShapeError::Memory`]; in these cases nothing is added.
    pub fn push_nonzeros(&mut self, nonzeros: impl IntoIterator<Item = (u32, F)>, target: F) -> Result<(), ShapeError> {
        self.reserve_row(true)?;
        let start = self.values.len();
        let mut least = 0;
        for (index, value) in nonzeros {
            let index_wide = u64::from(index);
            let fits = if index_wide < least || index_wide >= self.dim as u64 {
                Err(ShapeError::Sparse { why: "columns of a row must strictly increase, below the width" })
            } else {
                // The number of stored features depends on the records.
                reserve(&mut self.indices, 1, ROWS)
                    .and_then(|()| reserve(&mut self.values, 1, ROWS))
                    .map_err(|error| error.without_sizes().into())
            };
            if let Err(error) = fits {
                self.indices.truncate(start);
                self.values.truncate(start);
                return Err(error);
            }
            least = index_wide + 1;
            self.indices.push(index);
            self.values.push(value);
        }
        self.finish_row(target, true);
        Ok(())
    }

    /// Adds a null record: no features, target 0, marked invalid.
    ///
    /// # Errors
    /// [`OutOfMemory`]; in this case nothing is added.
    pub fn push_null(&mut self) -> Result<(), OutOfMemory> {
        self.reserve_row(false)?;
        self.finish_row(F::default(), false);
        Ok(())
    }

    /// Returns the number of examples so far.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns the examples, after releasing spare capacity.
    pub fn finish(mut self) -> Examples<F> {
        self.offsets.shrink_to_fit();
        self.indices.shrink_to_fit();
        self.values.shrink_to_fit();
        self.targets.shrink_to_fit();
        let storage = Storage::Sparse { offsets: self.offsets, indices: self.indices, values: self.values };
        Examples { storage, targets: self.targets, valid: self.valid.0, dim: self.dim }
    }

    /// Reserves memory for the end of a row before anything of it is added.
    #[inline]
    fn reserve_row(&mut self, valid: bool) -> Result<(), OutOfMemory> {
        reserve(&mut self.offsets, 1, ROWS)?;
        reserve(&mut self.targets, 1, TARGETS)?;
        self.valid.reserve(valid, self.targets.len())
    }

    fn finish_row(&mut self, target: F, valid: bool) {
        self.valid.push(valid);
        self.offsets.push(self.values.len());
        self.targets.push(target);
    }
}

/// A builder of dense or sparse examples.
#[cfg(feature = "files")]
pub(crate) enum Builder<F> {
    Dense(DenseBuilder<F>),
    Sparse(SparseBuilder<F>),
}

#[cfg(feature = "files")]
impl<F: Feature + Default> Builder<F> {
    /// Creates an empty builder; `marks` as in [`DenseBuilder::with_marks`].
    pub(crate) fn new(dim: usize, sparse: bool, marks: bool) -> Result<Self, ShapeError> {
        Ok(if sparse {
            let builder = SparseBuilder::new(dim)?;
            Self::Sparse(if marks { builder.with_marks() } else { builder })
        } else {
            let builder = DenseBuilder::new(dim)?;
            Self::Dense(if marks { builder.with_marks() } else { builder })
        })
    }

    /// Adds an example given by its nonzero features, columns strictly increasing; numbers are rounded towards zero.
    pub(crate) fn push(&mut self, indices: &[u32], values: &[f64], target: F) -> Result<(), ShapeError> {
        let narrow = values.iter().map(|&value| F::narrow(value));
        match self {
            // As many strictly increasing columns as there are features are all columns.
            Self::Dense(builder)
                if indices.len() == builder.dim && indices.last() == Some(&(builder.dim as u32 - 1)) =>
            {
                builder.reserve_row(true)?;
                builder.values.extend(narrow);
                builder.finish_row(target, true);
                Ok(())
            }
            Self::Dense(builder) => builder.push_nonzeros(indices.iter().copied().zip(narrow), target),
            Self::Sparse(builder) => builder.push_nonzeros(indices.iter().copied().zip(narrow), target),
        }
    }

    /// Adds a null record.
    pub(crate) fn push_null(&mut self) -> Result<(), ShapeError> {
        match self {
            Self::Dense(builder) => builder.push_null(),
            Self::Sparse(builder) => builder.push_null(),
        }
        .map_err(ShapeError::from)
    }

    /// Adds the examples of a block.
    #[cfg(feature = "spool")]
    pub(crate) fn push_block(&mut self, block: &Block<'_, F>) -> Result<(), ShapeError> {
        for (i, &target) in block.targets.iter().enumerate() {
            if block.valid.is_some_and(|valid| !valid[i]) {
                self.push_null()?;
                continue;
            }
            match (&mut *self, block.rows) {
                (Self::Dense(builder), Rows::Dense { values, dim }) => {
                    builder.push(&values[i * dim..(i + 1) * dim], target)?;
                }
                (Self::Sparse(builder), Rows::Sparse { offsets, indices, values, .. }) => {
                    let place = offsets[i]..offsets[i + 1];
                    builder.push(&indices[place.clone()], &values[place], target)?;
                }
                _ => return Err(ShapeError::Sparse { why: "rows of another kind or width" }),
            }
        }
        Ok(())
    }

    /// Adds the examples of another builder of the same kind and width.
    pub(crate) fn append(&mut self, other: Self) -> Result<(), ShapeError> {
        match (self, other) {
            (Self::Dense(all), Self::Dense(other)) if all.dim == other.dim => {
                reserve(&mut all.values, other.values.len(), ROWS)?;
                all.values.extend_from_slice(&other.values);
                append_targets(&mut all.targets, &other.targets, &mut all.valid, &other.valid)
            }
            (Self::Sparse(all), Self::Sparse(other)) if all.dim == other.dim => {
                let before = all.values.len();
                reserve(&mut all.offsets, other.targets.len(), ROWS)?;
                reserve(&mut all.indices, other.indices.len(), ROWS).map_err(OutOfMemory::without_sizes)?;
                reserve(&mut all.values, other.values.len(), ROWS).map_err(OutOfMemory::without_sizes)?;
                all.offsets.extend(other.offsets.iter().skip(1).map(|offset| before + offset));
                all.indices.extend_from_slice(&other.indices);
                all.values.extend_from_slice(&other.values);
                append_targets(&mut all.targets, &other.targets, &mut all.valid, &other.valid)
            }
            _ => Err(ShapeError::Sparse { why: "rows of another kind or width" }),
        }
    }

    /// Returns the number of examples so far.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Dense(builder) => builder.len(),
            Self::Sparse(builder) => builder.len(),
        }
    }

    /// Returns the size of the examples so far.
    #[cfg(feature = "spool")]
    pub(crate) fn bytes(&self) -> u64 {
        let (values, others, marks) = match self {
            Self::Dense(builder) => (builder.values.len(), builder.targets.len() * size_of::<F>(), &builder.valid),
            Self::Sparse(builder) => {
                let of_rows = builder.targets.len() * (size_of::<F>() + size_of::<usize>());
                (builder.values.len(), of_rows + builder.indices.len() * size_of::<u32>(), &builder.valid)
            }
        };
        (values * size_of::<F>() + others + marks.0.as_ref().map_or(0, Vec::len)) as u64
    }

    /// Returns the examples so far, and continues without them.
    #[cfg(feature = "spool")]
    pub(crate) fn take(&mut self) -> Result<Examples<F>, ShapeError> {
        let empty = match self {
            Self::Dense(builder) => Self::new(builder.dim, false, builder.valid.0.is_some())?,
            Self::Sparse(builder) => Self::new(builder.dim, true, builder.valid.0.is_some())?,
        };
        Ok(core::mem::replace(self, empty).finish())
    }

    /// Returns the examples.
    pub(crate) fn finish(self) -> Examples<F> {
        match self {
            Self::Dense(builder) => builder.finish(),
            Self::Sparse(builder) => builder.finish(),
        }
    }
}

#[cfg(feature = "files")]
fn append_targets<F: Copy>(
    targets: &mut Vec<F>,
    more: &[F],
    valid: &mut Validity,
    more_valid: &Validity,
) -> Result<(), ShapeError> {
    reserve(targets, more.len(), TARGETS)?;
    for position in 0..more.len() {
        let is_valid = more_valid.0.as_ref().is_none_or(|marks| marks[position]);
        valid.reserve(is_valid, targets.len() + position)?;
        valid.push(is_valid);
    }
    targets.extend_from_slice(more);
    Ok(())
}

fn check_width(dim: usize) -> Result<(), ShapeError> {
    if dim == 0 {
        return Err(ShapeError::Sparse { why: "no features" });
    }
    if u32::try_from(dim).is_err() {
        return Err(ShapeError::Sparse { why: "a column must fit in 32 bits" });
    }
    Ok(())
}
