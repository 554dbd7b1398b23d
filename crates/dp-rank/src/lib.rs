//! Parts for learning to rank under differential privacy, and metrics to judge rankers by.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod certified;
mod dense;
pub mod error;
pub mod lists;
pub mod loss;
pub mod metrics;
pub mod plackett_luce;
mod random;
pub mod ranking;
#[cfg(feature = "files")]
pub mod read;
pub mod scorer;
pub mod sensitivity;
pub mod spectral;

pub use error::Error;
pub use lists::{Features, QueryList, QueryLists};
pub use ranking::Ranking;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
