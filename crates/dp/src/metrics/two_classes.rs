//! Metrics of two classes: accuracy, area under the ROC curve, logistic loss.

use dp_data::memory::{OutOfMemory, reserve};
use serde::Serialize;

use super::TwoByTwo;

/// Scores of a linear classifier with the true classes.
///
/// The predicted class is positive if the score is greater than the threshold, 0 by default.
#[derive(Debug, Clone, Default)]
pub struct ScoredLabels {
    pub(super) threshold: f64,
    pub(super) scores: Vec<(f64, bool)>,
}

/// Metrics of a binary classification.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Metrics {
    /// Number of records.
    #[serde(skip)]
    pub n: u64,
    /// Share of records that are classified correctly.
    pub accuracy: f64,
    /// Mean of the true-positive and the true-negative rate; absent if all records are of one class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balanced_accuracy: Option<f64>,
    /// Share of the positive records that are classified as positive; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_positive_rate: Option<f64>,
    /// Share of the negative records that are classified as negative; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_negative_rate: Option<f64>,
    /// Area under the ROC curve; absent if all records are of one class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Mean logistic loss, with the score as log-odds.
    #[serde(skip)]
    pub log_loss: f64,
    /// Numbers of records by true and by predicted class.
    pub confusion: TwoByTwo,
}

impl ScoredLabels {
    /// Creates an empty list of scores that are compared with `threshold`.
    pub fn at(threshold: f64) -> Self {
        Self { threshold, scores: Vec::new() }
    }

    /// Adds one record.
    ///
    /// # Errors
    /// [`OutOfMemory`]: the area needs all scores at once.
    pub fn push(&mut self, score: f64, positive: bool) -> Result<(), OutOfMemory> {
        reserve(&mut self.scores, 1, "the scores of the records")?;
        self.scores.push((score, positive));
        Ok(())
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Returns all metrics, or `None` without records. Sorts the scores.
    ///
    /// # Formula
    /// ```text
    /// accuracy = #{i : (s_i > t) = y_i} / n,                       t the threshold
    /// auc      = (sum of ranks of positives - P(P+1)/2) / (P N),   tied scores share their mean rank
    /// log_loss = (1/n) Σ log(1 + exp(-±s_i)),                      + for positives
    /// ```
    /// The AUC is the Mann-Whitney statistic: the probability that a random positive outranks a random negative, with ties
    /// counted as one half (Hanley & McNeil 1982).
    pub fn metrics(&mut self) -> Option<Metrics> {
        if self.scores.is_empty() {
            return None;
        }
        let n = self.scores.len();
        let confusion = self.at_threshold(self.threshold);
        let loss: f64 =
            self.scores.iter().map(|&(score, positive)| softplus(if positive { -score } else { score })).sum();
        let rates = (confusion.true_positive_rate(), confusion.true_negative_rate());
        Some(Metrics {
            n: n as u64,
            accuracy: confusion.accuracy()?,
            balanced_accuracy: rates.0.zip(rates.1).map(|(positive, negative)| 0.5 * (positive + negative)),
            true_positive_rate: rates.0,
            true_negative_rate: rates.1,
            confusion,
            auc: self.auc(),
            log_loss: loss / n as f64,
        })
    }

    /// Sorts by the score.
    pub(super) fn sort(&mut self) {
        // Adding +0.0 merges the two zeros, which `total_cmp` distinguishes.
        self.scores.sort_unstable_by(|a, b| (a.0 + 0.0).total_cmp(&(b.0 + 0.0)));
    }

    fn auc(&mut self) -> Option<f64> {
        let positives = self.scores.iter().filter(|(_, positive)| *positive).count();
        let negatives = self.scores.len() - positives;
        if positives == 0 || negatives == 0 {
            return None;
        }
        self.sort();
        let mut rank_sum = 0.0;
        let mut start = 0;
        for tied in self.scores.chunk_by(|a, b| a.0 == b.0) {
            let mean_rank = start as f64 + (tied.len() as f64 + 1.0) / 2.0;
            rank_sum += mean_rank * tied.iter().filter(|(_, positive)| *positive).count() as f64;
            start += tied.len();
        }
        let (positives, negatives) = (positives as f64, negatives as f64);
        Some((rank_sum - positives * (positives + 1.0) / 2.0) / (positives * negatives))
    }
}

/// Computes `log(1 + exp(x))` without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(pairs: &[(f64, bool)]) -> ScoredLabels {
        ScoredLabels { threshold: 0.0, scores: pairs.to_vec() }
    }

    /// Computes the AUC by its definition, over all pairs.
    fn auc_by_pairs(pairs: &[(f64, bool)]) -> f64 {
        let (mut wins, mut total) = (0.0, 0.0);
        for (positive, _) in pairs.iter().filter(|pair| pair.1) {
            for (negative, _) in pairs.iter().filter(|pair| !pair.1) {
                total += 1.0;
                wins += if positive > negative {
                    1.0
                } else if positive == negative {
                    0.5
                } else {
                    0.0
                };
            }
        }
        wins / total
    }

    #[test]
    fn hand_values() {
        // Positives 0.5, 0, -1 against negatives -2, 0: wins 1 + 1, 1 + 1/2, 1 + 0 of 6.
        let mut labels = scored(&[(0.5, true), (0.0, true), (-1.0, true), (-2.0, false), (0.0, false)]);
        let metrics = labels.metrics().unwrap();
        assert_eq!(metrics.n, 5);
        assert_eq!(metrics.accuracy, 3.0 / 5.0);
        assert_eq!((metrics.true_positive_rate, metrics.true_negative_rate), (Some(1.0 / 3.0), Some(1.0)));
        assert_eq!(metrics.balanced_accuracy, Some(2.0 / 3.0));
        // One more positive is above -1/2, and so is a negative.
        labels.threshold = -0.5;
        let lower = labels.metrics().unwrap();
        assert_eq!((lower.accuracy, lower.auc), (3.0 / 5.0, metrics.auc));
        assert_eq!((lower.true_positive_rate, lower.true_negative_rate), (Some(2.0 / 3.0), Some(0.5)));
        assert!((metrics.auc.unwrap() - 4.5 / 6.0).abs() < 1e-15);
        let expected = [-0.5f64, 0.0, 1.0, -2.0, 0.0].iter().map(|x| (1.0 + x.exp()).ln()).sum::<f64>() / 5.0;
        assert!((metrics.log_loss - expected).abs() < 1e-15);
    }

    #[test]
    fn ties_agree_with_the_definition() {
        let mut state = 1u64;
        for _ in 0..200 {
            let pairs: Vec<(f64, bool)> = (0..30)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (((state >> 33) % 7) as f64 - 3.0, (state >> 50).is_multiple_of(2))
                })
                .collect();
            let expected = auc_by_pairs(&pairs);
            match scored(&pairs).metrics().unwrap().auc {
                Some(auc) => assert!((auc - expected).abs() < 1e-12, "{auc} {expected}"),
                None => assert!(expected.is_nan()),
            }
        }
    }

    #[test]
    fn zero_and_minus_zero_tie() {
        assert_eq!(scored(&[(-0.0, true), (0.0, false)]).metrics().unwrap().auc, Some(0.5));
    }

    #[test]
    fn one_class_has_no_auc_and_nothing_has_no_metrics() {
        assert_eq!(scored(&[(1.0, true), (2.0, true)]).metrics().unwrap().auc, None);
        assert_eq!(scored(&[]).metrics(), None);
    }

    #[test]
    fn loss_is_finite_far_out() {
        let metrics = scored(&[(-1e300, true), (1e300, true)]).metrics().unwrap();
        assert_eq!(metrics.log_loss, 0.5e300);
    }
}
