//! Chapter 5 of the dissertation, its networks: private line searches against fixed step sizes, over the iterations.

use super::Effort;
use crate::claim::{Claim, Comparison, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use crate::network::{NetworkSetting, Optimiser};
use crate::results::Place;

/// The iterations at which the curves have points.
const ITERATIONS: [f64; 8] = [10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 700.0, 1000.0];

/// The networks of figure 5.5 with their data; those of CIFAR-10 are a figure of their own, for users without its files.
const NETWORKS: [(DataSet, &str, &str); 4] = [
    (DataSet::MnistImages, "mlp:1000", "MNIST, MLP"),
    (DataSet::MnistImages, "small-cnn", "MNIST, CNN"),
    (DataSet::FashionImages, "mlp:256,256", "Fashion-MNIST, MLP"),
    (DataSet::FashionImages, "small-cnn", "Fashion-MNIST, CNN"),
];
const CIFAR: [(DataSet, &str, &str); 1] = [(DataSet::CifarImages, "cifar-cnn", "CIFAR-10, CNN")];

/// The curves of a panel, the chapter's search first. The last one is not in the chapter.
const OPTIMISERS: [(&str, Optimiser); 5] = [
    ("DP-BLSGD", Optimiser::DpBlsgd { armijo: 0.001 }),
    ("DP-SGD", Optimiser::DpSgd),
    ("DP-Adam", Optimiser::DpAdam),
    ("Adam, not private", Optimiser::Adam),
    ("DP-BLSGD, a = 0.1", Optimiser::DpBlsgd { armijo: 0.1 }),
];
const SEARCH: usize = 0;
const SGD: usize = 1;
const ADAM: usize = 2;

/// The rows of panels.
const MEASURES: [Measure; 3] = [Measure::Accuracy, Measure::Objective, Measure::ChosenStep];

pub(super) fn all(effort: Effort) -> Vec<Figure> {
    vec![
        figure(effort, "renyi-5-5", "Rényi DP, figure 5.5: networks", &NETWORKS),
        figure(effort, "renyi-5-6", "Rényi DP, figure 5.5: the network of CIFAR-10", &CIFAR),
    ]
}

fn figure(
    effort: Effort,
    id: &'static str,
    title: &'static str,
    networks: &[(DataSet, &'static str, &'static str)],
) -> Figure {
    let iterations = effort.thin(&ITERATIONS);
    let mut panels = Vec::new();
    for measure in MEASURES {
        for &(data, network, name) in networks {
            panels.push(Panel {
                title: format!("{name}: {}", measure.label()),
                x: Axis { label: "iterations", log: true },
                log_y: measure != Measure::Accuracy,
                measure,
                bars: Bars::StdDev,
                series: series(measure, data, network, &iterations),
            });
        }
    }
    Figure {
        id,
        title,
        description: "Test accuracy, objective on the training images (λ = 0.001) and the size of the step that the line search \
                      chooses, against the iterations. As in the chapter: sampling rate 1/200, clipping norms of 3 for gradients \
                      and losses, pixels in [-1, 1], step sizes of 0.2 for DP-SGD and 0.001 for Adam, a = 0.001 and β = 0.8 for \
                      the search, which has a tenth of the cost of each iteration and takes the shortest candidate if none is \
                      accepted. Not named there, and chosen here: ε = 2 after 1000 iterations (δ = 1e-8, add-remove), 20 \
                      candidates from 1 on, ReLU in perceptrons and tanh in convolutional networks, kernels of 5 x 5 without \
                      padding (CIFAR-10: 3 x 3, padding 1, and two linear layers of 1024 and 512 instead of three of 4096, 1024 \
                      and 512). In the chapter the search has Gaussian noise, for which no theorem holds as printed, and gradient and search on one \
                      batch are amplified separately; here it has Laplace noise, and both together are amplified once.",
        columns: networks.len(),
        claims: claims(&panels, networks.len()),
        panels,
        repetitions: effort.repetitions(5),
    }
}

fn series(measure: Measure, data: DataSet, network: &'static str, iterations: &[f64]) -> Vec<Series> {
    let chooses = |optimiser: &Optimiser| matches!(optimiser, Optimiser::DpBlsgd { .. });
    let shown = OPTIMISERS.into_iter().filter(|(_, optimiser)| measure != Measure::ChosenStep || chooses(optimiser));
    shown
        .map(|(name, optimiser)| {
            let setting = NetworkSetting::new(data, network, optimiser);
            Series::new(name, iterations, |after| NetworkSetting { after: after as u64, ..setting })
        })
        .collect()
}

/// Returns the chapter's claims about panels in rows of `columns`: accuracies, objectives, steps.
fn claims(panels: &[Panel], columns: usize) -> Vec<Claim> {
    let accuracies = |part: &'static str| (0..columns).filter(move |&panel| panels[panel].title.contains(part));
    let last = panels[0].series[0].points.len() - 1;
    // The iterations of the first tenth.
    let early: Vec<usize> = (0..=last).filter(|&point| panels[0].series[0].points[point].x <= 100.0).collect();
    let place = |panel, series, point| Place { panel, series, point };
    let every = |statement: String, comparisons: Vec<Comparison>| Claim {
        statement,
        quantifier: Quantifier::Every,
        comparisons,
    };
    let mut claims = Vec::new();
    for (kind, what) in [("MLP", "perceptrons"), ("CNN", "convolutional networks")] {
        if accuracies(kind).next().is_none() {
            continue;
        }
        for (other, name) in [(SGD, "DP-SGD"), (ADAM, "DP-Adam")] {
            let faster = accuracies(kind).flat_map(|panel| {
                early.iter().map(move |&point| Comparison {
                    left: place(panel, SEARCH, point),
                    relation: Relation::MORE,
                    right: place(panel, other, point),
                })
            });
            claims.push(every(
                format!("DP-BLSGD is more accurate than {name} in the first hundred iterations: {what}"),
                faster.collect(),
            ));
            let at_the_end = accuracies(kind).map(|panel| {
                let (panel, lower) = if kind == "MLP" { (panel, false) } else { (columns + panel, true) };
                let (search, other) = (place(panel, SEARCH, last), place(panel, other, last));
                match lower {
                    true => Comparison { left: other, relation: Relation::MORE, right: search },
                    false => Comparison { left: search, relation: Relation::CloseTo { tolerance: 0.01 }, right: other },
                }
            });
            let statement = match kind {
                "MLP" => format!("DP-BLSGD ends at an accuracy within 0.01 of that of {name}: {what}"),
                _ => format!("DP-BLSGD ends at a lower objective than {name}: {what}"),
            };
            claims.push(every(statement, at_the_end.collect()));
        }
    }
    let falls = (2 * columns..3 * columns).map(|panel| Comparison {
        left: place(panel, SEARCH, 0),
        relation: Relation::MORE,
        right: place(panel, SEARCH, last),
    });
    claims.push(every("The step size that DP-BLSGD chooses falls during training".to_owned(), falls.collect()));
    claims
}
