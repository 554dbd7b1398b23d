//! The law and scale of a release's noise, as stored in certificates.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog, ReplaceOne};
use dp_mechanisms::grid::Grid;
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, LaplaceBall, Mechanism, ReleaseRng, Released};
use nalgebra::RealField;

use crate::error::{Error, positive};

/// Noise on a vector: its law and scale.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
pub enum NoiseScale {
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
}

impl NoiseScale {
    /// Creates the law that needs no delta if `pure`, otherwise the Gaussian.
    pub(crate) const fn new(pure: bool, scale: f64) -> Self {
        if pure { Self::LaplaceBall { scale } } else { Self::Gaussian { std_dev: scale } }
    }

    /// Returns whether the law needs no delta.
    pub const fn is_pure(self) -> bool {
        matches!(self, Self::LaplaceBall { .. })
    }

    /// Returns the ball's scale or the standard deviation.
    pub const fn scale(self) -> f64 {
        match self {
            Self::LaplaceBall { scale } => scale,
            Self::Gaussian { std_dev } => std_dev,
        }
    }

    pub(crate) const fn with_scale(self, scale: f64) -> Self {
        Self::new(self.is_pure(), scale)
    }

    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::LaplaceBall { scale } => positive("noise scale", scale)?,
            Self::Gaussian { std_dev } => positive("standard deviation", std_dev)?,
        };
        Ok(())
    }

    /// Returns the event of one release of a vector of `dim` coordinates with this noise.
    pub(crate) fn event(self, sensitivity: f64, dim: u64) -> DpEvent {
        match self {
            Self::LaplaceBall { scale } => DpEvent::LaplaceBall { scale, sensitivity, dim },
            Self::Gaussian { std_dev } => DpEvent::Gaussian { std_dev, sensitivity },
        }
    }

    /// As [`event`](Self::event), but a pure event states its epsilon alone, which speeds up large compositions.
    pub(crate) fn plain_event(self, sensitivity: f64, dim: u64) -> DpEvent {
        match self {
            Self::LaplaceBall { scale } => DpEvent::PureDp { epsilon: sensitivity / scale * (1.0 + f64::EPSILON) },
            Self::Gaussian { .. } => self.event(sensitivity, dim),
        }
    }

    /// Returns the standard deviation of one of `dim` coordinates of the noise: `scale √(dim + 1)` for the ball.
    pub fn coordinate_std_dev(self, dim: u64) -> f64 {
        match self {
            Self::LaplaceBall { scale } => scale * (dim as f64 + 1.0).sqrt(),
            Self::Gaussian { std_dev } => std_dev,
        }
    }

    /// Returns a norm that the noise on `dim` coordinates exceeds with probability below `e^-32`.
    ///
    /// `σ(√dim + 8)` for the Gaussian, whose norm is a Lipschitz function of it; `s(dim + 8√dim + 32)` for the ball, whose
    /// norm has a Gamma law.
    pub(crate) fn largest_norm(self, dim: u64) -> f64 {
        let (dim, root) = (dim as f64, (dim as f64).sqrt());
        match self {
            Self::LaplaceBall { scale } => scale * (dim + 8.0 * root + 32.0),
            Self::Gaussian { std_dev } => std_dev * (root + 8.0),
        }
    }

    /// Returns the default grid of released values.
    pub(crate) fn grid(self) -> Result<Grid, Error> {
        // The grid depends on the scale only: any relation, sensitivity and dimension will do.
        let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0)?;
        Ok(match self {
            Self::LaplaceBall { scale } => LaplaceBall::from_scale(sensitivity, scale, 1)?.grid(),
            Self::Gaussian { std_dev } => Gaussian::from_std_dev(sensitivity, std_dev)?.grid(),
        })
    }

    /// Releases a bounded vector with this noise, on a grid of `bits` bits below the noise's scale if given.
    ///
    /// # Privacy
    /// The sensitivity is that of the value; the event is that of [`event`](Self::event).
    pub(crate) fn release<F, A, R>(
        self,
        value: Bounded<Vec<F>, A>,
        dim: u64,
        mode: NoiseMode,
        bits: Option<u32>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<F>>, Error>
    where
        F: RealField + Copy,
        A: Adjacency,
        R: ReleaseRng + ?Sized,
    {
        let sensitivity = value.sensitivity();
        Ok(match self {
            Self::LaplaceBall { scale } => {
                let ball = LaplaceBall::from_scale(sensitivity, scale, dim)?.with_noise_mode(mode)?;
                bits.map_or(Ok(ball), |bits| ball.with_grid_bits(bits))?.release(value, log, rng)?
            }
            Self::Gaussian { std_dev } => {
                let gaussian = Gaussian::from_std_dev(sensitivity, std_dev)?.with_noise_mode(mode)?;
                bits.map_or(Ok(gaussian), |bits| gaussian.with_grid_bits(bits))?.release(value, log, rng)?
            }
        })
    }
}

/// The result of calibration of a single noise.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct OneNoise<N = NoiseScale> {
    /// The noise that was added.
    pub noise: N,
}

/// The result of calibration of Gaussian noise.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct StdDev {
    /// Standard deviation of the noise on each released coordinate.
    pub std_dev: f64,
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ChiSquared, ContinuousCDF, Gamma};

    use super::*;

    /// The norm of Gaussian noise has a chi law, that of the ball's a Gamma law: both exceed the bound with probability below
    /// `e^-32`; half the margin would not be enough.
    #[test]
    fn the_largest_norm_is_exceeded_as_rarely_as_stated() {
        let rarely = (-32f64).exp();
        for dim in [1u64, 2, 10, 100, 3000] {
            let root = (dim as f64).sqrt();
            let chi = ChiSquared::new(dim as f64).unwrap();
            let gaussian = NoiseScale::Gaussian { std_dev: 2.0 }.largest_norm(dim) / 2.0;
            assert!(chi.sf(gaussian * gaussian) <= rarely, "{dim}: {:e}", chi.sf(gaussian * gaussian));
            let half_way = 0.5 * (gaussian + root);
            assert!(chi.sf(half_way * half_way) > rarely, "{dim}");
            let gamma = Gamma::new(dim as f64, 1.0).unwrap();
            let ball = NoiseScale::LaplaceBall { scale: 3.0 }.largest_norm(dim) / 3.0;
            assert!(gamma.sf(ball) <= rarely, "{dim}: {:e}", gamma.sf(ball));
            assert!(gamma.sf(0.5 * (ball + dim as f64)) > rarely, "{dim}");
        }
    }

    /// A pure event's epsilon is never below the quotient despite rounding; a coordinate of the ball's noise has the standard
    /// deviation that `E‖Z‖² = d (d + 1) s²` gives.
    #[test]
    fn a_pure_event_is_rounded_up_and_coordinates_share_the_norm() {
        for k in 1..200u32 {
            let (sensitivity, scale) = (f64::from(k) / 7.0, 3.0 / f64::from(k));
            let DpEvent::PureDp { epsilon } = NoiseScale::LaplaceBall { scale }.plain_event(sensitivity, 5) else {
                panic!("of the ball")
            };
            let quotient = sensitivity / scale;
            assert!(epsilon > quotient && epsilon <= quotient * (1.0 + 3.0 * f64::EPSILON), "{epsilon} {quotient}");
        }
        let gaussian = NoiseScale::Gaussian { std_dev: 2.0 };
        assert_eq!(gaussian.plain_event(3.0, 5), DpEvent::Gaussian { std_dev: 2.0, sensitivity: 3.0 });
        for dim in [1u64, 3, 24] {
            let of_one = NoiseScale::LaplaceBall { scale: 0.5 }.coordinate_std_dev(dim);
            let moments = (dim * (dim + 1)) as f64 * 0.25;
            assert!((of_one * of_one * dim as f64 / moments - 1.0).abs() < 1e-14, "{dim}");
            assert_eq!(gaussian.coordinate_std_dev(dim), 2.0);
        }
    }
}
