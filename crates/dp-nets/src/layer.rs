//! Layers as plain data.

use core::fmt;

#[cfg(feature = "serde")]
mod fields;

/// A function applied to each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Activation {
    /// `max(z, 0)`, with derivative 0 at 0.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// Returns the layer that applies it.
    pub fn layer(self) -> Layer {
        match self {
            Self::Relu => Layer::Relu,
            Self::Tanh => Layer::Tanh,
        }
    }
}

/// A layer of an [`Architecture`](crate::Architecture). Its input is the output of the layer before it, an image of
/// `height x width x channels`; pairs of numbers are rows and columns.
///
/// # Text
/// With the feature `serde` a layer is a table with a `kind` and the settings of that kind:
/// ```toml
/// [[layers]]
/// kind = "convolution"        # also: linear, relu, tanh, max-pool, average-pool, group-norm
/// channels = 16
/// kernel = [5, 5]
/// stride = [1, 1]             # this if omitted
/// padding = [0, 0]            # this if omitted
/// ```
/// `batch-norm` is refused: it mixes the examples of a batch, so that the gradient of one example does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "fields::Fields", into = "fields::Fields"))]
pub enum Layer {
    /// `z = a Wᵀ + b` of all values of the input. The output is `1 x 1 x units`. Parameters: `W` (`units x inputs`, row by
    /// row), `b`.
    Linear {
        /// Number of outputs, from 1 to 2^24.
        units: usize,
    },
    /// A convolution (cross-correlation, as is usual). A side of the output has
    /// `floor((length + 2 padding - kernel) / stride) + 1` pixels. Parameters: `W`
    /// (`channels x (kernel rows · kernel columns · input channels)`, row by row, the input channel running fastest), `b`.
    Convolution {
        /// Number of channels of the output, from 1 to 2^24.
        channels: usize,
        /// Size of the kernel, from 1 to 4096.
        kernel: [usize; 2],
        /// Steps between windows, from 1 to 4096.
        stride: [usize; 2],
        /// Zeros on each side of the image, from 0 to 4096.
        padding: [usize; 2],
    },
    /// `max(z, 0)`, with derivative 0 at 0.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
    /// The maximum of each window, channel by channel; the first maximum in row order receives the gradient.
    MaxPool {
        /// Size of the window: at most 256 pixels.
        size: [usize; 2],
        /// Steps between windows, from 1 to 4096. In text, the size if omitted.
        stride: [usize; 2],
    },
    /// The mean of each window, channel by channel.
    AveragePool {
        /// Size of the window: at most 256 pixels.
        size: [usize; 2],
        /// Steps between windows, from 1 to 4096. In text, the size if omitted.
        stride: [usize; 2],
    },
    /// Normalises each example in groups of channels. Parameters: scales `γ`, shifts `β`, one of each per channel.
    GroupNorm {
        /// Number of groups; it divides the number of channels.
        groups: usize,
    },
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        let pair = |[height, width]: [usize; 2]| format!("{height} x {width}");
        match *self {
            Self::Linear { units } => write!(f, "{kind} {units}"),
            Self::Convolution { channels, kernel, stride, padding } => {
                write!(f, "{kind} {channels} of {}", pair(kernel))?;
                if stride != [1, 1] {
                    write!(f, " stride {}", pair(stride))?;
                }
                if padding == [0, 0] { Ok(()) } else { write!(f, " padding {}", pair(padding)) }
            }
            Self::Relu | Self::Tanh => f.write_str(kind),
            Self::MaxPool { size, stride } | Self::AveragePool { size, stride } => {
                write!(f, "{kind} {}", pair(size))?;
                if size == stride { Ok(()) } else { write!(f, " stride {}", pair(stride)) }
            }
            Self::GroupNorm { groups } => write!(f, "{kind} {groups}"),
        }
    }
}

impl Layer {
    /// Returns its kind as in text.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Convolution { .. } => "convolution",
            Self::Relu => "relu",
            Self::Tanh => "tanh",
            Self::MaxPool { .. } => "max-pool",
            Self::AveragePool { .. } => "average-pool",
            Self::GroupNorm { .. } => "group-norm",
        }
    }

    /// Returns the activation, if it is one.
    pub(crate) fn activation(&self) -> Option<Activation> {
        match self {
            Self::Relu => Some(Activation::Relu),
            Self::Tanh => Some(Activation::Tanh),
            _ => None,
        }
    }
}
