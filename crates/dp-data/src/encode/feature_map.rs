//! Functions of numeric columns as features: cosines of a coordinate, and products of pairs of columns.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::coordinate::Coordinate;
use super::fourier::{FourierFeatures, FourierPlan};
use super::{Encoding, RowBuffer};
use crate::error::{DataError, DataErrorKind};
use crate::schema::{Column, ColumnKind, Scale, Schema};

/// Maximum number of cosines of a column.
pub const MAX_COSINES: u32 = 64;

/// Maximum number of features that a map makes of the numeric columns: a model names each of them.
pub const MAX_MAPPED: u64 = 1 << 20;

/// The functions of numeric columns that become features, where the schema does not say otherwise for a column.
///
/// With cosines a linear model is a sum of one curve per column. On a logarithmic scale it depends little on how generous the
/// public ranges are.
///
/// # Formula
/// With z the coordinate of a column in `[0, 1]` on its [`Scale`], its features are
/// ```text
/// no cosines    2 z - 1 (Symmetric)   or   z (Unit)
/// K cosines     cos(pi j z)/sqrt(j),   j = 1, ..., K
/// pairs         cos(pi z) cos(pi z'),  for every two numeric columns with a range that has a width
/// ```
/// The cosines follow from the first by Chebyshev's recurrence `T(j+1) = 2 T(1) T(j) - T(j-1)`.
///
/// # Privacy
/// A map depends on the schema and on itself, not on records, and the norm of rows is bounded after it.
///
/// # Examples
/// ```
/// use dp_data::encode::{Encoder, Encoding, FeatureMap, RowBuffer};
/// use dp_data::Schema;
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 120 }\n\
///      columns.sex = { type = 'categorical', categories = ['f', 'm'] }",
/// )?;
/// let encoding = Encoding::UNIT_ROWS.with_map(FeatureMap { cosines: 2, ..FeatureMap::LINEAR });
/// let encoder = Encoder::new(&schema, encoding)?;
/// assert_eq!(encoder.feature_names(), ["age~1", "age~2", "sex=f", "sex=m", "<intercept>"]);
/// let mut row = RowBuffer::new(&encoder);
/// encoder.encode_row(|column| [b"60".as_slice(), b"m"][column], None, &mut row)?;
/// assert_eq!(row.indices(), [1, 3, 4]); // cos(pi/2) = 0, cos(pi)/sqrt(2), m, the intercept
/// # Ok::<(), dp_data::DataError>(())
/// ```
///
/// # References
/// Cosines are the additive model's basis that is orthogonal for uniform z; pairs are the first term of two variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureMap {
    /// The scale of coordinates.
    pub scale: Scale,
    /// K: cosines per column, at most [`MAX_COSINES`]; 0 for the coordinate itself.
    pub cosines: u32,
    /// True if products of pairs of columns are features.
    pub pairs: bool,
}

impl FeatureMap {
    /// The coordinate of each column on the linear scale, and nothing else.
    pub const LINEAR: Self = Self { scale: Scale::Linear, cosines: 0, pairs: false };

    /// Returns K cosines of each column, on a scale that follows from its range; lines for K = 0.
    pub const fn curves(cosines: u32) -> Self {
        Self { scale: if cosines == 0 { Scale::Linear } else { Scale::ByRange }, cosines, pairs: false }
    }

    /// Returns whether this is [`LINEAR`](Self::LINEAR).
    pub fn is_linear(&self) -> bool {
        *self == Self::LINEAR
    }
}

/// A numeric column before the map: one feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Numeric {
    /// Its index before the map.
    pub(super) feature: u32,
    /// Its functions.
    pub(super) functions: Functions,
    /// True if the feature is u, false if it is 2u - 1.
    pub(super) unit: bool,
}

/// The functions of a numeric column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Functions {
    pub(super) coordinate: Coordinate,
    /// K
    pub(super) cosines: u32,
}

impl Numeric {
    fn is_mapped(&self) -> bool {
        self.functions.cosines > 0 || self.functions.coordinate != Coordinate::Linear
    }

    /// Returns the coordinate z of a column with this feature before the map.
    #[inline]
    pub(super) fn z(&self, value: f64) -> f64 {
        self.functions.coordinate.of(self.share(value))
    }

    #[inline(always)]
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.unit { value } else { 0.5 * (value + 1.0) }
    }

    /// Returns the only feature of a column without cosines.
    #[inline(always)]
    pub(super) fn single_feature(&self, z: f64) -> f64 {
        if self.unit { z } else { 2.0 * z - 1.0 }
    }

    /// Returns the number of features.
    fn width(&self) -> u32 {
        self.functions.cosines.max(1)
    }

    /// Returns the mean of the squared norm of the features, for uniform z.
    fn squared_norm(&self) -> f64 {
        match self.functions.cosines {
            0 => 1.0 / 3.0,
            cosines => (1..=cosines).map(|j| 0.5 / f64::from(j)).sum(),
        }
    }
}

/// The rows before a map.
pub(super) struct Inputs<'a> {
    /// The numeric columns, by increasing feature.
    numeric: &'a [Numeric],
    /// The number of features.
    features: u32,
    /// The mean of the squared norm of those of other columns, and of the intercept.
    squared_norm_of_others: f64,
}

impl<'a> Inputs<'a> {
    /// States the rows of a schema's `features` features, among them those of `numeric` columns.
    pub(super) fn new(schema: &Schema, encoding: &Encoding, numeric: &'a [Numeric], features: u32) -> Self {
        let of_column = |column: &Column| match column.kind {
            ColumnKind::Categorical { .. } => 1.0,
            ColumnKind::Indicator { .. } => 0.5,
            ColumnKind::Numeric { .. } | ColumnKind::Drop => 0.0,
        };
        let of_columns: f64 = schema.columns().iter().map(of_column).sum();
        Self { numeric, features, squared_norm_of_others: encoding.intercept * encoding.intercept + of_columns }
    }
}

/// A map with precomputed values, from rows with one feature per numeric column to rows with all functions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MapPlan {
    /// Numeric columns with cosines, in pairs or in Fourier features, by increasing feature.
    columns: Vec<Numeric>,
    /// `1/sqrt(j)` for j = 1, 2, ...
    decay: Vec<f64>,
    /// Index of the first pair, if there are pairs.
    pairs: Option<u32>,
    /// The last features, if any.
    fourier: Option<FourierPlan>,
    /// Number of features after the map.
    features: u32,
}

impl MapPlan {
    /// Creates the plan; `None` if the map changes no row.
    pub(super) fn new(inputs: &Inputs<'_>, encoding: &Encoding) -> Result<Option<Self>, DataError> {
        let Encoding { map, fourier, .. } = encoding;
        let taken = |column: &Numeric| map.pairs || fourier.is_some() || column.is_mapped();
        let columns: Vec<Numeric> = inputs.numeric.iter().copied().filter(taken).collect();
        let pairs = map.pairs && columns.len() > 1;
        if !pairs && fourier.is_none() && !columns.iter().any(Numeric::is_mapped) {
            return Ok(None);
        }
        let most = columns.iter().map(|column| column.functions.cosines).max().unwrap_or(0);
        let of_columns: u64 = columns.iter().map(|column| u64::from(column.width())).sum();
        let number = columns.len() as u64;
        let of_pairs = if pairs { number.saturating_mul(number - 1) / 2 } else { 0 };
        let of_fourier = fourier.map_or(0, |fourier| fourier.features);
        let mapped = of_columns.saturating_add(of_pairs).saturating_add(of_fourier.into());
        let features = u64::from(inputs.features).saturating_sub(number).saturating_add(mapped);
        if u64::from(of_fourier) > MAX_MAPPED {
            let message = format!("{of_fourier} Fourier features");
            return Err(DataError::new(DataErrorKind::EncodingMap, message).expected(format!("at most {MAX_MAPPED}")));
        }
        if most > MAX_COSINES || mapped > MAX_MAPPED || features >= u64::from(u32::MAX) {
            let message = format!("{most} cosines of a column, and {mapped} features of {number} numeric columns");
            return Err(DataError::new(DataErrorKind::EncodingMap, message)
                .expected(format!("at most {MAX_COSINES} cosines and {MAX_MAPPED} features")));
        }
        let plan = |fourier: &FourierFeatures| {
            // Products of two cosines have a mean square of 1/4.
            let of_columns: f64 = columns.iter().map(Numeric::squared_norm).sum();
            let squared_norm = inputs.squared_norm_of_others + of_columns + 0.25 * of_pairs as f64;
            let is_numeric = |feature| columns.binary_search_by_key(&feature, |column| column.feature).is_ok();
            FourierPlan::new(fourier, inputs.features, is_numeric, squared_norm)
        };
        let fourier = fourier.as_ref().map(plan).transpose()?;
        let decay = (1..=most).map(|j| 1.0 / f64::from(j).sqrt()).collect();
        // All are below 2^32.
        let (features, first) = (features as u32, (features - u64::from(of_fourier) - of_pairs) as u32);
        Ok(Some(Self { columns, decay, pairs: pairs.then_some(first), fourier, features }))
    }

    /// Returns the number of features after the map.
    pub(super) fn features(&self) -> u32 {
        self.features
    }

    /// Returns the number of Fourier features.
    fn of_fourier(&self) -> u32 {
        self.fourier.as_ref().map_or(0, FourierPlan::features)
    }

    /// Returns whether there are features of all columns together.
    pub(super) fn is_joint(&self) -> bool {
        self.fourier.is_some()
    }

    /// Returns the number of features that are never 0 by design: those of numeric columns, and Fourier features.
    pub(super) fn dense_features(&self) -> usize {
        let after = self.pairs.unwrap_or(self.features - self.of_fourier());
        let joint = (self.features - after) as usize;
        joint + self.columns.iter().map(|column| column.width() as usize).sum::<usize>()
    }

    /// Returns the number of numeric columns that it maps.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns the index of the first product of a pair; `None` if pairs are no features.
    pub(super) fn first_pair(&self) -> Option<u32> {
        self.pairs
    }

    /// Returns the features that the map makes of one column's `width` features from `first` on.
    pub(super) fn range_of(&self, first: u32, width: u32) -> core::ops::Range<u32> {
        let before = self.columns.iter().take_while(|column| column.feature < first);
        let first_mapped = first + before.map(|column| column.width() - 1).sum::<u32>();
        let mapped = self.columns.iter().find(|column| column.feature == first).map_or(width, Numeric::width);
        first_mapped..first_mapped + mapped
    }

    /// Returns the names of the features, from those before the map.
    pub(super) fn feature_names(&self, names: Vec<String>) -> Vec<String> {
        let mut mapped = Vec::with_capacity(self.features as usize);
        let mut columns = self.columns.iter().peekable();
        for (index, name) in (0..).zip(&names) {
            match columns.next_if(|column| column.feature == index) {
                Some(column) if column.functions.cosines > 0 => {
                    mapped.extend((1..=column.functions.cosines).map(|j| format!("{name}~{j}")));
                }
                _ => mapped.push(name.clone()),
            }
        }
        if self.pairs.is_some() {
            for (i, one) in self.columns.iter().enumerate() {
                mapped.extend(
                    self.columns[..i]
                        .iter()
                        .map(|other| format!("{}*{}", names[other.feature as usize], names[one.feature as usize])),
                );
            }
        }
        mapped.extend((1..=self.of_fourier()).map(|i| format!("<Fourier {i}>")));
        mapped
    }

    /// Returns the columns with functions, and `1/sqrt(j)` for j = 1, 2, ..., if the map makes features of single columns only.
    #[cfg(feature = "spool")]
    pub(super) fn curves(&self) -> Option<(&[Numeric], &[f64])> {
        (self.pairs.is_none() && self.fourier.is_none()).then_some((&self.columns, &self.decay))
    }

    /// Maps the features collected so far.
    pub(super) fn apply(&self, row: &mut RowBuffer) {
        self.map_row(row, true);
    }

    /// As [`apply`](Self::apply), without features of several columns.
    pub(super) fn apply_to_columns(&self, row: &mut RowBuffer) {
        self.map_row(row, false);
    }

    fn map_row(&self, row: &mut RowBuffer, with_joint: bool) {
        let fourier = self.fourier.as_ref().filter(|_| with_joint);
        let (indices, values) = row.take_features();
        let mut firsts = row.take_sums();
        // The coordinates v = 2z - 1, then the first cosines of all columns at once.
        let mut entries = indices.iter().zip(&values).peekable();
        for column in &self.columns {
            while entries.next_if(|(index, _)| **index < column.feature).is_some() {}
            let entry = entries.next_if(|(index, _)| **index == column.feature);
            firsts.push(2.0 * column.z(entry.map_or(0.0, |(_, value)| *value)) - 1.0);
        }
        let mut joint = row.take_joint();
        if let Some(fourier) = fourier {
            let of_numeric = self.columns.iter().map(|column| column.feature).zip(firsts.iter().copied());
            let is_other = |index: &u32| self.columns.binary_search_by_key(index, |column| column.feature).is_err();
            let others = indices.iter().copied().zip(values.iter().copied()).filter(|(index, _)| is_other(index));
            joint.coordinates.extend(of_numeric.chain(others));
            fourier.apply(&joint.coordinates, &mut joint.features);
        }
        firsts.iter_mut().for_each(|v| *v = -sin_half_pi(*v));
        let mut entries = indices.iter().copied().zip(values.iter().copied()).peekable();
        let (mut shift, mut run) = (0, [0.0; MAX_COSINES as usize]);
        for (column, &first) in self.columns.iter().zip(&firsts) {
            while let Some((index, value)) = entries.next_if(|(index, _)| *index < column.feature) {
                row.push(index + shift, value);
            }
            let entry = entries.next_if(|(index, _)| *index == column.feature);
            let (index, cosines) = (column.feature + shift, column.functions.cosines as usize);
            if cosines == 0 {
                row.push(index, column.single_feature(column.z(entry.map_or(0.0, |(_, value)| value))));
                continue;
            }
            let (mut before, mut now) = (1.0, first);
            for (place, decay) in run.iter_mut().zip(&self.decay[..cosines]) {
                *place = decay * now;
                (before, now) = (now, 2.0 * first * now - before);
            }
            row.push_all(index, &run[..cosines]);
            shift += column.functions.cosines - 1;
        }
        for (index, value) in entries {
            row.push(index + shift, value);
        }
        if let Some(mut index) = self.pairs.filter(|_| with_joint) {
            for (i, one) in firsts.iter().enumerate() {
                for other in &firsts[..i] {
                    row.push(index, one * other);
                    index += 1;
                }
            }
        }
        if let Some(fourier) = fourier {
            row.push_all(self.features - fourier.features(), &joint.features);
        }
        row.recycle(indices, values, firsts, joint);
    }
}

/// Returns `sin(pi v/2)`, for v in `[-1, 1]`; `cos(pi z)` is its negative at `v = 2z - 1`.
///
/// The Taylor polynomial of degree 21, in additions and multiplications alone: a loop over it vectorises, and its bits are the
/// same on every machine. Its remainder is below `(pi/2)^23/23! < 2e-18`; with rounding it is within three units in the last
/// place of libm's sine (tested).
#[inline]
pub(super) fn sin_half_pi(v: f64) -> f64 {
    let square = v * v;
    let sum = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| sum * square + coefficient);
    (v * sum).clamp(-1.0, 1.0)
}

/// `(-1)^k (pi/2)^(2k+1)/(2k+1)!`
pub(super) const COEFFICIENTS: [f64; 11] = {
    let mut coefficients = [core::f64::consts::FRAC_PI_2; 11];
    let mut k = 1;
    while k < coefficients.len() {
        let factors = (2 * k * (2 * k + 1)) as f64;
        coefficients[k] = -coefficients[k - 1] * (SQUARE / factors);
        k += 1;
    }
    coefficients
};

/// `(pi/2)^2`
const SQUARE: f64 = 2.467_401_100_272_339_7;
