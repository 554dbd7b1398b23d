//! What a certificate needs to say again how a release by PrivGene was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::{PrivGene, event, sensitivity};
use crate::derivation::{DerivesModel, ModelTerms};
use crate::error::{Error, positive};
use crate::lattice::ReleaseLattice;

/// How a release by PrivGene follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PrivGeneDerivation {
    /// The recipe.
    pub recipe: PrivGene,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// r: the rounds that were made.
    pub rounds: u64,
    /// e: what each costs, the range of its privacy loss.
    pub epsilon_of_round: f64,
}

impl Derives for PrivGeneDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.check(self.n, self.dim)?;
        sensitivity(self.relation)?;
        if self.rounds == 0 || self.recipe.rounds.is_some_and(|rounds| rounds != self.rounds) {
            return Err(Error::Count { name: "steps", value: self.rounds, range: "as many as the recipe makes" });
        }
        Ok(event(self.rounds, positive("epsilon of a round", self.epsilon_of_round)?))
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        vec![Assumption::PublicN, Assumption::RowNorm { bound: self.recipe.row_norm }, Assumption::OneRowPerUnit]
    }
}

impl DerivesModel for PrivGeneDerivation {
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
            noise_mode: NoiseMode::Exact,
        }
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        self.recipe.check(self.n, self.dim)?;
        Ok(ReleaseLattice::steps(self.recipe.steps(self.rounds).collect()))
    }
}
