//! A session of the sparse vector technique: a noisy threshold, and the remaining answers.

use core::fmt;

use dp_accountant::{Adjacency, EventLog, LogId};
use rand::CryptoRng;

use crate::bounded::Bounded;
use crate::error::Error;
use crate::lattice::Lattice;
use crate::lattice_scale::RationalScale;
use crate::release;
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::{LInf, LInfSensitivity};

/// The answer to one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// The noisy query is below the noisy threshold.
    Below,
    /// The noisy query is at or above the noisy threshold.
    Above {
        /// The query with fresh noise, independent of that of the comparison, if values were paid for.
        value: Option<f64>,
    },
}

/// The numbers of answers of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum number of positive answers.
    pub(super) answers: u64,
    /// Maximum total number of queries, if limited.
    pub(super) queries: Option<u64>,
}

/// The noise of a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) enum QueryNoise {
    /// `floor(scale · X)`, `X` standard Laplace.
    Laplace(RationalScale),
    /// The integer nearest to `std_dev · X`, `X` standard normal.
    Gaussian(u64),
}

impl QueryNoise {
    fn draw<R: CryptoRng + ?Sized>(self, rng: &mut R) -> Result<i128, Error> {
        match self {
            Self::Laplace(scale) => scale.floor_laplace(rng),
            Self::Gaussian(std_dev) => super::gaussian::rounded_normal(std_dev, rng),
        }
    }
}

/// A started sparse vector, from [`AboveThreshold::start`](super::AboveThreshold::start) or
/// [`GaussianAboveThreshold::start`](super::GaussianAboveThreshold::start). Its cost is logged already.
///
/// It holds the noisy threshold, so it can be neither copied nor printed:
/// ```
/// # use dp_accountant::*; use dp_mechanisms::*;
/// # let mechanism = AboveThreshold::new(LInfSensitivity::<ReplaceOne>::new(1.0)?, Epsilon::new(1.0)?, 3)?;
/// let session = mechanism.start(0.0, &mut EventLog::new(), &mut OsSeeded::new()?)?;
/// assert_eq!(format!("{session:?}"), "Session(.., 3 positive answers left)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// ```compile_fail,E0599
/// # use dp_accountant::ReplaceOne; use dp_mechanisms::sparse_vector::Session;
/// fn fork(session: &Session<ReplaceOne>) -> Session<ReplaceOne> {
///     session.clone()
/// }
/// ```
/// ```compile_fail,E0616
/// # use dp_accountant::ReplaceOne; use dp_mechanisms::sparse_vector::Session;
/// fn read(session: &Session<ReplaceOne>) -> i128 {
///     session.noisy_threshold
/// }
/// ```
pub struct Session<A: Adjacency> {
    paid_in: LogId,
    sensitivity: LInfSensitivity<A>,
    lattice: Lattice,
    noisy_threshold: i128,
    query_noise: QueryNoise,
    value_noise: Option<RationalScale>,
    limits: Limits,
    left: Limits,
}

impl<A: Adjacency> Session<A> {
    pub(super) fn new(
        paid_in: LogId,
        sensitivity: LInfSensitivity<A>,
        lattice: Lattice,
        noisy_threshold: i128,
        query_noise: QueryNoise,
        value_noise: Option<RationalScale>,
        limits: Limits,
    ) -> Self {
        Self { paid_in, sensitivity, lattice, noisy_threshold, query_noise, value_noise, limits, left: limits }
    }

    /// Returns the number of positive answers left; at 0 the session is over.
    pub fn answers_left(&self) -> u64 {
        self.left.answers
    }

    /// Returns the number of queries left, if limited.
    pub fn queries_left(&self) -> Option<u64> {
        self.left.queries
    }

    /// Returns whether the session is over.
    pub fn is_over(&self) -> bool {
        self.left.answers == 0 || self.left.queries == Some(0)
    }

    /// Answers one query.
    ///
    /// # Privacy
    /// It adds nothing to the cost. The assumptions of the query's sensitivity are added to `log`, and a generator that is not
    /// secret marks it; so it must be the log in which the session was paid for.
    ///
    /// # Errors
    /// [`Error::OtherLog`] for any log other than that of the start, including copies of it. [`Error::SessionOver`] after the
    /// last positive answer, or query, that was paid for. [`Error::SensitivityExceeded`], and [`Error::NonFiniteInput`] for a
    /// query that is NaN or infinite, which is an aggregate and thus a breach of the contract by the caller. In these cases the
    /// session is unchanged. [`Error::StuckGenerator`], which may have used up an answer.
    pub fn answer<R: ReleaseRng + ?Sized>(
        &mut self,
        query: Bounded<f64, A, LInf>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Answer>, Error> {
        if self.left.answers == 0 {
            return Err(Error::SessionOver { what: "positive answers", most: self.limits.answers });
        }
        if let (Some(0), Some(most)) = (self.left.queries, self.limits.queries) {
            return Err(Error::SessionOver { what: "queries", most });
        }
        release::prepaid(query, self.sensitivity, self.paid_in, log, rng, |query, rng| {
            // Fresh for every query, and drawn before the query is read.
            let noise = self.query_noise.draw(rng)?;
            if !query.is_finite() {
                return Err(Error::NonFiniteInput);
            }
            self.left.queries = self.left.queries.map(|queries| queries - 1);
            let steps = self.lattice.floor(query);
            if steps + noise < self.noisy_threshold {
                return Ok(Answer::Below);
            }
            self.left.answers -= 1;
            let value = match self.value_noise {
                // One step is added, since each of the two floors is half a step too low.
                Some(scale) => Some(self.lattice.value(steps + scale.floor_laplace(rng)? + 1)),
                None => None,
            };
            Ok(Answer::Above { value })
        })
    }
}

impl<A: Adjacency> fmt::Debug for Session<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session(.., {} positive answers left)", self.left.answers)
    }
}
