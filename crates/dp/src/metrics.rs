//! Metrics of predictions on labelled records, for two classes, several classes, and numbers; metrics of rankings.

mod curves;
mod measure;
mod numbers;
mod rankings;
pub mod released;
mod several;
mod two_classes;

pub use curves::{AtThreshold, Calibrated, Curves, PrecisionRecall, Rates, TwoByTwo, logit, probability};
pub use measure::{ClassOutcome, Figures, Measure};
pub use numbers::{NumberMetrics, PredictedNumbers};
pub use rankings::RankingFigures;
pub use several::{ClassFigures, ClassMetrics, Confusion, softmax, winner};
pub use two_classes::{Metrics, ScoredLabels};
