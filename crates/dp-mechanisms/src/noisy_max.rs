//! Report noisy max with Laplace noise.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};
use rand::CryptoRng;

use crate::bounded::Bounded;
use crate::error::Error;
use crate::law_integral::integrate;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::scores::Scores;
use crate::selection::{Selection, selection_methods};
use crate::sensitivity::{LInf, LInfSensitivity};

/// Selects the candidate whose score with Laplace noise is largest.
///
/// # Formula
/// ```text
/// argmax_i (score_i + Z_i),   Z_i ~ Laplace(b),   b = 2 sensitivity / epsilon   (sensitivity / epsilon if monotonic)
/// P(i) = ∫ f(z - score_i) ∏_{j != i} F(z - score_j) dz,   f, F the density and distribution function of the noise
/// ```
///
/// # Privacy
/// For scores of which one record can change each by at most `sensitivity`, under the relation `A`: pure epsilon-DP. Given the
/// other candidates' noise, `i` is selected if its own exceeds a bound that changes by at most `2 sensitivity`. It is provided
/// for comparison: [`PermuteAndFlip`](crate::PermuteAndFlip) has a better expected score at the same epsilon, and
/// [`Exponential`](crate::Exponential) composes better. **Only the index is released**: the guarantee does not cover the largest
/// noisy score.
///
/// The noise is `floor(b X)` on an integer lattice 2^30 times finer than the sensitivity, drawn exactly, so that the argument
/// above holds unchanged; of equal sums the first candidate is selected.
///
/// # Examples
/// ```
/// use dp_accountant::{Epsilon, EventLog, ReplaceOne};
/// use dp_mechanisms::{Bounded, LInfSensitivity, Mechanism, NoisyMax, OsSeeded, scores::Scores};
///
/// let sensitivity = LInfSensitivity::<ReplaceOne>::new(1.0)?;
/// let mechanism = NoisyMax::new(sensitivity, Epsilon::new(0.5)?)?;
/// let planned = mechanism.probabilities(&Scores::new(vec![0.0, 1.0])?)?;
/// assert!((planned[1] - 0.5619245595223349).abs() < 1e-10);
///
/// let mut log = EventLog::new();
/// let votes = Bounded::with_proven_sensitivity(Scores::new(vec![13.0, 88.0, 41.0])?, sensitivity);
/// let winner = mechanism.release(votes, &mut log, &mut OsSeeded::new()?)?;
/// assert!(*winner.get() < 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Claim 3.9.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent, bound = ""))]
pub struct NoisyMax<A: Adjacency>(Selection<A>);

selection_methods!(NoisyMax, "halves the noise.", "of pure differential privacy.");

impl<A: Adjacency> NoisyMax<A> {
    /// Returns the probability of each candidate, to about 10 digits, in time quadratic in their number.
    ///
    /// # Privacy
    /// For planning, on public or synthetic scores: the result is a function of the scores without any noise.
    ///
    /// # Errors
    /// [`Error::NonFiniteInput`].
    pub fn probabilities(&self, scores: &Scores) -> Result<Vec<f64>, Error> {
        Ok(law(&self.0.exponents(scores)?))
    }
}

/// Returns the index of the largest sum, the first of several.
fn argmax(scores: &[i128], noise: &[i128]) -> usize {
    let mut best = 0;
    let mut largest = i128::MIN;
    for (index, (score, noise)) in scores.iter().zip(noise).enumerate() {
        // Scores are within ±2^120 and noise within ±2^108.
        let sum = score + noise;
        if sum > largest {
            (best, largest) = (index, sum);
        }
    }
    best
}

/// Returns the law for scores at these distances, in noise scales, below the best.
fn law(exponents: &[f64]) -> Vec<f64> {
    // Below -700 the noise of the best alone is too improbable for a double, above 45 that of any.
    let lowest = exponents.iter().fold(0.0, |lowest: f64, exponent| lowest.min(-exponent));
    let breakpoints: Vec<f64> = exponents.iter().map(|exponent| -exponent).collect();
    integrate((lowest - 45.0).max(-700.0), 45.0, &breakpoints, 1.0, exponents.len(), |z, values| {
        let below = |distance: f64| {
            let tail = 0.5 * (-distance.abs()).exp();
            if distance < 0.0 { tail } else { 1.0 - tail }
        };
        let all: f64 = exponents.iter().map(|exponent| below(z + exponent)).product();
        for (value, exponent) in values.iter_mut().zip(exponents) {
            let distance = z + exponent;
            *value = 0.5 * (-distance.abs()).exp() * (all / below(distance));
        }
    })
}

impl<A: Adjacency> PrivacyEvent for NoisyMax<A> {
    fn event(&self) -> DpEvent {
        DpEvent::PureDp { epsilon: self.0.epsilon().get() }
    }
}

impl<A: Adjacency> Mechanism<Scores, A> for NoisyMax<A> {
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

impl<A: Adjacency> NoisyMax<A> {
    /// Draws an index for scores on the lattice.
    fn choose<R: CryptoRng + ?Sized>(&self, steps: &[i128], rng: &mut R) -> Result<usize, Error> {
        let noise: Result<Vec<i128>, Error> = steps.iter().map(|_| self.0.scale().floor_laplace(rng)).collect();
        Ok(argmax(steps, &noise?))
    }
}

#[cfg(test)]
mod tests;
