//! Errors of training a ranker.

use crate::error::Error;

/// Errors of planning and training.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Lists and scorer do not match each other or the plan.
    #[error(transparent)]
    Ranking(#[from] Error),
    /// A setting outside its range.
    #[error("{name} = {value} must lie in {range}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// The given value.
        value: f64,
        /// The accepted range.
        range: &'static str,
    },
    /// A setting that uses protected data as public.
    #[error("{what} must be public, but features are public only where nothing but grades is protected")]
    Protected {
        /// The setting.
        what: &'static str,
    },
    /// Public weights of lists for a loss without known bounds on its gradients.
    #[error("how far grades can move a gradient of this loss is not known: lists can only be clipped")]
    UnknownImage,
    /// The noise was not drawn.
    #[error("without noise there is no guarantee: choose exact or rounded noise")]
    NoNoise,
    /// An event that cannot be accounted, or a budget that no noise attains.
    #[error(transparent)]
    Accountant(#[from] dp_accountant::Error),
    /// A mechanism refuses its parameters, or the random number generator fails.
    #[error(transparent)]
    Mechanism(#[from] dp_mechanisms::Error),
    /// Batches that cannot be drawn.
    #[error(transparent)]
    Batches(#[from] dp_optim::Error),
}
