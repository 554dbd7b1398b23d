//! The exponential mechanism.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};
use rand::CryptoRng;

use crate::bounded::Bounded;
use crate::error::Error;
use crate::exact;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::scores::Scores;
use crate::selection::{Selection, selection_methods};
use crate::sensitivity::{LInf, LInfSensitivity};

/// Number of proposals per candidate after which a generator counts as stuck, of probability below `exp(-1000)`.
const MOST_PROPOSALS: u128 = 1000;

/// Selects a candidate with a probability that grows exponentially with its score.
///
/// # Formula
/// ```text
/// P(i) proportional to exp(epsilon score_i / (2 sensitivity)),   without the 2 for monotonic scores
/// ```
///
/// # Privacy
/// For scores of which one record can change each by at most `sensitivity`, under the relation `A`, the selection is pure
/// epsilon-DP. Moreover its privacy loss has a *range* of at most epsilon (all ratios of two candidates' probabilities change by
/// at most `exp(epsilon)`), hence it is `epsilon²/8`-zCDP: a quarter of the composition of pure epsilon-DP alone. The event
/// states this. For a single selection under pure differential privacy [`PermuteAndFlip`](crate::PermuteAndFlip) has the better
/// expected score.
///
/// The selection is drawn exactly: scores are rounded to an integer lattice 2^30 times finer than the sensitivity, which the
/// guarantee covers, and everything else is integer arithmetic. It has the law above for the scores on the lattice;
/// [`probabilities`](Self::probabilities), for the scores themselves, agree with it to about nine digits.
///
/// # Time
/// Candidates are proposed uniformly, each proposal is accepted with probability `exp(-gap / b)`, and the first accepted one is
/// selected. Stopping there would reveal the mean acceptance rate, which is a function of the scores. Instead proposals continue,
/// with their coins, until a best candidate (the first, if several) is proposed, which is always accepted: the number of
/// proposals is geometric with mean n for all scores. The remaining dependence is that a coin takes a few more random words the
/// likelier it is.
///
/// # Examples
/// ```
/// use dp_accountant::{Epsilon, EventLog, ReplaceOne};
/// use dp_mechanisms::{Bounded, Exponential, LInfSensitivity, Mechanism, OsSeeded, scores::Scores};
///
/// let sensitivity = LInfSensitivity::<ReplaceOne>::new(1.0)?;
/// let mechanism = Exponential::new(sensitivity, Epsilon::new(1.0)?)?;
/// let planned = mechanism.probabilities(&Scores::new(vec![0.0, 1.0])?)?;
/// assert!((planned[1] - 0.6224593312018546).abs() < 1e-15);
///
/// let mut log = EventLog::new();
/// let votes = Bounded::with_proven_sensitivity(Scores::new(vec![13.0, 88.0, 41.0])?, sensitivity);
/// let winner = mechanism.release(votes, &mut log, &mut OsSeeded::new()?)?;
/// assert!(*winner.get() < 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// The scores are not released with the index:
/// ```compile_fail,E0308
/// # use dp_accountant::*; use dp_mechanisms::{*, scores::Scores};
/// # fn peek(mechanism: Exponential<ReplaceOne>, votes: Bounded<Scores, ReplaceOne, LInf>,
/// #     log: &mut EventLog<ReplaceOne>) -> Result<f64, Error> {
/// let noisy_score: f64 = mechanism.release(votes, log, &mut OsSeeded::new()?)?.into_inner();
/// # Ok(noisy_score) }
/// ```
///
/// # References
/// F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007, Theorem 6. J. Dong, D. Durfee, R.
/// Rogers, "Optimal differential privacy composition for exponential mechanisms", 2020, Lemma 3.2, arXiv 1909.13830. M.
/// Cesar, R. Rogers, "Bounding, concentrating, and truncating", 2021, Lemma 3.4, arXiv 2004.07223.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent, bound = ""))]
pub struct Exponential<A: Adjacency>(Selection<A>);

selection_methods!(Exponential, "drops the factor 2.", "of pure differential privacy, and of the range of the loss.");

impl<A: Adjacency> Exponential<A> {
    /// Returns the probability of each candidate.
    ///
    /// # Privacy
    /// For planning, on public or synthetic scores: the result is a function of the scores without any noise.
    ///
    /// # Errors
    /// [`Error::NonFiniteInput`].
    pub fn probabilities(&self, scores: &Scores) -> Result<Vec<f64>, Error> {
        Ok(law(&self.0.exponents(scores)?))
    }

    /// Draws an index for scores on the lattice; also returns the number of proposals, for tests.
    fn choose<R: CryptoRng + ?Sized>(&self, steps: &[i128], rng: &mut R) -> Result<(usize, u128), Error> {
        let gaps = self.0.gaps(steps);
        let candidates = gaps.len() as u128;
        let best = gaps.iter().position(|&gap| gap == 0).unwrap_or(0);
        let mut chosen = None;
        for proposals in 1..=MOST_PROPOSALS * candidates {
            let proposed = exact::uniform_below(candidates, rng)? as usize;
            let accepted = self.0.coin(gaps[proposed], rng)?;
            if accepted {
                chosen = chosen.or(Some(proposed));
            }
            if proposed == best {
                let chosen = chosen.ok_or(Error::StuckGenerator)?;
                return Ok((chosen, proposals));
            }
        }
        Err(Error::StuckGenerator)
    }
}

/// Returns probabilities proportional to `exp(-exponent)`, where the least exponent is 0.
fn law(exponents: &[f64]) -> Vec<f64> {
    let total: f64 = exponents.iter().map(|exponent| (-exponent).exp()).sum();
    exponents.iter().map(|exponent| (-exponent).exp() / total).collect()
}

impl<A: Adjacency> PrivacyEvent for Exponential<A> {
    fn event(&self) -> DpEvent {
        DpEvent::BoundedRange { epsilon: self.0.epsilon().get() }
    }
}

impl<A: Adjacency> Mechanism<Scores, A> for Exponential<A> {
    type Norm = LInf;
    type Output = usize;

    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Scores, A, LInf>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<usize>, Error> {
        self.0.release(input, self.event(), log, rng, |steps, rng| Ok(self.choose(steps, rng)?.0))
    }
}

#[cfg(test)]
mod tests;
