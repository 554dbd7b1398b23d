use dp_accountant::certificate::Derivation as _;
use dp_accountant::{Delta, DpEvent, ReplaceOne, ZeroOut, bound};
use dp_data::{Examples, Order, PassRequest, RowSource, Workers};
use dp_losses::{LossKind, Softmax};
use dp_mechanisms::{ReleaseRng as _, SeededRng, laplace_ball::LaplaceBall};
use rand::RngExt;
use serde_json::Value;

use super::*;
use crate::derivation::DerivesModel as _;
use crate::engine::Control;
use crate::growth::OrderPolicy;
use crate::memory::MemorySource;
use crate::recipes::AnyDerivation;
use crate::recipes::bolt_on::OutputNoiseScale;
use crate::recipes::{BoltOn, DpSgd, ObjPert, OutputNoise, Planned, budget};

const HUBER: &str = "huber-svm:0.1";

fn huber() -> LossKind {
    HUBER.parse().unwrap()
}

fn one_vs_all(recipe: BoltOn, classes: u32, share: Share) -> OneVsAll {
    OneVsAll { share, ..OneVsAll::new(recipe.into(), classes) }
}

/// Random rows of three features, with class indices.
fn examples(n: usize, classes: u32, rng: &mut SeededRng) -> Examples<f64> {
    let rows = (0..3 * n).map(|_| rng.random_range(-0.55..0.55)).collect();
    let targets = (0..n).map(|_| f64::from(rng.random_range(0..classes))).collect();
    Examples::dense(rows, targets, 3).unwrap()
}

fn cases() -> Vec<Value> {
    let folder = std::env::var_os("DP_GOLDEN_DIR").map_or_else(
        || std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")),
        std::path::PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join("optim-erm.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let all = file["cases"].as_array().unwrap();
    assert!(!all.is_empty());
    let cases: Vec<Value> = all.iter().filter(|case| case["fn"] == "one_vs_all").cloned().collect();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some());
    cases
}

/// The noise of plans scaled to the sensitivity of the golden values, since noise is proportional to it.
#[test]
fn golden_noise_of_the_shares() {
    for case in cases() {
        let at = |part: &str, name: &str| case[part][name].as_f64().unwrap();
        let classes = at("in", "classes") as u32;
        let (dim, budget) = (at("in", "dim") as u64, budget(at("in", "eps"), at("in", "delta")));
        // The golden values are for a known position.
        let one = |output_noise| BoltOn { output_noise, hide_position: false, ..BoltOn::strongly_convex(huber(), 0.1) };
        let unit = one(OutputNoise::Gaussian).plan::<ReplaceOne>(1000, dim, budget).unwrap().run().sensitivity();
        let scaled = at("in", "per_class_sensitivity") / unit;
        let rtol = 1e-8; // The accountant's bisection ends within about 1e-10 of the least noise, and above it.
        let close = |found: f64, name: &str| {
            let want = at("out", name);
            assert!((found - want).abs() <= rtol * want, "{}: {name} = {found}, expected {want}", case["id"]);
        };
        let scale = |share, output_noise| {
            let plan = one_vs_all(one(output_noise), classes, share);
            let plan = plan.plan_copies::<ReplaceOne>(1000, dim, budget, 1).unwrap();
            let AnyDerivation::BoltOn(each) = &*plan.derivation().each else { panic!("another recipe") };
            match each.calibrated.noise {
                OutputNoiseScale::LaplaceBall { scale } => scale * scaled,
                OutputNoiseScale::Gaussian { std_dev } => std_dev * scaled,
                OutputNoiseScale::HiddenPositionGaussian { .. } => panic!("even positions"),
            }
        };
        let split = scale(Share::Split, OutputNoise::Gaussian);
        let joint = scale(Share::Joint, OutputNoise::Gaussian);
        close(split, "sigma_basic_split");
        close(joint, "sigma_joint");
        close(scale(Share::Composed, OutputNoise::Gaussian), "sigma_joint");
        if classes == 10 && budget.epsilon.get() == 1.0 && budget.delta.get() == 1e-6 {
            assert!((split / joint - 3.09).abs() < 0.01);
        }
        // Softmax: √2 times the gradient difference of one model, from the losses' own constants.
        let difference =
            |loss: LossKind| loss.constants(dp_losses::L2::NONE, &dp_losses::Domain::unit_rows()).gradient_difference;
        let softmax = difference(LossKind::Softmax(Softmax::new(classes).unwrap())) / difference(huber());
        let sensitivity = at("in", "per_class_sensitivity") * softmax;
        let event = |std_dev| DpEvent::Gaussian { std_dev, sensitivity };
        close(crate::recipes::recipe::least_scale(budget, 1, event).unwrap(), "sigma_softmax");
        let (basic, stacked) =
            (scale(Share::Split, OutputNoise::LaplaceBall), scale(Share::Joint, OutputNoise::LaplaceBall));
        close(basic, "laplace_theta_basic");
        close(stacked, "laplace_theta_joint");
        let mean_square = |scale: f64, dim: u64| {
            let sensitivity = dp_mechanisms::L2Sensitivity::<ReplaceOne>::new(1.0).unwrap();
            LaplaceBall::from_scale(sensitivity, scale, dim).unwrap().mean_squared_norm()
        };
        close(f64::from(classes) * mean_square(basic, dim), "laplace_total_mean_square_basic");
        close(mean_square(stacked, dim * u64::from(classes)), "laplace_total_mean_square_joint");
    }
}

#[test]
fn every_share_trains_within_its_budget_and_its_derivation_says_so() {
    let mut rng = SeededRng::new(1);
    for share in [Share::Split, Share::Joint, Share::Composed] {
        for (output_noise, delta) in
            [(OutputNoise::LaplaceBall, 0.0), (OutputNoise::Gaussian, 1e-6), (OutputNoise::Least, 1e-6)]
        {
            for copies in [1, 3] {
                let recipe = BoltOn {
                    output_noise,
                    passes: 2,
                    radius: Some(3.0),
                    ..BoltOn::strongly_convex(LossKind::Logistic, 0.1)
                };
                let recipe = one_vs_all(recipe, 4, share);
                let plan = recipe.plan_copies::<ZeroOut>(60, 3, budget(1.0, delta), copies).unwrap();
                let reached = Planned::reached(&plan);
                assert!(reached.epsilon <= 1.0 && reached.delta <= delta, "{share:?} {reached:?}");
                assert!(share == Share::Split || reached.epsilon > 0.99, "{share:?} {reached:?}");
                let mut source = MemorySource::new(examples(60, 4, &mut rng), 1.0, 3.0);
                let trained = Planned::train::<f64>(&plan, &mut source, &mut rng, &mut Control::default()).unwrap();
                assert_eq!(trained.weights.get().len(), 12);
                // The log, the plan and the reader's recomputation agree.
                assert_eq!(trained.log.to_event(), plan.event());
                assert_eq!(trained.derivation.event().unwrap(), plan.event());
                let of_all = crate::recipes::recipe::repeated(plan.event(), copies);
                let recomputed = bound::epsilon(&of_all, Delta::new(reached.delta).unwrap()).unwrap().value;
                assert!(recomputed <= reached.epsilon, "{share:?}: {recomputed} {reached:?}");
                let terms = trained.derivation.model_terms();
                assert_eq!((terms.weights, terms.target_bound), (12, 3.0));
                for model in trained.weights.get().chunks(3) {
                    assert!(model.iter().map(|w| w * w).sum::<f64>().sqrt() <= 3.0 * (1.0 + 1e-12));
                }
            }
        }
    }
}

/// The models and their log have the same bits on any number of threads, and every class has noise of its own.
#[test]
fn models_do_not_depend_on_the_threads() {
    let data = examples(3000, 5, &mut SeededRng::new(2));
    let logistic = LossKind::Logistic;
    let bolt_on = BoltOn::strongly_convex(logistic, 0.05);
    let recipes: [(AnyRecipe, Share); 5] = [
        (bolt_on.clone().into(), Share::Joint),
        (bolt_on.clone().into(), Share::Composed),
        (BoltOn { order: OrderPolicy::Fresh, batch_size: 7, ..bolt_on }.into(), Share::Split),
        (DpSgd { batch_size: 100, passes: 2, ..DpSgd::new(logistic) }.into(), Share::Composed),
        (ObjPert::new(logistic).into(), Share::Composed),
    ];
    for (recipe, share) in recipes {
        let recipe = OneVsAll { share, ..OneVsAll::new(recipe, 5) };
        let plan = recipe.plan_copies::<ZeroOut>(3000, 3, budget(1.0, 1e-6), 1).unwrap();
        let train = |threads: usize| {
            let workers = Workers::new(threads.try_into().unwrap());
            let (source, control) =
                (&mut MemorySource::new(data.clone(), 1.0, 4.0), &mut Control { workers, ..Control::default() });
            let trained = Planned::train::<f64>(&plan, source, &mut SeededRng::new(3), control).unwrap();
            (trained.weights.into_inner(), trained.log.to_event())
        };
        let one = train(1);
        for threads in [2, 3, 8] {
            assert!(train(threads) == one, "{share:?} {recipe:?} on {threads} threads");
        }
        // Null records have no gradients: the models are the noise alone.
        let nothing = data.clone().with_valid(vec![false; 3000]).unwrap();
        let control = &mut Control { workers: Workers::new(2.try_into().unwrap()), ..Control::default() };
        let source = &mut MemorySource::new(nothing, 1.0, 4.0);
        let noise = Planned::train::<f64>(&plan, source, &mut SeededRng::new(3), control).unwrap();
        let noise = noise.weights.get();
        assert!((1..15).all(|j| noise[j] != 0.0 && !noise[..j].contains(&noise[j])), "{noise:?}");
    }
}

#[test]
fn each_model_is_that_of_its_class_against_the_rest() {
    let mut rng = SeededRng::new(2);
    let data = examples(40, 3, &mut rng);
    let recipe = BoltOn { declared_order: true, ..BoltOn::strongly_convex(LossKind::Logistic, 0.2) };
    // A budget so large that hardly any noise remains.
    let budget = budget(1e7, 0.0);
    let stack = |share| {
        let mut source = MemorySource::new(data.clone(), 1.0, 2.0);
        let plan = one_vs_all(recipe.clone(), 3, share).plan_copies::<ReplaceOne>(40, 3, budget, 1).unwrap();
        let trained = Planned::train::<f64>(&plan, &mut source, &mut SeededRng::new(3), &mut Control::default());
        trained.unwrap().weights.into_inner()
    };
    for class in 0..3 {
        let targets = data.targets().iter().map(|&y| if y as usize == class { 1.0 } else { -1.0 }).collect();
        let mut source = MemorySource::new(data.clone().with_targets(targets).unwrap(), 1.0, 1.0);
        let plan = recipe.plan::<ReplaceOne>(40, 3, budget).unwrap();
        let alone = plan.train::<f64>(&mut source, &mut SeededRng::new(4), &mut Control::default()).unwrap();
        for share in [Share::Split, Share::Joint, Share::Composed] {
            for (found, want) in stack(share)[3 * class..].iter().zip(alone.weights.get()) {
                assert!((found - want).abs() < 1e-4, "{share:?}");
            }
        }
    }
}

#[test]
fn the_stack_moves_by_root_of_classes_times_what_one_model_does_and_no_more() {
    let (n, dim, classes) = (6, 2, 3);
    let mut rng = SeededRng::new(5);
    let recipe = BoltOn {
        declared_order: true,
        output_noise: OutputNoise::LaplaceBall,
        batch_size: 2,
        passes: 2,
        ..BoltOn::convex(huber())
    };
    let (joint, _) = recipe.plan_joint::<ReplaceOne>(n, dim, classes, budget(1.0, 0.0), 1).unwrap();
    let output = |rows: &[f64], targets: &[f64]| {
        let examples = Examples::dense(rows.to_vec(), targets.to_vec(), 2).unwrap();
        let mut source = MemorySource::new(examples, 1.0, 2.0);
        let mut stack = Vec::new();
        for class in 0..3 {
            let mut source = OneAgainstRest::new(&mut source, Softmax::new(3).unwrap(), class);
            let mut order = SeededRng::new(0);
            let (order, control) = (&mut order.lend(), &mut Control::default());
            stack.extend(joint.train_unreleased::<f64>(&mut source, order, control).unwrap());
        }
        stack
    };
    let mut most: f64 = 0.0;
    for trial in 0..600 {
        let mut unit = || {
            let angle: f64 = rng.random_range(0.0..core::f64::consts::TAU);
            [angle.cos() * (1.0 - 1e-15), angle.sin() * (1.0 - 1e-15)]
        };
        let mut rows: Vec<f64> = (0..6).flat_map(|_| unit()).collect();
        let targets: Vec<f64> = (0..6).map(|_| f64::from(rng.random_range(0..3))).collect();
        let (mut others, mut other_targets) = (rows.clone(), targets.clone());
        let at = rng.random_range(0..6usize);
        if trial % 2 == 0 {
            // The same class in the opposite direction, among records with no gradient.
            rows = vec![0.0; 12];
            (rows[2 * at], others) = (1.0, rows.clone());
            others[2 * at] = -1.0;
        } else {
            others[2 * at] = -0.8;
            others[2 * at + 1] = 0.6 * (1.0 - 1e-15);
            other_targets[at] = f64::from(rng.random_range(0..3));
        }
        let (a, b) = (output(&rows, &targets), output(&others, &other_targets));
        let moved = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        assert!(moved <= joint.sensitivity(), "{moved} beyond {}", joint.sensitivity());
        most = most.max(moved / joint.sensitivity());
    }
    assert!(most > 0.999, "the search is idle: {most}");
}

#[test]
fn the_source_of_one_class_keeps_null_records_null() {
    let examples = Examples::dense(vec![0.1, 0.2, 0.3, 0.4, f64::NAN], vec![0.0, 1.0, 2.0, 0.5, 1.0], 1).unwrap();
    let mut source = MemorySource::new(examples, 1.0, 2.0);
    let mut one = OneAgainstRest::new(&mut source, Softmax::new(3).unwrap(), 1);
    assert_eq!(RowSource::<f64>::describe(&mut one).unwrap().target_bound, 1.0);
    let want = (&[-1.0, 1.0, -1.0, 0.0, 0.0][..], Some(&[true, true, true, false, false][..]));
    let block = one.gather(&[0, 1, 2, 3, 4]).unwrap();
    assert_eq!((block.targets, block.valid), want);
    let mut pass = one.open_pass(&PassRequest { pass: 0, order: Order::Declared }).unwrap();
    let block = pass.next_block().unwrap().unwrap();
    assert_eq!((block.targets, block.valid), want);
    assert!(pass.next_block().unwrap().is_none());
    assert_eq!(pass.receipt().unwrap().rows, 5);
}

#[test]
fn what_is_not_proved_or_makes_no_sense_is_refused() {
    let plan = |recipe: OneVsAll| recipe.plan_copies::<ReplaceOne>(100, 3, budget(1.0, 1e-6), 1);
    let inner = BoltOn::convex(LossKind::Logistic);
    assert!(plan(OneVsAll::new(inner.clone().into(), 1)).is_err());
    let nested = OneVsAll::new(OneVsAll::new(inner.clone().into(), 3).into(), 3);
    assert!(matches!(plan(nested), Err(Error::NotProved { .. })));
    for loss in ["softmax:3", "huber-regression"] {
        let loss: LossKind = loss.parse().unwrap();
        for share in [Share::Split, Share::Joint, Share::Composed] {
            let refused = plan(one_vs_all(BoltOn::convex(loss), 3, share));
            assert!(matches!(refused, Err(Error::NotProved { .. })), "{refused:?}");
        }
    }
    // A source that clips class indices would change the class of a record.
    let mut rng = SeededRng::new(6);
    let mut source = MemorySource::new(examples(100, 3, &mut rng), 1.0, 1.0);
    let plan = plan(OneVsAll::new(inner.into(), 3)).unwrap();
    let trained = Planned::train::<f64>(&plan, &mut source, &mut rng, &mut Control::default());
    assert!(matches!(trained, Err(Error::OutOfRange { .. })));
}

#[cfg(feature = "serde")]
#[test]
fn recipes_and_derivations_round_trip() {
    for share in [Share::Split, Share::Joint, Share::Composed] {
        let recipe = AnyRecipe::from(one_vs_all(BoltOn::convex(LossKind::Logistic), 3, share));
        let json = serde_json::to_string(&recipe).unwrap();
        assert_eq!(serde_json::from_str::<AnyRecipe>(&json).unwrap(), recipe);
        let plan = recipe.plan_copies::<ReplaceOne>(100, 3, budget(1.0, 1e-6), 1).unwrap();
        let json = serde_json::to_string(&plan.derivation()).unwrap();
        let read: AnyDerivation = serde_json::from_str(&json).unwrap();
        assert_eq!(read.event().unwrap(), plan.event());
        // An edited number of classes is another event.
        let edited: AnyDerivation = serde_json::from_str(&json.replace("\"classes\":3", "\"classes\":2")).unwrap();
        assert_ne!(edited.event().unwrap(), plan.event());
    }
}

/// A model's terms and parts of a budget: three models of three weights each; the parts together never exceed the whole.
#[test]
fn stacks_and_parts_follow_their_formulas() {
    for classes in [2u32, 3, 7, 11] {
        let recipe = BoltOn { output_noise: OutputNoise::Gaussian, ..BoltOn::strongly_convex(huber(), 0.1) };
        let joint = one_vs_all(recipe.clone(), classes, Share::Joint);
        let plan = joint.plan_copies::<ReplaceOne>(1000, 3, budget(1.0, 1e-6), 1).unwrap();
        let alone = BoltOn { hide_position: false, ..recipe.clone() };
        let alone = alone.plan::<ReplaceOne>(1000, 3, budget(1.0, 1e-6)).unwrap();
        let DpEvent::Gaussian { std_dev, sensitivity } = plan.event() else { panic!("{:?}", plan.event()) };
        // Rounded up: above √c times, by a few ulps.
        let least = alone.run().sensitivity() * f64::from(classes).sqrt();
        assert!(sensitivity > least && sensitivity < least * (1.0 + 6.0 * f64::EPSILON), "{classes}");
        let summary = plan.summary();
        assert_eq!(summary.sensitivity, Some(sensitivity));
        let norm = std_dev * (3.0 * f64::from(classes)).sqrt();
        assert!(summary.text.contains(&format!("noise of norm {norm:.4e}")), "{}", summary.text);
        let terms = Planned::<ReplaceOne>::derivation(&plan).model_terms();
        assert_eq!((terms.models, terms.weights), (classes.into(), 3 * u64::from(classes)));
        // An equal part of the budget each.
        let split = one_vs_all(recipe.clone(), classes, Share::Split)
            .plan_copies::<ReplaceOne>(1000, 3, budget(1.0, 1e-6), 1)
            .unwrap();
        let parts = f64::from(classes);
        let part = recipe.plan::<ReplaceOne>(1000, 3, budget(1.0 / parts, 1e-6 / parts)).unwrap();
        let event = |event: DpEvent| match event {
            DpEvent::SelfComposed { event, count } => {
                assert_eq!(count, u64::from(classes));
                *event
            }
            event => panic!("{event:?}"),
        };
        let (DpEvent::Gaussian { std_dev: found, .. } | DpEvent::GaussianMixture { std_dev: found, .. }) =
            event(split.event())
        else {
            panic!("{:?}", split.event())
        };
        let (DpEvent::Gaussian { std_dev: expected, .. } | DpEvent::GaussianMixture { std_dev: expected, .. }) =
            part.event()
        else {
            panic!("{:?}", part.event())
        };
        assert!(found >= expected && found < expected * (1.0 + 1e-9), "{found} {expected}");
        assert!(split.reached().delta <= 1e-6);
        assert!(split.summary().text.contains("an equal part of the budget each"), "{}", split.summary().text);
    }
    for classes in [0, 1] {
        assert!(
            one_vs_all(BoltOn::convex(huber()), classes, Share::Split)
                .plan_copies::<ReplaceOne>(1000, 3, budget(1.0, 1e-6), 1)
                .is_err()
        );
    }
}

/// A record that does not count does not count for any class.
#[test]
fn what_does_not_count_is_marked_in_every_model() {
    let classes = Softmax::new(3).unwrap();
    for targets in
        [vec![0.0, 1.0, 2.0], vec![0.0, 7.0, 2.0], vec![9.0, 7.0, 2.0], vec![9.0, 7.0, 0.5], vec![9.0, 1.0, -1.0]]
    {
        let examples = Examples::dense(vec![0.1; 9], targets.clone(), 3).unwrap();
        let mut source = MemorySource::new(examples, 1.0, 10.0);
        let mut one = OneAgainstRest::new(&mut source, classes, 2);
        let block = one.gather(&[0, 1, 2]).unwrap();
        let counts: Vec<bool> = targets.iter().map(|target| [0.0, 1.0, 2.0].contains(target)).collect();
        let all = counts.iter().all(|&counts| counts);
        assert_eq!(block.valid.map(<[bool]>::to_vec), (!all).then_some(counts.clone()), "{targets:?}");
        for ((found, target), counts) in block.targets.iter().zip(&targets).zip(counts) {
            let expected = if !counts {
                0.0
            } else if *target == 2.0 {
                1.0
            } else {
                -1.0
            };
            assert_eq!(*found, expected);
        }
    }
}
