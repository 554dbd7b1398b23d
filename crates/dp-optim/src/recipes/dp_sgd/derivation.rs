//! What a certificate needs to say again how a release by DP-SGD was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::DpSgd;
use crate::derivation::{DerivesModel, ModelTerms};
use crate::descent::Descent;
use crate::engine::AdmmOutput;
use crate::error::Error;
use crate::lattice::ReleaseLattice;

/// How a release by DP-SGD follows from public parameters. The rate, the number of steps and the sensitivity are not
/// among them: they are recomputed.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DpSgdDerivation {
    /// The recipe.
    pub recipe: DpSgd,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// Standard deviation of the noise on each coordinate of each step's sum.
    pub std_dev: f64,
}

impl Derives for DpSgdDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.run(self.n, self.dim, self.relation)?.event(self.std_dev)
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let run = self.recipe.run(self.n, self.dim, self.relation);
        run.map(|run| run.assumptions(self.recipe.noise_mode)).unwrap_or_default()
    }
}

impl DerivesModel for DpSgdDerivation {
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
        let recipe = &self.recipe;
        let in_ball = match recipe.descent {
            Descent::Plain
            | Descent::Accelerated { .. }
            | Descent::Adam { .. }
            | Descent::AdamBc { .. }
            | Descent::Admm { output: AdmmOutput::Smooth, .. } => recipe.radius,
            // The copy that is released is not the one that is projected.
            Descent::Admm { output: AdmmOutput::Sparse, .. } | Descent::Consensus { .. } => None,
        };
        Ok(ReleaseLattice::ANYWHERE.within(in_ball).in_precision(recipe.float))
    }
}
