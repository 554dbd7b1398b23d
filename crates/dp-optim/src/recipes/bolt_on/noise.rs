//! The choice and calibration of the noise on the released model.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, Delta, DpEvent, Epsilon, EventLog, bound};
use dp_losses::Real;
use dp_mechanisms::{
    Bounded, Gaussian, GaussianMixture, L2Sensitivity, LaplaceBall, Mechanism, PrivacyEvent, ReleaseRng, Released,
};

use super::derivation::{Derived, NoiseScale};
use super::{BoltOn, OutputNoise, RECIPE};
use crate::error::Error;
use crate::recipes::recipe::{Budget, least_scale, repeated};

/// The mechanism that releases the model.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::recipes) enum Noise<A: Adjacency> {
    LaplaceBall(LaplaceBall<A>),
    Gaussian(Gaussian<A>),
    HiddenPosition(GaussianMixture<A>),
}

impl<A: Adjacency> Noise<A> {
    /// The least noise of the recipe's kind with which all copies meet the budget, drawn as the recipe says.
    pub(in crate::recipes) fn calibrate(
        recipe: &BoltOn,
        derived: &Derived,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        Self::least(recipe, derived, dim, budget, copies)?.drawn(recipe.noise_mode)
    }

    fn drawn(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(match self {
            Self::LaplaceBall(ball) => Self::LaplaceBall(ball.with_noise_mode(mode)?),
            Self::Gaussian(gaussian) => Self::Gaussian(gaussian.with_noise_mode(mode)?),
            Self::HiddenPosition(mixture) => Self::HiddenPosition(mixture.with_noise_mode(mode)?),
        })
    }

    fn least(recipe: &BoltOn, derived: &Derived, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let sensitivity = L2Sensitivity::<A>::new(derived.sensitivity)?;
        let pure = budget.delta.get() == 0.0;
        if recipe.output_noise == OutputNoise::Gaussian && pure {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        if recipe.output_noise == OutputNoise::LaplaceBall || pure {
            return Self::laplace_ball(sensitivity, dim, budget, copies);
        }
        let gaussian = Self::gaussian(recipe, derived, sensitivity, budget, copies)?;
        if recipe.output_noise == OutputNoise::Least {
            let ball = Self::laplace_ball(sensitivity, dim, budget, copies)?;
            if ball.mean_squared_norm(dim) < gaussian.mean_squared_norm(dim) {
                return Ok(ball);
            }
        }
        Ok(gaussian)
    }

    /// Pure epsilon, which is more than any delta asks for.
    fn laplace_ball(sensitivity: L2Sensitivity<A>, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let mut ball = LaplaceBall::new(sensitivity, Epsilon::new(budget.epsilon.get() / copies as f64)?, dim)?;
        // The accountant rounds the quotient up; lift the scale by its last bits until it agrees.
        for _ in 0..8 {
            if bound::epsilon(&repeated(ball.event(), copies), Delta::ZERO)?.value <= budget.epsilon.get() {
                break;
            }
            ball = LaplaceBall::from_scale(sensitivity, ball.scale() * (1.0 + 4.0 * f64::EPSILON), dim)?;
        }
        Ok(Self::LaplaceBall(ball))
    }

    fn gaussian(
        recipe: &BoltOn,
        derived: &Derived,
        sensitivity: L2Sensitivity<A>,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        let value = sensitivity.get();
        let plain = least_scale(budget, copies, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: value })?;
        if let Some(classes) = derived.position_classes(recipe)? {
            let hidden = least_scale(budget, copies, |std_dev| DpEvent::GaussianMixture {
                std_dev,
                sensitivities: classes.sensitivities.clone(),
                weights: classes.weights.clone(),
            })?;
            // A small gain is not worth a statement with hundreds of numbers in it.
            if hidden < 0.99 * plain {
                return Ok(Self::HiddenPosition(GaussianMixture::new(hidden, classes.sensitivities, classes.weights)?));
            }
        }
        Ok(Self::Gaussian(Gaussian::from_std_dev(sensitivity, plain)?))
    }

    /// `E‖Z‖²` in `dim` dimensions.
    pub(in crate::recipes) fn mean_squared_norm(&self, dim: u64) -> f64 {
        match self {
            Self::LaplaceBall(ball) => ball.mean_squared_norm(),
            Self::Gaussian(gaussian) => dim as f64 * gaussian.std_dev().powi(2),
            Self::HiddenPosition(mixture) => dim as f64 * mixture.std_dev().powi(2),
        }
    }

    pub(in crate::recipes) fn scale(&self) -> NoiseScale {
        match self {
            Self::LaplaceBall(ball) => NoiseScale::LaplaceBall { scale: ball.scale() },
            Self::Gaussian(gaussian) => NoiseScale::Gaussian { std_dev: gaussian.std_dev() },
            Self::HiddenPosition(mixture) => NoiseScale::HiddenPositionGaussian { std_dev: mixture.std_dev() },
        }
    }

    pub(in crate::recipes) fn mode(&self) -> NoiseMode {
        match self {
            Self::LaplaceBall(ball) => ball.noise_mode(),
            Self::Gaussian(gaussian) => gaussian.noise_mode(),
            Self::HiddenPosition(mixture) => mixture.noise_mode(),
        }
    }

    pub(in crate::recipes) fn event(&self) -> DpEvent {
        match self {
            Self::LaplaceBall(ball) => ball.event(),
            Self::Gaussian(gaussian) => gaussian.event(),
            Self::HiddenPosition(mixture) => mixture.event(),
        }
    }

    /// Releases the output of a run whose sensitivity the mechanism was built for.
    pub(in crate::recipes) fn release<F: Real, R: ReleaseRng + ?Sized>(
        &self,
        output: Vec<F>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<F>>, Error> {
        let released = match self {
            Self::LaplaceBall(ball) => {
                ball.release(Bounded::with_proven_sensitivity(output, ball.sensitivity()), log, rng)
            }
            Self::Gaussian(gaussian) => {
                gaussian.release(Bounded::with_proven_sensitivity(output, gaussian.sensitivity()), log, rng)
            }
            Self::HiddenPosition(mixture) => {
                mixture.release(Bounded::with_proven_sensitivity(output, mixture.sensitivity()), log, rng)
            }
        };
        Ok(released?)
    }
}
