//! Clipping at an adaptive quantile of the records' norms.

use core::marker::PhantomData;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog, NoiseMultiplier};

use super::per_layer::LayeredGaussian;
use super::{ClippingNorm, norms_moved};
use crate::bounded::Bounded;
use crate::error::{Error, positive_normal};
use crate::gaussian::Gaussian;
use crate::mechanism::PrivacyEvent;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::product_up;
use crate::sensitivity::L2Sensitivity;

/// Adaptive clipping: the clipping norm follows a quantile of the norms. After each step it grows if too few records were below
/// it, and shrinks if too many were.
///
/// # Formula
/// ```text
/// count = Σ_i (b_i - 1/2) + N(0, s_b²),   b_i = 1 if ‖g_i‖ <= C, else 0
/// fraction = count / m + 1/2,   m the public expected number of records
/// C := C exp(-rate (fraction - quantile))
/// gradient noise: z_g C,   z_g = (z^-2 - (2 s_b)^-2)^(-1/2), rounded up
/// ```
///
/// # Privacy
/// One event `Gaussian { std_dev: z, sensitivity: 1 }` per step covers both the noisy sum and the new norm. If one record is
/// added or zeroed, the sum changes by at most `C` and the count by at most 1/2: a null record is not counted at all, as opposed
/// to a record of norm 0 (that would be below `C`, and the count could change by 1). Divided by their noise, both together are
/// one vector with noise `N(0, I)` that changes by at most
/// ```text
/// √(1/z_g² + (1/2)²/s_b²) <= 1/z,
/// ```
/// which is the Gaussian mechanism of multiplier `z`: the only cost of the count is slightly larger noise of the sum. The norm of
/// the next step is a function of earlier releases, and `z`, the event's only parameter, does not depend on it; so the steps
/// compose as a fixed sequence of equal Gaussians.
///
/// Under [`ReplaceOne`](dp_accountant::ReplaceOne) and [`ChangeListLabels`](dp_accountant::ChangeListLabels) a replaced record is
/// a removal and an addition: sum and count both change by twice as much, and the event is `Gaussian { std_dev: z, sensitivity: 2
/// }`. No relation is excluded by type, since with both sensitivities doubled the same proof holds.
///
/// The count is divided by the expected number of records, which is public, and not by the actual number. It is a whole number of
/// halves and is released on a grid like any other sum.
///
/// # Examples
/// ```
/// use dp_accountant::{DpEvent, EventLog, NoiseMultiplier, ZeroOut};
/// use dp_mechanisms::clip::{AdaptiveClipping, ClippingNorm, ExactSum};
/// use dp_mechanisms::{OsSeeded, PrivacyEvent};
///
/// let clipping = AdaptiveClipping::<ZeroOut>::new(0.5, 0.2, 100.0, NoiseMultiplier::new(1.0)?, 5.0)?;
/// assert!((clipping.gradient_multiplier() - 1.005037815259212).abs() < 1e-12);
///
/// let mut state = clipping.start(ClippingNorm::new(1.0)?)?;
/// let (mut sum, mut count) = (ExactSum::new(2, state.norm().into(), 2f64.powi(-30), 200)?, state.count());
/// for gradient in [[0.3, 0.4], [3.0, 4.0]] {
///     sum.add(&gradient)?;
///     count.add(gradient[0] * gradient[0] + gradient[1] * gradient[1]);
/// }
/// let mut log = EventLog::new();
/// let noisy = state.release(sum.finish(), count, &mut log, &mut OsSeeded::new()?)?;
/// assert_eq!(noisy.get().sum.len(), 2);
/// assert_eq!(log.to_event(), DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 });
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// G. Andrew, O. Thakkar, H. B. McMahan, S. Ramaswamy, "Differentially private learning with adaptive clipping", NeurIPS
/// 2021, Algorithm 1 and Theorem 1, arXiv 1905.03871.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::clip::AdaptiveClippingRecord",
        into = "crate::record::clip::AdaptiveClippingRecord",
        bound = ""
    )
)]
pub struct AdaptiveClipping<A: Adjacency> {
    quantile: f64,
    rate: f64,
    expected_records: f64,
    noise_multiplier: f64,
    count_std_dev: f64,
    gradient_multiplier: f64,
    mode: NoiseMode,
    relation: PhantomData<A>,
}

impl<A: Adjacency> AdaptiveClipping<A> {
    /// Creates the rule from the target quantile, the rate of adaptation, the expected number of records in a step, the noise
    /// multiplier of a whole step, and the standard deviation of the count's noise.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a quantile outside (0, 1), and unless `noise_multiplier < 2 count_std_dev`, since otherwise the
    /// count alone would cost more than the step may; [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for the
    /// others.
    pub fn new(
        quantile: f64,
        rate: f64,
        expected_records: f64,
        noise_multiplier: NoiseMultiplier,
        count_std_dev: f64,
    ) -> Result<Self, Error> {
        if !(quantile > 0.0 && quantile < 1.0) {
            return Err(Error::OutOfRange { name: "quantile", value: quantile, range: "(0, 1)" });
        }
        let noise_multiplier = positive_normal("noise multiplier", noise_multiplier.get())?;
        let count_std_dev = positive_normal("standard deviation of the count", count_std_dev)?;
        Ok(Self {
            quantile,
            rate: positive_normal("rate", rate)?,
            expected_records: positive_normal("expected number of records", expected_records)?,
            noise_multiplier,
            count_std_dev,
            gradient_multiplier: gradient_multiplier(noise_multiplier, count_std_dev)?,
            mode: NoiseMode::Exact,
            relation: PhantomData,
        })
    }

    /// Sets the noise mode; the default is exact noise.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for a mode that is not implemented.
    pub fn with_noise_mode(self, mode: NoiseMode) -> Result<Self, Error> {
        Gaussian::from_std_dev(L2Sensitivity::<A>::new(1.0)?, 1.0)?.with_noise_mode(mode)?;
        Ok(Self { mode, ..self })
    }

    /// Returns `(z^-2 - (2 s_b)^-2)^(-1/2)`, rounded up: the sum's noise in units of the clipping norm.
    pub fn gradient_multiplier(&self) -> f64 {
        self.gradient_multiplier
    }

    /// Returns the target quantile.
    pub fn quantile(&self) -> f64 {
        self.quantile
    }

    /// Returns the rate of adaptation of the norm.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the expected number of records in a step.
    pub fn expected_records(&self) -> f64 {
        self.expected_records
    }

    /// Returns the noise multiplier of a whole step.
    pub fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    /// Returns the standard deviation of the count's noise.
    pub fn count_std_dev(&self) -> f64 {
        self.count_std_dev
    }

    /// Returns the noise mode.
    pub fn noise_mode(&self) -> NoiseMode {
        self.mode
    }

    /// Returns the norm after a step in which the given fraction of the records was found below it.
    ///
    /// The fraction is a released one; because of the noise it may be negative or above 1.
    pub fn next_norm(&self, norm: ClippingNorm, noisy_fraction: f64) -> ClippingNorm {
        // For any noise, the norm stays in the range in which a step can be built.
        let next = follow_quantile(norm.get(), self.rate, noisy_fraction - self.quantile, (LEAST, LARGEST));
        ClippingNorm::new(next).unwrap_or(norm)
    }

    /// Starts a run of steps with this norm.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a norm outside `[2^-400, 2^400]`, the range to which the norm is confined.
    pub fn start(&self, norm: ClippingNorm) -> Result<AdaptiveNorm<A>, Error> {
        if !(LEAST..=LARGEST).contains(&norm.get()) {
            let range = "[2^-400, 2^400]";
            return Err(Error::OutOfRange { name: "clipping norm", value: norm.get(), range });
        }
        let state = AdaptiveNorm { clipping: *self, norm };
        state.noise()?;
        Ok(state)
    }
}

/// Returns the next norm `C exp(-rate excess)` within a range, where `excess` is the noisy fraction of records below the norm minus the
/// quantile; for NaN, the same norm.
pub fn follow_quantile(norm: f64, rate: f64, excess: f64, (least, largest): (f64, f64)) -> f64 {
    let next = norm * (-rate * excess).exp();
    if next.is_nan() { norm } else { next.clamp(least, largest) }
}

/// `2^-400`.
const LEAST: f64 = f64::from_bits((1023 - 400) << 52);
/// `2^400`.
const LARGEST: f64 = f64::from_bits((1023 + 400) << 52);

/// Returns `z_g` with `1/z_g² + 1/(2 s_b)² <= 1/z²` in exact arithmetic.
///
/// It is computed as `z / √((1 - x)(1 + x))` with `x = z / (2 s_b)`, each factor as `(s_b ± z/2) / s_b`. Nothing cancels, since
/// the inputs of the difference are exact, and nothing overflows. Two sums, two quotients and a product, halved by the root, then
/// the root and the quotient: a relative error of at most 5 times 2^-53, which the last factor covers.
fn gradient_multiplier(noise_multiplier: f64, count_std_dev: f64) -> Result<f64, Error> {
    let refused = Error::OutOfRange {
        name: "noise multiplier",
        value: noise_multiplier,
        range: "(0, 2 x standard deviation of the count)",
    };
    // Halved rather than doubled: neither operation rounds here, and halving cannot overflow.
    let (z, count) = (0.5 * noise_multiplier, count_std_dev);
    if !(z < count) {
        return Err(refused);
    }
    let share = ((count - z) / count) * ((count + z) / count);
    let multiplier = noise_multiplier / share.sqrt() * (1.0 + 8.0 * f64::EPSILON);
    if multiplier.is_normal() { Ok(multiplier) } else { Err(refused) }
}

impl<A: Adjacency> PrivacyEvent for AdaptiveClipping<A> {
    /// Returns the event of one step, which releases the noisy sum and the next norm.
    fn event(&self) -> DpEvent {
        DpEvent::Gaussian { std_dev: self.noise_multiplier, sensitivity: norms_moved::<A>() }
    }
}

/// The norm of the current step of an [`AdaptiveClipping`].
///
/// It provides a count to be filled during the step, and the release that ends it. The norm itself is a function of earlier
/// releases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaptiveNorm<A: Adjacency> {
    clipping: AdaptiveClipping<A>,
    norm: ClippingNorm,
}

impl<A: Adjacency> AdaptiveNorm<A> {
    /// Returns the norm to which this step's records are to be clipped.
    pub fn norm(&self) -> ClippingNorm {
        self.norm
    }

    /// Returns an empty count of this step's records.
    pub fn count(&self) -> NormCount<A> {
        NormCount { norm: self.norm, halves: 0, relation: PhantomData }
    }

    /// Releases the sum and updates the norm, in one call and for one event.
    ///
    /// # Errors
    /// [`Error::SumsDiffer`] for the count of another step; [`Error::SensitivityExceeded`] for a sum that was clipped to a larger
    /// norm; otherwise those of [`Mechanism::release`](crate::Mechanism::release). In these cases nothing is drawn or logged, and
    /// the norm is unchanged.
    pub fn release<R: ReleaseRng + ?Sized>(
        &mut self,
        sum: Bounded<Vec<f64>, A>,
        count: NormCount<A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<AdaptiveStep>, Error> {
        if count.norm != self.norm {
            return Err(Error::SumsDiffer);
        }
        let halves = 0.5 * count.halves as f64; // exact up to 2^53 records
        let sensitivity = L2Sensitivity::new(0.5 * norms_moved::<A>())?;
        let count = Bounded::with_proven_sensitivity(vec![halves], sensitivity);
        let released = self.noise()?.release_as(self.clipping.event(), vec![sum, count], log, rng)?;
        let (clipping, norm) = (self.clipping, self.norm);
        let released = released.map(|parts| {
            let mut parts = parts.into_iter();
            let (sum, count) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let fraction = count.iter().sum::<f64>() / clipping.expected_records + 0.5;
            AdaptiveStep { sum, next_norm: clipping.next_norm(norm, fraction) }
        });
        self.norm = released.get().next_norm;
        Ok(released)
    }

    /// Returns the noise of this step's two parts.
    fn noise(&self) -> Result<LayeredGaussian<A>, Error> {
        let AdaptiveClipping { gradient_multiplier, count_std_dev, mode, .. } = self.clipping;
        let moved = norms_moved::<A>();
        let sum = L2Sensitivity::new(moved * self.norm.get())?;
        let count = L2Sensitivity::new(0.5 * moved)?;
        LayeredGaussian::new(vec![
            Gaussian::from_std_dev(sum, product_up(gradient_multiplier, self.norm.get()))?.with_noise_mode(mode)?,
            Gaussian::from_std_dev(count, count_std_dev)?.with_noise_mode(mode)?,
        ])
    }
}

/// The release of one step of an [`AdaptiveClipping`].
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptiveStep {
    /// The sum with noise.
    pub sum: Vec<f64>,
    /// The norm of the next step.
    pub next_norm: ClippingNorm,
}

/// The number of records of a step with a norm of at most the current one, minus half of all records. Secret.
///
/// A record whose norm is not finite is not counted, and contributes nothing to the sum.
pub struct NormCount<A: Adjacency> {
    norm: ClippingNorm,
    halves: i64,
    relation: PhantomData<A>,
}

impl<A: Adjacency> NormCount<A> {
    /// Counts one record by its squared norm; a null record, under [`ZeroOut`](dp_accountant::ZeroOut), must not be counted.
    pub fn add(&mut self, squared_norm: f64) {
        if squared_norm >= 0.0 && squared_norm.is_finite() {
            let below = squared_norm.sqrt() <= self.norm.get();
            self.halves = self.halves.saturating_add(if below { 1 } else { -1 });
        }
    }

    /// Adds the count of another thread.
    ///
    /// # Errors
    /// [`Error::SumsDiffer`] for a count with another norm.
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        if self.norm != other.norm {
            return Err(Error::SumsDiffer);
        }
        self.halves = self.halves.saturating_add(other.halves);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
