//! RankNet and LambdaRank: baselines without privacy.

use super::{LossBuffers, RankingLoss, check_lengths};

/// The logistic loss of every pair of documents with different grades.
///
/// # Formula
/// ```text
/// L = Σ_{y_i > y_j} log(1 + exp(s_j - s_i))
/// ```
///
/// A non-private baseline: not a [`ListLoss`](super::ListLoss).
///
/// # Examples
/// ```
/// use dp_rank::loss::{RankNet, RankingLoss};
/// let mut gradient = [0.0; 3];
/// let loss = RankNet.evaluate(&[0.0; 3], &[2, 1, 1], &mut Default::default(), &mut gradient);
/// assert!((loss - 2.0 * 2.0_f64.ln()).abs() < 1e-15);
/// assert_eq!(gradient, [-1.0, 0.5, 0.5]);
/// ```
///
/// # References
/// C. Burges et al. 2005, "Learning to rank using gradient descent".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankNet;

impl RankingLoss for RankNet {
    fn evaluate(&self, scores: &[f64], grades: &[u32], _: &mut LossBuffers, gradient: &mut [f64]) -> f64 {
        check_lengths(scores, grades, gradient);
        pairs(scores, grades, gradient, |_, _| 1.0)
    }
}

/// The logistic loss of RankNet's pairs, each weighted by the change in NDCG (of the whole list) if the two are swapped.
///
/// # Formula
/// ```text
/// L = Σ_{y_i > y_j} |ΔNDCG_ij| log(1 + exp(s_j - s_i))
/// |ΔNDCG_ij| = |2^y_i - 2^y_j| |1/log2(1 + r_i) - 1/log2(1 + r_j)| / ideal DCG
/// ```
/// with `r` the positions by score (ties in the given order). As in the original method, the weights count as constants in the
/// gradient, which is therefore not the derivative of `L` where the ranking changes.
///
/// A non-private baseline: not a [`ListLoss`](super::ListLoss).
///
/// # Examples
/// ```
/// use dp_rank::loss::{LambdaRank, RankingLoss};
/// let mut gradient = [0.0; 2];
/// LambdaRank.evaluate(&[0.0, 0.0], &[0, 1], &mut Default::default(), &mut gradient);
/// let weight = 1.0 - 1.0 / 3.0_f64.log2();
/// assert!((gradient[0] - 0.5 * weight).abs() < 1e-15 && gradient[1] == -gradient[0]);
/// ```
///
/// # References
/// C. Burges, R. Ragno and Q. Le 2006; C. Burges 2010, "From RankNet to LambdaRank to LambdaMART: an overview",
/// section 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LambdaRank;

impl RankingLoss for LambdaRank {
    fn evaluate(&self, scores: &[f64], grades: &[u32], buffers: &mut LossBuffers, gradient: &mut [f64]) -> f64 {
        check_lengths(scores, grades, gradient);
        let n = scores.len();
        let LossBuffers { weights: discounts, targets: ideal, order, .. } = buffers;
        order.clear();
        order.extend(0..n);
        order.sort_by(|&a, &b| (scores[b] + 0.0).total_cmp(&(scores[a] + 0.0)));
        discounts.resize(n, 0.0);
        for (position, &document) in order.iter().enumerate() {
            discounts[document] = discount(position);
        }
        let gain = |document: usize| f64::from(grades[document]).exp2();
        ideal.clear();
        ideal.extend((0..n).map(|document| gain(document) - 1.0));
        ideal.sort_by(|a, b| b.total_cmp(a));
        let ideal: f64 = ideal.iter().enumerate().map(|(position, gain)| gain * discount(position)).sum();
        if ideal == 0.0 {
            gradient.fill(0.0);
            return 0.0;
        }
        pairs(scores, grades, gradient, |i, j| (gain(i) - gain(j)) * (discounts[i] - discounts[j]).abs() / ideal)
    }
}

/// Returns `1 / log2(i + 1)` for the position `i` counted from 1; `index` counts from 0.
fn discount(index: usize) -> f64 {
    ((index + 2) as f64).log2().recip()
}

/// Returns the weighted logistic loss of all pairs whose first document has the larger grade.
fn pairs(scores: &[f64], grades: &[u32], gradient: &mut [f64], weight: impl Fn(usize, usize) -> f64) -> f64 {
    gradient.fill(0.0);
    let mut loss = 0.0;
    for i in 0..scores.len() {
        for j in 0..scores.len() {
            if grades[i] > grades[j] {
                let weight = weight(i, j);
                let margin = scores[i] - scores[j];
                // log(1 + e^-m) and 1 / (1 + e^m), from e^-|m|.
                let small = (-margin.abs()).exp();
                loss += weight * (small.ln_1p() + (-margin).max(0.0));
                let slope = if margin > 0.0 { small } else { 1.0 } / (1.0 + small);
                gradient[i] -= weight * slope;
                gradient[j] += weight * slope;
            }
        }
    }
    loss
}
