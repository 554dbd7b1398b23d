//! The staircase mechanism: pure differential privacy for one number with the least mean absolute error.

mod law;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};

use crate::bounded::Bounded;
use crate::error::Error;
use crate::exact;
use crate::exact::real::Offset;
use crate::exact::source::Words;
use crate::grid::Grid;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::ratio::Ratio;
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::quotient_up;
use crate::sensitivity::{L1, L1Sensitivity};
use law::Law;

pub use law::{least_mean_absolute, optimal_gamma};

/// Default number of bits of the grid below the smaller of sensitivity and mean absolute noise.
pub const GRID_BITS: u32 = 30;

/// The largest multiplier of an exact uniform number.
const MOST_STEPS: f64 = 9_007_199_254_740_992.0;

/// Number of geometric numbers rejected in a row, each of probability below 1/2, after which a generator counts as stuck.
const REJECTIONS: u32 = 512;

/// Adds noise to one number whose density is a staircase: constant up to `gamma D`, and on each further interval of length `D`
/// lower by a factor of `exp(-epsilon)`.
///
/// # Formula
/// ```text
/// output = value + Z,   D = sensitivity, on both sides of 0:
/// density at z = h             for |z| < gamma D
/// density at z = h exp(-k eps) for (k - 1 + gamma) D <= |z| < (k + gamma) D,  k = 1, 2, ...
/// E|Z| = D exp(eps/2) / (exp(eps) - 1)   at the best gamma, 1 / (1 + exp(eps/2))
/// ```
/// This is the least mean absolute error of any additive noise for pure epsilon-DP of a number. Laplace noise has `D / epsilon`:
/// 4% more at epsilon = 1, 2.4 times as much at 5, 6.8 times at 8. Useful for large epsilon only.
///
/// # Privacy
/// For any two numbers that differ by at most `D` the release is pure epsilon-DP under the relation `A`, for every `gamma`:
/// points at most `D` apart lie on the same step or on adjacent ones, because every step has at least that length except the
/// first, which has only one neighbour on either side of 0. The event states this guarantee and no more.
///
/// Lengths are whole numbers of steps of the [grid](crate::grid), with the sensitivity rounded up. The noise is an exact sample
/// of the ideal law, which is added to the value and rounded once. Nothing is idealised, so its [`noise_mode`](Self::noise_mode)
/// is always [`Exact`](NoiseMode::Exact). A draw needs one coin for the first step against all others, one geometric number for
/// the choice among the others, and one uniform number, without any rejection between them that would depend on gamma:
///
/// ```text
/// |Z| = gamma D U                 with probability p
/// |Z| = (gamma + G + U) D         otherwise,   P(G = k) = (1 - exp(-eps)) exp(-k eps)
/// p / (1 - p) = gamma (exp(eps) - 1)
/// ```
/// The coin's probability is a double, slightly below the ideal one, so that the first step is at most `exp(epsilon)` times as
/// high as the second. `gamma` is the optimum rounded to whole steps of the grid; the mean absolute error is within a relative
/// 1e-6 of the least one (see [`mean_absolute`](Self::mean_absolute) and [`least_mean_absolute`]).
///
/// A value beyond `2^126` steps of the grid is clamped first, which increases no distance.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, EventLog, ReplaceOne, bound};
/// use dp_mechanisms::{Bounded, L1Sensitivity, Mechanism, OsSeeded, Staircase};
///
/// let sensitivity = L1Sensitivity::<ReplaceOne>::new(1.0)?;
/// let staircase = Staircase::new(sensitivity, Epsilon::new(5.0)?)?;
/// assert!((staircase.mean_absolute() - 0.08264).abs() < 1e-5); // Laplace noise: 0.2
///
/// let mut log = EventLog::new();
/// let total = Bounded::<f64, ReplaceOne, _>::with_proven_sensitivity(1729.5, sensitivity);
/// let released = staircase.release(total, &mut log, &mut OsSeeded::new()?)?;
/// assert!((released.get() - 1729.5).abs() < 30.0); // but once in e^140 runs
/// assert_eq!(bound::epsilon(&log.to_event(), Delta::ZERO)?.value, 5.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// Q. Geng, P. Viswanath, "The optimal mechanism in differential privacy", 2014, Theorems 1 and 4, arXiv 1212.1186. Q.
/// Geng, P. Kairouz, S. Oh, P. Viswanath, "The staircase mechanism in differential privacy", 2015, Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::staircase::StaircaseRecord",
        into = "crate::record::staircase::StaircaseRecord",
        bound = ""
    )
)]
pub struct Staircase<A: Adjacency> {
    epsilon: Epsilon,
    sensitivity: L1Sensitivity<A>,
    grid: Grid,
    law: Law,
}

impl<A: Adjacency> Staircase<A> {
    /// Creates the mechanism with this epsilon.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an epsilon above 30, from where on the noise is negligible relative to the sensitivity;
    /// [`Error::ScaleOverflow`] if the grid does not fit into doubles.
    pub fn new(sensitivity: L1Sensitivity<A>, epsilon: Epsilon) -> Result<Self, Error> {
        Self::on_grid(sensitivity, epsilon, GRID_BITS)
    }

    /// Sets the number of bits of the grid below the smaller of sensitivity and mean absolute noise, in `20..=40`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], also if the sensitivity would have more than `2^53` steps (40 bits and an epsilon above about 16);
    /// [`Error::ScaleOverflow`].
    pub fn with_grid_bits(self, bits: u32) -> Result<Self, Error> {
        Self::on_grid(self.sensitivity, self.epsilon, bits)
    }

    fn on_grid(sensitivity: L1Sensitivity<A>, epsilon: Epsilon, bits: u32) -> Result<Self, Error> {
        let value = epsilon.get();
        let refused = Error::OutOfRange { name: "epsilon", value, range: "(0, 30]" };
        // 1 / epsilon, rounded up: the ratio of adjacent steps is then at most exp(epsilon).
        let (true, Some(mean_step)) = (value <= 30.0, Ratio::at_least(quotient_up(1.0, value))) else {
            return Err(refused);
        };
        let grid = Grid::new(sensitivity.get() * least_mean_absolute(value).min(1.0), bits)?;
        let period = grid.in_steps(sensitivity.get()).ceil(); // exact except for the ceiling: a power of two
        if !(period <= MOST_STEPS) {
            let range = "few enough for 2^53 steps in the sensitivity";
            return Err(Error::OutOfRange { name: "grid bits", value: f64::from(bits), range });
        }
        Ok(Self { epsilon, sensitivity, grid, law: Law::new(value, mean_step, period as u64) })
    }

    /// Returns epsilon of the guarantee.
    pub fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// Returns the largest accepted sensitivity.
    pub fn sensitivity(&self) -> L1Sensitivity<A> {
        self.sensitivity
    }

    /// Returns the grid of the outputs.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Returns the noise mode, which is always exact.
    pub fn noise_mode(&self) -> NoiseMode {
        NoiseMode::Exact
    }

    /// Returns half the length of the first step over the length of the others: a ratio of whole numbers of grid steps, within
    /// half a step over the sensitivity, less than `2^-bits`, of [`optimal_gamma`].
    pub fn gamma(&self) -> f64 {
        self.law.gamma()
    }

    /// Returns the mean absolute value of the noise.
    pub fn mean_absolute(&self) -> f64 {
        self.law.mean_absolute() * self.grid.step()
    }

    /// Returns the variance of the noise.
    pub fn variance(&self) -> f64 {
        self.law.variance() * self.grid.step() * self.grid.step()
    }

    /// Returns the probability that the noise is at most `z`.
    pub fn cdf(&self, z: f64) -> f64 {
        let tail = 0.5 * self.law.magnitude_tail(z.abs() / self.grid.step());
        if z <= 0.0 { tail } else { 1.0 - tail }
    }

    /// Returns the density of the noise on the first step, where it is highest.
    pub fn density_at_0(&self) -> f64 {
        self.law.highest_density() / self.grid.step()
    }

    /// Returns `value + noise`, rounded to the grid once. The step, the sign and the uniform number are drawn before the value is
    /// read.
    fn add_noise<R: ReleaseRng + ?Sized>(&self, value: f64, rng: &mut R) -> Result<f64, Error> {
        let is_first = exact::bernoulli_f64(self.law.first_step(), rng)?;
        let further = self.geometric(rng)?;
        let is_negative = exact::bernoulli(1, 2, rng)?;
        let uniform = exact::uniform(rng)?.negated_if(is_negative);
        let (length, start) = self.law.step(is_first, further);

        let place = self.grid.place(value);
        let fraction = Offset::half_above(self.grid.exact_fraction(value, &place));
        let along = uniform.floor_affine(length, fraction, &mut Words(rng))?;
        let start = if is_negative { -start } else { start };
        // The result depends only on the sum of whole numbers.
        Ok(self.grid.point(self.grid.index(&place).saturating_add(start.saturating_add(along))))
    }

    /// Samples `k` with probability `(1 - q) q^k`, where `q = exp(-1 / mean_step)`: a non-negative discrete Laplace number.
    fn geometric<R: ReleaseRng + ?Sized>(&self, rng: &mut R) -> Result<i128, Error> {
        let scale = self.law.mean_step();
        for _ in 0..REJECTIONS {
            let two_sided = exact::discrete_laplace(scale.numerator(), scale.denominator(), rng)?;
            if two_sided >= 0 {
                return Ok(two_sided);
            }
        }
        Err(Error::StuckGenerator)
    }
}

impl<A: Adjacency> PrivacyEvent for Staircase<A> {
    fn event(&self) -> DpEvent {
        DpEvent::PureDp { epsilon: self.epsilon.get() }
    }
}

impl<A: Adjacency> Mechanism<f64, A> for Staircase<A> {
    type Norm = L1;
    type Output = f64;

    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<f64, A, L1>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<f64>, Error> {
        let cost = Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() };
        release::bounded(input, self.sensitivity, cost, log, rng, |value, rng| {
            if !value.is_finite() {
                return Err(Error::NonFiniteInput);
            }
            self.add_noise(value, rng)
        })
    }
}

#[cfg(test)]
mod tests;
