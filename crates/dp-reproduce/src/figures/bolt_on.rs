//! Accuracy figures of Wu et al. 2017: 3, 4 and 6 to 10.

use dp_losses::{HuberSvm, LossKind};

use super::Effort;
use crate::algorithm::Algorithm;
use crate::claim::{Claim, Comparison, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use crate::results::Place;
use crate::setting::{LAMBDAS, Privacy, Setting, Tuning};

/// The budgets for ten models and for one.
const EPSILONS_OF_TEN: [f64; 6] = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0];
const EPSILONS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4];

/// The data sets, and the substitute for an unavailable one.
const SETS: [(DataSet, &str); 3] =
    [(DataSet::Mnist, "MNIST"), (DataSet::Occupancy, "Occupancy (for Protein)"), (DataSet::Covertype, "Covertype")];
const LARGE_SETS: [(DataSet, &str); 2] = [(DataSet::Higgs, "HIGGS"), (DataSet::KddCup, "KDD Cup 99")];

/// Algorithms with noise on every step, compared with ours: for pure privacy, and for delta > 0.
pub(super) const PER_STEP_PURE: &[Algorithm] = &[Algorithm::Scs13];
pub(super) const PER_STEP: &[Algorithm] =
    &[Algorithm::Scs13, Algorithm::Scs13AsPublished, Algorithm::Bst14, Algorithm::Bst14AsPublished];

/// The four scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    ConvexPure,
    ConvexApproximate,
    StronglyConvexPure,
    StronglyConvexApproximate,
}

impl Test {
    pub(super) const ALL: [Self; 4] =
        [Self::ConvexPure, Self::ConvexApproximate, Self::StronglyConvexPure, Self::StronglyConvexApproximate];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ConvexPure => "convex, ε",
            Self::ConvexApproximate => "convex, (ε, δ)",
            Self::StronglyConvexPure => "strongly convex, ε",
            Self::StronglyConvexApproximate => "strongly convex, (ε, δ)",
        }
    }

    pub(super) fn is_strongly_convex(self) -> bool {
        matches!(self, Self::StronglyConvexPure | Self::StronglyConvexApproximate)
    }

    pub(super) fn privacy(self, epsilon: f64) -> Privacy {
        match self {
            Self::ConvexPure | Self::StronglyConvexPure => Privacy::Pure { epsilon },
            Self::ConvexApproximate | Self::StronglyConvexApproximate => Privacy::Approximate { epsilon },
        }
    }

    /// Returns the compared algorithms, the baseline first.
    pub(super) fn algorithms(self) -> Vec<Algorithm> {
        let mut algorithms = vec![Algorithm::Noiseless, Algorithm::Ours];
        algorithms.extend(match self {
            Self::ConvexPure | Self::StronglyConvexPure => PER_STEP_PURE,
            Self::ConvexApproximate | Self::StronglyConvexApproximate => PER_STEP,
        });
        if self.is_strongly_convex() {
            algorithms.push(Algorithm::OursAsPublished);
        }
        algorithms
    }
}

pub(super) const EPSILON: Axis = Axis { label: "ε", log: true };

fn epsilons(data: DataSet, effort: Effort) -> Vec<f64> {
    effort.thin(if data.classes() > 2 { &EPSILONS_OF_TEN } else { &EPSILONS })
}

/// Returns the candidates of λ.
fn lambdas(test: Test, effort: Effort) -> Vec<f64> {
    match (test.is_strongly_convex(), effort) {
        (false, _) => vec![0.0],
        (true, Effort::Full) => LAMBDAS.to_vec(),
        (true, Effort::Quick) => vec![LAMBDAS[0], LAMBDAS[2]],
    }
}

/// Returns accuracy against epsilon for one data set and scenario, with λ the best in hindsight or selected privately.
fn panel(data: DataSet, title: &str, test: Test, effort: Effort, change: impl Fn(Setting) -> Setting) -> Panel {
    let (xs, lambdas) = (epsilons(data, effort), lambdas(test, effort));
    let series = test.algorithms().into_iter().map(|algorithm| {
        Series::best_of(algorithm.title(), &xs, |epsilon| {
            let mut setting = change(Setting::new(data, algorithm, test.privacy(epsilon)));
            if algorithm == Algorithm::Noiseless {
                setting.tuning = Tuning::Given;
            }
            let lambdas = if setting.tuning == Tuning::Portions { &lambdas[..1] } else { &lambdas };
            lambdas.iter().map(|&lambda| Setting { lambda, ..setting }).collect()
        })
    });
    Panel {
        title: format!("{title}: {}", test.title()),
        x: EPSILON,
        log_y: false,
        measure: Measure::Accuracy,
        bars: Bars::StdDev,
        series: series.collect(),
    }
}

/// Returns a row of four panels for each data set.
fn rows(sets: &[(DataSet, &str)], effort: Effort, change: impl Fn(Setting) -> Setting + Copy) -> Vec<Panel> {
    let tests = |&(data, title)| Test::ALL.into_iter().map(move |test| panel(data, title, test, effort, change));
    sets.iter().flat_map(tests).collect()
}

/// Returns the comparisons of section 4.5, to be judged with and without enough noise.
fn claims(panels: &[Panel], factor: f64) -> Vec<Claim> {
    let (ours, printed) = (Algorithm::Ours.title(), Algorithm::OursAsPublished.title());
    let mut claims = Vec::new();
    for other in PER_STEP.iter().map(|algorithm| algorithm.title()) {
        let better = format!("For all tests our algorithms give significantly better accuracy than {other}");
        claims.push(Claim::between(&better, panels, ours, Relation::MORE, other, Quantifier::Every));
        claims.push(Claim::between(
            &format!("Strongly convex, with the noise as printed: better accuracy than {other}"),
            panels,
            printed,
            Relation::MORE,
            other,
            Quantifier::Every,
        ));
        let relation = Relation::MoreThan { factor, margin: 0.0 };
        let statement = format!("Up to {factor} times the accuracy of {other}");
        claims.push(Claim::between(&statement, panels, ours, relation, other, Quantifier::Some));
    }
    claims.push(Claim::between(
        "Strongly convex: the noise as printed, which is too little, makes the model look better than sound noise does",
        panels,
        printed,
        Relation::MORE,
        ours,
        Quantifier::Every,
    ));
    claims.push(at_the_largest(
        panels,
        "Our algorithms reach the noiseless accuracy (within 0.02) at the largest ε",
        ours,
    ));
    claims.push(at_the_largest(
        panels,
        "Strongly convex, with the noise as printed: the noiseless accuracy (within 0.02) at the largest ε",
        printed,
    ));
    claims
}

/// Claims closeness to the noiseless accuracy at the last point of every panel.
fn at_the_largest(panels: &[Panel], statement: &str, name: &str) -> Claim {
    let relation = Relation::CloseTo { tolerance: 0.02 };
    let noiseless = Algorithm::Noiseless.title();
    let mut claim = Claim::between(statement, panels, name, relation, noiseless, Quantifier::Every);
    claim.comparisons.retain(|comparison| {
        let Place { panel, series, point } = comparison.left;
        panels[panel].series[series].points.len() == point + 1
    });
    claim
}

pub(super) fn all(effort: Effort) -> Vec<Figure> {
    [figure_3, figure_4, figure_6, figure_7, figure_8, figure_9, figure_10].map(|figure| figure(effort)).to_vec()
}

fn figure_3(effort: Effort) -> Figure {
    let panels = rows(&SETS, effort, |setting| setting);
    Figure {
        id: "bolt-on-3",
        title: "Bolt-on, figure 3: accuracy, parameters tuned on public data",
        description: "Test accuracy of logistic regression against ε for the four scenarios on MNIST (ten \
                      one-against-the-rest models, 50 dimensions), Protein and Covertype; batches of 50, ten passes, \
                      δ = 1/n². Here Occupancy replaces Protein, Covertype is a 16% sample, and λ is the best of \
                      0.0001, 0.001 and 0.01 for each algorithm and point.",
        columns: 4,
        claims: claims(&panels, 4.0),
        panels,
        repetitions: effort.repetitions(10),
    }
}

fn figure_4(effort: Effort) -> Figure {
    let xs = epsilons(DataSet::Mnist, effort);
    let ours = |test: Test, passes: u64, batch_size: u64| {
        move |epsilon| {
            let lambda = if test.is_strongly_convex() { 1e-2 } else { 0.0 };
            let setting = Setting::new(DataSet::Mnist, Algorithm::Ours, test.privacy(epsilon));
            Setting { passes, batch_size, lambda, ..setting }
        }
    };
    let passes = |test: Test| {
        let series = [1u64, 10, 20].map(|passes| {
            let name = if passes == 1 { "1 pass, b = 50".to_owned() } else { format!("{passes} passes, b = 50") };
            Series::new(name, &xs, ours(test, passes, 50))
        });
        series.to_vec()
    };
    let batches =
        [1u64, 10, 50].map(|size| Series::new(format!("20 passes, b = {size}"), &xs, ours(Test::ConvexPure, 20, size)));
    let panel = |title: &str, series| Panel {
        title: title.to_owned(),
        x: EPSILON,
        log_y: false,
        measure: Measure::Accuracy,
        bars: Bars::StdDev,
        series,
    };
    let panels = vec![
        panel("(a) passes, convex, ε", passes(Test::ConvexPure)),
        panel("(b) passes, strongly convex, ε", passes(Test::StronglyConvexPure)),
        panel("(c) batch size, convex, ε", batches.to_vec()),
    ];
    let within = |statement: &str, range: core::ops::Range<usize>, left: &str, relation, right: &str, quantifier| {
        let mut claim = Claim::between(statement, &panels, left, relation, right, quantifier);
        claim.comparisons.retain(|comparison: &Comparison| range.contains(&comparison.left.panel));
        claim
    };
    let claims = vec![
        within(
            "Convex: more passes mean more noise and less accuracy (1 pass against 20)",
            0..1,
            "1 pass, b = 50",
            Relation::MORE,
            "20 passes, b = 50",
            Quantifier::Every,
        ),
        within(
            "Strongly convex: more passes do not cost accuracy (20 passes at least as good as 1)",
            1..2,
            "1 pass, b = 50",
            Relation::AtMost { factor: 1.0, margin: 0.0 },
            "20 passes, b = 50",
            Quantifier::Every,
        ),
        within(
            "Convex: batches of 10 improve drastically on single records (by 0.1 somewhere)",
            2..3,
            "20 passes, b = 10",
            Relation::MoreThan { factor: 1.0, margin: 0.1 },
            "20 passes, b = 1",
            Quantifier::Some,
        ),
    ];
    Figure {
        id: "bolt-on-4",
        title: "Bolt-on, figure 4: passes and batch size (MNIST)",
        description: "Test accuracy of our algorithm on MNIST against ε: (a) convex and (b) strongly convex with 1, \
                      10 and 20 passes, (c) convex with 20 passes and batches of 1, 10 and 50. Here λ = 0.01 in (b): \
                      at 0.0001 sound noise dominates the model.",
        columns: 3,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}

fn privately_tuned(setting: Setting) -> Setting {
    Setting { tuning: Tuning::Portions, ..setting }
}

fn figure_6(effort: Effort) -> Figure {
    let panels = rows(&SETS, effort, privately_tuned);
    Figure {
        id: "bolt-on-6",
        title: "Bolt-on, figure 6: accuracy, parameters tuned privately",
        description: "As figure 3, but every private algorithm chooses among 5 and 10 passes, and λ of 0.0001, 0.001 \
                      and 0.01 in the strongly convex case, by Algorithm 3: each candidate is trained on a portion \
                      of the rows, and a further portion is used to choose. Noiseless has ten passes over all rows \
                      and the best λ.",
        columns: 4,
        claims: claims(&panels, 3.0),
        panels,
        repetitions: effort.repetitions(10),
    }
}

fn figure_7(effort: Effort) -> Figure {
    let panels = rows(&SETS, effort, |setting| Setting {
        loss: LossKind::HuberSvm(HuberSvm::USUAL),
        ..privately_tuned(setting)
    });
    Figure {
        id: "bolt-on-7",
        title: "Bolt-on, figure 7: accuracy of Huber support vector machines, parameters tuned privately",
        description: "As figure 6 with the Huber loss, h = 0.1.",
        columns: 4,
        claims: claims(&panels, 2.5),
        panels,
        repetitions: effort.repetitions(10),
    }
}

/// Returns the claims of figures 8 and 9.
fn claims_of_large_data(panels: &[Panel]) -> Vec<Claim> {
    let mut claims = claims(panels, 2.0);
    let (ours, noiseless) = (Algorithm::Ours.title(), Algorithm::Noiseless.title());
    let relation = Relation::CloseTo { tolerance: 0.02 };
    let statement = "Large data: privacy comes for free (within 0.02 of noiseless at every ε)";
    claims.push(Claim::between(statement, panels, ours, relation, noiseless, Quantifier::Every));
    claims
}

fn figure_8(effort: Effort) -> Figure {
    let panels = rows(&LARGE_SETS, effort, |setting| setting);
    Figure {
        id: "bolt-on-8",
        title: "Bolt-on, figure 8: accuracy on HIGGS and KDD Cup 99, parameters tuned on public data",
        description: "As figure 3 on HIGGS (11 million rows in the paper, 10,000 here) and KDD Cup 99 (4.9 million rows in the \
                      paper, a 10% sample here).",
        columns: 4,
        claims: claims_of_large_data(&panels),
        panels,
        repetitions: effort.repetitions(10),
    }
}

fn figure_9(effort: Effort) -> Figure {
    let panels = rows(&LARGE_SETS, effort, privately_tuned);
    Figure {
        id: "bolt-on-9",
        title: "Bolt-on, figure 9: accuracy on HIGGS and KDD Cup 99, parameters tuned privately",
        description: "As figure 8, with parameters chosen as in figure 6.",
        columns: 4,
        claims: claims_of_large_data(&panels),
        panels,
        repetitions: effort.repetitions(10),
    }
}

fn figure_10(effort: Effort) -> Figure {
    let sizes: &[u64] = if effort == Effort::Quick { &[50, 200] } else { &[50, 100, 150, 200] };
    let panels: Vec<Panel> = sizes
        .iter()
        .map(|&batch_size| {
            let title = format!("MNIST, b = {batch_size}");
            panel(DataSet::Mnist, &title, Test::StronglyConvexApproximate, effort, |setting| Setting {
                batch_size,
                ..setting
            })
        })
        .collect();
    let mut claims = claims(&panels, 2.0);
    // The same algorithm and budget, with the largest batches against the smallest.
    let last = panels.len() - 1;
    for algorithm in [Algorithm::Ours, Algorithm::OursAsPublished] {
        let series = panels[0].series.iter().position(|series| series.name == algorithm.title()).unwrap_or(0);
        let comparisons = (0..panels[0].series[series].points.len()).map(|point| Comparison {
            left: Place { panel: last, series, point },
            relation: Relation::MORE,
            right: Place { panel: 0, series, point },
        });
        claims.push(Claim {
            statement: format!("Larger batches raise the accuracy ({}, b = 200 against 50)", algorithm.title()),
            quantifier: Quantifier::Every,
            comparisons: comparisons.collect(),
        });
    }
    Figure {
        id: "bolt-on-10",
        title: "Bolt-on, figure 10: accuracy against batch size (MNIST)",
        description: "Test accuracy on MNIST against ε, strongly convex, (ε, δ), for batches of 50, 100, 150 and 200; λ as in \
                      figure 3.",
        columns: 4,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}
