//! What a certificate needs to say again how a release by noisy Newton steps was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{Adjacency, AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};

use super::{Curvature, DpNewton, RECIPE, sums};
use crate::derivation::{DerivesModel, ModelTerms, RELEASE};
use crate::error::{Error, positive};
use crate::lattice::ReleaseLattice;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::recipe::repeated;

/// How a release by noisy Newton steps follows from public parameters. Sensitivities are not among them: they are
/// recomputed.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DpNewtonDerivation {
    /// The recipe.
    pub recipe: DpNewton,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// Standard deviation of the noise on each number of each step's sums.
    pub std_dev: f64,
    /// The same of the moments of which the curvature is bounded once.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub moments_std_dev: Option<f64>,
}

/// What the releases of a training move by, and how they compose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sensitivities {
    /// Of each step's sums.
    pub(super) step: f64,
    /// Of the moments, where the curvature is bounded once.
    pub(super) moments: Option<f64>,
}

impl Sensitivities {
    pub(super) fn new<A: Adjacency>(recipe: &DpNewton, n: u64, dim: u64) -> Result<Self, Error> {
        let joint = recipe.check(n, dim)?;
        Ok(match recipe.curvature {
            Curvature::EachStep => {
                let features = size("dimension", dim)?;
                let squares = sums::squares::<A>(joint, features, n)?;
                Self { step: sums::together(joint, features, n, &squares)?, moments: None }
            }
            Curvature::Once => Self {
                step: sums::of_gradient(joint, A::KIND)?,
                moments: Some(recipe.stage(n, dim).sensitivity::<A>()?),
            },
        })
    }

    /// All releases: moments with noise of the one standard deviation, steps with noise of the other.
    pub(super) fn event(self, steps: u64, std_dev: f64, moments_std_dev: Option<f64>) -> Result<DpEvent, Error> {
        let gaussian = |std_dev, sensitivity| DpEvent::Gaussian { std_dev, sensitivity };
        let steps = repeated(gaussian(positive("standard deviation", std_dev)?, self.step), steps);
        match (self.moments, moments_std_dev) {
            (None, None) => Ok(steps),
            (Some(sensitivity), Some(std_dev)) => {
                let moments = gaussian(positive("standard deviation of the moments", std_dev)?, sensitivity);
                Ok(DpEvent::Composed { events: vec![moments, steps] })
            }
            _ => Err(Error::NotProved {
                recipe: RECIPE,
                why: "moments are released where the curvature is bounded once",
            }),
        }
    }
}

impl DpNewtonDerivation {
    pub(super) fn sensitivities(&self) -> Result<Sensitivities, Error> {
        match self.relation {
            AdjacencyKind::ZeroOut => Sensitivities::new::<ZeroOut>(&self.recipe, self.n, self.dim),
            AdjacencyKind::ReplaceOne => Sensitivities::new::<ReplaceOne>(&self.recipe, self.n, self.dim),
            adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        }
    }

    /// The noise on the moments, if there are any.
    pub(super) fn moments_noise(&self) -> Option<NoiseScale> {
        self.moments_std_dev.map(|std_dev| NoiseScale::Gaussian { std_dev })
    }
}

impl Derives for DpNewtonDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.sensitivities()?.event(self.recipe.steps, self.std_dev, self.moments_std_dev)
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

impl DerivesModel for DpNewtonDerivation {
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

    fn work(&self) -> u64 {
        // The squares of all pairs of features are added up.
        RELEASE.saturating_add(self.dim.saturating_mul(self.dim).saturating_mul(8))
    }
}
