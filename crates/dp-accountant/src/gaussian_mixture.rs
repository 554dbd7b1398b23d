//! A Gaussian release whose sensitivity depends on a secret random index, with the same law for both neighbours.

use crate::error::{Error, non_negative, positive};
use crate::gaussian::{self, curve_point, exp_up, safe_log};
use crate::logspace::CompensatedSum;
use crate::params::Delta;
use crate::root::{Tangent, least_safe};
use crate::rounding::div_up;

/// Largest distance of the weights' sum from 1.
const WEIGHT_SUM_TOLERANCE: f64 = 1e-9;

/// The approximate number of components of a large mixture's summary.
const SUMMARY_SIZE: usize = 1024;

/// Pairs (`mu`, probability), sorted by decreasing `mu`, equal ones merged, with probabilities summing to at least 1.
///
/// Revealing the index can only help the adversary, and then each component is a Gaussian pair:
///
/// ```text
/// delta(epsilon) <= sum_r w_r delta_Gauss(epsilon; mu_r)
/// ```
///
/// by joint convexity of the hockey-stick divergence, with equality if the output determines the index. The same pair (index,
/// output) dominates under composition, so that a Gaussian released as well adds its `mu^2` to every component's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GaussianMixture {
    components: Vec<(f64, f64)>,
}

impl GaussianMixture {
    /// Checks the event's numbers, sorts and merges the components.
    pub(crate) fn new(std_dev: f64, sensitivities: &[f64], weights: &[f64]) -> Result<Self, Error> {
        let std_dev = positive("std_dev", std_dev)?;
        if sensitivities.len() != weights.len() || sensitivities.is_empty() {
            return Err(Error::LengthMismatch {
                left: "sensitivities",
                left_length: sensitivities.len(),
                right: "weights",
                right_length: weights.len(),
            });
        }
        let mut sum = CompensatedSum::default();
        let mut components = Vec::with_capacity(weights.len());
        for (&sensitivity, &weight) in sensitivities.iter().zip(weights) {
            let mu = div_up(non_negative("sensitivity", sensitivity)?, std_dev);
            let weight = non_negative("weight", weight)?;
            sum.add(weight);
            if weight > 0.0 {
                components.push((mu, weight));
            }
        }
        let sum = sum.value();
        if !((sum - 1.0).abs() <= WEIGHT_SUM_TOLERANCE) {
            return Err(Error::OutOfRange { name: "sum of weights", value: sum, range: "[1 - 1e-9, 1 + 1e-9]" });
        }
        components.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        components.dedup_by(|later, kept| {
            let equal = later.0 == kept.0;
            if equal {
                kept.1 += later.1;
            }
            equal
        });
        // Weights that were rounded down are scaled up to sum 1; weights with a larger sum are kept, as an upper bound.
        if sum < 1.0 {
            components.iter_mut().for_each(|component| component.1 /= sum);
        }
        Ok(Self { components })
    }

    /// Creates a mixture with a single Gaussian component.
    pub(crate) fn single(mu: f64) -> Self {
        Self { components: vec![(mu, 1.0)] }
    }

    /// Returns the largest `mu` of a component.
    pub(crate) fn largest_mu(&self) -> f64 {
        self.components.first().map_or(0.0, |component| component.0)
    }

    /// Returns the components, largest `mu` first.
    pub(crate) fn components(&self) -> &[(f64, f64)] {
        &self.components
    }

    /// Returns the mixture released together with independent Gaussians of total `mu^2 = mu_squared`.
    pub(crate) fn with_gaussian(&self, mu_squared: f64) -> Self {
        let root_up = |square: f64| square.sqrt() * (1.0 + 2.0 * f64::EPSILON);
        let components = self.components.iter().map(|&(mu, weight)| (root_up(mu * mu + mu_squared), weight)).collect();
        Self { components }
    }

    /// Returns the logarithm of delta (rounded up) and its derivative in epsilon.
    ///
    /// Components are visited by decreasing `mu`. Delta grows with `mu`, so once the remaining probability times the current
    /// delta is negligible, it is added as a whole and the iteration ends.
    fn log_curve(&self, epsilon: f64) -> Tangent {
        let mut reference = f64::NEG_INFINITY;
        let (mut sum, mut slope, mut weight_left) = (CompensatedSum::default(), 0.0, 1.0f64);
        for &(mu, weight) in &self.components {
            if mu == 0.0 {
                break;
            }
            let point = curve_point(mu, epsilon);
            if reference == f64::NEG_INFINITY {
                reference = point.log_delta;
            }
            let delta = (point.log_delta - reference).exp();
            // At least the tolerance of the weights' sum, which covers the rounding of this difference.
            let left = weight_left.max(WEIGHT_SUM_TOLERANCE);
            if !(delta * left > 1e-18 * sum.value()) {
                sum.add(delta * left);
                break;
            }
            sum.add(weight * delta);
            if point.by_epsilon.is_finite() {
                slope += weight * delta * point.by_epsilon;
            }
            weight_left -= weight;
        }
        let total = sum.value();
        if reference == f64::NEG_INFINITY || !(total > 0.0) {
            return Tangent { value: f64::NEG_INFINITY, slope: 0.0 };
        }
        let margin = f64::EPSILON * (16.0 + 2.0 * reference.abs());
        Tangent { value: (reference + total.ln() + margin).min(0.0), slope: slope / total }
    }

    /// Returns the least delta at `epsilon >= 0`, rounded up.
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        exp_up(self.log_curve(epsilon).value)
    }

    /// Returns the logarithm of delta.
    pub(crate) fn log_delta(&self, epsilon: f64) -> f64 {
        self.log_curve(epsilon).value
    }

    /// Returns the least epsilon at `delta`, rounded up.
    pub(crate) fn epsilon(&self, delta: Delta) -> Result<f64, Error> {
        if delta.get() == 0.0 {
            gaussian::epsilon(self.largest_mu(), delta)
        } else {
            Ok(self.epsilon_at(safe_log(delta)))
        }
    }

    /// Returns the least epsilon at which the logarithm of delta is at most `target`, rounded up.
    pub(crate) fn epsilon_at(&self, target: f64) -> f64 {
        if self.largest_mu() == 0.0 {
            return 0.0;
        }
        let largest = gaussian::epsilon_at(self.largest_mu(), target);
        if !(largest > 0.0) || largest.is_infinite() || self.components.len() == 1 {
            return largest;
        }
        let excess = |mixture: &Self, epsilon: f64| {
            let point = mixture.log_curve(epsilon);
            Tangent { value: point.value - target, slope: point.slope }
        };
        // An evaluation of a large mixture is costly: its summary gives a start, and shows that the result is not 0.
        let start = match self.summary() {
            Some(summary) if excess(&summary, 0.0).value > 0.0 => {
                least_safe(0.0, largest, largest, |epsilon| excess(&summary, epsilon)).min(largest)
            }
            _ if excess(self, 0.0).value <= 0.0 => return 0.0,
            _ => largest,
        };
        least_safe(0.0, start, largest, |epsilon| excess(self, epsilon))
    }

    /// Returns a mixture in which runs of adjacent components are replaced by their means: close to the mixture, but not a bound.
    /// The start of a search for a large mixture.
    fn summary(&self) -> Option<Self> {
        let run = self.components.len() / SUMMARY_SIZE;
        (run > 1).then(|| {
            let mean = |part: &[(f64, f64)]| {
                let weight: f64 = part.iter().map(|component| component.1).sum();
                (part.iter().map(|&(mu, weight)| mu * weight).sum::<f64>() / weight, weight)
            };
            Self { components: self.components.chunks(run).map(mean).collect() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sensitivities_are_one_gaussian() {
        let mixture = GaussianMixture::new(2.0, &[1.0, 1.0, 1.0], &[0.25, 0.25, 0.5]).unwrap();
        assert_eq!(mixture.components(), [(0.5, 1.0)]);
        let delta = Delta::new(1e-6).unwrap();
        assert_eq!(mixture.epsilon(delta).unwrap(), gaussian::epsilon(0.5, delta).unwrap());
    }

    #[test]
    fn delta_is_the_weighted_sum() {
        let mixture = GaussianMixture::new(1.0, &[0.5, 2.0, 0.0], &[0.5, 0.3, 0.2]).unwrap();
        for epsilon in [0.0, 0.3, 1.0, 5.0] {
            let expected = 0.5 * gaussian::delta(0.5, epsilon).unwrap() + 0.3 * gaussian::delta(2.0, epsilon).unwrap();
            let got = mixture.delta(epsilon);
            assert!(got >= expected * (1.0 - 1e-15) && got <= expected * (1.0 + 1e-13), "{epsilon}: {got} {expected}");
        }
    }

    #[test]
    fn epsilon_meets_delta_and_is_tight() {
        let sensitivities: Vec<f64> = (1..=500).map(|i| f64::from(i) / 500.0).collect();
        let mixture = GaussianMixture::new(1.0, &sensitivities, &[1.0 / 500.0; 500]).unwrap();
        for delta in [0.3, 0.05, 1e-3, 1e-9, 1e-30, 1e-290] {
            let epsilon = mixture.epsilon(Delta::new(delta).unwrap()).unwrap();
            assert!(mixture.delta(epsilon) <= delta);
            assert!(epsilon == 0.0 || mixture.delta(epsilon * (1.0 - 1e-11)) > delta, "delta = {delta}");
            assert!(epsilon <= gaussian::epsilon(1.0, Delta::new(delta).unwrap()).unwrap());
        }
    }

    #[test]
    fn bad_numbers_are_refused() {
        for (std_dev, sensitivities, weights) in [
            (0.0, vec![1.0], vec![1.0]),
            (f64::NAN, vec![1.0], vec![1.0]),
            (1.0, vec![1.0, 2.0], vec![1.0]),
            (1.0, vec![], vec![]),
            (1.0, vec![-1.0], vec![1.0]),
            (1.0, vec![1.0, 1.0], vec![1.5, -0.5]),
            (1.0, vec![1.0], vec![0.9]),
            (1.0, vec![1.0], vec![f64::NAN]),
            (1.0, vec![f64::INFINITY], vec![1.0]),
        ] {
            assert!(GaussianMixture::new(std_dev, &sensitivities, &weights).is_err());
        }
    }
}
