//! A private choice of a step's length, from sums of clamped losses on a grid.
//!
//! With `v_i` in `[0, 1]` a record's clamped loss at candidate `i`, over the largest loss, and `u` that at the current point, one
//! record moves the decreases `u - v_i` within one interval of length 1 that holds 0; a replaced record moves them within one of
//! length 2.

use dp_accountant::{Adjacency, AdjacencyKind, DpEvent, Epsilon, EventLog};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::sparse_vector::Answer;
use dp_mechanisms::{
    AboveThreshold, Bounded, Exponential, LInfSensitivity, Mechanism, PermuteAndFlip, PrivacyEvent, ReleaseRng,
};

use crate::error::Error;

const RECIPE: &str = "line search";

/// τ and ς: number of steps after which the longest candidate is reset, and its ratio to the longest step taken since.
pub(crate) const REVIEW: (usize, f64) = (10, 1.2);

/// The choice of a step's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Search {
    /// The first step that lowers the loss enough: NoisyBTLS.
    #[default]
    Backtracking,
    /// A step chosen by the exponential mechanism according to the decrease of the loss.
    Selection,
    /// The step with the least loss, among equally spaced ones along the normalised gradient: DP-AGD.
    NoisyMin,
}

/// A search of a given cost, for sums in units of the largest loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Searcher<A: Adjacency> {
    Backtracking(AboveThreshold<A>),
    Selection(Exponential<A>),
    NoisyMin(PermuteAndFlip<A>),
}

/// Returns the length of the interval, containing 0, of all changes of a step's sum of losses relative to that of no step, in
/// units of the largest loss.
fn interval(relation: AdjacencyKind) -> Result<f64, Error> {
    match relation {
        AdjacencyKind::ReplaceOne => Ok(2.0),
        AdjacencyKind::ZeroOut => Ok(1.0),
        adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
    }
}

/// Sums of clamped losses, and the public part of each candidate's score: on one grid, in units of the largest loss.
pub(crate) struct Sums {
    /// The sums for no step, then for each candidate.
    pub(crate) losses: Vec<f64>,
    /// The number subtracted from each candidate's decrease.
    pub(crate) required: Vec<f64>,
}

impl Sums {
    /// Returns the decrease of the loss minus the required one, for each candidate.
    pub(crate) fn gains(&self) -> Vec<f64> {
        let here = self.losses.first().copied().unwrap_or(0.0);
        let candidates = self.losses.iter().skip(1).zip(&self.required);
        candidates.map(|(there, required)| (here - there) - required).collect()
    }

    /// Returns the scores of no step and of each candidate, for a choice among all of them.
    pub(crate) fn scores(&self, search: Search) -> Vec<f64> {
        match search {
            Search::NoisyMin => {
                let required = core::iter::once(0.0).chain(self.required.iter().copied());
                self.losses.iter().zip(required).map(|(loss, required)| -loss - required).collect()
            }
            _ => core::iter::once(0.0).chain(self.gains()).collect(),
        }
    }
}

/// Returns the number, from 1, of the first candidate whose noisy gain reaches the noisy threshold 0; 0 for none. Gains behind it are
/// not computed.
pub(crate) fn backtrack<A: Adjacency>(
    mechanism: &AboveThreshold<A>,
    gains: impl IntoIterator<Item = Result<f64, Error>>,
    log: &mut EventLog<A>,
    rng: &mut (impl ReleaseRng + ?Sized),
) -> Result<usize, Error> {
    let mut session = mechanism.start(0.0, log, rng)?;
    for (candidate, gain) in (1..).zip(gains) {
        let query = Bounded::with_proven_sensitivity(gain?, mechanism.sensitivity());
        if *session.answer(query, log, rng)?.get() != Answer::Below {
            return Ok(candidate);
        }
    }
    Ok(0)
}

/// Returns the index of a score, large ones with the greatest probability.
pub(crate) fn select<A: Adjacency>(
    mechanism: &Exponential<A>,
    scores: Vec<f64>,
    log: &mut EventLog<A>,
    rng: &mut (impl ReleaseRng + ?Sized),
) -> Result<usize, Error> {
    let scores = Bounded::with_proven_sensitivity(Scores::new(scores)?, mechanism.sensitivity());
    Ok(mechanism.release(scores, log, rng)?.into_inner())
}

impl<A: Adjacency> Searcher<A> {
    /// Creates a search that costs `rho` of zCDP.
    pub(crate) fn new(search: Search, rho: f64) -> Result<Self, Error> {
        let interval = interval(A::KIND)?;
        let pure = (2.0 * rho).sqrt();
        Ok(match search {
            Search::Backtracking => {
                let half = Epsilon::new(0.5 * pure)?;
                let sensitivity = LInfSensitivity::new(interval)?;
                Self::Backtracking(AboveThreshold::from_split(sensitivity, half, half, 1)?.range_bounded()?)
            }
            // Up to a common shift a record moves the scores by half the interval: the choice depends on gaps only.
            Search::Selection => {
                Self::Selection(Exponential::new(LInfSensitivity::new(0.5 * interval)?, Epsilon::new(2.0 * pure)?)?)
            }
            // A record's losses lie in [0, 1], whatever the record.
            Search::NoisyMin => {
                let choice = PermuteAndFlip::new(LInfSensitivity::new(1.0)?, Epsilon::new(pure)?)?;
                Self::NoisyMin(if A::KIND == AdjacencyKind::ZeroOut { choice.monotonic()? } else { choice })
            }
        })
    }

    pub(crate) fn event(&self) -> DpEvent {
        match self {
            Self::Backtracking(mechanism) => mechanism.event(),
            Self::Selection(mechanism) => mechanism.event(),
            Self::NoisyMin(mechanism) => mechanism.event(),
        }
    }

    /// Chooses a candidate: 0 for no step, otherwise its number from 1.
    pub(crate) fn choose(
        &self,
        sums: &Sums,
        log: &mut EventLog<A>,
        rng: &mut (impl ReleaseRng + ?Sized),
    ) -> Result<usize, Error> {
        match self {
            Self::Backtracking(mechanism) => backtrack(mechanism, sums.gains().into_iter().map(Ok), log, rng),
            Self::Selection(mechanism) => select(mechanism, sums.scores(Search::Selection), log, rng),
            Self::NoisyMin(mechanism) => {
                let scores = Scores::new(sums.scores(Search::NoisyMin))?;
                let scores = Bounded::with_proven_sensitivity(scores, mechanism.sensitivity());
                Ok(mechanism.release(scores, log, rng)?.into_inner())
            }
        }
    }

    #[cfg(any(test, feature = "audit"))]
    pub(crate) fn law(&self, sums: &Sums) -> Result<Vec<f64>, Error> {
        Ok(match self {
            Self::Backtracking(mechanism) => {
                let mut law = mechanism.first_answer(&sums.gains(), 0.0)?;
                // The last probability is that of no step.
                law.rotate_right(1);
                law
            }
            Self::Selection(mechanism) => mechanism.probabilities(&Scores::new(sums.scores(Search::Selection))?)?,
            Self::NoisyMin(mechanism) => mechanism.probabilities(&Scores::new(sums.scores(Search::NoisyMin))?)?,
        })
    }
}
