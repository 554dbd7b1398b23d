//! What a certificate needs to say again how a release was made. The sensitivities are not among it: they are
//! recomputed.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne};
use dp_losses::{Loss, LossKind, ProximalLoss, ProximalVisitor};

use super::{PhasedErm, RECIPE};
use crate::derivation::{DerivesModel, ModelTerms};
use crate::engine::dual_ascent::{Certificate, Terms};
use crate::error::{Error, positive};
use crate::lattice::ReleaseLattice;
use crate::recipes::phases::{Phase, PhaseNoise, Reach};

/// Largest half width of a loss's parabola: beyond it rounding is not that of slopes of size 1.
const WIDEST: f64 = 16.0;

/// How a Phased-ERM release follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PhasedErmDerivation {
    /// The recipe.
    pub recipe: PhasedErm,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// Standard deviation of each phase's noise over its sensitivity: `1/ρ`, which the default step size depends on too.
    pub noise_multiplier: f64,
}

/// What one phase minimises, and how closely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Objective {
    /// `λ + λ_i`.
    pub(super) modulus: f64,
    /// `λ_i / (λ + λ_i)`: the centre is this multiple of the start.
    pub(super) centre: f64,
    pub(super) certificate: Certificate,
}

/// The phases that run, with what each minimises and its sensitivity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Derived {
    pub(super) phases: Vec<Phase>,
    pub(super) objectives: Vec<Objective>,
    pub(super) sensitivities: Vec<f64>,
}

/// What the certificate has to know of a loss.
struct Shape {
    /// Length of the interval of slopes.
    slopes: f64,
    /// Largest loss at prediction 0.
    at_zero: f64,
}

struct ShapeOf {
    target_bound: f64,
}

impl ProximalVisitor<f64> for ShapeOf {
    type Output = Shape;

    fn visit<L: ProximalLoss<f64>>(self, loss: L) -> Shape {
        let (low, high) = loss.dual_range();
        // Each is convex in the target.
        let bound = self.target_bound;
        let at_zero = Loss::value(&loss, 0.0, bound).max(Loss::value(&loss, 0.0, -bound));
        Shape { slopes: high - low, at_zero }
    }
}

impl Derived {
    pub(super) fn new(
        recipe: &PhasedErm,
        n: u64,
        dim: u64,
        relation: AdjacencyKind,
        noise_multiplier: f64,
    ) -> Result<Self, Error> {
        let inputs = recipe.inputs();
        inputs.check(dim)?;
        positive("slack", recipe.slack)?;
        let width = match recipe.loss {
            LossKind::HuberSvm(loss) => loss.h(),
            LossKind::HuberRegression(loss) => loss.h(),
            _ => 0.0,
        };
        if !(width <= WIDEST) {
            return Err(Error::OutOfRange { name: "half width", value: width, range: "(0, 16] for phased-erm" });
        }
        let shape = recipe.loss.visit_proximal(ShapeOf { target_bound: recipe.target_bound }).ok_or(Error::NotProved {
            recipe: RECIPE,
            why: "this loss's slopes are not bounded, or it has several outputs: use logistic, hinge, absolute or a loss of Huber",
        })?;
        let rho = 1.0 / positive("noise multiplier", noise_multiplier)?;
        let phases = inputs.phases(n, dim, rho, Reach::Anywhere, relation)?;
        if phases.is_empty() {
            return Err(Error::Count { name: "number of records", value: n, range: "2 or more in each stage" });
        }
        let mut objectives = Vec::with_capacity(phases.len());
        let mut sensitivities = Vec::with_capacity(phases.len());
        for phase in &phases {
            let records = phase.records as f64;
            let own = positive("strong convexity of a phase", 2.0 / (phase.step * records))?;
            let modulus = own + recipe.lambda;
            // λ‖w* - v‖ is at most the data's gradient at w*; and λ/2 ‖w* - v‖² at most the risk at v, which is no more
            // than the loss at 0 and what R can add to it.
            let by_slope = recipe.row_norm / modulus;
            let by_value = (2.0 * (shape.at_zero + recipe.row_norm * recipe.radius) / modulus).sqrt();
            let reach = by_slope.min(by_value) * (1.0 + 1e-12);
            let (_, gradient_difference) = inputs.constants(Some((recipe.radius + reach) * (1.0 + 1e-12)), relation)?;
            let apart = gradient_difference / (modulus * records) * (1.0 + 8.0 * f64::EPSILON);
            let terms = Terms {
                n: phase.records,
                dim,
                modulus,
                row_norm: recipe.row_norm,
                slopes: shape.slopes,
                offset: 1.0 + recipe.target_bound + width,
                centre_norm: recipe.radius * (1.0 + 1e-12),
                reach,
            };
            let tolerance = (0.5 * recipe.slack * apart).max(terms.least_tolerance());
            let certificate = terms.certificate(tolerance)?;
            objectives.push(Objective { modulus, centre: own / modulus, certificate });
            sensitivities.push((apart + 2.0 * tolerance) * (1.0 + 4.0 * f64::EPSILON));
        }
        Ok(Self { phases, objectives, sensitivities })
    }
}

impl PhasedErmDerivation {
    /// The noise of each phase. Neither its events nor its grids say anything of the relation: any will do.
    fn noise(&self) -> Result<PhaseNoise<ReplaceOne>, Error> {
        let derived = Derived::new(&self.recipe, self.n, self.dim, self.relation, self.noise_multiplier)?;
        PhaseNoise::new(&derived.sensitivities, self.noise_multiplier, self.recipe.noise_mode)
    }
}

impl Derives for PhasedErmDerivation {
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

impl DerivesModel for PhasedErmDerivation {
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
        let released =
            self.noise()?.last_grid().map_or(ReleaseLattice::ORIGIN, |grid| ReleaseLattice::on_grid(grid.step()));
        Ok(released.within(Some(self.recipe.radius)))
    }
}
