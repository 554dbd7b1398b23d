//! What a certificate needs to say again how a release by objective perturbation was made.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent, MarginLoss, ZeroOut, objective_perturbation};
use dp_losses::{Domain, L2};
use dp_mechanisms::grid::{Grid, MAX_BITS};

use super::{ObjPert, RECIPE};
use crate::derivation::{DerivesModel, ModelTerms};
use crate::engine::minimise::{Certificate, Risk};
use crate::error::{Error, positive};
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
}

/// The noise multiplier of the release over that of the objective, Gaussian: what it costs besides is a thousandth of ε.
const RELEASE_MULTIPLIER: f64 = 30.0;

/// The same for noise without delta, whose costs add up.
const PURE_RELEASE_MULTIPLIER: f64 = 1000.0;

/// The centre is brought into the ball of this radius, for rows of norm 1: noisy least squares may be anywhere.
const CENTRE_RADIUS: f64 = 1000.0;

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
            MarginLoss::Softmax { classes } => f64::from(classes).ln(),
            _ => recipe.target_bound,
        };
        self.noise.check()?;
        let grid = Grid::new(self.noise.scale(), MAX_BITS)?;
        let parameters = recipe.loss.parameters(self.dim);
        // Half a step for each coordinate, and what the quotient by n and the centre are rounded by.
        let drawn = 0.5 * grid.step() * (parameters as f64).sqrt() / self.n as f64;
        Ok(Risk {
            n: self.n,
            parameters,
            outputs: recipe.loss.outputs().into(),
            smoothness: constants.smoothness,
            strong_convexity,
            data_lipschitz: constants.data_lipschitz,
            value_at_zero: value_at_zero * (1.0 + 1e-12),
            linear_norm,
            linear_error: drawn + 4.0 * f64::EPSILON * linear_norm,
        })
    }

    /// R: the centre's norm is at most this.
    pub(super) fn centre_radius(&self) -> f64 {
        if self.centre.is_some() { CENTRE_RADIUS / self.recipe.row_norm } else { 0.0 }
    }

    /// At most this is the norm of the linear term of the *mean* objective, but with probability `e^-32`, whatever the centre:
    /// `(‖b‖ + ΛR)/n`.
    pub(super) fn largest_linear_norm(&self) -> f64 {
        let noise = self.noise.largest_norm(self.recipe.loss.parameters(self.dim));
        (noise + self.regularization * self.centre_radius()) / self.n as f64
    }

    /// τ: how near the minimiser a point must be certified to be.
    pub(super) fn tolerance(&self) -> Result<f64, Error> {
        // Longer noise has no certificate, which says so before any record is read.
        let least = ROOM * Certificate::least_tolerance(&self.risk(self.largest_linear_norm())?)?;
        // A gradient of γ in the mean is one of nγ in the sum, whose curvature is at least Λ.
        let asked = self.recipe.gradient_tolerance.map(|gamma| gamma * self.n as f64 / self.regularization);
        Ok(asked.map_or(least, |asked| asked.max(least)))
    }

    /// The event of a release: composed of the centre's, of the exact minimiser's and of the noise that hides how that was
    /// approached, of which `release` is the event.
    pub(super) fn event_of(&self, release: DpEvent) -> Result<DpEvent, Error> {
        let recipe = &self.recipe;
        // Rows of norm X and weights w are rows of norm 1 and weights X w.
        let inverse = recipe.row_norm.recip();
        let down = 1.0 - 4.0 * f64::EPSILON;
        let scale = self.noise.scale() * inverse * down;
        let regularization = positive("regularization", self.regularization)? * inverse * inverse * down;
        let loss = recipe.margin_loss()?;
        let minimiser = if self.noise.is_pure() {
            DpEvent::PureDp { epsilon: objective_perturbation::pure_epsilon(scale, regularization, loss)? }
        } else {
            DpEvent::ObjectivePerturbation { std_dev: scale, regularization, loss }
        };
        let stage = recipe.stage(self.n, self.dim);
        let of_centre = |noise: NoiseScale| -> Result<DpEvent, Error> {
            noise.check()?;
            Ok(noise.plain_event(stage.sensitivity::<ZeroOut>()?, stage.moments()))
        };
        let centre = self.centre.map(of_centre).transpose()?;
        let event = DpEvent::Composed { events: centre.into_iter().chain([minimiser, release]).collect() };
        match self.relation {
            AdjacencyKind::ZeroOut => Ok(event),
            AdjacencyKind::ReplaceOne => Ok(DpEvent::AddRemoveTwice { event: Box::new(event) }),
            adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        }
    }

    /// The noise on the minimiser for a sensitivity of 1: a multiple of that of the objective in units of a row's norm.
    fn release_in_units(&self) -> NoiseScale {
        let times = if self.noise.is_pure() { PURE_RELEASE_MULTIPLIER } else { RELEASE_MULTIPLIER };
        self.noise.with_scale(times * self.noise.scale() / self.recipe.row_norm)
    }

    /// The event with noise on the minimiser in units of its sensitivity, for calibration.
    pub(super) fn event_in_units(&self) -> Result<DpEvent, Error> {
        self.event_of(self.release_in_units().plain_event(1.0, self.recipe.loss.parameters(self.dim)))
    }

    /// The noise on the minimiser.
    pub(super) fn release_noise(&self) -> Result<NoiseScale, Error> {
        let in_units = self.release_in_units();
        Ok(in_units.with_scale(in_units.scale() * 2.0 * self.tolerance()? * (1.0 + 8.0 * f64::EPSILON)))
    }
}

impl Derives for ObjPertDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.noise.check()?;
        self.release.check()?;
        if self.release.is_pure() != self.noise.is_pure() {
            let why = "the noise on the minimiser has the law of that in the objective";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
        self.event_of(self.release.plain_event(2.0 * self.tolerance()?, self.recipe.loss.parameters(self.dim)))
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
            weights: self.recipe.loss.parameters(self.dim),
            loss: self.recipe.loss,
            row_norm: self.recipe.row_norm,
            target_bound: self.recipe.target_bound,
            noise_mode: self.recipe.noise_mode,
        }
    }
}
