//! Common parts of the figures of the dissertation on Rényi-differentially private optimisation (2020): data, budgets, panels
//! and kinds of claims.

use super::Effort;
use super::bolt_on::EPSILON;
use crate::algorithm::Algorithm;
use crate::claim::{Claim, Comparison, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Bars, Figure, Measure, Panel, Series};
use crate::results::Place;
use crate::setting::{Neighbours, Privacy, Setting, Step};

/// The budgets.
pub(super) const EPSILONS: [f64; 6] = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6];
/// λ of the smooth objectives.
pub(super) const LAMBDA: f64 = 1e-3;
/// Accuracies this close, and objectives within this factor, look equal in the figures.
pub(super) const CLOSE: f64 = 0.01;
pub(super) const CLOSE_FACTOR: f64 = 1.02;

/// Algorithms that choose their own regulariser, or minimise no loss.
const OF_ANOTHER_OBJECTIVE: [Algorithm; 4] =
    [Algorithm::Auto, Algorithm::ObjPertCentred, Algorithm::NoisyMoments, Algorithm::TrueModel];

/// Returns δ: that of the chapters, smaller for the large data set.
pub(super) fn delta(data: DataSet) -> f64 {
    if data == DataSet::KddCup { 1e-12 } else { 1e-8 }
}

/// Returns the approximate number of training rows.
pub(super) fn training_rows(data: DataSet) -> u64 {
    match data {
        DataSet::Adult => 39_074,
        DataSet::Bank => 36_169,
        DataSet::KddCup => 395_217,
        DataSet::Covertype => 79_682,
        DataSet::Higgs => 10_000,
        DataSet::Occupancy => 8_143,
        DataSet::Banknote => 1_372,
        // Number of rows drawn for each repetition.
        _ => SIMULATED_ROWS,
    }
}

/// Number of simulated rows drawn for each repetition: nine tenths of 40,000.
pub(super) const SIMULATED_ROWS: u64 = 36_000;

/// Returns `√n`, the batch size of chapters 3 and 4.
pub(super) fn root_of_rows(data: DataSet) -> u64 {
    training_rows(data).isqrt()
}

/// Returns a setting with step sizes from public numbers and ten passes with batches of `√n`.
pub(super) fn setting(data: DataSet, algorithm: Algorithm, epsilon: f64, neighbours: Neighbours) -> Setting {
    let setting = Setting::new(data, algorithm, Privacy::WithDelta { epsilon, delta: delta(data) });
    Setting { step: Step::Suited, batch_size: root_of_rows(data), neighbours, ..setting }
}

/// Returns one curve for each algorithm, against ε.
pub(super) fn curves(
    algorithms: &[Algorithm],
    effort: Effort,
    settings: impl Fn(Algorithm, f64) -> Vec<Setting>,
) -> Vec<Series> {
    let xs = effort.thin(&EPSILONS);
    let curve =
        |&algorithm: &Algorithm| Series::best_of(algorithm.title(), &xs, |epsilon| settings(algorithm, epsilon));
    algorithms.iter().map(curve).collect()
}

/// Returns a panel against ε.
pub(super) fn panel(title: String, measure: Measure, series: Vec<Series>) -> Panel {
    Panel { title, x: EPSILON, log_y: false, measure, bars: Bars::StdDev, series }
}

/// Returns panels of accuracies above panels of the objectives of the same runs; the latter omit algorithms with another
/// objective.
pub(super) fn accuracy_above_objective(columns: Vec<(String, Vec<Series>)>) -> Vec<Panel> {
    let row = |measure| {
        let columns = columns.iter();
        columns.map(move |(title, series)| {
            let mut series = series.clone();
            if measure == Measure::Objective {
                series.retain(|series| !OF_ANOTHER_OBJECTIVE.iter().any(|other| other.title() == series.name));
            }
            panel(format!("{title}: {}", name_of(measure)), measure, series)
        })
    };
    row(Measure::Accuracy).chain(row(Measure::Objective)).collect()
}

const fn name_of(measure: Measure) -> &'static str {
    match measure {
        Measure::Objective => "objective",
        _ => "accuracy",
    }
}

/// Keeps the comparisons of a claim in panels of this measure.
fn of_measure(mut claim: Claim, panels: &[Panel], measure: Measure) -> Claim {
    claim.comparisons.retain(|comparison| panels[comparison.left.panel].measure == measure);
    claim
}

/// Keeps the comparisons of a claim for which `keep` is true, given the panel and the point's position in its curve, from 0 for
/// the first to 1 for the last.
pub(super) fn only(mut claim: Claim, panels: &[Panel], keep: impl Fn(&Panel, f64) -> bool) -> Claim {
    claim.comparisons.retain(|comparison| {
        let Place { panel, series, point } = comparison.left;
        let panel = &panels[panel];
        let last = panel.series[series].points.len().saturating_sub(1).max(1);
        keep(panel, point as f64 / last as f64)
    });
    claim
}

/// Claims that `left` is better than `right` at every budget: more accurate, with a smaller objective.
pub(super) fn better(panels: &[Panel], measure: Measure, left: Algorithm, right: Algorithm) -> Claim {
    let (left, right) = (left.title(), right.title());
    let statement = match measure {
        Measure::Objective => format!("{left} reaches a smaller objective than {right}"),
        _ => format!("{left} is more accurate than {right}"),
    };
    let (one, other) = if measure == Measure::Objective { (right, left) } else { (left, right) };
    of_measure(Claim::between(&statement, panels, one, Relation::MORE, other, Quantifier::Every), panels, measure)
}

/// Claims that `left` is no worse than `right` at any budget, up to a visible difference.
pub(super) fn no_worse(panels: &[Panel], measure: Measure, left: Algorithm, right: Algorithm) -> Claim {
    let (left, right) = (left.title(), right.title());
    let (statement, one, relation, other) = match measure {
        Measure::Objective => (
            format!("{left} reaches as small an objective as {right} (within a factor of {CLOSE_FACTOR})"),
            left,
            Relation::AtMost { factor: CLOSE_FACTOR, margin: 0.0 },
            right,
        ),
        _ => (
            format!("{left} is as accurate as {right} (within {CLOSE})"),
            right,
            Relation::AtMost { factor: 1.0, margin: CLOSE },
            left,
        ),
    };
    of_measure(Claim::between(&statement, panels, one, relation, other, Quantifier::Every), panels, measure)
}

/// Claims that twice the rows take at most 2.5 times the time plus a margin, at all points of panels of times.
pub(super) fn linear_in_the_rows(panels: &[Panel]) -> Claim {
    let mut comparisons = Vec::new();
    for (panel, contents) in panels.iter().enumerate() {
        for (series, curve) in contents.series.iter().enumerate() {
            for point in 1..curve.points.len() {
                let ratio = curve.points[point].x / curve.points[point - 1].x;
                let relation = Relation::AtMost { factor: 1.25 * ratio, margin: 0.02 };
                let (left, right) = (Place { panel, series, point }, Place { panel, series, point: point - 1 });
                comparisons.push(Comparison { left, relation, right });
            }
        }
    }
    let statement = "Run times grow linearly with the number of rows (at most 1.25 times as fast, and 0.02 seconds)";
    Claim { statement: statement.to_owned(), quantifier: Quantifier::Every, comparisons }
}

/// Returns all figures of the dissertation.
pub(super) fn all(effort: Effort) -> Vec<Figure> {
    let mut figures = super::renyi_3::all(effort);
    figures.extend(super::renyi_4::all(effort));
    figures.extend(super::renyi_5::all(effort));
    figures.extend(super::renyi_5_networks::all(effort));
    figures.extend(super::renyi_6::all(effort));
    figures.push(super::renyi_table::figure(effort));
    figures
}
