//! The discrete Laplace mechanism: pure differential privacy for integers, without any rounding.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};

use crate::bounded::Bounded;
use crate::error::{Error, positive_normal};
use crate::exact;
use crate::integer_noise;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::ratio::Ratio;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::quotient_up;
use crate::sensitivity::{L1, L1Sensitivity};

/// The least scale: below it the noise is nonzero only once in `e^(2^20)` releases.
pub const LEAST_SCALE: f64 = 1.0 / 1_048_576.0;

/// Adds independent two-sided geometric noise to an integer, or to each of a vector of integers.
///
/// # Formula
/// ```text
/// output = value + K,   P(K = k) = tanh(1 / (2 t)) exp(-|k| / t),   t = scale_numerator / scale_denominator
/// ```
///
/// # Privacy
/// For any two inputs whose L1 distance is at most `sensitivity`, an integer `D`, the release is pure `D / t`-DP under the
/// relation `A`. The noise is drawn with integer arithmetic only and nothing is idealised, so its
/// [`noise_mode`](Self::noise_mode) is always [`Exact`](NoiseMode::Exact). The event contains scale and sensitivity in units of
/// the integers, since Renyi divergences are larger than those of continuous noise of the same epsilon (a single step is binary
/// randomised response, the worst pure guarantee).
///
/// **In several dimensions the whole shift in one coordinate is the worst**, for the trade-off function and hence for every
/// divergence. Let `F` be the distribution function of `K` and `T_s` the trade-off function of `K` against `K + s`. It is linear
/// between the levels `1 - F(k)`, at which it is `F(k - s)`; so `T_s(1 - T_r(a)) = T_(r+s)(a)` at all of them, hence everywhere.
/// A shift of `r` in one coordinate followed by one of `s` in another has a trade-off function of at least `T_s o (1 - T_r)` by
/// Dong, Roth and Su (2022, Lemma A.5), which is that of `r + s` in one.
///
/// The output saturates at the ends of `i64`: a function of the exact sum, hence post-processing.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, EventLog, ZeroOut, bound};
/// use dp_mechanisms::{Bounded, DiscreteLaplace, L1Sensitivity, Mechanism, OsSeeded};
///
/// // A count: one record changes it by at most 1.
/// let sensitivity = L1Sensitivity::<ZeroOut>::new(1.0)?;
/// let noise = DiscreteLaplace::new(sensitivity, Epsilon::new(0.5)?)?;
/// assert_eq!(noise.scale(), 2.0);
///
/// let mut log = EventLog::new();
/// let count = Bounded::<i64, ZeroOut, _>::with_proven_sensitivity(1729, sensitivity);
/// let released = noise.release(count, &mut log, &mut OsSeeded::new()?)?;
/// assert!((released.get() - 1729).abs() < 200); // but once in e^100 runs
/// assert_eq!(bound::epsilon(&log.to_event(), Delta::ZERO)?.value, 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// A value bounded in another norm is not accepted:
/// ```compile_fail,E0308
/// # use dp_accountant::{EventLog, ZeroOut}; use dp_mechanisms::*;
/// fn release(value: Bounded<Vec<i64>, ZeroOut, L2>, noise: DiscreteLaplace<ZeroOut>, log: &mut EventLog<ZeroOut>) {
///     let released = noise.release(value, log, &mut OsSeeded::new().unwrap());
/// }
/// ```
///
/// # References
/// A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms", 2009, Definition 2.1.
/// C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", 2020, Algorithm 2, arXiv
/// 2004.00010. J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS B 84, 2022, Lemma A.5.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::integer::DiscreteLaplaceRecord",
        into = "crate::record::integer::DiscreteLaplaceRecord",
        bound = ""
    )
)]
pub struct DiscreteLaplace<A: Adjacency> {
    scale: Ratio,
    sensitivity: L1Sensitivity<A>,
}

impl<A: Adjacency> DiscreteLaplace<A> {
    /// Creates the mechanism with `scale = sensitivity / epsilon`, rounded up: epsilon-DP.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a sensitivity that is not an integer up to `2^53`, and for a scale outside `[2^-20, 2^63)`.
    pub fn new(sensitivity: L1Sensitivity<A>, epsilon: Epsilon) -> Result<Self, Error> {
        Self::from_scale(sensitivity, quotient_up(whole(sensitivity)?.get(), epsilon.get()))
    }

    /// Creates the mechanism with this scale, in the units of the integers: (sensitivity / scale)-DP.
    ///
    /// A double is a ratio of integers; one below `2^-10` may be rounded up to a multiple of `2^-62`.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for a scale that is not a positive normal
    /// number; otherwise as [`new`](Self::new).
    pub fn from_scale(sensitivity: L1Sensitivity<A>, scale: f64) -> Result<Self, Error> {
        let sensitivity = whole(sensitivity)?;
        let value = positive_normal("scale", scale)?;
        match Ratio::at_least(value) {
            Some(scale) if value >= LEAST_SCALE => Ok(Self { scale, sensitivity }),
            _ => Err(Error::OutOfRange { name: "scale", value, range: "[2^-20, 2^63)" }),
        }
    }

    /// Creates the mechanism with exactly the scale `numerator / denominator`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a sensitivity that is not an integer up to `2^53`, and for a scale below `2^-20`;
    /// [`Error::NotPositive`] for a zero.
    pub fn from_ratio(sensitivity: L1Sensitivity<A>, numerator: u64, denominator: u64) -> Result<Self, Error> {
        let sensitivity = whole(sensitivity)?;
        let Some(scale) = Ratio::new(numerator, denominator) else {
            let name = if numerator == 0 { "scale numerator" } else { "scale denominator" };
            return Err(Error::NotPositive { name, value: 0.0 });
        };
        let value = scale.rounded_down();
        if value >= LEAST_SCALE {
            Ok(Self { scale, sensitivity })
        } else {
            Err(Error::OutOfRange { name: "scale", value, range: "[2^-20, 2^64)" })
        }
    }

    /// Returns the scale as stated in the event, rounded down to a double.
    pub fn scale(&self) -> f64 {
        self.scale.rounded_down()
    }

    /// Returns the exact scale: numerator and denominator.
    pub fn scale_ratio(&self) -> (u64, u64) {
        (self.scale.numerator(), self.scale.denominator())
    }

    /// Returns the largest accepted sensitivity, an integer.
    pub fn sensitivity(&self) -> L1Sensitivity<A> {
        self.sensitivity
    }

    /// Returns the noise mode: exact, with integer arithmetic only.
    pub fn noise_mode(&self) -> NoiseMode {
        NoiseMode::Exact
    }

    /// Returns the probability that the noise is `k`.
    ///
    /// # Formula
    /// ```text
    /// (1 - q) / (1 + q) q^|k| = tanh(1 / (2 t)) exp(-|k| / t),   q = exp(-1 / t)
    /// ```
    pub fn pmf(&self, k: i64) -> f64 {
        (0.5 / self.scale()).tanh() * self.power(k.unsigned_abs())
    }

    /// Returns the probability that the noise is at least `k`: `q^k / (1 + q)` for `k > 0`, and 1 minus the probability of more
    /// than `-k` otherwise.
    pub fn probability_at_least(&self, k: i64) -> f64 {
        let tail = |k: u64| self.power(k) / (1.0 + self.power(1));
        if k > 0 { tail(k.unsigned_abs()) } else { 1.0 - tail(k.unsigned_abs() + 1) }
    }

    /// Returns the probability that the noise is at most `k`.
    pub fn cdf(&self, k: i64) -> f64 {
        match k.checked_neg() {
            Some(mirrored) => self.probability_at_least(mirrored),
            None => 0.0, // at most -2^63
        }
    }

    /// Returns the variance of the noise, `2 q / (1 - q)² = 1 / (2 sinh²(1 / (2 t)))`.
    pub fn variance(&self) -> f64 {
        let sinh = (0.5 / self.scale()).sinh();
        0.5 / (sinh * sinh)
    }

    /// Returns the mean of the noise's absolute value, `2 q / (1 - q²) = 1 / sinh(1 / t)`.
    pub fn mean_absolute(&self) -> f64 {
        (1.0 / self.scale()).sinh().recip()
    }

    /// Returns `q^k`.
    fn power(&self, k: u64) -> f64 {
        (-(k as f64) / self.scale()).exp()
    }

    fn draw<R: ReleaseRng + ?Sized>(&self, rng: &mut R) -> Result<i128, Error> {
        exact::discrete_laplace(self.scale.numerator(), self.scale.denominator(), rng)
    }
}

/// Refuses a sensitivity that is not an integer.
fn whole<A: Adjacency>(sensitivity: L1Sensitivity<A>) -> Result<L1Sensitivity<A>, Error> {
    let value = sensitivity.get();
    if value.fract() == 0.0 && value <= 2f64.powi(53) {
        Ok(sensitivity)
    } else {
        Err(Error::OutOfRange { name: "sensitivity", value, range: "the whole numbers 1..=2^53" })
    }
}

impl<A: Adjacency> PrivacyEvent for DiscreteLaplace<A> {
    fn event(&self) -> DpEvent {
        // Exact: an integer up to 2^53.
        DpEvent::DiscreteLaplace { scale: self.scale(), sensitivity: self.sensitivity.get() as u64 }
    }
}

impl<A: Adjacency> Mechanism<Vec<i64>, A> for DiscreteLaplace<A> {
    type Norm = L1;
    type Output = Vec<i64>;

    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Vec<i64>, A, L1>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<i64>>, Error> {
        integer_noise::release(input, self.sensitivity, None, self.event(), log, rng, |rng| self.draw(rng))
    }
}

impl<A: Adjacency> Mechanism<i64, A> for DiscreteLaplace<A> {
    type Norm = L1;
    type Output = i64;

    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<i64, A, L1>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<i64>, Error> {
        integer_noise::release(input, self.sensitivity, None, self.event(), log, rng, |rng| self.draw(rng))
    }
}

#[cfg(test)]
mod tests;
