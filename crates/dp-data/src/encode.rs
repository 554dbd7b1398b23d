//! Encoding of a record's cells as a feature vector of norm at most 1.

mod cell;
mod coordinate;
#[cfg(feature = "files")]
mod coordinates;
#[cfg(feature = "spool")]
mod curve_rows;
mod dates_in_sql;
mod draw;
mod encoding;
mod feature_map;
mod format;
mod fourier;
mod in_sql;
mod label;
mod norm;
mod number;
#[cfg(feature = "files")]
mod numeric_block;
mod plan;
mod project;
mod reading;
mod record;
mod refusal;
mod row;
#[cfg(feature = "files")]
mod short_decimals;
mod single_column;
#[cfg(test)]
mod tests;
mod text_map;

use serde::{Deserialize, Serialize};

pub use cell::Cell;
#[cfg(feature = "files")]
pub(crate) use cell::TextBuffer;
#[cfg(feature = "files")]
pub use coordinates::Coordinates;
#[cfg(feature = "spool")]
pub(crate) use coordinates::encode_coordinates;
#[cfg(feature = "spool")]
pub use curve_rows::CurveRows;
pub use encoding::{Encoding, NumericRange, RowNorm};
pub use feature_map::{FeatureMap, MAX_COSINES, MAX_MAPPED};
use feature_map::{Inputs, MapPlan, Numeric};
pub use format::{ImageFormat, InputFormat, LibsvmFormat, MAX_FEATURES};
pub use fourier::{FourierFeatures, MAX_BANDWIDTH};
pub(crate) use in_sql::FeatureSql;
pub use in_sql::RowSql;
pub(crate) use label::LabelPlan;
pub(crate) use norm::bound_norm;
pub use number::{parse_number, parse_whole};
#[cfg(feature = "files")]
pub(crate) use numeric_block::NumericBlock;
use plan::ColumnPlan;
#[cfg(feature = "files")]
pub(crate) use plan::Inspected;
use project::ProjectionPlan;
pub use project::{Generator, MAX_PROJECTION_ENTRIES, PROJECTION_SEEDS, Projection, ProjectionKind};
#[cfg(feature = "files")]
pub(crate) use record::Stage;
pub use row::{ColumnTally, RowBuffer, Stored};

use crate::error::{DataError, DataErrorKind};
use crate::schema::{ColumnKind, Label, Schema};
use crate::sql::Dialect;

/// Expected fraction of nonzero features above which rows are stored dense.
const SPARSE_SHARE: f64 = 0.35;

/// The treatment of a category that the schema does not list, in records that a model is used on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownCategory {
    /// It counts as the category `other`; if the column has none, as no category, so that the column adds nothing to a score.
    Other,
    /// The file is refused.
    Error,
    /// The record becomes a null record, which has no score.
    Skip,
}

/// Encodes records as feature vectors of norm at most 1 and labels as targets.
///
/// Two classes become -1 and +1, several classes their positions in the public list, numbers are mapped to `[-1, 1]`.
///
/// Features are in the order of the schema's columns, a categorical column having one per category (and one for missing values,
/// if these are a category); **the intercept is last**. An encoder is serialised into a model file, and checked again when read.
///
/// # Privacy
/// The exact Euclidean norm of a stored row is at most 1, including the intercept. Rows are scaled by `(1 - k)/|x|`, with
/// `k = (d + 8) 2^-53` for `d` nonzero features, which exceeds the rounding errors of norm and products. Single precision rounds
/// towards zero. The width, the storage and the scaling depend on the schema only.
///
/// A null record (see [`OnMissing::Neutral`](crate::schema::OnMissing::Neutral)) becomes a row of zeros, including the intercept,
/// with target 0 and its mark in [`Block::valid`](crate::Block::valid) `false`.
///
/// With a [`Projection`] ([`projected`](Self::projected)) the features are mapped to fewer ones before intercept and norm bound.
///
/// # Examples
/// ```
/// use dp_data::encode::{Encoder, Encoding, RowBuffer};
/// use dp_data::schema::Schema;
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100 }\n\
///      columns.sex = { type = 'categorical', categories = ['f', 'm'] }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
/// assert_eq!(encoder.feature_names(), ["age", "sex=f", "sex=m", "<intercept>"]);
///
/// let mut row = RowBuffer::new(&encoder);
/// encoder.encode_row(|column| [b"75".as_slice(), b"m"][column], Some(b"yes".as_slice()), &mut row)?;
/// assert_eq!((row.indices(), row.target()), (&[0, 2, 3][..], Some(1.0)));
/// let norm: f64 = row.values().iter().map(|v| v * v).sum::<f64>().sqrt(); // (0.5, 1, 1) / 1.5
/// assert!((norm - 1.0).abs() < 1e-14 && (row.values()[0] - 1.0 / 3.0).abs() < 1e-14);
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "EncoderRecord", into = "EncoderRecord")]
pub struct Encoder {
    input: InputFormat,
    encoding: Encoding,
    columns: Vec<ColumnPlan>,
    label: LabelPlan,
    map: Option<MapPlan>,
    projection: Option<ProjectionPlan>,
    dim: usize,
}

/// The serialised part of an encoder; the rest follows from it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EncoderRecord {
    input: InputFormat,
    encoding: Encoding,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    projection: Option<Projection>,
}

impl From<Encoder> for EncoderRecord {
    fn from(encoder: Encoder) -> Self {
        let projection = encoder.projection();
        Self { input: encoder.input, encoding: encoder.encoding, projection }
    }
}

impl TryFrom<EncoderRecord> for Encoder {
    type Error = DataError;

    fn try_from(record: EncoderRecord) -> Result<Self, DataError> {
        let encoder = match record.input {
            InputFormat::Table(schema) => Self::new(&schema, record.encoding),
            InputFormat::Libsvm(format) => Self::libsvm(format, record.encoding),
            InputFormat::Images(format) => Self::images(format, record.encoding),
        }?;
        match record.projection {
            Some(projection) => encoder.projected(projection),
            None => Ok(encoder),
        }
    }
}

impl Encoder {
    /// Creates an encoder for a table.
    ///
    /// # Errors
    /// `encoding.invalid`, and `encoding.map` for too many functions of numeric columns and for Fourier features outside their
    /// range. A schema is checked when it is created.
    pub fn new(schema: &Schema, encoding: Encoding) -> Result<Self, DataError> {
        encoding.check()?;
        let mut dim = 0;
        let mut columns = Vec::with_capacity(schema.columns().len());
        for column in schema.columns() {
            let plan = ColumnPlan::new(schema, column, &encoding, dim);
            dim += plan.width();
            columns.push(plan);
        }
        let numeric: Vec<Numeric> = columns.iter().filter_map(ColumnPlan::numeric).collect();
        let inputs = Inputs::new(schema, &encoding, &numeric, dim);
        let map = MapPlan::new(&inputs, &encoding)?;
        let dim = map.as_ref().map_or(dim, MapPlan::features);
        let label = LabelPlan::new(schema.label(), schema.missing(), DataErrorKind::CsvBadNumber);
        let dim = dim as usize + usize::from(encoding.intercept > 0.0);
        Ok(Self { input: InputFormat::Table(schema.clone()), encoding, columns, label, map, projection: None, dim })
    }

    /// Creates an encoder for libsvm lines with a declared number of features.
    ///
    /// # Errors
    /// `encoding.invalid`, `encoding.map` for a feature map or Fourier features, `schema.columns` if the number of features is
    /// missing, 0 or too large, or `schema.label`.
    pub fn libsvm(format: LibsvmFormat, encoding: Encoding) -> Result<Self, DataError> {
        encoding.check()?;
        let features = match format.features {
            Some(features) if (1..=MAX_FEATURES).contains(&features) => features,
            other => {
                let message = format!("{} libsvm features declared", other.map_or("no".into(), |n| n.to_string()));
                return Err(DataError::new(DataErrorKind::SchemaColumns, message)
                    .expected(format!("between 1 and {MAX_FEATURES} features")));
            }
        };
        let label = LabelPlan::new(&format.label, &[], DataErrorKind::LibsvmBadValue);
        Self::without_columns(InputFormat::Libsvm(format), encoding, label, features)
    }

    /// Creates an encoder for images.
    ///
    /// # Errors
    /// `encoding.invalid`, `encoding.map` for a feature map or Fourier features, and `schema.columns` for images without bytes or
    /// with too many.
    pub fn images(format: ImageFormat, encoding: Encoding) -> Result<Self, DataError> {
        encoding.check()?;
        let label = LabelPlan::new(&format.label, &[], DataErrorKind::LabelUnknown);
        let features = format.features()?;
        Self::without_columns(InputFormat::Images(format), encoding, label, features)
    }

    fn without_columns(
        input: InputFormat,
        encoding: Encoding,
        label: LabelPlan,
        features: u32,
    ) -> Result<Self, DataError> {
        if !encoding.map.is_linear() || encoding.fourier.is_some() {
            let message = "a feature map or Fourier features of records without columns";
            return Err(DataError::new(DataErrorKind::EncodingMap, message).expected("a table"));
        }
        let dim = features as usize + usize::from(encoding.intercept > 0.0);
        Ok(Self { input, encoding, columns: Vec::new(), label, map: None, projection: None, dim })
    }

    /// Projects the features, replacing any earlier projection. The intercept is not projected and stays last; the norm of rows
    /// is bounded after the projection.
    ///
    /// # Errors
    /// `projection.invalid` for more features than there are, for none, for a seed that is too large or for a matrix that is too
    /// large.
    pub fn projected(self, projection: Projection) -> Result<Self, DataError> {
        let intercept = usize::from(self.encoding.intercept > 0.0);
        let plan = ProjectionPlan::new(projection, self.input_features() as u64)?;
        Ok(Self { dim: projection.features as usize + intercept, projection: Some(plan), ..self })
    }

    /// Sets the functions of numeric columns for which the schema states none.
    ///
    /// # Errors
    /// `encoding.map` for too many functions, and `projection.invalid` if fewer features are left than the projection makes.
    pub fn with_map(&self, map: FeatureMap) -> Result<Self, DataError> {
        self.encoded_by(self.encoding.with_map(map))
    }

    /// Sets the random Fourier features; `None` for none. An encoder without columns is unchanged.
    ///
    /// # Errors
    /// `encoding.map` for Fourier features outside their range, and `projection.invalid` if fewer features are left than the
    /// projection makes.
    pub fn with_fourier(&self, fourier: Option<FourierFeatures>) -> Result<Self, DataError> {
        self.encoded_by(Encoding { fourier, ..self.encoding })
    }

    fn encoded_by(&self, encoding: Encoding) -> Result<Self, DataError> {
        let InputFormat::Table(schema) = &self.input else { return Ok(self.clone()) };
        let encoder = Self::new(schema, encoding)?;
        match self.projection() {
            Some(projection) => encoder.projected(projection),
            None => Ok(encoder),
        }
    }

    /// Sets the treatment of categories that the schema does not list, for records that a model is used on. It is not part of the
    /// serialised encoder.
    ///
    /// # Examples
    /// ```
    /// use dp_data::encode::{Encoder, Encoding, RowBuffer, UnknownCategory};
    /// use dp_data::Schema;
    ///
    /// let schema = Schema::parse(
    ///     "toy.toml",
    ///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
    ///      columns.sex = { type = 'categorical', categories = ['f', 'm'] }",
    /// )?;
    /// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
    /// let mut row = RowBuffer::new(&encoder);
    /// assert!(encoder.encode_row(|_| b"x".as_slice(), None, &mut row).is_err());
    /// let lenient = encoder.with_unknown(UnknownCategory::Other);
    /// lenient.encode_row(|_| b"x".as_slice(), None, &mut row)?;
    /// assert_eq!(row.indices(), &[2]); // the intercept alone
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    #[must_use]
    pub fn with_unknown(self, treatment: UnknownCategory) -> Self {
        let columns = self.columns.into_iter().map(|plan| plan.with_unknown(treatment)).collect();
        Self { columns, ..self }
    }

    /// Returns the number of numeric columns whose functions the schema leaves to [`Encoding::map`].
    pub fn free_columns(&self) -> usize {
        let free = |kind: &ColumnKind| matches!(kind, ColumnKind::Numeric { min, max, cosines: None, .. } if min < max);
        self.schema().map_or(0, |schema| schema.columns().iter().filter(|column| free(&column.kind)).count())
    }

    /// Returns the number of features before any projection, excluding the intercept.
    fn input_features(&self) -> usize {
        match &self.map {
            Some(map) => map.features() as usize,
            None => self.coordinates(),
        }
    }

    /// Returns the number of features before map and projection, excluding the intercept.
    fn coordinates(&self) -> usize {
        match &self.input {
            InputFormat::Table(_) => self.columns.iter().map(|plan| plan.width() as usize).sum(),
            InputFormat::Libsvm(format) => format.features.unwrap_or(0) as usize,
            InputFormat::Images(format) => format.features().unwrap_or(0) as usize,
        }
    }

    /// Returns the projection of the features, if there is one.
    pub fn projection(&self) -> Option<Projection> {
        self.projection.as_ref().map(ProjectionPlan::projection)
    }

    /// Returns the input format.
    pub fn input(&self) -> &InputFormat {
        &self.input
    }

    /// Returns the schema, if the input is a table.
    pub fn schema(&self) -> Option<&Schema> {
        match &self.input {
            InputFormat::Table(schema) => Some(schema),
            InputFormat::Libsvm(_) | InputFormat::Images(_) => None,
        }
    }

    /// Returns the label.
    pub fn label(&self) -> &Label {
        match &self.input {
            InputFormat::Table(schema) => schema.label(),
            InputFormat::Libsvm(format) => &format.label,
            InputFormat::Images(format) => &format.label,
        }
    }

    /// Returns the scaling and the norm bound.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns the number of features per example, including the intercept.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the target of a record of a table as SQL; NULL for a record that does not count.
    pub(crate) fn target_in_sql(&self, dialect: Dialect) -> String {
        self.label.in_sql(&dialect.name(&self.label().column), dialect)
    }

    /// Returns the index of the intercept, the last feature, if there is one.
    pub fn intercept_index(&self) -> Option<usize> {
        (self.encoding.intercept > 0.0).then(|| self.dim - 1)
    }

    /// Returns whether some record could stop the reading of its file instead of becoming a null record. If so, statements about
    /// a record changed to any other hold only for records that conform.
    pub fn can_refuse_records(&self) -> bool {
        match &self.input {
            InputFormat::Table(schema) => schema.can_refuse_records(),
            // Values that are not finite, and features that are not declared.
            InputFormat::Libsvm(_) => true,
            InputFormat::Images(format) => format.label.can_refuse(),
        }
    }

    /// Returns the bound on the exact Euclidean norm of every row. Always 1.
    pub fn row_bound(&self) -> f64 {
        1.0
    }

    /// Returns the bound on the magnitude of every target: 1 for two classes and for numbers, `C - 1` for `C` classes, whose
    /// targets are their positions.
    pub fn target_bound(&self) -> f64 {
        self.label().target_bound()
    }

    /// Returns the names of the features, in order: `age`, `work=private`, `<intercept>`.
    ///
    /// Features of libsvm files are named by their index in the file, those of images by their position.
    pub fn feature_names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.input_features() + 1);
        match &self.input {
            InputFormat::Table(schema) => {
                for (column, plan) in schema.columns().iter().zip(&self.columns) {
                    match &column.kind {
                        ColumnKind::Drop => {}
                        ColumnKind::Numeric { .. } | ColumnKind::Indicator { .. } => names.push(column.name.clone()),
                        ColumnKind::Categorical { categories, .. } => {
                            names.extend(categories.iter().map(|category| format!("{}={category}", column.name)));
                            if plan.width() as usize > categories.len() {
                                names.push(format!("{}=<missing>", column.name));
                            }
                        }
                    }
                }
            }
            InputFormat::Libsvm(format) => {
                let first = u64::from(!format.zero_based);
                let features = u64::from(format.features.unwrap_or(0));
                names.extend((first..first + features).map(|index| index.to_string()));
            }
            InputFormat::Images(format) => names.extend(format.feature_names(self.input_features() as u32)),
        }
        if let Some(map) = &self.map {
            names = map.feature_names(names);
        }
        if let Some(projection) = &self.projection {
            names = projection.feature_names(names);
        }
        if self.encoding.intercept > 0.0 {
            names.push("<intercept>".into());
        }
        names
    }

    /// Returns whether examples are best stored as compressed rows. This depends on the schema only: at most 0.35 of the features
    /// are nonzero when every numeric column counts as one and every categorical column as one, before any selection of
    /// coordinates. libsvm files are sparse; images and Gaussian projections are dense.
    pub fn prefers_sparse(&self) -> bool {
        if self.projection.as_ref().is_some_and(|projection| !projection.keeps_sparsity()) {
            return false;
        }
        match &self.input {
            InputFormat::Libsvm(_) => true,
            InputFormat::Images(_) => false,
            InputFormat::Table(_) => {
                let intercept = usize::from(self.encoding.intercept > 0.0);
                is_sparse(self.nonzero_features() + intercept, self.input_features() + intercept)
            }
        }
    }

    /// Returns the maximum number of nonzero features of a record of a table, without the intercept.
    fn nonzero_features(&self) -> usize {
        let used = self.used_columns();
        self.map.as_ref().map_or(used, |map| used - map.columns() + map.dense_features())
    }

    /// Returns the size of a stored record at this stage, from public numbers alone: for compressed rows the largest. `None`
    /// for libsvm, where it depends on the records.
    #[cfg(feature = "spool")]
    pub(crate) fn row_bytes<F>(&self, stage: Stage) -> Option<u64> {
        let (dim, sparse) = self.shape_of(stage);
        let others = size_of::<F>() + 1;
        let bytes = match (&self.input, stage) {
            (InputFormat::Libsvm(_), _) => return None,
            _ if !sparse => dim * size_of::<F>() + others,
            (_, Stage::Coordinates) => self.used_columns() * (size_of::<F>() + 4) + size_of::<usize>() + others,
            (_, Stage::Features) => (self.nonzero_features() + 1) * (size_of::<F>() + 4) + size_of::<usize>() + others,
        };
        Some(bytes as u64)
    }

    fn used_columns(&self) -> usize {
        self.columns.iter().filter(|plan| plan.width() > 0).count()
    }

    /// Returns whether some record can become a null record.
    pub fn can_be_neutral(&self) -> bool {
        match &self.input {
            InputFormat::Table(schema) => schema.can_be_neutral(),
            InputFormat::Libsvm(format) => format.label.can_be_neutral(),
            InputFormat::Images(format) => format.label.can_be_neutral(),
        }
    }
}

/// Returns whether rows with this many nonzero features are best stored as compressed rows.
fn is_sparse(nonzero: usize, features: usize) -> bool {
    nonzero as f64 <= SPARSE_SHARE * features as f64
}
