//! Architectures with a name.

use dp_data::images::Shape;

use super::{Activation, Architecture, Layer};
use crate::error::Error;

const MNIST: Shape = Shape { height: 28, width: 28, channels: 1 };
const CIFAR: Shape = Shape { height: 32, width: 32, channels: 3 };

fn convolution(channels: usize, kernel: usize, stride: usize, padding: usize) -> Layer {
    Layer::Convolution { channels, kernel: [kernel; 2], stride: [stride; 2], padding: [padding; 2] }
}

fn pool(size: usize, stride: usize) -> Layer {
    Layer::MaxPool { size: [size; 2], stride: [stride; 2] }
}

/// Linear layers of the given widths, each followed by the activation, and one of `classes` units.
fn dense(widths: &[usize], classes: usize, activation: Activation) -> impl Iterator<Item = Layer> {
    let hidden = widths.iter().flat_map(move |&units| [Layer::Linear { units }, activation.layer()]);
    hidden.chain([Layer::Linear { units: classes }])
}

impl Architecture {
    /// Returns a multilayer perceptron: linear layers of the given widths, each followed by the activation, and one for the
    /// classes. No width gives softmax regression.
    ///
    /// # Examples
    /// ```
    /// use dp_nets::{Activation, Architecture};
    /// let mlp = Architecture::mlp(Architecture::rows(20), &[16], 3, Activation::Relu);
    /// assert_eq!(mlp.parameters()?, 21 * 16 + 17 * 3);
    /// # Ok::<(), dp_nets::Error>(())
    /// ```
    pub fn mlp(input: Shape, widths: &[usize], classes: usize, activation: Activation) -> Self {
        Self { input, layers: dense(widths, classes, activation).collect() }
    }

    /// Returns the architecture with a name.
    ///
    /// | name | layers | input, classes | parameters | activation if none is given |
    /// |---|---|---|---|---|
    /// | `mnist-mlp` | 1000, 10 | 28 x 28 x 1, 10 | 795,010 | ReLU |
    /// | `fashion-mlp` | 256, 256, 10 | 28 x 28 x 1, 10 | 269,322 | ReLU |
    /// | `small-cnn` | convolution 6 of 5 x 5, pool, convolution 16 of 5 x 5, pool, 256, 128, 10 | 28 x 28 x 1, 10 | 102,550 | tanh |
    /// | `cifar-cnn` | convolutions of 3 x 3, padding 1: 32, 64, pool, 128, 128, pool, 256, 256, pool, 1024, 512, 10 | 32 x 32 x 3, 10 | 5,851,338 | tanh |
    /// | `tempered-cnn` | convolution 16 of 8 x 8, stride 2, padding 3, pool of stride 1, convolution 32 of 4 x 4, stride 2, pool of stride 1, 32, 10 | 28 x 28 x 1, 10 | 26,010 | tanh |
    /// | `mlp:<width>,<width>,..` | the given widths | as given | | ReLU |
    ///
    /// An activation follows every layer with parameters but the last. Pools take the maximum of 2 x 2. For a name with
    /// a fixed input, `input` and `classes` must be those of the table.
    ///
    /// # Errors
    /// A text that is no name, and an input or classes other than those of the name.
    ///
    /// # Examples
    /// ```
    /// use dp_data::images::Shape;
    /// use dp_nets::Architecture;
    /// let mnist = Shape { height: 28, width: 28, channels: 1 };
    /// assert_eq!(Architecture::named("small-cnn", mnist, 10, None)?.parameters()?, 102_550);
    /// assert_eq!(Architecture::named("mlp:64,32", mnist, 10, None)?.parameters()?, 785 * 64 + 65 * 32 + 330);
    /// # Ok::<(), dp_nets::Error>(())
    /// ```
    ///
    /// # References
    /// `tempered-cnn` and `cifar-cnn`: Papernot, Thakurta, Song, Chien, Erlingsson, "Tempered Sigmoid Activations for Deep
    /// Learning with Differential Privacy", 2021, arXiv:2007.14191.
    pub fn named(text: &str, input: Shape, classes: usize, activation: Option<Activation>) -> Result<Self, Error> {
        let Some(architecture) = Self::of_name(text, activation) else {
            let unknown = || Error::UnknownArchitecture { text: text.to_owned() };
            let widths = text.strip_prefix("mlp:").ok_or_else(unknown)?;
            let widths: Result<Vec<usize>, _> = widths.split(',').map(|width| width.trim().parse()).collect();
            let activation = activation.unwrap_or(Activation::Relu);
            return Ok(Self::mlp(input, &widths.map_err(|_| unknown())?, classes, activation));
        };
        let expected = architecture.input;
        if (input, classes) != (expected, 10) {
            return Err(Error::Data { found: input, found_classes: classes, expected, classes: 10 });
        }
        Ok(architecture)
    }

    /// Returns the architecture of one of the [`NAMES`](Self::NAMES), with its own input.
    fn of_name(name: &str, activation: Option<Activation>) -> Option<Self> {
        let of_mlp = activation.unwrap_or(Activation::Relu);
        let of_cnn = activation.unwrap_or(Activation::Tanh);
        let act = of_cnn.layer();
        let (input, layers): (Shape, Vec<Layer>) = match name {
            "mnist-mlp" => (MNIST, dense(&[1000], 10, of_mlp).collect()),
            "fashion-mlp" => (MNIST, dense(&[256, 256], 10, of_mlp).collect()),
            "small-cnn" => {
                let first = [convolution(6, 5, 1, 0), act, pool(2, 2), convolution(16, 5, 1, 0), act, pool(2, 2)];
                (MNIST, first.into_iter().chain(dense(&[256, 128], 10, of_cnn)).collect())
            }
            "cifar-cnn" => {
                let pair = |a, b| [convolution(a, 3, 1, 1), act, convolution(b, 3, 1, 1), act, pool(2, 2)];
                let first = [pair(32, 64), pair(128, 128), pair(256, 256)].into_iter().flatten();
                (CIFAR, first.chain(dense(&[1024, 512], 10, of_cnn)).collect())
            }
            "tempered-cnn" => {
                let first = [convolution(16, 8, 2, 3), act, pool(2, 1), convolution(32, 4, 2, 0), act, pool(2, 1)];
                (MNIST, first.into_iter().chain(dense(&[32], 10, of_cnn)).collect())
            }
            _ => return None,
        };
        Some(Self { input, layers })
    }

    /// The architectures with a name and an input of their own, for 10 classes.
    pub const NAMES: [&str; 5] = ["mnist-mlp", "fashion-mlp", "small-cnn", "tempered-cnn", "cifar-cnn"];

    /// Returns the architectures of [`NAMES`](Self::NAMES).
    ///
    /// # Examples
    /// ```
    /// use dp_nets::Architecture;
    /// let parameters = Architecture::all_named().map(|(name, architecture)| (name, architecture.parameters()));
    /// assert!(parameters.eq([
    ///     ("mnist-mlp", Ok(795_010)),
    ///     ("fashion-mlp", Ok(269_322)),
    ///     ("small-cnn", Ok(102_550)),
    ///     ("tempered-cnn", Ok(26_010)),
    ///     ("cifar-cnn", Ok(5_851_338)),
    /// ]));
    /// ```
    pub fn all_named() -> impl Iterator<Item = (&'static str, Self)> {
        Self::NAMES.into_iter().filter_map(|name| Some((name, Self::of_name(name, None)?)))
    }
}
