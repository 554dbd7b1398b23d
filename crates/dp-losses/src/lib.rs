//! Losses with their constants, and the interface between a training engine and a model.
//!
//! This crate is independent of privacy, noise and optimisers. It provides three things:
//!
//! - **The objective.** A [`Loss`] is a function of one prediction and one target: [`Logistic`], [`HuberSvm`] and [`Hinge`] for
//!   two classes, [`Squared`], [`HuberRegression`], [`LogCosh`] and [`Absolute`] for numbers. [`Softmax`] is for several classes.
//!   [`LossKind`] selects a loss in files and on a command line; [`L2`] is the regulariser, and a [`Penalty`] makes weights
//!   sparse through its [`ProximalMap`].
//! - **Its constants.** [`Constants`] gives the Lipschitz, smoothness, strong convexity and gradient-difference constants over a
//!   [`Domain`] (row norm, radius, target bound), rounded up. Step sizes and sensitivities are computed from them. The gradient
//!   difference is the least one under a radius ([`logistic_gradient_difference`], [`squared_gradient_difference`]), at most
//!   twice the Lipschitz constant.
//! - **Its computation.** A [`Model`] has one flat parameter vector and gradients that are sums over examples; an engine drives
//!   linear models, rankers and networks through this one trait. [`LinearModel`] and [`SoftmaxModel`] implement it for dense and
//!   sparse rows with kernels chosen for the instruction set at run time, as well as [`ScaledSteps`] for plain steps whose cost
//!   is proportional to the non-zeros. The laws of a model are a test function, `laws::model_laws` (feature `laws`).
//!
//! Everything is generic over `f32` and `f64` ([`Real`]); constants are always `f64`.
//!
//! # Examples
//! A few full-batch steps on four points, with the step size from the smoothness:
//! ```
//! use dp_data::Examples;
//! use dp_losses::{Constants, Domain, L2, LinearModel, Logistic, Model};
//!
//! let rows = vec![0.8, 0.6, 0.6, 0.8, -0.8, 0.6, -0.6, 0.8];
//! let data = Examples::dense(rows, vec![1.0, 1.0, -1.0, -1.0], 2)?;
//! let regulariser = L2::new(0.01)?;
//! let constants = Constants::new(&Logistic, regulariser, &Domain::unit_rows());
//!
//! let model = LinearModel::new(data.dim(), Logistic);
//! let (mut w, mut pass, mut losses) = (vec![0.0_f64; 2], model.pass(4), [0.0; 4]);
//! for _ in 0..100 {
//!     let mut gradient = vec![0.0; 2];
//!     model.forward(&w, data.block(), &mut pass);
//!     model.backward(&w, data.block(), &mut pass);
//!     model.add_weighted(data.block(), &mut pass, &[0.25; 4], &mut gradient);
//!     regulariser.add_gradient(&w, &mut gradient);
//!     w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= g / constants.smoothness);
//! }
//! model.forward(&w, data.block(), &mut pass);
//! model.losses(data.block(), &pass, &mut losses);
//! assert!(losses.iter().all(|loss| *loss < 0.1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

pub mod absolute;
pub mod compensated;
pub mod constants;
pub mod curved;
pub mod custom;
pub mod differences;
mod error;
pub mod exponential;
#[cfg(test)]
mod golden;
pub mod gradient_spread;
pub mod hinge;
pub mod huber_regression;
pub mod huber_svm;
mod kernels;
#[cfg(any(test, feature = "laws"))]
pub mod laws;
pub mod linear;
pub mod log_cosh;
pub mod logistic;
pub mod loss;
pub mod loss_kind;
pub mod model;
pub mod penalty;
pub mod prefetch;
pub mod proximal;
mod real;
pub mod regulariser;
mod rounding;
pub mod scalar_loss;
pub mod scaled_steps;
pub mod softmax;
pub mod squared;

pub use absolute::Absolute;
pub use compensated::{CompensatedGradient, CompensatedSum};
pub use constants::{Constants, DataConstants, Domain, LossBounds};
pub use curved::Curved;
pub use custom::{CustomLoss, RegisteredLoss};
pub use differences::Differences;
pub use error::Error;
pub use gradient_spread::{logistic_gradient_difference, squared_gradient_difference};
pub use hinge::Hinge;
pub use huber_regression::HuberRegression;
pub use huber_svm::HuberSvm;
pub use linear::{LinearModel, LinearPass};
pub use log_cosh::LogCosh;
pub use logistic::Logistic;
pub use loss::Loss;
pub use loss_kind::{LossKind, ModelVisitor};
pub use model::{ChoosesFrom, Model, ParameterBlock};
pub use penalty::{Penalty, ProximalMap};
pub use proximal::{ProximalLoss, ProximalVisitor};
pub use real::Real;
pub use regulariser::L2;
pub use scalar_loss::ScalarLoss;
pub use scaled_steps::ScaledSteps;
pub use softmax::{Softmax, SoftmaxModel, SoftmaxPass};
pub use squared::Squared;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
