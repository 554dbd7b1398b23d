//! Classification metrics for several classes.

use std::collections::BTreeMap;

use serde::Serialize;

/// The confusion matrix with the accumulated log loss.
#[derive(Debug, Clone, Default)]
pub struct Confusion {
    classes: usize,
    counts: BTreeMap<(usize, usize), u64>,
    n: u64,
    loss: f64,
}

/// Metrics of a classification into several classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassMetrics {
    /// Share of records that are classified correctly.
    pub accuracy: f64,
    /// Mean of the F1 scores of the classes that have a record or a prediction.
    pub macro_f1: f64,
    /// Mean cross-entropy of the softmax of the scores.
    pub log_loss: f64,
    /// The metrics of each class, in order.
    pub classes: Vec<ClassFigures>,
}

/// Metrics of one class against the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassFigures {
    /// Number of records of the class.
    pub records: u64,
    /// Number of records predicted to be of the class.
    pub predicted: u64,
    /// Share of its records that are classified correctly; absent without records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    /// Share of its predictions that are correct; absent without predictions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Harmonic mean of the two; absent without records and predictions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f1: Option<f64>,
}

impl Confusion {
    /// Creates an empty matrix for this number of classes.
    pub fn new(classes: usize) -> Self {
        Self { classes, ..Self::default() }
    }

    /// Adds a record of class `truth` with its scores, one per class.
    pub fn push(&mut self, scores: &[f64], truth: usize) {
        *self.counts.entry((truth, winner(scores))).or_insert(0) += 1;
        self.n += 1;
        self.loss += scores.get(truth).map_or(f64::NAN, |score| log_sum_exp(scores) - score);
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Returns the counts as a matrix: rows are true classes, columns predicted ones.
    pub fn matrix(&self) -> Vec<Vec<u64>> {
        let mut matrix = vec![vec![0; self.classes]; self.classes];
        for (&(truth, predicted), &count) in &self.counts {
            if let Some(cell) = matrix.get_mut(truth).and_then(|row| row.get_mut(predicted)) {
                *cell = count;
            }
        }
        matrix
    }

    /// Returns all metrics, or `None` without records.
    ///
    /// # Formula
    /// ```text
    /// recall_c = TP_c / records_c     precision_c = TP_c / predicted_c     F1_c = 2 TP_c / (records_c + predicted_c)
    /// log_loss = (1/n) Σ_i (log Σ_c exp(s_ic) - s_iy)
    /// ```
    pub fn metrics(&self) -> Option<ClassMetrics> {
        if self.n == 0 {
            return None;
        }
        let mut totals = vec![(0_u64, 0_u64, 0_u64); self.classes];
        for (&(truth, predicted), &count) in &self.counts {
            if let Some(of_truth) = totals.get_mut(truth) {
                of_truth.0 += count;
            }
            if let Some(of_predicted) = totals.get_mut(predicted) {
                of_predicted.1 += count;
                of_predicted.2 += if truth == predicted { count } else { 0 };
            }
        }
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let classes: Vec<ClassFigures> = totals
            .iter()
            .map(|&(records, predicted, right)| ClassFigures {
                records,
                predicted,
                recall: share(right, records),
                precision: share(right, predicted),
                f1: share(2 * right, records + predicted),
            })
            .collect();
        let f1: Vec<f64> = classes.iter().filter_map(|class| class.f1).collect();
        let right: u64 = totals.iter().map(|total| total.2).sum();
        Some(ClassMetrics {
            accuracy: right as f64 / self.n as f64,
            macro_f1: f1.iter().sum::<f64>() / f1.len() as f64,
            log_loss: self.loss / self.n as f64,
            classes,
        })
    }
}

/// Returns the class of the largest score, the first on ties.
pub fn winner(scores: &[f64]) -> usize {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best
}

/// Converts scores to softmax probabilities, without overflow.
pub fn softmax(scores: &mut [f64]) {
    // Divides by the sum: its logarithm would vanish when subtracted from a large score.
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let total: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= total);
}

/// Computes `log Σ exp(s)` without overflow.
fn log_sum_exp(scores: &[f64]) -> f64 {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + scores.iter().map(|score| (score - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns scores that are 1 for one class and 0 for the others.
    fn one_hot(class: usize) -> [f64; 3] {
        [0, 1, 2].map(|c| if c == class { 1.0 } else { 0.0 })
    }

    #[test]
    fn hand_values() {
        let mut confusion = Confusion::new(3);
        for (truth, predicted) in [(0, 0), (0, 0), (0, 1), (1, 1), (1, 0), (1, 1)] {
            confusion.push(&one_hot(predicted), truth);
        }
        assert_eq!(confusion.matrix(), [[2, 1, 0], [1, 2, 0], [0, 0, 0]]);
        let metrics = confusion.metrics().unwrap();
        assert_eq!(metrics.accuracy, 4.0 / 6.0);
        // The third class has neither record nor prediction and is ignored.
        assert!((metrics.macro_f1 - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!((metrics.classes[0].recall, metrics.classes[0].precision), (Some(2.0 / 3.0), Some(2.0 / 3.0)));
        assert_eq!((metrics.classes[2].recall, metrics.classes[2].f1), (None, None));
        let normaliser = (1f64.exp() + 2.0).ln();
        assert!((metrics.log_loss - (normaliser - 4.0 / 6.0)).abs() < 1e-15);
    }

    #[test]
    fn a_class_that_is_never_right_has_no_precision_but_an_f1() {
        let mut confusion = Confusion::new(3);
        confusion.push(&one_hot(1), 2);
        let metrics = confusion.metrics().unwrap();
        assert_eq!((metrics.classes[2].recall, metrics.classes[2].precision), (Some(0.0), None));
        assert_eq!((metrics.accuracy, metrics.macro_f1), (0.0, 0.0));
        assert_eq!(Confusion::new(3).metrics(), None);
    }

    #[test]
    fn ties_go_to_the_first_and_the_softmax_does_not_overflow() {
        assert_eq!([winner(&[0.0, 2.0, 2.0]), winner(&[-0.0, 0.0]), winner(&[1.0])], [1, 0, 0]);
        let mut scores = [1e300, 1e300, -1e300];
        softmax(&mut scores);
        assert_eq!(scores, [0.5, 0.5, 0.0]);
        let mut small = [0.0, 3f64.ln()];
        softmax(&mut small);
        assert!((small[0] - 0.25).abs() < 1e-15 && (small[1] - 0.75).abs() < 1e-15);
    }
}
