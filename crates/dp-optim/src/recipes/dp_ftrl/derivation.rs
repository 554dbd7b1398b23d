//! What a certificate needs to say again how a release by DP-FTRL was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::DpFtrl;
use crate::derivation::{DerivesModel, ModelTerms, RELEASE};
use crate::error::Error;
use crate::lattice::ReleaseLattice;

/// How a release by DP-FTRL follows from public parameters. The number of steps and the
/// sensitivity are not among them: they are recomputed.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DpFtrlDerivation {
    /// The recipe.
    pub recipe: DpFtrl,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// Diagonals of the factor.
    pub bands: u64,
    /// Standard deviation of the noise on each coordinate of each row of `Cf G`.
    pub std_dev: f64,
}

impl Derives for DpFtrlDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.run(self.n, self.dim, self.relation, self.bands)?.event(self.std_dev)
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let run = self.recipe.run(self.n, self.dim, self.relation, self.bands);
        run.map(|run| run.assumptions(self.recipe.noise_mode)).unwrap_or_default()
    }
}

impl DerivesModel for DpFtrlDerivation {
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

    fn work(&self) -> u64 {
        // Each step, for each diagonal of the factor or each pass that the record is in.
        let steps = self.n.saturating_mul(self.recipe.passes) / self.recipe.batch_size.clamp(1, self.n.max(1));
        RELEASE.saturating_add(steps.saturating_mul(self.recipe.passes.saturating_add(64)))
    }
}
