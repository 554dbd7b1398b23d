//! The numbers that both phased recipes derive from their public parameters.

use dp_accountant::AdjacencyKind;
use dp_losses::{Constants, L2};

use super::{Phase, PhasedProblem, localising};
use crate::error::{Error, positive};
use crate::recipes::problem;

/// C in the excess loss `C D L (1/√n + √d/(ρn))` of the phases: the larger of 5/3 and 16 in their bound.
const EXCESS_CONSTANT: f64 = 16.0;

/// The set in which gradients are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recipes) enum Reach {
    /// The ball onto which every iterate is projected.
    Ball,
    /// The whole space, since the minimiser of a phase is unconstrained.
    Anywhere,
}

/// The public parameters common to the phased recipes, besides the problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::recipes) struct Inputs {
    pub(in crate::recipes) recipe: &'static str,
    pub(in crate::recipes) lambda: f64,
    pub(in crate::recipes) radius: f64,
    pub(in crate::recipes) distance: Option<f64>,
    pub(in crate::recipes) step: Option<f64>,
    pub(in crate::recipes) restarts: bool,
    pub(in crate::recipes) declared_order: bool,
}

impl Inputs {
    pub(in crate::recipes) fn check(&self) -> Result<(), Error> {
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

    /// Returns the loss's constants within this radius, and G under this relation.
    pub(in crate::recipes) fn constants(
        &self,
        problem: &problem::Problem,
        radius: Option<f64>,
    ) -> Result<(Constants, f64), Error> {
        let constants = problem.setting.loss.constants(L2::new(self.lambda)?, &problem.domain(radius)?);
        let gradient_difference = match problem.relation {
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

    /// Returns the phases under noise of this ρ; default steps are non-expansive.
    pub(in crate::recipes) fn phases(
        &self,
        public: &problem::Problem,
        rho: f64,
        reach: Reach,
    ) -> Result<Vec<Phase>, Error> {
        let n = public.n;
        let radius = (reach == Reach::Ball).then_some(self.radius);
        let (constants, gradient_difference) = self.constants(public, radius)?;
        let lipschitz = constants.data_lipschitz + self.lambda * self.radius;
        let distance = self.distance.unwrap_or(self.radius);
        let problem = PhasedProblem { lipschitz, gradient_difference, distance, dim: public.parameters(), rho };
        // The longest non-expansive gradient step is 2/β, and the first phase's step is a fourth of η.
        let longest = if reach == Reach::Ball { 8.0 / constants.smoothness * (1.0 - 1e-15) } else { f64::INFINITY };
        let step = |problem: &PhasedProblem, records| problem.step(records).min(longest);
        if !self.restarts {
            return Ok(localising(n, self.step.unwrap_or_else(|| step(&problem, n))));
        }
        let problem = PhasedProblem { distance: distance.min(2.0 * lipschitz / self.lambda), ..problem };
        let reduction = problem.reduction(n, self.lambda, EXCESS_CONSTANT)?;
        let stages = reduction.radii.iter().take(reduction.radii.len() - 1).flat_map(|&distance| {
            let step = match self.step {
                Some(step) => step * (distance / problem.distance),
                None => step(&PhasedProblem { distance, ..problem }, reduction.records),
            };
            localising(reduction.records, step)
        });
        Ok(stages.collect())
    }
}
