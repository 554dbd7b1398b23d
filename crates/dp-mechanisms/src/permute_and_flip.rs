//! Permute-and-flip.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};
use rand::CryptoRng;

use crate::bounded::Bounded;
use crate::error::Error;
use crate::exact;
use crate::law_integral::integrate;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::scores::Scores;
use crate::selection::{Selection, selection_methods};
use crate::sensitivity::{LInf, LInfSensitivity};

/// Visits candidates in random order and selects the first whose coin, more probable for a higher score, succeeds.
///
/// # Formula
/// ```text
/// coin_i = exp(epsilon (score_i - max score) / (2 sensitivity)),   without the 2 for monotonic scores
/// P(i) = ∫_0^1 coin_i ∏_{j != i} (1 - s coin_j) ds
/// ```
/// (Let each candidate arrive at a uniform time: `i` arrives at `s`, and `j` has arrived before and succeeded with probability
/// `s coin_j`.) This is also the law of the largest score plus exponential noise.
///
/// # Privacy
/// For scores of which one record can change each by at most `sensitivity`, under the relation `A`: pure epsilon-DP, with an
/// expected score that is never below that of the [`Exponential`](crate::Exponential) mechanism. The range of its privacy loss is
/// not bounded by epsilon, so if many selections are composed the other mechanism is better.
///
/// The selection is drawn exactly: scores are rounded to an integer lattice 2^30 times finer than the sensitivity, which the
/// guarantee covers, and everything else is integer arithmetic.
///
/// # Time
/// The order does not depend on the scores, and every candidate is visited and its coin tossed, even after one is accepted.
/// The textbook form stops at the first accepted candidate: always at the first visit with scores (0, 0), not always with (0,
/// -1), so its number of visits alone has no finite epsilon.
///
/// # Examples
/// ```
/// use dp_accountant::{Epsilon, EventLog, ReplaceOne};
/// use dp_mechanisms::{Bounded, LInfSensitivity, Mechanism, OsSeeded, PermuteAndFlip, scores::Scores};
///
/// let sensitivity = LInfSensitivity::<ReplaceOne>::new(1.0)?;
/// let mechanism = PermuteAndFlip::new(sensitivity, Epsilon::new(1.0)?)?;
/// let planned = mechanism.probabilities(&Scores::new(vec![0.0, 1.0])?)?;
/// assert!((planned[1] - 0.6967346701436833).abs() < 1e-12);
///
/// let mut log = EventLog::new();
/// let votes = Bounded::with_proven_sensitivity(Scores::new(vec![13.0, 88.0, 41.0])?, sensitivity);
/// let winner = mechanism.release(votes, &mut log, &mut OsSeeded::new()?)?;
/// assert!(*winner.get() < 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for differentially private selection", 2020, Theorems 1
/// and 2, arXiv 2010.12603. Z. Ding, D. Kifer, S. Saghaian, T. Steinke, Y. Wang, Y. Xiao, D. Zhang, "The
/// permute-and-flip mechanism is identical to report-noisy-max with exponential noise", 2021, arXiv 2105.07260.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent, bound = ""))]
pub struct PermuteAndFlip<A: Adjacency>(Selection<A>);

selection_methods!(PermuteAndFlip, "drops the factor 2.", "of pure differential privacy.");

impl<A: Adjacency> PermuteAndFlip<A> {
    /// Returns the probability of each candidate, to about 12 digits.
    ///
    /// # Privacy
    /// For planning, on public or synthetic scores: the result is a function of the scores without any noise.
    ///
    /// # Errors
    /// [`Error::NonFiniteInput`].
    pub fn probabilities(&self, scores: &Scores) -> Result<Vec<f64>, Error> {
        Ok(law(&self.0.exponents(scores)?))
    }

    /// Draws an index for scores on the lattice.
    fn choose<R: CryptoRng + ?Sized>(&self, steps: &[i128], rng: &mut R) -> Result<usize, Error> {
        let mut order: Vec<usize> = (0..steps.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, exact::uniform_below(last as u128 + 1, rng)? as usize);
        }
        let gaps = self.0.gaps(steps);
        let mut chosen = None;
        for candidate in order {
            let accepted = self.0.coin(gaps[candidate], rng)?;
            if accepted {
                chosen = chosen.or(Some(candidate));
            }
        }
        // A best candidate's coin has probability 1.
        chosen.ok_or(Error::StuckGenerator)
    }
}

/// Returns the probabilities for coins `exp(-exponent)`, where the least exponent is 0.
fn law(exponents: &[f64]) -> Vec<f64> {
    let coins: Vec<f64> = exponents.iter().map(|exponent| (-exponent).exp()).collect();
    let tails: Vec<f64> = exponents.iter().map(|exponent| -(-exponent).exp_m1()).collect();
    // All candidates' integrands decrease at least as fast as exp(-s (total - 1)).
    let total: f64 = coins.iter().sum();
    let mut probabilities = integrate(0.0, 1.0, &[0.0], total.recip(), coins.len(), |s, values| {
        // 1 - s coin = (1 - s) + s (1 - coin), without cancellation near s = 1 and coin = 1.
        let miss = |tail: &f64| (1.0 - s) + s * tail;
        let all: f64 = tails.iter().map(miss).product();
        for (value, tail) in values.iter_mut().zip(&tails) {
            *value = all / miss(tail);
        }
    });
    for (probability, coin) in probabilities.iter_mut().zip(&coins) {
        *probability *= coin;
    }
    probabilities
}

impl<A: Adjacency> PrivacyEvent for PermuteAndFlip<A> {
    fn event(&self) -> DpEvent {
        DpEvent::PureDp { epsilon: self.0.epsilon().get() }
    }
}

impl<A: Adjacency> Mechanism<Scores, A> for PermuteAndFlip<A> {
    type Norm = LInf;
    type Output = usize;

    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Scores, A, LInf>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<usize>, Error> {
        self.0.release(input, self.event(), log, rng, |steps, rng| self.choose(steps, rng))
    }
}

#[cfg(test)]
mod tests;
