use std::collections::BTreeSet;

use dp_accountant::certificate::Derivation as _;
use dp_accountant::guarantee::Unit;
use dp_accountant::rdp::random_stopping::mean_repetitions;
use dp_accountant::{Delta, Epsilon, Repetitions, ReplaceOne, ZeroOut};
use dp_data::{Examples, Order, PassRequest, RowSource, Workers};
use dp_losses::LossKind;
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Exponential, LInfSensitivity, OsSeeded, SeededRng};
use rand::{Rng as _, RngExt};
use serde_json::Value;

use super::agreement::{agreement, sensitivity};
use super::composition::Candidate;
use super::portion::{Portion, Unfinished, portions};
use super::*;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{AnyDerivation, AnyRecipe, BoltOn, Budget, DpSgd, OneVsAll, Planned, Recipe, RecordAdjacency};

fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::new(delta).unwrap() }
}

fn cases(function: &str) -> Vec<Value> {
    let folder = std::env::var_os("DP_GOLDEN_DIR").map_or_else(
        || std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")),
        std::path::PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join("optim-erm.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let all = file["cases"].as_array().unwrap();
    assert!(!all.is_empty());
    let cases: Vec<Value> = all.iter().filter(|case| case["fn"] == function).cloned().collect();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some());
    cases
}

fn at(case: &Value, name: &str) -> f64 {
    case["in"].get(name).or_else(|| case["out"].get(name)).unwrap().as_f64().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[track_caller]
fn close(found: f64, expected: f64, what: &Value) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{what}: {found} instead of {expected}");
}

/// Twenty features, each of which alone determines the label of the records that have it.
fn separable(n: usize) -> MemorySource<f64> {
    let (mut rows, mut targets) = (vec![0.0; 20 * n], Vec::new());
    for i in 0..n {
        let target = if (i / 20) % 2 == 0 { 1.0 } else { -1.0 };
        rows[20 * i + i % 20] = 0.9 * target;
        targets.push(target);
    }
    MemorySource::new(Examples::dense(rows, targets, 20).unwrap(), 1.0, 1.0)
}

/// The second has a suitable regulariser. The first has so little regularisation and such small batches that its model is only
/// noise with uniform direction: it is right about each feature's records with probability 1/2, and about all twenty with
/// probability 1e-6.
fn good_and_bad() -> [AnyRecipe; 2] {
    [(1e-7, 1, 40), (0.05, 10, 2)].map(|(lambda, batch_size, passes)| {
        BoltOn { passes, batch_size, ..BoltOn::strongly_convex(LossKind::Logistic, lambda) }.into()
    })
}

const GOOD: u32 = 1;

fn chosen<D: Clone + Into<AnyDerivation>>(derivation: &D) -> Option<u32> {
    match derivation.clone().into() {
        AnyDerivation::Portions(derivation) => derivation.chosen,
        AnyDerivation::RandomStopping(derivation) => derivation.chosen,
        AnyDerivation::Composition(derivation) => derivation.chosen,
        other => panic!("{other:?}"),
    }
}

#[test]
fn golden_probabilities_of_the_choice() {
    for case in cases("tuning_exponential") {
        let mistakes = numbers(&case["in"]["errors"]);
        let expected = numbers(&case["out"]["probabilities"]);
        let epsilon = Epsilon::new(at(&case, "eps")).unwrap();
        // Right minus wrong predictions, which the plan passes to its mechanism.
        let scores: Vec<f64> = mistakes.iter().map(|mistakes| 5.0 - 2.0 * mistakes).collect();
        let moves = sensitivity("", AdjacencyKind::ReplaceOne).unwrap() as f64;
        let choice = Exponential::new(LInfSensitivity::<ReplaceOne>::new(moves).unwrap(), epsilon).unwrap();
        let found = choice.probabilities(&Scores::new(scores).unwrap()).unwrap();
        for (&found, &expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-12, "{}", case["id"]);
        }
    }
}

#[test]
fn golden_portions() {
    for case in cases("tuning_portions") {
        let (n, candidates) = (at(&case, "n") as u64, at(&case, "candidates") as usize);
        let portion = Portions::records_of_portion(n, candidates);
        assert_eq!(portion, at(&case, "portion") as u64, "{}", case["id"]);
        assert_eq!(n - portion * (candidates as u64 + 1), at(&case, "unused") as u64, "{}", case["id"]);
        let cut = portions(n, candidates + 1, [7; 32]).unwrap();
        assert!(cut.len() == candidates + 1 && cut.iter().all(|part| part.len() as u64 == portion));
        let used: BTreeSet<u32> = cut.iter().flatten().copied().collect();
        assert_eq!(used.len() as u64, portion * (candidates as u64 + 1), "disjoint");
    }
}

#[test]
fn golden_laws_of_the_number_of_repetitions() {
    for case in cases("tnb") {
        let (eta, gamma) = (at(&case, "eta"), at(&case, "gamma"));
        let law = Repetitions::TruncatedNegativeBinomial { eta, gamma };
        for (k, expected) in (1..).zip(numbers(&case["out"]["pmf"])) {
            close(repetitions::probability(law, k), expected, &case["id"]);
        }
        close(repetitions::mean(law), at(&case, "mean"), &case["id"]);
        let found = repetitions::gamma_of(eta, at(&case, "mean"));
        assert!((found / gamma - 1.0).abs() < 1e-9, "{}", case["id"]);
    }
}

/// A repetition whose score and model are pure, so that the whole is the published multiple of both.
#[test]
fn golden_cost_of_pure_repetitions() {
    for case in cases("tuning_pure_tnb") {
        let (eta, gamma) = (at(&case, "eta"), at(&case, "gamma"));
        let (base, whole) = (at(&case, "eps"), case["out"]["eps"].as_f64().unwrap());
        let repetitions = Repetitions::TruncatedNegativeBinomial { eta, gamma };
        let recipe = RandomStopping { repetitions, ..RandomStopping::new(good_and_bad(), 10.0) };
        let plan = recipe.plan_copies::<ReplaceOne>(1000, 20, budget(whole, 0.0), 1);
        if eta > 1.0 {
            assert!(matches!(plan, Err(Error::OutOfRange { name: "eta", .. })), "{}", case["id"]);
            continue;
        }
        let plan = plan.unwrap();
        let repetition = plan.repetition_epsilon() * (1.0 + recipe.score_share);
        assert!(repetition <= base && repetition >= 0.989 * base, "{}: {repetition}", case["id"]);
        assert!(plan.reached().epsilon <= whole && plan.reached().delta == 0.0);
    }
}

/// Chi-square of 20,000 draws against the law, in cells of at least ten; with k degrees of freedom it exceeds `k + 8 √k + 32`
/// with probability below `e^-16`.
#[test]
fn repetitions_have_the_law() {
    const DRAWS: u64 = 20_000;
    let negative_binomial = |eta, gamma| Repetitions::TruncatedNegativeBinomial { eta, gamma };
    for (seed, law) in [
        negative_binomial(1.0, 0.1),
        negative_binomial(0.5, 0.2),
        negative_binomial(0.0, 0.05),
        negative_binomial(-0.5, 0.01),
        negative_binomial(-0.9, 0.3),
        Repetitions::Poisson { mean: 0.7 },
        Repetitions::Poisson { mean: 5.25 },
    ]
    .into_iter()
    .enumerate()
    {
        let rng = &mut SeededRng::new(seed as u64);
        let mut counts = vec![0u64; 400];
        let mut sum = 0;
        for _ in 0..DRAWS {
            let k = repetitions::draw(law, rng).unwrap();
            sum += k;
            counts[(k as usize).min(399)] += 1;
        }
        let (mut chi_square, mut cells, mut rest, mut drawn) = (0.0, 0, 1.0, DRAWS);
        for (k, &count) in counts.iter().enumerate() {
            let mass = repetitions::probability(law, k as u64);
            if mass * DRAWS as f64 >= 10.0 {
                chi_square += (count as f64 - mass * DRAWS as f64).powi(2) / (mass * DRAWS as f64);
                (cells, rest, drawn) = (cells + 1, rest - mass, drawn - count);
            } else if mass == 0.0 {
                assert_eq!(count, 0, "{law:?} at {k}");
            }
        }
        let rest = (rest * DRAWS as f64).max(1.0);
        chi_square += (drawn as f64 - rest).powi(2) / rest;
        let freedom = f64::from(cells);
        assert!(chi_square < freedom + 8.0 * freedom.sqrt() + 32.0, "{law:?}: {chi_square} of {cells}");
        // Standard deviations are below 5 times the mean here; within six standard errors of the mean.
        let mean = repetitions::mean(law);
        assert!((sum as f64 / DRAWS as f64 - mean).abs() < 30.0 * mean / (DRAWS as f64).sqrt(), "{law:?}");
    }
}

#[test]
fn means_and_their_inverse() {
    for eta in [-0.5, 0.0, 0.3, 1.0] {
        for mean in [1.01, 3.0, 50.0] {
            let gamma = repetitions::gamma_of(eta, mean);
            assert!((mean_repetitions(eta, gamma).unwrap() / mean - 1.0).abs() < 1e-9);
        }
    }
    for none in [1.0, 0.0, f64::NAN, f64::INFINITY] {
        assert!(repetitions::gamma_of(0.0, none).is_nan());
    }
}

/// Every record replaced by every other, for random models: the agreement moves by at most the sensitivity, which is attained,
/// and so do the probabilities of the choice.
#[test]
fn one_record_moves_the_choice_as_claimed() {
    let rng = &mut SeededRng::new(5);
    let mut largest = [0i64; 2];
    for round in 0..60 {
        let classes = [1u32, 3][round % 2];
        let models: Vec<Vec<f64>> =
            (0..4).map(|_| (0..2 * classes).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
        let mut record = |null: bool| {
            let row = [rng.random_range(-0.7..0.7), if null { f64::NAN } else { rng.random_range(-0.7..0.7) }];
            let target = match classes {
                1 => [-1.0, 1.0][rng.random_range(0..2)],
                _ => f64::from(rng.random_range(0..classes)),
            };
            (row, target)
        };
        let table: Vec<_> = (0..6).map(|_| record(false)).collect();
        let scores = |table: &[([f64; 2], f64)]| -> Vec<f64> {
            let rows = table.iter().flat_map(|(row, _)| *row).collect();
            let targets = table.iter().map(|(_, target)| *target).collect();
            let mut source = MemorySource::new(Examples::dense(rows, targets, 2).unwrap(), 1.0, 2.0);
            let control = Control::default();
            models.iter().map(|model| agreement(&mut source, model, &control).unwrap() as f64).collect()
        };
        let base = scores(&table);
        for (null, relation) in [(false, AdjacencyKind::ReplaceOne), (true, AdjacencyKind::ZeroOut)] {
            for i in 0..table.len() {
                let mut neighbour = table.clone();
                neighbour[i] = record(null);
                let other = scores(&neighbour);
                let moved = base.iter().zip(&other).map(|(a, b)| (a - b).abs() as i64).max().unwrap();
                let claimed = sensitivity("", relation).unwrap() as i64;
                assert!(moved <= claimed, "{moved} under {relation}");
                largest[usize::from(null)] = largest[usize::from(null)].max(moved);
                let epsilon = 1.5;
                let moves = LInfSensitivity::<ZeroOut>::new(claimed as f64).unwrap();
                let choice = Exponential::new(moves, Epsilon::new(epsilon).unwrap()).unwrap();
                let law = |scores: &[f64]| choice.probabilities(&Scores::new(scores.to_vec()).unwrap()).unwrap();
                for (p, q) in law(&base).iter().zip(&law(&other)) {
                    assert!((p / q).ln().abs() <= epsilon + 1e-12);
                }
            }
        }
    }
    assert_eq!(largest, [2, 1], "attained");
}

/// For neighbours and the same coins only the candidate whose portion contains the differing record changes.
#[test]
fn neighbours_share_all_portions_but_one() {
    let (n, key) = (42u32, [3; 32]);
    let cut = portions(n.into(), 4, key).unwrap();
    let rows = |replaced: Option<u32>| {
        (0..n).map(|i| if Some(i) == replaced { -0.5 } else { f64::from(i) / 50.0 }).collect::<Vec<f64>>()
    };
    let source = |replaced| MemorySource::new(Examples::dense(rows(replaced), vec![1.0; 42], 1).unwrap(), 1.0, 1.0);
    let read = |source: &mut MemorySource<f64>, part: &[u32], order: Order| {
        let mut portion = Portion::new(source, part);
        assert_eq!(portion.describe().unwrap().n, part.len() as u64);
        let mut stream = portion.open_pass(&PassRequest { pass: 1, order }).unwrap();
        let mut all = Vec::new();
        while let Some(block) = stream.next_block().unwrap() {
            let dp_data::Rows::Dense { values, .. } = block.rows else { unreachable!() };
            all.extend_from_slice(values);
        }
        assert_eq!(stream.receipt().unwrap().rows, part.len() as u64);
        all
    };
    let keyed = Order::Keyed { key: [9; 32], fresh_each_pass: true };
    let base = &mut source(None);
    for replaced in 0..n {
        let other = &mut source(Some(replaced));
        for part in &cut {
            for order in [Order::Declared, keyed] {
                let (a, b) = (read(base, part, order), read(other, part, order));
                assert_eq!(a == b, !part.contains(&replaced));
                let mut sorted = a.clone();
                sorted.sort_by(f64::total_cmp);
                assert_eq!(sorted, part.iter().map(|&i| f64::from(i) / 50.0).collect::<Vec<_>>());
                assert_eq!(order == Order::Declared, a == sorted);
            }
        }
    }
    let mut portion = Portion::new(base, &cut[0]);
    let block = portion.gather(&[2, 0, 2]).unwrap();
    let dp_data::Rows::Dense { values, .. } = block.rows else { unreachable!() };
    assert_eq!(values, [2usize, 0, 2].map(|i| f64::from(cut[0][i]) / 50.0));
    assert!(portion.gather(&[10]).is_err());
}

/// 25 choices at epsilon 4 between a candidate that is right about every record and one that is wrong about at least a
/// twentieth, except with probability 1e-6: a candidate with 100 more mistakes among 2000 is chosen with probability below
/// 1e-80. So this fails by chance for one in 40,000 seeds.
#[test]
fn portions_choose_the_clearly_better_candidate() {
    let plan = Portions::new(good_and_bad()).plan_copies::<ReplaceOne>(6000, 20, budget(4.0, 0.0), 1).unwrap();
    let mut source = separable(6000);
    for seed in 0..25 {
        let trained = plan.train(&mut source, &mut SeededRng::new(seed), &mut Control::default()).unwrap();
        assert_eq!(chosen(&trained.derivation), Some(GOOD), "seed {seed}");
        assert!(trained.weights.get().iter().all(|&weight| weight > 0.0));
    }
}

/// 400 choices with a negligible budget are 400 coins: 200 ± 60 except with probability 3e-9.
#[test]
fn without_budget_the_choice_is_uniform() {
    let plan = Portions::new(good_and_bad()).plan_copies::<ZeroOut>(90, 20, budget(1e-9, 0.0), 1).unwrap();
    let mut source = separable(90);
    let good = (0..400)
        .filter(|&seed| {
            let trained = plan.train(&mut source, &mut SeededRng::new(seed), &mut Control::default()).unwrap();
            chosen(&trained.derivation) == Some(GOOD)
        })
        .count();
    assert!(good.abs_diff(200) < 60, "{good}");
}

/// With a geometric number of repetitions of mean 10 the good candidate is never tried with probability 1/11, and wins if it
/// is tried. 18 or more of 60 trainings without it have probability 4e-6.
#[test]
fn random_stopping_finds_the_clearly_better_candidate() {
    let repetitions = Repetitions::TruncatedNegativeBinomial { eta: 1.0, gamma: 0.1 };
    let recipe = RandomStopping { repetitions, ..RandomStopping::new(good_and_bad(), 2.0) };
    let plan = recipe.plan_copies::<ReplaceOne>(4000, 20, budget(12.0, 0.0), 1).unwrap();
    let mut source = separable(4000);
    let mut missed = 0;
    for seed in 0..60 {
        let trained = plan.train(&mut source, &mut SeededRng::new(seed), &mut Control::default()).unwrap();
        missed += u32::from(chosen(&trained.derivation) != Some(GOOD));
    }
    assert!(missed < 18, "{missed}");
}

#[test]
fn public_records_find_the_clearly_better_candidate() {
    let (mut source, rng) = (separable(600), &mut SeededRng::new(1));
    let control = Control::default();
    let budget = budget(0.4, 0.0);
    let mut choose = |candidates: &[AnyRecipe], repetitions| {
        public::choose::<ZeroOut, _>(candidates, &mut source, 6000, budget, repetitions, rng, &control)
    };
    assert_eq!(choose(&good_and_bad(), 1).unwrap(), GOOD as usize);
    assert!(matches!(choose(&[], 1), Err(Error::Count { name: "candidates", .. })));
    assert!(matches!(choose(&good_and_bad(), 0), Err(Error::Count { name: "repetitions", .. })));
    let numbers = [BoltOn { radius: Some(1.0), ..BoltOn::convex(LossKind::Squared) }.into()];
    assert!(matches!(choose(&numbers, 1), Err(Error::NotProved { .. })));
    let one = &mut separable(1);
    let refused = public::choose::<ZeroOut, _>(&good_and_bad(), one, 6000, budget, 1, rng, &control);
    assert!(matches!(refused, Err(Error::Count { name: "number of public records", .. })));
}

/// Practically always 0: a number with mean 1e-9 is positive for one in 1e9 seeds.
#[test]
fn no_repetition_releases_zeros() {
    let repetitions = Repetitions::Poisson { mean: 1e-9 };
    let recipe = RandomStopping { repetitions, ..RandomStopping::new(good_and_bad(), 2.0) };
    let plan = recipe.plan_copies::<ReplaceOne>(400, 20, budget(1.0, 1e-5), 1).unwrap();
    let trained = plan.train::<f64>(&mut separable(400), &mut SeededRng::new(1), &mut Control::default()).unwrap();
    assert_eq!((trained.weights.get(), chosen(&trained.derivation)), (&vec![0.0; 20], None));
    assert_eq!(trained.log.to_event(), plan.event());
    assert!(!trained.log.is_private(), "the generator is seeded");
}

fn composition(candidates: impl IntoIterator<Item = AnyRecipe>) -> Composition {
    Composition::new(candidates.into_iter().map(Candidate::new))
}

fn grids() -> Vec<AnyRecipe> {
    let dp_sgd = |batch_size| DpSgd { batch_size, passes: 1, ..DpSgd::new(LossKind::Logistic) }.into();
    vec![
        Portions::new(good_and_bad()).into(),
        RandomStopping::new(good_and_bad(), 3.0).into(),
        composition(good_and_bad()).into(),
        composition([dp_sgd(50), dp_sgd(100)]).into(),
        // Equal events, which are logged as one.
        composition([dp_sgd(50), dp_sgd(50)]).into(),
        Portions::new([dp_sgd(20), dp_sgd(40)]).into(),
        RandomStopping {
            repetitions: Repetitions::Poisson { mean: 4.0 },
            ..RandomStopping::new([dp_sgd(50), dp_sgd(100)], 2.0)
        }
        .into(),
    ]
}

fn plans_hold<A: RecordAdjacency>() {
    for recipe in grids() {
        let plan = recipe.plan_copies::<A>(300, 20, budget(2.0, 1e-5), 1).unwrap();
        let reached = plan.reached();
        assert!(reached.epsilon <= 2.0 && reached.epsilon > 1.9, "{reached:?}");
        assert_eq!(plan.derivation().event().unwrap(), plan.event());
        assert_eq!(plan.derivation().records(), 300);
        let trained = plan.train::<f64>(&mut separable(300), &mut OsSeeded::new().unwrap(), &mut Control::default());
        let trained = trained.unwrap();
        assert_eq!(trained.log.to_event(), plan.event());
        assert!(trained.log.is_private());
        assert!(chosen(&trained.derivation).is_none_or(|chosen| chosen < 2));
        let certificate = trained.certificate(Unit::Record, Vec::new(), "00".repeat(32), Default::default());
        let verified = certificate.verify().unwrap();
        assert!(verified.recomputed_epsilon <= reached.epsilon * (1.0 + 1e-9));
        let refused = |derivation: AnyDerivation| {
            let mut edited = certificate.clone();
            edited.derivation = derivation;
            assert!(edited.verify().is_err(), "{:?}", edited.derivation);
        };
        match trained.derivation {
            AnyDerivation::Portions(derivation) => {
                refused(AnyDerivation::Portions(PortionsOf { n: 310, ..derivation.clone() }));
                refused(AnyDerivation::Portions(PortionsOf { choice_epsilon: 1.0, ..derivation.clone() }));
                refused(AnyDerivation::Portions(PortionsOf { chosen: Some(2), ..derivation.clone() }));
                refused(AnyDerivation::Portions(PortionsOf {
                    each: derivation.each[1..].to_vec(),
                    ..derivation.clone()
                }));
                refused(AnyDerivation::Portions(PortionsOf { each: Vec::new(), ..derivation }));
            }
            AnyDerivation::RandomStopping(derivation) => {
                refused(AnyDerivation::RandomStopping(StoppingOf { n: 310, ..derivation.clone() }));
                refused(AnyDerivation::RandomStopping(StoppingOf { chosen: Some(2), ..derivation.clone() }));
                refused(AnyDerivation::RandomStopping(StoppingOf { each: Vec::new(), ..derivation.clone() }));
                let repetitions = Repetitions::TruncatedNegativeBinomial { eta: 0.5, gamma: 0.1 };
                refused(AnyDerivation::RandomStopping(StoppingOf { repetitions, ..derivation.clone() }));
                let score = random_stopping::ScoreNoise::DiscreteGaussian { scale: 1e9 };
                refused(AnyDerivation::RandomStopping(StoppingOf { score, ..derivation }));
            }
            AnyDerivation::Composition(derivation) => {
                refused(AnyDerivation::Composition(CompositionOf { n: 310, ..derivation.clone() }));
                refused(AnyDerivation::Composition(CompositionOf { chosen: Some(2), ..derivation.clone() }));
                refused(AnyDerivation::Composition(CompositionOf { each: Vec::new(), ..derivation.clone() }));
                refused(AnyDerivation::Composition(CompositionOf { encodings: vec![0], ..derivation.clone() }));
                let mut with_more = derivation.clone();
                with_more.each.push(with_more.each[0].clone());
                with_more.encodings.push(0);
                refused(AnyDerivation::Composition(with_more));
                refused(AnyDerivation::Composition(CompositionOf { choice_epsilon: 2.1, ..derivation }));
            }
            other => panic!("{other:?}"),
        }
    }
}

use super::composition::CompositionDerivation as CompositionOf;
use super::portions::PortionsDerivation as PortionsOf;
use super::random_stopping::RandomStoppingDerivation as StoppingOf;

#[test]
fn what_is_planned_is_logged_and_verified_and_no_edit_is() {
    plans_hold::<ReplaceOne>();
    plans_hold::<ZeroOut>();
}

#[test]
fn several_classes_are_tuned_inside() {
    let candidates = [0.05, 0.1].map(|lambda| {
        let recipe = BoltOn { passes: 1, ..BoltOn::strongly_convex(LossKind::Logistic, lambda) };
        OneVsAll::new(recipe.into(), 3).into()
    });
    let n = 900;
    let rows = (0..n).flat_map(|i| [0, 1, 2].map(|j| if i % 3 == j { 1.0 } else { 0.0 })).collect();
    let targets = (0..n).map(|i| (i % 3) as f64).collect();
    let mut source = MemorySource::new(Examples::dense(rows, targets, 3).unwrap(), 1.0, 2.0);
    let stopping = Repetitions::TruncatedNegativeBinomial { eta: 0.0, gamma: 0.5 };
    let stopping = RandomStopping { repetitions: stopping, ..RandomStopping::new(candidates.clone(), 2.0) };
    let composed = composition(candidates.clone());
    for recipe in [AnyRecipe::from(Portions::new(candidates)), stopping.into(), composed.into()] {
        let plan = recipe.plan_copies::<ZeroOut>(n as u64, 3, budget(30.0, 0.0), 1).unwrap();
        let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(2), &mut Control::default()).unwrap();
        let weights = trained.weights.get();
        assert_eq!(weights.len(), 9);
        assert!(weights[0] > weights[3] && weights[4] > weights[1] && weights[8] > weights[5], "{weights:?}");
        assert_eq!(trained.derivation.model_terms().weights, 9);
    }
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let plan = |recipe: AnyRecipe, n, copies| {
        recipe.plan_copies::<ReplaceOne>(n, 20, budget(1.0, 0.0), copies).err().map(|error| error.to_string())
    };
    let refused = |recipe: AnyRecipe, n, copies, why: &str| {
        let found = plan(recipe, n, copies).expect(why);
        assert!(found.contains(why), "{found} instead of {why}");
    };
    let both = |candidates: Vec<AnyRecipe>| {
        [
            AnyRecipe::from(Portions::new(candidates.clone())),
            RandomStopping::new(candidates.clone(), 3.0).into(),
            composition(candidates).into(),
        ]
    };
    for recipe in both(Vec::new()) {
        refused(recipe, 100, 1, "candidates = 0");
    }
    for recipe in both(good_and_bad().to_vec()) {
        refused(recipe, 100, 2, "released once");
    }
    for recipe in both(vec![Portions::new(good_and_bad()).into()]) {
        refused(recipe, 100, 1, "not a choice");
    }
    let convex = |loss| AnyRecipe::from(BoltOn { radius: Some(1.0), ..BoltOn::convex(loss) });
    for recipe in both(vec![convex(LossKind::Logistic), convex(LossKind::Hinge)]) {
        assert!(plan(recipe, 100, 1).is_some());
    }
    for recipe in both(vec![convex(LossKind::Logistic), convex("huber-svm:0.1".parse().unwrap())]) {
        refused(recipe, 100, 1, "differ");
    }
    for recipe in both(vec![convex(LossKind::Squared)]) {
        refused(recipe, 100, 1, "classification loss");
    }
    refused(Portions::new(good_and_bad()).into(), 2, 1, "at least one for each");
    let stopping = |repetitions| RandomStopping { repetitions, ..RandomStopping::new(good_and_bad(), 3.0) }.into();
    refused(stopping(Repetitions::Poisson { mean: 3.0 }), 100, 1, "allow a delta");
    for (eta, gamma, name) in [(1.5, 0.1, "eta"), (-1.0, 0.1, "eta"), (0.0, 0.0, "gamma"), (0.0, 1.0, "gamma")] {
        refused(stopping(Repetitions::TruncatedNegativeBinomial { eta, gamma }), 100, 1, name);
    }
    refused(stopping(Repetitions::Poisson { mean: 0.0 }), 100, 1, "mean");
    refused(RandomStopping::new(good_and_bad(), 1.0).into(), 100, 1, "gamma");
    let unscored = RandomStopping { score_share: 0.0, ..RandomStopping::new(good_and_bad(), 3.0) };
    refused(unscored.into(), 100, 1, "share of the score");
    refused(composition(good_and_bad()).into(), 1, 1, "one for training and one for the choice");
    let [one, other] = good_and_bad().map(Candidate::new);
    let weightless = Composition::new([one, Candidate { weight: 0.0, ..other }]);
    refused(weightless.into(), 100, 1, "weight of a candidate");
    // A source of another size is refused before anything is drawn.
    let plan = Portions::new(good_and_bad()).plan_copies::<ReplaceOne>(100, 20, budget(1.0, 0.0), 1).unwrap();
    let found = plan.train::<f64>(&mut separable(99), &mut SeededRng::new(1), &mut Control::default());
    assert!(matches!(found, Err(Error::Shape { name: "n", planned: 100, found: 99 })));
}

#[test]
fn a_cancelled_choice_releases_nothing() {
    let cancelled = core::sync::atomic::AtomicBool::new(true);
    for recipe in grids() {
        let plan = recipe.plan_copies::<ReplaceOne>(300, 20, budget(2.0, 1e-5), 1).unwrap();
        let control = &mut Control { cancelled: Some(&cancelled), ..Control::default() };
        let found = plan.train::<f64>(&mut separable(300), &mut SeededRng::new(3), control);
        assert!(matches!(found, Err(Error::Interrupted)), "{found:?}");
    }
}

/// The model, the choice and the log have the same bits on any number of threads, whether the source has several readers or one.
#[test]
fn choices_do_not_depend_on_the_threads() {
    let rows = 2000;
    let mut recipes = grids();
    let dp_sgd = |batch_size| DpSgd { batch_size, passes: 1, ..DpSgd::new(LossKind::Logistic) }.into();
    recipes.push(composition([20, 50, 100, 200, 500].map(dp_sgd)).into());
    // Several classes inside.
    recipes.push(Portions::new([20, 50].map(|size| OneVsAll::new(dp_sgd(size), 2).into())).into());
    for (number, recipe) in recipes.iter().enumerate() {
        let plan = recipe.plan_copies::<ZeroOut>(rows, 20, budget(2.0, 1e-5), 1).unwrap();
        let train = |source: &mut dyn RowSource<f64>, threads: usize| {
            let workers = Workers::new(threads.try_into().unwrap());
            let control = &mut Control { workers, ..Control::default() };
            let trained = plan.train(source, &mut SeededRng::new(3), control).unwrap();
            (trained.weights.into_inner(), chosen(&trained.derivation), trained.log.to_event())
        };
        let one = train(&mut separable(rows as usize), 1);
        for threads in [2, 3, 8] {
            assert!(train(&mut separable(rows as usize), threads) == one, "{number} on {threads} threads");
            let one_reader = &mut Unfinished(&mut separable(rows as usize) as &mut dyn RowSource<f64>);
            assert!(train(one_reader, threads) == one, "{number} on {threads} threads with one reader");
        }
    }
    let choose = |threads: usize| {
        let control = Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
        let rng = &mut SeededRng::new(5);
        let chosen =
            public::choose::<ZeroOut, _>(&good_and_bad(), &mut separable(60), 60, budget(1e-3, 0.0), 3, rng, &control);
        (chosen.unwrap(), rng.next_u64())
    };
    assert!([2, 3].iter().all(|&threads| choose(threads) == choose(1)));
}

/// Progress of a choice on portions, or among all trainings, counts the rows of all candidates; that of random repetitions would reveal their number
/// and is not reported.
#[test]
fn progress_tells_only_what_is_public() {
    for (recipe, reports) in [
        (AnyRecipe::from(Portions::new(good_and_bad())), true),
        (composition(good_and_bad()).into(), true),
        (RandomStopping::new(good_and_bad(), 3.0).into(), false),
    ] {
        let plan = recipe.plan_copies::<ReplaceOne>(6000, 20, budget(2.0, 0.0), 1).unwrap();
        for threads in [1, 2] {
            let mut last = 0;
            let mut show = |at: crate::engine::Progress| last = at.pass * 6000 + at.rows;
            let workers = Workers::new(threads.try_into().unwrap());
            let control = &mut Control { progress: Some(&mut show), workers, ..Control::default() };
            plan.train::<f64>(&mut separable(6000), &mut SeededRng::new(3), control).unwrap();
            assert_eq!(last, if reports { plan.summary().rows } else { 0 });
        }
    }
}

/// The count of each record: right, wrong or null, for dense and sparse rows, and at ties.
#[test]
fn agreement_is_counted_by_hand() {
    let rows = vec![0.5, 0.0, 0.0, -0.5, 0.25, 0.5, -0.25, 0.25, 0.0, 0.0];
    let offsets = vec![0, 1, 2, 4, 6, 6];
    let (indices, values) = (vec![0, 1, 0, 1, 0, 1], vec![0.5, -0.5, 0.25, 0.5, -0.25, 0.25]);
    let count = |targets: &[f64], weights: &[f64]| {
        let bound = 9.0;
        let dense = Examples::dense(rows.clone(), targets.to_vec(), 2).unwrap();
        let sparse = Examples::sparse(offsets.clone(), indices.clone(), values.clone(), targets.to_vec(), 2).unwrap();
        let [one, other] = [dense, sparse].map(|examples| {
            let mut source = MemorySource::<f64>::new(examples, 1.0, bound);
            agreement(&mut source, weights, &Control::default()).unwrap()
        });
        assert_eq!(one, other);
        one
    };
    // Scores 1, -1/2, 1, -1/4 and 0; the last predicts -1.
    let weights = [2.0, 1.0];
    for (k, score) in [1.0, -0.5, 1.0, -0.25, 0.0].into_iter().enumerate() {
        for label in [1.0, -1.0, 0.0, 2.0] {
            let mut targets = [5.0; 5];
            targets[k] = label;
            let expected = match label {
                1.0 => {
                    if score > 0.0 {
                        1
                    } else {
                        -1
                    }
                }
                -1.0 => {
                    if score > 0.0 {
                        -1
                    } else {
                        1
                    }
                }
                _ => 0,
            };
            assert_eq!(count(&targets, &weights), expected, "{score} {label}");
        }
    }
    // With three classes the first of the largest scores wins: (x, y, x) is class 0 or 1, or 0 if all are equal.
    let three = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0];
    for (k, class) in [0, 0, 1, 1, 0].into_iter().enumerate() {
        for label in 0..3 {
            let mut targets = [7.0; 5];
            targets[k] = f64::from(label);
            assert_eq!(count(&targets, &three), if label == class { 1 } else { -1 }, "{k} {label}");
        }
    }
}

/// The contents of a derivation besides its event: the chosen candidate, the assumptions of all candidates, listed once, and
/// the noise on a score.
#[test]
fn derivations_name_a_candidate_and_no_other() {
    let plan =
        RandomStopping::new(good_and_bad(), 3.0).plan_copies::<ReplaceOne>(400, 20, budget(1.0, 1e-6), 1).unwrap();
    assert!(plan.score_noise().scale() > 1.0 && plan.score_noise() == plan.derivation().score);
    let repeated = plan.derivation().clone();
    let portions = Portions::new(good_and_bad()).plan_copies::<ReplaceOne>(400, 20, budget(1.0, 1e-6), 1).unwrap();
    let portions = portions.derivation().clone();
    for (chosen, accept) in [(None, true), (Some(0), true), (Some(1), true), (Some(2), false), (Some(u32::MAX), false)]
    {
        assert_eq!(portions::PortionsDerivation { chosen, ..portions.clone() }.event().is_ok(), accept);
        assert_eq!(random_stopping::RandomStoppingDerivation { chosen, ..repeated.clone() }.event().is_ok(), accept);
    }
    let mut trained = (0..4).map(|seed| {
        plan.train::<f64>(&mut separable(400), &mut SeededRng::new(seed), &mut Control::default()).unwrap()
    });
    assert!(trained.all(|trained| chosen(&trained.derivation).is_some()), "the truncated law repeats once at least");
    let rounded = good_and_bad().map(|recipe| match recipe {
        AnyRecipe::BoltOn(recipe) => {
            BoltOn { noise_mode: dp_accountant::certificate::NoiseMode::Rounded, ..recipe }.into()
        }
        recipe => recipe,
    });
    let rounded = Portions::new(rounded).plan_copies::<ReplaceOne>(400, 20, budget(1.0, 1e-6), 1).unwrap();
    let assumptions = rounded.derivation().assumptions();
    assert_eq!(assumptions.len(), 4, "{assumptions:?}");
    let twice: BTreeSet<String> = assumptions.iter().map(|one| format!("{one:?}")).collect();
    assert_eq!(twice.len(), 4);
}

#[test]
fn laws_at_their_limits_are_refused() {
    let check = |eta, gamma| repetitions::check(Repetitions::TruncatedNegativeBinomial { eta, gamma }).is_ok();
    assert!(check(1.0, 0.5) && check(-0.999, 0.5) && check(0.0, 1e-6));
    assert!(
        !check(-1.0, 0.5) && !check(1.001, 0.5) && !check(0.0, 1.0) && !check(0.0, 0.9e-6) && !check(f64::NAN, 0.5)
    );
    let poisson = |mean| repetitions::check(Repetitions::Poisson { mean }).is_ok();
    assert!(poisson(1e6) && poisson(1e-3) && !poisson(0.0) && !poisson(1.1e6) && !poisson(f64::NAN));
}

/// Two public records are halves of one each; of candidates that are equally right the first is chosen, and the noise of a
/// half is that for the number of private records.
#[test]
fn public_halves_stand_for_the_records() {
    let choose = |candidates: &[AnyRecipe], records: usize, n: u64| {
        let rng = &mut SeededRng::new(1);
        let public = &mut separable(records);
        public::choose::<ReplaceOne, f64>(candidates, public, n, budget(0.1, 0.0), 3, rng, &Control::default())
    };
    assert!(choose(&good_and_bad(), 1, 100).is_err());
    let usual: AnyRecipe =
        BoltOn { batch_size: 1, passes: 1, ..BoltOn::strongly_convex(LossKind::Logistic, 0.05) }.into();
    assert_eq!(choose(&[usual.clone(), usual.clone()], 2, 100).unwrap(), 0);
    // The first is only noise with the noise for 4,000 records, and without a mistake with that for 10^8; this seed and 299 others
    // agree.
    for (n, expected) in [(4000, GOOD as usize), (100_000_000, 0)] {
        assert_eq!(choose(&good_and_bad(), 400, n).unwrap(), expected, "{n}");
    }
}
