//! What a certificate needs to say again how a release by perturbed ADMM was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::AdmmObjPert;
use crate::derivation::{DerivesModel, ModelTerms};
use crate::engine::AdmmOutput;
use crate::error::{Error, positive};
use crate::lattice::ReleaseLattice;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::obj_pert::{Certification, ObjPert, Objective, under_relation};
use crate::recipes::recipe::repeated;

/// How a release by perturbed ADMM follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct AdmmObjPertDerivation {
    /// The recipe.
    pub recipe: AdmmObjPert,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// ρ, as it runs.
    pub rho: f64,
    /// The noise in each linear term: the law and scale of `b`.
    pub noise: NoiseScale,
    /// The noise on each minimiser.
    pub release: NoiseScale,
    /// How the released point was certified to be near the minimiser.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Certification::is_plain"))]
    pub certification: Certification,
}

impl AdmmObjPertDerivation {
    /// Λ: coefficient of `‖x - c‖²/2` in the sum over records.
    pub(super) fn regularization(&self) -> f64 {
        self.n as f64 * (self.rho + self.recipe.lambda)
    }

    /// Each iteration's objective.
    pub(super) fn objective<'o>(&self, each: &'o ObjPert) -> Objective<'o> {
        let Self { n, dim, noise, certification, .. } = *self;
        Objective { recipe: each, n, dim, regularization: self.regularization(), noise, centred: true, certification }
    }

    /// The event of all iterations, of which an iteration's are given.
    fn event_of(&self, events: [DpEvent; 2]) -> Result<DpEvent, Error> {
        let each = DpEvent::Composed { events: events.into() };
        under_relation(self.relation, repeated(each, self.recipe.iterations))
    }

    /// The event with noise on the minimisers in units of their sensitivity, for calibration.
    pub(super) fn event_in_units(&self) -> Result<DpEvent, Error> {
        let each = self.recipe.each();
        self.event_of(self.objective(&each).events_in_units()?)
    }
}

impl Derives for AdmmObjPertDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.check(self.n, self.dim)?;
        positive("rho", self.rho)?;
        let each = self.recipe.each();
        self.event_of(self.objective(&each).events(self.release)?)
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        self.recipe.each().assumptions()
    }
}

impl DerivesModel for AdmmObjPertDerivation {
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
        match self.recipe.output {
            // What the penalty's map made of a release.
            AdmmOutput::Sparse => Ok(ReleaseLattice::ANYWHERE),
            AdmmOutput::Smooth => Ok(ReleaseLattice::on_grid(self.release.grid()?.step())),
        }
    }
}
