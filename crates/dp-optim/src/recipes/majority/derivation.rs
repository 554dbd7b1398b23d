//! What a certificate needs to say again how a constant answer was released.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::Majority;
use crate::derivation::{DerivesModel, ModelTerms};
use crate::error::{Error, positive};
use crate::lattice::ReleaseLattice;
use crate::recipes::noise_scale::NoiseScale;

/// How a constant answer follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct MajorityDerivation {
    /// The recipe.
    pub recipe: Majority,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// Scale of the noise on the sum of the targets, in units of their bound.
    pub scale: f64,
}

impl Derives for MajorityDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.check(self.n, self.dim)?;
        let sensitivity = Majority::sensitivity(self.relation)?;
        Ok(DpEvent::LaplaceBall { scale: positive("noise scale", self.scale)?, sensitivity, dim: 1 })
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let mut assumptions = vec![Assumption::PublicN, Assumption::OneRowPerUnit];
        if self.recipe.noise_mode != NoiseMode::Exact {
            assumptions.push(Assumption::IdealisedFloat);
        }
        assumptions
    }
}

impl DerivesModel for MajorityDerivation {
    fn records(&self) -> u64 {
        self.n
    }

    fn model_terms(&self) -> ModelTerms {
        ModelTerms {
            models: 1,
            weights: self.dim,
            loss: self.recipe.loss,
            row_norm: self.recipe.row_norm,
            target_bound: self.recipe.target_bound,
            noise_mode: self.recipe.noise_mode,
        }
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        let grid = NoiseScale::LaplaceBall { scale: self.scale }.grid()?;
        Ok(ReleaseLattice::answers(self.recipe.clone(), self.n, grid.step()))
    }
}
