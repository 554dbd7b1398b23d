use dp_accountant::certificate::{Assumption, Derivation as _};
use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon, ReplaceOne, ZeroOut, bound};
use dp_data::Examples;
use dp_losses::Softmax;
use dp_mechanisms::SeededRng;
use proptest::prelude::*;

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{Plan, Planned, Recipe as _, RecordAdjacency};
use crate::trained::Trained;

fn budget() -> Budget {
    Budget::new(1.0, 1e-6).unwrap()
}

fn examples(n: usize) -> Examples<f64> {
    let rows = (0..n).flat_map(|i| [if i % 2 == 0 { 0.8 } else { -0.8 }, 0.6]).collect();
    let labels = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    Examples::dense(rows, labels, 2).unwrap()
}

fn source(n: usize) -> MemorySource<f64> {
    MemorySource::new(examples(n), 1.0, 1.0)
}

fn train<A: RecordAdjacency>(plan: &Plan<DpSgd, A>, n: usize, seed: u64) -> Trained<f64, A, Derivation<DpSgd>> {
    plan.train(&mut source(n), &mut SeededRng::new(seed), &mut Control::default()).unwrap()
}

fn norm(v: f64) -> Option<ClippingNorm> {
    Some(ClippingNorm::new(v).unwrap())
}

/// All sampling methods with a proof under the relation.
fn recipes(relation: AdjacencyKind) -> Vec<DpSgd> {
    let base = DpSgd { batch_size: 40, passes: 3, ..DpSgd::new(LossKind::Logistic) };
    let mut all = vec![
        base.clone(),
        DpSgd { sampling: Sampling::Passes, ..base.clone() },
        DpSgd { clipping: norm(0.3), steps: Some(11), ..base.clone() },
        DpSgd { loss: LossKind::Hinge, averaging: Averaging::Uniform, lambda: 0.01, ..base.clone() },
    ];
    if relation == AdjacencyKind::ReplaceOne {
        all.push(DpSgd { sampling: Sampling::FixedSize, ..base });
    }
    all
}

#[test]
fn what_is_logged_is_what_was_planned_and_what_is_derived() {
    fn check<A: RecordAdjacency>() {
        for recipe in recipes(A::KIND) {
            let plan = recipe.plan::<A>(400, 2, budget()).unwrap();
            let trained = train(&plan, 400, 1);
            assert_eq!(trained.log.to_event(), plan.event(), "{recipe:?}");
            assert_eq!(plan.derivation().event().unwrap(), plan.event());
            assert!(plan.event().relations().unwrap().contains(A::KIND));
            let epsilon = bound::epsilon(&plan.event(), Delta::new(1e-6).unwrap()).unwrap().value;
            assert!(epsilon <= 1.0 && epsilon > 0.99, "{epsilon}");
            assert_eq!(plan.reached().epsilon, epsilon);
            assert!(!trained.log.is_private(), "the generator repeats itself");
            assert!(trained.weights.get().iter().all(|w| w.is_finite()));
        }
    }
    check::<ReplaceOne>();
    check::<ZeroOut>();
}

#[test]
fn a_replaced_record_costs_as_much_as_two() {
    let recipe = DpSgd { batch_size: 40, ..DpSgd::new(LossKind::Logistic) };
    let event = recipe.plan::<ReplaceOne>(400, 2, budget()).unwrap().event();
    let DpEvent::AddRemoveTwice { event } = event else { panic!("{event:?}") };
    let DpEvent::SelfComposed { event, count: 200 } = *event else { panic!("{event:?}") };
    let DpEvent::PoissonSampled { sampling_rate, event } = *event else { panic!("{event:?}") };
    assert!((sampling_rate - 0.09516258196404048).abs() < 1e-15, "1 - e^(-1/10): {sampling_rate}");
    let DpEvent::Gaussian { sensitivity, .. } = *event else { panic!("{event:?}") };
    assert!((1.0..1.0 + 1e-9).contains(&sensitivity), "a record's presence: {sensitivity}");
    // Batches of fixed size: both gradients at once, by another theorem.
    let fixed = DpSgd { sampling: Sampling::FixedSize, ..recipe }.plan::<ReplaceOne>(400, 2, budget()).unwrap();
    assert!((2.0..2.0 + 1e-9).contains(&fixed.run().sensitivity()), "{}", fixed.run().sensitivity());
}

#[test]
fn a_clipping_norm_is_the_sensitivity() {
    let recipe = DpSgd { batch_size: 40, clipping: norm(0.25), ..DpSgd::new(LossKind::Squared) };
    let plan = recipe.plan::<ZeroOut>(400, 2, budget()).unwrap();
    assert!((0.25..0.25 + 1e-9).contains(&plan.run().sensitivity()));
    // Noise is proportional to the clipping norm.
    let twice = DpSgd { clipping: norm(0.5), ..recipe }.plan::<ZeroOut>(400, 2, budget()).unwrap();
    assert!((twice.run().std_dev() / plan.run().std_dev() - 2.0).abs() < 1e-6);
    // The squared loss has no bound without a radius.
    let none = DpSgd { clipping: None, ..DpSgd::new(LossKind::Squared) };
    assert!(matches!(none.plan::<ZeroOut>(400, 2, budget()), Err(Error::NotProved { .. })));
    assert!(DpSgd { radius: Some(2.0), ..none }.plan::<ZeroOut>(400, 2, budget()).is_ok());
}

#[test]
fn batches_and_noise_differ_from_run_to_run_and_repeat_under_a_seed() {
    let recipe = DpSgd { batch_size: 40, passes: 2, ..DpSgd::new(LossKind::Logistic) };
    let plan = recipe.plan::<ZeroOut>(400, 2, budget()).unwrap();
    let weights = |seed| train(&plan, 400, seed).weights.get().clone();
    assert_eq!(weights(1), weights(1));
    assert_ne!(weights(1), weights(2));
    // Two trainings from one generator.
    let mut rng = SeededRng::new(1);
    let mut both = || plan.train::<f64>(&mut source(400), &mut rng, &mut Control::default()).unwrap();
    assert_ne!(both().weights, both().weights);
}

#[test]
fn it_learns() {
    let (n, mut right) = (4000, 0);
    let recipe = DpSgd::recommended(LossKind::Logistic, n, 2, budget(), AdjacencyKind::ZeroOut).unwrap();
    let plan = recipe.plan::<ZeroOut>(n, 2, budget()).unwrap();
    for seed in 0..5 {
        right += u32::from(train(&plan, n as usize, seed).weights.get()[0] > 1.0);
    }
    assert_eq!(right, 5, "the first feature tells the label");
}

#[test]
fn several_classes_take_the_same_path() {
    let loss = LossKind::Softmax(Softmax::new(3).unwrap());
    let n = 600;
    let rows = (0..n).flat_map(|i| [f64::from(u8::from(i % 3 == 0)), f64::from(u8::from(i % 3 == 1))]).collect();
    let labels = (0..n).map(|i| (i % 3) as f64).collect();
    let recipe = DpSgd { batch_size: 60, schedule: Some(Schedule::Constant { step: 0.5 }), ..DpSgd::new(loss) };
    let plan = recipe.plan::<ZeroOut>(n, 2, budget()).unwrap();
    assert!((plan.run().sensitivity() - 2f64.sqrt()).abs() < 1e-6, "{}", plan.run().sensitivity());
    let mut source = MemorySource::new(Examples::dense(rows, labels, 2).unwrap(), 1.0, 2.0);
    let trained: Trained<f64, _, _> = plan.train(&mut source, &mut SeededRng::new(5), &mut Control::default()).unwrap();
    let weights = trained.weights.get();
    assert_eq!(weights.len(), 6);
    assert!(weights[0] > weights[2] && weights[3] > weights[1], "{weights:?}");
}

#[test]
fn an_edited_certificate_names_another_event() {
    for relation in [AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut] {
        let base = DpSgd { batch_size: 40, clipping: norm(0.3), ..DpSgd::new(LossKind::Logistic) };
        let genuine = Derivation { recipe: base, relation, n: 400, dim: 2, calibrated: StdDev { std_dev: 5.0 } };
        let event = genuine.event().unwrap();
        let recipe = |recipe: DpSgd| Derivation { recipe, ..genuine.clone() };
        let other = match relation {
            AdjacencyKind::ReplaceOne => AdjacencyKind::ZeroOut,
            _ => AdjacencyKind::ReplaceOne,
        };
        for edited in [
            Derivation { calibrated: StdDev { std_dev: 5.5 }, ..genuine.clone() },
            Derivation { n: 401, ..genuine.clone() },
            Derivation { relation: other, ..genuine.clone() },
            recipe(DpSgd { batch_size: 39, ..genuine.recipe.clone() }),
            recipe(DpSgd { passes: 19, ..genuine.recipe.clone() }),
            recipe(DpSgd { steps: Some(3), ..genuine.recipe.clone() }),
            recipe(DpSgd { clipping: norm(0.29), ..genuine.recipe.clone() }),
            recipe(DpSgd { sampling: Sampling::Passes, ..genuine.recipe.clone() }),
        ] {
            assert_ne!(edited.event().unwrap(), event, "{edited:?}");
        }
        assert!(Derivation { relation: AdjacencyKind::AddRemoveOne, ..genuine.clone() }.event().is_err());
        for nonsense in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert!(Derivation { calibrated: StdDev { std_dev: nonsense }, ..genuine.clone() }.event().is_err());
        }
    }
}

#[test]
fn what_is_taken_on_trust_is_listed() {
    let recipe = DpSgd { noise_mode: NoiseMode::Rounded, ..DpSgd::new(LossKind::Logistic) };
    let assumed = |recipe: &DpSgd| recipe.plan::<ZeroOut>(400, 2, budget()).unwrap().derivation().assumptions();
    let all = assumed(&recipe);
    assert!(all.contains(&Assumption::PublicN) && all.contains(&Assumption::IdealisedFloat));
    assert!(!all.contains(&Assumption::DeclaredOrder));
    let declared = DpSgd { sampling: Sampling::Passes, declared_order: true, ..recipe };
    assert!(assumed(&declared).contains(&Assumption::DeclaredOrder));
}

#[test]
fn what_is_not_proved_is_refused() {
    let recipe = DpSgd::new(LossKind::Logistic);
    let zero_out = |recipe: &DpSgd| recipe.plan::<ZeroOut>(400, 2, budget());
    assert!(matches!(
        zero_out(&DpSgd { sampling: Sampling::FixedSize, ..recipe.clone() }),
        Err(Error::NotProved { .. })
    ));
    let pure = Budget { delta: Delta::ZERO, ..budget() };
    assert!(matches!(recipe.plan::<ZeroOut>(400, 2, pure), Err(Error::NotProved { .. })));
    for bad in [
        DpSgd { batch_size: 0, ..recipe.clone() },
        DpSgd { passes: 0, ..recipe.clone() },
        DpSgd { steps: Some(0), ..recipe.clone() },
        DpSgd { lambda: -1.0, ..recipe.clone() },
        DpSgd { lambda: f64::NAN, ..recipe.clone() },
        DpSgd { radius: Some(0.0), ..recipe.clone() },
        DpSgd { row_norm: 2.0, ..recipe.clone() },
        DpSgd { target_bound: 1.5, ..recipe.clone() },
        DpSgd { noise_mode: NoiseMode::None, ..recipe.clone() },
        DpSgd { sampling: Sampling::Passes, steps: Some(3), ..recipe.clone() },
        DpSgd { schedule: Some(Schedule::Constant { step: 1e200 }), ..recipe.clone() },
        DpSgd { lambda: 3.0, schedule: Some(Schedule::Constant { step: 1.0 }), ..recipe.clone() },
    ] {
        assert!(zero_out(&bad).is_err(), "{bad:?}");
    }
    assert!(recipe.plan::<ZeroOut>(0, 2, budget()).is_err() && recipe.plan::<ZeroOut>(5, 0, budget()).is_err());
}

/// Single precision with Poisson batches, for any number of records and parameters: the sensitivity, and so the noise, is
/// within a factor 1.02 of the norm.
#[test]
fn single_precision_is_as_good_for_many_records_and_many_parameters() {
    let clipped = DpSgd { clipping: norm(0.5), steps: Some(10), batch_size: 100, ..DpSgd::new(LossKind::Logistic) };
    let single = DpSgd { float: FloatKind::F32, ..clipped.clone() };
    for n in [1000, 60_000, 1_000_000, 1_000_000_000] {
        let [one, two] = [&single, &clipped].map(|recipe| {
            recipe.run(&recipe.problem(n, 20, AdjacencyKind::ZeroOut).unwrap()).unwrap().sensitivity().unwrap()
        });
        assert!(one > 0.5 && one < 0.5 * 1.02, "{n}: {one}");
        assert_eq!(one, two);
    }
    let passes = DpSgd { sampling: Sampling::Passes, steps: None, passes: 1, ..single };
    let run = passes.run(&passes.problem(2000, 17_000_000, AdjacencyKind::ReplaceOne).unwrap()).unwrap();
    assert!(run.sensitivity().unwrap() < 1.000_001);
}

/// All records at each step: the sensitivity used to be 3.2 times its ideal at 1e8 records and 223 times at 1e9.
#[test]
fn more_records_do_not_cost_more_noise_on_a_full_sum() {
    for (n, most) in [(100_000, 1e-7), (10_000_000, 1e-5), (100_000_000, 1e-4), (1_000_000_000, 1e-3)] {
        let recipe =
            DpSgd { sampling: Sampling::Passes, batch_size: n, clipping: norm(0.5), ..DpSgd::new(LossKind::Logistic) };
        let over = recipe.run(&recipe.problem(n, 10, AdjacencyKind::ZeroOut).unwrap()).unwrap().sensitivity().unwrap()
            / 0.5
            - 1.0;
        assert!(over > 0.0 && over < most, "{n}: {over}");
    }
}

/// The sum of gradients of a batch of two records, by hand.
fn contribution(row: [f64; 2], target: f64, w: [f64; 2], clip: Option<f64>) -> [f64; 2] {
    let margin = target * (row[0] * w[0] + row[1] * w[1]);
    let slope = -target / (1.0 + margin.exp());
    let length = slope.abs() * f64::hypot(row[0], row[1]);
    let scale = clip.map_or(1.0, |clip| (clip / length).min(1.0)) * slope;
    [scale * row[0], scale * row[1]]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// One record's contribution to a sum is at most the sensitivity, for every record and every point.
    #[test]
    fn no_record_moves_a_sum_by_more_than_is_claimed(
        angle in 0.0..6.3f64, other in 0.0..6.3f64, length in 0.0..=1.0f64, sign: bool, other_sign: bool,
        w in prop::array::uniform2(-30.0..30.0f64), clip in prop_oneof![Just(None), (0.01..2.0f64).prop_map(Some)],
    ) {
        let target = |sign| if sign { 1.0 } else { -1.0 };
        let row = |angle: f64, length: f64| [length * angle.cos(), length * angle.sin()];
        let recipe = DpSgd { batch_size: 40, clipping: clip.and_then(norm), ..DpSgd::new(LossKind::Logistic) };
        let one = contribution(row(angle, length), target(sign), w, clip);
        let two = contribution(row(other, 1.0), target(other_sign), w, clip);
        let present = recipe.run(&recipe.problem(400, 2, AdjacencyKind::ZeroOut).unwrap()).unwrap().sensitivity().unwrap();
        prop_assert!(f64::hypot(one[0], one[1]) <= present);
        let fixed = DpSgd { sampling: Sampling::FixedSize, ..recipe };
        let replaced = fixed.run(&fixed.problem(400, 2, AdjacencyKind::ReplaceOne).unwrap()).unwrap().sensitivity().unwrap();
        prop_assert!(f64::hypot(one[0] - two[0], one[1] - two[1]) <= replaced);
    }

    #[test]
    fn recommended_recipes_can_be_planned(n in 1u64..300_000, dim in 1u64..500, epsilon in 0.05f64..8.0) {
        let budget = Budget::new(epsilon, 1e-7).unwrap();
        for loss in [LossKind::Logistic, LossKind::Hinge] {
            let recipe = DpSgd::recommended(loss, n, dim, budget, AdjacencyKind::ZeroOut).unwrap();
            let run = recipe.run(&recipe.problem(n, dim, AdjacencyKind::ZeroOut).unwrap()).unwrap();
            let schedule = recipe.schedule.clone().unwrap();
            prop_assert!(run.prepare(&schedule, &recipe.averaging, 5.0).is_ok());
        }
    }
}

/// Gradient descent on all records at each step, with momentum.
fn accelerated(lambda: f64, step: f64) -> DpSgd {
    DpSgd {
        lambda,
        sampling: Sampling::Passes,
        batch_size: u64::MAX,
        passes: 12,
        schedule: Some(Schedule::Constant { step }),
        descent: Descent::suited_to(step * lambda),
        averaging: Averaging::Suffix { updates: 6 },
        ..DpSgd::new(LossKind::Logistic)
    }
}

#[test]
fn momentum_costs_nothing() {
    fn check<A: RecordAdjacency>() {
        let recipe = accelerated(0.01, 3.0);
        let plain = DpSgd { descent: Descent::Plain, ..recipe.clone() };
        let (with, without) = (recipe.plan::<A>(400, 2, budget()).unwrap(), plain.plan::<A>(400, 2, budget()).unwrap());
        assert_eq!((with.event(), with.run().std_dev()), (without.event(), without.run().std_dev()));
        assert_eq!((with.run().steps(), with.run().divisor()), (12, 400.0));
        // One Gaussian release for each pass, whatever the order of the records, about which nothing is assumed.
        let DpEvent::SelfComposed { event, count: 12 } = with.event() else { panic!("{:?}", with.event()) };
        assert!(matches!(*event, DpEvent::Gaussian { .. }));
        assert!(!with.derivation().assumptions().contains(&Assumption::DeclaredOrder));
        let trained = train(&with, 400, 1);
        assert_eq!(trained.log.to_event(), with.event());
        assert_eq!(with.derivation().event().unwrap(), with.event());
        assert_ne!(trained.weights, train(&without, 400, 1).weights);
        let still = DpSgd { descent: Descent::Accelerated { momentum: 0.0 }, ..recipe };
        let still = still.plan::<A>(400, 2, budget()).unwrap();
        assert_eq!(train(&still, 400, 1).weights, train(&without, 400, 1).weights);
    }
    check::<ReplaceOne>();
    check::<ZeroOut>();
}

/// The released model of a run with momentum, recomputed from the noise-free gradients of all records and the same noise.
#[test]
fn momentum_is_nesterovs() {
    // A budget so large that the noise is negligible.
    let generous = Budget::new(1e9, 0.5).unwrap();
    let (lambda, eta) = (0.05, 2.0);
    let plan = accelerated(lambda, eta).plan::<ZeroOut>(400, 2, generous).unwrap();
    let found = train(&plan, 400, 3).weights.into_inner();
    let momentum = Descent::suited_to(lambda * eta).momentum();
    let (mut x, mut y, mut mean) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    for t in 1..=12 {
        let mut sum = [0.0; 2];
        for sign in [1.0, -1.0] {
            let one = contribution([0.8 * sign, 0.6], sign, y, None);
            (sum[0], sum[1]) = (sum[0] + 200.0 * one[0], sum[1] + 200.0 * one[1]);
        }
        for j in 0..2 {
            let next = y[j] - eta * (sum[j] / 400.0 + lambda * y[j]);
            y[j] = next + momentum * (next - x[j]);
            x[j] = next;
            mean[j] += if t > 6 { next / 6.0 } else { 0.0 };
        }
    }
    for j in 0..2 {
        assert!((found[j] - mean[j]).abs() < 1e-3, "{found:?} {mean:?}");
    }
}

#[test]
fn momentum_that_could_run_away_is_refused() {
    let recipe = accelerated(0.1, 1.0);
    let refused = |recipe: &DpSgd| recipe.plan::<ZeroOut>(400, 2, budget());
    for momentum in [1.0, -0.5, f64::NAN, f64::INFINITY] {
        let descent = Descent::Accelerated { momentum };
        assert!(matches!(refused(&DpSgd { descent, ..recipe.clone() }), Err(Error::OutOfRange { .. })), "{momentum}");
    }
    let falling = DpSgd { schedule: Some(Schedule::InverseSqrt { step: 1.0 }), ..recipe.clone() };
    assert!(matches!(refused(&falling), Err(Error::NotProved { .. })));
    assert!(refused(&DpSgd { radius: Some(3.0), ..falling.clone() }).is_ok());
    assert!(refused(&DpSgd { lambda: 0.0, ..falling }).is_ok());
    let long = DpSgd { lambda: 1.5, ..recipe.clone() };
    assert!(matches!(refused(&long), Err(Error::NotProved { .. })));
    assert!(refused(&DpSgd { descent: Descent::Plain, ..long }).is_ok());
    // The square of the number of steps enters the bound.
    let far = DpSgd { schedule: Some(Schedule::Constant { step: 1e134 }), lambda: 0.0, ..recipe };
    assert!(refused(&DpSgd { descent: Descent::Plain, ..far.clone() }).is_ok());
    assert!(matches!(refused(&DpSgd { passes: 3000, ..far }), Err(Error::NotProved { .. })));
}

#[cfg(feature = "serde")]
#[test]
fn recipes_written_before_there_was_momentum_are_read_and_written_alike() {
    let before = r#"{"loss":{"name":"logistic"},"lambda":0.0,"sampling":"poisson","batch_size":40,"passes":3,"steps":null,
        "schedule":{"kind":"constant","step":0.5},"clipping":0.5,"radius":null,"averaging":{"kind":"last"},
        "declared_order":false,"noise_mode":"exact","float":"f64","row_norm":1.0,"target_bound":1.0}"#;
    let recipe: DpSgd = serde_json::from_str(before).unwrap();
    assert_eq!(recipe.descent, Descent::Plain);
    let value: serde_json::Value = serde_json::from_str(before).unwrap();
    assert_eq!(serde_json::to_value(&recipe).unwrap(), value);
    let with = DpSgd { descent: Descent::Accelerated { momentum: 0.75 }, ..recipe };
    let text = serde_json::to_string(&with).unwrap();
    assert!(text.contains(r#""descent":{"kind":"accelerated","momentum":0.75}"#), "{text}");
    assert_eq!(serde_json::from_str::<DpSgd>(&text).unwrap(), with);
    assert!(serde_json::from_str::<DpSgd>(&text.replace("accelerated", "heavy")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    /// The bound on which the range of the iterates rests: after k steps of accelerated descent, at most k + 1 times a push
    /// remains.
    #[test]
    fn a_push_fades_or_grows_by_one_each_step(
        shrink in prop_oneof![Just(1.0), 0.0..1.0f64, 0.99..1.0f64], momentum in prop_oneof![0.0..1.0f64, 0.99..1.0f64],
    ) {
        let (mut before, mut now) = (0.0f64, 1.0f64);
        for k in 1..500 {
            (before, now) = (now, shrink * (now + momentum * (now - before)));
            prop_assert!(now.abs() <= f64::from(k + 1), "{}: {}", k, now);
        }
    }
}

mod consensus;
mod penalised;

/// The displayed numbers of a run, and the bound on its noise.
#[test]
fn runs_are_described_by_their_numbers() {
    let usual = DpSgd { batch_size: 40, passes: 3, ..DpSgd::new(LossKind::Logistic) };
    let run = |recipe: &DpSgd| recipe.run(&recipe.problem(400, 2, AdjacencyKind::ReplaceOne).unwrap()).unwrap();
    let passes = DpSgd { sampling: Sampling::Passes, ..usual.clone() };
    let whole = DpSgd { batch_size: 400, ..passes.clone() };
    for (recipe, rows, words) in [
        (usual.clone(), 1200, "30 steps on Poisson batches of "),
        (DpSgd { sampling: Sampling::FixedSize, ..usual.clone() }, 1200, "30 steps on random batches of 40"),
        (passes.clone(), 1200, "3 passes, batches of 40"),
        (DpSgd { batch_size: 399, ..passes.clone() }, 1200, "3 passes, batches of 399"),
        (whole.clone(), 1200, "3 passes, all records at each step"),
        (DpSgd { passes: 5, ..DpSgd::dp_admm(LossKind::Logistic, 4) }, 2000, "5 rounds of 4 parties"),
    ] {
        let run = run(&recipe);
        let found = run.describe_batches();
        if words.ends_with("of ") {
            assert_eq!(found, format!("{words}{:.1} on average", run.divisor));
        } else {
            assert_eq!(found, words);
        }
        assert_eq!(run.rows(), rows);
        assert!((run.largest_noise(0.25) / (250.0 * 2f64.sqrt()) - 1.0).abs() < 1e-15);
        let plan = recipe.plan::<ReplaceOne>(400, 2, budget()).unwrap();
        let norm = plan.run().std_dev() * 2f64.sqrt();
        let text = plan.summary().text;
        assert!(text.contains(&format!("noise of norm {norm:.4e} on each, {words}")), "{text}");
    }
    assert!((Schedule::usual(25).prepare(25).unwrap().at(1) - 0.2).abs() < 1e-15);
    assert!(matches!(DpSgd::adam(LossKind::Logistic).descent, Descent::Adam { .. }));
    assert!(matches!(DpSgd::adam_bc(LossKind::Logistic).descent, Descent::AdamBc { .. }));
    let consensus = DpSgd::dp_admm(LossKind::Logistic, 4);
    assert!(consensus.batch_size == u64::MAX && consensus.passes == 10 && consensus.sampling == Sampling::Passes);
    let l1 = || Penalty::L1 { lambda: 0.001 };
    for (recipe, falls) in [
        (DpSgd::ss_admm(LossKind::Logistic, l1(), 400, AdjacencyKind::ZeroOut), true),
        (DpSgd::mp_admm(LossKind::Logistic, l1()), false),
    ] {
        assert!(matches!(recipe.descent, Descent::Admm { .. }) && recipe.penalty == Some(l1()), "{recipe:?}");
        assert_eq!(matches!(recipe.schedule, Some(Schedule::PerDrawnPass { .. })), falls);
        assert_eq!(matches!(recipe.schedule, Some(Schedule::Constant { step: 1.0 })), !falls);
        // The steps add up to the total that suits plain descent: 1/pass for each update of a pass, or all equal, at most 1/β.
        let (n, dim, relation) = (400, 5, AdjacencyKind::ZeroOut);
        for epsilon in [0.01, 1.0] {
            let budget = Budget { epsilon: Epsilon::new(epsilon).unwrap(), ..budget() };
            let total = crate::defaults::Defaults::new(recipe.loss, n, dim, budget, relation).unwrap().total_step();
            let suited = recipe.clone().with_suited_first_step(n, dim, budget, relation).unwrap();
            let updates = suited.updates(n);
            let steps = suited.schedule.clone().unwrap().prepare(updates).unwrap();
            let sum: f64 = (1..=updates).map(|t| steps.at(t)).sum();
            let all = (sum / (defaults::TOTAL_STEP * total) - 1.0).abs() < 1e-9 && steps.at(1) < 4.0;
            assert!(all || (epsilon == 1.0 && steps.at(1) == 4.0), "{epsilon} {sum} {total} {}", steps.at(1));
        }
    }
}

/// The step sizes that suit Adam and consensus ADMM, by their documented formulas.
#[test]
fn suited_steps_follow_their_formulas() {
    let (n, dim, relation) = (2000, 20, AdjacencyKind::ReplaceOne);
    let step = |recipe: &DpSgd| match &recipe.schedule {
        Some(Schedule::Constant { step }) => *step,
        schedule => panic!("{schedule:?}"),
    };
    let plain = DpSgd::new(LossKind::Logistic).with_suited_steps(n, dim, budget(), relation).unwrap();
    for (recipe, share) in [(DpSgd::adam(LossKind::Logistic), 1.0), (DpSgd::adam_bc(LossKind::Logistic), 0.1)] {
        let run = recipe.run(&recipe.problem(n, dim, relation).unwrap()).unwrap();
        let noise = run.least_std_dev(budget(), 1).unwrap() / run.divisor;
        let suited = recipe.with_adaptive_steps(n, dim, budget(), relation).unwrap();
        let expected = step(&plain) * (share * noise * noise + 0.09 / 20.0).sqrt();
        assert!((step(&suited) / expected - 1.0).abs() < 1e-12, "{share}");
    }
    for (parties, rounds) in [(4u64, 7u64), (16, 1), (1, 1000)] {
        let recipe = DpSgd::dp_admm(LossKind::Logistic, parties);
        let Descent::Consensus { rho, .. } = recipe.descent else { panic!("{:?}", recipe.descent) };
        let fewer = (2000.0 / (parties as f64).sqrt()) as u64;
        let defaults = crate::defaults::Defaults::new(recipe.loss, fewer, dim, budget(), relation).unwrap();
        let moved = defaults::TOTAL_STEP * defaults.total_step() / rounds as f64;
        // β = 1/4 for the logistic loss.
        let expected = if moved * rho < 1.0 { (moved / (1.0 - moved * rho)).min(4.0) } else { 4.0 };
        let suited = recipe.with_suited_rounds(Some(rounds), n, dim, budget(), relation).unwrap();
        assert_eq!(suited.passes, rounds);
        assert!((step(&suited) / expected - 1.0).abs() < 1e-12, "{parties} {rounds}: {} {expected}", step(&suited));
        assert_eq!(suited.averaging, Averaging::Suffix { updates: rounds * parties / 2 });
    }
}
