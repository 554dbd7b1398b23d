//! Differentially private mechanisms: sensitive values that cannot leak by accident, and noise that is logged when drawn.
//!
//! # From records to a release
//! ```text
//! records ── clip, sum ──▶ Bounded<V, A> ── Mechanism::release ──▶ Released<V>  ── anything ──▶
//!                          value + sensitivity    │ │                safe to publish
//!                          not readable           │ └─ EventLog<A>: what it cost
//!                                                 └─── ReleaseRng: where the noise came from
//! ```
//! * A [`Bounded`] is a value that depends on private records together with its [`Sensitivity`]: a number with its norm ([`L1`],
//!   [`L2`], [`LInf`]) and its neighbouring relation in the type. It comes from [`clip`], or from
//!   [`Bounded::with_proven_sensitivity`], a name that a reviewer can search for.
//! * A [`Mechanism`] takes it by value, so that it is released only once, and appends its event to the log in the same call, so
//!   that every release is recorded. [`Gaussian`] adds normal noise, [`Laplace`] and [`LaplaceBall`] the noise of pure
//!   differential privacy for L1 and L2 sensitivities, and [`GaussianMixture`] is the Gaussian with a hidden index.
//!   [`DiscreteGaussian`] and [`DiscreteLaplace`] are for integers, [`Staircase`] for one number and a large epsilon.
//! * [`RandomizedResponse`] needs no sensitivity: each record, a [`Secret`], sends its own answer.
//! * [`Exponential`] and [`PermuteAndFlip`] select the best of several candidates by their [`scores`]; a [`sparse_vector`]
//!   session tells which queries of a stream are above a threshold.
//! * [`clip`] also contains sums that are exact in any order, [`ExactSum`](clip::ExactSum) and [`RankOneSum`](clip::RankOneSum);
//!   [`continual`] releases the prefix sums of a stream, step by step, at a single cost.
//! * [`steps`] adds noise to each of many sums, as in training, for one log entry; [`last_iterate`] to every iterate of a run
//!   that releases only the last one.
//! * A user-defined mechanism is a [`custom::CustomMechanism`]: a claimed cost, and a function.
//! * A [`Released`] may be published; post-processing is free.
//! * Randomness is an argument, [`OsSeeded`] or [`SeededRng`]. The latter is reproducible, and permanently marks the log as not
//!   private. See [`rng`].
//! * Outputs lie on a [`grid`] determined by public parameters, which prevents attacks on the floating-point representation.
//!
//! Mechanisms state no epsilon. They emit events; the accountants of [`dp_accountant`] turn a log into a guarantee.
//!
//! # Examples
//! ```
//! use dp_accountant::{Delta, Epsilon, EventLog, ReplaceOne, bound};
//! use dp_mechanisms::{Bounded, L2Sensitivity, LaplaceBall, Mechanism, OsSeeded};
//!
//! // The mean of 200 vectors of norm at most 1 changes by at most 2/200 if one of them is replaced.
//! let mean = vec![0.25, -0.5, 0.125];
//! let sensitivity = L2Sensitivity::<ReplaceOne>::new(0.01)?;
//!
//! let ball = LaplaceBall::new(sensitivity, Epsilon::new(0.5)?, 3)?;
//! let mut log = EventLog::new();
//! let bounded = Bounded::with_proven_sensitivity(mean, sensitivity);
//! let released = ball.release(bounded, &mut log, &mut OsSeeded::new()?)?;
//! assert_eq!(released.get().len(), 3);
//!
//! let epsilon = bound::epsilon(&log.to_event(), Delta::ZERO)?;
//! assert!((epsilon.value - 0.5).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules
//! Parameters are public: constructors check them, and they may be printed. After that nothing fails, stops or reports because of
//! a record's value: a record that is not finite contributes zero. The one exception is an aggregate that is not finite,
//! [`Error::NonFiniteInput`]: in that case the caller has broken the mechanism's contract. No error contains a private value. Every comparison is
//! written so that NaN fails it.
#![forbid(unsafe_code)]

mod additive;
pub mod bounded;
pub mod clip;
pub mod continual;
pub mod custom;
pub mod discrete_gaussian;
pub mod discrete_laplace;
pub mod error;
pub mod exact;
pub mod exponential;
mod float_range;
mod gamma_law;
pub mod gaussian;
pub mod gaussian_mixture;
pub mod grid;
mod instructions;
mod integer_noise;
pub mod laplace;
pub mod laplace_ball;
pub mod last_iterate;
mod lattice;
mod lattice_scale;
mod law_integral;
pub mod mechanism;
#[cfg(doctest)]
mod misuse;
mod noise;
pub mod noisy_max;
pub mod permute_and_flip;
pub mod prepaid;
pub mod randomized_response;
mod ratio;
#[cfg(feature = "serde")]
mod record;
mod release;
pub mod released;
pub mod rng;
mod rounding;
pub mod scores;
mod selection;
pub mod sensitivity;
pub mod sparse_vector;
pub mod staircase;
pub mod steps;
#[cfg(test)]
mod testing;

pub use bounded::{Bounded, Secret};
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use error::Error;
pub use exponential::Exponential;
pub use gaussian::Gaussian;
pub use gaussian_mixture::GaussianMixture;
pub use laplace::Laplace;
pub use laplace_ball::LaplaceBall;
pub use mechanism::{Mechanism, PrivacyEvent};
pub use noisy_max::NoisyMax;
pub use permute_and_flip::PermuteAndFlip;
pub use prepaid::Prepaid;
pub use randomized_response::RandomizedResponse;
pub use released::Released;
pub use rng::{DerivedRng, LentRng, OsSeeded, Purpose, ReleaseRng, SeededRng};
pub use sensitivity::{L1, L1Sensitivity, L2, L2Sensitivity, LInf, LInfSensitivity, Norm, Sensitivity};
pub use sparse_vector::{AboveThreshold, GaussianAboveThreshold};
pub use staircase::Staircase;

/// The README's program is compiled and run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
