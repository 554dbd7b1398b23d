//! The recommended parameters of one of several releases that share a budget.

use dp_accountant::{AdjacencyKind, Delta, Epsilon, MarginLoss, gaussian};

use super::published::{Published, published};
use super::{ObjPert, RECIPE};
use crate::error::Error;
use crate::recipes::bolt_on::OutputNoise;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::Problem;
use crate::recipes::recipe::Budget;

/// Λ over `n q^{3/2}`: the best value at small budgets.
const BALANCE: f64 = 0.3;
/// For log-cosh, the least regularisation in units of the curvature over epsilon: from 2 on the curvature costs nothing, and
/// the rest is a margin for the noise that hides the minimiser's error.
const LOG_COSH_LEAST: f64 = 2.4;
/// `BALANCE` around a centre.
const CENTRED_BALANCE: f64 = 0.35;

/// The cost that one of the copies may have for a record's presence, used for recommendations; the calibration ensures that it
/// suffices.
pub(in crate::recipes) struct Part {
    epsilon: Epsilon,
    /// The noise multiplier of a Gaussian release at that cost, or the inverse of epsilon.
    pub(super) multiplier: f64,
    pub(in crate::recipes) pure: bool,
    /// True if others are composed with it.
    composed: bool,
}

impl Part {
    /// Returns the part for the recipe's law: by default the law with less noise; around a centre the Gaussian, which the
    /// centre needs.
    pub(in crate::recipes) fn of(
        recipe: &ObjPert,
        problem: &Problem,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        let under = |pure| Self::new(pure, budget, problem.relation, copies);
        if !recipe.calibration.is_exact() {
            return under(recipe.calibration.is_pure());
        }
        match recipe.law {
            OutputNoise::LaplaceBall => under(true),
            OutputNoise::Gaussian => under(false),
            OutputNoise::Least if !(budget.delta.get() > 0.0) => under(true),
            OutputNoise::Least if recipe.centre_share > 0.0 => under(false),
            OutputNoise::Least => {
                let (ball, gaussian) = (under(true)?, under(false)?);
                let parameters = problem.parameters();
                Ok(if ball.length(parameters) < gaussian.length(parameters) { ball } else { gaussian })
            }
        }
    }

    fn new(pure: bool, budget: Budget, relation: AdjacencyKind, copies: u64) -> Result<Self, Error> {
        if !pure && !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let twice = relation == AdjacencyKind::ReplaceOne;
        let copies = if pure { copies as f64 } else { (copies as f64).sqrt() };
        let epsilon = Epsilon::new(budget.epsilon.get() / copies / if twice { 2.0 } else { 1.0 })?;
        let multiplier = if pure {
            epsilon.get().recip()
        } else {
            let delta = if twice { budget.delta.get() / (1.0 + epsilon.get().exp()) } else { budget.delta.get() };
            gaussian::noise_multiplier(epsilon, Delta::new(delta)?)?.get()
        };
        Ok(Self { epsilon, multiplier, pure, composed: copies > 1.0 })
    }

    /// Returns the noise and regulariser of the requested paper, if any: each copy has its part of the budget.
    pub(super) fn published(
        &self,
        recipe: &ObjPert,
        regularization: f64,
        budget: Budget,
        relation: AdjacencyKind,
        copies: u64,
    ) -> Result<Option<Published>, Error> {
        if recipe.calibration.is_exact() {
            return Ok(None);
        }
        let copies = copies as f64;
        let of_one = Budget::new(budget.epsilon.get() / copies, budget.delta.get() / copies)?;
        let in_units = regularization / (recipe.row_norm * recipe.row_norm);
        published(recipe.calibration, recipe.margin_loss()?, in_units, of_one, relation).map(Some)
    }

    /// Returns the noise multiplier of the moments at this share of the cost: of the squared inverse multipliers, or of
    /// epsilon.
    pub(super) fn of_moments(&self, share: f64) -> f64 {
        self.multiplier / if self.pure { share } else { share.sqrt() }
    }

    /// Returns the root of the mean squared norm of the noise on a gradient with this many parameters.
    fn length(&self, parameters: u64) -> f64 {
        NoiseScale::new(self.pure, self.multiplier).coordinate_std_dev(parameters) * (parameters as f64).sqrt()
    }

    /// Returns Λ, computed from public numbers.
    pub(in crate::recipes) fn regularization(&self, recipe: &ObjPert, problem: &Problem) -> Result<f64, Error> {
        let n = problem.n as f64;
        let loss = recipe.margin_loss()?;
        let of_gradient = if matches!(loss, MarginLoss::Softmax { .. }) { core::f64::consts::SQRT_2 } else { 1.0 };
        let noise = of_gradient * self.length(problem.parameters()) / n;
        let centred = recipe.centre_share > 0.0;
        let least = match loss {
            // At half of 1/ε the noise is a seventh larger, but the model is better.
            MarginLoss::Logistic if self.pure => 0.5 - recipe.centre_share,
            // Composed releases are charged for both directions at once, which is expensive below this.
            MarginLoss::Logistic if self.composed => 3.0,
            MarginLoss::Logistic => {
                if centred {
                    0.8
                } else {
                    0.7
                }
            }
            MarginLoss::HuberSvm { width } => 5.0 / width,
            // The curvature costs nothing from twice the curvature over epsilon on; composed releases are charged for both
            // directions at once.
            MarginLoss::LogCosh { width } if self.composed => 6.0 / width,
            MarginLoss::LogCosh { width } => LOG_COSH_LEAST / width,
            MarginLoss::BoundedSlope { curvature, .. } => 10.0 * curvature,
            MarginLoss::Softmax { classes } => 10.0 * (1.0 - f64::from(classes).recip()),
            _ => 10.0,
        };
        let balance = if centred { CENTRED_BALANCE } else { BALANCE };
        let in_units = (balance * n * noise.powf(1.5)).max(least / self.epsilon.get());
        Ok(in_units * recipe.row_norm * recipe.row_norm)
    }
}
