//! ListNet: the cross entropy of top-k probabilities.

use super::{ListLoss, LossBuffers, RankingLoss, check_lengths};
use crate::metrics::Cutoff;
use crate::plackett_luce::softmax;

/// The cross entropy between the Plackett–Luce probabilities of the grades and those of the scores, over the first `k` positions.
///
/// # Formula
/// ```text
/// k = 1:  L = - Σ_i q_i log p_i,   g = p - q,   p = softmax(s),  q = softmax(y)
/// any k:  L = - Σ_(prefixes π of length k) P_y(π) log P_s(π)
/// ```
/// The raw grades enter the softmax: `q` is not one-hot. For `k > 1` the sum is computed step by step, at the cost of
/// `n!/(n-k+1)!` softmaxes: k = 2 is fast, k = 3 is feasible for lists of up to a few hundred documents.
///
/// # Examples
/// ```
/// use dp_rank::loss::{ListNet, RankingLoss};
/// let mut gradient = [0.0; 2];
/// let loss = ListNet::TOP_1.evaluate(&[0.0, 0.0], &[1, 1], &mut Default::default(), &mut gradient);
/// assert!((loss - 2.0_f64.ln()).abs() < 1e-15);
/// assert_eq!(gradient, [0.0, 0.0]);
/// ```
///
/// # References
/// Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai and H. Li 2007, "Learning to rank: from pairwise approach to listwise
/// approach".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListNet {
    k: Option<Cutoff>,
}

impl ListNet {
    /// The usual ListNet, for the first position.
    pub const TOP_1: Self = Self { k: None };

    /// Returns ListNet for the first `k` positions (all positions of shorter lists).
    pub fn new(k: Cutoff) -> Self {
        Self { k: Some(k).filter(|k| k.get() > 1) }
    }

    /// Returns the number of positions.
    pub fn k(&self) -> usize {
        self.k.map_or(1, Cutoff::get)
    }
}

impl RankingLoss for ListNet {
    fn evaluate(&self, scores: &[f64], grades: &[u32], buffers: &mut LossBuffers, gradient: &mut [f64]) -> f64 {
        check_lengths(scores, grades, gradient);
        let n = scores.len();
        let LossBuffers { targets, levels, taken, .. } = buffers;
        targets.clear();
        targets.extend(grades.iter().map(|&grade| f64::from(grade)));
        let depth = self.k().min(n);
        levels.resize(2 * n * depth, 0.0);
        if depth == 1 {
            let (p, q) = levels.split_at_mut(n);
            let normaliser = softmax(scores, p);
            softmax(targets, q);
            for ((g, p), q) in gradient.iter_mut().zip(p.iter()).zip(q.iter()) {
                *g = p - q;
            }
            return q.iter().zip(scores).map(|(q, score)| q * (normaliser - score)).sum();
        }
        gradient.fill(0.0);
        taken.clear();
        taken.resize(n, false);
        Steps { scores, targets, depth }.from(0, 1.0, taken, levels, gradient)
    }
}

/// The current list, for an enumeration of prefixes.
struct Steps<'a> {
    scores: &'a [f64],
    targets: &'a [f64],
    depth: usize,
}

impl Steps<'_> {
    /// Returns `weight` times the expected cross entropy of the steps from `step` on, given the taken documents; adds the
    /// gradient.
    fn from(&self, step: usize, weight: f64, taken: &mut [bool], levels: &mut [f64], gradient: &mut [f64]) -> f64 {
        let n = self.scores.len();
        let (level, deeper) = levels.split_at_mut(2 * n);
        let (p, q) = level.split_at_mut(n);
        let normaliser = softmax_of_left(self.scores, taken, p);
        softmax_of_left(self.targets, taken, q);
        let mut loss = 0.0;
        for i in (0..n).filter(|&i| !taken[i]) {
            gradient[i] += weight * (p[i] - q[i]);
            loss += q[i] * (normaliser - self.scores[i]);
        }
        loss *= weight;
        if step + 1 < self.depth {
            for i in 0..n {
                if !taken[i] && q[i] > 0.0 {
                    taken[i] = true;
                    loss += self.from(step + 1, weight * q[i], taken, deeper, gradient);
                    taken[i] = false;
                }
            }
        }
        loss
    }
}

/// Computes the softmax over the remaining documents and returns its log normaliser.
fn softmax_of_left(scores: &[f64], taken: &[bool], out: &mut [f64]) -> f64 {
    let left = || scores.iter().zip(taken).filter(|(_, taken)| !**taken).map(|(score, _)| *score);
    let largest = left().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for ((out, score), taken) in out.iter_mut().zip(scores).zip(taken) {
        *out = if *taken { 0.0 } else { (score - largest).exp() };
        sum += *out;
    }
    out.iter_mut().for_each(|out| *out /= sum);
    largest + sum.ln()
}

impl ListLoss for ListNet {
    /// Returns true: the public centre is the gradient at equal grades; for k = 1 that is `p - 1/n`.
    fn has_public_centre(&self) -> bool {
        true
    }

    fn public_centre(&self, scores: &[f64], buffers: &mut LossBuffers, centre: &mut [f64]) {
        let equal = vec![0; scores.len()];
        self.evaluate(scores, &equal, buffers, centre);
    }
}
