use dp_accountant::{AdjacencyKind, Delta, DpEvent, MarginLoss, ReplaceOne, ZeroOut, bound};
use dp_data::Examples;
use dp_losses::HuberSvm;
use dp_mechanisms::SeededRng;

use super::*;
use crate::MemorySource;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::recipes::{NoiseScale, ObjPert, Planned, Recipe};

fn budget(epsilon: f64) -> Budget {
    Budget::new(epsilon, 1e-6).unwrap()
}

const DIM: usize = 4;

/// Records whose label follows the first feature in three of four cases, and no other feature.
fn source(n: usize) -> MemorySource<f64> {
    let row = |i: usize| {
        let sign = if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        [0.7 * sign, 0.3 * ((i * 7 % 5) as f64 / 2.0 - 1.0), 0.3 * ((i * 3 % 7) as f64 / 3.0 - 1.0), 0.4]
    };
    let rows = (0..n).flat_map(row).collect();
    let labels = (0..n).map(|i| if i.is_multiple_of(2) == (i % 8 < 6) { 1.0 } else { -1.0 }).collect();
    MemorySource::new(Examples::dense(rows, labels, DIM).unwrap(), 1.0, 1.0)
}

fn recipe() -> AdmmObjPert {
    AdmmObjPert::new(LossKind::Logistic, Penalty::L1 { lambda: 0.02 })
}

/// With little noise both copies converge to the minimiser of the penalised risk, found also by proximal gradient descent.
#[test]
fn it_minimises_the_penalised_risk() {
    let n = 8_000;
    let mut w = [0.0f64; DIM];
    let held = source(n);
    let dp_data::Rows::Dense { values, .. } = held.examples().block().rows else { panic!("dense") };
    for _ in 0..200 {
        let mut gradient = w.map(|w| 0.01 * w);
        for (row, target) in values.chunks_exact(DIM).zip(held.examples().targets()) {
            let margin = target * row.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>();
            let slope = -target / (1.0 + margin.exp());
            gradient.iter_mut().zip(row).for_each(|(g, x)| *g += slope * x / n as f64);
        }
        for (w, g) in w.iter_mut().zip(gradient) {
            let moved = *w - 3.0 * g;
            *w = moved.signum() * (moved.abs() - 3.0 * 0.02).max(0.0);
        }
    }
    assert!(w[0] > 0.5 && w.contains(&0.0), "{w:?}");
    for output in [AdmmOutput::Sparse, AdmmOutput::Smooth] {
        let recipe = AdmmObjPert { lambda: 0.01, iterations: 20, rho: Some(0.05), output, ..recipe() };
        let plan = recipe.plan::<ZeroOut>(n as u64, DIM as u64, budget(60.0)).unwrap();
        let trained = plan.train(&mut source(n), &mut SeededRng::new(1), &mut Control::default()).unwrap();
        for (found, expected) in trained.weights.get().iter().zip(&w) {
            assert!((found - expected).abs() < 0.05, "{output:?}: {:?} {w:?}", trained.weights.get());
        }
        let zeros = |w: &[f64]| w.iter().filter(|w| **w == 0.0).count();
        assert_eq!(zeros(trained.weights.get()) > 0, output == AdmmOutput::Sparse);
    }
}

/// Every iteration is in the event, with the noise that hides the solver's error, under either relation.
#[test]
fn every_iteration_is_paid_for() {
    let n = 5000;
    let recipe = || AdmmObjPert { law: OutputNoise::Gaussian, ..recipe() };
    let plan = recipe().plan::<ZeroOut>(n, DIM as u64, budget(1.0)).unwrap();
    let DpEvent::SelfComposed { event, count: 3 } = plan.event() else { panic!("{:?}", plan.event()) };
    let DpEvent::Composed { events } = *event else { panic!("{event:?}") };
    let [minimiser, release] = &events[..] else { panic!("{events:?}") };
    let DpEvent::ObjectivePerturbation { std_dev, regularization, loss: MarginLoss::Logistic } = *minimiser else {
        panic!("{minimiser:?}")
    };
    assert!(std_dev <= plan.run().noise().scale() && std_dev > 0.999 * plan.run().noise().scale());
    assert!(regularization <= plan.run().regularization() && regularization > 0.999 * plan.run().regularization());
    let DpEvent::Gaussian { std_dev: hiding, sensitivity } = *release else { panic!("{release:?}") };
    // It is negligible beside the effect of b.
    let of_minimiser = plan.run().noise().scale() / plan.run().regularization();
    assert!(
        hiding == plan.run().release_noise().scale() && sensitivity > 0.0 && hiding < 1e-2 * of_minimiser,
        "{hiding}"
    );
    // Composed releases are expensive below 3/ε'.
    assert!(plan.run().regularization() >= 3.0 * 3f64.sqrt() * (1.0 - 1e-12), "{}", plan.run().regularization());
    let epsilon = |event: &DpEvent| bound::epsilon(event, Delta::new(1e-6).unwrap()).unwrap().value;
    assert!(epsilon(&plan.event()) > 0.99 && epsilon(&plan.event()) <= 1.0 && epsilon(minimiser) < 0.7);
    let less = |change: fn(&mut Derivation<AdmmObjPert>)| {
        let mut edited = plan.derivation().clone();
        change(&mut edited);
        epsilon(&dp_accountant::certificate::Derivation::event(&edited).unwrap())
    };
    assert!(less(|d| d.calibrated.noise = d.calibrated.noise.with_scale(0.9 * d.calibrated.noise.scale())) > 1.0);
    assert!(less(|d| d.calibrated.rho *= 0.1) > 1.0);
    assert!(less(|d| d.recipe.iterations = 4) > 1.0);
    assert!(
        less(|d| d.calibrated.release = d.calibrated.release.with_scale(0.01 * d.calibrated.release.scale())) > 1.0
    );
    let replaced = recipe().plan::<ReplaceOne>(n, DIM as u64, budget(1.0)).unwrap();
    assert!(matches!(replaced.event(), DpEvent::AddRemoveTwice { .. }) && replaced.reached().epsilon <= 1.0);
    assert!(replaced.run().noise().scale() > 1.9 * plan.run().noise().scale());
    // Copies share the budget.
    let copies = recipe().plan_copies::<ZeroOut>(n, DIM as u64, budget(1.0), 4).unwrap();
    assert!(copies.run().noise().scale() > 1.8 * plan.run().noise().scale() && copies.reached().epsilon <= 1.0);
    let mut held = source(n as usize);
    let trained = plan.train::<f64>(&mut held, &mut SeededRng::new(2), &mut Control::default()).unwrap();
    assert_eq!(trained.log.to_event(), plan.event());
    assert!(!trained.log.is_private());
}

/// Without delta the noise is that of the Laplace ball, and epsilons add up.
#[test]
fn pure_iterations_add_up() {
    let pure = Budget { delta: Delta::ZERO, ..budget(1.0) };
    let plan = recipe().plan::<ZeroOut>(5000, DIM as u64, pure).unwrap();
    assert!(plan.run().noise().is_pure() && plan.reached().delta == 0.0);
    assert!(plan.reached().epsilon > 0.99 && plan.reached().epsilon <= 1.0);
    let one = ObjPert::new(LossKind::Logistic).plan::<ZeroOut>(5000, DIM as u64, pure).unwrap();
    assert!((plan.run().noise().scale() / one.run().noise().scale() - 3.0).abs() < 0.5, "{:?}", plan.run().noise());
    let calibrated = AdmmPerturbation { release: NoiseScale::new(false, 1.0), ..plan.derivation().calibrated };
    let mixed = Derivation { calibrated, ..plan.derivation().clone() };
    assert!(dp_accountant::certificate::Derivation::event(&mixed).is_err());
}

/// One iteration without a penalty is objective perturbation around 0: the same noise and the same model, up to the proximal
/// map.
#[test]
fn one_iteration_is_objective_perturbation() {
    let n = 3000;
    let (law, rho) = (OutputNoise::Gaussian, 0.01);
    let admm = AdmmObjPert {
        iterations: 1,
        rho: Some(rho),
        law,
        penalty: Penalty::L1 { lambda: 0.0 },
        output: AdmmOutput::Smooth,
        ..recipe()
    };
    let admm = admm.plan::<ZeroOut>(n, DIM as u64, budget(1.0)).unwrap();
    let one = ObjPert { lambda: Some(rho), law, ..ObjPert::new(LossKind::Logistic) };
    let one = one.plan::<ZeroOut>(n, DIM as u64, budget(1.0)).unwrap();
    assert!((admm.run().noise().scale() / one.run().noise().scale() - 1.0).abs() < 1e-6);
    assert_eq!(admm.run().regularization(), one.run().regularization());
    let [a, b] = [
        admm.train::<f64>(&mut source(n as usize), &mut SeededRng::new(5), &mut Control::default()).unwrap().weights,
        one.train::<f64>(&mut source(n as usize), &mut SeededRng::new(5), &mut Control::default()).unwrap().weights,
    ];
    for (a, b) in a.get().iter().zip(b.get()) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn refuses_what_is_not_proved() {
    let refused = |recipe: AdmmObjPert| recipe.plan::<ZeroOut>(1000, 4, budget(1.0)).unwrap_err().to_string();
    for (recipe, named) in [
        (AdmmObjPert { iterations: 0, ..recipe() }, "steps"),
        (AdmmObjPert { iterations: u64::MAX, ..recipe() }, "steps"),
        (AdmmObjPert { rho: Some(0.0), ..recipe() }, "rho"),
        (AdmmObjPert { rho: Some(1e300), ..recipe() }, "rho"),
        (AdmmObjPert { lambda: -1.0, ..recipe() }, "lambda"),
        (AdmmObjPert { row_norm: f64::NAN, ..recipe() }, "row norm"),
        (AdmmObjPert { loss: LossKind::Squared, ..recipe() }, "bounded"),
        (AdmmObjPert { loss: LossKind::Hinge, ..recipe() }, "smooth"),
        (AdmmObjPert { noise_mode: NoiseMode::None, ..recipe() }, "noise"),
        (AdmmObjPert { penalty: Penalty::Mcp { lambda: 0.1, gamma: 0.01 }, ..recipe() }, "gamma"),
    ] {
        let error = refused(recipe);
        assert!(error.contains(named), "{named}: {error}");
    }
    let huber = AdmmObjPert { loss: LossKind::HuberSvm(HuberSvm::USUAL), ..recipe() };
    assert!(huber.plan::<ZeroOut>(1000, 4, budget(1.0)).unwrap().reached().epsilon <= 1.0);
    let relation = Derivation {
        relation: AdjacencyKind::AddRemoveOne,
        ..recipe().plan::<ZeroOut>(1000, 4, budget(1.0)).unwrap().derivation().clone()
    };
    assert!(dp_accountant::certificate::Derivation::event(&relation).is_err());
}

/// The objective of each iteration has the bounds and the noise of the recipe, and the plan its ρ.
#[test]
fn every_parameter_reaches_the_iterations() {
    let loss: LossKind = "huber-regression:0.5".parse().unwrap();
    let (law, noise_mode) = (OutputNoise::LaplaceBall, NoiseMode::Rounded);
    let all = AdmmObjPert { loss, law, noise_mode, row_norm: 0.5, target_bound: 3.0, ..recipe() };
    let usual = ObjPert::new(loss);
    assert!(usual.law != law && usual.noise_mode != noise_mode && usual.target_bound != 3.0);
    assert_eq!(all.each(), ObjPert { law, noise_mode, row_norm: 0.5, target_bound: 3.0, ..usual });
    let plan = AdmmObjPert { rho: Some(0.25), ..recipe() }.plan::<ZeroOut>(500, 2, budget(1.0)).unwrap();
    assert_eq!(plan.run().rho(), 0.25);
}
