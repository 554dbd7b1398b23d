//! Parts for learning to rank under differential privacy, and metrics to judge rankers by.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod error;
pub mod lists;
pub mod metrics;
pub mod ranking;
#[cfg(feature = "files")]
pub mod read;

pub use error::Error;
pub use lists::{Features, QueryList, QueryLists};
pub use ranking::Ranking;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
