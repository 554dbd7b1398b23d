//! Statistical audits: lower bounds on epsilon from samples.
//!
//! A proof can be right and the code wrong. An audit plays the attacker: it runs a [`Subject`] on two neighbouring inputs
//! many times, selects a test on one half of the runs, and converts the test's error rates on the other half into a lower
//! bound on epsilon at a stated confidence. A bound above the claim shows a bug; a bound below it means "not refuted at this
//! confidence", never "is private".
//!
//! # From runs to a verdict
//! ```text
//! Subject ── half of the runs ──▶ Selected ── other half ──▶ Hits ──▶ Limits ──▶ epsilon, trade-off curve, mu
//! inputs,    Auditor::select      scorer,     evaluate       counts   Clopper-       against the Claim: a Verdict
//! Claim                           cuts                                Pearson
//! ```
//! * [`check`](check()) audits a [`Mechanism`](dp_mechanisms::Mechanism) in one call, [`subject::from_fn`] makes a subject
//!   from a closure, and [`Subject`] is the trait of both.
//! * An [`Auditor`] holds the number of runs, the confidence and the seed. Its two phases are separate: the runs that
//!   selected the attack cannot be counted.
//! * A [`Lineup`] is one claim on many pairs of inputs: a pilot on separate runs selects the pair that is audited.
//! * [`audit_all`] audits many subjects with one false-alarm rate; [`report`] formats tables.
//! * [`OneRun`] audits subjects too expensive to run twice, by many [`Canaries`] in a single run.
//! * [`bounds`] are plain functions of counts.
//!
//! # Examples
//! ```
//! use dp_accountant::ReplaceOne;
//! use dp_audit::{Auditor, Verdict, check};
//! use dp_mechanisms::{L2Sensitivity, LaplaceBall};
//!
//! let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0)?;
//! let laplace = LaplaceBall::from_scale(sensitivity, 1.0, 1)?;
//! let auditor = Auditor::new(200_000)?.with_seed(1);
//! let audit = check(&laplace, sensitivity, vec![0.0], vec![1.0], |output: &Vec<f64>| output[0], &auditor)?;
//! assert_eq!(audit.verdict, Verdict::NotRefuted);
//! assert!(audit.epsilon_lower > 0.9); // of 1
//! # Ok::<(), dp_audit::Error>(())
//! ```
//!
//! # References
//! Z. Ding, Y. Wang, G. Wang, D. Zhang, D. Kifer, "Detecting violations of differential privacy", 2018, arXiv 1805.10559.
//! M. Jagielski, J. Ullman, A. Oprea, "Auditing differentially private machine learning", 2020, arXiv 2006.07709. M. Nasr
//! et al., "Tight auditing of differentially private machine learning", 2023, arXiv 2302.07956.
#![forbid(unsafe_code)]

mod attack;
pub mod audit;
pub mod auditor;
pub mod bounds;
pub mod check;
pub mod claimed;
pub mod error;
pub mod lineup;
mod logistic;
pub mod mechanisms;
pub mod monitor;
pub mod one_run;
mod plan;
pub mod report;
pub mod selected;
mod selection;
pub mod subject;
pub mod suite;
#[cfg(test)]
mod testing;
mod trials;

pub use audit::{Audit, BoundKind, Verdict};
pub use auditor::Auditor;
pub use check::{MechanismSubject, check};
pub use claimed::Claimed;
/// The generator passed to trials.
pub use dp_mechanisms::SeededRng;
pub use error::Error;
pub use lineup::{Lineup, Pilot};
pub use monitor::{Monitor, Unwatched};
pub use one_run::{Canaries, OneRun, OneRunAudit};
pub use selected::Selected;
pub use subject::{Claim, Side, Statistic, Subject};
pub use suite::{Suite, audit_all};

/// Compiles and runs the README's program as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
