//! Noisy projected gradient steps on disjoint batches of which only the last iterate is released: common to PNSGD and
//! Snowball-SGD.

mod formula;
mod run;
#[cfg(test)]
mod tests;
mod training;

pub use formula::{Zcdp, per_batch};
pub use run::DescentRun;

use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne};
use dp_losses::{Constants, L2};
use dp_mechanisms::PrivacyEvent;
use dp_mechanisms::last_iterate::{Iterates, LastIterate};

use crate::error::{Error, positive};
use crate::growth::{Rounding, expansion};
use crate::lattice::ReleaseLattice;
use crate::recipes::problem::Problem;
use crate::recipes::recipe::{Budget, RecordAdjacency, least_scale};

/// A run of consecutive equal updates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Updates {
    /// Number of updates.
    pub count: u64,
    /// B: records of each update.
    pub batch_size: u64,
    /// η: step size of each update.
    pub step: f64,
}

/// The parameters of a recipe's steps besides the problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Inputs {
    pub(super) recipe: &'static str,
    pub(super) lambda: f64,
    pub(super) radius: Option<f64>,
    pub(super) declared_order: bool,
}

/// Constants of the loss, and bound on the change of one record's gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Terms {
    pub(super) constants: Constants,
    pub(super) gradient_difference: f64,
}

impl Inputs {
    pub(super) fn terms(&self, problem: &Problem) -> Result<Terms, Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: self.recipe, why });
        // Errors of a dot product are bounded to first order.
        if !(problem.parameters() as f64 * f64::EPSILON < 1e-3) {
            let range = "1 to a thousandth of 1/roundoff";
            return Err(Error::Count { name: "dimension", value: problem.dim, range });
        }
        if let Some(radius) = self.radius
            && !(positive("radius", radius)? <= 1e30)
        {
            return Err(Error::OutOfRange { name: "radius", value: radius, range: "(0, 1e30]" });
        }
        let domain = problem.domain(self.radius)?;
        let constants = problem.setting.loss.constants(L2::new(self.lambda)?, &domain);
        if !constants.smoothness.is_finite() {
            return not_proved("gradient steps on a loss with a kink drive two runs apart: choose a smooth loss");
        }
        let gradient_difference = match problem.relation {
            AdjacencyKind::ReplaceOne => constants.gradient_difference,
            // A null record's data gradient is zero.
            AdjacencyKind::ZeroOut => constants.data_lipschitz,
            adjacency => return Err(Error::Adjacency { recipe: self.recipe, adjacency }),
        };
        if !(gradient_difference.is_finite() && gradient_difference > 0.0) {
            return not_proved("this loss has bounded gradients only within a radius: set one");
        }
        Ok(Terms { constants, gradient_difference })
    }
}

/// A descent with all public numbers except its noise.
///
/// # Formula
/// ```text
/// w_t = Π_R( (1 - η_tλ) w_{t-1} - (η_t/B_t) Σ_{i in batch t} ∇ℓ_i(w_{t-1}) + η_t ξ_t ),    ξ_t ~ N(0, σ² I)
/// ```
/// One record moves the bracket by at most `η_t G/B_t`, and its noise has standard deviation `η_t σ`.
///
/// # Rounding
/// An update in double precision is off by at most `e_t` as derived at [`Rounding`] for a buffered iterate; two runs move
/// apart by twice that beyond the exact contraction. That bound needs iterates in a ball. If the recipe has none, iterates are
/// projected onto a ball so large that they do not reach it in practice: its radius is twice the sum of the longest path along
/// the gradients and the norm of all noise together plus six standard deviations.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Descent {
    pub(super) inputs: Inputs,
    pub(super) problem: Problem,
    pub(super) passes: u64,
    /// The updates of one pass.
    pub(super) updates: Vec<Updates>,
    pub(super) terms: Terms,
}

impl Descent {
    /// Creates the descent; refuses expansive steps.
    pub(super) fn new(
        inputs: Inputs,
        terms: Terms,
        problem: &Problem,
        passes: u64,
        updates: Vec<Updates>,
    ) -> Result<Self, Error> {
        let longest = 2.0 / terms.constants.smoothness;
        for update in &updates {
            if !(positive("step size", update.step)? * terms.constants.smoothness <= 2.0) {
                return Err(Error::StepTooLong { recipe: inputs.recipe, step: update.step, longest });
            }
        }
        Ok(Self { inputs, problem: *problem, passes, updates, terms })
    }

    pub(super) fn parameters(&self) -> u64 {
        self.problem.parameters()
    }

    /// Returns the radius of the ball onto which iterates are projected, for noise of standard deviation `std_dev` on each
    /// mean gradient.
    pub(super) fn ball(&self, std_dev: f64) -> f64 {
        if let Some(radius) = self.inputs.radius {
            return radius;
        }
        let (mut way, mut squares) = (0.0, 0.0);
        for &Updates { count, step, .. } in &self.updates {
            let count = count as f64 * self.passes as f64;
            way += count * step;
            squares += count * step * step;
        }
        let lipschitz = self.terms.constants.data_lipschitz;
        let mut reach = lipschitz * way;
        if self.inputs.lambda > 0.0 && self.updates.iter().all(|update| update.step * self.inputs.lambda <= 1.0) {
            reach = reach.min(lipschitz / self.inputs.lambda);
        }
        2.0 * (reach + std_dev * squares.sqrt() * ((self.parameters() as f64).sqrt() + 6.0))
    }

    /// Bounds the distance of an update from the exact one.
    fn rounding_of_update(&self, update: &Updates, ball: f64) -> f64 {
        let Constants { smoothness, data_lipschitz, .. } = self.terms.constants;
        let (dim, batch, outputs) =
            (self.parameters() as f64, update.batch_size as f64, u64::from(self.problem.setting.loss.outputs()));
        let (of_derivative, of_margins) = Rounding::of_classes(outputs);
        // The noisy iterate is rounded once more than a plain one, to double precision, and a step of 2/β may exceed it by a
        // rounding.
        let per_update = (4.0 + 4.0 + dim / 2.0 + 8.0) * ball;
        let per_step = 4.0 * self.inputs.lambda * ball
            + smoothness * (dim + 2.0 + of_margins) * ball
            + (batch + 24.0 + of_derivative) * data_lipschitz;
        1.01 * f64::EPSILON / 2.0 * (per_update + update.step * per_step)
    }

    /// Returns the mechanism, with noise of standard deviation `std_dev` on each mean gradient.
    pub(super) fn mechanism<A: RecordAdjacency>(&self, std_dev: f64) -> Result<LastIterate<A>, Error> {
        let Constants { smoothness, .. } = self.terms.constants;
        let ball = self.ball(std_dev);
        let pass = self.updates.iter().map(|update| Iterates {
            count: update.count,
            sensitivity: self.sensitivity(update),
            contraction: if self.inputs.lambda > 0.0 {
                // Rounded up: the products and differences are off by one unit each.
                (expansion(update.step, smoothness, self.inputs.lambda) + 4.0 * f64::EPSILON).min(1.0)
            } else {
                1.0
            },
            deviation: 2.0 * self.rounding_of_update(update, ball),
            std_dev: update.step * std_dev,
        });
        let mechanism = LastIterate::new(self.parameters(), pass.collect(), self.passes)?;
        Ok(mechanism.with_noise_mode(self.problem.setting.noise_mode)?)
    }

    pub(super) fn sensitivity(&self, update: &Updates) -> f64 {
        update.step * self.terms.gradient_difference / update.batch_size as f64 * (1.0 + 4.0 * f64::EPSILON)
    }

    pub(super) fn event(&self, std_dev: f64) -> Result<DpEvent, Error> {
        positive("standard deviation", std_dev)?;
        // The event is the same for any relation.
        Ok(self.mechanism::<ReplaceOne>(std_dev)?.event())
    }

    /// Returns the lattice of the released iterate, for noise of standard deviation `std_dev` on each mean gradient.
    pub(super) fn lattice(&self, std_dev: f64) -> Result<ReleaseLattice, Error> {
        // The grid is the same for any relation.
        let grid = self.mechanism::<ReplaceOne>(std_dev)?.last_grid();
        Ok(ReleaseLattice::on_grid(grid.step()).within(self.inputs.radius))
    }

    pub(super) fn least_noise(&self, budget: Budget, copies: u64) -> Result<f64, Error> {
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: self.inputs.recipe, why: "Gaussian noise needs delta > 0" });
        }
        // Noise that cannot be drawn counts as no privacy.
        least_scale(budget, copies, |std_dev| self.event(std_dev).unwrap_or(DpEvent::NonPrivate))
    }

    pub(super) fn updates_per_pass(&self) -> u64 {
        self.updates.iter().fold(0, |sum, update| sum.saturating_add(update.count))
    }
}
