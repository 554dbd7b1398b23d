//! What can go wrong in training a ranker.

use crate::error::Error;

/// Errors of planning and training.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Lists and scorer do not fit each other or the plan.
    #[error(transparent)]
    Ranking(#[from] Error),
    /// A setting outside its range.
    #[error("{name} = {value} must lie in {range}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is accepted.
        range: &'static str,
    },
    /// Something that uses as public what is to be protected.
    #[error("{what} would have to be public, which features are only where nothing but grades is protected")]
    Protected {
        /// What was asked for.
        what: &'static str,
    },
    /// Public weights of lists for a loss of which nothing is known.
    #[error("how far grades can move a gradient of this loss is not known: lists can only be clipped")]
    UnknownImage,
    /// Noise that is not drawn.
    #[error("without noise there is no guarantee: choose exact or rounded noise")]
    NoNoise,
    /// An event that cannot be accounted, or a budget that no noise reaches.
    #[error(transparent)]
    Accountant(#[from] dp_accountant::Error),
    /// A mechanism that refuses its numbers, or a generator of random numbers that fails.
    #[error(transparent)]
    Mechanism(#[from] dp_mechanisms::Error),
    /// Batches that cannot be drawn.
    #[error(transparent)]
    Batches(#[from] dp_optim::Error),
}
