//! Time figures of Wu et al. 2017: 2 (scalability) and 5 (overhead).

use super::Effort;
use super::bolt_on::Test;
use crate::algorithm::Algorithm;
use crate::claim::{Claim, Comparison, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use crate::results::Place;
use crate::setting::Setting;

/// Returns the timed algorithms: strongly convex, (ε, δ).
fn algorithms() -> Vec<Algorithm> {
    let algorithms = Test::StronglyConvexApproximate.algorithms().into_iter();
    algorithms.filter(|algorithm| !algorithm.is_as_published()).collect()
}

fn timed(data: DataSet, algorithm: Algorithm, passes: u64, batch_size: u64) -> Setting {
    let setting = Setting::new(data, algorithm, Test::StronglyConvexApproximate.privacy(0.1));
    Setting { lambda: 1e-4, passes, batch_size, timed: true, ..setting }
}

fn panel(title: String, x: Axis, log_y: bool, xs: &[f64], setting: impl Fn(Algorithm, f64) -> Setting) -> Panel {
    let series =
        algorithms().into_iter().map(|algorithm| Series::new(algorithm.title(), xs, |x| setting(algorithm, x)));
    Panel { title, x, log_y, measure: Measure::Seconds, bars: Bars::Confidence, series: series.collect() }
}

pub(super) fn scalability(effort: Effort) -> Vec<Figure> {
    let thousands: &[f64] =
        if effort == Effort::Quick { &[25.0, 50.0, 100.0] } else { &[100.0, 200.0, 400.0, 800.0, 1600.0] };
    let axis = Axis { label: "thousands of rows", log: false };
    let panels: Vec<Panel> = [("(a) in memory", false), ("(b) from disk", true)]
        .into_iter()
        .map(|(title, on_disk)| {
            panel(title.to_owned(), axis, false, thousands, |algorithm, thousands| {
                let data = DataSet::MadeUp { thousands: thousands as u32 };
                Setting { on_disk, ..timed(data, algorithm, 1, 1) }
            })
        })
        .collect();
    let mut claims = overhead_claims(&panels);
    // Twice the rows take about twice the time.
    let mut comparisons = Vec::new();
    for (panel, contents) in panels.iter().enumerate() {
        for (series, curve) in contents.series.iter().enumerate() {
            for point in 1..curve.points.len() {
                let (left, right) = (Place { panel, series, point }, Place { panel, series, point: point - 1 });
                let relation = Relation::AtMost { factor: 2.5, margin: 0.0 };
                comparisons.push(Comparison { left, relation, right });
            }
        }
    }
    claims.push(Claim {
        statement: "Run times grow linearly with the number of rows (twice the rows, at most 2.5 times the time)"
            .to_owned(),
        quantifier: Quantifier::Every,
        comparisons,
    });
    vec![Figure {
        id: "bolt-on-2",
        title: "Bolt-on, figure 2: scalability",
        description: "Seconds of one pass against the number of made-up rows (50 dimensions), strongly convex, (ε, δ), ε = 0.1, \
                      λ = 0.0001, single records; (a) rows in memory, (b) rows streamed from a file on disk, which the \
                      operating system may hold in its cache.",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(4),
    }]
}

pub(super) fn overhead(effort: Effort) -> Vec<Figure> {
    let sets = [DataSet::Mnist, DataSet::Occupancy, DataSet::Covertype];
    let passes = effort.thin(&[1.0, 5.0, 10.0, 20.0]);
    let mut panels: Vec<Panel> = sets
        .iter()
        .map(|&data| {
            let axis = Axis { label: "passes", log: false };
            panel(format!("{}, b = 10", data.title()), axis, false, &passes, |algorithm, passes| {
                timed(data, algorithm, passes as u64, 10)
            })
        })
        .collect();
    panels.extend(sets.iter().map(|&data| {
        let axis = Axis { label: "batch size", log: true };
        panel(format!("{}, one pass", data.title()), axis, true, &[1.0, 10.0, 100.0, 500.0], |algorithm, size| {
            timed(data, algorithm, 1, size as u64)
        })
    }));
    vec![Figure {
        id: "bolt-on-5",
        title: "Bolt-on, figure 5: run time",
        description: "Seconds of training (MNIST: ten models), strongly convex, (ε, δ): above against the number of \
                      passes with batches of 10, below against the batch size for one pass. Rows are in memory, \
                      where a step takes tens of nanoseconds; in the paper each row came from a database, which took \
                      microseconds.",
        columns: 3,
        claims: overhead_claims(&panels),
        panels,
        repetitions: effort.repetitions(4),
    }]
}

fn overhead_claims(panels: &[Panel]) -> Vec<Claim> {
    let (ours, noiseless) = (Algorithm::Ours.title(), Algorithm::Noiseless.title());
    let relation = Relation::AtMost { factor: 1.05, margin: 0.0 };
    let statement = "Our algorithm has virtually no overhead (at most 1.05 times the noiseless time)";
    let mut claims = vec![Claim::between(statement, panels, ours, relation, noiseless, Quantifier::Every)];
    for other in super::bolt_on::PER_STEP.iter().map(|algorithm| algorithm.title()) {
        for (statement, factor) in [("slower than our algorithm", 1.0), ("somewhere twice as slow or more", 2.0)] {
            let quantifier = if factor > 1.0 { Quantifier::Some } else { Quantifier::Every };
            let relation = Relation::MoreThan { factor, margin: 0.0 };
            claims.push(Claim::between(&format!("{other} is {statement}"), panels, other, relation, ours, quantifier));
        }
    }
    claims
}
