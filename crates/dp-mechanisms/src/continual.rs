//! Continual release: prefix sums over time, with noise that is correlated across steps.
//!
//! A stream of sums `x_1, x_2, ...` arrives, and after each step the sum of all so far is published. Independent noise on each
//! `x_t` adds up to a variance that grows with `t`; the mechanisms here have an error that grows with a power of `ln t` at the
//! same privacy. Each covers all steps of its stream: [`start`](TreeAggregation::start) logs the cost of the whole stream, and
//! the session that it returns releases that number of steps and no more.
//!
//! | mechanism | sensitivity, one step per record | largest error, in noise scales | memory |
//! |---|---|---|---|
//! | [`TreeAggregation`] | `C √(⌊log2 T⌋ + 1)` | `√log2(T + 1)`, less with variance reduction | `O(log T)` |
//! | [`MatrixFactorisation`] by the square root | `C √(ln T / π + 1.07)` | `√(ln T / π + 1.07)` | `O(T)` |
//! | the same, banded | less | more | `O(bands)` |
//!
//! # Participation
//! [`Participation`] states in how many steps a record takes part, and how far apart they are. The steps of one record must not
//! depend on other records, and under [`ReplaceOne`](dp_accountant::ReplaceOne) not on its own values: they depend on the index
//! (a fixed order of batches, a public time stamp). There is no amplification by sampling here.
//!
//! # Adaptivity
//! The sum of a step may depend on everything released before, as gradients depend on the released model. Given earlier releases,
//! neighbours differ at step `t` in one record's contributions of the steps up to `t`, and the squares of the resulting shifts
//! add up to at most the squared sensitivity, for all releases: a sequence of Gaussian mechanisms with a common budget for the
//! sum of squares, which costs no more than one Gaussian of that sensitivity. This property holds for Gaussian noise and
//! lower-triangular factors; Laplace noise does not have it.
//!
//! # Exactness
//! Inputs are truncated to a fine grid and the sensitive combinations are formed in integers. Noise is added on the release's
//! grid as by [`Gaussian`](crate::Gaussian), and everything after it is post-processing. So nothing is idealised except by the
//! noise mode, and no assumption about the order of floating-point operations is made.
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
