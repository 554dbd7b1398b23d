//! Curves of two classes over all thresholds: ROC, precision and recall, calibration; and the rates at given thresholds.

use serde::Serialize;

use super::ScoredLabels;

/// A point of a curve is omitted if both rates differ by less than one over this from the point before.
const RESOLUTION: f64 = 200.0;
/// Number of groups of a calibration curve.
const GROUPS: usize = 10;

/// The numbers of records by true and by predicted class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TwoByTwo {
    /// Positive records that are classified as positive.
    pub true_positives: u64,
    /// Positive records that are classified as negative.
    pub false_negatives: u64,
    /// Negative records that are classified as positive.
    pub false_positives: u64,
    /// Negative records that are classified as negative.
    pub true_negatives: u64,
}

impl TwoByTwo {
    fn positives(&self) -> u64 {
        self.true_positives + self.false_negatives
    }

    fn negatives(&self) -> u64 {
        self.false_positives + self.true_negatives
    }

    /// Returns the share of records that are classified correctly; `None` without records.
    pub fn accuracy(&self) -> Option<f64> {
        share(self.true_positives + self.true_negatives, self.positives() + self.negatives())
    }

    /// Returns the share of the positive records that are classified as positive, the recall; `None` without positive records.
    pub fn true_positive_rate(&self) -> Option<f64> {
        share(self.true_positives, self.positives())
    }

    /// Returns the share of the negative records that are classified as negative; `None` without negative records.
    pub fn true_negative_rate(&self) -> Option<f64> {
        share(self.true_negatives, self.negatives())
    }

    /// Returns the share of the negative records that are classified as positive; `None` without negative records.
    pub fn false_positive_rate(&self) -> Option<f64> {
        share(self.false_positives, self.negatives())
    }

    /// Returns the share of positive records among those classified as positive; `None` if no record is.
    pub fn precision(&self) -> Option<f64> {
        share(self.true_positives, self.true_positives + self.false_positives)
    }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// Rates at a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AtThreshold {
    /// The threshold: a probability if the scores are logits, otherwise a score.
    pub threshold: f64,
    /// Share of records that are classified as positive.
    pub positive_share: f64,
    /// Share of records that are classified correctly.
    pub accuracy: f64,
    /// Share of the positive records that are classified as positive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_positive_rate: Option<f64>,
    /// Share of the negative records that are classified as positive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_positive_rate: Option<f64>,
    /// Share of positive records among those classified as positive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
}

impl AtThreshold {
    /// Computes the rates.
    pub(super) fn new(threshold: f64, counts: &TwoByTwo) -> Self {
        let n = counts.positives() + counts.negatives();
        Self {
            threshold,
            positive_share: share(counts.true_positives + counts.false_positives, n).unwrap_or_default(),
            accuracy: counts.accuracy().unwrap_or_default(),
            true_positive_rate: counts.true_positive_rate(),
            false_positive_rate: counts.false_positive_rate(),
            precision: counts.precision(),
        }
    }
}

/// A point of the ROC curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Share of the negative records that are classified as positive.
    pub false_positive_rate: f64,
    /// Share of the positive records that are classified as positive.
    pub true_positive_rate: f64,
}

/// A point of the precision-recall curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PrecisionRecall {
    /// Share of the positive records that are classified as positive.
    pub recall: f64,
    /// Share of positive records among those classified as positive.
    pub precision: f64,
}

/// Records with similar predicted probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibrated {
    /// Number of records.
    pub records: u64,
    /// Mean of the predicted probabilities.
    pub predicted: f64,
    /// Share of the positive records.
    pub observed: f64,
}

/// Curves over all thresholds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curves {
    /// The ROC curve, from the highest threshold to the lowest: from (0, 0) to (1, 1).
    pub roc: Vec<Rates>,
    /// Precision against recall, from the highest threshold to the lowest.
    pub precision_recall: Vec<PrecisionRecall>,
    /// Observed against predicted probabilities, in ten groups of equal size, ordered by the prediction; absent if the scores
    /// are not logits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Vec<Calibrated>>,
}

impl ScoredLabels {
    /// Counts records by true and by predicted class at `threshold`.
    pub fn at_threshold(&self, threshold: f64) -> TwoByTwo {
        let mut counts = TwoByTwo::default();
        for &(score, positive) in &self.scores {
            *match (positive, score > threshold) {
                (true, true) => &mut counts.true_positives,
                (true, false) => &mut counts.false_negatives,
                (false, true) => &mut counts.false_positives,
                (false, false) => &mut counts.true_negatives,
            } += 1;
        }
        counts
    }

    /// Returns the curves, or `None` if all records are of one class. Sorts the scores.
    ///
    /// Each point of the ROC and precision-recall curves belongs to a threshold. Nothing is interpolated, but points closer
    /// than 1/200 to their neighbours in both rates are omitted.
    pub fn curves(&mut self, scores_are_logits: bool) -> Option<Curves> {
        let all = self.at_threshold(f64::INFINITY);
        let (positives, negatives) = (all.positives(), all.negatives());
        if positives == 0 || negatives == 0 {
            return None;
        }
        self.sort();
        let (mut roc, mut precision_recall) =
            (vec![Rates { false_positive_rate: 0.0, true_positive_rate: 0.0 }], Vec::new());
        let (mut counts, mut seen) = (TwoByTwo::default(), 0);
        let mut last = [0.0; 2];
        for tied in self.scores.chunk_by(|a, b| a.0 == b.0).rev() {
            let above = tied.iter().filter(|(_, positive)| *positive).count() as u64;
            counts.true_positives += above;
            counts.false_positives += tied.len() as u64 - above;
            seen += tied.len();
            let rates =
                [counts.false_positives as f64 / negatives as f64, counts.true_positives as f64 / positives as f64];
            let is_far = rates.iter().zip(&last).any(|(rate, last)| rate - last >= 1.0 / RESOLUTION);
            if is_far || seen == self.scores.len() {
                last = rates;
                roc.push(Rates { false_positive_rate: rates[0], true_positive_rate: rates[1] });
                let precision = counts.precision().unwrap_or_default();
                precision_recall.push(PrecisionRecall { recall: rates[1], precision });
            }
        }
        Some(Curves { roc, precision_recall, calibration: scores_are_logits.then(|| self.calibration()) })
    }

    /// Returns this quantile of the sorted scores.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let position = (share * self.scores.len() as f64).ceil() as usize;
        self.scores.get(position.saturating_sub(1)).map_or(0.0, |(score, _)| *score)
    }

    /// Returns the groups of the sorted scores.
    fn calibration(&self) -> Vec<Calibrated> {
        let n = self.scores.len();
        let groups = (0..GROUPS).map(|group| &self.scores[group * n / GROUPS..(group + 1) * n / GROUPS]);
        let groups = groups.filter(|group| !group.is_empty()).map(|group| {
            let mean = |sum: f64| sum / group.len() as f64;
            Calibrated {
                records: group.len() as u64,
                predicted: mean(group.iter().map(|&(score, _)| probability(score)).sum()),
                observed: mean(group.iter().filter(|(_, positive)| *positive).count() as f64),
            }
        });
        groups.collect()
    }
}

/// Returns the probability with this logit.
pub fn probability(logit: f64) -> f64 {
    if logit >= 0.0 {
        1.0 / (1.0 + (-logit).exp())
    } else {
        let odds = logit.exp();
        odds / (1.0 + odds)
    }
}

/// Returns the logit of a probability, `log(p / (1 - p))`.
pub fn logit(probability: f64) -> f64 {
    probability.ln() - (-probability).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(pairs: &[(f64, bool)]) -> ScoredLabels {
        let mut labels = ScoredLabels::at(0.0);
        pairs.iter().for_each(|&(score, positive)| labels.push(score, positive).unwrap());
        labels
    }

    /// The area under the points, by trapezoids.
    fn area(roc: &[Rates]) -> f64 {
        let trapezoid = |pair: &[Rates]| {
            (pair[1].false_positive_rate - pair[0].false_positive_rate)
                * (pair[1].true_positive_rate + pair[0].true_positive_rate)
                / 2.0
        };
        roc.windows(2).map(trapezoid).sum()
    }

    fn drawn(n: usize) -> Vec<(f64, bool)> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..n)
            .map(|_| {
                let score = 6.0 * next() - 3.0;
                (score, next() < probability(score))
            })
            .collect()
    }

    #[test]
    fn counts_and_rates_by_hand() {
        let labels = scored(&[(0.5, true), (0.0, true), (-1.0, true), (-2.0, false), (0.2, false)]);
        let counts = labels.at_threshold(0.0);
        let expected = TwoByTwo { true_positives: 1, false_negatives: 2, false_positives: 1, true_negatives: 1 };
        assert_eq!(counts, expected);
        let rates = AtThreshold::new(0.5, &counts);
        assert_eq!((rates.positive_share, rates.accuracy), (0.4, 0.4));
        assert_eq!(
            (rates.true_positive_rate, rates.false_positive_rate, rates.precision),
            (Some(1.0 / 3.0), Some(0.5), Some(0.5))
        );
        assert_eq!(AtThreshold::new(0.5, &labels.at_threshold(9.0)).precision, None);
    }

    #[test]
    fn the_roc_curve_encloses_the_area() {
        for n in [2usize, 50, 3000, 50_000] {
            let mut pairs = drawn(n);
            pairs[0].1 = true;
            pairs[1].1 = false;
            // Ties are one point.
            pairs.iter_mut().step_by(3).for_each(|pair| pair.0 = pair.0.round());
            let mut labels = scored(&pairs);
            let curves = labels.curves(true).unwrap();
            let auc = labels.metrics().unwrap().auc.unwrap();
            let tolerance = if n <= 50 { 1e-12 } else { 1e-4 };
            assert!((area(&curves.roc) - auc).abs() < tolerance, "{n}: {} {auc}", area(&curves.roc));
            assert!(curves.roc.len() <= 2 * RESOLUTION as usize + 2);
            let last = curves.roc.last().unwrap();
            assert_eq!((last.false_positive_rate, last.true_positive_rate), (1.0, 1.0));
            assert_eq!(curves.precision_recall.len() + 1, curves.roc.len());
            let positives = pairs.iter().filter(|pair| pair.1).count() as f64;
            assert_eq!(curves.precision_recall.last().unwrap().precision, positives / n as f64);
        }
        assert_eq!(scored(&[(1.0, true)]).curves(true), None);
    }

    /// 50,000 records in ten groups: the observed share has a standard deviation of at most 0.0071; five of them in ten groups
    /// are exceeded with a chance below 1e-5.
    #[test]
    fn drawn_labels_are_calibrated() {
        let mut labels = scored(&drawn(50_000));
        let groups = labels.curves(true).unwrap().calibration.unwrap();
        assert_eq!((groups.len(), groups.iter().map(|group| group.records).sum::<u64>()), (10, 50_000));
        for group in &groups {
            assert!((group.predicted - group.observed).abs() < 0.036, "{group:?}");
        }
        assert!(groups.windows(2).all(|pair| pair[0].predicted < pair[1].predicted));
        assert_eq!(labels.curves(false).unwrap().calibration, None);
    }

    #[test]
    fn probabilities_and_logits_are_inverse() {
        for p in [1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-9] {
            assert!((probability(logit(p)) - p).abs() < 1e-15);
        }
        assert_eq!((probability(-1e300), probability(1e300), logit(0.5)), (0.0, 1.0, 0.0));
    }
}
