//! Algorithms of the literature, each a choice of the engine's parts with its theorem.

pub mod bolt_on;
mod linear;
pub mod non_private;

pub use bolt_on::{Algorithm, BoltOn, Budget, OutputNoise, Plan, Stopping};
pub use non_private::{NonPrivate, train_without_privacy};
