//! Errors: architectures whose layers do not fit, and data of another shape.

use core::fmt;

use dp_data::images::Shape;

/// A layer of an architecture: its position, counted from 1, and its kind. Position 0 is the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerName {
    /// The position among the layers, from 1; 0 for the input.
    pub position: usize,
    /// The kind, e.g. `convolution`.
    pub kind: &'static str,
}

impl LayerName {
    /// The input of a network.
    pub const INPUT: Self = Self { position: 0, kind: "input" };
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.position == 0 { f.write_str("the input") } else { write!(f, "layer {} ({})", self.position, self.kind) }
    }
}

/// The error type of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The output of a layer does not fit the next one.
    #[error("{layer} cannot follow {previous}, whose output is {found}: expected {expected}")]
    Shape {
        /// The layer.
        layer: LayerName,
        /// The layer before it, or the input.
        previous: LayerName,
        /// The output of the layer before it: height x width x channels.
        found: Shape,
        /// The input that the layer accepts.
        expected: String,
    },
    /// An activation directly follows an activation.
    #[error("{layer} follows {previous}: two activations in a row are not supported; remove one of them")]
    Activations {
        /// The second of them.
        layer: LayerName,
        /// The first of them.
        previous: LayerName,
    },
    /// A setting of a layer is out of its range.
    #[error("{layer}: {setting} = {value} must lie in {range}")]
    Setting {
        /// The layer.
        layer: LayerName,
        /// The name of the setting.
        setting: &'static str,
        /// The refused value.
        value: usize,
        /// The accepted range.
        range: &'static str,
    },
    /// A layer is too large.
    #[error("{layer} has more than {most} {what}")]
    TooLarge {
        /// The layer.
        layer: LayerName,
        /// The excessive quantity.
        what: &'static str,
        /// The largest accepted number.
        most: usize,
    },
    /// The input has no values, or too many.
    #[error("the input has {found} values; expected between 1 and {most} values")]
    Input {
        /// The shape of the input.
        found: Shape,
        /// The largest accepted number of values.
        most: usize,
    },
    /// The last layer is not a linear layer of at least two units.
    #[error(
        "the network ends with {last}; its last layer must be `linear`, with one unit for each of at least 2 classes"
    )]
    Last {
        /// The last layer, or the input if there is no layer.
        last: LayerName,
    },
    /// A layer that mixes the examples of a batch.
    #[error(
        "`{kind}` mixes the examples of a batch, so that the gradient of one example does not exist and cannot be clipped; \
         use `group-norm`, which normalises each example on its own"
    )]
    MixesExamples {
        /// The kind of the layer.
        kind: String,
    },
    /// No layer has this kind.
    #[error(
        "`{kind}` is not a kind of layer: expected `linear`, `convolution`, `relu`, `tanh`, `max-pool`, `average-pool` or \
         `group-norm`"
    )]
    UnknownLayer {
        /// The given kind.
        kind: String,
    },
    /// A layer lacks a setting, or has one that it does not use.
    #[error("a layer of kind `{kind}` {problem} the setting `{setting}`")]
    LayerSetting {
        /// The kind of the layer.
        kind: &'static str,
        /// `needs`, or `does not have`.
        problem: &'static str,
        /// The setting.
        setting: &'static str,
    },
    /// No architecture has this name.
    #[error(
        "{text:?} is not an architecture: expected `mnist-mlp`, `fashion-mlp`, `small-cnn`, `cifar-cnn`, `tempered-cnn` or \
         `mlp:<width>,<width>,..`"
    )]
    UnknownArchitecture {
        /// The given text.
        text: String,
    },
    /// The data has another shape than the network.
    #[error(
        "the data has values of shape {found} in {found_classes} classes; the network expects {expected} in {classes} classes"
    )]
    Data {
        /// The shape of the data.
        found: Shape,
        /// The number of classes of the data.
        found_classes: usize,
        /// The input of the network.
        expected: Shape,
        /// The number of classes of the network.
        classes: usize,
    },
}
