//! Architectures: an input and a list of layers, as plain data.

mod named;
mod plan;
#[cfg(test)]
mod tests;

use dp_data::images::Shape;

pub use crate::layer::{Activation, Layer};
pub(crate) use plan::{Planned, Task};

use crate::error::Error;

/// A network as data: the shape of its input and its layers in order. The last layer is linear, with one unit for each class;
/// its outputs are the logits of the softmax cross-entropy.
///
/// Nothing is checked until it is used: [`parameters`](Self::parameters), [`classes`](Self::classes) and
/// [`Network::new`](crate::Network::new) infer the shapes layer by layer and refuse layers that do not fit.
///
/// # Limits
/// At most 1024 layers, 2^24 values per example in each, 2^27 values in the windows of one example and 2^31 parameters.
///
/// # Examples
/// ```
/// use dp_nets::{Architecture, Layer};
/// use dp_data::images::Shape;
///
/// let input = Shape { height: 8, width: 8, channels: 1 };
/// let convolution = Layer::Convolution { channels: 4, kernel: [3, 3], stride: [1, 1], padding: [0, 0] };
/// let pool = Layer::MaxPool { size: [2, 2], stride: [2, 2] };
/// let mut architecture = Architecture { input, layers: vec![convolution, Layer::Tanh, pool, Layer::Linear { units: 10 }] };
/// assert_eq!(architecture.parameters()?, (9 * 4 + 4) + (3 * 3 * 4 * 10 + 10));
///
/// architecture.layers[2] = Layer::MaxPool { size: [7, 7], stride: [7, 7] };
/// let error = architecture.parameters().unwrap_err().to_string();
/// assert_eq!(
///     error,
///     "layer 3 (max-pool) cannot follow layer 2 (tanh), whose output is 6 x 6 x 4: expected at least 7 x 7 pixels"
/// );
/// # Ok::<(), dp_nets::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "kebab-case"))]
pub struct Architecture {
    /// The shape of an input. In text `[height, width, channels]`, or `[features]` for rows.
    #[cfg_attr(feature = "serde", serde(with = "shape"))]
    pub input: Shape,
    /// The layers.
    pub layers: Vec<Layer>,
}

impl Architecture {
    /// Returns the number of parameters.
    ///
    /// # Errors
    /// Layers that do not fit, or limits that are exceeded.
    pub fn parameters(&self) -> Result<usize, Error> {
        Ok(self.plan()?.iter().map(|planned| planned.parameters.end).max().unwrap_or(0))
    }

    /// Returns the number of classes: the units of the last layer.
    ///
    /// # Errors
    /// As [`parameters`](Self::parameters).
    pub fn classes(&self) -> Result<usize, Error> {
        Ok(self.plan()?.last().map_or(0, |planned| planned.outputs()))
    }

    /// Returns the shape of the input of rows with `features` numbers.
    pub fn rows(features: usize) -> Shape {
        Shape { height: 1, width: 1, channels: features }
    }
}

/// Shapes as arrays.
#[cfg(feature = "serde")]
mod shape {
    use super::{Architecture, Shape};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(shape: &Shape, serializer: S) -> Result<S::Ok, S::Error> {
        [shape.height, shape.width, shape.channels].serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Shape, D::Error> {
        match Vec::<usize>::deserialize(deserializer)?[..] {
            [features] => Ok(Architecture::rows(features)),
            [height, width, channels] => Ok(Shape { height, width, channels }),
            _ => Err(D::Error::custom("expected `[height, width, channels]` or `[features]`")),
        }
    }
}
