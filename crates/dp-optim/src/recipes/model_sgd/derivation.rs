//! The derivation of a model's noise from public numbers, as a certificate states it.

use dp_accountant::certificate::{Assumption, Derivation, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::ModelSgd;
use super::run::Resolved;
use crate::error::Error;

/// The derivation of the noise of a model's training.
///
/// Sensitivity, sampling rate and number of steps are not included: [`event`](Derivation::event) recomputes them by the function
/// that the plan used.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ModelDerivation {
    /// The recipe.
    pub recipe: ModelSgd,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of samples, public.
    pub n: u64,
    /// Number of the model's parameters.
    pub parameters: u64,
    /// σ: standard deviation of the noise on each coordinate of a step's sum.
    pub std_dev: f64,
}

impl ModelDerivation {
    pub(super) fn resolve(&self) -> Result<Resolved, Error> {
        self.recipe.resolve(self)
    }
}

impl Derivation for ModelDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.resolve()?.sums.event(self.std_dev)
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let text = "The model and its start are public, and its gradients have the norms that it states.".to_owned();
        let mut assumptions = vec![Assumption::PublicN, Assumption::OneRowPerUnit, Assumption::Other { text }];
        if self.recipe.noise_mode != NoiseMode::Exact {
            assumptions.push(Assumption::IdealisedFloat);
        }
        assumptions
    }
}
