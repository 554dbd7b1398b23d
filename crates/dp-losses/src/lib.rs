//! Losses and the model boundary.

pub mod loss;
pub mod model;

pub use loss::Loss;
pub use model::{Model, ParameterBlock};
