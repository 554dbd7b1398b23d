//! The noise on a score.

use core::marker::PhantomData;

use dp_accountant::{Adjacency, Delta, DpEvent, Epsilon, EventLog, calibrate};
use dp_mechanisms::{
    Bounded, DiscreteGaussian, DiscreteLaplace, L1Sensitivity, L2Sensitivity, Mechanism, ReleaseRng, Released,
};

use crate::error::{Error, positive};

/// Noise on the integers, added to the number of correct minus incorrect predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum ScoreNoise {
    /// Masses proportional to `exp(-|k|/scale)`: pure.
    DiscreteLaplace {
        /// The scale.
        scale: f64,
    },
    /// Masses proportional to `exp(-k²/(2 scale²))`.
    DiscreteGaussian {
        /// The scale.
        scale: f64,
    },
}

impl ScoreNoise {
    /// Returns noise with which a score of this sensitivity is roughly (`epsilon`, `delta`)-DP; the accountant determines its
    /// actual cost.
    pub(super) fn for_budget(sensitivity: u64, epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        let sensitivity = sensitivity as f64;
        if delta == Delta::ZERO {
            return Ok(Self::DiscreteLaplace { scale: (sensitivity / epsilon.get()).next_up() });
        }
        // Calibrated by the continuous law, whose curve has a closed form.
        let scale = calibrate::least_scale(epsilon, delta, |std_dev| DpEvent::Gaussian { std_dev, sensitivity })?;
        Ok(Self::DiscreteGaussian { scale })
    }

    pub(super) fn event(self, sensitivity: u64) -> Result<DpEvent, Error> {
        Ok(match self {
            Self::DiscreteLaplace { scale } => {
                DpEvent::DiscreteLaplace { scale: positive("scale of the score", scale)?, sensitivity }
            }
            Self::DiscreteGaussian { scale } => DpEvent::DiscreteGaussian {
                scale: positive("scale of the score", scale)?,
                sensitivity: sensitivity as f64,
                dim: 1,
            },
        })
    }

    /// Returns the scale.
    pub fn scale(self) -> f64 {
        match self {
            Self::DiscreteLaplace { scale } | Self::DiscreteGaussian { scale } => scale,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Score<A: Adjacency> {
    noise: ScoreNoise,
    sensitivity: u64,
    relation: PhantomData<A>,
}

impl<A: Adjacency> Score<A> {
    pub(super) fn new(noise: ScoreNoise, sensitivity: u64) -> Self {
        Self { noise, sensitivity, relation: PhantomData }
    }

    /// Releases a score, with its cost in a log that is discarded: the cost is part of the repetition's.
    pub(super) fn release(
        &self,
        score: i64,
        log: &mut EventLog<A>,
        rng: &mut impl ReleaseRng,
    ) -> Result<Released<i64>, Error> {
        let sensitivity = self.sensitivity as f64;
        Ok(match self.noise {
            ScoreNoise::DiscreteLaplace { scale } => {
                let sensitivity = L1Sensitivity::<A>::new(sensitivity)?;
                let value = Bounded::with_proven_sensitivity(score, sensitivity);
                DiscreteLaplace::from_scale(sensitivity, scale)?.release(value, log, rng)?
            }
            ScoreNoise::DiscreteGaussian { scale } => {
                let sensitivity = L2Sensitivity::<A>::new(sensitivity)?;
                let value = Bounded::with_proven_sensitivity(score, sensitivity);
                DiscreteGaussian::from_scale(sensitivity, scale, 1)?.release(value, log, rng)?
            }
        })
    }
}
