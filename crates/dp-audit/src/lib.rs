//! Statistical audits: lower bounds on epsilon from samples.
//!
//! A proof can be right and the code wrong. An audit plays the attacker: it runs a [`Subject`] on two neighbouring inputs
//! many times, picks a test on one half of the runs, and turns the test's error rates on the other half into a lower
//! bound on epsilon that holds with stated confidence. A bound above the claim is a bug beyond doubt; a bound below it
//! says "not refuted at this confidence", never "is private".
#![forbid(unsafe_code)]

mod attack;
pub mod audit;
pub mod auditor;
pub mod bounds;
pub mod check;
pub mod error;
mod logistic;
pub mod mechanisms;
pub mod monitor;
pub mod report;
mod selection;
pub mod subject;
pub mod suite;
mod trials;

pub use audit::{Audit, BoundKind, Verdict};
pub use auditor::{Auditor, Selected};
pub use check::{MechanismSubject, check};
pub use error::Error;
pub use monitor::{Monitor, Unwatched};
pub use subject::{Claim, Side, Statistic, Subject};
pub use suite::{Suite, audit_all};
