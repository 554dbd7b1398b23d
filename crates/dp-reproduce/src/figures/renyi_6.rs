//! Chapter 6 of the dissertation: private ranking. Neighbouring data differ in the grades of one list.

use dp_accountant::Epsilon;
use dp_rank::loss::{BayesRank, ListLoss, ListMle, ListNet};
use dp_rank::train::{Descent, PrivateRanking};

use super::Effort;
use super::bolt_on::EPSILON;
use super::renyi_6_claims::{of_budgets, of_courses};
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use crate::ranker::{Clipping, Loss, Method, Noise, RankerSetting, Shape, epsilon_of};

/// Synthetic lists for users without the files: as many as in MQ2008.
pub const MADE_UP_LISTS: DataSet = DataSet::MadeUpLists { lists: 784 };

const NETWORK: Shape = Shape::Network { hidden: 256 };
/// Number of parameters of the network.
const PARAMETERS: u64 = 256 * (46 + 2);

/// The random order, which is the common baseline.
pub(super) const RANDOM: &str = "Random order";
/// The algorithm of the chapter.
pub(super) const PRIV_BR: &str = "PrivBR";
/// Suffix of the names of rankers without spectral normalisation.
const FREE: &str = ", spectral norms free";
const LAMBDA_RANK: &str = "LambdaRank, not private";

/// The measures, with one row of panels each.
pub(super) const MEASURES: [Measure; 5] = [
    Measure::MeanAveragePrecision,
    Measure::Ndcg { index: 0 },
    Measure::Ndcg { index: 1 },
    Measure::Ndcg { index: 2 },
    Measure::Ndcg { index: 3 },
];

/// The iterations at which the curves have points.
const ITERATIONS: [f64; 8] = [10.0, 25.0, 50.0, 100.0, 150.0, 200.0, 300.0, 400.0];

/// Number of lists in the smallest training set of the five folds, and the noise levels of the chapter: σ over the
/// sensitivity, and the epsilon that is published for 400 iterations.
struct Levels {
    lists: u64,
    noise: [(f64, f64); 4],
}

const MQ2007: Levels = Levels { lists: 1353, noise: [(0.875, 2.422), (1.0, 1.817), (1.5, 1.040), (2.0, 0.758)] };
const MQ2008: Levels = Levels { lists: 627, noise: [(1.5, 2.301), (2.0, 1.667), (3.0, 1.168), (4.0, 0.972)] };

impl Levels {
    /// Returns the accountant's epsilons of the levels, in their order.
    fn epsilons(&self) -> [f64; 4] {
        let of = |(multiplier, _): (f64, f64)| epsilon_of(multiplier, self.lists, PARAMETERS, 10, 400);
        self.noise.map(|level| of(level).unwrap_or(f64::NAN))
    }
}

pub(super) fn all(effort: Effort) -> Vec<Figure> {
    vec![
        courses(effort, "renyi-6-1", "Rényi DP, figure 6.1: private ranking, MQ2007", DataSet::Mq2007),
        courses(effort, "renyi-6-2", "Rényi DP, figure 6.2: private ranking, MQ2008", DataSet::Mq2008),
        budgets(effort),
    ]
}

/// A noise level with its cost.
#[derive(Clone, Copy)]
struct Level {
    multiplier: f64,
    epsilon: f64,
    printed: f64,
}

fn levels(data: DataSet, effort: Effort) -> Vec<Level> {
    let levels = if data == DataSet::Mq2007 { MQ2007 } else { MQ2008 };
    let kept = effort.thin(&levels.noise.map(|(multiplier, _)| multiplier));
    let level = |((multiplier, printed), epsilon)| Level { multiplier, epsilon, printed };
    let all = levels.noise.into_iter().zip(levels.epsilons()).map(level);
    all.filter(|level| kept.contains(&level.multiplier)).collect()
}

/// Returns the name of a loss without privacy.
pub(super) fn plain(loss: Loss) -> String {
    format!("{}, not private", loss.title())
}

/// Returns the names of a loss with clipped gradients and noise: with spectral norms kept at 1, and without.
pub(super) fn clipped(loss: Loss) -> [String; 2] {
    ["", FREE].map(|end| format!("{}, clipped{end}", loss.title()))
}

/// Returns the name of the chapter's algorithm without spectral normalisation.
pub(super) fn priv_br_free() -> String {
    format!("{PRIV_BR}{FREE}")
}

/// Returns the clipping norm, scaled so that for every loss one list moves the parameters by at most a tenth of the step of
/// BayesRank and ListNet: the step of ListMLE is a tenth of theirs.
fn clipping(loss: Loss) -> Clipping {
    Clipping::At(if loss == Loss::ListMle { 1.0 } else { 0.1 })
}

fn courses(effort: Effort, id: &'static str, title: &'static str, data: DataSet) -> Figure {
    let iterations = if effort == Effort::Quick { vec![25.0, 100.0, 400.0] } else { ITERATIONS.to_vec() };
    let levels = levels(data, effort);
    let mut panels = Vec::new();
    for measure in MEASURES {
        for (shape, name) in [(NETWORK, "network"), (Shape::Linear, "linear")] {
            for level in &levels {
                let Level { multiplier, epsilon, printed } = level;
                panels.push(Panel {
                    title: format!("{}, {name}, σ = {multiplier}: ε = {epsilon:.3} ({printed:.3})", measure.label()),
                    x: Axis { label: "iterations", log: false },
                    log_y: false,
                    measure,
                    bars: Bars::StdDev,
                    series: rankers(data, shape, Noise::Multiplier(*multiplier), &iterations),
                });
            }
        }
    }
    Figure {
        id,
        title,
        description: "MAP and LETOR's NDCG on the fifth part of the lists after training on the other four, against \
                      the iterations, in columns by the noise: σ over the sensitivity, the accountant's ε after 400 \
                      iterations for the smallest fold (δ = 1e-4, the grades of one list), and in brackets the ε \
                      that the chapter prints for noise that depends on the batch, which is not private at that ε. \
                      Batches are drawn list by list, 10 on average, and noise is the same for all. Learning rates \
                      are 0.1 (ListMLE: 0.01) for the sum of a batch's gradients, as in the chapter, which is 1 and \
                      0.1 for their mean; three quarters, half and a quarter of these from iteration 100, 200 and \
                      300 on. PrivBR is BayesRank clipped at half of the largest sensitivity of a list at the \
                      initial weights, computed from public documents, so that nothing is clipped there; the \
                      chapter's scale, which depends on the batch, has no guarantee, and weights from public \
                      sensitivities, which shorten every gradient more, are not run. Rankers called clipped have the \
                      clipping norm 0.1, ListMLE 1: the chapter names none. Documents of a list are in random order: \
                      in the order of the files, which is by name, ListMLE learns the order of documents with equal \
                      grades. Networks are 46-256-1, spectral norms kept at 1 unless said otherwise; linear rankers \
                      have none. LambdaRank is not in the chapter, LightGBM not here.",
        columns: levels.len(),
        claims: of_courses(&panels, levels.len(), data),
        panels,
        repetitions: effort.repetitions(10),
    }
}

/// Returns the curves of a panel.
fn rankers(data: DataSet, shape: Shape, noise: Noise, iterations: &[f64]) -> Vec<Series> {
    let network = shape == NETWORK;
    let curve = |name: String, setting: RankerSetting| {
        Series::new(name, iterations, |after| RankerSetting { after: after as u64, ..setting })
    };
    let of = |method: Method| RankerSetting::new(data, shape, method);
    let mut series = vec![random(data, iterations)];
    series.extend(Loss::ALL.map(|loss| curve(plain(loss), of(Method::NonPrivate(loss)))));
    if !network {
        series.push(curve(LAMBDA_RANK.to_owned(), of(Method::LambdaRank)));
    }
    let private = [(PRIV_BR.to_owned(), priv_br_free(), Loss::BayesRank, Clipping::HalfSensitivity)].into_iter();
    let private = private.chain(Loss::ALL.map(|loss| {
        let [normalised, free] = clipped(loss);
        (normalised, free, loss, clipping(loss))
    }));
    for (name, free, loss, clipping) in private {
        let setting = of(Method::Private { loss, noise, clipping });
        if network {
            series.push(curve(name, RankerSetting { normalised: true, ..setting }));
            series.push(curve(free, setting));
        } else {
            series.push(curve(name, setting));
        }
    }
    series
}

/// Returns the random order, the same at every x.
fn random(data: DataSet, xs: &[f64]) -> Series {
    Series::new(RANDOM, xs, |_| RankerSetting::new(data, Shape::Linear, Method::RandomOrder))
}

/// Returns the name of a ranker in panels with several shapes.
pub(super) fn beside(shape: Shape, loss: Loss) -> String {
    if shape == Shape::Linear { format!("linear {}", loss.title()) } else { format!("{}, network", loss.title()) }
}

/// The shapes that are compared at the same budgets.
pub(super) const SHAPES: [Shape; 2] = [Shape::Linear, NETWORK];

/// Returns the settings of [`PrivateRanking::for_epsilon`].
fn recommended(data: DataSet, shape: Shape, loss: Loss, epsilon: f64) -> RankerSetting {
    fn of(loss: impl ListLoss, epsilon: f64) -> (u64, f64, Descent) {
        let epsilon = Epsilon::new(epsilon).expect("a figure's epsilon is positive");
        let PrivateRanking { batch_size, clipping, descent, .. } = PrivateRanking::for_epsilon(loss, epsilon);
        (batch_size, clipping, descent)
    }
    let (batch_size, clipping, Descent { updates, step, .. }) = match loss {
        Loss::BayesRank => of(BayesRank::TOP_1, epsilon),
        Loss::ListNet => of(ListNet::TOP_1, epsilon),
        Loss::ListMle => of(ListMle, epsilon),
    };
    let method = Method::Private { loss, noise: Noise::Epsilon(epsilon), clipping: Clipping::At(clipping) };
    RankerSetting { batch_size, step, updates, ..RankerSetting::new(data, shape, method) }.course()
}

fn budgets(effort: Effort) -> Figure {
    let xs = effort.thin(&[0.3, 1.0, 3.0]);
    let series = |data: DataSet| {
        let mut series = vec![random(data, &xs)];
        // Synthetic lists come from a linear truth, in which a network finds nothing more.
        let shapes = SHAPES.into_iter().filter(|&shape| data != MADE_UP_LISTS || shape == Shape::Linear);
        for shape in shapes {
            for loss in Loss::ALL {
                let method = Method::NonPrivate(loss);
                let name = format!("{}, not private", beside(shape, loss));
                series.push(Series::new(name, &xs, |_| RankerSetting::new(data, shape, method)));
            }
            for loss in Loss::ALL {
                series.push(Series::new(beside(shape, loss), &xs, |epsilon| recommended(data, shape, loss, epsilon)));
            }
        }
        let lambda = RankerSetting::new(data, Shape::Linear, Method::LambdaRank);
        series.push(Series::new(format!("linear {LAMBDA_RANK}"), &xs, |_| lambda));
        series
    };
    let mut panels = Vec::new();
    for measure in [MEASURES[0], MEASURES[4]] {
        for data in [DataSet::Mq2007, DataSet::Mq2008, MADE_UP_LISTS] {
            panels.push(Panel {
                title: format!("{}: {}", data.title(), measure.label()),
                x: EPSILON,
                log_y: false,
                measure,
                bars: Bars::StdDev,
                series: series(data),
            });
        }
    }
    Figure {
        id: "renyi-6-3",
        title: "Rényi DP, chapter 6 with the settings of today",
        description: "MAP and LETOR's NDCG@8 on the fifth part of the lists against ε, δ = 1e-4, the grades of one \
                      list. Not in the chapter: rankers with this crate's recommended settings, which were chosen on \
                      made-up lists: batches of 40, clipping norm 0.1, 400 steps with mean gradients and an initial \
                      learning rate of ε (ListNet and ListMLE: a fifth of it), no spectral normalisation; and \
                      rankers without privacy, with batches of 10 and an initial learning rate of 1 (ListMLE and \
                      LambdaRank: 0.1).",
        columns: 3,
        claims: of_budgets(&panels),
        panels,
        repetitions: effort.repetitions(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;

    #[test]
    fn titles_say_what_is_sound_and_what_was_printed() {
        for (data, levels) in [(DataSet::Mq2007, MQ2007), (DataSet::Mq2008, MQ2008)] {
            let figures = all(Effort::Full);
            let figure = figures.iter().find(|figure| figure.data_sets() == [data]).unwrap();
            assert_eq!((figure.columns, figure.panels.len()), (4, 40));
            let sound = levels.epsilons();
            for (panel, i) in figure.panels.iter().zip(0..) {
                let (sound, (_, printed)) = (sound[i % 4], levels.noise[i % 4]);
                let end = format!(": ε = {sound:.3} ({printed:.3})");
                assert!(panel.title.ends_with(&end), "{}", panel.title);
                assert!(sound > 0.1 && sound < 0.5 * printed, "{sound} {printed}");
            }
        }
        // The values of the specification, whose sampling rate is 10 in 628 rather than 1 - e^(-10/627).
        for (epsilon, expected) in MQ2008.epsilons().iter().zip([0.644, 0.466, 0.295, 0.214]) {
            assert!((epsilon / expected - 1.0).abs() < 0.02, "{epsilon} {expected}");
        }
    }

    /// One training measures all points of its curve in all rows of panels.
    #[test]
    fn courses_are_trained_once() {
        for effort in [Effort::Full, Effort::Quick] {
            let figure = all(effort).remove(1);
            let cells = figure.cells(1);
            let distinct = |key: fn(&Cell) -> String| {
                let mut keys: Vec<String> = cells.iter().map(key).collect();
                keys.sort();
                keys.dedup();
                keys.len()
            };
            let (levels, points) = if effort == Effort::Full { (4, 8) } else { (3, 3) };
            // Three networks and four linear rankers without noise; eight and four with noise at each level.
            let courses = 3 + 4 + 12 * levels;
            assert_eq!(distinct(|cell| cell.training().key()), 1 + courses);
            assert_eq!(distinct(Cell::key), 1 + points * courses);
        }
    }
}
