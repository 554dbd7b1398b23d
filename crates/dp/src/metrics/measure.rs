//! Metrics for each kind of model.

use dp_data::OutOfMemory;
use serde::Serialize;

use super::{
    AtThreshold, ClassFigures, Confusion, Curves, Metrics, NumberMetrics, PredictedNumbers, ScoredLabels, logit,
    probability,
};
use crate::model::{Model, ModelKind};

/// The metrics for a kind of model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figures {
    /// Metrics of two classes.
    Two {
        /// The threshold of the decision: a probability, or a score if the scores are not logits.
        threshold: f64,
        /// The metrics at this threshold.
        #[serde(flatten)]
        metrics: Metrics,
        /// Mean cross-entropy; absent if the scores are not log-odds.
        #[serde(skip_serializing_if = "Option::is_none")]
        log_loss: Option<f64>,
        /// Rates at other thresholds: at probabilities 0.1 to 0.9, or at the deciles of scores that are not logits.
        thresholds: Vec<AtThreshold>,
        /// Curves over all thresholds; absent if all records are of one class.
        #[serde(skip)]
        curves: Option<Curves>,
    },
    /// Metrics of several classes.
    Several {
        /// Share of records that are classified correctly.
        accuracy: f64,
        /// Mean of the classes' F1 scores.
        macro_f1: f64,
        /// Mean cross-entropy; absent if the scores are not logarithms of probabilities.
        #[serde(skip_serializing_if = "Option::is_none")]
        log_loss: Option<f64>,
        /// Metrics of each class.
        classes: Vec<ClassOutcome>,
        /// The confusion matrix, with a row for each true class and a column for each predicted one; absent for more than 100
        /// classes.
        #[serde(skip_serializing_if = "Option::is_none")]
        confusion: Option<Vec<Vec<u64>>>,
    },
    /// Metrics of a number.
    Number(NumberMetrics),
}

/// Metrics of one class against the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassOutcome {
    /// Its name.
    pub class: String,
    /// Its metrics.
    #[serde(flatten)]
    pub figures: ClassFigures,
}

/// Largest number of classes for which the result contains the confusion matrix.
const MOST_IN_MATRIX: usize = 100;

impl Figures {
    /// Returns the share of correctly classified records, if there are classes.
    pub fn accuracy(&self) -> Option<f64> {
        match self {
            Self::Two { metrics, .. } => Some(metrics.accuracy),
            Self::Several { accuracy, .. } => Some(*accuracy),
            Self::Number(_) => None,
        }
    }
}

/// Returns the rates at nine thresholds.
fn thresholds(labels: &ScoredLabels, scores_are_logits: bool) -> Vec<AtThreshold> {
    let tenths = (1..10).map(|tenth| {
        let (shown, score) = if scores_are_logits {
            let probability = f64::from(tenth) / 10.0;
            (probability, logit(probability))
        } else {
            let score = labels.quantile(f64::from(tenth) / 10.0);
            (score, score)
        };
        AtThreshold::new(shown, &labels.at_threshold(score))
    });
    tenths.collect()
}

/// The metrics of a model, accumulated record by record.
///
/// # Privacy
/// The metrics are functions of the evaluated records. They may be published if those records are public and the guarantee of
/// the model holds.
#[derive(Debug, Clone)]
pub struct Measure {
    gathered: Gathered,
    /// True if scores are logits.
    has_probabilities: bool,
}

#[derive(Debug, Clone)]
enum Gathered {
    Two(ScoredLabels),
    /// With the names of the classes.
    Several(Vec<String>, Confusion),
    Number(PredictedNumbers),
}

impl Measure {
    /// Creates empty metrics.
    pub fn new(model: &Model) -> Self {
        let gathered = match &model.kind {
            ModelKind::LinearClassifier { .. } => Gathered::Two(ScoredLabels::at(model.threshold.unwrap_or_default())),
            ModelKind::MultiClassLinear { classes } => {
                Gathered::Several(classes.clone(), Confusion::new(classes.len()))
            }
            ModelKind::LinearRegression { range } => Gathered::Number(PredictedNumbers::new(*range)),
        };
        Self { gathered, has_probabilities: model.has_probabilities() }
    }

    /// Creates empty metrics of classes with these names, by logits.
    pub fn of_classes(names: Vec<String>) -> Self {
        let confusion = Confusion::new(names.len());
        Self { gathered: Gathered::Several(names, confusion), has_probabilities: true }
    }

    /// Adds a record by its scores. The target is a class's position, a number, or of two classes positive for the positive one.
    ///
    /// # Errors
    /// Memory ran out.
    pub fn push(&mut self, scores: &[f64], target: f64) -> Result<(), OutOfMemory> {
        let score = scores.first().copied().unwrap_or_default();
        match &mut self.gathered {
            Gathered::Two(labels) => labels.push(score, target > 0.0)?,
            Gathered::Several(_, confusion) => confusion.push(scores, target as usize),
            Gathered::Number(predicted) => predicted.push(score, target),
        }
        Ok(())
    }

    /// Returns the number of records and the metrics; `None` without records.
    pub fn finish(self) -> Option<(u64, Figures)> {
        let Self { gathered, has_probabilities } = self;
        match gathered {
            Gathered::Two(mut labels) => labels.metrics().map(|metrics| {
                let curves = labels.curves(has_probabilities);
                let thresholds = thresholds(&labels, has_probabilities);
                let log_loss = has_probabilities.then_some(metrics.log_loss);
                let threshold = if has_probabilities { probability(labels.threshold) } else { labels.threshold };
                (metrics.n, Figures::Two { threshold, metrics, log_loss, thresholds, curves })
            }),
            Gathered::Several(names, confusion) => confusion.metrics().map(|metrics| {
                let classes = names.iter().zip(&metrics.classes);
                let figures = Figures::Several {
                    accuracy: metrics.accuracy,
                    macro_f1: metrics.macro_f1,
                    log_loss: has_probabilities.then_some(metrics.log_loss),
                    classes: classes.map(|(class, &figures)| ClassOutcome { class: class.clone(), figures }).collect(),
                    confusion: (names.len() <= MOST_IN_MATRIX).then(|| confusion.matrix()),
                };
                (confusion.len(), figures)
            }),
            Gathered::Number(predicted) => {
                predicted.metrics().map(|metrics| (predicted.len(), Figures::Number(metrics)))
            }
        }
    }
}
