//! What a certificate needs to say again how a bolt-on release was made: the recipe, the public shape of the data and
//! the noise's scale. The sensitivity is not among them: it is recomputed.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::Domain;
use dp_mechanisms::grid::Grid;

use super::{BoltOn, RECIPE, Stopping, Terms, allow_for};
use crate::derivation::{DerivesModel, ModelTerms, RELEASE};
use crate::engine::minimise;
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::growth::{OrderPolicy, PositionClasses, closed_form};
use crate::lattice::ReleaseLattice;
use crate::recipes::noise_scale;

/// The noise of a release: its law and scale.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
pub enum NoiseScale {
    /// Density proportional to `exp(-‖z‖/scale)`.
    LaplaceBall {
        /// The scale.
        scale: f64,
    },
    /// Normal in each coordinate.
    Gaussian {
        /// The standard deviation.
        std_dev: f64,
    },
    /// The same, where the guarantee averages over the record's hidden position.
    HiddenPositionGaussian {
        /// The standard deviation.
        std_dev: f64,
    },
}

impl NoiseScale {
    /// The grid that the model is released on.
    fn grid(self) -> Result<Grid, Error> {
        match self {
            Self::LaplaceBall { scale } => noise_scale::NoiseScale::LaplaceBall { scale },
            Self::Gaussian { std_dev } | Self::HiddenPositionGaussian { std_dev } => {
                noise_scale::NoiseScale::Gaussian { std_dev }
            }
        }
        .grid()
    }
}

/// How a bolt-on release follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct BoltOnDerivation {
    /// The recipe.
    pub recipe: BoltOn,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// The noise that was added.
    pub noise: NoiseScale,
}

/// A sensitivity, with what it came from.
pub(in crate::recipes) struct Derived {
    pub(super) terms: Terms,
    pub(in crate::recipes) sensitivity: f64,
    pub(super) minimise: Option<minimise::Certificate>,
}

impl Derived {
    pub(in crate::recipes) fn new(recipe: &BoltOn, n: u64, dim: u64, relation: AdjacencyKind) -> Result<Self, Error> {
        let terms = recipe.terms(n, dim, relation)?;
        let (sensitivity, minimise) = match recipe.stopping {
            Stopping::Passes => (terms.growth.bound()?, None),
            Stopping::CertifiedMinimiser { tolerance } => {
                // The passes before only provide a start, but they run.
                terms.growth.validate()?;
                let g = terms.growth.gradient_difference;
                let apart = closed_form::strongly_convex_decreasing(n, recipe.lambda, g);
                let tolerance = tolerance.unwrap_or(0.01 * apart);
                let risk = minimise::Risk {
                    n,
                    parameters: recipe.loss.parameters(dim),
                    outputs: recipe.loss.outputs().into(),
                    smoothness: terms.constants.smoothness,
                    strong_convexity: recipe.lambda,
                    data_lipschitz: terms.lipschitz_everywhere,
                    value_at_zero: f64::INFINITY,
                    condition: recipe.loss.condition(&Domain::unit_rows().with_row_norm(recipe.row_norm)?),
                    linear_norm: 0.0,
                    linear_error: 0.0,
                };
                let certificate = minimise::Certificate::new(&risk, tolerance)?;
                let bound = closed_form::approximate_minimiser(n, recipe.lambda, g, tolerance);
                (bound * (1.0 + 1e-14), Some(certificate))
            }
        };
        let sensitivity = allow_for(recipe.float, sensitivity);
        if !(sensitivity.is_finite() && sensitivity > 0.0) {
            return Err(Error::Sensitivity { value: sensitivity, why: "no noise can be scaled to it" });
        }
        Ok(Self { terms, sensitivity, minimise })
    }

    /// The classes of positions, or `None` where the recipe does not hide the position, hiding it gains nothing, or
    /// the run is too long to say.
    pub(super) fn position_classes(&self, recipe: &BoltOn) -> Result<Option<PositionClasses>, Error> {
        let hidden = recipe.hide_position && recipe.order == OrderPolicy::Fixed && !recipe.declared_order;
        if !hidden || recipe.stopping != Stopping::Passes {
            return Ok(None);
        }
        if self.terms.growth.positions_are_even()? || !self.terms.growth.recursion_is_feasible() {
            return Ok(None);
        }
        let mut sensitivity = self.terms.growth.sensitivity()?;
        for value in &mut sensitivity.by_position {
            *value = allow_for(recipe.float, *value);
        }
        let classes = PositionClasses::new(&self.terms.growth, &sensitivity)?;
        Ok((!classes.is_single()).then_some(classes))
    }
}

impl Derives for BoltOnDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        let derived = Derived::new(&self.recipe, self.n, self.dim, self.relation)?;
        let sensitivity = derived.sensitivity;
        match self.noise {
            NoiseScale::LaplaceBall { scale } => Ok(DpEvent::LaplaceBall {
                scale: positive("noise scale", scale)?,
                sensitivity,
                dim: self.recipe.loss.parameters(self.dim),
            }),
            NoiseScale::Gaussian { std_dev } => {
                Ok(DpEvent::Gaussian { std_dev: positive("standard deviation", std_dev)?, sensitivity })
            }
            NoiseScale::HiddenPositionGaussian { std_dev } => {
                let classes = derived.position_classes(&self.recipe)?.ok_or(Error::NotProved {
                    recipe: RECIPE,
                    why: "this recipe gains nothing by hiding the position, or does not hide it",
                })?;
                let PositionClasses { sensitivities, weights } = classes;
                Ok(DpEvent::GaussianMixture {
                    std_dev: positive("standard deviation", std_dev)?,
                    sensitivities,
                    weights,
                })
            }
        }
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
        if self.recipe.float == FloatKind::F32 {
            assumptions.push(Assumption::FloatTraining);
        }
        if self.recipe.declared_order {
            assumptions.push(Assumption::DeclaredOrder);
        }
        assumptions
    }
}

impl DerivesModel for BoltOnDerivation {
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
        let released = ReleaseLattice::on_grid(self.noise.grid()?.step());
        Ok(released.within(recipe.radius).in_precision(recipe.float))
    }

    fn work(&self) -> u64 {
        // What is refused is refused at once. Hidden positions take a second recursion.
        let bound = self.recipe.terms(self.n, self.dim, self.relation).map_or(0, |terms| terms.growth.work());
        RELEASE.saturating_add(bound.saturating_mul(2))
    }
}
