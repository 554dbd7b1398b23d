//! A figure of a paper as data: panels of series of points, where each point is a setting that is run several times.

use crate::cell::{Cell, Experiment};
use crate::claim::Claim;
use crate::dataset::DataSet;

/// A figure, with the claims of its paper about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name on the command line and of its files, such as `bolt-on-3`.
    pub id: &'static str,
    /// The title.
    pub title: &'static str,
    /// The content of the paper's plot, and the differences here.
    pub description: &'static str,
    /// Number of panels per row.
    pub columns: usize,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// The claims of the paper.
    pub claims: Vec<Claim>,
    /// Number of repetitions of every point.
    pub repetitions: u32,
}

/// One panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// True if the vertical axis is logarithmic.
    pub log_y: bool,
    /// The measure on the vertical axis.
    pub measure: Measure,
    /// The meaning of the error bars.
    pub bars: Bars,
    /// The curves.
    pub series: Vec<Series>,
}

/// The horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// The label.
    pub label: &'static str,
    /// True if it is logarithmic.
    pub log: bool,
}

/// A measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Share of held-out rows that are classified correctly.
    Accuracy,
    /// The regularised mean loss on the training rows.
    Objective,
    /// Seconds of training.
    Seconds,
    /// Number of records read in training, divided by the number of records.
    Reads,
    /// Share of the relevant attributes among the largest weights, for one of [`SELECTED`](crate::algorithm::SELECTED).
    Coverage {
        /// The index in that list.
        index: usize,
    },
    /// Size of the last step of a line search.
    ChosenStep,
    /// Mean average precision on held-out lists, averaged over all of them.
    MeanAveragePrecision,
    /// NDCG on held-out lists as computed by LETOR's tool, at one of [`NDCG_AT`](crate::ranker::NDCG_AT).
    Ndcg {
        /// The index in that list.
        index: usize,
    },
}

impl Measure {
    /// Returns the label of the axis.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Accuracy => "test accuracy",
            Self::Objective => "objective",
            Self::Seconds => "seconds",
            Self::Reads => "passes over the records",
            Self::Coverage { .. } => "coverage of relevant attributes",
            Self::ChosenStep => "step size",
            Self::MeanAveragePrecision => "MAP",
            Self::Ndcg { index: 0 } => "NDCG@1",
            Self::Ndcg { index: 1 } => "NDCG@2",
            Self::Ndcg { index: 2 } => "NDCG@4",
            Self::Ndcg { .. } => "NDCG@8",
        }
    }

    /// Returns whether larger values are better.
    pub(crate) fn rises(self) -> bool {
        !matches!(self, Self::Objective | Self::Seconds | Self::Reads)
    }

    pub(crate) fn of(self, outcome: &crate::algorithm::Outcome) -> f64 {
        match self {
            Self::Accuracy => outcome.accuracy,
            Self::Objective => outcome.objective,
            Self::Seconds => outcome.seconds,
            Self::Reads => outcome.reads,
            Self::Coverage { index } => outcome.coverage.and_then(|all| all.get(index).copied()).unwrap_or(f64::NAN),
            Self::ChosenStep => outcome.chosen_step.unwrap_or(f64::NAN),
            Self::MeanAveragePrecision => outcome.ranked.map_or(f64::NAN, |ranked| ranked.map),
            Self::Ndcg { index } => {
                outcome.ranked.and_then(|ranked| ranked.ndcg.get(index).copied()).unwrap_or(f64::NAN)
            }
        }
    }
}

/// The meaning of error bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bars {
    /// One standard deviation of the repetitions.
    StdDev,
    /// 1.96 standard errors: an interval of the mean of 90% or better for at least five repetitions.
    Confidence,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in the legend; equal names have the same colour in every panel.
    pub name: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// One point of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The horizontal coordinate.
    pub x: f64,
    /// The experiments. Of several, the one with the best mean is shown: parameters are chosen with hindsight, which
    /// approximates tuning on similar public data.
    pub settings: Vec<Experiment>,
}

impl Figure {
    /// Returns every run of the figure.
    pub fn cells(&self, repetitions: u32) -> Vec<Cell> {
        let points = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
        let settings = points.flat_map(|point| &point.settings);
        settings.flat_map(|&setting| (0..repetitions).map(move |repetition| Cell::new(setting, repetition))).collect()
    }

    /// Returns the data sets that it needs.
    pub fn data_sets(&self) -> Vec<DataSet> {
        let mut sets: Vec<DataSet> = self.cells(1).iter().map(|cell| cell.experiment.data()).collect();
        sets.sort();
        sets.dedup();
        sets
    }
}

impl Series {
    /// Creates a curve with one setting for each `x`.
    pub fn new<E: Into<Experiment>>(name: impl Into<String>, xs: &[f64], setting: impl Fn(f64) -> E) -> Self {
        Self::best_of(name, xs, |x| vec![setting(x)])
    }

    /// Creates a curve with several settings for each `x`, of which the best is shown.
    pub fn best_of<E: Into<Experiment>>(name: impl Into<String>, xs: &[f64], settings: impl Fn(f64) -> Vec<E>) -> Self {
        let point = |&x| Point { x, settings: settings(x).into_iter().map(Into::into).collect() };
        Self { name: name.into(), points: xs.iter().map(point).collect() }
    }
}
