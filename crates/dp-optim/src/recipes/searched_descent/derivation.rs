//! What a certificate needs to say again how a release by descent with a private line search was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::SearchedDescent;
use crate::derivation::{DerivesModel, ModelTerms};
use crate::error::{Error, positive};

/// How such a release follows from public parameters: the recipe, and the budget of the filter that was asked before each
/// of its parts. What was spent, and on what, is not among it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SearchedDescentDerivation {
    /// The recipe.
    pub recipe: SearchedDescent,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// The filter's budget of zCDP.
    pub rho: f64,
}

impl Derives for SearchedDescentDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.check(self.n, self.dim, self.relation)?;
        Ok(DpEvent::Zcdp { rho: positive("rho", self.rho)? })
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

impl DerivesModel for SearchedDescentDerivation {
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
}
