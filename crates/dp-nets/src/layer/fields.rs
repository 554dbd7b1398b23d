//! Layers in text: a kind and its settings.

use serde::{Deserialize, Serialize};

use super::Layer;
use crate::error::Error;

type Pair = [usize; 2];

/// The settings of all kinds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fields {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Pair>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<Pair>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stride: Option<Pair>,
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<Pair>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<usize>,
}

impl From<Layer> for Fields {
    fn from(layer: Layer) -> Self {
        let fields = Self { kind: layer.kind().to_owned(), ..Self::default() };
        match layer {
            Layer::Linear { units } => Self { units: Some(units), ..fields },
            Layer::Convolution { channels, kernel, stride, padding } => Self {
                channels: Some(channels),
                kernel: Some(kernel),
                stride: Some(stride),
                padding: Some(padding),
                ..fields
            },
            Layer::Relu | Layer::Tanh => fields,
            Layer::MaxPool { size, stride } | Layer::AveragePool { size, stride } => {
                Self { size: Some(size), stride: Some(stride), ..fields }
            }
            Layer::GroupNorm { groups } => Self { groups: Some(groups), ..fields },
        }
    }
}

impl TryFrom<Fields> for Layer {
    type Error = Error;

    fn try_from(mut fields: Fields) -> Result<Self, Error> {
        fn needed<T>(kind: &'static str, setting: &'static str, value: &mut Option<T>) -> Result<T, Error> {
            value.take().ok_or(Error::LayerSetting { kind, problem: "needs", setting })
        }
        let layer = match fields.kind.as_str() {
            "linear" => Self::Linear { units: needed("linear", "units", &mut fields.units)? },
            "convolution" => Self::Convolution {
                channels: needed("convolution", "channels", &mut fields.channels)?,
                kernel: needed("convolution", "kernel", &mut fields.kernel)?,
                stride: fields.stride.take().unwrap_or([1, 1]),
                padding: fields.padding.take().unwrap_or([0, 0]),
            },
            "relu" => Self::Relu,
            "tanh" => Self::Tanh,
            "max-pool" => {
                let size = needed("max-pool", "size", &mut fields.size)?;
                Self::MaxPool { size, stride: fields.stride.take().unwrap_or(size) }
            }
            "average-pool" => {
                let size = needed("average-pool", "size", &mut fields.size)?;
                Self::AveragePool { size, stride: fields.stride.take().unwrap_or(size) }
            }
            "group-norm" => Self::GroupNorm { groups: needed("group-norm", "groups", &mut fields.groups)? },
            "batch-norm" | "batch_norm" | "batchnorm" => return Err(Error::MixesExamples { kind: fields.kind }),
            _ => return Err(Error::UnknownLayer { kind: fields.kind }),
        };
        let rest = [
            ("units", fields.units.is_some()),
            ("channels", fields.channels.is_some()),
            ("kernel", fields.kernel.is_some()),
            ("size", fields.size.is_some()),
            ("stride", fields.stride.is_some()),
            ("padding", fields.padding.is_some()),
            ("groups", fields.groups.is_some()),
        ];
        match rest.into_iter().find(|(_, given)| *given) {
            Some((setting, _)) => Err(Error::LayerSetting { kind: layer.kind(), problem: "does not have", setting }),
            None => Ok(layer),
        }
    }
}
