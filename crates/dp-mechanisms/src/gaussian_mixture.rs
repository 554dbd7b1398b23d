//! The Gaussian mechanism for a value whose sensitivity depends on a hidden, data-independent index.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog};
use nalgebra::RealField;

use crate::additive;
use crate::bounded::Bounded;
use crate::error::{Error, positive_normal};
use crate::gaussian::Gaussian;
use crate::grid::Grid;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::release::Cost;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::{L2, L2Sensitivity, Sensitivity};

/// Largest distance of the weights' sum from 1: that of the accountants, and more than the rounding of a million weights.
const WEIGHT_SUM_TOLERANCE: f64 = 1e-9;

/// Adds normal noise to a vector whose sensitivity is `sensitivities[j]` with probability `weights[j]`.
///
/// The intended case is stochastic gradient descent in a secret uniformly random order: the position `j` of the differing record
/// determines how far the result moves, and only the noisy result is published.
///
/// # Formula
/// ```text
/// output = value + N(0, std_dev² I)
/// delta(epsilon) <= sum_j weights[j] · delta_Gauss(epsilon; sensitivities[j] / std_dev)
/// ```
/// by joint convexity of the hockey-stick divergence, since the weights are the same for both neighbours.
///
/// # Privacy
/// The index must be drawn independently of the data, and nothing else that depends on it may be released (no order, no
/// intermediate result). A [`Bounded`] input claims one number, which must cover every index: the largest of `sensitivities`,
/// [`sensitivity`](Self::sensitivity). The caller must prove that the value's sensitivity *given* index `j` is
/// `sensitivities[j]`. The noise is that of [`Gaussian`].
///
/// # Examples
/// ```
/// use dp_accountant::{DpEvent, ReplaceOne};
/// use dp_mechanisms::{GaussianMixture, PrivacyEvent};
/// let mixture = GaussianMixture::<ReplaceOne>::new(0.5, vec![0.1, 0.3], vec![0.75, 0.25])?;
/// assert_eq!(mixture.sensitivity().get(), 0.3);
/// assert!(matches!(mixture.event(), DpEvent::GaussianMixture { std_dev: 0.5, .. }));
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::GaussianMixtureRecord",
        into = "crate::record::GaussianMixtureRecord",
        bound = ""
    )
)]
pub struct GaussianMixture<A: Adjacency> {
    noise: Gaussian<A>,
    sensitivities: Vec<f64>,
    weights: Vec<f64>,
}

impl<A: Adjacency> GaussianMixture<A> {
    /// Creates the mechanism with this standard deviation, and an L2 sensitivity and a probability for each index.
    ///
    /// # Errors
    /// [`Error::Length`] unless both lists have the same length of at least 1; [`Error::NotFinite`] or
    /// [`Error::OutOfRange`] for a negative or non-finite entry and for weights whose sum is not 1 within 1e-9;
    /// [`Error::ZeroSensitivity`] if all sensitivities are 0; for `std_dev` as [`Gaussian::from_std_dev`].
    pub fn new(std_dev: f64, sensitivities: Vec<f64>, weights: Vec<f64>) -> Result<Self, Error> {
        let std_dev = positive_normal("standard deviation", std_dev)?;
        if sensitivities.is_empty() {
            return Err(Error::Length { name: "sensitivities", found: 0, expected: "at least 1" });
        }
        if weights.len() != sensitivities.len() {
            let expected = "that of the sensitivities";
            return Err(Error::Length { name: "weights", found: weights.len(), expected });
        }
        for (name, list) in [("sensitivity", &sensitivities), ("weight", &weights)] {
            for &value in list {
                if !value.is_finite() {
                    return Err(Error::NotFinite { name, value });
                }
                if !(value >= 0.0) {
                    return Err(Error::OutOfRange { name, value, range: "[0, inf)" });
                }
            }
        }
        let sum: f64 = weights.iter().sum();
        if !((sum - 1.0).abs() <= WEIGHT_SUM_TOLERANCE) {
            return Err(Error::OutOfRange { name: "sum of weights", value: sum, range: "[1 - 1e-9, 1 + 1e-9]" });
        }
        let largest = Sensitivity::new(sensitivities.iter().copied().fold(0.0, f64::max))?;
        let noise = Gaussian::from_std_dev(largest, std_dev)?;
        Ok(Self { noise, sensitivities, weights })
    }

    /// Sets the number of bits of the grid below the noise scale, in `20..=40`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::ScaleOverflow`].
    pub fn with_grid_bits(self, bits: u32) -> Result<Self, Error> {
        Ok(Self { noise: self.noise.with_grid_bits(bits)?, ..self })
    }

    /// Sets the noise mode: [`NoiseMode::Rounded`] is faster and idealises the noise, see [`grid`](crate::grid); a certificate
    /// records the choice.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for [`NoiseMode::None`].
    pub fn with_noise_mode(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(Self { noise: self.noise.with_noise_mode(mode)?, ..self })
    }

    /// Returns the standard deviation of each coordinate's noise.
    pub fn std_dev(&self) -> f64 {
        self.noise.std_dev()
    }

    /// Returns the largest sensitivity over the indices.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.noise.sensitivity()
    }

    /// Returns the L2 sensitivity given each index.
    pub fn sensitivities(&self) -> &[f64] {
        &self.sensitivities
    }

    /// Returns the probability of each index.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the grid of the outputs.
    pub fn grid(&self) -> Grid {
        self.noise.grid()
    }

    /// Returns the noise mode, which a certificate records.
    pub fn noise_mode(&self) -> NoiseMode {
        self.noise.noise_mode()
    }
}

impl<A: Adjacency> GaussianMixture<A> {
    /// Returns the cost that one release writes to the log.
    fn cost(&self) -> Cost {
        Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() }
    }
}

impl<A: Adjacency> PrivacyEvent for GaussianMixture<A> {
    fn event(&self) -> DpEvent {
        DpEvent::GaussianMixture {
            std_dev: self.std_dev(),
            sensitivities: self.sensitivities.clone(),
            weights: self.weights.clone(),
        }
    }
}

impl<F: RealField + Copy, A: Adjacency> Mechanism<Vec<F>, A> for GaussianMixture<A> {
    type Norm = L2;
    type Output = Vec<F>;

    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Vec<F>, A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<F>>, Error> {
        additive::release(input, self.sensitivity(), self.std_dev(), self.cost(), log, rng, |value, rng| {
            self.noise.add_noise(value, rng)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SeededRng;
    use dp_accountant::ReplaceOne;

    type Mixture = GaussianMixture<ReplaceOne>;

    #[test]
    fn refused_parameters() {
        let new = |std_dev, sensitivities: &[f64], weights: &[f64]| {
            Mixture::new(std_dev, sensitivities.to_vec(), weights.to_vec()).map(|_| ())
        };
        assert_eq!(new(1.0, &[1.0, 2.0], &[0.5, 0.5]), Ok(()));
        assert_eq!(new(1.0, &[0.0, 2.0], &[1.0, 0.0]), Ok(()));
        assert!(matches!(new(1.0, &[], &[]), Err(Error::Length { name: "sensitivities", .. })));
        assert!(matches!(new(1.0, &[1.0], &[0.5, 0.5]), Err(Error::Length { name: "weights", .. })));
        assert!(matches!(new(1.0, &[f64::NAN], &[1.0]), Err(Error::NotFinite { name: "sensitivity", .. })));
        assert!(matches!(new(1.0, &[-1.0], &[1.0]), Err(Error::OutOfRange { name: "sensitivity", .. })));
        assert!(matches!(new(1.0, &[1.0, 1.0], &[1.5, -0.5]), Err(Error::OutOfRange { name: "weight", .. })));
        assert!(matches!(new(1.0, &[1.0], &[f64::INFINITY]), Err(Error::NotFinite { name: "weight", .. })));
        assert!(matches!(new(1.0, &[1.0], &[0.999]), Err(Error::OutOfRange { name: "sum of weights", .. })));
        let many = 1_000_000;
        assert_eq!(new(1.0, &vec![1.0; many], &vec![1.0 / many as f64; many]), Ok(()));
        assert_eq!(new(1.0, &[0.0, 0.0], &[0.5, 0.5]), Err(Error::ZeroSensitivity));
        assert!(matches!(new(0.0, &[1.0], &[1.0]), Err(Error::NotPositive { name: "standard deviation", .. })));
        assert!(matches!(new(1e-300, &[1.0], &[1.0]), Err(Error::ScaleOverflow { .. })));
    }

    #[test]
    fn draws_the_noise_of_the_gaussian_and_logs_its_own_event() {
        let mixture = Mixture::new(2.0, vec![0.1, 0.3], vec![0.5, 0.5]).unwrap();
        let gaussian = Gaussian::from_std_dev(mixture.sensitivity(), 2.0).unwrap();
        let (mut log, mut plain_log) = (EventLog::new(), EventLog::new());
        let value = || Bounded::with_proven_sensitivity(vec![1.0f64; 10], mixture.sensitivity());
        let one = mixture.release(value(), &mut log, &mut SeededRng::new(1)).unwrap();
        let two = gaussian.release(value(), &mut plain_log, &mut SeededRng::new(1)).unwrap();
        assert_eq!(one, two);
        assert_eq!(log.entries(), [(mixture.event(), 1)]);
        assert!(!log.is_private());
        let excessive = Bounded::with_proven_sensitivity(vec![1.0f64], Sensitivity::new(0.31).unwrap());
        let refused = mixture.release(excessive, &mut log, &mut SeededRng::new(1));
        assert_eq!(refused, Err(Error::SensitivityExceeded { found: 0.31, built_for: 0.3 }));
        assert_eq!(log.entries().len(), 1);
    }
}
