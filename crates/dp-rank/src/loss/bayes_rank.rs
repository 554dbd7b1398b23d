//! BayesRank: the expected NDCG of a ranking drawn from Plackett–Luce.

mod enumerate;
mod race;

use super::{ListLoss, LossBuffers, RankingLoss, check_lengths};
use crate::error::Error;
use crate::metrics::{Cutoff, dcg_of_sorted, gain, standard_discount};
use crate::plackett_luce::{prefixes, softmax};
use crate::sensitivity::{Contributions, Gram, ImageBounds};

/// The negative expected NDCG@k of a ranking drawn from the Plackett–Luce model of the scores.
///
/// # Formula
/// ```text
/// L = - Σ_(prefixes π of length k) NDCG@k(π, y) P(π | s)
///   = - Σ_i c_i Σ_{t <= k} M_{t,i} / log2(t + 1),   c_i = (2^y_i - 1) / ideal DCG@k
/// ```
/// with `M_{t,i}` the probability that document `i` is at position `t`; these marginals suffice because DCG is a sum over
/// positions. With `V = -L`, the gradient is a policy gradient: at each step `∂V/∂s_j` gains
/// `P(history) p_j (Q_j - Σ_l p_l Q_l)`, `Q_j` the expected gain of choosing `j` and continuing. For lists shorter than `k`, `k`
/// is the length. A list whose grades are all 0 has loss and gradient 0.
///
/// # Accuracy and cost
/// k = 1 has a closed form, `O(n)`: `g_i = -p_i (c_i - Σ_j p_j c_j)`. For larger k, all prefixes are enumerated while that is
/// cheaper than the alternative (k = 2 costs `O(n²)`, k = 3 `O(n³)`). Otherwise the marginals are integrals over the finishing
/// times of an exponential race, computed by a trapezoidal rule of some 400 nodes with error below 1e-11, at `O(400 n k)`.
/// Nothing is sampled.
///
/// # Examples
/// ```
/// use dp_rank::loss::{BayesRank, RankingLoss};
/// let mut gradient = [0.0; 2];
/// let loss = BayesRank::TOP_1.evaluate(&[0.0, 0.0], &[2, 1], &mut Default::default(), &mut gradient);
/// assert!((loss + 0.5 * (1.0 + 1.0 / 3.0)).abs() < 1e-15);
/// assert!((gradient[0] + 1.0 / 6.0).abs() < 1e-15);
/// ```
///
/// # References
/// J.-W. Kuo, P.-J. Cheng and H.-M. Wang 2009, "Learning to rank from Bayesian decision inference" (BayesRank);
/// E. Yellott 1977 (the race).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BayesRank {
    k: usize,
}

impl BayesRank {
    /// The expected NDCG at the first position.
    pub const TOP_1: Self = Self { k: 1 };

    /// Returns the loss for the expected NDCG at `k`.
    pub fn new(k: Cutoff) -> Self {
        Self { k: k.get() }
    }

    /// Returns the number of positions.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Computes this loss's coefficients of the grades, `c_i = (2^y_i - 1) / ideal DCG@k`, all 0 if all grades are 0.
    ///
    /// Every `c_i` lies in `[0, 1]`, and for k = 1 every 0/1 vector is attained by some grades.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn coefficients(&self, grades: &[u32], out: &mut [f64]) {
        assert_eq!(grades.len(), out.len(), "one number per document");
        for (c, &grade) in out.iter_mut().zip(grades) {
            *c = gain(grade);
        }
        let ideal = if self.k == 1 {
            out.iter().copied().fold(0.0, f64::max)
        } else {
            let mut sorted = grades.to_vec();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            dcg_of_sorted(&sorted, self.k)
        };
        if ideal > 0.0 {
            out.iter_mut().for_each(|c| *c = (*c / ideal).min(1.0));
        }
    }

    /// Returns `V = Σ_i c_i Σ_{t <= k} M_{t,i} / log2(t + 1)` for any coefficients, and writes its gradient with respect to the
    /// scores to `gradient`. Both are linear in `coefficients`; the loss is `-V` at [`coefficients`](Self::coefficients).
    ///
    /// # Panics
    /// If the lengths differ or there is no document.
    pub fn expected_gain(
        &self,
        scores: &[f64],
        coefficients: &[f64],
        buffers: &mut LossBuffers,
        gradient: &mut [f64],
    ) -> f64 {
        let n = scores.len();
        assert!(n > 0, "a list has documents");
        assert_eq!((coefficients.len(), gradient.len()), (n, n), "one number per document");
        let k = self.k.min(n);
        if k == 1 {
            return top_1(scores, coefficients, gradient);
        }
        gradient.fill(0.0);
        if prefixes(n, k) <= race::COST_PER_DOCUMENT_AND_POSITION * (n * k) as f64 {
            enumerate::expected_gain(scores, coefficients, k, buffers, gradient)
        } else {
            race::expected_gain(scores, coefficients, k, buffers, gradient)
        }
    }
}

fn top_1(scores: &[f64], coefficients: &[f64], gradient: &mut [f64]) -> f64 {
    softmax(scores, gradient);
    let mean: f64 = gradient.iter().zip(coefficients).map(|(p, c)| p * c).sum();
    for (g, c) in gradient.iter_mut().zip(coefficients) {
        *g *= c - mean;
    }
    mean
}

impl RankingLoss for BayesRank {
    fn evaluate(&self, scores: &[f64], grades: &[u32], buffers: &mut LossBuffers, gradient: &mut [f64]) -> f64 {
        check_lengths(scores, grades, gradient);
        let mut coefficients = core::mem::take(&mut buffers.targets);
        coefficients.resize(grades.len(), 0.0);
        self.coefficients(grades, &mut coefficients);
        let value = self.expected_gain(scores, &coefficients, buffers, gradient);
        buffers.targets = coefficients;
        // Subtracted, so that a list without relevant documents has loss 0 and not -0.
        gradient.iter_mut().for_each(|g| *g = 0.0 - *g);
        0.0 - value
    }
}

impl ListLoss for BayesRank {
    /// Returns 1, above the default: the gradients are those of probabilities, which are short while scores are nearly equal.
    fn usual_step(&self) -> f64 {
        1.0
    }

    fn has_known_image(&self) -> bool {
        true
    }

    /// Uses [`Contributions`]: the gradient is `-Σ_i c_i v_i` with `c ∈ [0,1]^n`; if thinned, at most one entry of `c` is
    /// nonzero.
    fn image(&self, scores: &[f64], gram: &Gram<'_>, thinned: bool) -> Result<ImageBounds, Error> {
        let list = Contributions::new(*self, scores, gram)?;
        Ok(if thinned { list.thinned_bounds() } else { list.bounds() })
    }
}

/// Returns `1 / log2(t + 1)` for the position `t`; `index` is `t` counted from 0.
fn discount(index: usize) -> f64 {
    standard_discount(index + 1)
}

#[cfg(test)]
mod tests;
