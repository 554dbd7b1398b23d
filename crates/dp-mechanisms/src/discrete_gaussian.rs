//! The discrete Gaussian mechanism: concentrated differential privacy for integers, without any rounding.

mod law;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog, NoiseMultiplier, Rho};

use crate::bounded::Bounded;
use crate::error::{Error, dimension, positive_normal};
use crate::exact::discrete::DiscreteNormal;
use crate::exact::source::Words;
use crate::integer_noise::{self, Integers};
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::ratio::Ratio;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::{product_up, quotient_up, sqrt_down};
use crate::sensitivity::{L2, L2Sensitivity};

/// Adds independent noise with masses proportional to `exp(-k² / (2 scale²))` to each of `dim` integers.
///
/// # Formula
/// ```text
/// output = value + K,   P(K_i = k) = exp(-k² / (2 s²)) / sum over all integers j of exp(-j² / (2 s²)),   s = scale
/// ```
/// The variance is slightly below `s²`: 0.0133 at `s² = 0.1`, and equal to `s²` to twelve digits from `s² = 2` on.
///
/// # Privacy
/// For any two inputs whose L2 distance is at most `sensitivity` (`D`; the root of an integer, if the bound is tight) the release
/// is `D²/(2 s²)`-zCDP and `alpha D²/(2 s²)`-RDP under the relation `A`, as with the continuous law, in any dimension. The noise
/// is drawn with integer arithmetic only and nothing is idealised, so its [`noise_mode`](Self::noise_mode) is always
/// [`Exact`](NoiseMode::Exact).
///
/// In one dimension the law against its own shift by `D` dominates, because the law is log-concave, and the accountant computes
/// an exact curve from it (up to scales of about 25,000, for an integer `D`). In several dimensions there is no such pair: the
/// worst shift depends on epsilon. If a tight (epsilon, delta) matters more than integers, the [`Gaussian`](crate::Gaussian) on a
/// grid has an exact curve in any dimension.
///
/// The output saturates at the ends of `i64`: a function of the exact sum, hence post-processing.
///
/// # Examples
/// ```
/// use dp_accountant::{EventLog, ReplaceOne, Rho};
/// use dp_mechanisms::{Bounded, DiscreteGaussian, L2Sensitivity, Mechanism, OsSeeded};
///
/// // A histogram: replacing one record moves one unit from a bin to another.
/// let sensitivity = L2Sensitivity::<ReplaceOne>::new(2f64.sqrt().next_up())?;
/// let noise = DiscreteGaussian::from_zcdp(sensitivity, Rho::new(0.01)?, 3)?;
/// assert!((noise.scale() - 10.0).abs() < 1e-5);
/// assert!((noise.variance() - 100.0).abs() < 1e-3);
///
/// let mut log = EventLog::new();
/// let histogram = Bounded::with_proven_sensitivity(vec![120_i64, 44, 7], sensitivity);
/// let released = noise.release(histogram, &mut log, &mut OsSeeded::new()?)?;
/// assert_eq!(released.get().len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", 2020, Definition 1, Theorem 4,
/// Algorithm 3, arXiv 2004.00010.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::integer::DiscreteGaussianRecord",
        into = "crate::record::integer::DiscreteGaussianRecord",
        bound = ""
    )
)]
pub struct DiscreteGaussian<A: Adjacency> {
    /// A double, represented exactly, with a power of two as its denominator.
    scale: Ratio,
    sensitivity: L2Sensitivity<A>,
    dim: u64,
}

/// The least scale: below it the noise is nonzero only once in `e^(2^19)` releases.
pub const LEAST_SCALE: f64 = 1.0 / 1024.0;
/// The largest scale: up to it the exact sampler supports the variance, and noise fits into `i64`.
pub const LARGEST_SCALE: f64 = 4_503_599_627_370_496.0;

impl<A: Adjacency> DiscreteGaussian<A> {
    /// Creates the mechanism with this scale, in the units of the integers.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for a scale that is not a positive normal
    /// number; [`Error::OutOfRange`] for one outside `[2^-10, 2^52]`; [`Error::Dimension`] unless `dim` is in
    /// `1..=2^32`.
    pub fn from_scale(sensitivity: L2Sensitivity<A>, scale: f64, dim: u64) -> Result<Self, Error> {
        let dim = dimension(dim)?;
        let value = positive_normal("scale", scale)?;
        match Ratio::at_least(value) {
            Some(scale) if (LEAST_SCALE..=LARGEST_SCALE).contains(&value) => Ok(Self { scale, sensitivity, dim }),
            _ => Err(Error::OutOfRange { name: "scale", value, range: "[2^-10, 2^52]" }),
        }
    }

    /// Creates the mechanism with `scale = sensitivity / √(2 rho)`, rounded up: rho-zCDP.
    ///
    /// # Errors
    /// [`Error::TooSmall`] for a subnormal rho; otherwise as [`from_scale`](Self::from_scale).
    pub fn from_zcdp(sensitivity: L2Sensitivity<A>, rho: Rho, dim: u64) -> Result<Self, Error> {
        let rho = positive_normal("rho", rho.get())?;
        // Multiplied if small, divided if large: the exact 2 rho might overflow.
        let mu = if rho > 1.0 { 2.0 * sqrt_down(rho / 2.0) } else { sqrt_down(2.0 * rho) };
        Self::from_derived(sensitivity, quotient_up(sensitivity.get(), mu), dim)
    }

    /// Creates the mechanism with `scale = noise_multiplier · sensitivity`, rounded up.
    ///
    /// # Errors
    /// [`Error::TooSmall`] for a subnormal multiplier; otherwise as [`from_scale`](Self::from_scale).
    pub fn from_noise_multiplier(
        sensitivity: L2Sensitivity<A>,
        noise_multiplier: NoiseMultiplier,
        dim: u64,
    ) -> Result<Self, Error> {
        let noise_multiplier = positive_normal("noise multiplier", noise_multiplier.get())?;
        Self::from_derived(sensitivity, product_up(noise_multiplier, sensitivity.get()), dim)
    }

    /// Creates the mechanism with a derived scale: if it is not normal it is out of range.
    fn from_derived(sensitivity: L2Sensitivity<A>, scale: f64, dim: u64) -> Result<Self, Error> {
        if scale.is_normal() {
            Self::from_scale(sensitivity, scale, dim)
        } else {
            Err(Error::OutOfRange { name: "scale", value: scale, range: "[2^-10, 2^52]" })
        }
    }

    /// Returns the law's parameter `s`; the standard deviation is slightly less.
    pub fn scale(&self) -> f64 {
        self.scale.rounded_down()
    }

    /// Returns the largest accepted sensitivity.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.sensitivity
    }

    /// Returns the number of coordinates.
    pub fn dim(&self) -> u64 {
        self.dim
    }

    /// Returns the noise mode: exact, with integer arithmetic only.
    pub fn noise_mode(&self) -> NoiseMode {
        NoiseMode::Exact
    }

    /// Returns the probability that the noise of a coordinate is `k`.
    pub fn pmf(&self, k: i64) -> f64 {
        law::mass(self.scale(), k) / law::normaliser(self.scale())
    }

    /// Returns the probability that the noise of a coordinate is at least `k`.
    pub fn probability_at_least(&self, k: i64) -> f64 {
        let tail = |k: u64| law::tail(self.scale(), k) / law::normaliser(self.scale());
        if k > 0 { tail(k.unsigned_abs()) } else { 1.0 - tail(k.unsigned_abs() + 1) }
    }

    /// Returns the probability that the noise of a coordinate is at most `k`.
    pub fn cdf(&self, k: i64) -> f64 {
        match k.checked_neg() {
            Some(mirrored) => self.probability_at_least(mirrored),
            None => 0.0, // at most -2^63
        }
    }

    /// Returns the variance of each coordinate's noise.
    pub fn variance(&self) -> f64 {
        law::variance(self.scale())
    }

    /// Returns the law of a coordinate's noise.
    fn noise(&self) -> Result<DiscreteNormal, Error> {
        // Squares of at most 53 and 62 bits.
        let square = |x: u64| u128::from(x) * u128::from(x);
        DiscreteNormal::new(square(self.scale.numerator()), square(self.scale.denominator()))
    }

    fn release_integers<V: Integers, R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<V, A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<V>, Error> {
        let noise = self.noise()?;
        integer_noise::release(input, self.sensitivity, Some(self.dim), self.event(), log, rng, |rng| {
            noise.draw(&mut Words(rng)).map(i128::from)
        })
    }
}

impl<A: Adjacency> PrivacyEvent for DiscreteGaussian<A> {
    fn event(&self) -> DpEvent {
        DpEvent::DiscreteGaussian { scale: self.scale(), sensitivity: self.sensitivity.get(), dim: self.dim }
    }
}

impl<A: Adjacency> Mechanism<Vec<i64>, A> for DiscreteGaussian<A> {
    type Norm = L2;
    type Output = Vec<i64>;

    /// # Errors
    /// In addition to those of the trait, [`Error::DimensionMismatch`] for a vector whose length is not
    /// [`dim`](DiscreteGaussian::dim).
    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Vec<i64>, A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<i64>>, Error> {
        self.release_integers(input, log, rng)
    }
}

impl<A: Adjacency> Mechanism<i64, A> for DiscreteGaussian<A> {
    type Norm = L2;
    type Output = i64;

    /// # Errors
    /// In addition to those of the trait, [`Error::DimensionMismatch`] unless [`dim`](DiscreteGaussian::dim) is 1.
    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<i64, A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<i64>, Error> {
        self.release_integers(input, log, rng)
    }
}

#[cfg(test)]
mod tests;
