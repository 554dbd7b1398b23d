//! The sparse vector technique: which of a stream of queries are above a threshold, at a price for the few that are,
//! not for the many that are not.
//!
//! [`AboveThreshold`] has Laplace noise, pure differential privacy and any number of queries.
//! [`GaussianAboveThreshold`] has Gaussian noise, a Renyi guarantee, one positive answer and a limit on the number of
//! queries, without which its theorem is false. Both are values that [start](AboveThreshold::start) a [`Session`]: the
//! whole cost is logged then, once; the session answers queries one at a time, which may depend on the answers so far,
//! and is over after the last positive answer that was paid for.
//!
//! # Why it is private
//! Let `D` be the sensitivity. Take a transcript of answers with `c` positive ones and shift the threshold's noise by
//! `D`: every negative answer is at least as likely for the neighbour at the shifted threshold. A positive answer needs
//! noise larger by at most `2 D` (by the query and by the threshold), so `c` of them have a ratio of at most `exp(2 c D
//! / b)` for query noise of scale `b`, however many negative answers there are. The shift itself costs `exp(D / b')`
//! for threshold noise of scale `b'`. Where queries of neighbours all move in one direction, the queries' `2 D` is `D`:
//! if they rise, a positive answer at the shifted threshold needs at most `D` more; if they fall, the threshold need
//! not be shifted at all.
//!
//! Queries that all move by amounts in *one* interval of length `D` that contains 0 need no more
//! ([`range_bounded`](AboveThreshold::range_bounded)): shift the threshold by the interval's upper end, at most `D`; a
//! positive answer then needs that less its own move, at most `D` again.
//!
//! The argument uses only that shifting by `D` is possible and what it costs. On the integer [lattice](#arithmetic),
//! where `D` is a whole number of steps, both are exactly so, with `>=` as with `>`.
//!
//! Variants that look alike and are not private: without noise on the queries, with query noise that does not grow with
//! `c`, without a stop, with the noisy query that decided as the numeric answer, and with Gaussian noise for any number
//! of queries.
//!
//! # Arithmetic
//! Queries and threshold go to an integer lattice 2^30 times finer than the sensitivity by their floor, so that a query
//! moves by at most `S = ceil(D / step)` steps. Noise is ideal noise rounded to integers (`floor(b X)`), which moves by
//! `S` when `b X` does: as post-processing of `b X`, it has at most its ratios and divergences. What is compared are
//! integers.
//!
//! # Many answers
//! For pure differential privacy `c` answers of one session, with one threshold, are the better bargain: the threshold
//! is paid once. Under composition with a delta above 0, `c` sessions of one answer each, every one started anew with
//! its own threshold noise, are accounted as `c` releases, so that their noise grows with the square root of `c`, that
//! of one session with `c` itself. At epsilon = 1 and delta = 1e-6 the two meet near 40 answers. Starting a session per
//! answer is all that the second needs.
//!
//! # References
//! C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Section 3.6. M. Lyu, D. Su, N. Li,
//! "Understanding the sparse vector technique for differential privacy", 2017, Algorithm 7 and Theorems 4 and 5, arXiv
//! 1603.01699. Y. Zhu, Y.-X. Wang, "Improving sparse vector technique with Renyi differential privacy", 2020.

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};

use crate::error::Error;
use crate::lattice::Lattice;
use crate::lattice_scale::RationalScale;
use crate::mechanism::PrivacyEvent;
use crate::release::{self, Cost};
use crate::rng::{ReleaseRng, refuse_stuck};
use crate::rounding::{product_up, quotient_down, sum_up};
use crate::sensitivity::LInfSensitivity;

mod gaussian;
mod law;
#[cfg(feature = "serde")]
mod record;
mod session;
pub use gaussian::GaussianAboveThreshold;
pub use session::{Answer, Session};

use law::NoiseLaw;
use session::{Limits, QueryNoise};

/// Largest number of positive answers.
const MOST_ANSWERS: u64 = 1 << 32;

/// AboveThreshold with Laplace noise, and its forms for several positive answers and with noisy values.
///
/// # Formula
/// ```text
/// rho ~ Laplace(D / eps1)                  once, never refreshed
/// nu_i ~ Laplace(2 c D / eps2)             for every query   (c D / eps2 if monotonic)
/// above iff query_i + nu_i >= threshold + rho;  over after c of them
/// value of a positive answer = query_i + Laplace(c D / eps3), fresh    (if asked for)
/// eps1 : eps2 = 1 : (2 c)^(2/3)   (1 : c^(2/3) if monotonic), the split with the least variance of rho - nu_i
/// ```
///
/// # Privacy
/// For queries each of which one record can move by at most `D = sensitivity`, under the relation `A`, chosen
/// adaptively and as many as one likes: pure `eps1 + eps2 (+ eps3)`-DP. See the [module](crate::sparse_vector) for the
/// proof and the arithmetic, which is exact.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, EventLog, ReplaceOne, bound};
/// use dp_mechanisms::sparse_vector::Answer;
/// use dp_mechanisms::{AboveThreshold, Bounded, LInfSensitivity, OsSeeded};
///
/// let sensitivity = LInfSensitivity::<ReplaceOne>::new(1.0)?;
/// let mechanism = AboveThreshold::new(sensitivity, Epsilon::new(1.0)?, 1)?;
/// assert!((mechanism.threshold_scale() - 2.5874010519681994).abs() < 1e-12);
///
/// let mut log = EventLog::new();
/// let mut rng = OsSeeded::new()?;
/// let mut session = mechanism.start(1000.0, &mut log, &mut rng)?;
/// let query = |value| Bounded::with_proven_sensitivity(value, sensitivity);
/// // A thousand noise scales on this side or that of the threshold.
/// assert_eq!(*session.answer(query(-4000.0), &mut log, &mut rng)?.get(), Answer::Below);
/// assert_eq!(*session.answer(query(6000.0), &mut log, &mut rng)?.get(), Answer::Above { value: None });
/// assert!(session.answer(query(6000.0), &mut log, &mut rng).is_err()); // over
///
/// let epsilon = bound::epsilon(&log.to_event(), Delta::ZERO)?;
/// assert!((epsilon.value - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "record::AboveThresholdRecord", into = "record::AboveThresholdRecord", bound = "")
)]
pub struct AboveThreshold<A: Adjacency> {
    parameters: Parameters<A>,
    threshold_epsilon: f64,
    query_epsilon: f64,
    lattice: Lattice,
    threshold_noise: RationalScale,
    query_noise: RationalScale,
    value_noise: Option<RationalScale>,
}

/// What the caller states; all else follows.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Parameters<A: Adjacency> {
    sensitivity: LInfSensitivity<A>,
    split: Split,
    answers: u64,
    monotonic: bool,
    range_bounded: bool,
    value_epsilon: Option<Epsilon>,
}

/// How epsilon is divided between threshold and queries.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", deny_unknown_fields))]
enum Split {
    LeastVariance { epsilon: Epsilon },
    Stated { threshold: Epsilon, queries: Epsilon },
}

impl Split {
    /// `eps1`, `eps2`, with a sum of at most epsilon in exact arithmetic.
    fn epsilons(self, cost_of_answers: f64) -> (f64, f64) {
        match self {
            Self::Stated { threshold, queries } => (threshold.get(), queries.get()),
            Self::LeastVariance { epsilon } => {
                // Minimise 1/eps1² + k²/eps2²: eps2/eps1 = k^(2/3).
                let epsilon = epsilon.get();
                let threshold = epsilon / (1.0 + cost_of_answers.cbrt().powi(2));
                let mut queries = epsilon - threshold;
                if sum_up(threshold, queries) > epsilon {
                    queries = queries.next_down();
                }
                (threshold, queries)
            }
        }
    }
}

impl<A: Adjacency> AboveThreshold<A> {
    /// For this many positive answers, with epsilon divided so that the noise of a comparison has the least variance.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `answers` is in `1..=2^32`; [`Error::ScaleOverflow`] for noise beyond 2^59
    /// sensitivities.
    pub fn new(sensitivity: LInfSensitivity<A>, epsilon: Epsilon, answers: u64) -> Result<Self, Error> {
        let split = Split::LeastVariance { epsilon };
        Self::build(Parameters {
            sensitivity,
            split,
            answers,
            monotonic: false,
            range_bounded: false,
            value_epsilon: None,
        })
    }

    /// With `eps1` for the threshold and `eps2` for the queries.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_split(
        sensitivity: LInfSensitivity<A>,
        threshold_epsilon: Epsilon,
        query_epsilon: Epsilon,
        answers: u64,
    ) -> Result<Self, Error> {
        let split = Split::Stated { threshold: threshold_epsilon, queries: query_epsilon };
        Self::build(Parameters {
            sensitivity,
            split,
            answers,
            monotonic: false,
            range_bounded: false,
            value_epsilon: None,
        })
    }

    /// Promises that between neighbours all queries of a session move in the same direction, as counts under
    /// add-or-remove do: half the query noise, and another split where none was stated.
    ///
    /// # Privacy
    /// The promise is noted in the log when a session starts. Under replace-one counts do not keep it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn monotonic(self) -> Result<Self, Error> {
        Self::build(Parameters { monotonic: true, ..self.parameters })
    }

    /// Promises that between neighbours all queries of a session move by amounts in one interval that contains 0 and is
    /// no longer than the sensitivity, as decreases of a clamped loss from one point do: half the query noise, and
    /// another split where none was stated.
    ///
    /// # Privacy
    /// The promise has to be proved with the sensitivity of the queries: nothing notes it in the log. Rounding to the
    /// lattice may make the interval longer by one step, for which there is noise.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Examples
    /// ```
    /// # use dp_accountant::{DpEvent, Epsilon, ZeroOut}; use dp_mechanisms::*;
    /// let half = Epsilon::new(0.5)?;
    /// let any = AboveThreshold::from_split(LInfSensitivity::<ZeroOut>::new(1.0)?, half, half, 1)?;
    /// let bounded = any.range_bounded()?;
    /// assert!(any.query_scale() == 4.0 && (bounded.query_scale() - 2.0).abs() < 1e-8);
    /// assert_eq!(bounded.event(), DpEvent::PureDp { epsilon: 1.0 });
    /// # Ok::<(), Error>(())
    /// ```
    pub fn range_bounded(self) -> Result<Self, Error> {
        Self::build(Parameters { range_bounded: true, ..self.parameters })
    }

    /// Adds to each positive answer the query's value with fresh Laplace noise, at this epsilon for all of them
    /// together.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_values(self, epsilon: Epsilon) -> Result<Self, Error> {
        Self::build(Parameters { value_epsilon: Some(epsilon), ..self.parameters })
    }

    fn build(parameters: Parameters<A>) -> Result<Self, Error> {
        let Parameters { sensitivity, split, answers, monotonic, range_bounded, value_epsilon } = parameters;
        if !(1..=MOST_ANSWERS).contains(&answers) {
            return Err(Error::OutOfRange { name: "answers", value: answers as f64, range: "1..=2^32" });
        }
        let answers = answers as f64; // exact, as is twice that
        let cost_of_answers = if monotonic || range_bounded { answers } else { 2.0 * answers };
        let (threshold_epsilon, query_epsilon) = split.epsilons(cost_of_answers);
        let lattice = Lattice::new(sensitivity.get());
        let steps = lattice.sensitivity() as f64; // exact: at most 2^31
        let threshold_noise = RationalScale::for_shift(steps, threshold_epsilon)?;
        // Both ends of an interval are rounded to the lattice: one step more between them.
        let steps_of_query = if range_bounded { steps + 1.0 } else { steps };
        let query_noise = RationalScale::for_shift(product_up(steps_of_query, cost_of_answers), query_epsilon)?;
        let value_noise = value_epsilon
            .map(|epsilon| RationalScale::for_shift(product_up(steps, answers), epsilon.get()))
            .transpose()?;
        Ok(Self { parameters, threshold_epsilon, query_epsilon, lattice, threshold_noise, query_noise, value_noise })
    }

    /// The largest change of a query that it takes.
    pub fn sensitivity(&self) -> LInfSensitivity<A> {
        self.parameters.sensitivity
    }

    /// The number of positive answers.
    pub fn answers(&self) -> u64 {
        self.parameters.answers
    }

    /// Whether queries are promised to move in the same direction.
    pub fn is_monotonic(&self) -> bool {
        self.parameters.monotonic
    }

    /// Whether queries are promised to move by amounts in one interval.
    pub fn is_range_bounded(&self) -> bool {
        self.parameters.range_bounded
    }

    /// `eps1`, what the threshold's noise costs.
    pub fn threshold_epsilon(&self) -> f64 {
        self.threshold_epsilon
    }

    /// `eps2`, what the queries' noise costs.
    pub fn query_epsilon(&self) -> f64 {
        self.query_epsilon
    }

    /// `eps3`, what the values of positive answers cost; `None` if there are none.
    pub fn value_epsilon(&self) -> Option<Epsilon> {
        self.parameters.value_epsilon
    }

    /// Scale of the threshold's Laplace noise, in the units of the queries.
    pub fn threshold_scale(&self) -> f64 {
        self.in_units(self.threshold_noise)
    }

    /// Scale of each query's Laplace noise, in the units of the queries.
    pub fn query_scale(&self) -> f64 {
        self.in_units(self.query_noise)
    }

    /// Scale of the Laplace noise of values, in the units of the queries; `None` if there are none.
    pub fn value_scale(&self) -> Option<f64> {
        self.value_noise.map(|noise| self.in_units(noise))
    }

    /// How noise is drawn: exactly, always.
    pub fn noise_mode(&self) -> NoiseMode {
        NoiseMode::Exact
    }

    /// Sensitivities first: the step itself may be too small for a double.
    fn in_units(&self, noise: RationalScale) -> f64 {
        noise.steps() / self.lattice.sensitivity() as f64 * self.sensitivity().get()
    }

    /// The law of the first positive answer on a fixed stream: the probability of each query to be it, and last that of
    /// none, to about 9 digits.
    ///
    /// # Formula
    /// ```text
    /// P(k) = ∫ f(z) ∏_{i < k} F(z - margin_i) (1 - F(z - margin_k)) dz,   margin_i = query_i - threshold
    /// ```
    ///
    /// # Privacy
    /// For planning, on public or synthetic queries: what it returns is a function of the queries without any noise.
    ///
    /// # Errors
    /// [`Error::NonFiniteInput`] unless all is finite; [`Error::ScaleOverflow`] where a scale is no normal double.
    ///
    /// # Examples
    /// ```
    /// # use dp_accountant::{Epsilon, ReplaceOne}; use dp_mechanisms::*;
    /// let half = Epsilon::new(0.5)?;
    /// let mechanism = AboveThreshold::from_split(LInfSensitivity::<ReplaceOne>::new(1.0)?, half, half, 1)?;
    /// let law = mechanism.first_answer(&[-1.0, -1.0, -1.0], 0.0)?;
    /// assert!((law[1] - 0.20329913678060674).abs() < 1e-9);
    /// assert!((law[3] - 0.26296168026489936).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_answer(&self, queries: &[f64], threshold: f64) -> Result<Vec<f64>, Error> {
        law::first_answer(
            NoiseLaw::Laplace { scale: self.threshold_scale() },
            NoiseLaw::Laplace { scale: self.query_scale() },
            queries,
            threshold,
        )
    }

    /// Draws the threshold's noise and logs the whole cost.
    ///
    /// # Privacy
    /// The threshold is public. The session must get its randomness from generators like this one; each of its answers
    /// marks the log if it does not come from a secret one.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for the threshold, [`Error::StuckGenerator`]; nothing is logged then.
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
        let noise = self.threshold_noise.floor_laplace(rng)?;
        let assumptions = if self.is_monotonic() { vec![Assumption::MonotonicScores] } else { Vec::new() };
        release::record(Cost { event: self.event(), noise: NoiseMode::Exact, assumptions }, log, rng);
        Ok(Session::new(
            log.id(),
            self.sensitivity(),
            self.lattice,
            self.lattice.floor(threshold) + noise,
            QueryNoise::Laplace(self.query_noise),
            self.value_noise,
            Limits { answers: self.answers(), queries: None },
        ))
    }

    /// The event without values. One positive answer to queries that move in any direction is what accountants know by
    /// name; else it is what is proved, a pure guarantee.
    fn comparisons(&self) -> DpEvent {
        let sensitivity = self.sensitivity().get();
        // Rounded down: the drawn noise is not below what is stated, measured in sensitivities.
        let threshold_scale = quotient_down(sensitivity, self.threshold_epsilon);
        let query_scale = quotient_down(sensitivity, 0.5 * self.query_epsilon);
        let any = !self.is_monotonic() && !self.is_range_bounded();
        if self.answers() == 1 && any && threshold_scale.is_normal() && query_scale.is_normal() {
            DpEvent::AboveThresholdLaplace { threshold_scale, query_scale, sensitivity }
        } else {
            DpEvent::PureDp { epsilon: sum_up(self.threshold_epsilon, self.query_epsilon) }
        }
    }
}

impl<A: Adjacency> PrivacyEvent for AboveThreshold<A> {
    /// The event of one session.
    fn event(&self) -> DpEvent {
        let comparisons = self.comparisons();
        let Some(value_epsilon) = self.value_epsilon() else {
            return comparisons;
        };
        if let DpEvent::PureDp { epsilon } = comparisons {
            // Values and later comparisons alternate; the sum of the pure guarantees covers that.
            return DpEvent::PureDp { epsilon: sum_up(epsilon, value_epsilon.get()) };
        }
        // The only value comes after the last comparison.
        let sensitivity = self.sensitivity().get();
        let scale = quotient_down(sensitivity, value_epsilon.get());
        let value = if scale.is_normal() {
            DpEvent::Laplace { scale, sensitivity }
        } else {
            DpEvent::PureDp { epsilon: value_epsilon.get() }
        };
        DpEvent::Composed { events: vec![comparisons, value] }
    }
}

#[cfg(test)]
mod tests;
