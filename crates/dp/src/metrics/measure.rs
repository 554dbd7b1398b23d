//! The figures that fit what a model predicts.

use dp_data::OutOfMemory;
use serde::Serialize;

use super::{ClassFigures, Confusion, Metrics, NumberMetrics, PredictedNumbers, ScoredLabels};
use crate::model::{Model, ModelKind};

/// The figures that fit what a model predicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figures {
    /// Of two classes.
    Two {
        /// Share of records that are classified rightly.
        accuracy: f64,
        /// Area under the ROC curve; absent where all records are of one class.
        #[serde(skip_serializing_if = "Option::is_none")]
        auc: Option<f64>,
        /// Mean logistic loss, the score read as log-odds.
        log_loss: f64,
    },
    /// Of several classes.
    Several {
        /// Share of records that are classified rightly.
        accuracy: f64,
        /// Mean of the classes' F1 scores.
        macro_f1: f64,
        /// Mean cross-entropy; absent where the scores are no logarithms of probabilities.
        #[serde(skip_serializing_if = "Option::is_none")]
        log_loss: Option<f64>,
        /// Each class.
        classes: Vec<ClassOutcome>,
        /// Counts, rows being true classes and columns predicted ones; absent for more than 100 classes.
        #[serde(skip_serializing_if = "Option::is_none")]
        confusion: Option<Vec<Vec<u64>>>,
    },
    /// Of a number.
    Number(NumberMetrics),
}

/// How well one class is told from the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassOutcome {
    /// Its name.
    pub class: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: ClassFigures,
}

/// The most classes whose confusion matrix is a part of the result.
const MOST_IN_MATRIX: usize = 100;

impl Figures {
    /// Share of records that are classified rightly, where there are classes.
    pub fn accuracy(&self) -> Option<f64> {
        match self {
            Self::Two { accuracy, .. } | Self::Several { accuracy, .. } => Some(*accuracy),
            Self::Number(_) => None,
        }
    }
}

/// The figures of a model, gathered record by record.
///
/// # Privacy
/// They are answers about the records that are measured on. They may be published where those records are public and the
/// guarantee of the model holds.
#[derive(Debug, Clone)]
pub struct Measure<'m> {
    model: &'m Model,
    gathered: Gathered,
}

#[derive(Debug, Clone)]
enum Gathered {
    Two(ScoredLabels),
    Several(Confusion),
    Number(PredictedNumbers),
}

impl<'m> Measure<'m> {
    /// None yet.
    pub fn new(model: &'m Model) -> Self {
        let gathered = match &model.kind {
            ModelKind::LinearClassifier { .. } => Gathered::Two(ScoredLabels::default()),
            ModelKind::MultiClassLinear { classes } => Gathered::Several(Confusion::new(classes.len())),
            ModelKind::LinearRegression { range } => Gathered::Number(PredictedNumbers::new(*range)),
        };
        Self { model, gathered }
    }

    /// Adds a record by its scores.
    ///
    /// # Errors
    /// Memory ran out.
    pub fn push(&mut self, scores: &[f64], target: f64) -> Result<(), OutOfMemory> {
        let score = scores.first().copied().unwrap_or_default();
        match &mut self.gathered {
            Gathered::Two(labels) => labels.push(score, target > 0.0)?,
            // Targets are positions in the list of classes.
            Gathered::Several(confusion) => confusion.push(scores, target as usize),
            Gathered::Number(predicted) => predicted.push(score, target),
        }
        Ok(())
    }

    /// The number of records and the figures; `None` where there is no record.
    pub fn finish(self) -> Option<(u64, Figures)> {
        let Self { model, gathered } = self;
        match gathered {
            Gathered::Two(mut labels) => labels.metrics().map(|metrics| {
                let Metrics { n, accuracy, auc, log_loss } = metrics;
                (n, Figures::Two { accuracy, auc, log_loss })
            }),
            Gathered::Several(confusion) => confusion.metrics().map(|metrics| {
                let names: &[String] = match &model.kind {
                    ModelKind::MultiClassLinear { classes } => classes,
                    _ => &[],
                };
                let classes = names.iter().zip(&metrics.classes);
                let figures = Figures::Several {
                    accuracy: metrics.accuracy,
                    macro_f1: metrics.macro_f1,
                    log_loss: model.has_probabilities().then_some(metrics.log_loss),
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
