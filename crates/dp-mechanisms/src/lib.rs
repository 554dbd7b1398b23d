//! Differentially private mechanisms.
#![forbid(unsafe_code)]

mod additive;
pub mod bounded;
pub mod clip;
pub mod error;
mod float_range;
mod gamma_law;
pub mod gaussian;
pub mod gaussian_mixture;
pub mod grid;
pub mod laplace_ball;
pub mod mechanism;
mod noise;
pub mod released;
pub mod rng;
mod rounding;
pub mod sensitivity;
#[cfg(test)]
mod testing;

pub use bounded::{Bounded, Secret};
pub use error::Error;
pub use gaussian::Gaussian;
pub use gaussian_mixture::GaussianMixture;
pub use laplace_ball::LaplaceBall;
pub use mechanism::{Mechanism, PrivacyEvent};
pub use released::Released;
pub use rng::{OsSeeded, Purpose, ReleaseRng, SeededRng};
pub use sensitivity::{L1, L1Sensitivity, L2, L2Sensitivity, LInf, LInfSensitivity, Norm, Sensitivity};
