//! What a certificate needs to say again how a release with noise in every update was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::Scs13;
use crate::derivation::{DerivesModel, ModelTerms};
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::noise_scale::NoiseScale;

/// How a release of SCS13 follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Scs13Derivation {
    /// The recipe.
    pub recipe: Scs13,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// The noise that was added to the sum of each batch.
    pub noise: NoiseScale,
}

impl Derives for Scs13Derivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        let terms = self.recipe.terms(self.n, self.dim, self.relation)?;
        self.noise.check()?;
        Ok(terms.steps.event(self.noise.event(terms.sensitivity, terms.dim)))
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let mut assumptions =
            vec![Assumption::PublicN, Assumption::RowNorm { bound: self.recipe.row_norm }, Assumption::OneRowPerUnit];
        if self.recipe.noise_mode != NoiseMode::Exact {
            assumptions.push(Assumption::IdealisedFloat);
        }
        if self.recipe.declared_order {
            assumptions.push(Assumption::DeclaredOrder);
        }
        assumptions
    }
}

impl DerivesModel for Scs13Derivation {
    fn records(&self) -> u64 {
        self.n
    }

    fn model_terms(&self) -> ModelTerms {
        ModelTerms {
            models: 1,
            weights: self.recipe.loss.parameters(self.dim),
            loss: self.recipe.loss,
            row_norm: self.recipe.row_norm,
            target_bound: self.recipe.target_bound,
            noise_mode: self.recipe.noise_mode,
        }
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        Ok(ReleaseLattice::ANYWHERE.within(self.recipe.radius).in_precision(self.recipe.float))
    }
}
