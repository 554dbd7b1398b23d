//! Chapter 5 of the dissertation, its convex part: step sizes by private line searches. Add-remove throughout.

use dp_losses::LossKind;

use super::Effort;
use super::renyi::{CLOSE, EPSILONS, LAMBDA, accuracy_above_objective, better, curves, no_worse, only, panel, setting};
use super::renyi_3::{BATCH, PASSES, huber};
use crate::algorithm::Algorithm;
use crate::claim::{Claim, Comparison, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Figure, Measure, Panel, Point, Series};
use crate::knobs::Knobs;
use crate::results::Place;
use crate::setting::{Neighbours, Setting};

/// The chapter's own algorithms.
const SEARCHES: [Algorithm; 3] = [Algorithm::DpBlgd, Algorithm::DpBlsgd, Algorithm::DpBlsgdAc];

/// The baselines, one line each. DP-Adam, DP-AdamBC and ObjPert around a centre are not in the chapter.
const BASELINES: [Algorithm; 10] = [
    Algorithm::DpAgd,
    Algorithm::DpSgd,
    Algorithm::RsgdAr,
    Algorithm::OutPertGd,
    Algorithm::ObjPert,
    Algorithm::PrivGene,
    Algorithm::DpSvrg,
    Algorithm::ObjPertCentred,
    Algorithm::DpAdam,
    Algorithm::DpAdamBc,
];

/// Number of gradients and searches that the budget is planned for.
const STEPS: u64 = 50;
/// The budgets at which hyperparameters are varied.
const TWO: [f64; 2] = [0.05, 0.2];

pub(super) fn all(effort: Effort) -> Vec<Figure> {
    vec![
        hyper_parameters(effort),
        evaluations(effort),
        census(effort, "renyi-5-3", "Rényi DP, figure 5.3: logistic regression", LossKind::Logistic),
        census(effort, "renyi-5-4", "Rényi DP, figure 5.4: support vector machine", huber()),
    ]
}

/// Returns settings with λ = 0.001, and batches of a tenth of the records if sampled.
pub(super) fn settings(data: DataSet, loss: LossKind, algorithm: Algorithm, epsilon: f64) -> Vec<Setting> {
    let setting = Setting { loss, lambda: LAMBDA, ..setting(data, algorithm, epsilon, Neighbours::AddRemove) };
    let setting = Setting { batch_size: super::renyi::training_rows(data) / 10, ..setting };
    match algorithm {
        Algorithm::DpSgd => [5, 20].map(|passes| Setting { passes, ..setting }).to_vec(),
        Algorithm::DpAdam | Algorithm::DpAdamBc => vec![Setting { passes: 20, ..setting }],
        Algorithm::DpAgd | Algorithm::DpBlgd | Algorithm::DpBlsgd | Algorithm::DpBlsgdAc => {
            vec![Setting { passes: STEPS, ..setting }]
        }
        Algorithm::RsgdAr | Algorithm::Nsgd => {
            PASSES.map(|passes| Setting { passes, batch_size: BATCH, ..setting }).to_vec()
        }
        _ => vec![Setting { batch_size: BATCH, ..setting }],
    }
}

fn census(effort: Effort, id: &'static str, title: &'static str, loss: LossKind) -> Figure {
    let lineup = [&[Algorithm::Minimiser, Algorithm::Majority], &SEARCHES[..], &BASELINES[..]].concat();
    let column = |data: DataSet| {
        (data.title().to_owned(), curves(&lineup, effort, |algorithm, e| settings(data, loss, algorithm, e)))
    };
    let panels = accuracy_above_objective([DataSet::Adult, DataSet::Bank].map(column).to_vec());
    let mut claims = Vec::new();
    for measure in [Measure::Accuracy, Measure::Objective] {
        for one in SEARCHES {
            for other in BASELINES {
                if measure == Measure::Objective && other == Algorithm::ObjPertCentred {
                    continue; // It minimises another one.
                }
                claims.push(better(&panels, measure, one, other));
                claims.push(no_worse(&panels, measure, one, other));
            }
        }
    }
    for other in [Algorithm::ObjPert, Algorithm::DpSgd] {
        let claim = better(&panels, Measure::Accuracy, Algorithm::DpBlsgd, other);
        let statement = format!("Smallest ε: {}", claim.statement);
        claims.push(only(Claim { statement, ..claim }, &panels, |_, at| at == 0.0));
    }
    for one in SEARCHES {
        let claim = better(&panels, Measure::Accuracy, Algorithm::RsgdAr, one);
        let statement = format!("Bank is the exception: {}", claim.statement);
        claims.push(only(Claim { statement, ..claim }, &panels, |panel, _| panel.title.starts_with("Bank")));
    }
    claims.push(better(&panels, Measure::Accuracy, Algorithm::DpBlsgdAc, Algorithm::DpBlsgd));
    Figure {
        id,
        title,
        description: "Test accuracy (above) and training objective (below, λ = 0.001) against ε, δ = 1e-8, on Adult \
                      (124 dimensions) and Bank (33); the IPUMS extracts may not be redistributed. Every algorithm \
                      is calibrated under add-remove (in the chapter, output and objective perturbation are under \
                      replace-one, at twice the sensitivity). Line searches have Laplace noise, a = 0.5, β = 0.8, a \
                      fresh batch for each access, public divisors, a privacy filter at one Rényi order, budgets for \
                      50 steps, and a clipping norm of 1, which no gradient exceeds. Batches are a tenth of the \
                      records. DP-SGD has the best of 5 and 20 passes, RSGD-AR of 10, 50 and 200. For all algorithms \
                      the support vector machine has the Huber loss, h = 0.5, which the chapter uses for output and \
                      objective perturbation.",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}

/// Returns a panel of accuracies against a hyperparameter at the two budgets.
fn against(
    title: &str,
    label: &'static str,
    values: &[f64],
    algorithm: Algorithm,
    change: impl Fn(Setting, f64) -> Setting,
) -> Panel {
    let curve = |epsilon: f64| {
        Series::new(format!("ε = {epsilon}"), values, |value| {
            change(settings(DataSet::Adult, LossKind::Logistic, algorithm, epsilon)[0], value)
        })
    };
    Panel {
        title: title.to_owned(),
        x: Axis { label, log: false },
        log_y: false,
        measure: Measure::Accuracy,
        bars: Bars::StdDev,
        series: TWO.map(curve).to_vec(),
    }
}

fn hyper_parameters(effort: Effort) -> Figure {
    let rows = super::renyi::training_rows(DataSet::Adult) as f64;
    let knobs = |setting: Setting, knobs: Knobs| Setting { knobs, ..setting };
    let (full, sampled) = (Algorithm::DpBlgd, Algorithm::DpBlsgd);
    let mut panels = vec![
        against("(a) Armijo's share", "a", &effort.thin(&[0.1, 0.3, 0.5, 0.7, 0.9]), sampled, |setting, a| {
            knobs(setting, Knobs { armijo: Some(a), ..Knobs::default() })
        }),
        against("(b) backtracking", "β", &[0.2, 0.5, 0.8, 0.95], sampled, |setting, shrink| {
            knobs(setting, Knobs { shrink: Some(shrink), ..Knobs::default() })
        }),
        against("(d) sampling ratio", "q", &effort.thin(&[0.02, 0.05, 0.1, 0.2, 0.5]), sampled, |setting, q| Setting {
            batch_size: (q * rows) as u64,
            ..setting
        }),
        against("(f) decay of the clipping norms", "ζ", &[0.0, 0.05, 0.1, 0.2], sampled, |setting, decay| {
            let algorithm = if decay > 0.0 { Algorithm::DpBlsgdAc } else { setting.algorithm };
            let decay = (decay > 0.0).then_some(decay);
            knobs(Setting { algorithm, ..setting }, Knobs { clip_decay: decay, ..Knobs::default() })
        }),
    ];
    let xs = effort.thin(&EPSILONS);
    let curve = |(name, selection): (&str, bool)| {
        Series::new(name, &xs, move |epsilon| {
            let setting = settings(DataSet::Adult, LossKind::Logistic, full, epsilon)[0];
            Setting { knobs: Knobs { selection, ..Knobs::default() }, ..setting }
        })
    };
    let series = [("Laplace backtracking", false), ("exponential mechanism", true)].map(curve).to_vec();
    panels.push(panel("(c) the search's noise, full batches".to_owned(), Measure::Accuracy, series));
    let claims = claims_of_hyper_parameters(&panels);
    Figure {
        id: "renyi-5-1",
        title: "Rényi DP, figure 5.1: hyper-parameters of the line search",
        description: "Test accuracy of DP-BLSGD (logistic regression, Adult, λ = 0.001, δ = 1e-8, add-remove) at ε = 0.05 and \
                      0.2. Instead of Gaussian noise on the sparse vector, for which no theorem holds as printed, the \
                      exponential mechanism chooses the step in (c). (e), how the budget grows, cannot be chosen here.",
        columns: 3,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}

/// Returns comparisons of two points of a curve, by panel, curve and the x of each.
fn within(panels: &[Panel], statement: &str, (panel, epsilon): (usize, f64), pairs: &[(f64, Relation, f64)]) -> Claim {
    let curve = |series: &&Series| series.name == format!("ε = {epsilon}");
    let found = panels[panel].series.iter().find(curve).zip(panels[panel].series.iter().position(|s| curve(&s)));
    let comparisons = found.into_iter().flat_map(|(curve, series)| {
        let place = |x: f64| {
            let at = curve.points.iter().position(|point: &Point| point.x == x);
            at.map(|point| Place { panel, series, point })
        };
        let pair = move |&(left, relation, right): &(f64, Relation, f64)| {
            Some(Comparison { left: place(left)?, relation, right: place(right)? })
        };
        pairs.iter().filter_map(pair).collect::<Vec<_>>()
    });
    let comparisons = comparisons.collect();
    Claim { statement: statement.to_owned(), quantifier: Quantifier::Every, comparisons }
}

fn claims_of_hyper_parameters(panels: &[Panel]) -> Vec<Claim> {
    let others = |panel: usize, usual: f64| {
        let xs = panels[panel].series[0].points.iter().map(|point| point.x);
        xs.filter(|&x| x != usual).collect::<Vec<f64>>()
    };
    let pairs = |panel: usize, usual: f64, relation: Relation| {
        others(panel, usual).into_iter().map(|x| (x, relation, usual)).collect::<Vec<_>>()
    };
    let robust = Relation::CloseTo { tolerance: 0.02 };
    let best = Relation::AtMost { factor: 1.0, margin: 0.0 };
    let at =
        |statement: &str, place: (usize, f64), pairs: &[(f64, Relation, f64)]| within(panels, statement, place, pairs);
    let [low, high] = TWO;
    vec![
        at("ε = 0.2: robust against a (within 0.02 of a = 0.5)", (0, high), &pairs(0, 0.5, robust)),
        at("ε = 0.2: robust against β (within 0.02 of β = 0.8)", (1, high), &pairs(1, 0.8, robust)),
        at("ε = 0.05: a = 0.5 is the best", (0, low), &pairs(0, 0.5, best)),
        at("ε = 0.05: β = 0.8 is the best", (1, low), &pairs(1, 0.8, best)),
        at("ε = 0.2: robust against q (within 0.02 of q = 0.1)", (2, high), &pairs(2, 0.1, robust)),
        at("ε = 0.05: q must not be small (0.1 against 0.02)", (2, low), &[(0.1, Relation::MORE, 0.02)]),
        at("ε = 0.05: clipping norms that shrink help (ζ = 0.05)", (3, low), &[(0.05, Relation::MORE, 0.0)]),
        at("ε = 0.2: clipping norms that shrink do not help", (3, high), &[(0.05, best, 0.0)]),
        Claim::between(
            "Laplace backtracking is as accurate as another search (within 0.01)",
            panels,
            "exponential mechanism",
            Relation::AtMost { factor: 1.0, margin: CLOSE },
            "Laplace backtracking",
            Quantifier::Every,
        ),
    ]
}

fn evaluations(effort: Effort) -> Figure {
    let ratios = effort.thin(&[0.02, 0.05, 0.1, 0.2, 0.5]);
    let rows = super::renyi::training_rows(DataSet::Adult) as f64;
    let curve = |&algorithm: &Algorithm| {
        Series::new(algorithm.title(), &ratios, |q| {
            let setting = settings(DataSet::Adult, LossKind::Logistic, algorithm, 0.4)[0];
            // Full batches are independent of the ratio.
            let sampled = algorithm == Algorithm::DpBlsgd;
            Setting { batch_size: if sampled { (q * rows) as u64 } else { setting.batch_size }, ..setting }
        })
    };
    let series: Vec<Series> = [Algorithm::DpBlsgd, Algorithm::DpBlgd].iter().map(curve).collect();
    let of_measure = |(title, measure, log_y): (&str, Measure, bool)| Panel {
        title: title.to_owned(),
        x: Axis { label: "q", log: true },
        log_y,
        measure,
        bars: Bars::StdDev,
        series: series.clone(),
    };
    let panels = [("Gradients and searches, in passes", Measure::Reads, true), ("Accuracy", Measure::Accuracy, false)];
    let panels = panels.map(of_measure).to_vec();
    let (sampled, full) = (Algorithm::DpBlsgd.title(), Algorithm::DpBlgd.title());
    let between = |statement: &str, left, relation, right, measure: Measure| {
        let claim = Claim::between(statement, &panels, left, relation, right, Quantifier::Every);
        only(claim, &panels, |panel, _| panel.measure == measure)
    };
    let (twice, close) = (Relation::MoreThan { factor: 2.0, margin: 0.0 }, Relation::CloseTo { tolerance: 0.02 });
    let claims = vec![
        between(
            "Batches need fewer evaluations than full gradients (less than half)",
            full,
            twice,
            sampled,
            Measure::Reads,
        ),
        between("Batches are as accurate as full gradients (within 0.02)", sampled, close, full, Measure::Accuracy),
    ];
    Figure {
        id: "renyi-5-2",
        title: "Rényi DP, figure 5.2: evaluations",
        description: "Passes over the records that DP-BLSGD and DP-BLGD read, against the sampling ratio q: a record \
                      is read once for each gradient and once for each search, whose 20 candidates are evaluated \
                      together; and their test accuracy. Logistic regression on Adult, ε = 0.4, δ = 1e-8, λ = 0.001, \
                      add-remove. The number of reads depends on what was released; a private release would not \
                      state it.",
        columns: 2,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}
