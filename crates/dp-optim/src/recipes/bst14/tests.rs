use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_mechanisms::SeededRng;
use dp_mechanisms::steps::StepPlan;

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{Planned, Recipe as _};

fn budget() -> Budget {
    Budget::new(1.0, 1e-6).unwrap()
}

fn source(n: usize) -> MemorySource<f64> {
    let rows = (0..n).flat_map(|i| [if i % 2 == 0 { 0.8 } else { -0.8 }, 0.6]).collect();
    let labels = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    MemorySource::new(Examples::dense(rows, labels, 2).unwrap(), 1.0, 1.0)
}

#[test]
fn steps_sizes_and_counts_are_the_papers() {
    let (n, dim, std_dev) = (1000, 5, 3.0);
    let recipe =
        Bst14 { sampling: Sampling::FixedSize, passes: 3, batch_size: 70, ..Bst14::convex(LossKind::Logistic, 2.0) };
    let problem = recipe.problem(n, dim, AdjacencyKind::ReplaceOne).unwrap();
    let run = recipe.run(&problem).unwrap();
    // ⌊3000/70⌋.
    assert!(matches!(run.sums.plan, StepPlan::SampledWithoutReplacement { steps: 42, .. }));
    let Schedule::InverseSqrt { step } = recipe.schedule(&problem, &run, std_dev).unwrap() else {
        panic!("not 1/√t")
    };
    let lipschitz = recipe.lipschitz(&problem).unwrap();
    // 1/(1 + e^-2): the gradient of the logistic loss in the ball of radius 2.
    assert!((lipschitz - 1.0 / (1.0 + (-2f64).exp())).abs() < 1e-12);
    let bound = (5.0 * 9.0 + 4900.0 * lipschitz * lipschitz).sqrt();
    assert!((step / (70.0 * 2.0 * 2.0 / bound) - 1.0).abs() < 1e-12);
    let strongly = Bst14 { sampling: Sampling::FixedSize, ..Bst14::strongly_convex(LossKind::Logistic, 0.01) };
    let run = strongly.run(&strongly.problem(n, dim, AdjacencyKind::ReplaceOne).unwrap()).unwrap();
    let steps = strongly.schedule(&problem, &run, std_dev).unwrap().prepare(10).unwrap();
    assert_eq!((steps.at(1), steps.at(4), strongly.radius), (100.0, 25.0, 100.0));
}

/// The bound on the noisy sum's norm includes the regulariser's gradient and the variation of the batch size.
#[test]
fn steps_allow_for_the_regulariser_and_for_batches_that_vary() {
    let (n, std_dev, lambda, radius) = (1000, 0.5, 0.3, 2.0);
    let recipe = Bst14 { lambda, batch_size: 7, ..Bst14::convex(LossKind::Logistic, radius) };
    // The longest gradient on rows of norm 1, within the ball.
    let mut longest = 0.0f64;
    for i in -2000..=2000 {
        let w = radius * f64::from(i) / 2000.0;
        let slope = -1.0 / (1.0 + w.exp());
        longest = longest.max((slope + lambda * w).abs());
    }
    let problem = recipe.problem(n, 5, AdjacencyKind::ReplaceOne).unwrap();
    assert!((recipe.lipschitz(&problem).unwrap() / longest - 1.0).abs() < 1e-12);
    let run = recipe.run(&problem).unwrap();
    let Schedule::InverseSqrt { step } = recipe.schedule(&problem, &run, std_dev).unwrap() else {
        panic!("not 1/√t")
    };
    let Batching::Drawn(BatchLaw::Poisson { .. }) = run.batching else { panic!("no Poisson batches") };
    // The number of records is binomial.
    let rate = run.divisor / n as f64;
    let squared_size = run.divisor * (1.0 - rate) + run.divisor * run.divisor;
    let expected = (5.0 * std_dev * std_dev + squared_size * longest * longest).sqrt();
    let bound = 2.0 * radius * run.divisor / step;
    assert!(bound >= expected && bound <= expected * 1.001, "{bound} {expected}");
}

#[test]
fn trains_and_says_what_it_did() {
    let n = 500;
    for recipe in [
        Bst14 { batch_size: 25, ..Bst14::convex(LossKind::Logistic, 3.0) },
        Bst14 { batch_size: 25, ..Bst14::strongly_convex(LossKind::Logistic, 0.1) },
        Bst14 { batch_size: 25, ..Bst14::convex(LossKind::Hinge, 3.0) },
    ] {
        let plan = recipe.plan::<ReplaceOne>(n, 2, budget()).unwrap();
        assert!(plan.reached().epsilon <= 1.0);
        let mut rng = SeededRng::new(3);
        let trained = plan.train::<f64>(&mut source(n as usize), &mut rng, &mut Control::default()).unwrap();
        let weights = trained.weights.get();
        assert!(weights.iter().map(|w| w * w).sum::<f64>().sqrt() <= recipe.radius * (1.0 + 1e-12));
        assert!(weights[0].is_finite() && !trained.log.is_private());
        assert_eq!(trained.log.to_event(), plan.event());
        assert_eq!(plan.derivation().event().unwrap(), plan.event());
        assert!(matches!(plan.event(), DpEvent::AddRemoveTwice { .. }));
    }
}

#[test]
fn a_certificate_with_other_noise_names_another_event() {
    let plan = Bst14::convex(LossKind::Logistic, 3.0).plan::<ZeroOut>(500, 2, budget()).unwrap();
    let genuine = plan.derivation().clone();
    assert_eq!(genuine.event().unwrap(), genuine.recipe.plan::<ZeroOut>(500, 2, budget()).unwrap().event());
    for edited in [
        Derivation { calibrated: StdDev { std_dev: genuine.calibrated.std_dev * 1.1 }, ..genuine.clone() },
        Derivation { n: 501, ..genuine.clone() },
        Derivation { relation: AdjacencyKind::ReplaceOne, ..genuine.clone() },
        Derivation { recipe: Bst14 { batch_size: 49, ..genuine.recipe.clone() }, ..genuine.clone() },
        Derivation { recipe: Bst14 { passes: 9, ..genuine.recipe.clone() }, ..genuine.clone() },
        Derivation { recipe: Bst14 { radius: 2.9, ..genuine.recipe.clone() }, ..genuine.clone() },
    ] {
        assert_ne!(edited.event().unwrap(), plan.event(), "{edited:?}");
    }
    for nonsense in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        assert!(Derivation { calibrated: StdDev { std_dev: nonsense }, ..genuine.clone() }.event().is_err());
    }
}

#[test]
fn what_is_not_proved_is_refused() {
    let recipe = Bst14::convex(LossKind::Logistic, 3.0);
    let pure = Budget { delta: Delta::ZERO, ..budget() };
    let plan = |recipe: &Bst14| recipe.plan::<ReplaceOne>(500, 2, budget());
    assert!(matches!(recipe.plan::<ReplaceOne>(500, 2, pure), Err(Error::NotProved { .. })));
    assert!(plan(&Bst14 { sampling: Sampling::Passes, ..recipe.clone() }).is_err());
    assert!(plan(&Bst14 { passes: 0, ..recipe.clone() }).is_err());
    assert!(plan(&Bst14 { radius: f64::NAN, ..recipe.clone() }).is_err());
    assert!(plan(&Bst14::strongly_convex(LossKind::Logistic, 0.0)).is_err());
    // The published noise for its own claim is not certified at the budget: one pass over few records.
    let calibration = Bst14Calibration::AsPublished { iota: 1e-3 };
    let little = Bst14 { calibration, sampling: Sampling::FixedSize, ..recipe.clone() };
    assert!(matches!(plan(&little), Err(Error::OutOfRange { name: "epsilon", .. })));
    let calibration = Bst14Calibration::AsPublished { iota: 1.0 };
    let copies = Bst14 { calibration, sampling: Sampling::FixedSize, ..recipe };
    assert!(copies.plan_copies::<ReplaceOne>(500, 2, budget(), 2).is_err());
}

/// The displayed numbers of a plan, and the numbers of passes at their limits.
#[test]
fn figures_and_limits() {
    let recipe = Bst14 {
        sampling: Sampling::FixedSize,
        passes: 3,
        batch_size: 70,
        lambda: 0.5,
        ..Bst14::convex(LossKind::Logistic, 2.0)
    };
    let plan = recipe.plan::<ReplaceOne>(1000, 5, budget()).unwrap();
    assert_eq!((plan.run().steps(), plan.run().divisor()), (42, 70.0));
    // Slopes at most 1/(1 + e^-2) in the ball.
    let slope = 1.0 / (1.0 + (-2f64).exp());
    let domain = plan.problem().domain(Some(2.0)).unwrap();
    let apart = recipe.loss.constants(L2::NONE, &domain).gradient_difference;
    assert!(
        (plan.run().sensitivity() / apart - 1.0).abs() < 1e-9 && apart > slope,
        "{} {apart}",
        plan.run().sensitivity()
    );
    assert!((recipe.lipschitz(plan.problem()).unwrap() - (slope + 0.5 * 2.0)).abs() < 1e-12);
    let runs = |passes| {
        let recipe = Bst14 { passes, ..recipe.clone() };
        recipe.problem(10, 5, AdjacencyKind::ReplaceOne).and_then(|problem| recipe.run(&problem)).is_ok()
    };
    assert!(!runs(0) && runs(1) && runs((1 << 24) - 1) && !runs(1 << 24));
    let strongly = |lambda| Bst14 { lambda, ..Bst14::strongly_convex(LossKind::Logistic, 0.1) };
    assert!(strongly(0.0).run(&strongly(0.0).problem(10, 5, AdjacencyKind::ReplaceOne).unwrap()).is_err());
}
