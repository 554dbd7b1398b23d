//! Differentially private optimisers.
#![forbid(unsafe_code)]

pub mod averaging;
pub mod error;
pub mod growth;
pub mod schedule;

pub use averaging::Averaging;
pub use error::Error;
pub use growth::Growth;
pub use schedule::Schedule;
