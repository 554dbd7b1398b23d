//! The figures of Hardwarsing 2018, 1 to 9: the objective of SCS13 against iterations, batch sizes, step sizes, passes.

use super::Effort;
use crate::algorithm::Algorithm;
use crate::claim::{Claim, Comparison, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use crate::results::Place;
use crate::setting::{Privacy, Setting, Step};

/// Epsilon of each pass.
const EPSILON: f64 = 1.0;
const LAMBDA: f64 = 1e-4;
const ITERATIONS: Axis = Axis { label: "iterations", log: false };
const BATCHES: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
const PRIVATE: &str = "SCS13";
const PLAIN: &str = "Noiseless";
/// Objectives this close are "almost identical".
const IDENTICAL: f64 = 0.02;

pub(super) fn all(effort: Effort) -> Vec<Figure> {
    let mnist = (DataSet::MnistZero, 60_000);
    let title = |text| text;
    vec![
        mini_batches(effort, "thesis-1", title("Thesis, figure 1: mini-batches, MNIST"), mnist, 10),
        mini_batches(
            effort,
            "thesis-2",
            title("Thesis, figure 2: mini-batches, KDD Cup 99"),
            (DataSet::KddCup9, 50_000),
            5,
        ),
        mini_batches(
            effort,
            "thesis-3",
            title("Thesis, figure 3: mini-batches, Banknote"),
            (DataSet::Banknote, 1372),
            10,
        ),
        batch_sizes(effort, "thesis-4", title("Thesis, figure 4: batch size, MNIST"), DataSet::MnistZero),
        batch_sizes(effort, "thesis-5", title("Thesis, figure 5: batch size, Occupancy"), DataSet::Occupancy),
        step_sizes(effort),
        passes(effort, "thesis-7", title("Thesis, figure 7: passes, MNIST"), mnist),
        passes(effort, "thesis-8", title("Thesis, figure 8: passes, Occupancy"), (DataSet::Occupancy, 8143)),
        mini_batches(
            effort,
            "thesis-9",
            title("Thesis, figure 9: 34 dimensions, KDD Cup 99"),
            (DataSet::KddCup34, 50_000),
            10,
        ),
    ]
}

/// Returns one pass of SCS13 or of plain descent over `rows` records, drawn at random if they are not all. A longer pass has an
/// iterate of the same distribution after as many records.
fn one_pass(data: DataSet, algorithm: Algorithm, rows: Option<u64>, batch_size: u64, step: Step) -> Setting {
    let setting = Setting::new(data, algorithm, Privacy::Pure { epsilon: EPSILON });
    Setting { rows, lambda: LAMBDA, passes: 1, batch_size, step, ..setting }
}

fn both(xs: &[f64], setting: impl Fn(Algorithm, f64) -> Setting) -> Vec<Series> {
    [(PRIVATE, Algorithm::Scs13), (PLAIN, Algorithm::Noiseless)]
        .map(|(name, algorithm)| Series::new(name, xs, |x| setting(algorithm, x)))
        .to_vec()
}

fn panel(title: String, x: Axis, series: Vec<Series>) -> Panel {
    // Objectives with noise at b = 1 and without noise differ by orders of magnitude.
    Panel { title, x, log_y: true, measure: Measure::Objective, bars: Bars::StdDev, series }
}

/// Returns the iterations at which a pass over `n` records is measured.
fn checkpoints(n: u64, batch_size: u64, effort: Effort) -> Vec<f64> {
    let count = if effort == Effort::Quick { 4 } else { 10 };
    (1..=count).map(|i| (n / batch_size * i / count) as f64).filter(|&t| t >= 1.0).collect()
}

/// Returns the objective during a pass, for one batch size.
fn during_a_pass(data: DataSet, n: u64, batch_size: u64, step: Step, title: String, effort: Effort) -> Panel {
    let xs = checkpoints(n, batch_size, effort);
    let setting = |algorithm, t: f64| one_pass(data, algorithm, Some(t as u64 * batch_size), batch_size, step);
    panel(title, ITERATIONS, both(&xs, setting))
}

fn last(panel: &Panel) -> usize {
    panel.series.first().map_or(0, |series| series.points.len().saturating_sub(1))
}

fn claim(statement: &str, comparisons: Vec<Comparison>) -> Claim {
    Claim { statement: statement.to_owned(), quantifier: Quantifier::Every, comparisons }
}

const fn place(panel: usize, series: usize, point: usize) -> Place {
    Place { panel, series, point }
}

/// Compares the private and the plain curve of a panel at a point.
fn beside(panel: usize, point: usize, relation: Relation) -> Comparison {
    Comparison { left: place(panel, 0, point), relation, right: place(panel, 1, point) }
}

fn mini_batches(
    effort: Effort,
    id: &'static str,
    title: &'static str,
    (data, n): (DataSet, u64),
    batch_size: u64,
) -> Figure {
    let panels: Vec<Panel> = [1, batch_size]
        .into_iter()
        .map(|b| during_a_pass(data, n, b, Step::InverseSqrt(1.0), format!("{}, b = {b}", data.title()), effort))
        .collect();
    let claims = vec![
        claim(
            "With b = 1 the private run is far from the plain one at the end of the pass (by 0.1)",
            vec![beside(0, last(&panels[0]), Relation::MoreThan { factor: 1.0, margin: 0.1 })],
        ),
        claim(
            &format!("With b = {batch_size} private and plain are almost identical at the end (within {IDENTICAL})"),
            vec![beside(1, last(&panels[1]), Relation::CloseTo { tolerance: IDENTICAL })],
        ),
    ];
    Figure {
        id,
        title,
        description: "Objective (λ = 0.0001) against iterations of one pass, step 1/√t, ε = 1: private (SCS13, Laplace ball) and \
                      plain descent, for single records and small batches. Bars are one standard deviation of 20 random \
                      orders. The thesis draws the noise's direction from a cube, which no ε covers; here it is uniform on the \
                      sphere.",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(20),
    }
}

fn batch_sizes(effort: Effort, id: &'static str, title: &'static str, data: DataSet) -> Figure {
    let axis = Axis { label: "batch size", log: true };
    let panels: Vec<Panel> = [("1/√t", 1.0), ("10/√t", 10.0)]
        .into_iter()
        .map(|(name, step)| {
            let setting = |algorithm, size: f64| one_pass(data, algorithm, None, size as u64, Step::InverseSqrt(step));
            panel(format!("{}, step {name}", data.title()), axis, both(&BATCHES, setting))
        })
        .collect();
    let compare = |panel, left, relation, right| Comparison {
        left: place(panel, 0, left),
        relation,
        right: place(panel, 0, right),
    };
    let claims = vec![
        claim(
            "Raising the batch size from 1 improves the private run (b = 1 against 5)",
            vec![compare(0, 0, Relation::MORE, 2), compare(1, 0, Relation::MORE, 2)],
        ),
        claim(
            "With step 1/√t batches beyond 5 degrade the private run (b = 50 against 5)",
            vec![compare(0, 5, Relation::MORE, 2)],
        ),
        claim(
            "With step 10/√t large batches degrade less than with 1/√t (b = 50)",
            vec![Comparison { left: place(0, 0, 5), relation: Relation::MORE, right: place(1, 0, 5) }],
        ),
    ];
    Figure {
        id,
        title,
        description: "Objective (λ = 0.0001) after one pass against the batch size, steps 1/√t and 10/√t, ε = 1.",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(20),
    }
}

fn step_sizes(effort: Effort) -> Figure {
    let panels: Vec<Panel> = [("1/√t", Step::InverseSqrt(1.0)), ("1/(λt)", Step::InverseStrongConvexity)]
        .into_iter()
        .map(|(name, step)| during_a_pass(DataSet::Sphere, 10_000, 5, step, format!("Sphere, step {name}"), effort))
        .collect();
    let end = last(&panels[1]);
    let claims = vec![claim(
        "With step 1/(λt) the private objective is still very large at the end of the pass (ten times that with 1/√t)",
        vec![Comparison {
            left: place(1, 0, end),
            relation: Relation::MoreThan { factor: 10.0, margin: 0.0 },
            right: place(0, 0, end),
        }],
    )];
    Figure {
        id: "thesis-6",
        title: "Thesis, figure 6: step sizes, separable sphere",
        description: "Objective (λ = 0.0001) against iterations of one pass over 10,000 points of the unit sphere in 5 dimensions, \
                      separable with margin 0.001; batches of 5, steps 1/√t and 1/(λt), ε = 1.",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(20),
    }
}

fn passes(effort: Effort, id: &'static str, title: &'static str, (data, n): (DataSet, u64)) -> Figure {
    let counts: &[f64] = if effort == Effort::Quick { &[1.0, 2.0, 10.0] } else { &[1.0, 2.0, 4.0, 6.0, 8.0, 10.0] };
    let setting = |algorithm, passes: f64| {
        let setting = Setting::new(data, algorithm, Privacy::Pure { epsilon: passes * EPSILON });
        Setting { lambda: LAMBDA, passes: passes as u64, batch_size: 1, step: Step::InverseSqrt(1.0), ..setting }
    };
    let mut panel = panel(format!("{}, b = 1", data.title()), ITERATIONS, both(counts, setting));
    for point in panel.series.iter_mut().flat_map(|series| &mut series.points) {
        point.x *= n as f64;
    }
    let end = last(&panel);
    let compare = |left, relation, right| Comparison { left: place(0, 0, left), relation, right: place(0, 0, right) };
    let claims = vec![
        claim(
            "Ten passes are a clear improvement on one (at equal ε of each pass)",
            vec![compare(0, Relation::MORE, end)],
        ),
        claim(
            "Two passes are almost no different from one (within 0.1)",
            vec![compare(0, Relation::CloseTo { tolerance: 0.1 }, 1)],
        ),
        claim(
            "After ten passes the private run still has not reached the plain one",
            vec![beside(0, end, Relation::MORE)],
        ),
    ];
    Figure {
        id,
        title,
        description: "Objective (λ = 0.0001) against iterations over several passes, single records, step 1/√t, ε = 1 for each \
                      pass: after k passes the model is k-differentially private.",
        columns: 1,
        claims,
        panels: vec![panel],
        repetitions: effort.repetitions(20),
    }
}
