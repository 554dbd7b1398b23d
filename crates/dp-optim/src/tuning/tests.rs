use std::collections::BTreeSet;

use dp_accountant::certificate::Derivation as _;
use dp_accountant::guarantee::Unit;
use dp_accountant::{Repetitions, ReplaceOne, ZeroOut};
use dp_data::{Alternatives, Examples, RowSource, Workers};
use dp_losses::LossKind;
use dp_mechanisms::{OsSeeded, SeededRng};
use rand::Rng as _;
use serde_json::Value;

use super::composition::{Candidate, CompositionDerivation as CompositionOf};
use super::portions::PortionsDerivation as PortionsOf;
use super::random_stopping::RandomStoppingDerivation as StoppingOf;
use super::*;
use crate::engine::Control;
use crate::memory::MemorySource;
pub(super) use crate::recipes::budget;
use crate::recipes::{AnyDerivation, AnyRecipe, BoltOn, DpSgd, OneVsAll, Planned, Recipe, RecordAdjacency};

pub(super) fn cases(function: &str) -> Vec<Value> {
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

pub(super) fn at(case: &Value, name: &str) -> f64 {
    case["in"].get(name).or_else(|| case["out"].get(name)).unwrap().as_f64().unwrap()
}

pub(super) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Twenty features, each of which alone determines the label of the records that have it.
pub(super) fn separable(n: usize) -> MemorySource<f64> {
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
pub(super) fn good_and_bad() -> [AnyRecipe; 2] {
    [(1e-7, 1, 40), (0.05, 10, 2)].map(|(lambda, batch_size, passes)| {
        BoltOn { passes, batch_size, ..BoltOn::strongly_convex(LossKind::Logistic, lambda) }.into()
    })
}

pub(super) const GOOD: u32 = 1;

fn chosen<D: Clone + Into<AnyDerivation>>(derivation: &D) -> Option<u32> {
    match derivation.clone().into() {
        AnyDerivation::Portions(derivation) => derivation.chosen,
        AnyDerivation::RandomStopping(derivation) => derivation.chosen,
        AnyDerivation::Composition(derivation) => derivation.chosen,
        other => panic!("{other:?}"),
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
            let mut rows = separable(rows as usize);
            // It has one reader.
            let apart = &mut Alternatives::new(&mut rows, Vec::new());
            assert!(train(apart, threads) == one, "{number} on {threads} threads with one reader");
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

/// The contents of a derivation besides its event: the chosen candidate, the assumptions of all candidates, listed once, and
/// the noise on a score.
#[test]
fn derivations_name_a_candidate_and_no_other() {
    let plan =
        RandomStopping::new(good_and_bad(), 3.0).plan_copies::<ReplaceOne>(400, 20, budget(1.0, 1e-6), 1).unwrap();
    assert!(plan.derivation().score.scale() > 1.0);
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
