use core::sync::atomic::AtomicBool;

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Certificate, Delta, DpEvent, ReplaceOne, ZeroOut, bound};
use dp_data::{Description, Examples, Order, PassRequest, RowSource, RowStream, SourceError};
use dp_mechanisms::{OsSeeded, SeededRng};
use proptest::prelude::*;
use rand::RngExt;

mod refusals;

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{Plan, Planned, Recipe as _, RecordAdjacency, budget};

pub(in crate::recipes) fn data(n: usize, dim: usize, seed: u64) -> Examples<f64> {
    let mut rng = SeededRng::new(seed);
    let width = 1.0 / (dim as f64).sqrt();
    let values: Vec<f64> = (0..n * dim).map(|_| rng.random_range(-width..width)).collect();
    let targets = values.chunks(dim).map(|row| if row[0] + 0.1 * row[1] > 0.0 { 1.0 } else { -1.0 }).collect();
    Examples::dense(values, targets, dim).unwrap()
}

fn recipes() -> Vec<BoltOn> {
    let convex = BoltOn::convex(LossKind::Logistic);
    let strongly = BoltOn::strongly_convex(LossKind::Logistic, 0.01);
    vec![
        convex.clone(),
        BoltOn { averaging: Averaging::Uniform, ..convex.clone() },
        BoltOn { order: OrderPolicy::Fresh, radius: Some(2.0), averaging: Averaging::Polynomial, ..convex.clone() },
        BoltOn { arithmetic: Arithmetic::Scaled, batch_size: 1, ..convex.clone() },
        BoltOn { loss: LossKind::Squared, radius: Some(1.0), ..convex },
        strongly.clone(),
        BoltOn { averaging: Averaging::Uniform, passes: 2, ..strongly.clone() },
        BoltOn { stopping: Stopping::CertifiedMinimiser { tolerance: None }, passes: 1, ..strongly.clone() },
        BoltOn { declared_order: true, ..strongly },
    ]
}

fn certify<A: RecordAdjacency>(
    plan: &Plan<BoltOn, A>,
    source: &mut MemorySource<f64>,
) -> Certificate<Derivation<BoltOn>> {
    let trained = plan.train(source, &mut OsSeeded::new().unwrap(), &mut Control::default()).unwrap();
    assert!(trained.weights.get().iter().all(|w| w.is_finite()));
    trained.certificate(Unit::Record, Vec::new(), String::from("0"), Default::default())
}

#[test]
fn every_recipe_trains_and_its_certificate_verifies() {
    let mut source = MemorySource::new(data(400, 6, 1), 1.0, 1.0);
    for recipe in recipes() {
        for budget in [budget(0.5, 0.0), budget(0.5, 1e-6), budget(2.0, 1e-9)] {
            let replace = recipe.plan::<ReplaceOne>(400, 6, budget).unwrap();
            let null = recipe.plan::<ZeroOut>(400, 6, budget).unwrap();
            assert!(null.run().sensitivity() < replace.run().sensitivity());
            assert!(null.run().noise_norm() < replace.run().noise_norm());
            for certificate in [certify(&replace, &mut source), certify(&null, &mut source)] {
                let verified = certificate.verify().unwrap_or_else(|error| panic!("{error}: {recipe:?}"));
                assert!(verified.epsilon <= budget.epsilon.get());
                assert!(verified.epsilon >= budget.epsilon.get() * (1.0 - 1e-6), "noise is wasted: {recipe:?}");
            }
        }
    }
}

#[test]
fn noise_is_drawn_and_certified_as_the_recipe_says() {
    let mut source = MemorySource::new(data(200, 3, 9), 1.0, 1.0);
    for recipe in recipes() {
        assert_eq!(recipe.noise_mode, NoiseMode::Exact);
        for mode in [NoiseMode::Exact, NoiseMode::Rounded] {
            let recipe = BoltOn { noise_mode: mode, ..recipe.clone() };
            for budget in [budget(1.0, 0.0), budget(1.0, 1e-6)] {
                if recipe.output_noise == OutputNoise::Gaussian && budget.delta == Delta::ZERO {
                    continue;
                }
                let mut certificate = certify(&recipe.plan::<ReplaceOne>(200, 3, budget).unwrap(), &mut source);
                assert_eq!(certificate.noise, mode);
                let idealised = certificate.assumptions.contains(&Assumption::IdealisedFloat);
                assert_eq!(idealised, mode == NoiseMode::Rounded);
                certificate.verify().unwrap();
                certificate.assumptions.retain(|assumption| *assumption != Assumption::IdealisedFloat);
                assert_eq!(certificate.verify().is_err(), idealised);
            }
        }
        let none = BoltOn { noise_mode: NoiseMode::None, ..recipe.clone() };
        assert!(matches!(none.plan::<ReplaceOne>(200, 3, budget(1.0, 1e-6)), Err(Error::NotProved { .. })));
    }
}

/// A recipe serialised before the noise mode was stored used rounded noise.
#[cfg(feature = "serde")]
#[test]
fn an_earlier_recipe_is_read_as_rounded() {
    let recipe = BoltOn::convex(LossKind::Logistic);
    let mut text = serde_json::to_value(&recipe).unwrap();
    assert_eq!(text.as_object_mut().unwrap().remove("noise_mode"), Some("exact".into()));
    let read: BoltOn = serde_json::from_value(text).unwrap();
    assert_eq!(read, BoltOn { noise_mode: NoiseMode::Rounded, ..recipe });
}

#[test]
fn an_edited_certificate_fails() {
    let mut source = MemorySource::new(data(300, 4, 2), 1.0, 1.0);
    let plan = BoltOn::strongly_convex(LossKind::Logistic, 0.01).plan::<ReplaceOne>(300, 4, budget(1.0, 1e-6)).unwrap();
    let good = certify(&plan, &mut source);
    good.verify().unwrap();
    let edit = |change: &dyn Fn(&mut Derivation<BoltOn>)| {
        let mut bad = good.clone();
        change(&mut bad.derivation);
        // The forger also states the event of the edited recipe.
        let consistent = bad.derivation.event().map(|event| Certificate { event, ..bad.clone() });
        assert!(bad.verify().is_err(), "{:?}", bad.derivation);
        consistent
    };
    // Less noise, with or without a matching event.
    let quieter = edit(&|d| match &mut d.calibrated.noise {
        OutputNoiseScale::LaplaceBall { scale } => *scale /= 2.0,
        OutputNoiseScale::Gaussian { std_dev } | OutputNoiseScale::HiddenPositionGaussian { std_dev } => {
            *std_dev /= 2.0
        }
    });
    assert!(quieter.unwrap().verify().is_err());
    let fewer = edit(&|d| d.n = 150);
    assert!(fewer.unwrap().verify().is_err());
    let weaker = edit(&|d| d.recipe.lambda = 0.001);
    assert!(weaker.unwrap().verify().is_err());
    assert!(edit(&|d| d.relation = AdjacencyKind::ZeroOut).unwrap().verify().is_err());
    assert!(edit(&|d| d.relation = AdjacencyKind::AddRemoveOne).is_err());
    assert!(edit(&|d| d.recipe.passes = 0).is_err());
    // A claim of less than was spent.
    let mut cheaper = good.clone();
    if let Some(reached) = &mut cheaper.reached {
        reached.epsilon *= 0.99;
    }
    assert!(cheaper.verify().is_err());
    let mut silent = good.clone();
    silent.assumptions.clear();
    assert!(silent.verify().is_err());
}

#[cfg(feature = "serde")]
#[test]
fn certificates_survive_files_bit_for_bit() {
    let mut source = MemorySource::new(data(200, 3, 3), 1.0, 1.0);
    for recipe in recipes() {
        let plan = recipe.plan::<ZeroOut>(200, 3, budget(0.7, 1e-7)).unwrap();
        let certificate = certify(&plan, &mut source);
        let text = serde_json::to_string(&certificate).unwrap();
        let read: Certificate<Derivation<BoltOn>> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, certificate);
        read.verify().unwrap();
        assert!(
            serde_json::from_str::<Certificate<Derivation<BoltOn>>>(&text.replace("\"passes\"", "\"laps\"")).is_err()
        );
    }
}

#[test]
fn reproducible_noise_is_certified_as_not_private() {
    let mut source = MemorySource::new(data(200, 3, 4), 1.0, 1.0);
    let plan = BoltOn::convex(LossKind::Logistic).plan::<ReplaceOne>(200, 3, budget(1.0, 0.0)).unwrap();
    let train = |source: &mut MemorySource<f64>| {
        plan.train::<f64>(source, &mut SeededRng::new(5), &mut Control::default()).unwrap()
    };
    let (one, two) = (train(&mut source), train(&mut source));
    assert_eq!(one.weights, two.weights, "the same seed gives the same model, from the same examples in any order");
    let certificate = one.certificate(Unit::Record, Vec::new(), String::new(), Default::default());
    assert!(!certificate.private && certificate.reached.is_none() && certificate.verify().is_err());
}

#[test]
fn hiding_the_position_needs_less_noise() {
    // One pass with a uniform average: early records move the output most.
    let recipe = BoltOn {
        averaging: Averaging::Uniform,
        passes: 1,
        output_noise: OutputNoise::Gaussian,
        ..BoltOn::convex(LossKind::Logistic)
    };
    let hidden = recipe.plan::<ReplaceOne>(10_000, 30, budget(0.5, 1e-6)).unwrap();
    let shown = BoltOn { hide_position: false, ..recipe.clone() };
    let shown = shown.plan::<ReplaceOne>(10_000, 30, budget(0.5, 1e-6)).unwrap();
    assert!(matches!(hidden.event(), DpEvent::GaussianMixture { .. }));
    assert!(
        hidden.run().noise_norm() < 0.95 * shown.run().noise_norm(),
        "{} {}",
        hidden.run().noise_norm(),
        shown.run().noise_norm()
    );
    assert_eq!(hidden.run().sensitivity(), shown.run().sensitivity());
    // Declared and fresh orders hide no position, and with a constant step all positions are equal.
    for recipe in [
        BoltOn { declared_order: true, ..recipe.clone() },
        BoltOn { order: OrderPolicy::Fresh, ..recipe.clone() },
        BoltOn { averaging: Averaging::Last, ..recipe },
    ] {
        let plan = recipe.plan::<ReplaceOne>(10_000, 30, budget(0.5, 1e-6)).unwrap();
        assert!(matches!(plan.event(), DpEvent::Gaussian { .. }), "{recipe:?}");
    }
}

#[test]
fn few_dimensions_take_the_laplace_ball() {
    let recipe = BoltOn::strongly_convex(LossKind::Logistic, 0.01);
    let event = |dim| recipe.plan::<ReplaceOne>(1000, dim, budget(1.0, 1e-8)).unwrap().event();
    assert!(matches!(event(5), DpEvent::LaplaceBall { dim: 5, .. }));
    assert!(matches!(event(100), DpEvent::Gaussian { .. } | DpEvent::GaussianMixture { .. }));
}

#[test]
fn single_precision_is_allowed_for_and_named() {
    let recipe = BoltOn { float: FloatKind::F32, ..BoltOn::strongly_convex(LossKind::Logistic, 0.01) };
    let single = recipe.plan::<ReplaceOne>(1000, 5, budget(1.0, 0.0)).unwrap();
    let double = BoltOn { float: FloatKind::F64, ..recipe }.plan::<ReplaceOne>(1000, 5, budget(1.0, 0.0)).unwrap();
    let ratio = single.run().sensitivity() / double.run().sensitivity();
    assert!((ratio - 1.01).abs() < 1e-6, "{ratio}");
    assert!(single.derivation().assumptions().contains(&Assumption::FloatTraining));
    // Both precisions train nearly the same model with negligible noise.
    let huge = budget(1e12, 0.0);
    let recipe = |float| BoltOn { float, ..BoltOn::strongly_convex(LossKind::Logistic, 0.1) };
    let examples = data(500, 5, 8);
    let mut source = MemorySource::new(examples.to_f32(), 1.0, 1.0);
    let plan = recipe(FloatKind::F32).plan::<ReplaceOne>(500, 5, huge).unwrap();
    let single = plan.train::<f32>(&mut source, &mut SeededRng::new(1), &mut Control::default()).unwrap();
    let mut source = MemorySource::new(examples, 1.0, 1.0);
    let plan = recipe(FloatKind::F64).plan::<ReplaceOne>(500, 5, huge).unwrap();
    let double = plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default()).unwrap();
    for (a, b) in single.weights.get().iter().zip(double.weights.get()) {
        assert!((f64::from(*a) - b).abs() < 1e-4, "{a} {b}");
    }
}

#[test]
fn the_certified_minimiser_needs_the_least_noise_but_for_the_tolerance() {
    let fixed = BoltOn::strongly_convex(LossKind::Logistic, 0.05);
    let certified = BoltOn { stopping: Stopping::CertifiedMinimiser { tolerance: None }, ..fixed.clone() };
    let at = |recipe: &BoltOn| recipe.plan::<ReplaceOne>(2000, 5, budget(1.0, 0.0)).unwrap().run().sensitivity();
    let ratio = at(&certified) / at(&fixed);
    assert!((ratio - 1.02).abs() < 1e-3, "{ratio}");
}

#[test]
fn a_start_that_diverged_does_not_fail_a_certified_run() {
    let recipe = BoltOn {
        stopping: Stopping::CertifiedMinimiser { tolerance: None },
        schedule: Some(Schedule::Constant { step: 1e200 }),
        ..BoltOn::strongly_convex(LossKind::Logistic, 0.1)
    };
    let plan = recipe.plan::<ReplaceOne>(200, 3, budget(1.0, 0.0)).unwrap();
    certify(&plan, &mut MemorySource::new(data(200, 3, 9), 1.0, 1.0)).verify().unwrap();
}

#[test]
fn long_steps_leave_the_ball_that_the_regulariser_holds_short_ones_in() {
    let lambda = 2.0;
    let steepest = |step| {
        let schedule = Some(Schedule::Constant { step });
        let recipe = BoltOn { schedule, passes: 1, ..BoltOn::strongly_convex(LossKind::Logistic, lambda) };
        recipe.plan::<ReplaceOne>(100, 3, budget(1.0, 0.0)).unwrap().run().constants().data_lipschitz
    };
    assert!(steepest(1.0 / lambda) < 0.63); // 1/(1 + e^{-1/λ})
    assert_eq!(steepest(1.1 / lambda), 1.0);
}

/// A memory source that records the requested orders.
struct Asked {
    memory: MemorySource<f64>,
    orders: Vec<Order>,
}

impl RowSource<f64> for Asked {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.memory.describe()
    }
    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.orders.push(request.order);
        self.memory.open_pass(request)
    }
}

#[test]
fn each_training_draws_an_order_of_its_own() {
    let mut rng = OsSeeded::new().unwrap();
    let mut orders = |recipe: BoltOn| {
        let plan = recipe.plan::<ReplaceOne>(50, 3, budget(1.0, 0.0)).unwrap();
        let mut source = Asked { memory: MemorySource::new(data(50, 3, 12), 1.0, 1.0), orders: Vec::new() };
        plan.train::<f64>(&mut source, &mut rng, &mut Control::default()).unwrap();
        assert!(source.orders.len() == 10 && source.orders.iter().all(|order| *order == source.orders[0]));
        source.orders[0]
    };
    let fixed = BoltOn::convex(LossKind::Logistic);
    let (one, two) = (orders(fixed.clone()), orders(fixed.clone()));
    assert!(matches!(one, Order::Keyed { fresh_each_pass: false, .. }) && one != two);
    let fresh = orders(BoltOn { order: OrderPolicy::Fresh, ..fixed.clone() });
    assert!(matches!(fresh, Order::Keyed { fresh_each_pass: true, .. }));
    assert_eq!(orders(BoltOn { declared_order: true, ..fixed }), Order::Declared);
}

#[test]
fn runs_too_long_for_the_recursion_are_planned_without_hiding_positions() {
    let recipe = BoltOn {
        lambda: 1e-3,
        batch_size: 1,
        passes: 1,
        output_noise: OutputNoise::Gaussian,
        ..BoltOn::convex(LossKind::Logistic)
    };
    let plan = recipe.plan::<ReplaceOne>(1 << 40, 30, budget(1.0, 1e-6)).unwrap();
    assert!(matches!(plan.event(), DpEvent::Gaussian { .. }));
}

/// Each public parameter of the recipe determines the event or an assumption, or is a request for the noise that the recorded
/// noise answers.
#[test]
fn every_field_of_a_derivation_counts() {
    let recipe = BoltOn {
        batch_size: 7,
        passes: 3,
        radius: Some(2.0),
        averaging: Averaging::Uniform,
        loss: LossKind::Squared,
        ..BoltOn::strongly_convex(LossKind::Squared, 0.05)
    };
    let noise = OutputNoiseScale::Gaussian { std_dev: 1.0 };
    let good =
        Derivation { recipe, relation: AdjacencyKind::ReplaceOne, n: 100, dim: 4, calibrated: OneNoise { noise } };
    let statement = |derivation: &Derivation<BoltOn>| (derivation.event().ok(), derivation.assumptions());
    type Change = dyn Fn(&mut Derivation<BoltOn>);
    let changes: Vec<(&str, &Change)> = vec![
        ("algorithm", &|d| d.recipe.algorithm = Convexity::Convex),
        ("loss", &|d| d.recipe.loss = LossKind::Logistic),
        ("lambda", &|d| d.recipe.lambda = 0.06),
        ("passes", &|d| d.recipe.passes = 4),
        ("batch size", &|d| d.recipe.batch_size = 8),
        ("schedule", &|d| d.recipe.schedule = Some(Schedule::Constant { step: 0.5 })),
        ("radius", &|d| d.recipe.radius = Some(3.0)),
        ("averaging", &|d| d.recipe.averaging = Averaging::Polynomial),
        ("declared order", &|d| d.recipe.declared_order = true),
        ("divisor", &|d| d.recipe.divisor = Divisor::Actual),
        ("float", &|d| d.recipe.float = FloatKind::F32),
        ("arithmetic", &|d| d.recipe.arithmetic = Arithmetic::Scaled),
        ("noise mode", &|d| d.recipe.noise_mode = NoiseMode::Rounded),
        ("row norm", &|d| d.recipe.row_norm = 0.9),
        ("target bound", &|d| d.recipe.target_bound = 2.0),
        ("relation", &|d| d.relation = AdjacencyKind::ZeroOut),
        ("n", &|d| d.n = 110),
        ("dim", &|d| d.dim = 5),
        ("noise", &|d| d.calibrated.noise = OutputNoiseScale::Gaussian { std_dev: 1.1 }),
        ("stopping", &|d| {
            d.recipe = BoltOn {
                stopping: Stopping::CertifiedMinimiser { tolerance: None },
                averaging: Averaging::Last,
                radius: None,
                loss: LossKind::Logistic,
                ..d.recipe.clone()
            }
        }),
    ];
    for (name, change) in changes {
        let mut other = good.clone();
        change(&mut other);
        assert_ne!(statement(&other), statement(&good), "{name}");
    }
    // Fresh permutations give another sensitivity where the worst position changes from pass to pass.
    let order = |order| {
        let values = (0..45).map(|t| if t % 17 == 0 { 1.0 } else { 0.1 }).collect();
        let recipe = BoltOn { order, schedule: Some(Schedule::Steps { values }), ..good.recipe.clone() };
        Derivation { recipe, ..good.clone() }.event().unwrap()
    };
    assert_ne!(order(OrderPolicy::Fixed), order(OrderPolicy::Fresh));
    for tolerance in [0.01, 0.02] {
        let mut other = good.clone();
        other.recipe = BoltOn {
            stopping: Stopping::CertifiedMinimiser { tolerance: Some(tolerance) },
            ..BoltOn::strongly_convex(LossKind::Logistic, 0.05)
        };
        let Ok(DpEvent::Gaussian { sensitivity, .. }) = other.event() else { unreachable!() };
        assert!(sensitivity > 2.0 * tolerance && sensitivity < 0.4 + 2.1 * tolerance);
    }
}

#[test]
fn a_hidden_position_is_not_claimed_where_the_recipe_shows_it() {
    let recipe = BoltOn { averaging: Averaging::Uniform, passes: 1, ..BoltOn::convex(LossKind::Logistic) };
    let noise = OutputNoiseScale::HiddenPositionGaussian { std_dev: 1.0 };
    let hidden =
        Derivation { recipe, relation: AdjacencyKind::ReplaceOne, n: 1000, dim: 4, calibrated: OneNoise { noise } };
    assert!(matches!(hidden.event(), Ok(DpEvent::GaussianMixture { .. })));
    for change in [
        |recipe: &mut BoltOn| recipe.declared_order = true,
        |recipe: &mut BoltOn| recipe.order = OrderPolicy::Fresh,
        |recipe: &mut BoltOn| recipe.hide_position = false,
    ] {
        let mut shown = hidden.clone();
        change(&mut shown.recipe);
        assert!(matches!(shown.event(), Err(Error::NotProved { .. })), "{:?}", shown.recipe);
    }
    // The passes before a certified minimiser have uneven positions, but the minimiser does not depend on them.
    let schedule = Some(Schedule::Constant { step: 0.5 });
    let uneven = BoltOn { schedule, ..BoltOn::strongly_convex(LossKind::Logistic, 0.5) };
    assert!(Derivation { recipe: uneven.clone(), ..hidden.clone() }.event().is_ok());
    let minimised = BoltOn { stopping: Stopping::CertifiedMinimiser { tolerance: None }, ..uneven };
    assert!(Derivation { recipe: minimised, ..hidden }.event().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn plans_reach_their_budget(
        n in 1u64..5000, dim in 1u64..60, epsilon in 0.01f64..8.0, delta in prop_oneof![Just(0.0), 1e-12f64..0.1],
        lambda in 1e-4f64..1.0, batch_size in 1u64..200, passes in 1u64..5, strongly: bool,
    ) {
        let recipe = if strongly {
            BoltOn::strongly_convex(LossKind::Logistic, lambda)
        } else {
            BoltOn::convex(LossKind::Logistic)
        };
        let recipe = BoltOn { batch_size, passes, ..recipe };
        let plan = recipe.plan::<ReplaceOne>(n, dim, budget(epsilon, delta)).unwrap();
        prop_assert!(plan.reached().epsilon <= epsilon && plan.reached().delta <= delta);
        prop_assert!(plan.reached().epsilon >= epsilon * (1.0 - 1e-6));
        prop_assert_eq!(plan.derivation().event().unwrap(), plan.event());
    }
}

#[test]
fn copies_share_a_budget() {
    let gaussian = BoltOn { output_noise: OutputNoise::Gaussian, ..BoltOn::strongly_convex(LossKind::Logistic, 0.1) };
    let ball = BoltOn { output_noise: OutputNoise::LaplaceBall, ..gaussian.clone() };
    let scale = |recipe: &BoltOn, budget, copies| match recipe
        .plan_copies::<ReplaceOne>(1000, 5, budget, copies)
        .unwrap()
        .derivation()
        .calibrated
        .noise
    {
        OutputNoiseScale::LaplaceBall { scale } => scale,
        OutputNoiseScale::Gaussian { std_dev } | OutputNoiseScale::HiddenPositionGaussian { std_dev } => std_dev,
    };
    let ratio = |recipe, budget| scale(recipe, budget, 9) / scale(recipe, budget, 1);
    // Gaussians compose to one with three times the sensitivity; pure guarantees add up.
    assert!((ratio(&gaussian, budget(1.0, 1e-6)) - 3.0).abs() < 1e-3);
    assert!((ratio(&ball, budget(1.0, 0.0)) - 9.0).abs() < 1e-9);
    let plan = gaussian.plan_copies::<ReplaceOne>(1000, 5, budget(1.0, 1e-6), 9).unwrap();
    let event = DpEvent::SelfComposed { event: Box::new(plan.event()), count: 9 };
    let reached = bound::epsilon(&event, Delta::new(1e-6).unwrap()).unwrap().value;
    assert!(reached <= 1.0 && reached > 0.999 && plan.reached().epsilon == reached);
    assert!(gaussian.plan_copies::<ReplaceOne>(1000, 5, budget(1.0, 1e-6), 0).is_err());
}

/// The numbers that a plan derives before its noise, and its refusals, each at its limit.
#[test]
fn terms_follow_their_formulas_and_limits() {
    let loss = LossKind::Logistic;
    let strongly = BoltOn { row_norm: 0.5, ..BoltOn::strongly_convex(loss, 0.5) };
    let terms = |recipe: &BoltOn| recipe.terms(&recipe.problem(100, 3, AdjacencyKind::ReplaceOne).unwrap());
    // Iterates stay within L/λ = 1, plus a margin for rounding, and the constants are those of that ball.
    let domain = dp_losses::Domain::unit_rows().with_row_norm(0.5).unwrap().with_target_bound(1.0).unwrap();
    let regulariser = L2::new(0.5).unwrap();
    let within = |radius: f64| loss.constants(regulariser, &domain.with_radius(radius).unwrap());
    let found = terms(&strongly).unwrap();
    assert_eq!(found.constants, within(1.0 + 1e-12));
    assert!(found.constants != within(1.0 - 1e-12) && found.constants.data_lipschitz < found.lipschitz_everywhere);
    // A given radius is kept if it is smaller than L/λ within it.
    assert_eq!(terms(&BoltOn { radius: Some(0.3), ..strongly.clone() }).unwrap().constants, within(0.3));
    let reach = within(3.0).data_lipschitz / 0.5 * (1.0 + 1e-12);
    assert_eq!(terms(&BoltOn { radius: Some(3.0), ..strongly.clone() }).unwrap().constants, within(reach));
    // Steps beyond 1/λ do not contract, and convex runs have no bound.
    let everywhere = loss.constants(regulariser, &domain);
    let schedule = |step| Some(Schedule::Constant { step });
    for (step, stays) in [(2.0, true), (2.001, false)] {
        let found = terms(&BoltOn { schedule: schedule(step), ..strongly.clone() }).unwrap();
        assert_eq!(found.constants, if stays { within(1.0 + 1e-12) } else { everywhere });
    }
    let rounding = found.growth.rounding.unwrap();
    assert!(rounding.unit_roundoff == f64::EPSILON / 2.0 && rounding.dim == 3 && rounding.outputs == 1);
    assert_eq!(rounding.data_lipschitz, found.constants.data_lipschitz);
    // The usual step is 1/√n, at most 2/β.
    for (n, row_norm, step) in [(100u64, 1.0, 0.1), (1, 1.0, 1.0), (400, 0.5, 0.05)] {
        let recipe = BoltOn { row_norm, ..BoltOn::convex(loss) };
        let found = recipe.terms(&recipe.problem(n, 3, AdjacencyKind::ReplaceOne).unwrap()).unwrap();
        assert_eq!(found.growth.schedule, Schedule::Constant { step });
    }
    let steep = BoltOn::convex("huber-svm:0.005".parse().unwrap());
    let found = terms(&steep).unwrap();
    assert_eq!(found.growth.schedule, Schedule::Constant { step: 2.0 / found.constants.smoothness });
    assert!((found.constants.smoothness - 100.0).abs() < 1e-9);

    let accepts = |recipe: BoltOn, accept: bool| assert_eq!(terms(&recipe).is_ok(), accept, "{recipe:?}");
    let convex = BoltOn::convex(loss);
    accepts(BoltOn { passes: (1 << 24) - 1, ..convex.clone() }, true);
    accepts(BoltOn { passes: 1 << 24, ..convex.clone() }, false);
    accepts(BoltOn { lambda: 0.0, ..strongly.clone() }, false);
    let certified = Stopping::CertifiedMinimiser { tolerance: None };
    accepts(BoltOn { stopping: certified, ..convex.clone() }, false);
    accepts(BoltOn { stopping: certified, ..strongly }, true);
    // Single precision: radii whose squares vanish, steps beyond 2/β (β = 1/4), and distances beyond 1e15.
    let single = BoltOn { float: FloatKind::F32, ..convex.clone() };
    accepts(BoltOn { radius: Some(1e-12), ..single.clone() }, true);
    accepts(BoltOn { radius: Some(0.99e-12), ..single.clone() }, false);
    accepts(BoltOn { radius: Some(0.99e-12), ..convex.clone() }, true);
    accepts(BoltOn { schedule: schedule(8.0), ..single.clone() }, true);
    accepts(BoltOn { schedule: schedule(8.0 * (1.0 + 0.9e-12)), ..single.clone() }, true);
    accepts(BoltOn { schedule: schedule(8.0 * (1.0 + 1.2e-12)), ..single.clone() }, false);
    accepts(BoltOn { schedule: schedule(8.1), ..convex.clone() }, true);
    // Twenty updates with slopes of at most 1 + λR each, in all at most 1e140, or 1e15 in single precision.
    for (lambda, radius, steepest) in [(0.0, None, 1.0), (0.25, Some(8.0), 3.0)] {
        for (share, accept) in [(0.999, true), (1.001, false)] {
            let step = share * 1e140 / (20.0 * steepest);
            accepts(BoltOn { lambda, radius, schedule: schedule(step), ..convex.clone() }, accept);
        }
    }
    // Also for regression targets, where the slope of a loss with h = 1e15 is far below 1.
    let flat: LossKind = "huber-regression:1e14".parse().unwrap();
    for (share, accept) in [(0.999, true), (1.001, false)] {
        let recipe = BoltOn { schedule: schedule(share * 1e15 / 20.0), float: FloatKind::F32, ..BoltOn::convex(flat) };
        accepts(recipe, accept);
    }
}

/// Recipes serialised before the noise mode was stored keep their form.
#[cfg(feature = "serde")]
#[test]
fn an_earlier_noise_mode_is_not_written() {
    let rounded = BoltOn { noise_mode: NoiseMode::Rounded, ..BoltOn::convex(LossKind::Logistic) };
    let text = serde_json::to_string(&rounded).unwrap();
    assert!(!text.contains("noise_mode"), "{text}");
    assert_eq!(serde_json::from_str::<BoltOn>(&text).unwrap(), rounded);
}
