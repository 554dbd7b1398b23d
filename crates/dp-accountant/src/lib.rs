//! Differential-privacy accounting.
#![forbid(unsafe_code)]

pub mod adjacency;
pub mod certificate;
pub mod error;
pub mod event;
pub mod event_log;
pub mod guarantee;
pub mod params;

pub use adjacency::{AddRemoveOne, Adjacency, AdjacencyKind, ChangeListLabels, ReplaceOne, ZeroOut};
pub use certificate::Certificate;
pub use error::Error;
pub use event::DpEvent;
pub use event_log::EventLog;
pub use guarantee::Guarantee;
pub use params::{Delta, Epsilon, NoiseMultiplier, RdpOrder, Rho, SamplingRate};
