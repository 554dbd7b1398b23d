use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Certificate, Delta, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_losses::{HuberSvm, Softmax};
use dp_mechanisms::{OsSeeded, SeededRng};

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::phases::tests::{OTHERS, RECORDS, budget, data};
use crate::recipes::{Plan, Planned, Recipe, RecordAdjacency};

fn recipes() -> Vec<PhasedSgd> {
    let plain = PhasedSgd::new(LossKind::Logistic, 3.0);
    vec![
        plain.clone(),
        PhasedSgd { arithmetic: Arithmetic::Buffered, noise_mode: NoiseMode::Rounded, ..plain.clone() },
        PhasedSgd { lambda: 0.1, restarts: true, ..plain.clone() },
        PhasedSgd { step: Some(0.5), declared_order: true, lambda: 0.01, ..plain },
        PhasedSgd::new(LossKind::Squared, 1.0),
        PhasedSgd::new(LossKind::HuberSvm(HuberSvm::USUAL), 2.0),
        PhasedSgd::new(LossKind::Softmax(Softmax::new(3).unwrap()), 2.0),
    ]
}

fn certify<A: RecordAdjacency>(
    plan: &Plan<PhasedSgd, A>,
    source: &mut MemorySource<f64>,
) -> Certificate<Derivation<PhasedSgd>> {
    let trained = plan.train(source, &mut OsSeeded::new().unwrap(), &mut Control::default()).unwrap();
    let norm = trained.weights.get().iter().map(|w| w * w).sum::<f64>().sqrt();
    assert!(norm <= plan.derivation().recipe.radius * (1.0 + 1e-12));
    trained.certificate(Unit::Record, Vec::new(), String::from("0"), Default::default())
}

#[test]
fn every_recipe_trains_and_its_certificate_verifies() {
    for recipe in recipes() {
        let mut source = MemorySource::new(data(300, 4, 1), 1.0, recipe.target_bound);
        let replace = recipe.plan::<ReplaceOne>(300, 4, budget()).unwrap();
        let null = recipe.plan::<ZeroOut>(300, 4, budget()).unwrap();
        for certificate in [certify(&replace, &mut source), certify(&null, &mut source)] {
            let verified = certificate.verify().unwrap_or_else(|error| panic!("{error}: {recipe:?}"));
            assert!(verified.epsilon <= 1.0 && verified.epsilon > 1.0 - 1e-6, "{recipe:?}");
            assert_eq!(certificate.assumptions.contains(&Assumption::DeclaredOrder), recipe.declared_order);
        }
    }
}

#[test]
fn an_edited_derivation_gives_another_event() {
    let plan = recipes()[0].plan::<ReplaceOne>(300, 4, budget()).unwrap();
    let event = plan.derivation().event().unwrap();
    assert_eq!(event, plan.event());
    let edits: [fn(&mut Derivation<PhasedSgd>); 6] = [
        |d| d.calibrated.noise_multiplier *= 0.9,
        |d| d.n += 300,
        |d| d.dim += 1,
        |d| d.recipe.row_norm = 0.5,
        |d| d.recipe.radius = 2.0,
        |d| d.recipe.step = Some(0.01),
    ];
    for (i, edit) in edits.iter().enumerate() {
        let mut derivation = plan.derivation().clone();
        edit(&mut derivation);
        assert_ne!(derivation.event().unwrap(), event, "{i}");
    }
}

#[test]
fn what_is_not_proved_is_refused() {
    let plain = || PhasedSgd::new(LossKind::Logistic, 3.0);
    let not_proved = |recipe: PhasedSgd| {
        let refused = recipe.plan::<ReplaceOne>(300, 4, budget());
        assert!(matches!(refused, Err(Error::NotProved { .. })), "{refused:?}");
    };
    not_proved(PhasedSgd::new(LossKind::Hinge, 3.0));
    not_proved(PhasedSgd { step: Some(33.0), ..plain() }); // 8/β = 32
    not_proved(PhasedSgd { noise_mode: NoiseMode::None, ..plain() });
    assert!(PhasedSgd { step: Some(31.9), ..plain() }.plan::<ReplaceOne>(300, 4, budget()).is_ok());
    for recipe in [
        PhasedSgd { restarts: true, ..plain() },
        PhasedSgd { radius: f64::NAN, ..plain() },
        PhasedSgd { step: Some(0.0), ..plain() },
        PhasedSgd { distance: Some(f64::INFINITY), ..plain() },
        PhasedSgd { row_norm: 2.0, ..plain() },
        PhasedSgd { lambda: -1.0, ..plain() },
    ] {
        assert!(recipe.plan::<ReplaceOne>(300, 4, budget()).is_err(), "{recipe:?}");
    }
    let pure = Budget { delta: Delta::ZERO, ..budget() };
    assert!(matches!(plain().plan::<ReplaceOne>(300, 4, pure), Err(Error::NotProved { .. })));
    for (n, dim) in [(3, 4), (0, 4), (300, 0)] {
        assert!(matches!(plain().plan::<ReplaceOne>(n, dim, budget()), Err(Error::Count { .. })), "{n} {dim}");
    }
}

#[test]
fn the_released_point_comes_near_what_separates() {
    let mut source = MemorySource::new(data(20_000, 4, 5), 1.0, 1.0);
    let plan = PhasedSgd::new(LossKind::Logistic, 10.0).plan::<ReplaceOne>(20_000, 4, budget()).unwrap();
    let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut Control::default()).unwrap();
    assert!(!trained.log.is_private(), "the generator repeats itself");
    let weights = trained.weights.get();
    let norm = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
    assert!(weights[0] > 0.9 * norm && norm > 1.0, "{weights:?}");
}

/// One phase on all pairs of a few extreme records at each place, from starts inside and on the sphere: the distance never
/// exceeds the sensitivity, and attains it if nothing contracts.
#[test]
fn no_pair_moves_a_phase_farther_than_its_sensitivity() {
    let (dim, radius) = (2, 1.5);
    for (loss, lambda, attained) in [
        (LossKind::HuberSvm(HuberSvm::new(1.0).unwrap()), 0.0, 0.9999),
        (LossKind::HuberSvm(HuberSvm::new(1.0).unwrap()), 0.3, 0.5),
        (LossKind::Logistic, 0.0, 0.4),
        (LossKind::Squared, 0.0, 0.4),
    ] {
        for arithmetic in [Arithmetic::Scaled, Arithmetic::Buffered] {
            let recipe = PhasedSgd { lambda, arithmetic, step: Some(0.4), ..PhasedSgd::new(loss, radius) };
            let n = 10; // phases of 5 and 2
            let plan = recipe.plan::<ReplaceOne>(n as u64, dim as u64, budget()).unwrap();
            let run = |place: usize, record: ([f64; 2], f64), other: ([f64; 2], f64), start: &[f64]| {
                let row = |i| if i == place { record } else { other };
                let values = (0..n).flat_map(|i| row(i).0).collect();
                let targets = (0..n).map(|i| row(i).1).collect();
                let mut source = MemorySource::new(Examples::dense(values, targets, dim).unwrap(), 1.0, 1.0);
                plan.run().first_phase_without_noise(&mut source, start.to_vec()).unwrap()
            };
            let mut farthest = 0.0f64;
            for start in [[0.0, 0.0], [0.5, -0.5], [1.5, 0.0], [0.0, 1.5]] {
                for place in 0..5 {
                    for other in OTHERS {
                        let outputs = RECORDS.map(|record| run(place, record, other, &start));
                        for (a, b) in outputs.iter().flat_map(|a| outputs.iter().map(move |b| (a, b))) {
                            let apart = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
                            farthest = farthest.max(apart / plan.run().sensitivities()[0]);
                        }
                    }
                }
            }
            assert!(farthest <= 1.0 && farthest >= attained, "{loss} {lambda}: {farthest}");
        }
    }
}

#[test]
fn records_of_other_phases_and_the_last_of_each_do_not_count() {
    let n = 13; // phases of 6 and 3 records; a third of 1 and four unused
    let plan = PhasedSgd::new(LossKind::Logistic, 3.0).plan::<ReplaceOne>(n, 2, budget()).unwrap();
    assert_eq!(plan.run().phases().iter().map(|phase| phase.records).collect::<Vec<_>>(), [6, 3]);
    let run = |changed: usize| {
        let mut values = vec![0.5; 2 * n as usize];
        values[2 * changed] = -0.5;
        let mut source = MemorySource::new(Examples::dense(values, vec![1.0; n as usize], 2).unwrap(), 1.0, 1.0);
        plan.run().first_phase_without_noise(&mut source, vec![0.1, 0.2]).unwrap()
    };
    let outputs: Vec<Vec<f64>> = (0..n as usize).map(run).collect();
    let unread = &outputs[12];
    for (i, output) in outputs.iter().enumerate() {
        assert_eq!(output != unread, i < 5, "{i}");
    }
}

/// The displayed noise is that of the event: for each phase, and for the last one's weights.
#[test]
fn noise_is_shown_as_it_is_drawn() {
    for recipe in recipes() {
        let plan = recipe.plan::<ReplaceOne>(300, 4, budget()).unwrap();
        let dp_accountant::DpEvent::Parallel { events } = plan.event() else { panic!("{:?}", plan.event()) };
        let drawn: Vec<f64> = events
            .iter()
            .map(|event| match event {
                dp_accountant::DpEvent::Gaussian { std_dev, .. } => *std_dev,
                event => panic!("{event:?}"),
            })
            .collect();
        assert_eq!(plan.run().std_devs(), drawn);
        let expected = drawn[drawn.len() - 1] * (recipe.loss.parameters(4) as f64).sqrt();
        assert!((plan.run().noise_norm() / expected - 1.0).abs() < 1e-14);
    }
}
