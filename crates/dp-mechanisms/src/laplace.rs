//! The Laplace mechanism: pure differential privacy for L1 sensitivities.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};
use nalgebra::RealField;

use crate::additive;
use crate::bounded::Bounded;
use crate::error::{Error, positive_normal};
use crate::grid::Grid;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::noise::Sampler;
use crate::release::Cost;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::quotient_up;
use crate::sensitivity::{L1, L1Sensitivity};

/// Default number of bits of the grid below the noise scale.
pub const GRID_BITS: u32 = 30;

/// Adds independent Laplace noise to each coordinate of a vector.
///
/// # Formula
/// ```text
/// output = value + Z,   density of each Z_i at z: exp(-|z| / b) / (2 b),   b = scale = sensitivity / epsilon
/// delta(e) = 1 - exp((e - epsilon) / 2)   for 0 <= e <= epsilon
/// ```
///
/// # Privacy
/// For any two inputs whose L1 distance is at most `sensitivity` the release is pure epsilon-DP under the relation `A`, with the
/// curve above, in any number of dimensions; see below. By default noise is drawn exactly and rounded to a grid 2^30 below
/// `scale` ([`Exact`](NoiseMode::Exact)), which is a function of the ideal release. [`with_noise_mode`](Self::with_noise_mode)
/// selects [`Rounded`](NoiseMode::Rounded) instead; see [`grid`](crate::grid) for its idealisation.
///
/// **The whole shift in one coordinate is the worst.** Write `T_s` for the trade-off function of a Laplace law against itself
/// shifted by `s`: `T_s(a) = F(F^-1(1 - a) - s)`, with `F` its distribution function, because the density is log-concave, so that
/// the best tests are half-lines. Change one coordinate at a time. Two coordinates that differ by `r` and `s` have, by Dong, Roth
/// and Su (2022, Lemma A.5), a trade-off function of at least
///
/// ```text
/// T_s(1 - T_r(a)) = F(F^-1(F(F^-1(1 - a) - r)) - s) = F(F^-1(1 - a) - r - s) = T_(r+s)(a),
/// ```
///
/// that of the sum of both shifts in one coordinate; and so for any number, by induction. A larger trade-off function has the
/// smaller hockey-stick divergence at every epsilon, so the one-dimensional pair dominates: for `delta`, for Renyi divergences
/// and in compositions (Zhu, Dong, Wang 2022, Theorem 10). In one dimension it is exact.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, EventLog, ReplaceOne, bound};
/// use dp_mechanisms::{Bounded, L1Sensitivity, Laplace, Mechanism, OsSeeded};
///
/// let sensitivity = L1Sensitivity::<ReplaceOne>::new(0.02)?;
/// let laplace = Laplace::new(sensitivity, Epsilon::new(0.5)?)?;
/// assert_eq!(laplace.scale(), 0.04);
///
/// let mut log = EventLog::new();
/// let means = Bounded::with_proven_sensitivity(vec![0.5, -0.25], sensitivity);
/// let released = laplace.release(means, &mut log, &mut OsSeeded::new()?)?;
/// assert_eq!(released.get().len(), 2);
/// assert_eq!(bound::epsilon(&log.to_event(), Delta::ZERO)?.value, 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// A bound in the L2 norm is not accepted for one in the L1 norm:
/// ```compile_fail,E0308
/// # use dp_accountant::{Epsilon, ReplaceOne}; use dp_mechanisms::*;
/// fn build(bound: L2Sensitivity<ReplaceOne>, epsilon: Epsilon) -> Result<Laplace<ReplaceOne>, Error> {
///     Laplace::new(bound, epsilon) // needs `bound.to_l1(dim)?`
/// }
/// ```
///
/// # References
/// C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating noise to sensitivity in private data analysis", 2006,
/// Proposition 1. J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS B 84, 2022, Lemma A.5, arXiv
/// 1905.02383. Y. Zhu, J. Dong, Y.-X. Wang, "Optimal accounting of differential privacy via characteristic function",
/// 2022, Theorem 10, arXiv 2106.08567.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::laplace::LaplaceRecord",
        into = "crate::record::laplace::LaplaceRecord",
        bound = ""
    )
)]
pub struct Laplace<A: Adjacency> {
    scale: f64,
    sensitivity: L1Sensitivity<A>,
    grid: Grid,
    sampler: Sampler,
}

impl<A: Adjacency> Laplace<A> {
    /// Creates the mechanism with `scale = sensitivity / epsilon`, rounded up: epsilon-DP.
    ///
    /// # Errors
    /// [`Error::ScaleOverflow`] if the scale or its grid does not fit into doubles.
    pub fn new(sensitivity: L1Sensitivity<A>, epsilon: Epsilon) -> Result<Self, Error> {
        Self::from_derived(sensitivity, quotient_up(sensitivity.get(), epsilon.get()))
    }

    /// Creates the mechanism with this scale, in the units of the query: (sensitivity / scale)-DP.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for a scale that is not a positive normal
    /// number; otherwise as [`new`](Self::new).
    pub fn from_scale(sensitivity: L1Sensitivity<A>, scale: f64) -> Result<Self, Error> {
        Self::from_derived(sensitivity, positive_normal("scale", scale)?)
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

    fn from_derived(sensitivity: L1Sensitivity<A>, scale: f64) -> Result<Self, Error> {
        let grid = Grid::new(scale, GRID_BITS)?;
        Ok(Self { scale, sensitivity, grid, sampler: Sampler::Exact })
    }

    /// Returns the scale of each coordinate's noise: its mean absolute value.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Returns the largest accepted sensitivity.
    pub fn sensitivity(&self) -> L1Sensitivity<A> {
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

    /// Returns the variance of each coordinate's noise, `2 scale²`.
    pub fn coordinate_variance(&self) -> f64 {
        2.0 * self.scale * self.scale
    }

    /// Returns the mean absolute value of each coordinate's noise: the scale.
    pub fn mean_absolute(&self) -> f64 {
        self.scale
    }

    /// Returns the probability that a coordinate's noise is at most `z`.
    ///
    /// # Formula
    /// ```text
    /// exp(z / b) / 2  for z <= 0,   1 - exp(-z / b) / 2  for z >= 0
    /// ```
    pub fn cdf(&self, z: f64) -> f64 {
        let tail = 0.5 * (-z.abs() / self.scale).exp();
        if z <= 0.0 { tail } else { 1.0 - tail }
    }

    /// Returns the value that a coordinate's noise does not exceed with probability `p`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 < p < 1`.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Epsilon, ReplaceOne};
    /// use dp_mechanisms::{L1Sensitivity, Laplace};
    /// let laplace = Laplace::<ReplaceOne>::new(L1Sensitivity::new(1.0)?, Epsilon::new(0.5)?)?;
    /// assert!((laplace.quantile(0.975)? - 2.0 * 20f64.ln()).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quantile(&self, p: f64) -> Result<f64, Error> {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::OutOfRange { name: "probability", value: p, range: "(0, 1)" });
        }
        // 1 - p is exact from 1/2 on.
        let in_scales = if p < 0.5 { (2.0 * p).ln() } else { -(2.0 * (1.0 - p)).ln() };
        Ok(self.scale * in_scales)
    }

    /// Returns the cost that one release writes to the log.
    fn cost(&self) -> Cost {
        Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() }
    }
}

impl<A: Adjacency> PrivacyEvent for Laplace<A> {
    fn event(&self) -> DpEvent {
        DpEvent::Laplace { scale: self.scale, sensitivity: self.sensitivity.get() }
    }
}

impl<F: RealField + Copy, A: Adjacency> Mechanism<Vec<F>, A> for Laplace<A> {
    type Norm = L1;
    type Output = Vec<F>;

    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Vec<F>, A, L1>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<F>>, Error> {
        additive::release(input, self.sensitivity, self.scale, self.cost(), log, rng, |value, rng| {
            self.sampler.add_laplace(value, self.scale, self.grid, rng)
        })
    }
}

#[cfg(test)]
mod tests;
