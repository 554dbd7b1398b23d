//! Differential-privacy accounting.
#![forbid(unsafe_code)]

pub mod accountant;
pub mod adjacency;
pub mod bound;
pub mod calibrate;
pub mod certificate;
pub mod error;
pub mod event;
pub mod event_log;
pub mod gaussian;
mod gaussian_mixture;
pub mod guarantee;
mod laplace;
mod leaves;
mod logspace;
mod normal;
pub mod params;
mod pure;
pub mod rdp;
mod root;
mod rounding;
pub mod zcdp;

pub use accountant::Accountant;
pub use adjacency::{AddRemoveOne, Adjacency, AdjacencyKind, ChangeListLabels, ReplaceOne, ZeroOut};
pub use bound::{Bound, Theorem};
pub use certificate::Certificate;
pub use error::Error;
pub use event::DpEvent;
pub use event_log::EventLog;
pub use guarantee::Guarantee;
pub use params::{Delta, Epsilon, NoiseMultiplier, RdpOrder, Rho, SamplingRate};
pub use rdp::RdpAccountant;
pub use zcdp::ZcdpAccountant;
