//! What an encoder reads, and what is publicly known about it.

use serde::{Deserialize, Serialize};

use crate::error::{DataError, DataErrorKind};
use crate::schema::{Label, Others, Schema};

/// The most features of a libsvm file or an image, the intercept not counted: a model names each of them, so that a stray index far
/// beyond what was meant is refused rather than paid for with memory.
pub const MAX_FEATURES: u32 = 1 << 26;

/// What the encoder reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputFormat {
    /// A table with named columns.
    Table(Schema),
    /// Sparse text lines `label index:value ...`.
    Libsvm(LibsvmFormat),
    /// Images in one IDX file, their labels in another.
    Images(ImageFormat),
}

/// What is publicly known about a libsvm file. Values are taken as they are; only the row norm is bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibsvmFormat {
    /// Number of features, the intercept not counted. `None`: taken from the data when it is loaded.
    pub features: Option<u32>,
    /// Whether `features` was taken from the data, and so is assumed public.
    #[serde(default)]
    pub features_from_data: bool,
    /// Whether the first index is 0 rather than 1.
    #[serde(default)]
    pub zero_based: bool,
    /// The classes. Values are compared as numbers where both are, so that `+1`, `1` and `1.0` are the same.
    pub label: Label,
}

impl Default for LibsvmFormat {
    /// Indices from 1, features unknown, positive `1`, negative `-1` or `0`.
    fn default() -> Self {
        let label = Label::two_classes("label", vec!["1".into()], vec!["-1".into(), "0".into()], Others::Error);
        Self { features: None, features_from_data: false, zero_based: false, label }
    }
}

/// What is publicly known about images, as MNIST's: bytes in an IDX file.
///
/// # Formula
/// ```text
/// feature  byte / 255, in [0, 1]; pixels row after row
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFormat {
    /// Height and width, or whatever the dimensions of one image are: at least one.
    pub shape: Vec<u32>,
    /// The classes; a label is the number that its byte is.
    pub label: Label,
}

impl ImageFormat {
    /// Number of features: bytes of an image, if it is one that can be read.
    pub(super) fn features(&self) -> Result<u32, DataError> {
        let features = self.shape.iter().try_fold(1_u32, |product, &length| product.checked_mul(length));
        match features {
            Some(features) if (1..=MAX_FEATURES).contains(&features) && !self.shape.is_empty() => Ok(features),
            _ => Err(DataError::new(DataErrorKind::SchemaColumns, format!("images of shape {:?}", self.shape))
                .expected(format!("between 1 and {MAX_FEATURES} bytes in an image"))),
        }
    }

    /// `pixel[3,17]` for the byte in row 3 and column 17, from 0.
    pub(super) fn feature_names(&self, features: u32) -> impl Iterator<Item = String> + '_ {
        (0..features).map(|feature| {
            let mut rest = feature;
            let mut place: Vec<String> = Vec::with_capacity(self.shape.len());
            for &length in self.shape.iter().rev() {
                place.push((rest % length).to_string());
                rest /= length;
            }
            place.reverse();
            format!("pixel[{}]", place.join(","))
        })
    }
}
