//! The pure guarantee of a release: the least epsilon known for which it is `epsilon`-DP.

use super::{Leaf, Leaves};
use crate::event::Repetitions;
use crate::rounding::{add_up, count_up, div_up, mul_up};

/// Factor that covers the rounding of a few elementary functions and sums.
const ROUND_UP: f64 = 1.0 + 16.0 * f64::EPSILON;

/// Returns the pure guarantee of one release, rounded up; infinite if it has none.
///
/// - Randomised response: the logarithm of the largest ratio of two answers' probabilities, `ln(1 + k (1 - v)/v)` for k
///   buckets and probability `v` of a uniform answer.
/// - A range of the loss of length `epsilon` contains 0, so the loss is within `epsilon` of it.
/// - Sampling: `ln(1 + q (e^epsilon - 1))`, for a Poisson sample under add/remove and for one of fixed size under
///   replace-one (Balle, Barthe and Gaboardi 2018, Theorems 8 and 9 at `delta = 0`).
/// - Shuffling publishes a function of all answers, one of which changes.
/// - The first query above a threshold: given the threshold's noise, shifted by one sensitivity, an answer's probability ratio is
///   at most that of a query shifted by two.
/// - The best of a random number of repetitions, truncated negative binomial: `(2 + eta) epsilon` (Papernot and Steinke
///   2022, Corollary 3; Liu and Talwar 2019 for `eta = 1`).
pub(crate) fn pure_epsilon(leaf: &Leaf) -> f64 {
    match leaf {
        Leaf::Pure { epsilon } | Leaf::BoundedRange { epsilon } | Leaf::Shuffled { epsilon, .. } => *epsilon,
        Leaf::Laplace { x } | Leaf::LaplaceBall { x, .. } => *x,
        Leaf::DiscreteLaplace { scale, sensitivity } => div_up(count_up(*sensitivity), *scale),
        Leaf::RandomizedResponse { buckets, noise } => {
            (count_up(*buckets) * ((1.0 - noise) / noise)).ln_1p() * ROUND_UP
        }
        Leaf::Pair(pair) => pair.largest_loss(),
        Leaf::Poisson { rate, base } | Leaf::WithoutReplacement { rate, base } => {
            sampled(*rate, pure_epsilon_of_all(base))
        }
        Leaf::AboveThresholdLaplace { threshold, query } => add_up(*threshold, *query),
        Leaf::Parallel { parts } => parts.iter().map(pure_epsilon_of_all).fold(0.0, f64::max),
        Leaf::ParallelByValue { parts } => {
            let (mut largest, mut second) = (0.0f64, 0.0f64);
            for epsilon in parts.iter().map(pure_epsilon_of_all) {
                (largest, second) = if epsilon > largest { (epsilon, largest) } else { (largest, second.max(epsilon)) };
            }
            add_up(largest, second)
        }
        Leaf::Group { size, base } => mul_up(count_up(*size), pure_epsilon_of_all(base)),
        Leaf::RandomStopping { repetitions: Repetitions::TruncatedNegativeBinomial { eta, .. }, base } => {
            mul_up((2.0 + eta).next_up(), pure_epsilon_of_all(base))
        }
        Leaf::NonPrivate
        | Leaf::Gaussian { .. }
        | Leaf::Approximate { .. }
        | Leaf::Zcdp { .. }
        | Leaf::Mixture(_)
        | Leaf::DiscreteGaussian { .. }
        | Leaf::Renyi(_)
        | Leaf::PoissonGaussian { .. }
        | Leaf::PoissonReplacement(_)
        | Leaf::AboveThresholdGaussian { .. }
        | Leaf::RandomStopping { repetitions: Repetitions::Poisson { .. }, .. }
        | Leaf::ObjectivePerturbation { .. } => f64::INFINITY,
    }
}

/// Returns the sum over several releases.
pub(crate) fn pure_epsilon_of_all(leaves: &Leaves) -> f64 {
    leaves.iter().fold(0.0, |sum, (leaf, count)| add_up(sum, mul_up(count_up(*count), pure_epsilon(leaf))))
}

fn sampled(rate: f64, epsilon: f64) -> f64 {
    let amplified = (rate * epsilon.exp_m1()).ln_1p() * ROUND_UP;
    // The exponential overflows for epsilons at which sampling gains almost nothing.
    if amplified < epsilon { amplified } else { epsilon }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finite_pair::FinitePair;

    #[test]
    fn ratios_of_probabilities() {
        let response = pure_epsilon(&Leaf::RandomizedResponse { buckets: 4, noise: 0.4 });
        assert!((response - (0.7f64 / 0.1).ln()).abs() < 1e-14 && response >= (0.7f64 / 0.1).ln());
        let pair = FinitePair::new(&[0.5, 0.5], &[0.2, 0.8]).unwrap();
        assert!((pure_epsilon(&Leaf::Pair(pair)) - 2.5f64.ln()).abs() < 1e-14);
        let pair = FinitePair::new(&[0.5, 0.5], &[1.0, 0.0]).unwrap();
        assert_eq!(pure_epsilon(&Leaf::Pair(pair)), f64::INFINITY);
    }

    #[test]
    fn sampling_amplifies_and_never_harms() {
        let base = vec![(Leaf::Pure { epsilon: 1.0 }, 1)];
        let half = pure_epsilon(&Leaf::Poisson { rate: 0.5, base });
        assert!((half - (0.5 + 0.5 * 1f64.exp()).ln()).abs() < 1e-14);
        let base = vec![(Leaf::Pure { epsilon: 1000.0 }, 1)];
        assert_eq!(pure_epsilon(&Leaf::WithoutReplacement { rate: 0.5, base }), 1000.0);
    }

    #[test]
    fn parts() {
        let part = |epsilon| vec![(Leaf::Pure { epsilon }, 1)];
        let parts = vec![part(0.5), part(2.0), part(1.0)];
        assert_eq!(pure_epsilon(&Leaf::Parallel { parts: parts.clone() }), 2.0);
        assert_eq!(pure_epsilon(&Leaf::ParallelByValue { parts }), 3.0);
    }
}
