//! The scaling of features and the norm bound of rows.

use serde::{Deserialize, Serialize};

use super::{FeatureMap, FourierFeatures};
use crate::error::{DataError, DataErrorKind};

/// The scaling of features and the norm bound of rows; all of it is public.
///
/// # Formula
/// ```text
/// t = (g(clamp(v, min, max)) - g(min)) / (g(max) - g(min)),   g = log1p for columns that say so, else the identity
/// numeric feature      2 t - 1 (Symmetric)   or   t (Unit),   or the functions of a FeatureMap
/// joint features       those of FourierFeatures, if any
/// categorical feature  1 at the record's category, 0 elsewhere
/// intercept            a constant, the last feature
/// row                  x / |x| (Unit)   or   x / max(1, |x|) (Clip),   the intercept included in x
/// ```
/// With an intercept of 1 no row is shorter than 1, so `Clip` and `Unit` are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoding {
    /// The interval to which a numeric column's public range is mapped.
    pub range: NumericRange,
    /// The method that bounds the row's norm by 1.
    pub row_norm: RowNorm,
    /// The constant of the intercept before the row is scaled; 0 for none.
    pub intercept: f64,
    /// The functions of numeric columns.
    #[serde(default, skip_serializing_if = "FeatureMap::is_linear")]
    pub map: FeatureMap,
    /// Random Fourier features of all columns together; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fourier: Option<FourierFeatures>,
}

/// The interval to which numeric columns are mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumericRange {
    /// `[-1, 1]`.
    Symmetric,
    /// `[0, 1]`.
    Unit,
}

/// The method that bounds a row's norm by 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowNorm {
    /// Rows with a larger norm are scaled to norm 1.
    Clip,
    /// Every nonzero row is scaled to norm 1.
    Unit,
}

impl Encoding {
    /// Unit rows, the default: numeric columns mapped to `[-1, 1]`, intercept 1, the row divided by its norm. Short rows use the
    /// whole ball, and numeric columns have more weight relative to one-hot ones.
    pub const UNIT_ROWS: Self = Self {
        range: NumericRange::Symmetric,
        row_norm: RowNorm::Unit,
        intercept: 1.0,
        map: FeatureMap::LINEAR,
        fourier: None,
    };

    /// Returns the encoding common in the literature: numeric columns mapped to `[0, 1]`, intercept 1, and the given row norm.
    pub const fn unit_scale(row_norm: RowNorm) -> Self {
        Self { range: NumericRange::Unit, row_norm, ..Self::UNIT_ROWS }
    }

    /// Sets the constant of the intercept; 0 for none.
    pub const fn with_intercept(self, intercept: f64) -> Self {
        Self { intercept, ..self }
    }

    /// Sets the functions of numeric columns.
    pub const fn with_map(self, map: FeatureMap) -> Self {
        Self { map, ..self }
    }

    /// Adds random Fourier features of all columns together.
    pub const fn with_fourier(self, fourier: FourierFeatures) -> Self {
        Self { fourier: Some(fourier), ..self }
    }

    pub(super) fn check(&self) -> Result<(), DataError> {
        if self.intercept.is_finite() && self.intercept >= 0.0 {
            return Ok(());
        }
        let message = format!("the intercept is {:?}", self.intercept);
        Err(DataError::new(DataErrorKind::EncodingInvalid, message).expected("a finite number, 0 or above"))
    }
}

impl Default for Encoding {
    fn default() -> Self {
        Self::UNIT_ROWS
    }
}
