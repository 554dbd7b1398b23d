//! Randomised response: each record is randomised before the answers are collected.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Delta, DpEvent, Epsilon, EventLog, ReplaceOne, bound};

use crate::bounded::Secret;
use crate::error::Error;
use crate::exact;
use crate::mechanism::PrivacyEvent;
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;

/// Reports a value of a set of `buckets` truthfully or, with probability `noise`, a uniform one of the set.
///
/// # Formula
/// ```text
/// P(truth) = 1 - v + v/k,   P(any other) = v/k,   v = noise, k = buckets
/// epsilon = ln(1 + k (1 - v) / v),   v = k / (exp(epsilon) + k - 1)
/// ```
///
/// # Privacy
/// The guarantee is local: the answer of one record is pure epsilon-DP for any change of that record, so it holds under
/// replace-one and needs no sensitivity of the value. The coin has exactly the probability `noise`, with every binary digit, and
/// the event states the same number: nothing is idealised. [`release_each`](Self::release_each) publishes the answers of many
/// records at the cost of one, since neighbours differ in one record. Releasing them one by one into the same log costs as many
/// times that, because the log cannot know that they were different records.
///
/// Each coin and each uniform answer are drawn before the value is read. A value outside `0..buckets` is not an error (which
/// would reveal something about a record): its answer is uniform. This is the mixture of all valid answers, and hockey-stick
/// divergences are jointly convex, so the guarantee covers it.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, EventLog, bound};
/// use dp_mechanisms::{OsSeeded, RandomizedResponse, Secret};
///
/// let response = RandomizedResponse::new(4, Epsilon::new(1.5)?)?;
/// assert!((response.probability_of_truth() - 0.5990).abs() < 1e-4);
///
/// let mut log = EventLog::new();
/// let choices = Secret::new(vec![3, 0, 0, 1, 2, 0]);
/// let answers = response.release_each(choices, &mut log, &mut OsSeeded::new()?)?;
/// assert!(bound::epsilon(&log.to_event(), Delta::ZERO)?.value <= 1.5);
///
/// // Unbiased estimates of the frequencies, by post-processing.
/// let mut counts = [0; 4];
/// answers.get().iter().for_each(|&answer| counts[answer as usize] += 1);
/// let frequencies = response.frequencies(&counts)?;
/// assert!((frequencies.iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// It holds under replace-one; a log of another relation is not accepted:
/// ```compile_fail,E0308
/// # use dp_accountant::{EventLog, ZeroOut}; use dp_mechanisms::*;
/// fn release(response: &RandomizedResponse, log: &mut EventLog<ZeroOut>) {
///     let answer = response.release(Secret::new(1), log, &mut OsSeeded::new().unwrap());
/// }
/// ```
///
/// # References
/// S. Warner, "Randomized response: a survey technique for eliminating evasive answer bias", 1965. P. Kairouz, K.
/// Bonawitz, D. Ramage, "Discrete distribution estimation under local privacy", 2016, section 3, arXiv 1602.07387.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::randomized_response::RandomizedResponseRecord",
        into = "crate::record::randomized_response::RandomizedResponseRecord"
    )
)]
pub struct RandomizedResponse {
    buckets: u64,
    noise: f64,
}

/// Maximum number of possible answers: counts of them are exact doubles.
pub const MOST_BUCKETS: u64 = 1 << 53;

impl RandomizedResponse {
    /// Creates the mechanism with the least noise for which the accountant states at most `epsilon`.
    ///
    /// The noise is rounded up, so that the epsilon that the accountant computes from the event (itself rounded up) is at most
    /// the requested one, as is the true one.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a number of buckets outside `2..=2^53`, and for an epsilon so large or small that no double
    /// between 0 and 1 is the required probability: above about 740, or below about `2^-52 buckets`.
    pub fn new(buckets: u64, epsilon: Epsilon) -> Result<Self, Error> {
        let k = check_buckets(buckets)? as f64;
        let wanted = epsilon.get();
        let refused = Error::OutOfRange {
            name: "epsilon",
            value: wanted,
            range: "the range that a uniform answer with a probability in (0, 1) gives for this number of buckets",
        };
        // 1 - v = (e^epsilon - 1) / (e^epsilon - 1 + k), which is accurate for a small epsilon, as v is for a large one.
        let excess = wanted.exp_m1();
        let mut noise = if excess < k { 1.0 - excess / (excess + k) } else { k / (excess + k) };
        // This is too small by at most a few units in the last place; the step doubles, so that the loop ends soon in any case.
        let mut step = noise * f64::EPSILON;
        while noise > 0.0 && noise < 1.0 {
            let response = Self { buckets, noise };
            if bound::epsilon(&response.event(), Delta::ZERO)?.value <= wanted {
                return Ok(response);
            }
            noise += step;
            step *= 2.0;
        }
        Err(refused)
    }

    /// Creates the mechanism with this probability of a uniform answer.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a number of buckets outside `2..=2^53`, or a probability that is not a normal double between 0
    /// and 1: without noise the answers are the records, and with noise only they carry no information.
    pub fn from_noise(buckets: u64, noise: f64) -> Result<Self, Error> {
        check_buckets(buckets)?;
        if noise > 0.0 && noise < 1.0 && noise.is_normal() {
            Ok(Self { buckets, noise })
        } else {
            Err(Error::OutOfRange { name: "noise", value: noise, range: "(0, 1)" })
        }
    }

    /// Returns the number of possible answers.
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Returns the probability of a uniform answer.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Returns the noise mode: exact coins.
    pub fn noise_mode(&self) -> NoiseMode {
        NoiseMode::Exact
    }

    /// Returns the probability of the true answer, `1 - noise + noise / buckets`.
    pub fn probability_of_truth(&self) -> f64 {
        1.0 - self.noise + self.probability_of_other()
    }

    /// Returns the probability of each other answer, `noise / buckets`.
    pub fn probability_of_other(&self) -> f64 {
        self.noise / self.buckets as f64
    }

    /// Releases the answer of one record, whose value is the index of its bucket.
    ///
    /// # Privacy
    /// The value is moved, and the event is appended to `log` in the same call. A generator that is not secret marks the log as
    /// not private.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`]; in this case nothing is logged.
    pub fn release<R: ReleaseRng + ?Sized>(
        &self,
        value: Secret<u64>,
        log: &mut EventLog<ReplaceOne>,
        rng: &mut R,
    ) -> Result<Released<u64>, Error> {
        release::secret(value, self.cost(), log, rng, |value, rng| Ok(self.draw(rng)?.to(value)))
    }

    /// Releases the answers of many records, each randomised separately.
    ///
    /// # Privacy
    /// Each element is one record's value; if one person holds several, the unit of the guarantee is still the record. The number
    /// of records is public. The log receives one entry: neighbours under replace-one differ in one record, and all other answers
    /// have the same law for both.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn release_each<R: ReleaseRng + ?Sized>(
        &self,
        values: Secret<Vec<u64>>,
        log: &mut EventLog<ReplaceOne>,
        rng: &mut R,
    ) -> Result<Released<Vec<u64>>, Error> {
        release::secret(values, self.cost(), log, rng, |mut values, rng| {
            for value in &mut values {
                *value = self.draw(rng)?.to(*value);
            }
            Ok(values)
        })
    }

    /// Returns unbiased estimates of the buckets' true frequencies from the counts of the answers.
    ///
    /// # Formula
    /// ```text
    /// estimate = (count / n - v/k) / (1 - v),   n = sum of counts
    /// ```
    /// The estimates sum to 1; single ones may be negative or above 1. [`standard_error`](Self::standard_error) gives their
    /// error.
    ///
    /// # Errors
    /// [`Error::Length`] unless there is one count for each bucket; [`Error::NotPositive`] if they are all 0.
    pub fn frequencies(&self, counts: &[u64]) -> Result<Vec<f64>, Error> {
        if counts.len() as u64 != self.buckets {
            return Err(Error::Length { name: "counts", found: counts.len(), expected: "the number of buckets" });
        }
        // The sum of 2^53 64-bit numbers fits.
        let total = counts.iter().map(|&count| u128::from(count)).sum::<u128>() as f64;
        if !(total > 0.0) {
            return Err(Error::NotPositive { name: "number of answers", value: total });
        }
        let estimate = |&count: &u64| (count as f64 / total - self.probability_of_other()) / (1.0 - self.noise);
        Ok(counts.iter().map(estimate).collect())
    }

    /// Returns the standard deviation of the estimate of a true frequency `frequency`, from the answers of `records` records
    /// drawn independently of each other.
    ///
    /// # Formula
    /// ```text
    /// sqrt( a (1 - a) / n ) / (1 - v),   a = v/k + (1 - v) frequency
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 <= frequency <= 1`; [`Error::NotPositive`] for no records.
    pub fn standard_error(&self, frequency: f64, records: u64) -> Result<f64, Error> {
        if !(0.0..=1.0).contains(&frequency) {
            return Err(Error::OutOfRange { name: "frequency", value: frequency, range: "[0, 1]" });
        }
        if records == 0 {
            return Err(Error::NotPositive { name: "number of records", value: 0.0 });
        }
        let answered = self.probability_of_other() + (1.0 - self.noise) * frequency;
        Ok((answered * (1.0 - answered) / records as f64).sqrt() / (1.0 - self.noise))
    }

    /// Returns the cost that one release writes to the log.
    fn cost(&self) -> Cost {
        Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() }
    }

    /// Determines the answer before the value is read.
    fn draw<R: ReleaseRng + ?Sized>(&self, rng: &mut R) -> Result<Reply, Error> {
        let is_noise = exact::bernoulli_f64(self.noise, rng)?;
        let uniform = exact::uniform_below(u128::from(self.buckets), rng)? as u64;
        Ok(Reply { is_noise, uniform, buckets: self.buckets })
    }
}

/// A reply before the value is known.
struct Reply {
    is_noise: bool,
    uniform: u64,
    buckets: u64,
}

impl Reply {
    fn to(self, value: u64) -> u64 {
        if self.is_noise || value >= self.buckets { self.uniform } else { value }
    }
}

fn check_buckets(buckets: u64) -> Result<u64, Error> {
    if (2..=MOST_BUCKETS).contains(&buckets) {
        Ok(buckets)
    } else {
        Err(Error::OutOfRange { name: "buckets", value: buckets as f64, range: "2..=2^53" })
    }
}

impl PrivacyEvent for RandomizedResponse {
    fn event(&self) -> DpEvent {
        DpEvent::RandomizedResponse { buckets: self.buckets, noise: self.noise }
    }
}

#[cfg(test)]
mod tests;
