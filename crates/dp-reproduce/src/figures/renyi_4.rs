//! Chapter 4 of the dissertation: ADMM under an L1 penalty. Replace-one throughout.

use dp_losses::LossKind;

use super::Effort;
use super::renyi::{
    EPSILONS, SIMULATED_ROWS, accuracy_above_objective, better, curves, linear_in_the_rows, no_worse, only, panel,
    setting,
};
use super::renyi_3::huber;
use crate::algorithm::{Algorithm, SELECTED};
use crate::claim::{Claim, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use crate::setting::{Neighbours, Setting};

/// The compared algorithms, one line each.
const LINEUP: [Algorithm; 5] =
    [Algorithm::SsAdmm, Algorithm::MpAdmm, Algorithm::DpSgd, Algorithm::DpAdmm, Algorithm::AdmmObjPert];

/// Coefficients of the penalty.
const PENALTIES: [f64; 2] = [1e-4, 1e-3];
/// Number of passes for the minimiser, accelerated and with the longest safe steps.
const PASSES_OF_THE_MINIMISER: u64 = 500;

pub(super) fn all(effort: Effort) -> Vec<Figure> {
    vec![
        census(effort, "renyi-4-1", "Rényi DP, figure 4.1: logistic regression, L1 penalty", LossKind::Logistic),
        census(effort, "renyi-4-2", "Rényi DP, figure 4.2: support vector machine, L1 penalty", huber()),
        simulated(effort),
        selection(effort),
        times(effort),
    ]
}

/// Returns settings with batches of `√n`; the best number of passes is selected.
fn settings(
    effort: Effort,
    data: DataSet,
    loss: LossKind,
    l1: f64,
    algorithm: Algorithm,
    epsilon: f64,
) -> Vec<Setting> {
    let setting = Setting { loss, l1, ..setting(data, algorithm, epsilon, Neighbours::ReplaceOne) };
    let setting = Setting { rows: (data == DataSet::SparseModel).then_some(SIMULATED_ROWS), ..setting };
    let passes: &[u64] = match (algorithm, effort) {
        // The true model has no run, the others have the recommended number of rounds.
        (Algorithm::TrueModel | Algorithm::DpAdmm | Algorithm::AdmmObjPert, _) => &[1],
        (Algorithm::SparseMinimiser, _) => &[PASSES_OF_THE_MINIMISER],
        // A pass is a single step.
        (Algorithm::MpAdmm, Effort::Quick) => &[15, 100],
        (Algorithm::MpAdmm, Effort::Full) => &[10, 30, 100, 300],
        (_, Effort::Quick) => &[3, 15],
        (_, Effort::Full) => &[1, 3, 10, 30],
    };
    passes.iter().map(|&passes| Setting { passes, ..setting }).collect()
}

fn census(effort: Effort, id: &'static str, title: &'static str, loss: LossKind) -> Figure {
    let lineup = [&[Algorithm::SparseMinimiser], &LINEUP[..]].concat();
    let sets = [(DataSet::Adult, "Adult"), (DataSet::Bank, "Bank (for IPUMS-BR)")];
    let columns = sets.iter().flat_map(|&(data, name)| PENALTIES.map(|l1| (data, name, l1)));
    let columns = columns.map(|(data, name, l1)| {
        let series = curves(&lineup, effort, |algorithm, e| settings(effort, data, loss, l1, algorithm, e));
        (format!("{name}, λ = {l1}"), series)
    });
    let panels = accuracy_above_objective(columns.collect());
    let (ss, mp, sgd) = (Algorithm::SsAdmm, Algorithm::MpAdmm, Algorithm::DpSgd);
    let mut claims = Vec::new();
    for other in LINEUP.into_iter().filter(|&other| other != ss) {
        for measure in [Measure::Accuracy, Measure::Objective] {
            claims.push(better(&panels, measure, ss, other));
            claims.push(no_worse(&panels, measure, ss, other));
        }
    }
    claims.push(better(&panels, Measure::Objective, mp, sgd));
    for name in ["Adult", "Bank"] {
        let claim = no_worse(&panels, Measure::Accuracy, mp, sgd);
        let statement = format!("{name}: {}", claim.statement);
        claims.push(only(Claim { statement, ..claim }, &panels, |panel, _| panel.title.starts_with(name)));
    }
    Figure {
        id,
        title,
        description: "Test accuracy (above) and training objective with λ‖w‖₁ (below) against ε, δ = 1e-8, λ = \
                      0.0001 and 0.001, on Adult (124 dimensions) and Bank (33), which stands in for IPUMS-BR. \
                      Replaced records, calibrated jointly. ssADMM and DP-SGD differ only in their update: batches \
                      of √n without replacement, steps that decrease with the pass, the first one from public \
                      numbers; mpADMM has noise on x alone, of which z and y are functions (the chapter puts noise \
                      on all three). The number of passes is the best of a few, of more for mpADMM, whose pass is \
                      one step; the sparse copy z is the model. DP-ADMM has two parties and as many rounds as public \
                      numbers suggest, ADMM-objP three iterations.",
        columns: 4,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}

fn simulated(effort: Effort) -> Figure {
    let lineup = [&[Algorithm::TrueModel, Algorithm::SparseMinimiser], &LINEUP[..]].concat();
    let data = DataSet::SparseModel;
    let columns = PENALTIES.map(|l1| {
        let of = |algorithm, epsilon| settings(effort, data, LossKind::Logistic, l1, algorithm, epsilon);
        (format!("λ = {l1}"), curves(&lineup, effort, of))
    });
    let panels = accuracy_above_objective(columns.to_vec());
    let mut claims = Vec::new();
    for (i, one) in LINEUP.iter().enumerate() {
        for other in &LINEUP[i + 1..] {
            let statement = format!("{} and {} have similar accuracies (within 0.02)", one.title(), other.title());
            let relation = Relation::CloseTo { tolerance: 0.02 };
            let claim = Claim::between(&statement, &panels, one.title(), relation, other.title(), Quantifier::Every);
            claims.push(only(claim, &panels, |panel, _| panel.measure == Measure::Accuracy));
        }
    }
    Figure {
        id: "renyi-4-3",
        title: "Rényi DP, figure 4.3: simulated data, accuracy",
        description: "Test accuracy and training objective of logistic regression with an L1 penalty on 36,000 rows \
                      of 100 correlated normal features, of which 20 determine the class. They are drawn for each \
                      repetition from 100,000 rows generated from a fixed seed, and tested on 10,000 more. Rows are \
                      scaled to norm 1. Replaced records, δ = 1e-8, settings as in figure 4.1.",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}

fn selection(effort: Effort) -> Figure {
    let lineup = [&[Algorithm::SparseMinimiser], &LINEUP[..]].concat();
    let data = DataSet::SparseModel;
    let mut panels = Vec::new();
    for l1 in PENALTIES {
        for (index, top) in SELECTED.iter().enumerate() {
            let of = |algorithm, epsilon| settings(effort, data, LossKind::Logistic, l1, algorithm, epsilon);
            let title = format!("K = {top}, λ = {l1}");
            panels.push(panel(title, Measure::Coverage { index }, curves(&lineup, effort, of)));
        }
    }
    let mut claims = Vec::new();
    for other in [Algorithm::SsAdmm, Algorithm::DpSgd] {
        let (mp, name) = (Algorithm::MpAdmm.title(), other.title());
        let statement = format!("mpADMM covers more of the relevant attributes than {name}");
        let claim = Claim::between(&statement, &panels, mp, Relation::MORE, name, Quantifier::Every);
        let low = Claim { statement: format!("{statement} at the smallest ε"), ..claim.clone() };
        claims.push(claim);
        claims.push(only(low, &panels, |_, at| at == 0.0));
    }
    Figure {
        id: "renyi-4-4",
        title: "Rényi DP, figure 4.4: simulated data, selection of attributes",
        description: "Coverage ξ_K of the 20 relevant attributes by the K largest weights (ties shared), K = 20, 25, 30, 40, for \
                      the runs of figure 4.3.",
        columns: 4,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}

fn times(effort: Effort) -> Figure {
    let thousands = effort.thin(&[10.0, 20.0, 40.0, 60.0, 80.0]);
    let series = LINEUP.iter().map(|&algorithm| {
        Series::new(algorithm.title(), &thousands, |thousands| {
            let rows = (thousands * 1000.0) as u64;
            let data = DataSet::SparseModel;
            let setting = settings(Effort::Quick, data, LossKind::Logistic, 1e-3, algorithm, EPSILONS[1])[0];
            Setting { rows: Some(rows), passes: 10, batch_size: rows.isqrt(), timed: true, ..setting }
        })
    });
    let panels = vec![Panel {
        title: "Simulated data, ten passes, ε = 0.1".to_owned(),
        x: Axis { label: "thousands of rows", log: false },
        log_y: true,
        measure: Measure::Seconds,
        bars: Bars::Confidence,
        series: series.collect(),
    }];
    let claims = vec![linear_in_the_rows(&panels)];
    Figure {
        id: "renyi-4-5",
        title: "Rényi DP, chapter 4: time",
        description: "Seconds of ten passes over 10,000 to 80,000 simulated rows of 100 features, λ = 0.001, ε = 0.1, δ = 1e-8, \
                      replaced records; batches of √n. The chapter has no such figure.",
        columns: 1,
        claims,
        panels,
        repetitions: effort.repetitions(5),
    }
}
