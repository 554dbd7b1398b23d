use std::path::PathBuf;

use dp_accountant::certificate::Derivation as _;
use dp_accountant::rdp::RdpCurve;
use dp_accountant::{Adjacency, DpEvent, RdpOrder, ReplaceOne, ZeroOut, zcdp};
use dp_data::Examples;
use dp_losses::HuberSvm;
use dp_mechanisms::{ReleaseRng, SeededRng};
use proptest::prelude::*;
use rand::RngExt;
use serde_json::Value;

use super::records::Records;
use super::training::{Observation, angle};
use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::line_search::{Searcher, Sums};
use crate::memory::MemorySource;
use crate::recipes::{Planned, Recipe, RecordAdjacency, budget};

const DIM: usize = 3;
const SEARCHES: [Search; 3] = [Search::Backtracking, Search::Selection, Search::NoisyMin];

type Record = (Vec<f64>, f64);

fn record(rng: &mut SeededRng) -> Record {
    let mut x: Vec<f64> = (0..DIM).map(|_| rng.random_range(-1.0..1.0)).collect();
    let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0);
    x.iter_mut().for_each(|v| *v *= (1.0 - 1e-15) / norm);
    (x, [-1.0, 1.0][rng.random_range(0..2)])
}

fn source(data: &[Record]) -> MemorySource<f64> {
    let values = data.iter().flat_map(|(x, _)| x.iter().copied()).collect();
    MemorySource::new(
        Examples::dense(values, data.iter().map(|(_, y)| *y).collect(), data[0].0.len()).unwrap(),
        1.0,
        1.0,
    )
}

fn losses(recipe: &SearchedDescent, data: &[Record], weights: &[f64], direction: &[f64], steps: &[f64]) -> Vec<f64> {
    let (mut source, mut control) = (source(data), Control::default());
    let loss = recipe.loss.scalar().unwrap();
    let mut records = Records::<f64>::new(&mut source, &mut control, loss, data.len() as u64, weights.len(), None);
    records.losses(weights, direction, steps, recipe.most_loss).unwrap()
}

fn golden(algorithm: &str) -> Vec<Value> {
    let folder = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")), PathBuf::from);
    let file: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("optim-rdp.json")).unwrap()).unwrap();
    let all = file["families"]["trace"].as_array().unwrap();
    all.iter().filter(|case| case["algorithm"] == algorithm).cloned().collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// With negligible noise a run is the deterministic algorithm, query by query.
#[test]
fn traces_without_noise() {
    let mut cases = golden("dp_blgd");
    cases.retain(|case| case["params"]["armijo_scale"] == "sum");
    cases.extend(golden("dp_agd"));
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some());
    for case in cases {
        let (id, params, steps) = (&case["id"], &case["params"], case["steps"].as_array().unwrap());
        let of = |name: &str| params[name].as_f64().unwrap();
        let loss = match params["loss"].as_str().unwrap() {
            "logistic" => LossKind::Logistic,
            "hinge" => LossKind::Hinge,
            _ => LossKind::HuberSvm(HuberSvm::new(0.5).unwrap()),
        };
        let agd = case["algorithm"] == "dp_agd";
        let recipe = if agd {
            SearchedDescent { step: of("max_step"), candidates: 20, ..SearchedDescent::dp_agd(loss) }
        } else {
            let blgd = SearchedDescent::dp_blgd(loss);
            let candidates = params["max_it"].as_u64().unwrap();
            SearchedDescent { step: of("eta0"), shrink: of("beta"), armijo: of("armijo"), candidates, ..blgd }
        };
        let recipe = SearchedDescent {
            clipping: of("clip_grad"),
            most_loss: of("clip_obj"),
            steps: steps.len() as u64,
            ..recipe
        };
        let rows = case["dataset"]["x"].as_array().unwrap();
        let data: Vec<Record> = rows.iter().map(numbers).zip(numbers(&case["dataset"]["y"])).collect();
        let plan = recipe.plan::<ZeroOut>(data.len() as u64, DIM as u64, budget(1e13, 0.5)).unwrap();
        let mut rng = SeededRng::new(1);
        let mut at = 0;
        plan.run()
            .train_observing::<f64, ZeroOut>(
                &mut source(&data),
                &mut rng.lend(),
                &mut Control::default(),
                |observation| {
                    let Observation::Choice { weights: from, direction, steps: candidates, chosen, .. } = observation
                    else {
                        return;
                    };
                    // A search that costs less than its share leaves budget for further steps.
                    let Some(expected) = steps.get(at) else { return };
                    let losses = losses(&recipe, &data, from, direction, candidates);
                    if agd {
                        assert_eq!(chosen as u64, expected["index"].as_u64().unwrap(), "{id} {at}");
                        let score = losses[chosen] * recipe.most_loss;
                        assert!((score - expected["score"].as_f64().unwrap()).abs() < 1e-4, "{id} {at}: {score}");
                    } else {
                        let queries = numbers(&expected["queries"]);
                        assert_eq!(chosen, queries.len(), "{id} {at}");
                        let required = plan.run().required(from, direction, candidates, recipe.most_loss).unwrap();
                        let sums = Sums { losses, required };
                        for (gain, query) in sums.gains().iter().zip(queries) {
                            assert!((gain - query).abs() < 1e-4, "{id} {at}: {gain} instead of {query}");
                        }
                    }
                    let step = candidates[chosen - 1];
                    assert!((step - expected[if agd { "step" } else { "eta" }].as_f64().unwrap()).abs() < 1e-12);
                    let there = from.iter().zip(direction).map(|(w, d)| w - step * d);
                    for (found, expected) in there.zip(numbers(&expected["w"])) {
                        assert!((found - expected).abs() < 1e-3, "{id} {at}: {found} instead of {expected}");
                    }
                    at += 1;
                },
            )
            .unwrap();
        assert_eq!(at, steps.len(), "{id}");
    }
}

/// Between neighbours all gains change by amounts in one interval that contains 0 and is no longer than claimed, and the exact
/// law of every search changes by at most its cost.
#[test]
fn brute_force_over_neighbours() {
    fn search<A: Adjacency>(null: bool, trials: u32, seed: u64) -> [f64; 4] {
        let interval = if null { 1.0 } else { 2.0 };
        let mut rng = SeededRng::new(seed);
        let mut most = [0.0f64; 4];
        for _ in 0..trials {
            let n = rng.random_range(1..5usize);
            let data: Vec<Record> = (0..n).map(|_| record(&mut rng)).collect();
            let mut neighbour = data.clone();
            neighbour[rng.random_range(0..n)] = if null { (vec![f64::NAN; DIM], 0.0) } else { record(&mut rng) };
            let most_loss = rng.random_range(0.1..2.0);
            let recipe = SearchedDescent { most_loss, ..SearchedDescent::dp_blgd(LossKind::Logistic) };
            let mut vector = |size: f64| (0..DIM).map(|_| rng.random_range(-size..size)).collect::<Vec<f64>>();
            let (weights, direction) = (vector(3.0), vector(3.0));
            let steps = [4.0, 2.0, 1.0, 0.1];
            // A threshold at which the laws are informative.
            let required = vector(2.0).into_iter().chain([0.5]).collect::<Vec<_>>();
            let sums = [&data, &neighbour].map(|data| Sums {
                losses: losses(&recipe, data, &weights, &direction, &steps),
                required: required.clone(),
            });
            let [one, two] = [&sums[0], &sums[1]].map(Sums::gains);
            let moves: Vec<f64> = one.iter().zip(&two).map(|(a, b)| b - a).collect();
            let (low, high) = moves.iter().fold((0.0f64, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
            assert!(high - low <= interval + 1e-9, "{moves:?}");
            most[0] = most[0].max((high - low) / interval);
            for (i, kind) in (1..).zip(SEARCHES) {
                let searcher = Searcher::<A>::new(kind, 0.5).unwrap();
                let cost = match searcher.event() {
                    DpEvent::PureDp { epsilon } | DpEvent::BoundedRange { epsilon } => epsilon,
                    other => panic!("{other:?}"),
                };
                let laws = [&sums[0], &sums[1]].map(|sums| searcher.law(sums).unwrap());
                let losses = laws[0].iter().zip(&laws[1]).filter(|(p, q)| **p > 1e-6 && **q > 1e-6);
                let losses: Vec<f64> = losses.map(|(p, q)| (p / q).ln()).collect();
                let (low, high) = losses.iter().fold((0.0f64, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
                // The range for a bounded-range guarantee, otherwise either end.
                let reached = if kind == Search::Selection { high - low } else { high.max(-low) };
                assert!(reached <= cost * (1.0 + 1e-6), "{kind:?}: {reached} of {cost}");
                most[i] = most[i].max(reached / cost);
            }
        }
        most
    }
    for most in [search::<ReplaceOne>(false, 3000, 1), search::<ZeroOut>(true, 3000, 2)] {
        assert!(most[0] > 0.8 && most[1..].iter().all(|&most| most > 0.5), "{most:?}");
    }
}

#[test]
fn searches_cost_their_share() {
    for search in SEARCHES {
        let searcher = Searcher::<ReplaceOne>::new(search, 0.01).unwrap();
        let rho = zcdp::rho(&searcher.event()).unwrap();
        assert!(rho <= 0.01 * (1.0 + 1e-12) && rho > 0.0099, "{search:?}: {rho}");
    }
}

fn two_classes(n: usize, rng: &mut SeededRng) -> Vec<Record> {
    let record = |i: usize| {
        let y = [-1.0, 1.0][i % 2];
        (vec![0.7 * y, rng.random_range(-0.5..0.5), 0.5], y)
    };
    (0..n).map(record).collect()
}

#[test]
fn trains_within_its_budget_and_derives_its_event() {
    let mut rng = SeededRng::new(3);
    let data = two_classes(4000, &mut rng);
    for search in SEARCHES {
        let base = SearchedDescent::dp_blgd(LossKind::Logistic);
        let recipe = SearchedDescent { search, step: if search == Search::NoisyMin { 2.0 } else { 8.0 }, ..base };
        let plan = recipe.plan::<ZeroOut>(4000, DIM as u64, budget(1.0, 1e-6)).unwrap();
        assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.99, "{:?}", plan.reached());
        let trained = plan.train(&mut source(&data), &mut rng, &mut Control::default()).unwrap();
        let derivation = &trained.derivation;
        assert_eq!(derivation.event().unwrap(), trained.log.to_event());
        assert_eq!(derivation.event().unwrap(), plan.event());
        assert!(!trained.log.is_private());
        // The search's promise that scores are monotonic holds by proof and is not assumed.
        assert!(trained.log.assumptions().is_empty());
        let weights = trained.weights.get();
        assert!(weights[0] > 1.0 && weights[1].abs() < weights[0], "{search:?}: {weights:?}");
    }
}

/// The releases never cost more than the filter's budget in total; if no step is ever good enough, the run still ends, at 0.
#[test]
fn no_run_spends_more_than_its_budget() {
    let mut rng = SeededRng::new(4);
    let data = two_classes(60, &mut rng);
    for (search, steps, step, seed) in
        (0..60).map(|i| (SEARCHES[i % 3], 1 + (i as u64 / 3) % 7, 10f64.powi(i as i32 % 5 - 2), i as u64))
    {
        let recipe = SearchedDescent { search, steps, step, ..SearchedDescent::dp_blgd(LossKind::Logistic) };
        let plan = recipe.plan::<ReplaceOne>(60, DIM as u64, budget(0.5, 1e-6)).unwrap();
        let (mut spent, mut gradients, mut choices, mut moved) = (0.0, 0, 0, false);
        let (weights, _) = plan
            .run()
            .train_observing::<f64, ReplaceOne>(
                &mut source(&data),
                &mut SeededRng::new(seed).lend(),
                &mut Control::default(),
                |observation| {
                    spent += match observation {
                        Observation::Gradient { std_dev, weights, noisy_sum, .. } => {
                            gradients += 1;
                            assert_eq!(weights.len(), noisy_sum.len());
                            4.0 * recipe.clipping.powi(2) / (2.0 * std_dev * std_dev)
                        }
                        Observation::Choice { rho, chosen, .. } => {
                            choices += 1;
                            moved |= chosen > 0;
                            zcdp::rho(&Searcher::<ReplaceOne>::new(search, rho).unwrap().event()).unwrap()
                        }
                    };
                },
            )
            .unwrap();
        let FilterBudget::Zcdp { rho: budget } = plan.run().budget() else { panic!("{:?}", plan.run().budget()) };
        assert!(spent <= budget && spent > 0.4 * budget, "{search:?} {steps}: {spent} of {budget}");
        assert!(gradients >= 1 && choices >= 1);
        assert_eq!(moved, weights.get().iter().any(|&weight| weight != 0.0));
    }
}

/// Random batches: each access is charged as a separate sample, at the filter's order, before it is made.
#[test]
fn random_batches_spend_no_more_than_the_filter_admits() {
    let mut rng = SeededRng::new(5);
    let n = 3000u64;
    let data = two_classes(n as usize, &mut rng);
    let at = RdpOrder::new;
    for (search, clip_decay) in [(Search::Backtracking, 0.0), (Search::Selection, 0.0), (Search::Backtracking, 0.05)] {
        let base = SearchedDescent::dp_blsgd(LossKind::Logistic, 300);
        let recipe = SearchedDescent { search, clip_decay, steps: 20, ..base };
        let plan = recipe.plan::<ZeroOut>(n, DIM as u64, budget(2.0, 1e-5)).unwrap();
        assert!(plan.reached().epsilon <= 2.0 && plan.reached().epsilon > 1.98, "{:?}", plan.reached());
        let FilterBudget::Renyi { order, divergence } = plan.run().budget() else {
            panic!("{:?}", plan.run().budget())
        };
        let sampling_rate = BatchLaw::Poisson { mean_darts: 300 }.sampling_rate(n).unwrap().get();
        let cost = |event| {
            let sampled = DpEvent::PoissonSampled { sampling_rate, event: Box::new(event) };
            RdpCurve::new(&sampled).unwrap().at(at(order).unwrap())
        };
        let (mut spent, mut norms, mut clipping) = (0.0, Vec::new(), recipe.clipping);
        let (weights, log) = plan
            .run()
            .train_observing::<f64, ZeroOut>(
                &mut source(&data),
                &mut SeededRng::new(9).lend(),
                &mut Control::default(),
                |observation| {
                    spent += cost(match observation {
                        Observation::Gradient { std_dev, clipping: norm, .. } => {
                            norms.push(norm);
                            assert!(norm <= clipping);
                            clipping = norm;
                            DpEvent::Gaussian { std_dev, sensitivity: norm }
                        }
                        Observation::Choice { rho, .. } => Searcher::<ZeroOut>::new(search, rho).unwrap().event(),
                    });
                },
            )
            .unwrap();
        assert!(spent <= divergence * (1.0 + 1e-9) && spent > 0.7 * divergence, "{spent} of {divergence}");
        let derivation = plan.derivation();
        assert_eq!(derivation.event().unwrap(), log.to_event());
        assert_eq!(derivation.event().unwrap(), plan.event());
        assert!(clip_decay > 0.0 || norms.iter().all(|&norm| norm == recipe.clipping));
        assert!(weights.get()[0] > 0.5, "{search:?}: {:?}", weights.get());
    }
}

/// A gradient's sum is divided by the mean size of a batch, whatever its own size.
#[test]
fn divisors_are_public() {
    let data = two_classes(400, &mut SeededRng::new(6));
    let recipe = SearchedDescent { steps: 1, ..SearchedDescent::dp_blsgd(LossKind::Logistic, 40) };
    let plan = recipe.plan::<ZeroOut>(400, DIM as u64, budget(8.0, 1e-2)).unwrap();
    let mean = BatchLaw::Poisson { mean_darts: 40 }.mean_size(400).unwrap();
    let mut sizes = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut sum = Vec::new();
        plan.run()
            .train_observing::<f64, ZeroOut>(
                &mut source(&data),
                &mut SeededRng::new(seed).lend(),
                &mut Control::default(),
                |observation| match observation {
                    Observation::Gradient { noisy_sum, .. } => sum = noisy_sum.to_vec(),
                    Observation::Choice { direction, .. } => {
                        for (direction, sum) in direction.iter().zip(&sum) {
                            assert!((direction - sum / mean).abs() < 1e-12);
                        }
                    }
                },
            )
            .unwrap();
        sizes.insert(format!("{:.3}", sum.first().copied().unwrap_or(0.0)));
    }
    assert!(sizes.len() > 15);
}

#[test]
fn angles() {
    assert!((angle(&[1.0, 0.0], &[1.0, 1.0]) - 45.0).abs() < 1e-12);
    assert_eq!(angle(&[1.0, 0.0], &[-2.0, 0.0]), 180.0);
    assert_eq!(angle(&[0.0, 0.0], &[1.0, 0.0]), 90.0);
    assert_eq!(angle(&[f64::NAN, 0.0], &[1.0, 0.0]), 90.0);
}

#[test]
fn nonsense_is_refused() {
    let good = SearchedDescent::dp_blgd(LossKind::Logistic);
    let refused =
        |recipe: &SearchedDescent, n| recipe.plan::<ZeroOut>(n, 3, budget(1.0, 1e-6)).unwrap_err().to_string();
    assert!(good.plan::<ZeroOut>(10, 3, budget(1.0, 0.0)).unwrap_err().to_string().contains("delta"));
    assert!(refused(&good, 0).contains("records") && refused(&good, u64::MAX).contains("records"));
    for count in [0, u64::MAX] {
        assert!(refused(&SearchedDescent { steps: count, ..good.clone() }, 10).contains("steps"));
        assert!(refused(&SearchedDescent { candidates: count, ..good.clone() }, 10).contains("candidates"));
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(&SearchedDescent { step: bad, ..good.clone() }, 10).contains("step size"), "{bad}");
        assert!(refused(&SearchedDescent { clipping: bad, ..good.clone() }, 10).contains("clipping"), "{bad}");
        assert!(refused(&SearchedDescent { most_loss: bad, ..good.clone() }, 10).contains("loss"), "{bad}");
        assert!(refused(&SearchedDescent { armijo: bad, ..good.clone() }, 10).contains("armijo"), "{bad}");
        assert!(refused(&SearchedDescent { shrink: bad, ..good.clone() }, 10).contains("shrink"), "{bad}");
    }
    assert!(refused(&SearchedDescent { lambda: f64::NAN, ..good.clone() }, 10).contains("lambda"));
    assert!(refused(&SearchedDescent { loss: "softmax:3".parse().unwrap(), ..good.clone() }, 10).contains("classes"));
    let derivation = good.plan::<ZeroOut>(10, 3, budget(1.0, 1e-6)).unwrap().derivation().clone();
    for bad in [0.0, -1.0, f64::NAN] {
        let budget = FilterBudget::Zcdp { rho: bad };
        assert!(Derivation { calibrated: SearchBudget { budget }, ..derivation.clone() }.event().is_err());
    }
    // Full batches have a filter for all orders, random ones a filter for one order.
    let other = FilterBudget::Renyi { order: 8.0, divergence: 0.1 };
    assert!(Derivation { calibrated: SearchBudget { budget: other }, ..derivation.clone() }.event().is_err());
    let sampled = SearchedDescent { batch_size: Some(4), ..good.clone() };
    assert!(Derivation { recipe: sampled.clone(), ..derivation }.event().is_err());
    let replaced = sampled.plan::<ReplaceOne>(10, 3, budget(1.0, 1e-6)).unwrap_err().to_string();
    assert!(replaced.contains("add-remove"), "{replaced}");
    assert!(refused(&SearchedDescent { batch_size: Some(0), ..good.clone() }, 10).contains("batch size"));
    for bad in [-0.1, 1.0, f64::NAN] {
        assert!(refused(&SearchedDescent { clip_decay: bad, ..good.clone() }, 10).contains("clip decay"), "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn candidates_shrink(step in 1e-3..100.0f64, shrink in 0.01..0.99f64, candidates in 1u64..50) {
        for search in SEARCHES {
            let recipe = SearchedDescent { step, shrink, candidates, search, ..SearchedDescent::dp_blgd(LossKind::Hinge) };
            let lengths = recipe.candidates(step);
            prop_assert_eq!(lengths.len() as u64, candidates);
            prop_assert!(lengths.iter().all(|&length| length > 0.0 && length <= step));
        }
    }
}

/// The noise of a gradient never costs more than its share, `Δ²/(2σ²) <= ρ`, rounding included, and barely less.
#[test]
fn noise_costs_no_more_than_its_share() {
    fn check<A: RecordAdjacency>(records: f64) {
        let recipe = SearchedDescent { clipping: 0.7, ..SearchedDescent::dp_blgd(LossKind::Logistic) };
        let plan = recipe.plan::<A>(100, 3, budget(1.0, 1e-6)).unwrap();
        for k in 1..60 {
            let (rho, clipping) = (1.3f64.powi(-k), 0.1 + 0.03 * f64::from(k));
            let noise = plan.run().noise::<A>(rho, clipping).unwrap();
            assert_eq!(noise.sensitivity().get(), records * clipping);
            let least = records * clipping / (2.0 * rho).sqrt();
            assert!(noise.std_dev() > least && noise.std_dev() < least * (1.0 + 6.0 * f64::EPSILON), "{k}");
        }
        // For a zCDP budget the gradients have half of it, slightly reduced for each step so that all of them fit.
        let FilterBudget::Zcdp { rho } = plan.run().budget() else { panic!("{:?}", plan.run().budget()) };
        let first = plan.run().noise::<A>(rho / (2.0 * recipe.steps as f64) * (1.0 - 1e-9), 0.7).unwrap().std_dev();
        assert_eq!(plan.run().first_std_dev::<A>().unwrap(), first);
    }
    check::<ReplaceOne>(2.0);
    check::<ZeroOut>(1.0);
    let sampled = SearchedDescent::dp_blsgd(LossKind::Logistic, 40);
    assert!(sampled.batch_size == Some(40) && sampled.steps == 100 && sampled.clip_decay == 0.0);
    let decaying = SearchedDescent::dp_blsgd_ac(LossKind::Logistic, 40);
    assert!(decaying == SearchedDescent { clip_decay: 0.05, ..sampled });
    let noisy_min = SearchedDescent::dp_agd(LossKind::Logistic);
    assert!(noisy_min.search == Search::NoisyMin && noisy_min.step == 2.0);
}

/// The required gain of a step: its fraction of the squared direction, and the regulariser's change, in units of the largest
/// loss and for the number of records.
#[test]
fn what_is_required_follows_its_formula() {
    let recipe = SearchedDescent { lambda: 0.5, armijo: 0.25, ..SearchedDescent::dp_blgd(LossKind::Logistic) };
    let (weights, direction, steps) = ([0.5, -1.0, 0.25], [1.0, -0.5, 0.5], [0.5, 0.125]);
    for (search, armijo) in [(Search::Backtracking, 0.25), (Search::Selection, 0.25), (Search::NoisyMin, 0.0)] {
        let recipe = SearchedDescent { search, ..recipe.clone() };
        let plan = recipe.plan::<ZeroOut>(64, 3, budget(1.0, 1e-6)).unwrap();
        let found = plan.run().required(&weights, &direction, &steps, 4.0).unwrap();
        let square = |at: &[f64]| at.iter().map(|x| x * x).sum::<f64>();
        for (found, step) in found.iter().zip(steps) {
            let there: Vec<f64> = weights.iter().zip(direction).map(|(w, d)| w - step * d).collect();
            let of_regulariser = 0.25 * (square(&there) - square(&weights));
            let expected = 64.0 * (of_regulariser + step * armijo * square(&direction)) / 4.0;
            // Up to the grid of 30 bits.
            assert!((found - expected).abs() <= 1e-8, "{search:?} {step}: {found} {expected}");
        }
    }
}

#[test]
fn numbers_beyond_their_limits_are_refused() {
    let usual = SearchedDescent::dp_blgd("absolute".parse().unwrap());
    let accepts = |recipe: SearchedDescent, accept: bool| {
        assert_eq!(recipe.plan::<ReplaceOne>(100, 3, budget(1.0, 1e-6)).is_ok(), accept, "{recipe:?}");
    };
    for (value, accept) in [(1e6, true), (1.1e6, false), (1e-100, true), (0.9e-100, false), (0.0, false)] {
        accepts(SearchedDescent { step: value, ..usual.clone() }, accept);
        accepts(SearchedDescent { most_loss: value, ..usual.clone() }, accept);
        accepts(SearchedDescent { lambda: value, ..usual.clone() }, value <= 1e6);
    }
    for (row_norm, accept) in [(1.0, true), (1.0 + 1e-15, false)] {
        accepts(SearchedDescent { row_norm, ..usual.clone() }, accept);
    }
    for (share, accept) in [(0.5, true), (0.0, false), (1.0, false), (f64::NAN, false)] {
        accepts(SearchedDescent { shrink: share, ..usual.clone() }, accept);
        accepts(SearchedDescent { armijo: share, ..usual.clone() }, accept);
    }
}
