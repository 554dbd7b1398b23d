//! What a certificate needs to say again how a release by descent with a private line search was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::SearchedDescent;
use crate::derivation::{DerivesModel, ModelTerms};
use crate::error::{Error, positive};
use crate::lattice::ReleaseLattice;

/// What a filter admits in all.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum FilterBudget {
    /// So much zCDP: with all records at each step.
    Zcdp {
        /// The budget.
        rho: f64,
    },
    /// So much Renyi divergence at one order: with random batches.
    Renyi {
        /// The order.
        order: f64,
        /// The divergence.
        divergence: f64,
    },
}

impl FilterBudget {
    pub(super) fn event(self) -> Result<DpEvent, Error> {
        Ok(match self {
            Self::Zcdp { rho } => DpEvent::Zcdp { rho: positive("rho", rho)? },
            Self::Renyi { order, divergence } => DpEvent::RenyiDp {
                orders: vec![positive("order", order)?],
                divergences: vec![positive("divergence", divergence)?],
            },
        })
    }
}

/// How such a release follows from public parameters: the recipe, and the budget of the filter that was asked before
/// each of its parts. What was spent, and on what, is not among it.
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
    /// The filter's budget.
    pub budget: FilterBudget,
}

impl Derives for SearchedDescentDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.check(self.n, self.dim, self.relation)?;
        // Of a random batch's release nothing is known at another order, of another at one alone.
        if matches!(self.budget, FilterBudget::Renyi { .. }) != self.recipe.batch_size.is_some() {
            return Err(Error::NotProved { recipe: super::RECIPE, why: "its filter is of another kind" });
        }
        self.budget.event()
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

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        Ok(ReleaseLattice::ANYWHERE)
    }
}
