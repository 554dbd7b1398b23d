//! What a certificate needs to say again how a release by objective perturbation was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent, MarginLoss};
use dp_losses::{Domain, L2};
use dp_mechanisms::grid::{Grid, MAX_BITS};

use super::{ObjPert, RECIPE};
use crate::derivation::{DerivesModel, ModelTerms};
use crate::engine::minimise::{Certificate, Risk};
use crate::error::{Error, positive};

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
    /// Λ: coefficient of `‖w‖²/2` in the sum over records.
    pub regularization: f64,
    /// σ: standard deviation of the linear term's coordinates.
    pub std_dev: f64,
    /// s: standard deviation of the noise on the minimiser.
    pub release_std_dev: f64,
}

/// The noise multiplier of the release over that of the objective: what it costs besides is a thousandth of ε.
const RELEASE_MULTIPLIER: f64 = 30.0;

/// The tolerance over the least that rounding lets be certified for the expected noise: room for more noise than expected.
const ROOM: f64 = 8.0;

impl ObjPertDerivation {
    /// The numbers that certify the minimiser of the mean objective with a linear term of this norm.
    pub(super) fn risk(&self, linear_norm: f64) -> Result<Risk, Error> {
        let recipe = &self.recipe;
        recipe.check(self.n, self.dim)?;
        let strong_convexity = positive("regularization", self.regularization)? / self.n as f64;
        let domain = Domain::unit_rows().with_row_norm(recipe.row_norm)?.with_target_bound(recipe.target_bound)?;
        let constants = recipe.loss.constants(L2::new(strong_convexity)?, &domain);
        let value_at_zero = match recipe.margin_loss()? {
            MarginLoss::Logistic => core::f64::consts::LN_2,
            // At margin 0, of which the hinge makes 1 and its smooth form no more than 1 + h/4.
            MarginLoss::HuberSvm { width } => 1.0 + width,
            _ => recipe.target_bound,
        };
        let grid = Grid::new(positive("standard deviation", self.std_dev)?, MAX_BITS)?;
        // Half a step for each coordinate, and what the quotient by n is rounded by.
        let drawn = 0.5 * grid.step() * (self.dim as f64).sqrt() / self.n as f64;
        Ok(Risk {
            n: self.n,
            parameters: self.dim,
            outputs: 1,
            smoothness: constants.smoothness,
            strong_convexity,
            data_lipschitz: constants.data_lipschitz,
            value_at_zero: value_at_zero * (1.0 + 1e-12),
            linear_norm,
            linear_error: drawn + f64::EPSILON * linear_norm,
        })
    }

    /// τ: how near the minimiser a point must be certified to be.
    pub(super) fn tolerance(&self) -> Result<f64, Error> {
        // Longer noise than this has probability below e^-32; the certificate then says so before any record is read.
        let expected = self.std_dev * ((self.dim as f64).sqrt() + 8.0) / self.n as f64;
        Ok(ROOM * Certificate::least_tolerance(&self.risk(expected)?)?)
    }

    /// The event of a release whose objective has noise of this standard deviation under this regulariser: composed of the
    /// exact minimiser's and of the noise that hides how it was approached.
    pub(super) fn event_of(
        recipe: &ObjPert,
        relation: AdjacencyKind,
        regularization: f64,
        std_dev: f64,
        release: DpEvent,
    ) -> Result<DpEvent, Error> {
        // Rows of norm X and weights w are rows of norm 1 and weights X w.
        let inverse = recipe.row_norm.recip();
        let down = 1.0 - 4.0 * f64::EPSILON;
        let minimiser = DpEvent::ObjectivePerturbation {
            std_dev: std_dev * inverse * down,
            regularization: regularization * inverse * inverse * down,
            loss: recipe.margin_loss()?,
        };
        let event = DpEvent::Composed { events: vec![minimiser, release] };
        match relation {
            AdjacencyKind::ZeroOut => Ok(event),
            AdjacencyKind::ReplaceOne => Ok(DpEvent::AddRemoveTwice { event: Box::new(event) }),
            adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        }
    }

    /// The event of the noise on the minimiser in units of its sensitivity, for calibration.
    pub(super) fn release_of(recipe: &ObjPert, std_dev: f64) -> DpEvent {
        DpEvent::Gaussian { std_dev: RELEASE_MULTIPLIER * std_dev / recipe.row_norm, sensitivity: 1.0 }
    }

    /// The standard deviation of the noise on the minimiser.
    pub(super) fn release_std_dev(&self) -> Result<f64, Error> {
        let sensitivity = 2.0 * self.tolerance()?;
        Ok(RELEASE_MULTIPLIER * self.std_dev / self.recipe.row_norm * sensitivity * (1.0 + 8.0 * f64::EPSILON))
    }
}

impl Derives for ObjPertDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        let std_dev = positive("standard deviation", self.std_dev)?;
        let release = DpEvent::Gaussian {
            std_dev: positive("standard deviation of the release", self.release_std_dev)?,
            sensitivity: 2.0 * self.tolerance()?,
        };
        Self::event_of(&self.recipe, self.relation, self.regularization, std_dev, release)
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

impl DerivesModel for ObjPertDerivation {
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
