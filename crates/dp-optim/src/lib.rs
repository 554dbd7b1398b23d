//! Differentially private optimisers.
#![forbid(unsafe_code)]

pub mod averaging;
pub mod derivation;
pub mod engine;
pub mod error;
pub mod float;
pub mod growth;
pub mod memory;
pub mod recipes;
pub mod schedule;
pub mod trained;

pub use averaging::Averaging;
pub use derivation::Derivation;
pub use error::Error;
pub use float::FloatKind;
pub use growth::Growth;
pub use memory::MemorySource;
pub use schedule::Schedule;
pub use trained::Trained;
