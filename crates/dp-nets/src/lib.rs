//! Small neural networks with per-example gradient norms and clipped gradient sums.
//!
//! The crate knows nothing of privacy, noise or optimisers. A [`Network`] implements [`dp_losses::Model`]; an engine that
//! drives this trait trains it privately. A clipped sum costs a few percent more than a plain one.
//!
//! - [`Architecture`] and [`Layer`] describe a network as data: linear layers, convolutions, pooling, group norm, ReLU and
//!   tanh, ended by the softmax cross-entropy. Shapes are checked when it is used; errors name the layers that do not fit.
//!   [`Architecture::named`] has common ones. Layers that mix the examples of a batch, such as batch norm, are refused.
//! - [`Pixels`] reads images as bytes ([`dp_data::Images`]), [`Features`] reads dense or sparse rows ([`dp_data::Examples`]);
//!   [`Input`] is the interface for others. An example may have several [`Views`], over whose losses and logits a network
//!   takes means.
//! - [`Initial`] draws initial parameters from a public seed.
//!
//! Everything is generic over `f32` and `f64` ([`Float`]) and runs on the calling thread.
//!
//! # Method
//! For a linear layer the squared norm of an example's gradient is a product of two norms, and the weighted sum is one matrix
//! product: no gradient of an example is formed. For a convolution, a group norm, and any layer if an example has several
//! views, the gradient of each example is stored for the microbatch. Squared norms are added in double precision;
//! [`Model::norm_roundings`](dp_losses::Model::norm_roundings) bounds their error. The stored numbers whose norm was taken are
//! the ones that enter the sum.
//!
//! # Examples
//! Gradient descent without privacy, by hand:
//! ```
//! use dp_data::{Images, images::Shape};
//! use dp_losses::Model;
//! use dp_nets::{Architecture, Initial, Layer, Network, Pixels, Scaling};
//!
//! // 40 images of a bright left or right half.
//! let shape = Shape { height: 6, width: 6, channels: 1 };
//! let is_bright = |i: usize, j: usize| (j % 6 < 3) == (i % 2 == 0);
//! let pixel = |i: usize, j: usize| (if is_bright(i, j) { 200 } else { 20 }) + ((i * 7 + j * 13) % 50) as u8;
//! let pixels = (0..40).flat_map(|i| (0..36).map(move |j| pixel(i, j))).collect();
//! let images = Images::new(shape, pixels, (0..40).map(|i| i % 2).collect(), 2)?;
//!
//! let convolution = Layer::Convolution { channels: 4, kernel: [3, 3], stride: [1, 1], padding: [0, 0] };
//! let pool = Layer::MaxPool { size: [2, 2], stride: [2, 2] };
//! let layers = vec![convolution, Layer::Tanh, pool, Layer::Linear { units: 2 }];
//! let network = Network::<f32, _>::new(Architecture { input: shape, layers }, Pixels::new(Scaling::Unit))?;
//! network.check_images(&images)?;
//!
//! let mut w = network.initial(Initial::Uniform, 1);
//! let all: Vec<u32> = (0..40).collect();
//! let (mut pass, mut losses) = (network.pass(40), [0.0; 40]);
//! for _ in 0..50 {
//!     let (batch, mut gradient) = (images.choose(&all), vec![0.0; w.len()]);
//!     network.forward(&w, batch, &mut pass);
//!     network.backward(&w, batch, &mut pass);
//!     let ones = vec![1.0; 40 * network.blocks().len()];
//!     network.add_weighted(batch, &mut pass, &ones, &mut gradient);
//!     w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= 0.5 / 40.0 * g);
//! }
//! network.forward(&w, images.choose(&all), &mut pass);
//! network.losses(images.choose(&all), &pass, &mut losses);
//! assert!(losses.iter().sum::<f32>() / 40.0 < 0.2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod architecture;
mod error;
mod float;
mod initial;
mod input;
mod kernels;
mod layer;
mod layers;
mod network;
mod pass;
mod product;
mod stage;
mod window;

pub use architecture::Architecture;
pub use error::{Error, LayerName};
pub use float::Float;
pub use initial::Initial;
pub use input::{Features, Input, Pixels, Scaling, Views};
pub use layer::{Activation, Layer};
pub use network::Network;
pub use pass::Pass;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
