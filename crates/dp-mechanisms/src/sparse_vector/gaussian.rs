//! AboveThreshold with Gaussian noise: one positive answer, and a limit on the number of queries.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog};
use rand::CryptoRng;

use super::law::{self, NoiseLaw};
use super::session::{Limits, QueryNoise, Session};
use crate::error::{Error, positive_normal};
use crate::exact;
use crate::lattice::Lattice;
use crate::mechanism::PrivacyEvent;
use crate::release::{self, Cost};
use crate::rng::{ReleaseRng, refuse_stuck};
use crate::sensitivity::LInfSensitivity;

/// Largest standard deviation in steps; larger ones do not fit the sampler.
const LARGEST: f64 = (1u64 << 53) as f64;

/// Factor on the event's sensitivity: at least two steps and the rounding of the sensitivity up to a step.
const LATTICE_MARGIN: f64 = 1.0 + 1.0 / (1u64 << 28) as f64;

/// AboveThreshold with Gaussian noise, for one positive answer among at most `max_queries` queries.
///
/// # Formula
/// ```text
/// rho ~ N(0, threshold_std_dev²)   once
/// nu_i ~ N(0, query_std_dev²)      for every query
/// above iff query_i + nu_i >= threshold + rho;  over after the first, or after max_queries queries
/// ```
///
/// # Privacy
/// For queries each of which one record can move by at most `D = sensitivity`, under the relation `A`, chosen adaptively; not
/// pure. With `t = D / threshold_std_dev`, `q = 2 D / query_std_dev`, `k = max_queries` its Renyi divergence of order `a` is at
/// most
/// ```text
/// min( a (t² + q²)/2 + ln(k + 1)/(a - 1),   a/2 (q/2)² (k - c (k mod 2)) ),   c = 1/(k + (2 t/q)²)
/// ```
/// (`dp_accountant::rdp::above_threshold_gaussian` has the proof). **The guarantee depends on the number of queries**: a
/// published theorem without it is false, since with many queries at one level their maximum is nearly noise-free.
///
/// # Arithmetic
/// Noise is drawn exactly, as ideal normals rounded to an integer lattice 2^30 times finer than the sensitivity. The first bound
/// only shifts the threshold's noise by `D` and a query's by `2 D`, whole numbers of steps, so that rounding is post-processing.
/// The second is about the differences `query_i + nu_i - rho`: it may shift threshold and queries together by any real number,
/// while the lattice has only integers. With `S` the sensitivity in steps, let `u` be the best real shift for a change `delta` of
/// the queries and `u + e`, `|e| < 1`, the integer next to it in the direction of 0. Then `Σ (delta_i + u + e)²/s2² + (u +
/// e)²/s1²` is at most the objective of the change `delta + e`, which is within `S + 1`, at `u`, and this exceeds its minimum by
/// at most `k e²/s2²`. For `k >= 2` this is less than the growth of the bound from `S + 1` to `S + 2`. So the event states a
/// sensitivity of `D (1 + 2^-28)`, and for a single query it states two queries. Changes in an interval of `S` steps lie on the
/// lattice in one of `S + 1`, and the same argument leads to `S + 3`, where the margin is at least four steps.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, EventLog, ReplaceOne, bound};
/// use dp_mechanisms::sparse_vector::Answer;
/// use dp_mechanisms::{Bounded, GaussianAboveThreshold, LInfSensitivity, OsSeeded};
///
/// let sensitivity = LInfSensitivity::<ReplaceOne>::new(1.0)?;
/// let mechanism = GaussianAboveThreshold::new(sensitivity, 8.0, 16.0, 100)?;
/// let mut log = EventLog::new();
/// let mut rng = OsSeeded::new()?;
/// let mut session = mechanism.start(0.0, &mut log, &mut rng)?;
/// let low = Bounded::with_proven_sensitivity(-2000.0, sensitivity); // a hundred standard deviations
/// assert_eq!(*session.answer(low, &mut log, &mut rng)?.get(), Answer::Below);
/// assert_eq!(session.queries_left(), Some(99));
///
/// let epsilon = bound::epsilon(&log.to_event(), Delta::new(1e-6)?)?;
/// assert!((epsilon.value - 0.951).abs() < 1e-3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "super::record::GaussianAboveThresholdRecord",
        into = "super::record::GaussianAboveThresholdRecord",
        bound = ""
    )
)]
pub struct GaussianAboveThreshold<A: Adjacency> {
    sensitivity: LInfSensitivity<A>,
    threshold_std_dev: f64,
    query_std_dev: f64,
    max_queries: u64,
    range_bounded: bool,
    lattice: Lattice,
    /// The standard deviations in steps, rounded up.
    threshold_noise: u64,
    query_noise: u64,
}

impl<A: Adjacency> GaussianAboveThreshold<A> {
    /// Creates the mechanism with these standard deviations, in the units of the queries.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for a standard deviation that is not a
    /// positive normal number; [`Error::ScaleOverflow`] for one beyond 2^22 sensitivities, or a sensitivity at the end
    /// of the range of doubles; [`Error::OutOfRange`] unless `max_queries` is in `1..=2^32`.
    pub fn new(
        sensitivity: LInfSensitivity<A>,
        threshold_std_dev: f64,
        query_std_dev: f64,
        max_queries: u64,
    ) -> Result<Self, Error> {
        if !(1..=1 << 32).contains(&max_queries) {
            return Err(Error::OutOfRange { name: "max_queries", value: max_queries as f64, range: "1..=2^32" });
        }
        let stated = sensitivity.get() * LATTICE_MARGIN;
        if !stated.is_finite() {
            return Err(Error::ScaleOverflow { scale: stated });
        }
        let lattice = Lattice::new(sensitivity.get());
        let in_steps = |name, std_dev| {
            let steps = lattice.length_up(positive_normal(name, std_dev)?);
            if steps <= LARGEST { Ok(steps as u64) } else { Err(Error::ScaleOverflow { scale: std_dev }) }
        };
        Ok(Self {
            sensitivity,
            threshold_std_dev,
            query_std_dev,
            max_queries,
            range_bounded: false,
            lattice,
            threshold_noise: in_steps("standard deviation of the threshold", threshold_std_dev)?,
            query_noise: in_steps("standard deviation of queries", query_std_dev)?,
        })
    }

    /// Declares that the changes of all queries, for any record, lie in one interval that has the sensitivity's length and holds
    /// 0.
    ///
    /// # Privacy
    /// This is a claim of the caller. Differences of sums of numbers in `[0, D]` with a common minuend satisfy it: a record
    /// changes each by `u - v_i` with `u` and `v_i` in `[0, D]`. The threshold is shifted by the interval's end, and the
    /// remaining shift of the positive answer is `D` and not `2 D`
    /// (`dp_accountant::rdp::above_threshold_gaussian_range_bounded`). On the lattice an interval is longer by one step.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{ZeroOut, zcdp};
    /// use dp_mechanisms::{GaussianAboveThreshold, LInfSensitivity, PrivacyEvent};
    /// let any = GaussianAboveThreshold::new(LInfSensitivity::<ZeroOut>::new(1.0)?, 12.0, 17.0, 10)?;
    /// let bounded = any.range_bounded();
    /// assert!(zcdp::rho(&bounded.event())? < 0.35 * zcdp::rho(&any.event())?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range_bounded(self) -> Self {
        Self { range_bounded: true, ..self }
    }

    /// Returns whether the queries' changes are declared to lie in one interval.
    pub fn is_range_bounded(&self) -> bool {
        self.range_bounded
    }

    /// Returns the largest accepted change of a query.
    pub fn sensitivity(&self) -> LInfSensitivity<A> {
        self.sensitivity
    }

    /// Returns the standard deviation of the threshold's noise.
    pub fn threshold_std_dev(&self) -> f64 {
        self.threshold_std_dev
    }

    /// Returns the standard deviation of each query's noise.
    pub fn query_std_dev(&self) -> f64 {
        self.query_std_dev
    }

    /// Returns the number of queries after which a session ends in any case.
    pub fn max_queries(&self) -> u64 {
        self.max_queries
    }

    /// Returns the noise mode, which is always exact.
    pub fn noise_mode(&self) -> NoiseMode {
        NoiseMode::Exact
    }

    /// Returns the law of the positive answer on a fixed stream, as
    /// [`AboveThreshold::first_answer`](super::AboveThreshold::first_answer).
    ///
    /// # Privacy
    /// For planning, on public or synthetic queries.
    ///
    /// # Errors
    /// [`Error::NonFiniteInput`] unless all are finite; [`Error::ScaleOverflow`] if a scale is not a normal double;
    /// [`Error::Length`] for more than `max_queries` queries.
    pub fn first_answer(&self, queries: &[f64], threshold: f64) -> Result<Vec<f64>, Error> {
        if queries.len() as u64 > self.max_queries {
            return Err(Error::Length { name: "queries", found: queries.len(), expected: "at most max_queries" });
        }
        law::first_answer(
            NoiseLaw::Gaussian { std_dev: self.threshold_std_dev },
            NoiseLaw::Gaussian { std_dev: self.query_std_dev },
            queries,
            threshold,
        )
    }

    /// Draws the threshold's noise and logs the whole cost.
    ///
    /// # Privacy
    /// The threshold is public.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for the threshold, [`Error::StuckGenerator`]; in these cases nothing is logged.
    pub fn start<R: ReleaseRng + ?Sized>(
        &self,
        threshold: f64,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Session<A>, Error> {
        if !threshold.is_finite() {
            return Err(Error::NotFinite { name: "threshold", value: threshold });
        }
        refuse_stuck(rng)?;
        let noise = rounded_normal(self.threshold_noise, rng)?;
        release::record(Cost { event: self.event(), noise: NoiseMode::Exact, assumptions: Vec::new() }, log, rng);
        Ok(Session::new(
            log.id(),
            self.sensitivity,
            self.lattice,
            self.lattice.floor(threshold) + noise,
            QueryNoise::Gaussian(self.query_noise),
            None,
            Limits { answers: 1, queries: Some(self.max_queries) },
        ))
    }
}

/// Samples the integer nearest to `std_dev · X`, `X` standard normal, exactly.
pub(super) fn rounded_normal<R: CryptoRng + ?Sized>(std_dev: u64, rng: &mut R) -> Result<i128, Error> {
    Ok(i128::from(exact::standard_normal(rng)?.round(std_dev, 0.0, rng)?))
}

impl<A: Adjacency> PrivacyEvent for GaussianAboveThreshold<A> {
    /// Returns the event of one session.
    fn event(&self) -> DpEvent {
        DpEvent::AboveThresholdGaussian {
            threshold_std_dev: self.threshold_std_dev,
            query_std_dev: self.query_std_dev,
            // The product's own rounding is far inside the margin.
            sensitivity: self.sensitivity.get() * LATTICE_MARGIN,
            max_queries: self.max_queries.max(2),
            range_bounded: self.range_bounded,
        }
    }
}

#[cfg(test)]
mod tests;
