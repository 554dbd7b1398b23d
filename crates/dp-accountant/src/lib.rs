//! Differential-privacy accounting: sound and tight (epsilon, delta) guarantees for a description of a release.
//!
//! The principal type is [`DpEvent`], a small tree that describes a release. All other parts work on it:
//!
//! - [`bound`]: the tightest epsilon or delta of a tree, with the theorem that gives it. Start here; [`which_bound`] describes
//!   when to use another module.
//! - [`exact`]: the exact privacy curve, between two certified bounds.
//! - [`Accountant`]: privacy loss accumulated release by release; [`RdpAccountant`], [`ZcdpAccountant`] and [`GdpAccountant`].
//! - [`calibrate`]: the noise, sampling rate, steps or remaining releases that meet a target.
//! - [`filter`] and [`odometer`]: budgets and running bounds for adaptively chosen privacy parameters.
//! - [`semantics`] and [`trade_off`]: the meaning of a curve for an attacker.
//! - [`gaussian`]: the exact Gaussian curve as plain functions of numbers; [`rdp`] and [`zcdp`] likewise.
//! - [`EventLog`]: the releases of one run under one [neighbouring relation](adjacency), appended by mechanisms; the relation is
//!   a type parameter of logs, accountants and [`Guarantee`]s, so that mixing relations does not compile.
//! - [`certificate`]: the statement that accompanies a released model, and its verification.
//!
//! Parameters that could be confused are [validated newtypes](params). Results are rounded towards claiming less privacy; NaN
//! fails every check; an invalid number in an event gives an [`Error`] that names it.
//!
//! # Examples
//! ```
//! use dp_accountant::{Delta, DpEvent, Epsilon, EventLog, ReplaceOne, bound, calibrate};
//!
//! // How much noise do 12 monthly releases of sensitivity 1 need for (1, 1e-6)?
//! let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
//! let year = |std_dev: f64| {
//!     let mut log = EventLog::<ReplaceOne>::new();
//!     log.record(DpEvent::Gaussian { std_dev, sensitivity: 1.0 }, 12);
//!     log
//! };
//! let std_dev = calibrate::least_scale(epsilon, delta, |std_dev| year(std_dev).to_event())?;
//! assert!((std_dev - 14.6446).abs() < 1e-2);
//!
//! // And what did they cost, by which theorem?
//! let spent = bound::epsilon(&year(std_dev).to_event(), delta)?;
//! assert!(spent.value <= 1.0 && spent.value > 1.0 - 1e-8);
//! assert_eq!(spent.theorem, bound::Theorem::AnalyticGaussian);
//! # Ok::<(), dp_accountant::Error>(())
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod accountant;
pub mod adjacency;
pub mod bound;
mod bracket;
pub mod calibrate;
pub mod certificate;
pub mod error;
pub mod evaluator;
pub mod event;
pub mod event_log;
pub mod exact;
pub mod filter;
mod finite_pair;
pub mod gaussian;
mod gaussian_mixture;
pub mod gdp;
pub mod guarantee;
mod iteration;
mod laplace;
pub mod laplace_ball;
mod leaves;
mod logspace;
mod loss_law;
mod normal;
pub mod objective_perturbation;
pub mod odometer;
mod order_mixture;
pub mod params;
mod pure;
mod quadrature;
pub mod rdp;
pub mod relations;
mod root;
mod rounding;
pub mod sampled_replacement;
pub mod semantics;
mod shuffled;
pub mod trade_off;
pub mod work;
pub mod zcdp;

pub use accountant::Accountant;
pub use adjacency::{AddRemoveOne, Adjacency, AdjacencyKind, ChangeListLabels, ReplaceOne, ZeroOut};
pub use bound::{Bound, Theorem};
pub use certificate::Certificate;
pub use error::Error;
pub use evaluator::{Evaluation, Evaluator, Interval};
pub use event::{DpEvent, MarginLoss, Repetitions};
pub use event_log::{EventLog, LogId};
pub use exact::{ExactAccountant, PrivacyCurve};
pub use gdp::GdpAccountant;
pub use guarantee::Guarantee;
pub use params::{Delta, Epsilon, NoiseMultiplier, RdpOrder, Rho, SamplingRate};
pub use rdp::RdpAccountant;
pub use relations::Relations;
pub use zcdp::ZcdpAccountant;

#[doc = include_str!("../docs/which-bound.md")]
pub mod which_bound {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
