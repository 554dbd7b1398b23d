//! What a certificate needs to say again how a release by objective perturbation was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent, ZeroOut};

use super::objective::{Certification, Objective};
use super::{ObjPert, RECIPE};
use crate::derivation::{DerivesModel, ModelTerms, RELEASE};
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::noise_scale::NoiseScale;

/// How a release by objective perturbation follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ObjPertDerivation {
    /// The recipe.
    pub recipe: ObjPert,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// Λ: coefficient of `‖w - c‖²/2` in the sum over records.
    pub regularization: f64,
    /// The noise in the linear term: the law and scale of `b`.
    pub noise: NoiseScale,
    /// The noise on the minimiser.
    pub release: NoiseScale,
    /// The noise on the moments from which the centre `c` is solved; without them it is 0.
    pub centre: Option<NoiseScale>,
    /// How the released point was certified to be near the minimiser.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Certification::is_plain"))]
    pub certification: Certification,
}

impl ObjPertDerivation {
    /// The objective, as public numbers.
    pub(super) fn objective(&self) -> Objective<'_> {
        Objective {
            recipe: &self.recipe,
            n: self.n,
            dim: self.dim,
            regularization: self.regularization,
            noise: self.noise,
            centred: self.centre.is_some(),
            certification: self.certification,
        }
    }

    /// The event of a release: composed of the centre's and of `events`, of the exact minimiser's and of the noise that hides
    /// how that was approached.
    fn event_of(&self, events: [DpEvent; 2]) -> Result<DpEvent, Error> {
        let stage = self.recipe.stage(self.n, self.dim);
        let of_centre = |noise: NoiseScale| -> Result<DpEvent, Error> {
            noise.check()?;
            Ok(noise.plain_event(stage.sensitivity::<ZeroOut>()?, stage.moments()))
        };
        let centre = self.centre.map(of_centre).transpose()?;
        under_relation(self.relation, DpEvent::Composed { events: centre.into_iter().chain(events).collect() })
    }

    /// The event with noise on the minimiser in units of its sensitivity, for calibration.
    pub(super) fn event_in_units(&self) -> Result<DpEvent, Error> {
        self.event_of(self.objective().events_in_units()?)
    }
}

/// The event under this relation of one of a record's presence.
pub(in crate::recipes) fn under_relation(relation: AdjacencyKind, event: DpEvent) -> Result<DpEvent, Error> {
    match relation {
        AdjacencyKind::ZeroOut => Ok(event),
        AdjacencyKind::ReplaceOne => Ok(DpEvent::AddRemoveTwice { event: Box::new(event) }),
        adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
    }
}

impl Derives for ObjPertDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.event_of(self.objective().events(self.release)?)
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        self.recipe.assumptions()
    }
}

impl DerivesModel for ObjPertDerivation {
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
        Ok(ReleaseLattice::on_grid(self.release.grid()?.step()))
    }

    fn work(&self) -> u64 {
        let centre = self.centre.map_or(0, |_| self.recipe.stage(self.n, self.dim).moments().saturating_mul(8));
        RELEASE.saturating_add(centre)
    }
}
