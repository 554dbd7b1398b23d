//! The choice and calibration of the noise of an update.

use dp_accountant::{Adjacency, Delta, DpEvent, Epsilon, bound};
use dp_losses::{Constants, L2};
use dp_mechanisms::steps::StepNoise;
use dp_mechanisms::{Gaussian, L2Sensitivity, LaplaceBall};

use super::{NoiseScale, RECIPE, Scs13, StepCalibration, StepLaw, Terms, as_published};
use crate::error::Error;
use crate::recipes::recipe::{Budget, least_scale, repeated};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Calibrated {
    pub(super) scale: NoiseScale,
}

impl Calibrated {
    /// Calibrates the noise with which all passes of all copies meet the budget.
    pub(super) fn new(recipe: &Scs13, terms: &Terms, budget: Budget, copies: u64) -> Result<Self, Error> {
        let pure = budget.delta.get() == 0.0;
        if recipe.law == StepLaw::Gaussian && pure {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let ball = || Ok(Self { scale: NoiseScale::LaplaceBall { scale: ball(recipe, terms, budget, copies)? } });
        let gaussian =
            || Ok(Self { scale: NoiseScale::Gaussian { std_dev: gaussian(recipe, terms, budget, copies)? } });
        match recipe.law {
            StepLaw::LaplaceBall => ball(),
            StepLaw::Gaussian => gaussian(),
            StepLaw::Least if pure => ball(),
            // From a thousand dimensions on, the ball's noise is at best a thousandth smaller.
            StepLaw::Least if terms.dim > 10_000 => gaussian(),
            StepLaw::Least => {
                let (ball, gaussian): (Self, Self) = (ball()?, gaussian()?);
                let smaller = ball.mean_squared_norm(terms.dim) < 0.99 * gaussian.mean_squared_norm(terms.dim);
                Ok(if smaller { ball } else { gaussian })
            }
        }
    }

    pub(super) fn mean_squared_norm(&self, dim: u64) -> f64 {
        let dim = dim as f64;
        match self.scale {
            NoiseScale::LaplaceBall { scale } => dim * (dim + 1.0) * scale * scale,
            NoiseScale::Gaussian { std_dev } => dim * std_dev * std_dev,
        }
    }

    pub(super) fn mechanism<A: Adjacency>(&self, recipe: &Scs13, terms: &Terms) -> Result<StepNoise<A>, Error> {
        let sensitivity = L2Sensitivity::<A>::new(terms.sensitivity)?;
        Ok(match self.scale {
            NoiseScale::LaplaceBall { scale } => {
                LaplaceBall::from_scale(sensitivity, scale, terms.dim)?.with_noise_mode(recipe.noise_mode)?.into()
            }
            NoiseScale::Gaussian { std_dev } => {
                Gaussian::from_std_dev(sensitivity, std_dev)?.with_noise_mode(recipe.noise_mode)?.into()
            }
        })
    }
}

/// Returns the Lipschitz constant that the papers tabulate.
fn published_lipschitz(recipe: &Scs13, terms: &Terms) -> Result<f64, Error> {
    let lipschitz = match recipe.clipping {
        Some(norm) => norm.get(),
        None => Constants::of_the_papers(&recipe.loss, L2::NONE, &terms.domain).data_lipschitz,
    };
    // The papers do not include rounding errors: add them.
    Ok(lipschitz.max(0.5 * terms.sensitivity) * (1.0 + 4.0 * f64::EPSILON))
}

fn ball(recipe: &Scs13, terms: &Terms, budget: Budget, copies: u64) -> Result<f64, Error> {
    let event_at = |scale| terms.steps.event(NoiseScale::LaplaceBall { scale }.event(terms.sensitivity, terms.dim));
    let times = copies as f64 * recipe.passes as f64;
    if recipe.calibration == StepCalibration::AsPublished {
        let lipschitz = published_lipschitz(recipe, terms)?;
        let epsilon = Epsilon::new(budget.epsilon.get() / copies as f64)?;
        return as_published::laplace_ball_scale(recipe.passes, 1, lipschitz, epsilon);
    }
    if budget.delta.get() > 0.0 {
        return least_scale(budget, copies, event_at);
    }
    let mut scale = terms.sensitivity / (budget.epsilon.get() / times);
    // The accountant rounds the quotient up: increase the scale by ulps until it agrees.
    for _ in 0..8 {
        if bound::epsilon(&repeated(event_at(scale), copies), Delta::ZERO)?.value <= budget.epsilon.get() {
            break;
        }
        scale *= 1.0 + 4.0 * f64::EPSILON;
    }
    Ok(scale)
}

fn gaussian(recipe: &Scs13, terms: &Terms, budget: Budget, copies: u64) -> Result<f64, Error> {
    let event_at = |std_dev| -> DpEvent {
        terms.steps.event(NoiseScale::Gaussian { std_dev }.event(terms.sensitivity, terms.dim))
    };
    if recipe.calibration == StepCalibration::AsPublished {
        let copies = copies as f64;
        let (epsilon, delta) = (Epsilon::new(budget.epsilon.get() / copies)?, Delta::new(budget.delta.get() / copies)?);
        if !(as_published::epsilon_per_pass(recipe.passes, epsilon) < 1.0) {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "the published Gaussian noise is proved for an epsilon below 1 per pass",
            });
        }
        let lipschitz = published_lipschitz(recipe, terms)?;
        return as_published::gaussian_std_dev(recipe.passes, 1, lipschitz, epsilon, delta);
    }
    least_scale(budget, copies, event_at)
}
