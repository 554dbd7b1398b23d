//! Reproductions of published experiments on private stochastic gradient descent, with every algorithm calibrated soundly.
//!
//! A [`Figure`] is data: panels of series of points, each an [`Experiment`] that is run several times: the [`Setting`] of a
//! linear model (data set, algorithm, budget, passes, batch size, λ, step sizes) or that of a [ranker](RankerSetting). A
//! [`Runner`] runs in parallel the experiments that a [`Store`] does not contain, and stores each run as it finishes.
//! [`Results`] are the means with their uncertainty. A [`Claim`] of a paper consists of comparisons of points and is judged
//! by the numbers.
//!
//! ```text
//! figures ──▶ cells ──Runner──▶ runs.csv ──Results──▶ pictures (SVG, PNG), tables, claims judged
//! ```
//!
//! Every run is seeded by its own name, so that results depend neither on threads nor on order. A reproduction is not a
//! private release: its noise can be recomputed, column ranges are taken from the data, parameters are chosen with hindsight,
//! and times are measured.
//!
//! # Examples
//! ```
//! use dp_reproduce::{Algorithm, Cell, DataSet, Privacy, Runner, Setting, Store};
//! use std::sync::atomic::AtomicBool;
//!
//! let folder = tempfile::tempdir()?;
//! let mut store = Store::open(&folder.path().join("runs.csv"))?;
//! let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Pure { epsilon: 1.0 });
//! let cell = Cell::new(setting, 0);
//! let (cancelled, mut progress) = (AtomicBool::new(false), |_| ());
//! Runner { folder: folder.path(), threads: 1, cancelled: &cancelled, progress: &mut progress }.run(&[cell], &mut store)?;
//! assert!(store.get(&cell).is_some_and(|outcome| outcome.accuracy > 0.9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod algorithm;
pub mod cell;
pub mod claim;
pub mod counted;
pub mod dataset;
pub mod error;
pub mod evaluate;
pub mod figure;
pub mod figures;
pub mod knobs;
pub mod network;
pub mod picture;
pub mod ranker;
pub mod report;
pub mod results;
pub mod runner;
pub mod seed;
pub mod setting;
pub mod statistics;
pub mod store;

pub use algorithm::{Algorithm, Outcome};
pub use cell::{Cell, Experiment};
pub use claim::{Claim, Verdict};
pub use dataset::{DataFile, DataSet, Prepared, Records};
pub use error::Error;
pub use figure::Figure;
pub use knobs::Knobs;
pub use network::NetworkSetting;
pub use ranker::RankerSetting;
pub use results::Results;
pub use runner::{Refused, Runner};
pub use setting::{Neighbours, Privacy, Setting, Step, Tuning};
pub use statistics::Sample;
pub use store::Store;

/// Compiles and runs the README's example as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
