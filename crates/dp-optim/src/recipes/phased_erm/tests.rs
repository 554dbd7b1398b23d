use dp_accountant::certificate::Derivation as Derives;
use dp_accountant::guarantee::Unit;
use dp_accountant::{Delta, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_losses::{HuberRegression, HuberSvm};
use dp_mechanisms::{OsSeeded, SeededRng};

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::phases::tests::{OTHERS, RECORDS, budget, data};
use crate::recipes::{Planned, Recipe, RecordAdjacency};

fn losses() -> [LossKind; 5] {
    [
        LossKind::Hinge,
        LossKind::Absolute,
        LossKind::Logistic,
        LossKind::HuberSvm(HuberSvm::USUAL),
        LossKind::HuberRegression(HuberRegression::USUAL),
    ]
}

#[test]
fn every_recipe_trains_and_its_certificate_verifies() {
    let mut source = MemorySource::new(data(200, 4, 1), 1.0, 1.0);
    fn verify<A: RecordAdjacency>(recipe: &PhasedErm, source: &mut MemorySource<f64>) {
        let plan = recipe.plan::<A>(200, 4, budget()).unwrap();
        let trained = plan.train(source, &mut OsSeeded::new().unwrap(), &mut Control::default()).unwrap();
        let norm = trained.weights.get().iter().map(|w| w * w).sum::<f64>().sqrt();
        assert!(norm <= recipe.radius * (1.0 + 1e-12));
        let certificate = trained.certificate(Unit::Record, Vec::new(), String::from("0"), Default::default());
        let verified = certificate.verify().unwrap_or_else(|error| panic!("{error}: {recipe:?}"));
        assert!(verified.epsilon <= 1.0 && verified.epsilon > 1.0 - 1e-6, "{recipe:?}");
    }
    for loss in losses() {
        let plain = PhasedErm::new(loss, 3.0);
        let recipes = [
            PhasedErm { lambda: 0.1, restarts: true, noise_mode: NoiseMode::Rounded, ..plain.clone() },
            PhasedErm { step: Some(0.5), declared_order: true, lambda: 0.01, slack: 1.0, ..plain.clone() },
            plain,
        ];
        for recipe in &recipes {
            verify::<ReplaceOne>(recipe, &mut source);
            verify::<ZeroOut>(recipe, &mut source);
        }
    }
}

#[test]
fn an_edited_derivation_gives_another_event() {
    // Without a given step, halving the rows would double the step and give the same event.
    let recipe = PhasedErm { step: Some(0.1), ..PhasedErm::new(LossKind::Hinge, 3.0) };
    let plan = recipe.plan::<ReplaceOne>(300, 4, budget()).unwrap();
    let event = plan.derivation().event().unwrap();
    assert_eq!(event, plan.event());
    let edits: [fn(&mut Derivation<PhasedErm>); 6] = [
        |d| d.calibrated.noise_multiplier *= 0.9,
        |d| d.n += 300,
        |d| d.recipe.step = Some(0.11),
        |d| d.recipe.row_norm = 0.5,
        |d| d.recipe.slack = 0.001,
        |d| d.recipe.lambda = 0.5,
    ];
    for (i, edit) in edits.iter().enumerate() {
        let mut derivation = plan.derivation().clone();
        edit(&mut derivation);
        assert_ne!(derivation.event().unwrap(), event, "{i}");
    }
}

#[test]
fn what_is_not_proved_is_refused() {
    let plain = || PhasedErm::new(LossKind::Hinge, 3.0);
    let wide = LossKind::HuberSvm(HuberSvm::new(100.0).unwrap());
    for recipe in [
        PhasedErm::new(LossKind::Squared, 3.0),
        PhasedErm::new(wide, 3.0),
        PhasedErm { slack: 0.0, ..plain() },
        PhasedErm { slack: f64::NAN, ..plain() },
        PhasedErm { noise_mode: NoiseMode::None, ..plain() },
        PhasedErm { restarts: true, ..plain() },
        PhasedErm { radius: f64::INFINITY, ..plain() },
        PhasedErm { step: Some(f64::NAN), ..plain() },
    ] {
        assert!(recipe.plan::<ReplaceOne>(300, 4, budget()).is_err(), "{recipe:?}");
    }
    assert!(plain().plan::<ReplaceOne>(1, 4, budget()).is_err());
    assert!(plain().plan::<ReplaceOne>(2, 4, budget()).is_ok());
    let pure = Budget { delta: Delta::ZERO, ..budget() };
    assert!(matches!(plain().plan::<ReplaceOne>(300, 4, pure), Err(Error::NotProved { .. })));
}

#[test]
fn a_finer_tolerance_means_less_noise() {
    let noise = |slack| {
        let recipe = PhasedErm { slack, step: Some(0.1), ..PhasedErm::new(LossKind::Hinge, 1.0) };
        recipe.plan::<ReplaceOne>(1000, 3, budget()).unwrap().run().std_devs()[0]
    };
    assert!((noise(2.0) / noise(0.01) - 3.0 / 1.01).abs() < 1e-6);
}

#[test]
fn the_released_point_comes_near_what_separates() {
    let mut source = MemorySource::new(data(4_000, 4, 5), 1.0, 1.0);
    let plan = PhasedErm::new(LossKind::Hinge, 10.0).plan::<ReplaceOne>(4_000, 4, budget()).unwrap();
    let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut Control::default()).unwrap();
    let weights = trained.weights.get();
    let norm = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
    assert!(weights[0] > 0.8 * norm && norm > 1.0, "{weights:?}");
}

/// One phase on all pairs of a few extreme records, from starts inside and on the sphere: the distance never exceeds the
/// sensitivity, and attains it, up to the tolerance, if the two gradients stay opposite.
#[test]
fn no_pair_moves_a_phase_farther_than_its_sensitivity() {
    let (dim, n) = (2, 10); // a first phase of 5
    for loss in losses() {
        // For losses with a kink at 0 the subgradients of opposite records stay ±x, for as far as a record can move.
        let attained = match loss {
            LossKind::Hinge | LossKind::HuberSvm(_) => 0.98,
            LossKind::Absolute | LossKind::HuberRegression(_) => 0.9,
            _ => 0.5,
        };
        for (lambda, attained) in [(0.0, attained), (0.5, 0.4)] {
            let recipe = PhasedErm { lambda, step: Some(0.8), ..PhasedErm::new(loss, 1.5) };
            let plan = recipe.plan::<ReplaceOne>(n as u64, dim as u64, budget()).unwrap();
            let run = |record: ([f64; 2], f64), other: ([f64; 2], f64), start: &[f64]| {
                let row = |i| if i == 3 { record } else { other };
                let values = (0..n).flat_map(|i| row(i).0).collect();
                let targets = (0..n).map(|i| row(i).1).collect();
                let mut source = MemorySource::new(Examples::dense(values, targets, dim).unwrap(), 1.0, 1.0);
                plan.run().first_phase_without_noise(&mut source, start.to_vec()).unwrap()
            };
            let mut farthest = 0.0f64;
            for start in [[0.0, 0.0], [0.5, -0.5], [1.5, 0.0], [0.0, 1.5]] {
                for other in OTHERS {
                    let outputs = RECORDS.map(|record| run(record, other, &start));
                    for (a, b) in outputs.iter().flat_map(|a| outputs.iter().map(move |b| (a, b))) {
                        let apart = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
                        farthest = farthest.max(apart / plan.run().sensitivities()[0]);
                    }
                }
            }
            assert!(farthest <= 1.0 && farthest >= attained, "{loss} {lambda}: {farthest}");
        }
    }
}

/// The displayed noise is that of the event: for each phase, and for the last one's weights.
#[test]
fn noise_is_shown_as_it_is_drawn() {
    let plan = PhasedErm::new(LossKind::Logistic, 2.0).plan::<ReplaceOne>(300, 4, budget()).unwrap();
    let dp_accountant::DpEvent::Parallel { events } = plan.event() else { panic!("{:?}", plan.event()) };
    let drawn: Vec<f64> = events
        .iter()
        .map(|event| match event {
            dp_accountant::DpEvent::Gaussian { std_dev, .. } => *std_dev,
            event => panic!("{event:?}"),
        })
        .collect();
    assert_eq!(plan.run().std_devs(), drawn);
    assert!((plan.run().noise_norm() / (2.0 * drawn[drawn.len() - 1]) - 1.0).abs() < 1e-14);
}
