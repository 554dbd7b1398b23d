//! Chapter 3 of the dissertation: RSGD-AR and its baselines. Replace-one throughout.

use dp_losses::{HuberSvm, LossKind};

use super::Effort;
use super::renyi::{
    CLOSE, LAMBDA, accuracy_above_objective, better, curves, linear_in_the_rows, no_worse, only, panel, setting,
};
use crate::algorithm::Algorithm;
use crate::claim::{Claim, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use crate::knobs::Knobs;
use crate::setting::{Neighbours, Setting, Step};

/// The baselines of RSGD-AR, one line each. ObjPert around a centre is newer than the chapter.
const BASELINES: [Algorithm; 10] = [
    Algorithm::Nsgd,
    Algorithm::OutPertGd,
    Algorithm::ObjPert,
    Algorithm::ObjPertKst12,
    Algorithm::ObjPertRdp,
    Algorithm::Amp,
    Algorithm::AmpAsPublished,
    Algorithm::ObjPertCentred,
    Algorithm::DpAgd,
    Algorithm::DpSgd,
];

/// The candidates of T of RSGD-AR and NSGD, and their batches; τ is half of T.
pub(super) const PASSES: [u64; 3] = [10, 50, 200];
pub(super) const BATCH: u64 = 4000;
/// The candidates of DP-SGD's passes.
const PASSES_OF_DP_SGD: [u64; 3] = [1, 5, 20];
/// Number of steps that DP-AGD's budget is planned for.
const STEPS_OF_DP_AGD: u64 = 20;

pub(super) fn all(effort: Effort) -> Vec<Figure> {
    vec![
        census(effort, "renyi-3-1", "Rényi DP, figure 3.1: logistic regression", LossKind::Logistic),
        census(effort, "renyi-3-2", "Rényi DP, figure 3.2: support vector machine", huber()),
        kdd_cup(effort),
        times(effort),
        averages(effort),
    ]
}

/// Returns the hinge loss smoothed by a parabola of half width 1/2.
pub(super) fn huber() -> LossKind {
    LossKind::HuberSvm(HuberSvm::new(0.5).unwrap_or(HuberSvm::USUAL))
}

/// Returns settings with λ = 0.001 and each algorithm's own passes and batches.
fn settings(data: DataSet, loss: LossKind, algorithm: Algorithm, epsilon: f64) -> Vec<Setting> {
    let setting = Setting { loss, lambda: LAMBDA, ..setting(data, algorithm, epsilon, Neighbours::ReplaceOne) };
    match algorithm {
        Algorithm::DpSgd => PASSES_OF_DP_SGD.map(|passes| Setting { passes, ..setting }).to_vec(),
        Algorithm::DpAgd => vec![Setting { passes: STEPS_OF_DP_AGD, ..setting }],
        Algorithm::RsgdAr | Algorithm::Nsgd => {
            PASSES.map(|passes| Setting { passes, batch_size: BATCH, ..setting }).to_vec()
        }
        _ => vec![setting],
    }
}

fn lineup(yardsticks: &[Algorithm]) -> Vec<Algorithm> {
    [yardsticks, &[Algorithm::RsgdAr], &BASELINES].concat()
}

fn claims_of_rsgd_ar(panels: &[Panel]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for measure in [Measure::Accuracy, Measure::Objective] {
        for other in BASELINES {
            if measure == Measure::Objective && other == Algorithm::ObjPertCentred {
                continue; // It minimises another one.
            }
            claims.push(better(panels, measure, Algorithm::RsgdAr, other));
            claims.push(no_worse(panels, measure, Algorithm::RsgdAr, other));
        }
    }
    claims
}

fn census(effort: Effort, id: &'static str, title: &'static str, loss: LossKind) -> Figure {
    let column = |data: DataSet| {
        let algorithms = lineup(&[Algorithm::Minimiser, Algorithm::Majority]);
        (data.title().to_owned(), curves(&algorithms, effort, |algorithm, e| settings(data, loss, algorithm, e)))
    };
    let panels = accuracy_above_objective([DataSet::Adult, DataSet::Bank].map(column).to_vec());
    let mut claims = claims_of_rsgd_ar(&panels);
    let (dp_sgd, plain) = (Algorithm::DpSgd.title(), Algorithm::Minimiser.title());
    let close = Relation::CloseTo { tolerance: 0.02 };
    let statement =
        "At some ε DP-SGD, its passes chosen with hindsight, is almost as accurate as without privacy (within 0.02)";
    let claim = Claim::between(statement, &panels, dp_sgd, close, plain, Quantifier::Some);
    claims.push(only(claim, &panels, |panel, _| panel.measure == Measure::Accuracy));
    Figure {
        id,
        title,
        description: "Test accuracy (above) and training objective (below, λ = 0.001) against ε, δ = 1e-8, on Adult \
                      (124 dimensions) and Bank (33); the IPUMS extracts of the chapter may not be redistributed. \
                      Every algorithm is calibrated for replaced records, jointly over its whole run. RSGD-AR and \
                      NSGD have batches of 4000 and the best of 10, 50 and 200 passes, RSGD-AR with an average and a \
                      restart after half of them; DP-SGD has batches of √n and the best of 1, 5 and 20 passes. The \
                      chapter prints no step sizes: all follow from public numbers by one rule. Every fifth row is \
                      for testing. ObjPert has the λ of the objective, exactly calibrated or as printed; around a \
                      centre it has the recommended regulariser. The Huber loss has h = 0.5.",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(20),
    }
}

fn kdd_cup(effort: Effort) -> Figure {
    let column = |(title, loss): (&str, LossKind)| {
        let series = curves(&lineup(&[Algorithm::Minimiser]), effort, |algorithm, epsilon| {
            settings(DataSet::KddCup, loss, algorithm, epsilon)
        });
        (title.to_owned(), series)
    };
    let tasks = [("Logistic regression", LossKind::Logistic), ("Support vector machine", huber())];
    let panels = accuracy_above_objective(tasks.map(column).to_vec());
    let mut claims = claims_of_rsgd_ar(&panels);
    for output in [Algorithm::RsgdAr, Algorithm::Nsgd, Algorithm::OutPertGd] {
        for gradient in [Algorithm::DpSgd, Algorithm::DpAgd] {
            let logistic = |panel: &Panel| panel.title.starts_with("Logistic");
            let claim = better(&panels, Measure::Accuracy, output, gradient);
            let statement = format!("Logistic, smallest ε: {}", claim.statement);
            claims.push(only(Claim { statement, ..claim }, &panels, |panel, at| logistic(panel) && at == 0.0));
            let claim = better(&panels, Measure::Accuracy, gradient, output);
            let statement = format!("Logistic, largest ε: {}", claim.statement);
            claims.push(only(Claim { statement, ..claim }, &panels, |panel, at| logistic(panel) && at == 1.0));
        }
    }
    Figure {
        id: "renyi-3-3",
        title: "Rényi DP, figure 3.3: KDD Cup 99",
        description: "As figures 3.1 and 3.2 on KDD Cup 99, δ = 1e-12, replaced records: 395,217 rows of the 10% sample with its \
                      34 numeric columns and an intercept (the chapter has 4.9 million rows in 120 dimensions).",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(20),
    }
}

fn times(effort: Effort) -> Figure {
    let thousands = effort.thin(&[50.0, 100.0, 150.0, 200.0, 250.0]);
    let algorithms = lineup(&[Algorithm::Minimiser]);
    let series = algorithms.iter().map(|&algorithm| {
        Series::new(algorithm.title(), &thousands, |thousands| {
            let setting = settings(DataSet::KddCup, LossKind::Logistic, algorithm, 0.1)[0];
            let passes = if algorithm == Algorithm::DpSgd { 5 } else { setting.passes };
            Setting { rows: Some((thousands * 1000.0) as u64), passes, timed: true, ..setting }
        })
    });
    let axis = Axis { label: "thousands of rows", log: false };
    let panels = vec![Panel {
        title: "Logistic regression, ε = 0.1".to_owned(),
        x: axis,
        log_y: true,
        measure: Measure::Seconds,
        bars: Bars::Confidence,
        series: series.collect(),
    }];
    let obj_pert = Algorithm::ObjPert.title();
    let mut claims = vec![linear_in_the_rows(&panels)];
    for other in algorithms.into_iter().filter(|other| ![Algorithm::ObjPert, Algorithm::Minimiser].contains(other)) {
        let statement = format!("ObjPert is the fastest: {} takes longer", other.title());
        claims.push(Claim::between(&statement, &panels, other.title(), Relation::MORE, obj_pert, Quantifier::Every));
    }
    let (relation, rsgd_ar) = (Relation::AtMost { factor: 1.5, margin: 0.0 }, Algorithm::RsgdAr.title());
    let statement = "RSGD-AR is almost as fast as ObjPert (at most 1.5 times its time)";
    claims.push(Claim::between(statement, &panels, rsgd_ar, relation, obj_pert, Quantifier::Every));
    Figure {
        id: "renyi-3-4",
        title: "Rényi DP, figure 3.4: time",
        description: "Seconds of training on 50,000 to 250,000 rows of KDD Cup 99 drawn at random, ε = 0.1, δ = \
                      1e-12, replaced records; DP-SGD makes five passes with batches of √n, n being the number of \
                      all rows.",
        columns: 1,
        claims,
        panels,
        repetitions: effort.repetitions(5),
    }
}

/// Returns RSGD-AR with one setting varied, on Adult.
fn averages(effort: Effort) -> Figure {
    let base = |epsilon: f64| settings(DataSet::Adult, LossKind::Logistic, Algorithm::RsgdAr, epsilon)[0];
    let variants: [(&str, Algorithm, Knobs); 4] = [
        ("averages and restarts", Algorithm::RsgdAr, Knobs::default()),
        ("averages, steps go on falling", Algorithm::RsgdAr, Knobs { falling: true, ..Knobs::default() }),
        ("no averages", Algorithm::RsgdAr, Knobs { restart_every: Some(0), ..Knobs::default() }),
        ("no averages, position not hidden", Algorithm::Nsgd, Knobs::default()),
    ];
    let xs = effort.thin(&super::renyi::EPSILONS);
    let of_variants = |step: Step| {
        let curve = |(name, algorithm, knobs)| {
            Series::new(name, &xs, move |epsilon| Setting { algorithm, knobs, step, ..base(epsilon) })
        };
        variants.map(curve).to_vec()
    };
    let mut panels = vec![
        panel("The same first step, η₀ = 1".to_owned(), Measure::Accuracy, of_variants(Step::First(1.0))),
        panel("Steps that suit the budget".to_owned(), Measure::Accuracy, of_variants(Step::Suited)),
    ];
    let mut against = |title: &str, label: &'static str, values: &[f64], change: &dyn Fn(Setting, f64) -> Setting| {
        let curve =
            |epsilon: f64| Series::new(format!("ε = {epsilon}"), values, move |value| change(base(epsilon), value));
        panels.push(Panel {
            title: title.to_owned(),
            x: Axis { label, log: true },
            log_y: false,
            measure: Measure::Accuracy,
            bars: Bars::StdDev,
            series: [0.1, 0.4].map(curve).to_vec(),
        });
    };
    against("Passes", "T", &effort.thin(&[2.0, 4.0, 10.0, 20.0, 40.0]), &|setting, passes| Setting {
        passes: passes as u64,
        ..setting
    });
    against(
        "Batches",
        "records in a batch",
        &effort.thin(&[250.0, 1000.0, 4000.0, 10_000.0, 39_074.0]),
        &|setting, b| Setting { batch_size: b as u64, ..setting },
    );
    against("First step", "η₀", &effort.thin(&[0.03, 0.1, 0.3, 1.0, 3.0]), &|setting, step| Setting {
        step: Step::First(step),
        ..setting
    });
    let compare = |statement: &str, left: usize, relation, right: usize| {
        Claim::between(statement, &panels, variants[left].0, relation, variants[right].0, Quantifier::Every)
    };
    let no_less = Relation::AtMost { factor: 1.0, margin: CLOSE };
    let claims = vec![
        compare("Averages with falling steps need less noise: more accurate than none", 1, Relation::MORE, 2),
        compare("Averages with restarts are more accurate than none", 0, Relation::MORE, 2),
        compare("A hidden position does not cost accuracy (within 0.01)", 3, no_less, 2),
        compare("A hidden position buys accuracy", 2, Relation::MORE, 3),
        compare("RSGD-AR is more accurate than NSGD", 0, Relation::MORE, 3),
    ];
    Figure {
        id: "renyi-3-5",
        title: "Rényi DP, section 3.5: averages, restarts and hyper-parameters",
        description: "Claims of the text about averages, restarts and random positions, for which the chapter has no \
                      figure: test accuracy of logistic regression on Adult, λ = 0.001, δ = 1e-8, replaced records. \
                      One thing is changed at a time from ten passes, batches of 4000 and steps from public numbers.",
        columns: 3,
        claims,
        panels,
        repetitions: effort.repetitions(20),
    }
}
