//! Small networks whose clipped gradient sums cost little more than plain ones.
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
pub use input::{Features, Input, Pixels, Scaling};
pub use layer::{Activation, Layer};
pub use network::Network;
pub use pass::Pass;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
