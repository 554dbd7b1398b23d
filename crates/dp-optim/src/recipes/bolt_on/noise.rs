//! The choice and calibration of the noise on the released model.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, Delta, DpEvent, Epsilon, EventLog, ReplaceOne, bound};
use dp_losses::Real;
use dp_mechanisms::grid::Grid;
use dp_mechanisms::{
    Bounded, Gaussian, GaussianMixture, L2Sensitivity, LaplaceBall, Mechanism, PrivacyEvent, ReleaseRng, Released,
};

use super::run::Derived;
use super::{BoltOn, OutputNoise, RECIPE};
use crate::error::Error;
use crate::growth::PositionClasses;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::recipe::{Budget, least_scale, repeated};

/// The noise of a release: its law and scale.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
pub enum OutputNoiseScale {
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
    /// As `Gaussian`, with a guarantee that averages over the record's hidden position.
    HiddenPositionGaussian {
        /// The standard deviation.
        std_dev: f64,
    },
}

impl OutputNoiseScale {
    /// Returns law and scale, whatever the guarantee averages over.
    pub(in crate::recipes) const fn law(self) -> NoiseScale {
        match self {
            Self::LaplaceBall { scale } => NoiseScale::LaplaceBall { scale },
            Self::Gaussian { std_dev } | Self::HiddenPositionGaussian { std_dev } => NoiseScale::Gaussian { std_dev },
        }
    }

    /// Returns the least noise of the recipe's law with which all copies meet the budget, and the position classes that it
    /// averages over, if any.
    pub(in crate::recipes) fn least(
        recipe: &BoltOn,
        derived: &Derived,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<(Self, Option<PositionClasses>), Error> {
        let pure = budget.delta.get() == 0.0;
        if recipe.output_noise == OutputNoise::Gaussian && pure {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        if recipe.output_noise == OutputNoise::LaplaceBall || pure {
            return Ok((Self::laplace_ball(derived.sensitivity, dim, budget, copies)?, None));
        }
        let (gaussian, classes) = Self::gaussian(recipe, derived, budget, copies)?;
        if recipe.output_noise == OutputNoise::Least {
            let ball = Self::laplace_ball(derived.sensitivity, dim, budget, copies)?;
            if ball.mean_squared_norm(dim) < gaussian.mean_squared_norm(dim) {
                return Ok((ball, None));
            }
        }
        Ok((gaussian, classes))
    }

    /// Calibrates the Laplace ball for pure epsilon, which implies the guarantee for any delta.
    fn laplace_ball(sensitivity: f64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        // The event is the same for any relation.
        let sensitivity = L2Sensitivity::<ReplaceOne>::new(sensitivity)?;
        let mut ball = LaplaceBall::new(sensitivity, Epsilon::new(budget.epsilon.get() / copies as f64)?, dim)?;
        // The accountant rounds the quotient up: increase the scale by ulps until it agrees.
        for _ in 0..8 {
            if bound::epsilon(&repeated(ball.event(), copies), Delta::ZERO)?.value <= budget.epsilon.get() {
                break;
            }
            ball = LaplaceBall::from_scale(sensitivity, ball.scale() * (1.0 + 4.0 * f64::EPSILON), dim)?;
        }
        Ok(Self::LaplaceBall { scale: ball.scale() })
    }

    fn gaussian(
        recipe: &BoltOn,
        derived: &Derived,
        budget: Budget,
        copies: u64,
    ) -> Result<(Self, Option<PositionClasses>), Error> {
        let sensitivity = derived.sensitivity;
        let plain = least_scale(budget, copies, |std_dev| DpEvent::Gaussian { std_dev, sensitivity })?;
        if let Some(classes) = derived.position_classes(recipe)? {
            let hidden = least_scale(budget, copies, |std_dev| DpEvent::GaussianMixture {
                std_dev,
                sensitivities: classes.sensitivities.clone(),
                weights: classes.weights.clone(),
            })?;
            // A small gain does not justify a certificate with hundreds of numbers.
            if hidden < 0.99 * plain {
                return Ok((Self::HiddenPositionGaussian { std_dev: hidden }, Some(classes)));
            }
        }
        Ok((Self::Gaussian { std_dev: plain }, None))
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::LaplaceBall { .. } => "noise scale",
            Self::Gaussian { .. } | Self::HiddenPositionGaussian { .. } => "standard deviation",
        }
    }

    /// Returns the scale or the standard deviation.
    pub const fn scale(self) -> f64 {
        self.law().scale()
    }

    pub(in crate::recipes) fn mean_squared_norm(self, dim: u64) -> f64 {
        dim as f64 * self.law().coordinate_std_dev(dim).powi(2)
    }

    /// Returns the grid on which the model is released.
    pub(super) fn grid(self) -> Result<Grid, Error> {
        self.law().grid()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::recipes) enum Noise<A: Adjacency> {
    LaplaceBall(LaplaceBall<A>),
    Gaussian(Gaussian<A>),
    HiddenPosition(GaussianMixture<A>),
}

impl<A: Adjacency> Noise<A> {
    pub(in crate::recipes) fn new(
        scale: OutputNoiseScale,
        sensitivity: f64,
        dim: u64,
        classes: Option<&PositionClasses>,
    ) -> Result<Self, Error> {
        let sensitivity = L2Sensitivity::<A>::new(sensitivity)?;
        Ok(match (scale, classes) {
            (OutputNoiseScale::LaplaceBall { scale }, _) => {
                Self::LaplaceBall(LaplaceBall::from_scale(sensitivity, scale, dim)?)
            }
            (OutputNoiseScale::HiddenPositionGaussian { std_dev }, Some(classes)) => Self::HiddenPosition(
                GaussianMixture::new(std_dev, classes.sensitivities.clone(), classes.weights.clone())?,
            ),
            (OutputNoiseScale::Gaussian { std_dev } | OutputNoiseScale::HiddenPositionGaussian { std_dev }, _) => {
                Self::Gaussian(Gaussian::from_std_dev(sensitivity, std_dev)?)
            }
        })
    }

    pub(in crate::recipes) fn drawn(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(match self {
            Self::LaplaceBall(ball) => Self::LaplaceBall(ball.with_noise_mode(mode)?),
            Self::Gaussian(gaussian) => Self::Gaussian(gaussian.with_noise_mode(mode)?),
            Self::HiddenPosition(mixture) => Self::HiddenPosition(mixture.with_noise_mode(mode)?),
        })
    }

    /// Releases the output of a run to whose sensitivity the mechanism was calibrated.
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
