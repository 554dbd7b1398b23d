//! Ranking metrics: NDCG, mean average precision and precision at k, with every convention stated.
//!
//! A [`Ranking`] is one list of documents put in the order of a scorer's scores, checked once; the functions of
//! [`metrics`] read it and cannot fail. Where LETOR's evaluation tool departs from the literature, its version has a
//! name of its own.
//!
//! # Examples
//! ```
//! use dp_rank::{Ranking, metrics::{self, Cutoff}};
//!
//! let scores = [0.2, 1.5, -0.3];
//! let grades = [1, 0, 2];
//! let ranking = Ranking::new(&scores, &grades)?;
//! assert_eq!(ranking.order(), [1, 0, 2]);
//! assert!((metrics::ndcg(&ranking, Cutoff::new(10)?) - 0.5868).abs() < 1e-3);
//! assert!((metrics::average_precision(&ranking) - 7.0 / 12.0).abs() < 1e-15);
//! # Ok::<(), dp_rank::Error>(())
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod error;
pub mod metrics;
pub mod ranking;

pub use error::Error;
pub use ranking::Ranking;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
