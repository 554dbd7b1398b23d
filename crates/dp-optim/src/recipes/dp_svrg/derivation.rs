//! What a certificate needs to say again how a release by DP-SVRG was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::DpSvrg;
use crate::derivation::{DerivesModel, ModelTerms};
use crate::error::Error;
use crate::lattice::ReleaseLattice;

/// How a release by DP-SVRG follows from public parameters. The rate, the numbers of steps and the sensitivities are not
/// among them: they are recomputed.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DpSvrgDerivation {
    /// The recipe.
    pub recipe: DpSvrg,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// σ_g: standard deviation of the noise on each coordinate of the sum of all records' gradients.
    pub full_std_dev: f64,
    /// σ: standard deviation of the noise on each coordinate of a batch's sum of differences, in units of D.
    pub std_dev: f64,
}

impl Derives for DpSvrgDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.run(self.n, self.dim, self.relation)?.event(self.full_std_dev, self.std_dev)
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let run = self.recipe.run(self.n, self.dim, self.relation);
        run.map(|run| run.steps.assumptions(self.recipe.noise_mode)).unwrap_or_default()
    }
}

impl DerivesModel for DpSvrgDerivation {
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
