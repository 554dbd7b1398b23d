//! Errors of numeric predictions.

use dp_data::schema::LabelRange;

/// Accumulated numeric predictions and their true values, both as targets in `[-1, 1]`.
///
/// # Formula
/// ```text
/// u = (max - min) / 2 of the label's range, e_i = clamp(prediction_i, -1, 1) - target_i
/// rmse = u sqrt((1/n) Σ e_i²)      mae = u (1/n) Σ |e_i|      r2 = 1 - Σ e_i² / Σ (target_i - mean)²
/// ```
#[derive(Debug, Clone)]
pub struct PredictedNumbers {
    range: LabelRange,
    n: u64,
    squared: f64,
    absolute: f64,
    mean: f64,
    spread: f64,
}

/// Metrics of numeric predictions.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct NumberMetrics {
    /// Root mean squared error, in the label's unit.
    pub rmse: f64,
    /// Mean absolute error, in the label's unit.
    pub mae: f64,
    /// Coefficient of determination; absent if all labels are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r2: Option<f64>,
}

impl PredictedNumbers {
    /// Creates empty metrics for a label in `range`.
    pub fn new(range: LabelRange) -> Self {
        Self { range, n: 0, squared: 0.0, absolute: 0.0, mean: 0.0, spread: 0.0 }
    }

    /// Adds one record.
    pub fn push(&mut self, prediction: f64, target: f64) {
        let error = prediction.clamp(-1.0, 1.0) - target;
        self.n += 1;
        self.squared += error * error;
        self.absolute += error.abs();
        // Welford's update: the sum of squared deviations from the mean without cancellation.
        let from_mean = target - self.mean;
        self.mean += from_mean / self.n as f64;
        self.spread += from_mean * (target - self.mean);
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Returns all metrics, or `None` without records.
    pub fn metrics(&self) -> Option<NumberMetrics> {
        let (n, unit) = (self.n as f64, self.range.unit());
        (self.n > 0).then(|| NumberMetrics {
            rmse: unit * (self.squared / n).sqrt(),
            mae: unit * (self.absolute / n),
            r2: (self.spread > 0.0).then(|| 1.0 - self.squared / self.spread),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: LabelRange = LabelRange { min: 0.0, max: 20.0 };

    fn measured(pairs: &[(f64, f64)]) -> Option<NumberMetrics> {
        let mut predicted = PredictedNumbers::new(RANGE);
        for &(prediction, value) in pairs {
            predicted.push(prediction / 10.0 - 1.0, RANGE.target(value));
        }
        predicted.metrics()
    }

    #[test]
    fn hand_values() {
        // Errors 1, -2, 0 and 4 (the prediction 30 is clamped to 20); the labels' mean is 10, their squared deviations sum to
        // 128.
        let metrics = measured(&[(3.0, 2.0), (6.0, 8.0), (14.0, 14.0), (30.0, 16.0)]).unwrap();
        assert!((metrics.rmse - (21.0f64 / 4.0).sqrt()).abs() < 1e-12, "{metrics:?}");
        assert!((metrics.mae - 7.0 / 4.0).abs() < 1e-12);
        let spread = [2.0f64, 8.0, 14.0, 16.0].iter().map(|value| (value - 10.0).powi(2)).sum::<f64>();
        assert!((metrics.r2.unwrap() - (1.0 - 21.0 / spread)).abs() < 1e-12);
    }

    #[test]
    fn the_mean_explains_nothing_and_a_constant_has_no_share() {
        let metrics = measured(&[(5.0, 2.0), (5.0, 8.0)]).unwrap();
        assert!(metrics.r2.unwrap().abs() < 1e-12);
        assert_eq!(measured(&[(5.0, 2.0), (5.0, 2.0)]).unwrap().r2, None);
        assert_eq!(measured(&[]), None);
    }
}
