//! Learning to rank under differential privacy, and ranking metrics.
//!
//! A *list* holds the documents of one query, with features and grades of relevance. One list belongs to one user. Unless said
//! otherwise, neighbouring data differ in the grades of one list and everything else is public. Whole lists and single documents
//! can be [protected](train::protect) as well. Contents:
//!
//! - [`QueryLists`] holds lists; with the feature `files`, `read` reads them from LETOR and CSV files.
//! - [`scorer`]: linear functions and networks of one hidden layer, with gradients and the inner products of their score
//!   gradients.
//! - [`loss`]: ListNet, ListMLE and BayesRank (the expected NDCG under [Plackett–Luce](plackett_luce)), which private trainers
//!   accept, and RankNet and LambdaRank as non-private baselines, distinguished by type.
//! - [`sensitivity`]: bounds on the change of a list's gradient when its grades change, from public values alone; certified upper
//!   bounds, rounding included.
//! - [`spectral`]: spectral norms of weights: estimates for normalisation, and certified upper bounds.
//! - [`metrics`]: NDCG, MAP and others of a [`Ranking`], with every convention stated; where LETOR's evaluation tool differs from
//!   the literature, its version has a separate name.
//! - [`synthetic`]: synthetic lists shaped like LETOR's.
//! - [`train`]: [`PrivateRanking`](train::PrivateRanking) trains a scorer under differential privacy for the grades of one list,
//!   a whole list or one document, calibrated to a budget and with a certificate; there is also training without privacy.
//!
//! # Examples
//! A private ranker:
//! ```
//! use dp_mechanisms::OsSeeded;
//! use dp_optim::recipes::Budget;
//! use dp_rank::loss::BayesRank;
//! use dp_rank::scorer::Linear;
//! use dp_rank::train::PrivateRanking;
//! use dp_rank::synthetic;
//!
//! let lists = synthetic::draw(synthetic::Shape::Mq2008, 100, 1)?.lists;
//! let budget = Budget::new(1.0, 1e-4)?;
//! let plan = PrivateRanking::new(BayesRank::TOP_1).plan(100, 46, budget)?;
//! let start = vec![0.0; 46];
//! let trained = plan.train(&Linear::new(46)?, start, &lists, &mut OsSeeded::new()?, &mut |_, _| {})?;
//! assert_eq!(trained.weights.get().len(), 46);
//! assert!(trained.reached.epsilon <= 1.0 && trained.log.is_private());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! One gradient step without noise, and bounds on the influence of the first list's grades on it:
//! ```
//! use dp_rank::loss::{BayesRank, LossBuffers, RankingLoss};
//! use dp_rank::scorer::{Linear, LinearWorkspace, Scorer};
//! use dp_rank::sensitivity::{Contributions, Gram};
//! use dp_rank::{Ranking, metrics, synthetic};
//!
//! let lists = synthetic::draw(synthetic::Shape::Mq2008, 10, 1)?.lists;
//! let (scorer, theta, list) = (Linear::new(lists.width())?, vec![0.0; lists.width()], lists.list(0));
//! let n = list.documents();
//! let (mut scores, mut score_gradient, mut gradient) = (vec![0.0; n], vec![0.0; n], vec![0.0; theta.len()]);
//! let mut workspace = LinearWorkspace::default();
//! scorer.scores(&theta, list.features(), &mut workspace, &mut scores);
//! BayesRank::TOP_1.evaluate(&scores, list.grades(), &mut LossBuffers::default(), &mut score_gradient);
//! scorer.add_gradient(&theta, list.features(), &score_gradient, &mut workspace, &mut gradient);
//!
//! let mut products = Vec::new();
//! let gram = Gram::of(&scorer, &theta, list.features(), &mut workspace, &mut products);
//! let image = Contributions::new(BayesRank::TOP_1, &scores, &gram)?.bounds();
//! let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
//! assert!(norm <= image.radius && image.radius < 0.51 * image.diameter);
//!
//! let ranking = Ranking::new(&scores, list.grades())?;
//! assert!((0.0..=1.0).contains(&metrics::average_precision(&ranking)));
//! # Ok::<(), dp_rank::Error>(())
//! ```
//!
//! # Features
//! - `audit`: values before noise, for `dp-audit-recipes`.
//! - `files`: `read`, the readers of LETOR and CSV files (dp-data).
//! - `serde`: serialisation of derivations and certificates.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

#[cfg(feature = "audit")]
pub mod audit;
mod certified;
mod dense;
pub mod error;
pub mod lists;
pub mod loss;
pub mod metrics;
pub mod plackett_luce;
mod random;
pub mod ranking;
#[cfg(feature = "files")]
pub mod read;
pub mod scorer;
pub mod sensitivity;
pub mod spectral;
pub mod synthetic;
pub mod train;

pub use error::Error;
pub use lists::{Features, QueryList, QueryLists};
pub use ranking::Ranking;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
