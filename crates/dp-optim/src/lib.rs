//! Differentially private optimisers: one training engine, short recipes, proved sensitivities.
//!
//! A [recipe](recipes) is a set of public parameters. Its *plan* derives the sensitivity, the noise, the event and the
//! guarantee before any data is read. *Training* runs the [engine] over a source of rows and releases the result through a
//! mechanism. It returns [`Trained`]: the released weights, the log of the releases, and the [`Derivation`] from which a
//! reader of the certificate recomputes all numbers.
//!
//! ```text
//! BoltOn ──plan(n, dim, budget)──▶ Plan ──train(source, rng)──▶ Trained ──certificate(..)──▶ Certificate
//!   │                               │                             ▲
//!   │ loss's constants              │ Growth: schedule,           │ dp-mechanisms: one release,
//!   ▼ (dp-losses)                   ▼ batches, average            │ logged in the same call
//! gradient difference G  ──▶  sensitivity Δ  ──▶  noise ──────────┘
//! ```
//!
//! - [`growth`]: bounds on how far one record can move the output of SGD without noise in its steps.
//! - [`engine`]: the training loop and its parts: [batches](engine::Batches), [gradient estimates](engine::GradientEstimate),
//!   [update rules](engine::UpdateRule), [iterates](engine::Iterate), [stop rules](engine::StopRule).
//! - [`recipes::scs13`], [`recipes::dp_sgd`], [`recipes::bst14`]: noise in every update; [`recipes::dp_sgd::admm`] and
//!   [`recipes::dp_sgd::adam`]: other update rules on the same noisy sums.
//! - [`recipes::model_sgd`]: noise in every update of a model of any kind, such as a network.
//! - [`recipes::dp_ftrl`]: gradient descent with noise correlated over the steps, on passes in one fixed order.
//! - [`recipes::dp_newton`]: Newton's method with a noisy Hessian.
//! - [`recipes::dp_svrg`]: noisy differences from a known gradient; [`recipes::dp_sgd::consensus`]: consensus ADMM of several
//!   parties; [`recipes::admm_obj_pert`]: ADMM with objective perturbation.
//! - [`recipes::noisy_moments`]: least squares on noisy second moments.
//! - [`recipes::obj_pert`]: objective perturbation with a certified minimiser.
//! - [`recipes::rsgd_ar`]: periodic averages and restarts; NSGD and full-gradient descent with output perturbation.
//! - [`recipes::searched_descent`]: noisy line searches within a budget that is spent as needed.
//! - [`recipes::priv_gene`]: steps chosen by the exponential mechanism; [`recipes::majority`]: a constant prediction.
//! - [`recipes::phased_sgd`], [`recipes::phased_erm`]: phases with noise on each phase's result.
//! - [`recipes::bolt_on`], [`recipes::pnsgd`], [`recipes::snowball_sgd`], [`recipes::non_private`].
//! - [`recipes::one_vs_all`], [`recipes::per_unit`], [`recipes::at_base_rate`]: other recipes for several classes, for units of
//!   several records, and with a threshold at the base rate.
//! - [`Auto`]: chooses one of these with all its settings from public numbers.
//! - [`tuning`]: hyper-parameter selection, private or on public records.
//! - [`MemorySource`]: a source of examples in memory; other sources implement [`RowSource`](dp_data::RowSource).
//! - `audit` (feature `audit`): values before noise, for `dp-audit-recipes`.
//!
//! # Examples
//! ```
//! use dp_accountant::{Delta, Epsilon, ZeroOut};
//! use dp_data::Examples;
//! use dp_losses::LossKind;
//! use dp_mechanisms::SeededRng;
//! use dp_optim::MemorySource;
//! use dp_optim::engine::Control;
//! use dp_optim::recipes::{BoltOn, Budget, Recipe};
//!
//! let (n, dim) = (1000, 2);
//! let rows = (0..n).flat_map(|i| [if i % 2 == 0 { 0.8 } else { -0.8 }, 0.6]).collect();
//! let labels = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
//! let mut source = MemorySource::new(Examples::dense(rows, labels, dim)?, 1.0, 1.0);
//!
//! let recipe = BoltOn::strongly_convex(LossKind::Logistic, 0.05);
//! let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
//! let plan = recipe.plan::<ZeroOut>(n as u64, dim as u64, budget)?;
//! // A seeded generator is reproducible and gives no protection: the log is marked accordingly.
//! let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(7), &mut Control::default())?;
//! assert!(!trained.log.is_private());
//! let weights = trained.weights.get();
//! assert!(weights[0] > 1.0, "the first feature tells the label");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "audit"))]
mod added_up;
#[cfg(feature = "audit")]
pub mod audit;
pub mod auto;
pub mod averaging;
pub mod catalogue;
pub mod defaults;
pub mod derivation;
pub mod descent;
pub mod engine;
pub mod error;
pub mod float;
pub mod growth;
pub mod lattice;
mod line_search;
pub mod memory;
pub mod recipes;
pub mod schedule;
pub mod trained;
pub mod tuning;

pub use auto::Auto;
pub use averaging::Averaging;
pub use derivation::{Choice, Derivation, DerivesModel, ModelTerms, WeightNoise};
pub use descent::Descent;
pub use error::Error;
pub use float::FloatKind;
pub use growth::Growth;
pub use lattice::{OffLattice, ReleaseLattice};
pub use memory::{ExpandingSource, MemorySource};
pub use schedule::Schedule;
pub use trained::Trained;

/// The README's example, compiled and run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
