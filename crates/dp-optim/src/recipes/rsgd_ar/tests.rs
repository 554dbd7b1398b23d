use dp_accountant::certificate::{Assumption, Derivation as _};
use dp_accountant::{DpEvent, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_losses::HuberSvm;
use dp_mechanisms::SeededRng;
use proptest::prelude::*;

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::bolt_on::OutputNoiseScale;
use crate::recipes::{Planned, Recipe, budget};

fn source(n: usize) -> MemorySource<f64> {
    let rows = (0..n).flat_map(|i| [if i % 2 == 0 { 0.8 } else { -0.8 }, 0.6]).collect();
    let labels = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    MemorySource::new(Examples::dense(rows, labels, 2).unwrap(), 1.0, 1.0)
}

fn all() -> [RsgdAr; 3] {
    let loss = LossKind::Logistic;
    [RsgdAr::new(loss, 1e-3), RsgdAr::nsgd(loss, 1e-3), RsgdAr { passes: 20, ..RsgdAr::full_gradient(loss, 1e-3) }]
}

#[test]
fn each_trains_within_its_budget_and_derives_its_event() {
    for recipe in all() {
        let plan = recipe.plan::<ZeroOut>(1000, 2, budget(1.0, 1e-6)).unwrap();
        assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.99, "{recipe:?}");
        let trained = plan.train(&mut source(1000), &mut SeededRng::new(3), &mut Control::default()).unwrap();
        let derivation = &trained.derivation;
        assert_eq!(derivation.event().unwrap(), trained.log.to_event(), "{recipe:?}");
        assert_eq!(derivation.event().unwrap(), plan.event());
        assert!(trained.weights.get()[0] > 0.5, "{recipe:?}: {:?}", trained.weights.get());
        assert!(derivation.assumptions().contains(&Assumption::PublicN));
    }
}

#[test]
fn only_rsgd_ar_hides_the_position() {
    let event = |recipe: RsgdAr| recipe.plan::<ReplaceOne>(1000, 2, budget(1.0, 1e-6)).unwrap().event();
    let [hidden, nsgd, full] = all();
    assert!(matches!(event(hidden.clone()), DpEvent::GaussianMixture { .. }));
    assert!(matches!(event(nsgd), DpEvent::Gaussian { .. }));
    assert!(matches!(event(full), DpEvent::Gaussian { .. }));
    // If the position is not hidden, the same run needs the noise for the worst one.
    let DpEvent::Gaussian { sensitivity, .. } = event(RsgdAr { hide_position: false, ..hidden.clone() }) else {
        panic!()
    };
    let DpEvent::GaussianMixture { sensitivities, .. } = event(hidden) else { panic!() };
    assert_eq!(sensitivities.into_iter().fold(0.0, f64::max), sensitivity);
}

/// One object determines both the training and the bound: another schedule gives another sensitivity and another run.
#[test]
fn the_schedule_that_runs_is_the_one_that_is_bounded() {
    let base = RsgdAr::new(LossKind::HuberSvm(HuberSvm::USUAL), 1e-3);
    let figures = [PassSteps::Restarted, PassSteps::Falling, PassSteps::Constant].map(|steps| {
        let plan = RsgdAr { steps, ..base.clone() }.plan::<ReplaceOne>(1000, 2, budget(1e6, 0.5)).unwrap();
        let mut control = Control::default();
        let trained = plan.train(&mut source(1000), &mut SeededRng::new(3), &mut control).unwrap();
        (plan.run().sensitivity(), trained.weights.get()[0])
    });
    for pair in [[0, 1], [1, 2], [0, 2]] {
        let [one, other] = pair.map(|i: usize| figures[i]);
        assert!((one.0 / other.0 - 1.0).abs() > 0.1 && (one.1 - other.1).abs() > 1e-4, "{figures:?}");
    }
    // η₀/s throughout is below η₀/h, and η₀ above both.
    assert!(figures[1].0 < figures[0].0 && figures[0].0 < figures[2].0, "{figures:?}");
}

#[test]
fn suited_steps_add_up_to_the_total() {
    let relation = AdjacencyKind::ReplaceOne;
    let budget = budget(0.05, 1e-6);
    for recipe in all() {
        let recipe = recipe.with_suited_steps(2000, 20, budget, relation).unwrap();
        let total = Defaults::new(recipe.loss, 2000, 20, budget, relation).unwrap().total_step();
        let growth = recipe.plan::<ReplaceOne>(2000, 20, budget).unwrap().run().growth().clone();
        let updates = growth.updates_per_pass() * growth.passes;
        let steps = growth.schedule.prepare(updates).unwrap();
        let sum: f64 = (1..=updates).map(|t| steps.at(t)).sum();
        assert!((sum / total - 1.0).abs() < 1e-9 || recipe.step * 0.251 >= 1.0, "{recipe:?}: {sum} of {total}");
    }
}

#[test]
fn nonsense_is_refused() {
    let good = RsgdAr::new(LossKind::Logistic, 1e-3);
    let refused =
        |recipe: RsgdAr, delta| recipe.plan::<ReplaceOne>(1000, 2, budget(1.0, delta)).unwrap_err().to_string();
    assert!(refused(good.clone(), 0.0).contains("delta"));
    assert!(refused(RsgdAr { restart_every: Some(0), ..good.clone() }, 1e-6).contains("restarts"));
    assert!(refused(RsgdAr { passes: 0, ..good.clone() }, 1e-6).contains("passes"));
    assert!(refused(RsgdAr { batch_size: 0, ..good.clone() }, 1e-6).contains("batch size"));
    assert!(refused(RsgdAr { loss: LossKind::Hinge, ..good.clone() }, 1e-6).contains("kink"));
    for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(RsgdAr { step, ..good.clone() }, 1e-6).contains("step size"), "{step}");
    }
    // Huge numbers are refused, not run.
    let many = RsgdAr { restart_every: Some(u64::MAX), passes: u64::MAX, ..good.clone() };
    assert!(refused(many, 1e-6).contains("passes"));
    let ball = Derivation {
        recipe: good,
        relation: AdjacencyKind::ReplaceOne,
        n: 10,
        dim: 2,
        calibrated: OneNoise { noise: OutputNoiseScale::LaplaceBall { scale: 1.0 } },
    };
    assert!(ball.event().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Every request is refused or met, and the derivation agrees with the plan.
    #[test]
    fn plans_keep_their_budget(
        n in 1u64..3000, batch_size in 1u64..200, passes in 1u64..12, step in 0.01..8.0f64, tau in prop::option::of(1u64..6),
        lambda in prop_oneof![Just(0.0), 1e-4..0.5f64], steps in 0..3usize, hide_position: bool, actual: bool,
        epsilon in 0.05..4.0f64,
    ) {
        let recipe = RsgdAr {
            passes, batch_size, step, lambda, hide_position,
            restart_every: tau,
            steps: [PassSteps::Restarted, PassSteps::Falling, PassSteps::Constant][steps],
            divisor: if actual { Divisor::Actual } else { Divisor::Nominal },
            ..RsgdAr::new(LossKind::Logistic, lambda)
        };
        let Ok(plan) = recipe.plan::<ReplaceOne>(n, 3, budget(epsilon, 1e-6)) else { return Ok(()) };
        prop_assert!(plan.reached().epsilon <= epsilon);
        prop_assert_eq!(plan.derivation().event().unwrap(), plan.event());
        // Hiding the position never costs.
        let worst = RsgdAr { hide_position: false, ..recipe }.plan::<ReplaceOne>(n, 3, budget(epsilon, 1e-6)).unwrap();
        prop_assert!(plan.run().noise().scale() <= worst.run().noise().scale());
        prop_assert_eq!(plan.run().sensitivity(), worst.run().sensitivity());
    }
}

/// The bounded and trained run has every parameter of the recipe.
#[test]
fn every_parameter_reaches_the_run() {
    let loss = LossKind::HuberSvm(HuberSvm::USUAL);
    let recipe = RsgdAr {
        passes: 7,
        batch_size: 30,
        step: 0.07,
        radius: Some(1.5),
        divisor: Divisor::Actual,
        noise_mode: NoiseMode::Rounded,
        hide_position: false,
        float: FloatKind::F32,
        arithmetic: Arithmetic::Scaled,
        row_norm: 0.5,
        target_bound: 0.75,
        ..RsgdAr::new(loss, 0.03)
    };
    let usual = BoltOn::convex(loss);
    // 100 records in batches of 30 are four updates a pass.
    let every = recipe.restart_every.unwrap();
    let falling = Schedule::PerPass { step: 0.07, updates_per_pass: 4 };
    let expected = BoltOn {
        lambda: 0.03,
        passes: 7,
        batch_size: 30,
        schedule: Some(Schedule::Restarted { every: 4 * every, schedule: falling.into() }),
        radius: Some(1.5),
        averaging: Averaging::Restarts { updates: 4 * every },
        divisor: Divisor::Actual,
        output_noise: OutputNoise::Gaussian,
        noise_mode: NoiseMode::Rounded,
        hide_position: false,
        float: FloatKind::F32,
        arithmetic: Arithmetic::Scaled,
        row_norm: 0.5,
        target_bound: 0.75,
        ..usual.clone()
    };
    assert_eq!(recipe.as_bolt_on(100), expected);
    // Each differs from the bolt-on default, so that an omission would be noticed.
    assert!(usual.divisor != Divisor::Actual && usual.arithmetic != Arithmetic::Scaled && usual.target_bound != 0.75);
    let nsgd = RsgdAr::nsgd(loss, 0.03);
    assert!(nsgd.steps == PassSteps::Falling && nsgd.restart_every.is_none() && !nsgd.hide_position);
    let full = RsgdAr::full_gradient(loss, 0.03);
    assert!(full.batch_size == u64::MAX && full.passes == 100 && full.steps == PassSteps::Constant);
    assert!(full.restart_every.is_none() && !full.hide_position);
    let suited = RsgdAr::new(LossKind::Squared, 0.03);
    let suited = suited.with_suited_steps(1000, 3, budget(1.0, 1e-6), AdjacencyKind::ReplaceOne).unwrap();
    assert_eq!(suited.radius, Some(SQUARED_RADIUS));
    // For any previous step.
    let other = RsgdAr { step: 7.0, ..RsgdAr::new(LossKind::Squared, 0.03) };
    let other = other.with_suited_steps(1000, 3, budget(1.0, 1e-6), AdjacencyKind::ReplaceOne).unwrap();
    assert_eq!(other.step, suited.step);
    for recipe in all() {
        let plan = recipe.plan::<ReplaceOne>(1000, 2, budget(1.0, 1e-6)).unwrap();
        let (DpEvent::Gaussian { std_dev, .. } | DpEvent::GaussianMixture { std_dev, .. }) = plan.event() else {
            panic!("{:?}", plan.event())
        };
        assert_eq!(plan.run().noise().scale(), std_dev);
        assert!((plan.run().noise_norm() / (std_dev * 2f64.sqrt()) - 1.0).abs() < 1e-14);
        let text = plan.summary().text;
        assert_eq!(text.contains("averaged every"), recipe.restart_every.is_some(), "{text}");
    }
    let refused = RsgdAr { restart_every: Some(0), ..RsgdAr::new(loss, 0.03) };
    let error = refused.plan::<ReplaceOne>(1000, 2, budget(1.0, 1e-6)).unwrap_err();
    assert!(matches!(error, Error::Count { name: "passes between restarts", .. }), "{error}");
}
