use dp_accountant::certificate::{Assumption, Derivation as _};
use dp_accountant::{ReplaceOne, ZeroOut};
use dp_data::{Block, Examples, Rows};
use dp_mechanisms::SeededRng;
use rand::RngExt;

use super::*;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::AnyDerivation;
use crate::recipes::{Planned, Recipe, RecordAdjacency, budget};
use crate::trained::Trained;

fn losses() -> Vec<LossKind> {
    ["logistic", "huber-svm", "hinge", "squared", "huber-regression:0.5", "log-cosh:0.5", "absolute", "softmax:7"]
        .map(|name| name.parse().unwrap())
        .to_vec()
}

fn choose(loss: LossKind, n: u64, dim: u64, budget: Budget) -> Choice {
    Auto::new(loss).choose(n, dim, budget, AdjacencyKind::ZeroOut).unwrap()
}

/// The λ and the number of steps of a choice.
fn numbers(choice: &Choice) -> (f64, u64) {
    match &choice.recipe {
        AnyRecipe::DpSgd(recipe) => (recipe.lambda, recipe.passes),
        AnyRecipe::Scs13(recipe) => (recipe.lambda, recipe.passes),
        AnyRecipe::BoltOn(recipe) => (recipe.lambda, recipe.passes),
        other => panic!("{other:?}"),
    }
}

/// A given λ is the one of the model, or the reason says which is.
#[test]
fn the_reason_is_that_of_the_lambda_that_is_used() {
    let budget = budget(1.0, 1e-8);
    for (loss, given, says) in [
        (LossKind::Logistic, 1e-9, "in place of 1.00e-9"),
        (LossKind::Logistic, 0.25, "2.50e-1 as given"),
        ("huber-svm".parse().unwrap(), 1e-9, "1.00e-9 as given"),
    ] {
        let auto = Auto { lambda: Some(given), ..Auto::new(loss) };
        let choice = auto.choose(10_000, 20, budget, AdjacencyKind::ZeroOut).unwrap();
        let used = match &choice.recipe {
            AnyRecipe::ObjPert(recipe) => recipe.lambda.unwrap(),
            _ => numbers(&choice).0,
        };
        assert!(choice.reason.contains(says), "{}", choice.reason);
        assert!(choice.reason.contains(&format!("lambda {used:.2e}")), "{}", choice.reason);
        assert!(!choice.reason.contains("lambda follows"), "{}", choice.reason);
    }
}

/// The noise that hides the solver's rounding decreases with the number of records or is negligible, and the expected cost
/// includes it.
#[test]
fn more_records_never_make_a_noisier_model() {
    for (dim, delta) in [(9, 0.0), (9, 1e-10), (51, 0.0), (51, 1e-10), (300, 0.0), (300, 1e-10)] {
        let budget = budget(1.0, delta);
        let mut before = f64::INFINITY;
        for n in [100_000u64, 1_000_000, 8_000_000, 100_000_000, 1_000_000_000] {
            let choice = choose(LossKind::Logistic, n, dim, budget);
            let plan = choice.recipe.plan_copies::<ZeroOut>(n, dim, budget, 1).unwrap();
            if let AnyDerivation::ObjPert(derivation) = plan.derivation() {
                let of_a_weight = derivation.calibrated.release.coordinate_std_dev(dim);
                assert!(of_a_weight <= 0.0203, "n={n} dim={dim} delta={delta}: {of_a_weight}");
                let share = choice.expected_cost.share;
                assert!(share >= of_a_weight * 0.95, "n={n} dim={dim} delta={delta}: {share} for {of_a_weight}");
            } else {
                assert!(n > 100_000_000, "n={n} dim={dim} delta={delta}: {}", choice.reason);
            }
            let share = choice.expected_cost.share;
            assert!(share <= before.max(0.0225), "n={n} dim={dim} delta={delta}: {share} after {before}");
            before = share;
        }
    }
}

#[test]
fn every_choice_stays_within_the_budget() {
    fn check<A: RecordAdjacency>(auto: &Auto, n: u64, dim: u64, budget: Budget) {
        let said = format!("{:?} n={n} dim={dim} {budget:?} {:?}", auto.loss, A::KIND);
        let choice = auto.choose(n, dim, budget, A::KIND).unwrap_or_else(|error| panic!("{said}: {error}"));
        let plan = choice.recipe.plan_copies::<A>(n, dim, budget, 1).unwrap_or_else(|error| panic!("{said}: {error}"));
        let (reached, derivation) = (plan.reached(), plan.derivation());
        assert!(reached.epsilon <= budget.epsilon.get() && reached.delta <= budget.delta.get(), "{said}: {reached:?}");
        assert!(reached.epsilon >= 0.95 * budget.epsilon.get(), "{said}: {reached:?}");
        assert_eq!(derivation.event().unwrap(), plan.event(), "{said}");
        assert_eq!(derivation.adjacency(), A::KIND);
        // The order of the records does not affect a sum over all of them.
        assert!(!derivation.assumptions().contains(&Assumption::DeclaredOrder));
        let (low, high) = choice.expected_cost.range();
        let share = choice.expected_cost.share;
        assert!(0.0 < low && low <= share && share <= high && high <= 1.0, "{said}: {share}");
    }
    for loss in losses() {
        let auto = Auto::new(loss);
        for (n, dim) in [(1, 1), (1, 100_000), (2, 3), (1000, 5), (50_000, 120), (2_000_000, 800)] {
            for (epsilon, delta) in [(1e-6, 0.0), (1e-6, 1e-12), (0.1, 0.0), (0.4, 1e-8), (1e3, 0.0), (1e3, 1e-3)] {
                check::<ZeroOut>(&auto, n, dim, budget(epsilon, delta));
                check::<ReplaceOne>(&auto, n, dim, budget(epsilon, delta));
            }
        }
    }
}

/// Single precision has no certified minimiser: descents are chosen, for any number of records.
#[test]
fn single_precision_descends() {
    let single = Auto { float: FloatKind::F32, ..Auto::new(LossKind::Logistic) };
    for (n, delta) in [(300, 0.0), (300, 1e-6), (1_000_000, 1e-6)] {
        let choice = single.choose(n, 5, budget(1.0, delta), AdjacencyKind::ZeroOut).unwrap();
        assert!(!matches!(choice.recipe, AnyRecipe::ObjPert(_)));
        assert!(choice.recipe.plan_copies::<ZeroOut>(n, 5, budget(1.0, delta), 1).is_ok(), "{n} {delta}");
    }
}

#[test]
fn more_records_or_budget_mean_less_regularisation_and_longer_runs() {
    for loss in losses() {
        for delta in [0.0, 1e-8] {
            let at = |n, dim, epsilon| choose(loss, n, dim, budget(epsilon, delta));
            let base = at(4000, 20, 0.2);
            if matches!(base.recipe, AnyRecipe::ObjPert(_)) {
                continue; // Its plan chooses λ; see its tests.
            }
            let replaced = Auto::new(loss).choose(4000, 20, budget(0.2, delta), AdjacencyKind::ReplaceOne).unwrap();
            assert!(base.expected_cost.share <= replaced.expected_cost.share);
            for (n, better) in [(8000, at(8000, 20, 0.2)), (4000, at(4000, 20, 0.4)), (4000, at(4000, 10, 0.2))] {
                assert!(better.expected_cost.share <= base.expected_cost.share);
                if let (AnyRecipe::BoltOn(base), AnyRecipe::BoltOn(better)) = (&base.recipe, &better.recipe) {
                    // The steps add up to a larger total.
                    let total = |recipe: &BoltOn, n: u64| {
                        let Some(Schedule::Constant { step }) = recipe.schedule else { panic!("{recipe:?}") };
                        step * (n.div_ceil(recipe.batch_size) * recipe.passes) as f64
                    };
                    assert!(total(better, n) > total(base, 4000), "{loss}");
                    continue;
                }
                let ((lambda, passes), (less, more)) = (numbers(&base), numbers(&better));
                // By the noise on one coordinate, the number of features does not matter.
                let same = matches!(loss, LossKind::Softmax(_)) && n == 4000 && less == lambda;
                assert!((less < lambda || same) && more >= passes, "{loss}: {lambda} {passes}, {less} {more}");
                assert!(numbers(&replaced).0 > lambda);
            }
        }
    }
}

#[test]
fn delta_and_smoothness_decide() {
    let kind = |recipe: &AnyRecipe| match recipe {
        AnyRecipe::ObjPert(_) => "obj-pert",
        AnyRecipe::DpSgd(_) => "dp-sgd",
        AnyRecipe::Scs13(_) => "scs13",
        AnyRecipe::BoltOn(_) => "bolt-on",
        other => panic!("{other:?}"),
    };
    // With delta, without, and without delta for a given number of passes.
    let expected = [
        ("obj-pert", "obj-pert", "bolt-on"),
        ("dp-sgd", "bolt-on", "bolt-on"),
        ("dp-sgd", "scs13", "scs13"),
        ("dp-sgd", "scs13", "scs13"),
        ("dp-sgd", "obj-pert", "bolt-on"),
        ("obj-pert", "obj-pert", "bolt-on"),
        ("dp-sgd", "scs13", "scs13"),
        ("dp-sgd", "obj-pert", "bolt-on"),
    ];
    for (loss, (approximate, pure, passes)) in losses().into_iter().zip(expected) {
        assert_eq!(kind(&choose(loss, 100, 3, budget(1.0, 1e-9)).recipe), approximate, "{loss}");
        assert_eq!(kind(&choose(loss, 100, 3, budget(1.0, 0.0)).recipe), pure, "{loss}");
        for asked in [
            Auto { passes: Some(5), ..Auto::new(loss) },
            Auto { radius: Some(2.0), ..Auto::new(loss) },
            Auto { float: FloatKind::F32, ..Auto::new(loss) },
        ] {
            let choice = asked.choose(100, 3, budget(1.0, 0.0), AdjacencyKind::ZeroOut).unwrap();
            assert_eq!(
                kind(&choice.recipe),
                if loss == LossKind::Squared && asked.radius.is_some() { "bolt-on" } else { passes },
                "{loss}"
            );
            let choice = asked.choose(100, 3, budget(1.0, 1e-9), AdjacencyKind::ZeroOut).unwrap();
            assert_eq!(kind(&choice.recipe), "dp-sgd", "{loss}");
        }
    }
    // Gradients are clipped only if the loss does not bound them.
    let AnyRecipe::DpSgd(squared) = choose(LossKind::Squared, 100, 3, budget(1.0, 1e-6)).recipe else { panic!() };
    assert_eq!(squared.clipping.map(ClippingNorm::get), Some(1.0));
    let within = Auto { radius: Some(2.0), ..Auto::new(LossKind::Squared) };
    let choice = within.choose(100, 3, budget(1.0, 1e-6), AdjacencyKind::ZeroOut).unwrap();
    let AnyRecipe::DpSgd(within) = choice.recipe else { panic!() };
    assert_eq!((within.clipping, within.radius), (None, Some(2.0)));
}

/// Few features: the law that needs no delta; a centre if there are enough records for its moments, or Gaussian noise.
#[test]
fn features_and_records_decide_on_law_and_centre() {
    let recipe = |n, dim, delta| match choose(LossKind::Logistic, n, dim, budget(0.4, delta)).recipe {
        AnyRecipe::ObjPert(recipe) => (recipe.law == OutputNoise::LaplaceBall, recipe.centre_share > 0.0),
        other => panic!("{other:?}"),
    };
    assert_eq!(recipe(1100, 5, 1e-8), (true, false));
    assert_eq!(recipe(8000, 6, 1e-8), (true, true));
    assert_eq!(recipe(40_000, 33, 1e-8), (false, true));
    assert_eq!(recipe(4_000_000, 33, 0.0), (true, false));
    assert_eq!(recipe(40_000, 501, 1e-8), (false, false));
    // A given λ, raised where the noise is large relative to it; no centre.
    for (lambda, least) in [(0.3, 0.3), (0.0, 1e-6)] {
        let said = Auto { lambda: Some(lambda), ..Auto::new(LossKind::Logistic) };
        let choice = said.choose(40_000, 33, budget(0.4, 1e-8), AdjacencyKind::ZeroOut).unwrap();
        let AnyRecipe::ObjPert(recipe) = choice.recipe else { panic!("{choice:?}") };
        assert!(recipe.centre_share == 0.0 && recipe.lambda.unwrap() >= least && recipe.lambda.unwrap() <= 0.3);
    }
}

#[test]
fn what_is_said_is_kept() {
    let said = Auto { lambda: Some(0.0), passes: Some(9), ..Auto::new(LossKind::Logistic) };
    for (loss, delta) in [(LossKind::Logistic, 1e-6), (LossKind::Logistic, 0.0), (LossKind::Hinge, 0.0)] {
        let said = Auto { loss, ..said.clone() };
        let choice = said.choose(4000, 5, budget(1.0, delta), AdjacencyKind::ZeroOut).unwrap();
        assert_eq!(numbers(&choice), (0.0, 9));
        assert!(choice.recipe.plan_copies::<ZeroOut>(4000, 5, budget(1.0, delta), 1).is_ok());
        // A large given λ shortens the run of accelerated descent.
        let heavy = Auto { lambda: Some(3.0), float: FloatKind::F32, ..Auto::new(loss) };
        let choice = heavy.choose(4000, 5, budget(1.0, delta), AdjacencyKind::ZeroOut).unwrap();
        let (lambda, passes) = numbers(&choice);
        assert!(lambda == 3.0 && (passes <= 3 || matches!(choice.recipe, AnyRecipe::BoltOn(_))), "{passes}");
    }
}

#[test]
fn nonsense_is_refused() {
    let auto = Auto::new(LossKind::Logistic);
    let choose = |auto: &Auto, n, dim, relation| auto.choose(n, dim, budget(1.0, 1e-6), relation);
    assert!(matches!(choose(&auto, 0, 1, AdjacencyKind::ZeroOut), Err(Error::Count { .. })));
    assert!(matches!(choose(&auto, 1, 0, AdjacencyKind::ZeroOut), Err(Error::Count { .. })));
    assert!(matches!(choose(&auto, 1, 1, AdjacencyKind::AddRemoveOne), Err(Error::Adjacency { .. })));
    for bad in [
        Auto { lambda: Some(-1.0), ..auto.clone() },
        Auto { lambda: Some(f64::NAN), ..auto.clone() },
        Auto { passes: Some(0), ..auto.clone() },
        Auto { radius: Some(0.0), ..auto.clone() },
        Auto { row_norm: f64::NAN, ..auto.clone() },
        Auto { target_bound: f64::INFINITY, ..auto.clone() },
        Auto { target_bound: 0.0, ..Auto::new(LossKind::Squared) },
    ] {
        assert!(choose(&bad, 100, 2, AdjacencyKind::ZeroOut).is_err(), "{bad:?}");
    }
}

#[test]
fn the_expected_cost_is_that_of_the_measurements() {
    // About 10 d/(nε) at delta = 1e-8, for any combination of the three.
    for (n, dim, epsilon) in [(40_000, 40, 0.1), (40_000, 40, 1.0), (1_000, 50, 0.9)] {
        let expected = 10.0 * dim as f64 / (n as f64 * epsilon);
        let share = choose(LossKind::Logistic, n, dim, budget(epsilon, 1e-8)).expected_cost.share;
        assert!(share > 0.7 * expected.min(1.0) && share < 1.4 * expected, "{share} {expected}");
    }
}

/// Objective perturbation is never expected to be worse than output perturbation, also with more features than records, and
/// more features never make it better.
#[test]
fn no_method_is_expected_to_beat_objective_perturbation() {
    for (loss, delta) in [("logistic", 1e-8), ("logistic", 0.0), ("log-cosh:0.5", 1e-8), ("softmax:7", 0.0)] {
        let auto = Auto::new(loss.parse().unwrap());
        for n in [1_000, 1_000_000, 100_000_000] {
            let mut before = 0.0;
            for dim in [10, 1_000, 100_000, 1_000_000] {
                let found = auto.forecasts(n, dim, budget(0.1, delta), AdjacencyKind::ZeroOut).unwrap();
                let share = found[0].expected_cost.share;
                assert_eq!(found[0].method, Method::ObjectivePerturbation);
                assert!(
                    found.iter().all(|other| share <= other.expected_cost.share + 0.021),
                    "{loss} {n} {dim}: {found:?}"
                );
                assert!(share >= before, "{loss} {n} {dim}: {share}");
                before = share;
            }
        }
    }
}

/// Rows on the unit sphere with labels by a fixed direction, one in ten of them flipped.
fn table(n: usize, seed: u64) -> Examples<f64> {
    const DIM: usize = 8;
    let mut rng = SeededRng::new(seed);
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let row: Vec<f64> = (0..DIM).map(|_| rng.random_range(-1.0..1.0)).collect();
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let score: f64 = row.iter().zip(1..).map(|(x, j)| if j % 2 == 0 { *x } else { -0.5 * x }).sum();
        let flip = if rng.random_range(0.0..1.0) < 0.1 { -1.0 } else { 1.0 };
        targets.push(score.signum() * flip);
        rows.extend(row.iter().map(|x| x / norm));
    }
    Examples::dense(rows, targets, DIM).unwrap()
}

fn accuracy(examples: &Examples<f64>, weights: &[f64]) -> f64 {
    let block: Block<'_, f64> = examples.block();
    let Rows::Dense { values, dim } = block.rows else { panic!() };
    let score = |row: &[f64]| row.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>();
    let right = values.chunks(dim).zip(block.targets).filter(|(row, y)| (score(row) > 0.0) == (**y > 0.0)).count();
    right as f64 / block.len() as f64
}

/// The best possible accuracy is 0.9. The mean of 20 runs has a standard error below 0.003 (seeds are fixed).
#[test]
fn it_learns() {
    const N: usize = 4000;
    let test = table(20_000, 999);
    for (loss, epsilon, delta, floor) in [
        (LossKind::Logistic, 0.4, 1e-8, 0.86),
        ("huber-svm".parse().unwrap(), 0.4, 1e-8, 0.86),
        (LossKind::Hinge, 0.4, 1e-8, 0.86),
        (LossKind::Logistic, 0.4, 0.0, 0.86),
        ("huber-svm".parse().unwrap(), 0.4, 0.0, 0.82),
        (LossKind::Hinge, 1.0, 0.0, 0.86),
    ] {
        let budget = budget(epsilon, delta);
        let choice = choose(loss, N as u64, 8, budget);
        let plan = choice.recipe.plan_copies::<ZeroOut>(N as u64, 8, budget, 1).unwrap();
        let mut sum = 0.0;
        for seed in 0..20 {
            let mut source = MemorySource::new(table(N, seed), 1.0, 1.0);
            let trained: Trained<f64, _, _> =
                plan.train(&mut source, &mut SeededRng::new(seed), &mut Control::default()).unwrap();
            // The derivation is that of the plan, whatever the records were.
            assert_eq!(trained.derivation, plan.derivation());
            assert_eq!(trained.log.to_event(), plan.event());
            sum += accuracy(&test, trained.weights.get());
        }
        assert!(sum / 20.0 > floor, "{loss} at {epsilon}, {delta}: {}", sum / 20.0);
    }
}

/// More records and a larger budget never give fewer cosines; their expected cost is within its bound.
#[test]
fn cosines_follow_the_noise_that_they_add() {
    let cosines = |loss: LossKind, n, dim, numeric, epsilon, delta| {
        let auto = Auto::new(loss);
        let chosen = auto.cosines(n, dim, numeric, budget(epsilon, delta), AdjacencyKind::ZeroOut).unwrap();
        assert!(chosen == 0 || (2..=MOST_COSINES).contains(&chosen));
        let stricter = auto.cosines(n, dim, numeric, budget(epsilon, delta), AdjacencyKind::ReplaceOne).unwrap();
        assert!(stricter <= chosen);
        if chosen > 0 && delta > 0.0 {
            let cost = |dim| auto.choose_descent(n, dim, budget(epsilon, delta), AdjacencyKind::ZeroOut).unwrap();
            let (lines, curves) = (cost(dim), cost(dim + numeric * (u64::from(chosen) - 1)));
            let added = (curves.expected_cost.share - lines.expected_cost.share) / f64::from(loss.outputs());
            let (columns, most) = match loss.classes() {
                Some(_) => {
                    assert_ne!(chosen, 3);
                    let times = [2.0, 0.0, 1.5, 1.0, 1.0][chosen as usize - 2];
                    (numeric as f64, COST_OF_A_CURVE * times)
                }
                None => (1.0, COST_OF_CURVES_FOR_NUMBERS),
            };
            assert!(added / columns <= most * 1.001, "{loss} {added}");
        }
        chosen
    };
    for loss in losses() {
        for delta in [1e-8, 0.0] {
            let mut before = 0;
            for n in [100, 1000, 10_000, 100_000, 1_000_000] {
                let now = cosines(loss, n, 20, 6, 1.0, delta);
                assert!(now >= before && now >= cosines(loss, n, 20, 6, 0.3, delta));
                before = now;
            }
            assert_eq!(before, MOST_COSINES, "{loss} {delta}");
            assert_eq!(cosines(loss, 100, 20, 6, 1.0, delta), 0);
            assert_eq!(cosines(loss, 1_000_000, 20, 0, 1.0, delta), 0);
        }
    }
}

/// The choices with which the published accuracy was measured.
#[test]
fn cosines_of_the_measured_tables() {
    let numbers: LossKind = "log-cosh:0.5".parse().unwrap();
    for (loss, n, dim, numeric, by_epsilon) in [
        (LossKind::Logistic, 39_074, 109, 6, [5, 6, 6, 6, 6]),
        (LossKind::Logistic, 36_169, 52, 7, [4, 6, 6, 6, 6]),
        (LossKind::Logistic, 8000, 29, 28, [2, 4, 6, 6, 6]),
        (LossKind::Logistic, 6515, 6, 5, [2, 4, 6, 6, 6]),
        (LossKind::Logistic, 1098, 5, 4, [0, 0, 2, 2, 4]),
        (numbers, 43_152, 26, 7, [0, 6, 6, 6, 6]),
        (numbers, 3332, 19, 3, [0, 0, 0, 4, 6]),
    ] {
        let chosen = [0.1, 0.4, 0.8, 1.6, 4.0].map(|epsilon| {
            Auto::new(loss).cosines(n, dim, numeric, budget(epsilon, 1e-8), AdjacencyKind::ZeroOut).unwrap()
        });
        assert_eq!(chosen, by_epsilon, "{loss} {n}");
    }
    for (n, dim, numeric, by_epsilon) in [
        (39_074, 109, 6, [2, 4, 5, 6]),
        (36_169, 52, 7, [2, 4, 6, 6]),
        (8000, 29, 28, [2, 2, 2, 4]),
        (6515, 6, 5, [2, 2, 4, 4]),
        (1098, 5, 4, [0, 2, 2, 2]),
    ] {
        let chosen = [0.1, 0.4, 0.8, 1.6].map(|epsilon| {
            Auto::new(LossKind::Logistic)
                .cosines(n, dim, numeric, budget(epsilon, 0.0), AdjacencyKind::ZeroOut)
                .unwrap()
        });
        assert_eq!(chosen, by_epsilon, "{n} without delta");
    }
}
