//! Continual release: sums over time, with noise that is correlated across steps.
//!
//! A stream of sums `x_1, x_2, ...` arrives, and after each step the sum of all so far is to be published. Fresh noise on
//! each `x_t` adds up to a variance that grows with `t`; the mechanisms here have an error that grows with a power of
//! `ln t` for the same privacy. Each owns all steps of its stream: [`start`](TreeAggregation::start) puts the cost of the
//! whole stream into the log, and the session that it returns answers so many steps and no more.
//!
//! | mechanism | sensitivity, one step per record | largest error, in noise scales | memory |
//! |---|---|---|---|
//! | [`TreeAggregation`] | `C √(⌊log2 T⌋ + 1)` | `√log2(T + 1)`, less with variance reduction | `O(log T)` |
//! | [`MatrixFactorisation`] by the square root | `C √(ln T / π + 1.07)` | `√(ln T / π + 1.07)` | `O(T)` |
//! | the same, banded | less | more | `O(bands)` |
//!
//! # Which steps a record takes part in
//! [`Participation`] says how often, and how far apart. The steps of one record must not depend on other records, and
//! under [`ReplaceOne`](dp_accountant::ReplaceOne) not on its own values: they belong to the index (a fixed order of
//! batches, a time stamp that is public). There is no amplification by sampling here.
//!
//! # Adaptivity
//! What a step sums may depend on everything released before, as gradients depend on the released model. Given what was
//! released, neighbours differ at step `t` in one record's contributions of the steps up to `t`, and the squares of the
//! resulting shifts add up to at most the squared sensitivity, whatever was released: a sequence of Gaussian mechanisms
//! with a common budget for the sum of squares, which costs no more than one Gaussian of that sensitivity. It is a
//! property of Gaussian noise and of lower-triangular factors; Laplace noise does not have it.
//!
//! # Exactness
//! Inputs are truncated to a fine grid and the sensitive combinations are formed in integers; noise is added on the
//! release's grid as by [`Gaussian`](crate::Gaussian), and everything after it is a function of what was released. So
//! nothing is idealised beyond the noise mode, and no assumption about the order of floating-point operations is made.
//!
//! # References
//! C. Dwork, M. Naor, T. Pitassi, G. N. Rothblum, "Differential privacy under continual observation", STOC 2010.
//! T.-H. H. Chan, E. Shi, D. Song, "Private and continual release of statistics", TISSEC 2011.
//! S. Denisov, H. B. McMahan, J. Rush, A. Smith, A. G. Thakurta, "Improved differential privacy for SGD via optimal
//! private linear operators on adaptive streams", NeurIPS 2022, Theorem 2.1, arXiv 2202.08312.

mod factor;
mod factorisation;
mod participation;
mod stream_grid;
mod tree;

pub use factor::{Factor, FactorSensitivity};
pub use factorisation::{MatrixFactorisation, MatrixSession, StreamRelease};
pub use participation::Participation;
pub use tree::{TreeAggregation, TreeSession};
