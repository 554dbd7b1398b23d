//! What a certificate needs to say again how noisy moments were released.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};

use super::{NoisyMoments, RECIPE};
use crate::derivation::{DerivesModel, ModelTerms, RELEASE};
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::noise_scale::NoiseScale;

/// How a model from noisy moments follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct NoisyMomentsDerivation {
    /// The recipe.
    pub recipe: NoisyMoments,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// The noise on the moments.
    pub noise: NoiseScale,
}

impl Derives for NoisyMomentsDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.check(self.n, self.dim)?;
        let stage = self.recipe.stage(self.n, self.dim);
        match self.relation {
            AdjacencyKind::ZeroOut => stage.event::<ZeroOut>(self.noise),
            AdjacencyKind::ReplaceOne => stage.event::<ReplaceOne>(self.noise),
            adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        }
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
        assumptions
    }
}

impl DerivesModel for NoisyMomentsDerivation {
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
        Ok(ReleaseLattice::ANYWHERE)
    }

    fn work(&self) -> u64 {
        RELEASE.saturating_add(self.recipe.stage(self.n, self.dim).moments().saturating_mul(8))
    }
}
