//! The curves of an evaluation, as a picture (SVG) or as JSON.

use std::path::PathBuf;

use dp::ModelKind;
use dp::metrics::{Curves, Figures};
use serde::Serialize;

use crate::chart::{self, Axis, BLUE, Chart, GREY, Mark, Series};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// Width and height of a chart.
const SIZE: (u32, u32) = (420, 400);

/// The file of the curves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub file: PathBuf,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Svg,
    Json,
}

/// The content of the JSON file.
#[derive(Serialize)]
struct Written<'c> {
    schema: &'static str,
    #[serde(flatten)]
    curves: &'c Curves,
    publishable: bool,
}

impl Target {
    /// Finds the form by the end of the name.
    ///
    /// # Errors
    /// `usage.value`.
    pub(super) fn new(file: PathBuf) -> Result<Self, Failure> {
        let extension = file.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        let form = match extension.as_deref() {
            Some("svg") => Form::Svg,
            Some("json") => Form::Json,
            _ => {
                return Err(Failure::usage("--curves", "the name does not say which form the curves are to have")
                    .expected("a name that ends in .svg or .json"));
            }
        };
        Ok(Self { file, form })
    }

    /// Returns the content of the file.
    ///
    /// # Errors
    /// Records of one class only, and a picture that cannot be drawn.
    pub(super) fn content(&self, figures: &Figures, publishable: bool) -> Result<String, Failure> {
        let Figures::Two { curves: Some(curves), metrics, .. } = figures else { return Err(none()) };
        match self.form {
            Form::Svg => chart::svg(&charts(curves, metrics.auc, publishable), 3, SIZE),
            Form::Json => {
                let written = Written { schema: "dp.curves/1", curves, publishable };
                serde_json::to_string(&written).map(|text| text + "\n").map_err(|error| {
                    Failure::new(ExitStatus::Failed, "output.write", format!("cannot write the curves: {error}"))
                })
            }
        }
    }
}

/// Returns whether models of this kind have curves.
pub(super) fn suit(kind: &ModelKind) -> bool {
    matches!(kind, ModelKind::LinearClassifier { .. })
}

/// Refuses curves of what has none.
pub(super) fn none() -> Failure {
    Failure::new(ExitStatus::Input, "model.mismatch", "there are no curves of ROC, precision and calibration")
        .at_flag("--curves")
        .expected("a model of two classes, and records of both")
        .help("omit --curves")
}

/// Returns the charts.
fn charts(curves: &Curves, auc: Option<f64>, publishable: bool) -> Vec<Chart> {
    let private = if publishable { "" } else { " - do not publish" };
    let line = |points| Series { label: None, colour: BLUE, mark: Mark::Line, points };
    let diagonal = Series { label: None, colour: GREY, mark: Mark::Thin, points: vec![(0.0, 0.0), (1.0, 1.0)] };
    let chart = |title: String, x: &str, y: &str, series| Chart {
        title: title + private,
        x: Axis::rate(x),
        y: Axis::rate(y),
        band: None,
        series,
        legend_right: true,
        legend_low: true,
    };
    let roc = curves.roc.iter().map(|point| (point.false_positive_rate, point.true_positive_rate)).collect();
    let precision = curves.precision_recall.iter().map(|point| (point.recall, point.precision)).collect();
    let share = curves.precision_recall.last().map_or(0.0, |point| point.precision);
    let baseline = Series { label: None, colour: GREY, mark: Mark::Thin, points: vec![(0.0, share), (1.0, share)] };
    let mut charts = vec![
        chart(
            auc.map_or("ROC curve".to_owned(), |auc| format!("ROC curve, area {auc:.3}")),
            "false-positive rate",
            "true-positive rate",
            vec![diagonal.clone(), line(roc)],
        ),
        chart("Precision and recall".to_owned(), "recall", "precision", vec![baseline, line(precision)]),
    ];
    if let Some(groups) = &curves.calibration {
        let points: Vec<(f64, f64)> = groups.iter().map(|group| (group.predicted, group.observed)).collect();
        let dots = Series { label: None, colour: BLUE, mark: Mark::Dots, points: points.clone() };
        charts.push(chart(
            "Calibration".to_owned(),
            "predicted probability",
            "observed share",
            vec![diagonal, line(points), dots],
        ));
    }
    charts
}
