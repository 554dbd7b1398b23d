//! The layers of a network, by name or from a file.

use dp_data::images::Shape;
use dp_nets::Architecture;

use super::config::NetworkConfig;
use crate::args::FileName;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::read_whole;

/// Largest size of a file of layers in bytes.
const LARGEST: u64 = 1 << 20;

/// Layers as far as they are known before the images are.
pub(super) enum Layers {
    /// From a file, with its name.
    File(Architecture, FileName),
    /// By a name, which may fit images of any shape.
    Named(FileName),
}

impl Layers {
    /// Reads the file, if one is named: a name that ends in `.toml`, or standard input.
    ///
    /// # Errors
    /// `network.*`, `file.*`.
    pub(super) fn new(model: &FileName) -> Result<Self, Failure> {
        if &**model != "-" && !model.ends_with(".toml") {
            // The shape of the images is not known yet, but whether there is such a name.
            let shape = Shape { height: 28, width: 28, channels: 1 };
            return match Architecture::named(model, shape, 10, None) {
                Err(dp_nets::Error::UnknownArchitecture { .. }) => {
                    Err(Failure::usage("--model", format!("there is no network `{model}`")).expected(
                        "mlp:UNITS,.. such as mlp:1000, a name of `dp help networks`, or a file that ends in .toml",
                    ))
                }
                _ => Ok(Self::Named(model.clone())),
            };
        }
        let shown: &str = if &**model == "-" { "standard input" } else { model };
        let syntax = |message: String| Failure::new(ExitStatus::Input, "network.syntax", message).at_file(shown);
        let bytes = read_whole(model, LARGEST, |error| {
            Failure::new(ExitStatus::Failed, "file.open", format!("cannot read the layers: {error}"))
        })
        .map_err(|failure| failure.at_flag("--model"))?;
        let text = String::from_utf8(bytes).map_err(|_| syntax("the file is not UTF-8 text".to_owned()))?;
        let architecture: Architecture = toml::from_str(&text).map_err(|error| {
            let mut failure = syntax(error.message().to_owned());
            failure.details.location.line =
                error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() as u64 + 1);
            failure.expected(
                "`input = [HEIGHT, WIDTH, CHANNELS]` and a `[[layers]]` for each, as `dp help networks` shows",
            )
        })?;
        architecture.parameters().map_err(|error| unfit(&error).at_file(shown))?;
        Ok(Self::File(architecture, model.clone()))
    }

    /// Returns the architecture for images of this shape.
    ///
    /// # Errors
    /// `network.shape`.
    pub(super) fn for_images(&self, shape: Shape, config: &NetworkConfig) -> Result<Architecture, Failure> {
        let classes = config.images.classes.len();
        match self {
            Self::Named(name) => {
                let architecture = Architecture::named(name, shape, classes, None).map_err(|error| unfit(&error))?;
                architecture.parameters().map_err(|error| unfit(&error))?;
                Ok(architecture)
            }
            Self::File(architecture, name) => {
                let at_file = |error: dp_nets::Error| unfit(&error).at_file(name);
                let (expected, own) = (architecture.input, architecture.classes().map_err(at_file)?);
                if (expected, own) == (shape, classes) {
                    return Ok(architecture.clone());
                }
                let (found, found_classes) = (shape, classes);
                Err(at_file(dp_nets::Error::Data { found, found_classes, expected, classes: own }))
            }
        }
    }
}

/// Converts an error of layers.
pub(super) fn unfit(error: &dp_nets::Error) -> Failure {
    Failure::new(ExitStatus::Input, "network.shape", error.to_string()).at_flag("--model")
}
