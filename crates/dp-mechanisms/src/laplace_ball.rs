//! The L2 Laplace ball mechanism: pure differential privacy for vectors with an L2 sensitivity.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};
use nalgebra::RealField;

use crate::additive;
use crate::bounded::Bounded;
use crate::error::{Error, dimension, positive_normal};
use crate::gamma_law;
use crate::grid::Grid;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::noise::Sampler;
use crate::release::Cost;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::quotient_up;
use crate::sensitivity::{L2, L2Sensitivity};

/// Default number of bits of the grid below the noise scale.
pub const GRID_BITS: u32 = 20;

/// Adds noise whose density at `z` is proportional to `exp(-‖z‖₂ / scale)` to a vector of `dim` coordinates.
///
/// # Formula
/// ```text
/// output = value + Z,   scale = sensitivity / epsilon
/// ‖Z‖ ~ Gamma(dim, scale),  Z / ‖Z‖ uniform on the unit sphere
/// Z = scale · √W · N,   W ~ chi-square(dim + 1),  N ~ N(0, I)     (how it is drawn)
/// ```
/// `dim = 1` is the Laplace mechanism.
///
/// # Privacy
/// Pure epsilon-DP for any two inputs whose L2 distance is at most `sensitivity`, by the triangle inequality. For large `dim` one
/// release is far more private than that at small delta; the event (which contains scale, sensitivity and dimension) lets an
/// accountant use this. By default noise is drawn in [`Exact`](NoiseMode::Exact) mode on a grid 2^20 below `scale`: the ideal
/// real noise, rounded without any error, see [`grid`](crate::grid).
///
/// The direction must be uniform on the *sphere*. With a direction uniform in the unit ball, as in one published description, the
/// density at 0 is infinite and the release is not epsilon-DP for any epsilon.
///
/// # Examples
/// ```
/// use dp_accountant::{Epsilon, EventLog, ReplaceOne};
/// use dp_mechanisms::rng::OsSeeded;
/// use dp_mechanisms::{Bounded, L2Sensitivity, LaplaceBall, Mechanism};
///
/// let sensitivity = L2Sensitivity::<ReplaceOne>::new(0.01)?;
/// let ball = LaplaceBall::new(sensitivity, Epsilon::new(0.5)?, 3)?;
/// assert_eq!(ball.scale(), 0.02);
/// assert_eq!(ball.mean_norm(), 0.06);
///
/// let mut log = EventLog::new();
/// let weights = Bounded::with_proven_sensitivity(vec![0.5f32, -0.25, 1.0], sensitivity);
/// let released = ball.release(weights, &mut log, &mut OsSeeded::new()?)?;
/// assert_eq!(released.get().len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk minimization", JMLR 12, 2011,
/// Algorithm 1. X. Wu, F. Li, A. Kumar, K. Chaudhuri, S. Jha, J. Naughton, "Bolt-on differential privacy for scalable
/// stochastic gradient descent-based analytics", 2017, Appendix E, arXiv 1606.04722.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "crate::record::LaplaceBallRecord", into = "crate::record::LaplaceBallRecord", bound = "")
)]
pub struct LaplaceBall<A: Adjacency> {
    scale: f64,
    sensitivity: L2Sensitivity<A>,
    dim: u64,
    grid: Grid,
    sampler: Sampler,
}

impl<A: Adjacency> LaplaceBall<A> {
    /// Creates the mechanism with `scale = sensitivity / epsilon`, rounded up: epsilon-DP.
    ///
    /// # Errors
    /// [`Error::Dimension`] unless `dim` is in `1..=2^32`; [`Error::ScaleOverflow`] if the scale or its grid does not fit into
    /// doubles.
    pub fn new(sensitivity: L2Sensitivity<A>, epsilon: Epsilon, dim: u64) -> Result<Self, Error> {
        Self::from_derived(sensitivity, quotient_up(sensitivity.get(), epsilon.get()), dim)
    }

    /// Creates the mechanism with this scale, in the units of the query: (sensitivity / scale)-DP.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for a scale that is not a positive normal
    /// number; otherwise as [`new`](Self::new).
    pub fn from_scale(sensitivity: L2Sensitivity<A>, scale: f64, dim: u64) -> Result<Self, Error> {
        Self::from_derived(sensitivity, positive_normal("scale", scale)?, dim)
    }

    /// Sets the number of bits of the grid below the noise scale, in `20..=40`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::ScaleOverflow`].
    pub fn with_grid_bits(self, bits: u32) -> Result<Self, Error> {
        Ok(Self { grid: Grid::new(self.scale, bits)?, ..self })
    }

    /// Sets the noise mode: [`NoiseMode::Rounded`] is faster and idealises the noise, see [`grid`](crate::grid); a certificate
    /// records the choice.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for [`NoiseMode::None`].
    pub fn with_noise_mode(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(Self { sampler: Sampler::of(mode)?, ..self })
    }

    fn from_derived(sensitivity: L2Sensitivity<A>, scale: f64, dim: u64) -> Result<Self, Error> {
        let dim = dimension(dim)?;
        let grid = Grid::new(scale, GRID_BITS)?;
        Ok(Self { scale, sensitivity, dim, grid, sampler: Sampler::Exact })
    }

    /// Returns the scale of the norm's exponential decay.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Returns the largest accepted sensitivity.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.sensitivity
    }

    /// Returns the number of coordinates.
    pub fn dim(&self) -> u64 {
        self.dim
    }

    /// Returns the grid of the outputs.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Returns the noise mode, which a certificate records.
    pub fn noise_mode(&self) -> NoiseMode {
        self.sampler.mode()
    }

    /// Returns the mean of the noise's norm, `dim · scale`.
    pub fn mean_norm(&self) -> f64 {
        self.dim as f64 * self.scale
    }

    /// Returns the standard deviation of the noise's norm, `√dim · scale`.
    pub fn norm_std_dev(&self) -> f64 {
        (self.dim as f64).sqrt() * self.scale
    }

    /// Returns the mean of the noise's squared norm, `dim (dim + 1) scale²`.
    pub fn mean_squared_norm(&self) -> f64 {
        self.dim as f64 * self.coordinate_variance()
    }

    /// Returns the variance of each coordinate of the noise, `(dim + 1) scale²`.
    pub fn coordinate_variance(&self) -> f64 {
        (self.dim as f64 + 1.0) * self.scale * self.scale
    }

    /// Returns the probability that the noise's norm is at most `r`.
    ///
    /// # Formula
    /// ```text
    /// P(dim, r / scale) = 1/Gamma(dim) ∫_0^(r/scale) t^(dim-1) e^(-t) dt
    /// ```
    pub fn norm_cdf(&self, r: f64) -> f64 {
        gamma_law::tails(self.dim as f64, r / self.scale).0
    }

    /// Returns the norm that the noise's norm does not exceed with probability `p`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 < p < 1`.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Epsilon, ReplaceOne};
    /// use dp_mechanisms::{L2Sensitivity, LaplaceBall};
    /// let ball = LaplaceBall::<ReplaceOne>::new(L2Sensitivity::new(1.0)?, Epsilon::new(1.0)?, 50)?;
    /// assert!((ball.norm_quantile(0.99)? - 67.90336158551339).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn norm_quantile(&self, p: f64) -> Result<f64, Error> {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::OutOfRange { name: "probability", value: p, range: "(0, 1)" });
        }
        Ok(gamma_law::quantile(self.dim as f64, p) * self.scale)
    }

    /// Returns the natural logarithm of the noise's density at 0, where it is largest.
    ///
    /// # Formula
    /// ```text
    /// ln( Gamma(d/2) / (2 pi^(d/2) Gamma(d) b^d) ) = -d ln(2 b) - (d - 1)/2 ln(pi) - ln Gamma((d + 1)/2)
    /// ```
    /// with `d = dim` and `b = scale`; the two sides are equal by the duplication formula.
    pub fn log_density_at_0(&self) -> f64 {
        let d = self.dim as f64;
        let ln_two_b = core::f64::consts::LN_2 + self.scale.ln();
        -d * ln_two_b - 0.5 * (d - 1.0) * core::f64::consts::PI.ln() - gamma_law::ln_gamma(0.5 * (d + 1.0))
    }
}

impl<A: Adjacency> LaplaceBall<A> {
    /// Returns the standard deviation of each coordinate of the noise.
    pub(crate) fn spread(&self) -> f64 {
        (self.dim as f64 + 1.0).sqrt() * self.scale
    }

    /// Refuses vectors of a different length.
    pub(crate) fn check_dimension<F>(&self, value: &[F]) -> Result<(), Error> {
        let found = value.len() as u64;
        if found == self.dim { Ok(()) } else { Err(Error::DimensionMismatch { expected: self.dim, found }) }
    }

    /// Adds noise to the value in place, without logging.
    pub(crate) fn add_noise<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &self,
        value: &mut [F],
        rng: &mut R,
    ) -> Result<(), Error> {
        self.check_dimension(value)?;
        self.sampler.add_laplace_ball(value, self.scale, self.grid, rng)
    }

    /// Returns the cost that one release writes to the log.
    fn cost(&self) -> Cost {
        Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() }
    }
}

impl<A: Adjacency> PrivacyEvent for LaplaceBall<A> {
    fn event(&self) -> DpEvent {
        DpEvent::LaplaceBall { scale: self.scale, sensitivity: self.sensitivity.get(), dim: self.dim }
    }
}

impl<F: RealField + Copy, A: Adjacency> Mechanism<Vec<F>, A> for LaplaceBall<A> {
    type Norm = L2;
    type Output = Vec<F>;

    /// # Errors
    /// In addition to those of the trait, [`Error::DimensionMismatch`] for a vector whose length is not
    /// [`dim`](LaplaceBall::dim).
    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Vec<F>, A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<F>>, Error> {
        additive::release(input, self.sensitivity, self.spread(), self.cost(), log, rng, |value, rng| {
            self.add_noise(value, rng)
        })
    }
}

#[cfg(test)]
mod tests;
