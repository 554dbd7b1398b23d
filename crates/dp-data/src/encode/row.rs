//! The buffer into which one record is encoded, and the curator's statistics of all records.

use super::Encoder;
use crate::examples::Feature;
#[cfg(feature = "files")]
use crate::memory::{self, OutOfMemory};

/// One encoded record: the nonzero features, and the target. Reused from record to record.
#[derive(Default)]
pub struct RowBuffer {
    indices: Vec<u32>,
    values: Vec<f64>,
    /// Memory for the features before a map.
    spare: (Vec<u32>, Vec<f64>),
    /// Sums of a projection, or first cosines of a map.
    sums: Vec<f64>,
    joint: Joint,
    target: Option<f64>,
    null: bool,
    tallies: Tallies,
}

/// Memory for features of all columns together.
#[derive(Default)]
pub(super) struct Joint {
    /// Each coordinate with its value.
    pub(super) coordinates: Vec<(u32, f64)>,
    pub(super) features: Vec<f64>,
}

/// Statistics of the columns of the schema and of the label.
#[derive(Clone, Default)]
pub(crate) struct Tallies {
    columns: Vec<ColumnTally>,
    label: ColumnTally,
}

/// Statistics of a column in all rows of a buffer. They depend on the records: for the curator's warnings only.
#[derive(Debug, Clone, Default)]
pub struct ColumnTally {
    /// Values outside the public range.
    pub clamped: u64,
    /// Missing, unreadable or unknown values that were replaced.
    pub replaced: u64,
    /// Records that this column made null.
    pub neutral: u64,
    first: Option<f64>,
    varies: bool,
}

impl ColumnTally {
    #[inline]
    pub(crate) fn see(&mut self, value: f64) {
        match self.first {
            Some(first) => self.varies |= first != value,
            None => self.first = Some(value),
        }
    }

    /// Creates the statistics of numbers; `first` is one of them, or NaN if there are none.
    #[cfg(feature = "files")]
    pub(super) fn of_numbers(clamped: u64, first: f64, varies: bool) -> Self {
        Self { clamped, first: (!first.is_nan()).then_some(first), varies, ..Self::default() }
    }

    /// Adds the statistics of later rows.
    #[cfg(feature = "files")]
    pub(crate) fn append(&mut self, later: &Self) {
        self.clamped += later.clamped;
        self.replaced += later.replaced;
        self.neutral += later.neutral;
        later.first.into_iter().for_each(|first| self.see(first));
        self.varies |= later.varies;
    }

    /// Returns whether values were seen and all were the same.
    pub fn is_constant(&self) -> bool {
        self.first.is_some() && !self.varies
    }
}

impl RowBuffer {
    /// Creates a buffer for the rows of `encoder`.
    pub fn new(encoder: &Encoder) -> Self {
        let columns = encoder.schema().map_or(0, |schema| schema.columns().len());
        Self {
            indices: Vec::with_capacity(columns + 1),
            values: Vec::with_capacity(columns + 1),
            spare: Default::default(),
            sums: Vec::new(),
            joint: Joint::default(),
            target: None,
            null: false,
            tallies: Tallies { columns: vec![ColumnTally::default(); columns], label: ColumnTally::default() },
        }
    }

    /// Returns the indices of the nonzero features, increasing.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Returns their values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns -1 or +1, the position of the class, or a number in `[-1, 1]`, depending on the label's kind; `None` if no label
    /// was given, or for a null record.
    pub fn target(&self) -> Option<f64> {
        self.target
    }

    /// Returns whether this is a null record: no features, no target.
    pub fn is_null(&self) -> bool {
        self.null
    }

    /// Returns the inner product with `weights`, one per feature of the encoder.
    ///
    /// # Panics
    /// If there are fewer weights than features.
    pub fn dot(&self, weights: &[f64]) -> f64 {
        self.indices.iter().zip(&self.values).map(|(&index, value)| weights[index as usize] * value).sum()
    }

    /// Writes the row in dense form.
    ///
    /// # Panics
    /// If `out` is shorter than the encoder's `dim`.
    pub fn write_dense(&self, out: &mut [f64]) {
        out.fill(0.0);
        for (&index, &value) in self.indices.iter().zip(&self.values) {
            out[index as usize] = value;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.indices.clear();
        self.values.clear();
        self.target = None;
        self.null = false;
    }

    /// Empties the buffer and ensures that it has a tally for each of `columns`.
    pub(crate) fn prepare(&mut self, columns: usize) {
        self.clear();
        if self.tallies.columns.len() < columns {
            self.tallies.columns.resize(columns, ColumnTally::default());
        }
    }

    pub(crate) fn make_null(&mut self) {
        self.clear();
        self.null = true;
    }

    /// Reserves memory for this many more features.
    #[cfg(feature = "files")]
    pub(crate) fn reserve(&mut self, features: usize) -> Result<(), OutOfMemory> {
        const ROW: &str = "one row of the file";
        memory::reserve(&mut self.indices, features, ROW)
            .and_then(|()| memory::reserve(&mut self.values, features, ROW))
            .map_err(OutOfMemory::without_sizes)
    }

    #[inline]
    pub(crate) fn push(&mut self, index: u32, value: f64) {
        if value != 0.0 {
            self.indices.push(index);
            self.values.push(value);
        }
    }

    /// Pushes values with consecutive indices.
    pub(super) fn push_all(&mut self, first: u32, values: &[f64]) {
        if values.iter().fold(true, |all, value| all & (*value != 0.0)) {
            self.indices.extend((first..).take(values.len()));
            self.values.extend_from_slice(values);
        } else {
            (first..).zip(values).for_each(|(index, &value)| self.push(index, value));
        }
    }

    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Returns indices, values, and memory for the sums of a projection.
    pub(super) fn parts_mut(&mut self) -> (&mut Vec<u32>, &mut Vec<f64>, &mut Vec<f64>) {
        (&mut self.indices, &mut self.values, &mut self.sums)
    }

    /// Takes the features out, so that others can be pushed.
    pub(super) fn take_features(&mut self) -> (Vec<u32>, Vec<f64>) {
        let (mut indices, mut values) = core::mem::take(&mut self.spare);
        indices.clear();
        values.clear();
        (core::mem::replace(&mut self.indices, indices), core::mem::replace(&mut self.values, values))
    }

    /// Returns empty memory for sums.
    pub(super) fn take_sums(&mut self) -> Vec<f64> {
        let mut sums = core::mem::take(&mut self.sums);
        sums.clear();
        sums
    }

    /// Returns memory for features of all columns together, without coordinates.
    pub(super) fn take_joint(&mut self) -> Joint {
        let mut joint = core::mem::take(&mut self.joint);
        joint.coordinates.clear();
        joint
    }

    /// Returns memory that was taken.
    pub(super) fn recycle(&mut self, indices: Vec<u32>, values: Vec<f64>, sums: Vec<f64>, joint: Joint) {
        self.spare = (indices, values);
        (self.sums, self.joint) = (sums, joint);
    }

    pub(crate) fn set_target(&mut self, target: Option<f64>) {
        self.target = target;
    }

    /// Returns the tally of a column for which the buffer was prepared.
    #[inline]
    pub(super) fn tally(&mut self, column: usize) -> &mut ColumnTally {
        &mut self.tallies.columns[column]
    }

    pub(super) fn label_tally_mut(&mut self) -> &mut ColumnTally {
        &mut self.tallies.label
    }

    /// Returns the statistics so far, and starts anew.
    #[cfg(feature = "files")]
    pub(crate) fn take_tallies(&mut self) -> Tallies {
        let columns = vec![ColumnTally::default(); self.tallies.columns.len()];
        core::mem::replace(&mut self.tallies, Tallies { columns, label: ColumnTally::default() })
    }

    /// Adds the statistics of later rows, of the same columns.
    #[cfg(feature = "files")]
    pub(crate) fn append_tallies(&mut self, later: &Tallies) {
        self.prepare(later.columns.len());
        self.tallies.columns.iter_mut().zip(&later.columns).for_each(|(tally, later)| tally.append(later));
        self.tallies.label.append(&later.label);
    }

    /// Returns the statistics of a numeric label; none for classes. For the curator.
    pub fn label_tally(&self) -> &ColumnTally {
        &self.tallies.label
    }

    /// Returns the statistics of each column of the schema so far. For the curator.
    pub fn tallies(&self) -> &[ColumnTally] {
        &self.tallies.columns
    }
}

/// The float types in which features are stored: `f32`, rounded towards zero, and `f64`.
pub trait Stored: Feature + Default + Send + Sync + sealed::Sealed + 'static {}

impl Stored for f64 {}

impl Stored for f32 {}

mod sealed {
    #[cfg(feature = "spool")]
    use super::super::curve_rows::{LANES, write_each_row, write_rows};

    /// Conversion to little-endian bytes, and from double precision.
    pub trait Sealed: Sized {
        /// Appends the bytes of the numbers.
        fn append_le(numbers: &[Self], bytes: &mut Vec<u8>);
        /// Appends the numbers of the bytes.
        fn extend_le(numbers: &mut Vec<Self>, bytes: &[u8]);
        /// Returns the number of exactly its bytes.
        fn from_le(bytes: &[u8]) -> Option<Self>;
        /// Writes the rows of a group of records, multiplied by a factor each.
        #[cfg(feature = "spool")]
        fn write_rows(group: &[[f64; LANES]], factors: &[f64; LANES], rows: &mut [Self]);
    }

    macro_rules! sealed {
        ($float:ty, $write_rows:expr) => {
            impl Sealed for $float {
                #[cfg(feature = "spool")]
                fn write_rows(group: &[[f64; LANES]], factors: &[f64; LANES], rows: &mut [Self]) {
                    $write_rows(group, factors, rows);
                }
                fn append_le(numbers: &[Self], bytes: &mut Vec<u8>) {
                    let start = bytes.len();
                    bytes.resize(start + size_of_val(numbers), 0);
                    let places = bytes[start..].as_chunks_mut::<{ size_of::<Self>() }>().0;
                    places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.to_le_bytes());
                }
                fn extend_le(numbers: &mut Vec<Self>, bytes: &[u8]) {
                    let places = bytes.as_chunks::<{ size_of::<Self>() }>().0;
                    numbers.extend(places.iter().map(|place| Self::from_le_bytes(*place)));
                }
                fn from_le(bytes: &[u8]) -> Option<Self> {
                    Some(Self::from_le_bytes(bytes.try_into().ok()?))
                }
            }
        };
    }
    sealed!(f32, write_each_row);
    sealed!(f64, write_rows);
}
