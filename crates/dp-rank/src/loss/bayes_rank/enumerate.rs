//! The expected gain by enumeration of all prefixes.

use super::discount;
use crate::loss::LossBuffers;

/// Weights are recomputed if their sum falls below this, to avoid underflow after the best documents are taken.
const LEAST_SUM: f64 = 1e-250;

pub(super) fn expected_gain(
    scores: &[f64],
    coefficients: &[f64],
    k: usize,
    buffers: &mut LossBuffers,
    gradient: &mut [f64],
) -> f64 {
    let n = scores.len();
    let LossBuffers { levels, taken, .. } = buffers;
    levels.resize(2 * n * k, 0.0);
    taken.clear();
    taken.resize(n, false);
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (weight, score) in levels.iter_mut().zip(scores) {
        *weight = (score - largest).exp();
    }
    Walk { scores, coefficients, k }.from(0, 1.0, taken, levels, gradient)
}

struct Walk<'a> {
    scores: &'a [f64],
    coefficients: &'a [f64],
    k: usize,
}

impl Walk<'_> {
    /// Returns the expected gain of the positions from `step` on, given the taken documents, and adds `probability` times its
    /// gradient. The first `n` numbers of `levels` are weights `∝ exp(score)`, 0 for taken documents.
    fn from(&self, step: usize, probability: f64, taken: &mut [bool], levels: &mut [f64], gradient: &mut [f64]) -> f64 {
        let n = self.scores.len();
        let (level, deeper) = levels.split_at_mut(2 * n);
        let (weights, gains) = level.split_at_mut(n);
        let mut sum: f64 = weights.iter().sum();
        if sum < LEAST_SUM {
            sum = self.weigh_afresh(taken, weights);
        }
        let discount = discount(step);
        for (gain, c) in gains.iter_mut().zip(self.coefficients) {
            *gain = discount * c;
        }
        if step + 1 < self.k {
            for j in 0..n {
                let reached = probability * (weights[j] / sum);
                if reached > 0.0 {
                    deeper[..n].copy_from_slice(weights);
                    deeper[j] = 0.0;
                    taken[j] = true;
                    gains[j] += self.from(step + 1, reached, taken, deeper, gradient);
                    taken[j] = false;
                }
            }
        }
        let mean = weights.iter().zip(gains.iter()).map(|(w, q)| w * q).sum::<f64>() / sum;
        let scale = probability / sum;
        for ((g, w), q) in gradient.iter_mut().zip(weights.iter()).zip(gains.iter()) {
            *g += scale * w * (q - mean);
        }
        mean
    }

    /// Computes weights relative to the best remaining document.
    fn weigh_afresh(&self, taken: &[bool], weights: &mut [f64]) -> f64 {
        let left = || self.scores.iter().zip(taken).filter(|(_, taken)| !**taken).map(|(score, _)| *score);
        let largest = left().fold(f64::NEG_INFINITY, f64::max);
        for ((weight, score), taken) in weights.iter_mut().zip(self.scores).zip(taken) {
            *weight = if *taken { 0.0 } else { (score - largest).exp() };
        }
        weights.iter().sum()
    }
}
