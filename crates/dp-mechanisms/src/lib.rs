//! Differentially private mechanisms.
#![forbid(unsafe_code)]

pub mod bounded;
pub mod error;
pub mod mechanism;
pub mod released;
pub mod rng;
pub mod sensitivity;

pub use bounded::{Bounded, Secret};
pub use error::Error;
pub use mechanism::{Mechanism, PrivacyEvent};
pub use released::Released;
pub use rng::ReleaseRng;
pub use sensitivity::{L1, L1Sensitivity, L2, L2Sensitivity, LInf, LInfSensitivity, Norm, Sensitivity};
