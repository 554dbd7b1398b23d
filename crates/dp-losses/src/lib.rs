//! Losses with their constants, and the boundary through which a training engine drives a model.
#![forbid(unsafe_code)]

pub mod constants;
mod error;
pub mod exponential;
#[cfg(test)]
mod golden;
pub mod gradient_spread;
pub mod huber_svm;
mod kernels;
#[cfg(any(test, feature = "laws"))]
pub mod laws;
pub mod linear;
pub mod logistic;
pub mod loss;
pub mod loss_kind;
pub mod model;
mod real;
pub mod regulariser;
mod rounding;
pub mod scaled_steps;
pub mod squared;

pub use constants::{Constants, DataConstants, Domain, LossBounds};
pub use error::Error;
pub use gradient_spread::{logistic_gradient_difference, squared_gradient_difference};
pub use huber_svm::HuberSvm;
pub use linear::{LinearModel, LinearPass};
pub use logistic::Logistic;
pub use loss::Loss;
pub use loss_kind::{LossKind, LossVisitor};
pub use model::{Model, ParameterBlock};
pub use real::Real;
pub use regulariser::L2;
pub use scaled_steps::ScaledSteps;
pub use squared::Squared;
