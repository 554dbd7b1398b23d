//! What both phased recipes derive from their public parameters.

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::{Constants, Domain, L2, LossKind};

use super::{Phase, Problem, localising};
use crate::error::{Error, positive};

/// C in the excess loss `C D L (1/√n + √d/(ρn))` of the phases: their bound's 5/3 and 16, whichever is larger.
const EXCESS_CONSTANT: f64 = 16.0;

/// Where gradients are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recipes) enum Reach {
    /// In the ball that every iterate is projected onto.
    Ball,
    /// Wherever the minimiser of a phase lies.
    Anywhere,
}

/// The public parameters that the phased recipes have in common.
#[derive(Debug, Clone, Copy)]
pub(in crate::recipes) struct Inputs {
    pub(in crate::recipes) recipe: &'static str,
    pub(in crate::recipes) loss: LossKind,
    pub(in crate::recipes) lambda: f64,
    pub(in crate::recipes) radius: f64,
    pub(in crate::recipes) distance: Option<f64>,
    pub(in crate::recipes) step: Option<f64>,
    pub(in crate::recipes) restarts: bool,
    pub(in crate::recipes) row_norm: f64,
    pub(in crate::recipes) target_bound: f64,
    pub(in crate::recipes) noise_mode: NoiseMode,
    pub(in crate::recipes) declared_order: bool,
}

impl Inputs {
    /// Checks everything but the number of records.
    pub(in crate::recipes) fn check(&self, dim: u64) -> Result<(), Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: self.recipe, why });
        if !matches!(self.noise_mode, NoiseMode::Exact | NoiseMode::Rounded) {
            return not_proved("without noise there is no guarantee: choose exact or rounded noise");
        }
        if dim == 0 {
            return Err(Error::Count { name: "dimension", value: 0, range: "1 or more" });
        }
        if !(self.row_norm.is_finite() && self.row_norm > 0.0 && self.row_norm <= 1.0) {
            return Err(Error::OutOfRange { name: "row norm", value: self.row_norm, range: "(0, 1]" });
        }
        if self.loss.is_classification() && !(self.target_bound <= 1.0) {
            return Err(Error::OutOfRange {
                name: "target bound",
                value: self.target_bound,
                range: "[0, 1] for a loss of two classes",
            });
        }
        positive("radius", self.radius)?;
        if !(self.radius <= 1e30) {
            return Err(Error::OutOfRange { name: "radius", value: self.radius, range: "(0, 1e30]" });
        }
        for (name, value) in [("distance", self.distance), ("step size", self.step)] {
            if let Some(value) = value {
                positive(name, value)?;
            }
        }
        if self.restarts && !(self.lambda > 0.0) {
            return Err(Error::OutOfRange {
                name: "lambda",
                value: self.lambda,
                range: "(0, inf) for stages that use strong convexity",
            });
        }
        Ok(())
    }

    /// The loss's constants over what can be reached, and G under this relation.
    pub(in crate::recipes) fn constants(
        &self,
        radius: Option<f64>,
        adjacency: AdjacencyKind,
    ) -> Result<(Constants, f64), Error> {
        let mut domain = Domain::unit_rows().with_row_norm(self.row_norm)?.with_target_bound(self.target_bound)?;
        if let Some(radius) = radius {
            domain = domain.with_radius(radius)?;
        }
        let constants = self.loss.constants(L2::new(self.lambda)?, &domain);
        let gradient_difference = match adjacency {
            AdjacencyKind::ReplaceOne => constants.gradient_difference,
            // A null record's data gradient is zero.
            AdjacencyKind::ZeroOut => constants.data_lipschitz,
            adjacency => return Err(Error::Adjacency { recipe: self.recipe, adjacency }),
        };
        if !(gradient_difference.is_finite() && gradient_difference > 0.0) {
            return Err(Error::NotProved {
                recipe: self.recipe,
                why: "this loss has no bound on its gradients here: choose one whose slopes are bounded",
            });
        }
        Ok((constants, gradient_difference))
    }

    /// The phases for `n` records under noise of this ρ; steps no longer than `longest`, where they are not given.
    pub(in crate::recipes) fn phases(
        &self,
        n: u64,
        dim: u64,
        rho: f64,
        reach: Reach,
        adjacency: AdjacencyKind,
    ) -> Result<Vec<Phase>, Error> {
        let radius = (reach == Reach::Ball).then_some(self.radius);
        let (constants, gradient_difference) = self.constants(radius, adjacency)?;
        let lipschitz = constants.data_lipschitz + self.lambda * self.radius;
        let distance = self.distance.unwrap_or(self.radius);
        let problem = Problem { lipschitz, gradient_difference, distance, dim: self.loss.parameters(dim), rho };
        // The longest step under which a gradient step does not drive two points apart is 2/β, and the first phase's is
        // a fourth of η.
        let longest = if reach == Reach::Ball { 8.0 / constants.smoothness * (1.0 - 1e-15) } else { f64::INFINITY };
        let step = |problem: &Problem, records| problem.step(records).min(longest);
        if !self.restarts {
            return Ok(localising(n, self.step.unwrap_or_else(|| step(&problem, n))));
        }
        let problem = Problem { distance: distance.min(2.0 * lipschitz / self.lambda), ..problem };
        let reduction = problem.reduction(n, self.lambda, EXCESS_CONSTANT)?;
        let stages = reduction.radii.iter().take(reduction.radii.len() - 1).flat_map(|&distance| {
            let step = match self.step {
                Some(step) => step * (distance / problem.distance),
                None => step(&Problem { distance, ..problem }, reduction.records),
            };
            localising(reduction.records, step)
        });
        Ok(stages.collect())
    }

    /// What a release takes on trust.
    pub(in crate::recipes) fn assumptions(&self) -> Vec<Assumption> {
        let mut assumptions =
            vec![Assumption::PublicN, Assumption::RowNorm { bound: self.row_norm }, Assumption::OneRowPerUnit];
        if self.noise_mode != NoiseMode::Exact {
            assumptions.push(Assumption::IdealisedFloat);
        }
        if self.declared_order {
            assumptions.push(Assumption::DeclaredOrder);
        }
        assumptions
    }
}
