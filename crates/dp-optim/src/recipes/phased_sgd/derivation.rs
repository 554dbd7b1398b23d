//! What a certificate needs to say again how a release was made. The sensitivities are not among it: they are
//! recomputed.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne};

use super::{PhasedSgd, RECIPE};
use crate::averaging::Averaging;
use crate::derivation::{DerivesModel, ModelTerms, RELEASE};
use crate::error::{Error, positive};
use crate::growth::{Divisor, Growth, OrderPolicy, Rounding};
use crate::lattice::ReleaseLattice;
use crate::recipes::phases::{Phase, PhaseNoise, Reach};
use crate::schedule::Schedule;

/// How a Phased-SGD release follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PhasedSgdDerivation {
    /// The recipe.
    pub recipe: PhasedSgd,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// Standard deviation of each phase's noise over its sensitivity: `1/ρ`, which the default step size depends on too.
    pub noise_multiplier: f64,
}

/// The phases that run, with the sensitivity of each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Derived {
    pub(super) phases: Vec<Phase>,
    pub(super) sensitivities: Vec<f64>,
}

impl Derived {
    pub(super) fn new(
        recipe: &PhasedSgd,
        n: u64,
        dim: u64,
        relation: AdjacencyKind,
        noise_multiplier: f64,
    ) -> Result<Self, Error> {
        let inputs = recipe.inputs();
        inputs.check(dim)?;
        let (constants, gradient_difference) = inputs.constants(Some(recipe.radius), relation)?;
        if !constants.smoothness.is_finite() {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "gradient steps on a loss with a kink drive two runs apart: use phased-erm, or a smooth loss",
            });
        }
        let rho = 1.0 / positive("noise multiplier", noise_multiplier)?;
        let mut phases = inputs.phases(n, dim, rho, Reach::Ball, relation)?;
        // A phase of one record would release its start again.
        phases.retain(|phase| phase.records > 1);
        if phases.is_empty() {
            return Err(Error::Count { name: "number of records", value: n, range: "4 or more in each stage" });
        }
        if !phases.iter().all(|phase| phase.step * constants.smoothness <= 2.0) {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "steps above 2/smoothness drive two runs apart: choose a step size of at most 8/smoothness",
            });
        }
        let unit = f64::EPSILON / 2.0;
        let sensitivity = |phase: &Phase| -> Result<f64, Error> {
            let growth = Growth {
                n: phase.records - 1,
                batch_size: 1,
                passes: 1,
                schedule: Schedule::Constant { step: phase.step },
                averaging: Averaging::Uniform,
                order: OrderPolicy::Fixed,
                divisor: Divisor::Nominal,
                smoothness: constants.smoothness,
                strong_convexity: recipe.lambda,
                gradient_difference,
                radius: Some(recipe.radius),
                rounding: Some(Rounding {
                    unit_roundoff: unit,
                    dim: recipe.loss.parameters(dim),
                    outputs: u64::from(recipe.loss.outputs()),
                    data_lipschitz: constants.data_lipschitz,
                    arithmetic: recipe.arithmetic,
                }),
            };
            let moved = growth.bound_from(recipe.radius)?;
            // The average of all points, the start included; its two products and its sum are rounded.
            let start_weight = 1.0 / phase.records as f64;
            Ok(moved * (1.0 - start_weight) * (1.0 + 8.0 * unit) + 2.0 * 4.0 * unit * recipe.radius)
        };
        let sensitivities = phases.iter().map(sensitivity).collect::<Result<_, _>>()?;
        Ok(Self { phases, sensitivities })
    }
}

impl PhasedSgdDerivation {
    /// The noise of each phase. Neither its events nor its grids say anything of the relation: any will do.
    fn noise(&self) -> Result<PhaseNoise<ReplaceOne>, Error> {
        let derived = Derived::new(&self.recipe, self.n, self.dim, self.relation, self.noise_multiplier)?;
        PhaseNoise::new(&derived.sensitivities, self.noise_multiplier, self.recipe.noise_mode)
    }
}

impl Derives for PhasedSgdDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        Ok(self.noise()?.event())
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        self.recipe.inputs().assumptions()
    }
}

impl DerivesModel for PhasedSgdDerivation {
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
        let released =
            self.noise()?.last_grid().map_or(ReleaseLattice::ORIGIN, |grid| ReleaseLattice::on_grid(grid.step()));
        Ok(released.within(Some(self.recipe.radius)))
    }

    fn work(&self) -> u64 {
        RELEASE.saturating_add(self.n)
    }
}
