//! What a certificate needs to say again how a release by RSGD-AR was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::{RECIPE, RsgdAr};
use crate::derivation::{DerivesModel, ModelTerms};
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::bolt_on::{BoltOnDerivation, NoiseScale};

/// How a release by RSGD-AR follows from public parameters. The sensitivities are not among them: they are recomputed.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RsgdArDerivation {
    /// The recipe.
    pub recipe: RsgdAr,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// The noise that was added: Gaussian.
    pub noise: NoiseScale,
}

impl RsgdArDerivation {
    fn as_bolt_on(&self) -> BoltOnDerivation {
        let Self { recipe, relation, n, dim, noise } = self;
        BoltOnDerivation { recipe: recipe.as_bolt_on(*n), relation: *relation, n: *n, dim: *dim, noise: *noise }
    }
}

impl Derives for RsgdArDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.check()?;
        if matches!(self.noise, NoiseScale::LaplaceBall { .. }) {
            return Err(Error::NotProved { recipe: RECIPE, why: "its noise is Gaussian" });
        }
        self.as_bolt_on().event()
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        self.as_bolt_on().assumptions()
    }
}

impl DerivesModel for RsgdArDerivation {
    fn records(&self) -> u64 {
        self.n
    }

    fn model_terms(&self) -> ModelTerms {
        self.as_bolt_on().model_terms()
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        self.as_bolt_on().release_lattice()
    }

    fn work(&self) -> u64 {
        self.as_bolt_on().work()
    }
}
