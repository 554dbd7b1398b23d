//! The sparse vector technique: tells which queries of a stream are above a threshold, at a cost for the few that are, not for
//! the many that are not.
//!
//! [`AboveThreshold`] has Laplace noise, pure differential privacy and any number of queries. [`GaussianAboveThreshold`] has
//! Gaussian noise, a Renyi guarantee, one positive answer and a limit on the number of queries, without which its theorem is
//! false. Both [start](AboveThreshold::start) a [`Session`], which logs the whole cost once. The session answers queries one at a
//! time, which may depend on earlier answers, and ends after the last positive answer that was paid for.
//!
//! # Proof of privacy
//! Let `D` be the sensitivity. Take a transcript of answers with `c` positive ones and shift the threshold's noise by `D`: every
//! negative answer is at least as likely for the neighbour at the shifted threshold. A positive answer needs noise larger by at
//! most `2 D` (by the query and by the threshold), so `c` of them have a ratio of at most `exp(2 c D / b)` for query noise of
//! scale `b`, for any number of negative answers. The shift itself costs `exp(D / b')` for threshold noise of scale `b'`. If
//! queries of neighbours all move in one direction, the queries' `2 D` becomes `D`: if they rise, a positive answer at the
//! shifted threshold needs at most `D` more; if they fall, the threshold need not be shifted at all.
//!
//! If all queries move by amounts in *one* interval of length `D` that contains 0, `D` suffices too
//! ([`range_bounded`](AboveThreshold::range_bounded)): shift the threshold by the interval's upper end, at most `D`; a positive
//! answer then needs that minus its own move, again at most `D`.
//!
//! The argument uses only that a shift by `D` is possible, and its cost. On the integer [lattice](#arithmetic), where `D` is a
//! whole number of steps, both hold exactly, with `>=` as with `>`.
//!
//! Similar variants that are not private: without noise on the queries, with query noise that does not grow with `c`, without a
//! stop, with the noisy query of the comparison as the numeric answer, and with Gaussian noise for any number of queries.
//!
//! # Arithmetic
//! Queries and threshold are rounded down to an integer lattice 2^30 times finer than the sensitivity, so that a query moves by
//! at most `S = ceil(D / step)` steps. Noise is ideal noise rounded to integers (`floor(b X)`), which moves by `S` when `b X`
//! does: as post-processing of `b X`, it has at most its ratios and divergences. Only integers are compared.
//!
//! # Many answers
//! For pure differential privacy `c` answers of one session, with one threshold, are cheaper: the threshold is paid for once.
//! Under composition with a positive delta, `c` sessions of one answer each, every one with fresh threshold noise, are accounted
//! for as `c` releases, so that their noise grows with the square root of `c`, while that of one session grows with `c`. At
//! epsilon = 1 and delta = 1e-6 both cost the same near 40 answers. For the second, start a session per answer.
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

/// Maximum number of positive answers.
const MOST_ANSWERS: u64 = 1 << 32;

/// AboveThreshold with Laplace noise, and its versions with several positive answers and with noisy values.
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
/// For queries each of which one record can move by at most `D = sensitivity`, under the relation `A`, chosen adaptively and in
/// any number: pure `eps1 + eps2 (+ eps3)`-DP. See the [module](crate::sparse_vector) for the proof and the arithmetic, which is
/// exact.
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
/// // A thousand noise scales on either side of the threshold.
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

/// The parameters stated by the caller, from which all others follow.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Parameters<A: Adjacency> {
    sensitivity: LInfSensitivity<A>,
    split: Split,
    answers: u64,
    monotonic: bool,
    range_bounded: bool,
    value_epsilon: Option<Epsilon>,
}

/// The division of epsilon between threshold and queries.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", deny_unknown_fields))]
enum Split {
    LeastVariance { epsilon: Epsilon },
    Stated { threshold: Epsilon, queries: Epsilon },
}

impl Split {
    /// Returns `eps1`, `eps2`, with a sum of at most epsilon in exact arithmetic.
    fn epsilons(self, cost_of_answers: f64) -> (f64, f64) {
        match self {
            Self::Stated { threshold, queries } => (threshold.get(), queries.get()),
            Self::LeastVariance { epsilon } => {
                // Minimises 1/eps1² + k²/eps2²: eps2/eps1 = k^(2/3).
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
    /// Creates the mechanism for this number of positive answers, with epsilon divided so that the noise of a comparison has the
    /// least variance.
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

    /// Creates the mechanism with `eps1` for the threshold and `eps2` for the queries.
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

    /// Declares that between neighbours all queries of a session move in the same direction, as counts under add/remove do: half
    /// the query noise, and a different split if none was stated.
    ///
    /// # Privacy
    /// The declaration is recorded in the log when a session starts. Under replace-one counts do not satisfy it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn monotonic(self) -> Result<Self, Error> {
        Self::build(Parameters { monotonic: true, ..self.parameters })
    }

    /// Declares the bounded-range property: between neighbours, all queries of a session change by amounts in one interval that
    /// contains 0 and is no longer than the sensitivity, as decreases of a clamped loss from one point do. This halves the query
    /// noise, and changes the default split.
    ///
    /// # Privacy
    /// The caller must prove this together with the sensitivity of the queries: it is not recorded in the log. Rounding to the
    /// lattice may make the interval longer by one step, which the noise covers.
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

    /// Adds to each positive answer the query's value with fresh Laplace noise, at this epsilon for all of them together.
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
        // Both ends of an interval are rounded to the lattice: its length may grow by one step.
        let steps_of_query = if range_bounded { steps + 1.0 } else { steps };
        let query_noise = RationalScale::for_shift(product_up(steps_of_query, cost_of_answers), query_epsilon)?;
        let value_noise = value_epsilon
            .map(|epsilon| RationalScale::for_shift(product_up(steps, answers), epsilon.get()))
            .transpose()?;
        Ok(Self { parameters, threshold_epsilon, query_epsilon, lattice, threshold_noise, query_noise, value_noise })
    }

    /// Returns the largest accepted change of a query.
    pub fn sensitivity(&self) -> LInfSensitivity<A> {
        self.parameters.sensitivity
    }

    /// Returns the number of positive answers.
    pub fn answers(&self) -> u64 {
        self.parameters.answers
    }

    /// Returns whether queries are declared to move in the same direction.
    pub fn is_monotonic(&self) -> bool {
        self.parameters.monotonic
    }

    /// Returns whether queries are declared to move by amounts in one interval.
    pub fn is_range_bounded(&self) -> bool {
        self.parameters.range_bounded
    }

    /// Returns `eps1`, the cost of the threshold's noise.
    pub fn threshold_epsilon(&self) -> f64 {
        self.threshold_epsilon
    }

    /// Returns `eps2`, the cost of the queries' noise.
    pub fn query_epsilon(&self) -> f64 {
        self.query_epsilon
    }

    /// Returns `eps3`, the cost of the values of positive answers; `None` if there are none.
    pub fn value_epsilon(&self) -> Option<Epsilon> {
        self.parameters.value_epsilon
    }

    /// Returns the scale of the threshold's Laplace noise, in the units of the queries.
    pub fn threshold_scale(&self) -> f64 {
        self.in_units(self.threshold_noise)
    }

    /// Returns the scale of each query's Laplace noise, in the units of the queries.
    pub fn query_scale(&self) -> f64 {
        self.in_units(self.query_noise)
    }

    /// Returns the scale of the Laplace noise of values, in the units of the queries; `None` if there are none.
    pub fn value_scale(&self) -> Option<f64> {
        self.value_noise.map(|noise| self.in_units(noise))
    }

    /// Returns the noise mode, which is always exact.
    pub fn noise_mode(&self) -> NoiseMode {
        NoiseMode::Exact
    }

    /// Converts a scale to the units of the queries: the sensitivity first, because the step itself may be too small for a
    /// double.
    fn in_units(&self, noise: RationalScale) -> f64 {
        noise.steps() / self.lattice.sensitivity() as f64 * self.sensitivity().get()
    }

    /// Returns the law of the first positive answer on a fixed stream: the probability that it is each query, and last that there
    /// is none, to about 9 digits.
    ///
    /// # Formula
    /// ```text
    /// P(k) = ∫ f(z) ∏_{i < k} F(z - margin_i) (1 - F(z - margin_k)) dz,   margin_i = query_i - threshold
    /// ```
    ///
    /// # Privacy
    /// For planning, on public or synthetic queries: the result is a function of the queries without any noise.
    ///
    /// # Errors
    /// [`Error::NonFiniteInput`] unless all are finite; [`Error::ScaleOverflow`] if a scale is not a normal double.
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
    /// The threshold is public. The session must get its randomness from generators like this one; each of its answers marks the
    /// log if it is not drawn from a secret one.
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

    /// Returns the event without values. Accountants have an event for one positive answer to queries that move in any direction;
    /// otherwise it is the proved pure guarantee.
    fn comparisons(&self) -> DpEvent {
        let sensitivity = self.sensitivity().get();
        // Rounded down: the drawn noise is not below the stated noise, measured in sensitivities.
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
    /// Returns the event of one session.
    fn event(&self) -> DpEvent {
        let comparisons = self.comparisons();
        let Some(value_epsilon) = self.value_epsilon() else {
            return comparisons;
        };
        if let DpEvent::PureDp { epsilon } = comparisons {
            // Values and later comparisons alternate; the sum of the pure guarantees covers this.
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
