//! A figure of a paper as data: panels of series of points, each point a setting that is run several times.

use crate::cell::{Cell, Experiment};
use crate::claim::Claim;
use crate::dataset::DataSet;

/// A figure, with what its paper claims of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name on the command line and of its files, as `bolt-on-3`.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What the paper plots, and what is different here.
    pub description: &'static str,
    /// Panels in a row.
    pub columns: usize,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// What the paper says.
    pub claims: Vec<Claim>,
    /// Repetitions of every point.
    pub repetitions: u32,
}

/// One diagram.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What goes to the right.
    pub x: Axis,
    /// Whether the upward axis is logarithmic.
    pub log_y: bool,
    /// What goes up.
    pub measure: Measure,
    /// What the error bars show.
    pub bars: Bars,
    /// The curves.
    pub series: Vec<Series>,
}

/// The axis to the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Below it.
    pub label: &'static str,
    /// Whether it is logarithmic.
    pub log: bool,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Share of held-out rows that are classified rightly.
    Accuracy,
    /// The regularised mean loss on the training rows.
    Objective,
    /// Seconds of training.
    Seconds,
    /// Records that training read, over their number.
    Reads,
    /// Share of the attributes that matter among the largest weights, for one of
    /// [`SELECTED`](crate::algorithm::SELECTED).
    Coverage {
        /// Which of them.
        index: usize,
    },
    /// Mean average precision on held-out lists, all of which count.
    MeanAveragePrecision,
    /// NDCG on held-out lists as LETOR's tool computes it, at one of [`NDCG_AT`](crate::ranker::NDCG_AT).
    Ndcg {
        /// Which of them.
        index: usize,
    },
}

impl Measure {
    /// The label of the axis.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Accuracy => "test accuracy",
            Self::Objective => "objective",
            Self::Seconds => "seconds",
            Self::Reads => "passes over the records",
            Self::Coverage { .. } => "coverage of relevant attributes",
            Self::MeanAveragePrecision => "MAP",
            Self::Ndcg { index: 0 } => "NDCG@1",
            Self::Ndcg { index: 1 } => "NDCG@2",
            Self::Ndcg { index: 2 } => "NDCG@4",
            Self::Ndcg { .. } => "NDCG@8",
        }
    }

    /// Whether larger is better.
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
            Self::MeanAveragePrecision => outcome.ranked.map_or(f64::NAN, |ranked| ranked.map),
            Self::Ndcg { index } => {
                outcome.ranked.and_then(|ranked| ranked.ndcg.get(index).copied()).unwrap_or(f64::NAN)
            }
        }
    }
}

/// What error bars show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bars {
    /// One standard deviation of the repetitions.
    StdDev,
    /// 1.96 standard errors: a 90% interval of the mean or better from five repetitions on.
    Confidence,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// In the legend; the same name has the same colour in every panel.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// One point of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Where it stands.
    pub x: f64,
    /// What is run. Of several, the one with the best mean is shown: parameters chosen with hindsight, which is what
    /// tuning on public data of the same kind comes to.
    pub settings: Vec<Experiment>,
}

impl Figure {
    /// Every run of the figure.
    pub fn cells(&self, repetitions: u32) -> Vec<Cell> {
        let points = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
        let settings = points.flat_map(|point| &point.settings);
        settings.flat_map(|&setting| (0..repetitions).map(move |repetition| Cell::new(setting, repetition))).collect()
    }

    /// The data sets that it needs.
    pub fn data_sets(&self) -> Vec<DataSet> {
        let mut sets: Vec<DataSet> = self.cells(1).iter().map(|cell| cell.experiment.data()).collect();
        sets.sort();
        sets.dedup();
        sets
    }
}

impl Series {
    /// A curve with one setting for each `x`.
    pub fn new<E: Into<Experiment>>(name: impl Into<String>, xs: &[f64], setting: impl Fn(f64) -> E) -> Self {
        Self::best_of(name, xs, |x| vec![setting(x)])
    }

    /// A curve with several settings for each `x`, of which the best is shown.
    pub fn best_of<E: Into<Experiment>>(name: impl Into<String>, xs: &[f64], settings: impl Fn(f64) -> Vec<E>) -> Self {
        let point = |&x| Point { x, settings: settings(x).into_iter().map(Into::into).collect() };
        Self { name: name.into(), points: xs.iter().map(point).collect() }
    }
}
