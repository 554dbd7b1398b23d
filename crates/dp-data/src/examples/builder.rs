//! Filling examples row by row, in one pass and without a second copy.

use super::{Examples, ShapeError, Storage};

/// Collects dense examples one by one.
///
/// # Examples
/// ```
/// use dp_data::examples::DenseBuilder;
///
/// let mut builder = DenseBuilder::new(2)?;
/// builder.push(&[0.6, 0.8], 1.0)?;
/// builder.push_null();
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

/// Validity marks that cost nothing until the first null record, unless asked for from the start.
#[derive(Default)]
struct Validity(Option<Vec<bool>>);

impl Validity {
    fn push(&mut self, valid: bool, rows_before: usize) {
        match &mut self.0 {
            Some(marks) => marks.push(valid),
            None if !valid => {
                let mut marks = vec![true; rows_before];
                marks.push(false);
                self.0 = Some(marks);
            }
            None => {}
        }
    }
}

impl<F: Copy + Default> DenseBuilder<F> {
    /// An empty builder for examples of `dim` features.
    ///
    /// # Errors
    /// [`ShapeError::Dense`] when `dim` is 0.
    pub fn new(dim: usize) -> Result<Self, ShapeError> {
        if dim == 0 {
            return Err(ShapeError::Dense { values: 0, rows: 0, dim });
        }
        Ok(Self { values: Vec::new(), targets: Vec::new(), valid: Validity::default(), dim })
    }

    /// Keeps a validity mark per example even while all are valid, so that what is stored does not depend on whether
    /// a null record occurs.
    pub fn with_marks(mut self) -> Self {
        self.valid = Validity(Some(vec![true; self.targets.len()]));
        self
    }

    /// Adds an example.
    ///
    /// # Errors
    /// [`ShapeError::Dense`] unless there are `dim` features; nothing is added then.
    pub fn push(&mut self, features: &[F], target: F) -> Result<(), ShapeError> {
        if features.len() != self.dim {
            return Err(ShapeError::Dense { values: features.len(), rows: 1, dim: self.dim });
        }
        self.values.extend_from_slice(features);
        self.finish_row(target, true);
        Ok(())
    }

    /// Adds an example given by its non-zero features: `value` at each `index`.
    ///
    /// # Errors
    /// [`ShapeError::Dense`] when an index is not below `dim`; nothing is added then.
    pub fn push_nonzeros(&mut self, nonzeros: impl IntoIterator<Item = (u32, F)>, target: F) -> Result<(), ShapeError> {
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

    /// Adds a null record: all features and the target 0, marked as not counting.
    pub fn push_null(&mut self) {
        self.values.resize(self.values.len() + self.dim, F::default());
        self.finish_row(F::default(), false);
    }

    /// Number of examples so far.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The examples, spare capacity given back.
    pub fn finish(mut self) -> Examples<F> {
        self.values.shrink_to_fit();
        self.targets.shrink_to_fit();
        Examples { storage: Storage::Dense(self.values), targets: self.targets, valid: self.valid.0, dim: self.dim }
    }

    fn finish_row(&mut self, target: F, valid: bool) {
        self.valid.push(valid, self.targets.len());
        self.targets.push(target);
    }
}

impl<F: Copy + Default> SparseBuilder<F> {
    /// An empty builder for examples of `dim` features.
    ///
    /// # Errors
    /// [`ShapeError::Sparse`] when `dim` is 0 or a column would not fit in 32 bits.
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

    /// Keeps a validity mark per example even while all are valid, so that what is stored does not depend on whether
    /// a null record occurs.
    pub fn with_marks(mut self) -> Self {
        self.valid = Validity(Some(vec![true; self.targets.len()]));
        self
    }

    /// Adds an example: `values[k]` at column `indices[k]`, columns strictly increasing.
    ///
    /// # Errors
    /// [`ShapeError::Sparse`]; nothing is added then.
    pub fn push(&mut self, indices: &[u32], values: &[F], target: F) -> Result<(), ShapeError> {
        if indices.len() != values.len() {
            return Err(ShapeError::Sparse { why: "as many columns as values are needed" });
        }
        self.push_nonzeros(indices.iter().copied().zip(values.iter().copied()), target)
    }

    /// Adds an example given by its non-zero features, columns strictly increasing.
    ///
    /// # Errors
    /// [`ShapeError::Sparse`]; nothing is added then.
    pub fn push_nonzeros(&mut self, nonzeros: impl IntoIterator<Item = (u32, F)>, target: F) -> Result<(), ShapeError> {
        let start = self.values.len();
        let mut least = 0;
        for (index, value) in nonzeros {
            let index_wide = u64::from(index);
            if index_wide < least || index_wide >= self.dim as u64 {
                self.indices.truncate(start);
                self.values.truncate(start);
                return Err(ShapeError::Sparse { why: "columns of a row must strictly increase, below the width" });
            }
            least = index_wide + 1;
            self.indices.push(index);
            self.values.push(value);
        }
        self.finish_row(target, true);
        Ok(())
    }

    /// Adds a null record: no features, target 0, marked as not counting.
    pub fn push_null(&mut self) {
        self.finish_row(F::default(), false);
    }

    /// Number of examples so far.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The examples, spare capacity given back.
    pub fn finish(mut self) -> Examples<F> {
        self.offsets.shrink_to_fit();
        self.indices.shrink_to_fit();
        self.values.shrink_to_fit();
        self.targets.shrink_to_fit();
        let storage = Storage::Sparse { offsets: self.offsets, indices: self.indices, values: self.values };
        Examples { storage, targets: self.targets, valid: self.valid.0, dim: self.dim }
    }

    fn finish_row(&mut self, target: F, valid: bool) {
        self.valid.push(valid, self.targets.len());
        self.offsets.push(self.values.len());
        self.targets.push(target);
    }
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
