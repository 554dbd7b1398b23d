//! The input formats of an encoder, with their public properties.

use serde::{Deserialize, Serialize};

use crate::error::{DataError, DataErrorKind};
use crate::schema::{Label, Others, Schema};

/// Maximum number of features of a libsvm file or an image, excluding the intercept. A model names each of them, so a stray large
/// index is refused instead of consuming memory.
pub const MAX_FEATURES: u32 = 1 << 26;

/// The input of an encoder.
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

/// The public properties of a libsvm file. Values are used unchanged; only the row norm is bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibsvmFormat {
    /// Number of features, excluding the intercept. `None`: taken from the data when it is loaded.
    pub features: Option<u32>,
    /// True if `features` was taken from the data, and is therefore assumed public.
    #[serde(default)]
    pub features_from_data: bool,
    /// True if the first index is 0 and not 1.
    #[serde(default)]
    pub zero_based: bool,
    /// The classes. Values are compared as numbers if both are numbers, so that `+1`, `1` and `1.0` are the same.
    pub label: Label,
}

impl Default for LibsvmFormat {
    /// Returns indices from 1, unknown features, positive `1`, negative `-1` or `0`.
    fn default() -> Self {
        let label = Label::two_classes("label", vec!["1".into()], vec!["-1".into(), "0".into()], Others::Error);
        Self { features: None, features_from_data: false, zero_based: false, label }
    }
}

/// The public properties of images such as MNIST: bytes in an IDX file.
///
/// # Formula
/// ```text
/// feature  min(byte / max, 1), in [0, 1]; pixels row after row
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFormat {
    /// Height and width, or other dimensions of one image: at least one.
    pub shape: Vec<u32>,
    /// The classes; a label is the decimal number of its byte.
    pub label: Label,
    /// The largest value of a byte, publicly known.
    #[serde(default = "largest_byte", skip_serializing_if = "is_largest_byte")]
    pub max: u8,
}

const fn largest_byte() -> u8 {
    u8::MAX
}

fn is_largest_byte(max: &u8) -> bool {
    *max == largest_byte()
}

impl ImageFormat {
    /// Creates the format of images of this shape, whose bytes are up to 255.
    pub fn new(shape: Vec<u32>, label: Label) -> Self {
        Self { shape, label, max: largest_byte() }
    }

    /// Returns the number of features, which are the bytes of an image, if it can be read.
    pub(super) fn features(&self) -> Result<u32, DataError> {
        if self.max == 0 {
            return Err(DataError::new(DataErrorKind::SchemaColumns, "images of pixels up to 0")
                .expected("a largest value of a pixel from 1 to 255"));
        }
        let features = self.shape.iter().try_fold(1_u32, |product, &length| product.checked_mul(length));
        match features {
            Some(features) if (1..=MAX_FEATURES).contains(&features) && !self.shape.is_empty() => Ok(features),
            _ => Err(DataError::new(DataErrorKind::SchemaColumns, format!("images of shape {:?}", self.shape))
                .expected(format!("between 1 and {MAX_FEATURES} bytes in an image"))),
        }
    }

    /// Returns names such as `pixel[3,17]` for the byte in row 3 and column 17, counted from 0.
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
