//! The Gaussian mechanism.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, Delta, DpEvent, Epsilon, EventLog, NoiseMultiplier, Rho};
use nalgebra::RealField;

use crate::additive;
use crate::bounded::Bounded;
use crate::error::{Error, positive_normal};
use crate::grid::Grid;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::noise::{Drawing, Sampler};
use crate::release::Cost;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::{product_up, quotient_up, sqrt_down};
use crate::sensitivity::{L2, L2Sensitivity};

/// Default number of bits of the grid below the noise scale.
pub const GRID_BITS: u32 = 30;

/// Adds independent normal noise of the same standard deviation to each coordinate of a vector.
///
/// # Formula
/// ```text
/// output = value + N(0, std_dev² I),   mu = sensitivity / std_dev
/// delta(epsilon) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)
/// ```
///
/// # Privacy
/// For any two inputs whose L2 distance is at most `sensitivity` the release is exactly mu-GDP, `mu²/2`-zCDP and `alpha
/// mu²/2`-RDP, under the relation `A`. By default noise is drawn in [`Exact`](NoiseMode::Exact) mode on a grid 2^30 below
/// `std_dev`: the ideal real noise, rounded without any error, see [`grid`](crate::grid). The mechanism states no epsilon itself;
/// an accountant computes it from its [event](PrivacyEvent::event).
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, EventLog, ReplaceOne};
/// use dp_mechanisms::rng::OsSeeded;
/// use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, Mechanism};
///
/// let sensitivity = L2Sensitivity::<ReplaceOne>::new(0.01)?;
/// let gaussian = Gaussian::analytic(sensitivity, Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
/// assert!((gaussian.std_dev() - 0.0373063).abs() < 1e-7);
///
/// let mut log = EventLog::new();
/// let mean = Bounded::with_proven_sensitivity(vec![0.5, -0.25], sensitivity);
/// let released = gaussian.release(mean, &mut log, &mut OsSeeded::new()?)?;
/// assert_eq!(released.get().len(), 2);
/// assert_eq!(log.entries().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", 2018, Theorem 8, arXiv
/// 1805.06530. J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", 2019, Theorem 2.7, arXiv 1905.02383.
/// M. Bun, T. Steinke, "Concentrated differential privacy", 2016, Proposition 1.6, arXiv 1605.02065.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "crate::record::GaussianRecord", into = "crate::record::GaussianRecord", bound = "")
)]
pub struct Gaussian<A: Adjacency> {
    std_dev: f64,
    sensitivity: L2Sensitivity<A>,
    grid: Grid,
    sampler: Sampler,
}

impl<A: Adjacency> Gaussian<A> {
    /// Creates the mechanism with this standard deviation, in the units of the query.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for a `std_dev` that is not a positive normal number;
    /// [`Error::ScaleOverflow`] if its grid does not fit into doubles.
    pub fn from_std_dev(sensitivity: L2Sensitivity<A>, std_dev: f64) -> Result<Self, Error> {
        Self::from_derived(sensitivity, positive_normal("standard deviation", std_dev)?)
    }

    /// Creates the mechanism with `std_dev = noise_multiplier · sensitivity`, rounded up.
    ///
    /// # Errors
    /// [`Error::TooSmall`] for a subnormal multiplier, [`Error::ScaleOverflow`].
    pub fn from_noise_multiplier(
        sensitivity: L2Sensitivity<A>,
        noise_multiplier: NoiseMultiplier,
    ) -> Result<Self, Error> {
        let noise_multiplier = positive_normal("noise multiplier", noise_multiplier.get())?;
        Self::from_derived(sensitivity, product_up(noise_multiplier, sensitivity.get()))
    }

    /// Creates the mechanism with `std_dev = sensitivity / √(2 rho)`, rounded up: rho-zCDP.
    ///
    /// # Errors
    /// [`Error::TooSmall`] for a subnormal rho, [`Error::ScaleOverflow`].
    pub fn from_zcdp(sensitivity: L2Sensitivity<A>, rho: Rho) -> Result<Self, Error> {
        let rho = positive_normal("rho", rho.get())?;
        // √(2 rho) without the product, which could overflow: √rho · √2 would round twice, √(rho / 2) · 2 does not.
        let mu = if rho > 1.0 { 2.0 * sqrt_down(rho / 2.0) } else { sqrt_down(2.0 * rho) };
        Self::from_derived(sensitivity, quotient_up(sensitivity.get(), mu))
    }

    /// Creates the mechanism with `std_dev = sensitivity / mu`, rounded up: mu-GDP.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for mu, [`Error::ScaleOverflow`].
    pub fn from_gdp(sensitivity: L2Sensitivity<A>, mu: f64) -> Result<Self, Error> {
        let mu = positive_normal("mu", mu)?;
        Self::from_derived(sensitivity, quotient_up(sensitivity.get(), mu))
    }

    /// Creates the mechanism with the least noise for which one release is (epsilon, delta)-DP.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for delta = 0, which no Gaussian noise gives; [`Error::ScaleOverflow`].
    ///
    /// # References
    /// B. Balle, Y.-X. Wang, 2018, Algorithm 1.
    pub fn analytic(sensitivity: L2Sensitivity<A>, epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        let delta = positive_delta(delta)?;
        let noise_multiplier = dp_accountant::gaussian::noise_multiplier(epsilon, delta)?;
        Self::from_noise_multiplier(sensitivity, noise_multiplier)
    }

    /// Creates the mechanism with the classical `std_dev = sensitivity √(2 ln(1.25 / delta)) / epsilon`: more noise than
    /// [`analytic`](Self::analytic), to reproduce papers that use it.
    ///
    /// # Errors
    /// [`Error::ClassicalNeedsEpsilonBelowOne`], since the formula has no proof for epsilon >= 1, and is false for a large epsilon;
    /// [`Error::OutOfRange`] for delta = 0; [`Error::ScaleOverflow`].
    ///
    /// # References
    /// C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Theorem A.1.
    pub fn classical(sensitivity: L2Sensitivity<A>, epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        if !(epsilon.get() < 1.0) {
            return Err(Error::ClassicalNeedsEpsilonBelowOne { epsilon: epsilon.get() });
        }
        let delta = positive_delta(delta)?;
        // A difference of logarithms, since 1.25 / delta overflows for the least deltas.
        let constant = (2.0 * (1.25f64.ln() - delta.get().ln())).sqrt() * (1.0 + 4.0 * f64::EPSILON);
        Self::from_derived(sensitivity, product_up(quotient_up(constant, epsilon.get()), sensitivity.get()))
    }

    /// Sets the number of bits of the grid below the noise scale, in `20..=40`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::ScaleOverflow`].
    pub fn with_grid_bits(self, bits: u32) -> Result<Self, Error> {
        Ok(Self { grid: Grid::new(self.std_dev, bits)?, ..self })
    }

    /// Sets the noise mode: [`NoiseMode::Rounded`] is faster and idealises the noise, see [`grid`](crate::grid); a certificate
    /// records the choice.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for [`NoiseMode::None`].
    pub fn with_noise_mode(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(Self { sampler: Sampler::of(mode)?, ..self })
    }

    /// Creates the mechanism with a derived scale: if it is not normal it is out of range.
    fn from_derived(sensitivity: L2Sensitivity<A>, std_dev: f64) -> Result<Self, Error> {
        let grid = Grid::new(std_dev, GRID_BITS)?;
        Ok(Self { std_dev, sensitivity, grid, sampler: Sampler::Exact })
    }

    /// Adds noise to the value in place, without logging.
    pub(crate) fn add_noise<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &self,
        value: &mut [F],
        rng: &mut R,
    ) -> Result<(), Error> {
        self.add_noise_with(&mut Drawing::default(), value, rng)
    }

    /// See [`Sampler::can_draw_ahead`].
    pub(crate) fn can_draw_ahead(&self, len: usize) -> bool {
        self.sampler.can_draw_ahead(len)
    }

    /// As [`add_noise`](Self::add_noise), with the same result, and with the threads and the noise of `drawing`.
    pub(crate) fn add_noise_with<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &self,
        drawing: &mut Drawing,
        value: &mut [F],
        rng: &mut R,
    ) -> Result<(), Error> {
        self.sampler.add_gaussian(value, self.std_dev, self.grid, drawing, rng)
    }

    /// Returns the standard deviation of each coordinate's noise.
    pub fn std_dev(&self) -> f64 {
        self.std_dev
    }

    /// Returns the largest accepted sensitivity.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.sensitivity
    }

    /// Returns the grid of the outputs.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Returns the noise mode, which a certificate records.
    pub fn noise_mode(&self) -> NoiseMode {
        self.sampler.mode()
    }
}

/// Refuses delta = 0.
fn positive_delta(delta: Delta) -> Result<Delta, Error> {
    if delta.get() > 0.0 {
        Ok(delta)
    } else {
        Err(Error::OutOfRange { name: "delta", value: delta.get(), range: "(0, 1)" })
    }
}

impl<A: Adjacency> Gaussian<A> {
    /// Returns the cost that one release writes to the log.
    fn cost(&self) -> Cost {
        Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() }
    }
}

impl<A: Adjacency> PrivacyEvent for Gaussian<A> {
    fn event(&self) -> DpEvent {
        DpEvent::Gaussian { std_dev: self.std_dev, sensitivity: self.sensitivity.get() }
    }
}

impl<F: RealField + Copy, A: Adjacency> Mechanism<Vec<F>, A> for Gaussian<A> {
    type Norm = L2;
    type Output = Vec<F>;

    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Vec<F>, A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<F>>, Error> {
        additive::release(input, self.sensitivity, self.std_dev, self.cost(), log, rng, |value, rng| {
            self.add_noise(value, rng)
        })
    }
}

#[cfg(test)]
mod tests;
