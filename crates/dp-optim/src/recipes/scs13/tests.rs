use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, Certificate, Delta, DpEvent, ReplaceOne, ZeroOut, bound};
use dp_data::Examples;
use dp_mechanisms::{L2Sensitivity, LaplaceBall, OsSeeded, ReleaseRng as _, SeededRng};
use proptest::prelude::*;

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::bolt_on::tests::data;
use crate::recipes::{Plan, Planned, Recipe, RecordAdjacency, budget};

fn recipes() -> Vec<Scs13> {
    let plain = Scs13 { passes: 2, ..Scs13::new(LossKind::Logistic) };
    vec![
        plain.clone(),
        Scs13 { batch_size: 1, lambda: 0.1, radius: Some(10.0), ..plain.clone() },
        Scs13 {
            averaging: Averaging::Uniform,
            order: OrderPolicy::Fresh,
            noise_mode: NoiseMode::Rounded,
            ..plain.clone()
        },
        Scs13 { averaging: Averaging::Polynomial, divisor: Divisor::Nominal, batch_size: 7, ..plain.clone() },
        Scs13 { loss: LossKind::Squared, clipping: Some(ClippingNorm::new(0.5).unwrap()), ..plain.clone() },
        Scs13 { loss: LossKind::Hinge, declared_order: true, ..plain.clone() },
        Scs13 { law: StepLaw::LaplaceBall, schedule: Some(Schedule::Constant { step: 0.1 }), ..plain.clone() },
        Scs13 { calibration: StepCalibration::AsPublished, ..plain },
    ]
}

fn certify<A: RecordAdjacency>(
    plan: &Plan<Scs13, A>,
    source: &mut MemorySource<f64>,
) -> Certificate<Derivation<Scs13>> {
    let trained = plan.train(source, &mut OsSeeded::new().unwrap(), &mut Control::default()).unwrap();
    assert!(trained.weights.get().iter().all(|w| w.is_finite()));
    trained.certificate(Unit::Record, Vec::new(), String::from("0"), Default::default())
}

#[test]
fn every_form_trains_and_its_certificate_verifies() {
    let mut source = MemorySource::new(data(200, 6, 1), 1.0, 1.0);
    for recipe in recipes() {
        for budget in [budget(0.5, 0.0), budget(0.5, 1e-6)] {
            let replace = recipe.plan::<ReplaceOne>(200, 6, budget).unwrap();
            let null = recipe.plan::<ZeroOut>(200, 6, budget).unwrap();
            assert!(null.run().sensitivity() < replace.run().sensitivity());
            assert!(
                null.run().noise_norm() < replace.run().noise_norm()
                    || recipe.calibration == StepCalibration::AsPublished
            );
            for certificate in [certify(&replace, &mut source), certify(&null, &mut source)] {
                let verified = certificate.verify().unwrap_or_else(|error| panic!("{error}: {recipe:?}"));
                assert!(verified.epsilon <= budget.epsilon.get());
                let has = |assumption| certificate.assumptions.contains(&assumption);
                assert!(has(Assumption::PublicN) && has(Assumption::OneRowPerUnit));
                assert_eq!(has(Assumption::IdealisedFloat), recipe.noise_mode == NoiseMode::Rounded);
                assert_eq!(has(Assumption::DeclaredOrder), recipe.declared_order);
            }
        }
    }
}

#[test]
fn each_pass_costs_one_noisy_sum() {
    let recipe = Scs13 { passes: 3, law: StepLaw::Gaussian, ..Scs13::new(LossKind::Logistic) };
    let plan = recipe.plan::<ReplaceOne>(1000, 5, budget(1.0, 1e-6)).unwrap();
    let DpEvent::SelfComposed { event, count: 3 } = plan.event() else { panic!("{:?}", plan.event()) };
    assert!(matches!(*event, DpEvent::Gaussian { sensitivity, .. } if (sensitivity - 2.0).abs() < 1e-10));
    assert_eq!(plan.run().steps(), StepPlan::DisjointBatches { passes: 3, steps_per_pass: 20 });
    let once = Scs13 { passes: 1, ..recipe.clone() }.plan::<ReplaceOne>(1000, 5, budget(1.0, 1e-6)).unwrap();
    assert!(matches!(once.event(), DpEvent::Gaussian { .. }));
    // Three Gaussians are equivalent to one with √3 times the sensitivity; the batch size does not matter.
    assert!((plan.run().noise_norm() / once.run().noise_norm() - 3f64.sqrt()).abs() < 1e-6);
    let single = Scs13 { batch_size: 1, passes: 1, ..recipe }.plan::<ReplaceOne>(1000, 5, budget(1.0, 1e-6)).unwrap();
    assert!((single.run().noise_norm() / once.run().noise_norm() - 1.0).abs() < 1e-9);
}

#[test]
fn a_radius_brings_gradients_closer_together() {
    let within = |radius| {
        let recipe = Scs13 { radius, ..Scs13::new(LossKind::Logistic) };
        let at = |sensitivity: f64| sensitivity;
        (
            at(recipe.plan::<ReplaceOne>(1000, 5, budget(1.0, 0.0)).unwrap().run().sensitivity()),
            at(recipe.plan::<ZeroOut>(1000, 5, budget(1.0, 0.0)).unwrap().run().sensitivity()),
        )
    };
    let (replace, zero) = within(Some(1.0));
    assert!((replace - dp_losses::logistic_gradient_difference(1.0)).abs() < 1e-9);
    assert!((zero - 1.0 / (1.0 + (-1f64).exp())).abs() < 1e-9);
    assert!((within(None).0 - 2.0).abs() < 1e-9 && (within(None).1 - 1.0).abs() < 1e-9);
}

/// For delta > 0 the ball's passes compose to less than the sum of their epsilons.
#[test]
fn many_passes_of_the_ball_are_composed_tightly() {
    let recipe = Scs13 { passes: 100, law: StepLaw::LaplaceBall, ..Scs13::new(LossKind::Logistic) };
    let pure = recipe.plan::<ReplaceOne>(1000, 10, budget(8.0, 0.0)).unwrap();
    let joint = recipe.plan::<ReplaceOne>(1000, 10, budget(8.0, 1e-6)).unwrap();
    assert!(
        joint.run().noise_norm() < 0.2 * pure.run().noise_norm(),
        "{} {}",
        joint.run().noise_norm(),
        pure.run().noise_norm()
    );
    assert_eq!((pure.reached().delta, joint.reached().delta), (0.0, 1e-6));
    // The ball has less noise in few dimensions, about as much in many; the default is never much above either.
    let least = Scs13 { law: StepLaw::Least, ..recipe.clone() };
    for dim in [2u64, 30, 300, 3000] {
        let norm = |law| {
            let recipe = Scs13 { passes: 1, law, ..least.clone() };
            recipe.plan::<ReplaceOne>(1000, dim, budget(1.0, 1e-6)).unwrap().run().noise_norm()
        };
        let (ball, gaussian) = (norm(StepLaw::LaplaceBall), norm(StepLaw::Gaussian));
        assert!(norm(StepLaw::Least) <= ball.min(gaussian) * 1.01, "{dim}: {ball} {gaussian}");
    }
}

#[test]
fn published_noise_is_more_than_is_needed() {
    for (law, delta) in [(StepLaw::LaplaceBall, 0.0), (StepLaw::Gaussian, 1e-9)] {
        let joint = Scs13 { law, ..Scs13::new(LossKind::Logistic) };
        let published = Scs13 { calibration: StepCalibration::AsPublished, ..joint.clone() };
        let plan = |recipe: &Scs13, radius| {
            let recipe = Scs13 { radius, ..recipe.clone() };
            recipe.plan::<ReplaceOne>(60_000, 50, budget(0.1, delta)).unwrap()
        };
        let ratio = |radius| plan(&published, radius).run().noise_norm() / plan(&joint, radius).run().noise_norm();
        // A factor of four for ten Gaussian passes; for the ball the factor by which gradients are closer within a radius.
        let expected = if law == StepLaw::Gaussian { 4.29 } else { 1.0 };
        assert!((ratio(None) / expected - 1.0).abs() < 0.01, "{}", ratio(None));
        assert!(ratio(Some(1.0)) > 1.8 * ratio(None));
        assert!(plan(&published, None).reached().epsilon <= 0.1);
    }
    let published = Scs13 {
        calibration: StepCalibration::AsPublished,
        law: StepLaw::Gaussian,
        passes: 1,
        ..Scs13::new(LossKind::Logistic)
    };
    let refused = published.plan::<ReplaceOne>(100, 5, budget(1.0, 1e-6));
    assert!(matches!(refused, Err(Error::NotProved { .. })));
}

#[test]
fn all_iterates_are_shown_and_the_last_or_their_average_is_released() {
    let mut source = MemorySource::new(data(45, 3, 2), 1.0, 1.0);
    for averaging in [Averaging::Last, Averaging::Uniform] {
        let averaged = averaging == Averaging::Uniform;
        let recipe =
            Scs13 { averaging, passes: 2, batch_size: 10, radius: Some(2.0), ..Scs13::new(LossKind::Logistic) };
        let plan = recipe.plan::<ReplaceOne>(45, 3, budget(1.0, 1e-6)).unwrap();
        let mut iterates: Vec<Vec<f64>> = Vec::new();
        let observe = |seen: Observation<'_, f64>| {
            assert_eq!(seen.update, iterates.len() as u64 + 1);
            assert!(seen.iterate.iter().map(|w| w * w).sum::<f64>().sqrt() <= 2.0 + 1e-12);
            iterates.push(seen.iterate.to_vec());
        };
        let (rng, control) = (&mut SeededRng::new(4), &mut Control::default());
        let (weights, log) =
            plan.run().train_observing::<f64, ReplaceOne>(&mut source, &mut rng.lend(), control, observe).unwrap();
        assert_eq!(iterates.len(), 10);
        let expected: Vec<f64> = if averaged {
            (0..3).map(|j| iterates.iter().map(|w| w[j]).sum::<f64>() / 10.0).collect()
        } else {
            iterates[9].clone()
        };
        for (found, expected) in weights.get().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-14);
        }
        let again = plan.train::<f64>(&mut source, &mut SeededRng::new(4), &mut Control::default()).unwrap();
        assert_eq!(again.weights, weights);
        assert!(!log.is_private() && log.entries().len() == 1);
        assert_eq!(log.to_event(), plan.event());
    }
}

/// On null records the noisy sums are noise alone: Kolmogorov-Smirnov at a false-alarm rate of 1e-9 each (Dvoretzky, Kiefer,
/// Wolfowitz, Massart), for both laws and modes. A short batch divides the noise by its own size.
#[test]
fn realised_noise_has_its_law() {
    let (n, dim, updates) = (20_001usize, 4usize, 10_001usize);
    let examples = Examples::dense(vec![0.0; n * dim], vec![1.0; n], dim).unwrap();
    let distance = |mut sample: Vec<f64>, cdf: &dyn Fn(f64) -> f64| {
        sample.sort_unstable_by(f64::total_cmp);
        let count = sample.len() as f64;
        let threshold = ((2.0f64 / 1e-9).ln() / (2.0 * count)).sqrt();
        let apart = sample
            .iter()
            .enumerate()
            .fold(0.0f64, |most, (i, &x)| most.max(cdf(x) - i as f64 / count).max((i as f64 + 1.0) / count - cdf(x)));
        assert!(apart < threshold, "{apart} {threshold}");
    };
    for noise_mode in [NoiseMode::Exact, NoiseMode::Rounded] {
        for law in [StepLaw::LaplaceBall, StepLaw::Gaussian] {
            let schedule = Some(Schedule::Constant { step: 1.0 });
            let recipe =
                Scs13 { law, noise_mode, schedule, passes: 1, batch_size: 2, ..Scs13::new(LossKind::Logistic) };
            let plan = recipe.plan::<ReplaceOne>(n as u64, dim as u64, budget(1.0, 1e-6)).unwrap();
            let mut source = MemorySource::new(examples.clone(), 1.0, 1.0);
            let (mut sums, mut last): (Vec<Vec<f64>>, Vec<f64>) = (Vec::new(), vec![0.0; dim]);
            let observe = |seen: Observation<'_, f64>| {
                let batch = if seen.update == updates as u64 { 1.0 } else { 2.0 };
                for ((w, before), noise) in seen.iterate.iter().zip(&last).zip(seen.noisy_sum) {
                    assert!((before - w - noise / batch).abs() < 1e-9, "the noise is divided as the gradient");
                }
                last = seen.iterate.to_vec();
                sums.push(seen.noisy_sum.to_vec());
            };
            let (rng, control) = (&mut SeededRng::new(8), &mut Control::default());
            plan.run().train_observing::<f64, ReplaceOne>(&mut source, &mut rng.lend(), control, observe).unwrap();
            assert_eq!(sums.len(), updates);
            match plan.run().noise() {
                NoiseScale::Gaussian { std_dev } => {
                    let cdf = |x: f64| {
                        statrs::distribution::ContinuousCDF::cdf(&statrs::distribution::Normal::standard(), x / std_dev)
                    };
                    distance(sums.iter().flatten().copied().collect(), &cdf);
                }
                NoiseScale::LaplaceBall { scale } => {
                    let sensitivity = L2Sensitivity::<ReplaceOne>::new(2.1).unwrap();
                    let ball = LaplaceBall::from_scale(sensitivity, scale, dim as u64).unwrap();
                    let norms = sums.iter().map(|z| z.iter().map(|z| z * z).sum::<f64>().sqrt()).collect();
                    distance(norms, &|r| ball.norm_cdf(r));
                }
            }
        }
    }
}

#[test]
fn single_precision_trains_with_its_rounding_proved() {
    let single: Vec<f32> = (0..1500).map(|i| 0.4 * (i as f32).sin()).collect();
    let examples = Examples::dense(single, vec![1.0f32; 300], 5).unwrap();
    let recipe = |float| Scs13 { float, passes: 1, ..Scs13::new(LossKind::Logistic) };
    let plan = recipe(FloatKind::F32).plan::<ReplaceOne>(300, 5, budget(1.0, 1e-6)).unwrap();
    assert!(plan.run().sensitivity() > 2.0 + 1e-6 && plan.run().sensitivity() < 2.00001);
    let mut source = MemorySource::new(examples, 1.0, 1.0);
    let trained = plan.train::<f32>(&mut source, &mut OsSeeded::new().unwrap(), &mut Control::default()).unwrap();
    let certificate = trained.certificate(Unit::Record, Vec::new(), String::from("0"), Default::default());
    assert!(certificate.verify().is_ok() && !certificate.assumptions.contains(&Assumption::FloatTraining));
    let mut double = MemorySource::new(data(300, 5, 7), 1.0, 1.0);
    let refused = plan.train::<f64>(&mut double, &mut OsSeeded::new().unwrap(), &mut Control::default());
    assert!(matches!(refused, Err(Error::FloatKind { .. })));
}

#[test]
fn it_learns_where_there_is_budget() {
    let (n, dim) = (5000usize, 3usize);
    let examples = data(n, dim, 9);
    let mut source = MemorySource::new(examples.clone(), 1.0, 1.0);
    let recipe =
        Scs13 { lambda: 1e-3, schedule: Some(Schedule::InverseSqrt { step: 2.0 }), ..Scs13::new(LossKind::Logistic) };
    let plan = recipe.plan::<ZeroOut>(n as u64, dim as u64, budget(2.0, 1e-6)).unwrap();
    let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default()).unwrap();
    let dp_data::Rows::Dense { values, .. } = examples.block().rows else { unreachable!() };
    let right = values
        .chunks(dim)
        .zip(examples.targets())
        .filter(|(row, y)| row.iter().zip(trained.weights.get()).map(|(x, w)| x * w).sum::<f64>() * **y > 0.0)
        .count();
    assert!(right > n * 9 / 10, "{right}");
}

#[test]
fn what_is_not_proved_is_refused() {
    let good = Scs13::new(LossKind::Logistic);
    let refused: Vec<(&str, Scs13, f64)> = vec![
        ("no pass", Scs13 { passes: 0, ..good.clone() }, 0.0),
        ("too many passes", Scs13 { passes: 1 << 24, ..good.clone() }, 0.0),
        ("no batch", Scs13 { batch_size: 0, ..good.clone() }, 0.0),
        ("negative lambda", Scs13 { lambda: -1.0, ..good.clone() }, 0.0),
        ("NaN lambda", Scs13 { lambda: f64::NAN, ..good.clone() }, 0.0),
        ("unbounded gradients", Scs13 { loss: LossKind::Squared, ..good.clone() }, 0.0),
        ("Gaussian without delta", Scs13 { law: StepLaw::Gaussian, ..good.clone() }, 0.0),
        ("long rows", Scs13 { row_norm: 2.0, ..good.clone() }, 0.0),
        ("long targets of two classes", Scs13 { target_bound: 5.0, ..good.clone() }, 0.0),
        ("NaN targets of two classes", Scs13 { target_bound: f64::NAN, ..good.clone() }, 0.0),
        ("NaN radius", Scs13 { radius: Some(f64::NAN), ..good.clone() }, 0.0),
        ("no radius", Scs13 { radius: Some(0.0), ..good.clone() }, 0.0),
        ("no noise", Scs13 { noise_mode: NoiseMode::None, ..good.clone() }, 0.0),
        ("steps that overflow", Scs13 { schedule: Some(Schedule::Constant { step: 1e140 }), ..good.clone() }, 0.0),
        (
            "steps that stretch without end",
            Scs13 { lambda: 3.0, schedule: Some(Schedule::Constant { step: 1.0 }), ..good.clone() },
            0.0,
        ),
        (
            "steps that overflow in f32",
            Scs13 { float: FloatKind::F32, schedule: Some(Schedule::Constant { step: 1e14 }), ..good.clone() },
            0.0,
        ),
    ];
    for (name, recipe, delta) in refused {
        assert!(recipe.plan::<ReplaceOne>(100, 3, budget(1.0, delta)).is_err(), "{name}");
    }
    assert!(good.plan::<ReplaceOne>(0, 3, budget(1.0, 0.0)).is_err());
    assert!(good.plan::<ReplaceOne>(100, 0, budget(1.0, 0.0)).is_err());
    assert!(good.plan::<ReplaceOne>(1, 1, budget(1.0, 0.0)).is_ok());
    assert!(good.plan::<ReplaceOne>(u64::MAX, 1, budget(1.0, 0.0)).is_err());
    let stretched =
        Scs13 { lambda: 3.0, radius: Some(1.0), schedule: Some(Schedule::Constant { step: 1.0 }), ..good.clone() };
    assert!(stretched.plan::<ReplaceOne>(100, 3, budget(1.0, 0.0)).is_ok(), "the ball holds it");
    let derivation = good.plan::<ReplaceOne>(9, 1, budget(1.0, 0.0)).unwrap().derivation().clone();
    for relation in [AdjacencyKind::AddRemoveOne, AdjacencyKind::ChangeListLabels] {
        assert!(matches!(Derivation { relation, ..derivation.clone() }.event(), Err(Error::Adjacency { .. })));
    }
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let calibrated = OneNoise { noise: NoiseScale::LaplaceBall { scale } };
        assert!(Derivation { calibrated, ..derivation.clone() }.event().is_err());
    }
}

/// Each public parameter determines the event or an assumption, or affects only post-processing, or is a request for the noise
/// that the recorded noise answers.
#[test]
fn every_field_of_a_derivation_that_should_count_counts() {
    let recipe = Scs13 { radius: Some(2.0), passes: 3, ..Scs13::new(LossKind::Logistic) };
    let calibrated = OneNoise { noise: NoiseScale::Gaussian { std_dev: 9.0 } };
    let good = Derivation { recipe, relation: AdjacencyKind::ReplaceOne, n: 100, dim: 4, calibrated };
    let statement = |derivation: &Derivation<Scs13>| (derivation.event().ok(), derivation.assumptions());
    type Change = dyn Fn(&mut Derivation<Scs13>);
    let changes: Vec<(&str, &Change)> = vec![
        ("loss", &|d| d.recipe.loss = LossKind::Hinge),
        ("passes", &|d| d.recipe.passes = 4),
        ("batch size", &|d| d.recipe.batch_size = 8),
        ("radius", &|d| d.recipe.radius = Some(3.0)),
        ("clipping", &|d| d.recipe.clipping = ClippingNorm::new(0.3).ok()),
        ("declared order", &|d| d.recipe.declared_order = true),
        ("float", &|d| d.recipe.float = FloatKind::F32),
        ("noise mode", &|d| d.recipe.noise_mode = NoiseMode::Rounded),
        ("row norm", &|d| d.recipe.row_norm = 0.9),
        ("relation", &|d| d.relation = AdjacencyKind::ZeroOut),
        ("noise", &|d| d.calibrated.noise = NoiseScale::Gaussian { std_dev: 9.1 }),
        ("law", &|d| d.calibrated.noise = NoiseScale::LaplaceBall { scale: 9.0 }),
    ];
    for (name, change) in changes {
        let mut other = good.clone();
        change(&mut other);
        assert_ne!(statement(&other), statement(&good), "{name}");
    }
}

#[test]
fn copies_share_a_budget() {
    let recipe = Scs13 { law: StepLaw::Gaussian, ..Scs13::new(LossKind::Logistic) };
    let norm =
        |copies| recipe.plan_copies::<ReplaceOne>(1000, 5, budget(1.0, 1e-6), copies).unwrap().run().noise_norm();
    assert!((norm(9) / norm(1) - 3.0).abs() < 1e-3);
    let plan = recipe.plan_copies::<ReplaceOne>(1000, 5, budget(1.0, 1e-6), 9).unwrap();
    let event = DpEvent::SelfComposed { event: Box::new(plan.event()), count: 9 };
    let reached = bound::epsilon(&event, Delta::new(1e-6).unwrap()).unwrap().value;
    assert!(reached <= 1.0 && reached > 0.999 && plan.reached().epsilon == reached);
    assert!(recipe.plan_copies::<ReplaceOne>(1000, 5, budget(1.0, 1e-6), 0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn plans_reach_their_budget(
        n in 1u64..5000, dim in 1u64..60, epsilon in 0.01f64..8.0, delta in prop_oneof![Just(0.0), 1e-12f64..0.1],
        lambda in 0.0f64..0.1, batch_size in 1u64..200, passes in 1u64..5, clips: bool,
    ) {
        let clipping = clips.then(|| ClippingNorm::new(0.37).unwrap());
        let recipe = Scs13 { lambda, clipping, batch_size, passes, ..Scs13::new(LossKind::Logistic) };
        let plan = recipe.plan::<ReplaceOne>(n, dim, budget(epsilon, delta)).unwrap();
        prop_assert!(plan.reached().epsilon <= epsilon && plan.reached().delta <= delta);
        prop_assert!(plan.reached().epsilon >= epsilon * (1.0 - 1e-6));
        prop_assert_eq!(plan.derivation().event().unwrap(), plan.event());
    }
}

/// If a sum is divided by the size of its batch, the smallest batch, the last one, determines the range of a step.
#[test]
fn the_last_batch_decides_about_the_range() {
    let plan = |divisor, step| {
        let recipe = Scs13 {
            divisor,
            batch_size: 100,
            passes: 2,
            schedule: Some(Schedule::Constant { step }),
            ..Scs13::new(LossKind::Logistic)
        };
        recipe.plan::<ReplaceOne>(101, 3, budget(1.0, 0.0))
    };
    let refused = |divisor, step| matches!(plan(divisor, step), Err(Error::NotProved { .. }));
    let step = |exponent: i32| 10f64.powi(exponent);
    let largest = (100..145).rev().find(|&e| plan(Divisor::Nominal, step(e)).is_ok()).unwrap();
    assert!(refused(Divisor::Nominal, step(largest + 1)));
    // A hundredth of the batch.
    assert!(refused(Divisor::Actual, step(largest)) && refused(Divisor::Actual, step(largest - 1)));
    assert!(plan(Divisor::Actual, step(largest - 2)).is_ok());
}

/// The noise's mean square, and the published noise of several copies: each has its part of the budget.
#[test]
fn noise_follows_its_formulas() {
    let of = |scale| noise::Calibrated { scale }.mean_squared_norm(7);
    assert!((of(NoiseScale::LaplaceBall { scale: 3.0 }) / (7.0 * 8.0 * 9.0) - 1.0).abs() < 1e-15);
    assert!((of(NoiseScale::Gaussian { std_dev: 3.0 }) / (7.0 * 9.0) - 1.0).abs() < 1e-15);
    for law in [StepLaw::LaplaceBall, StepLaw::Gaussian] {
        let recipe =
            Scs13 { calibration: StepCalibration::AsPublished, law, passes: 3, ..Scs13::new(LossKind::Logistic) };
        let copies = recipe.plan_copies::<ReplaceOne>(1000, 5, budget(1.2, 4e-6), 4).unwrap();
        let alone = recipe.plan::<ReplaceOne>(1000, 5, budget(0.3, 1e-6)).unwrap();
        assert_eq!(copies.event(), alone.event(), "{law:?}");
    }
}

/// Records the orders in which passes were requested.
struct Asked(MemorySource<f64>, Vec<dp_data::Order>);

impl dp_data::RowSource<f64> for Asked {
    fn describe(&mut self) -> Result<dp_data::Description, dp_data::SourceError> {
        self.0.describe()
    }
    fn open_pass(
        &mut self,
        request: &dp_data::PassRequest,
    ) -> Result<Box<dyn dp_data::RowStream<f64> + '_>, dp_data::SourceError> {
        self.1.push(request.order);
        self.0.open_pass(request)
    }
}

/// Rows are read in the source's order if the curator declares it or a batch holds all of them, otherwise under a key.
#[test]
fn rows_are_shuffled_unless_their_order_is_vouched_for() {
    use dp_data::Order;
    let orders = |recipe: Scs13| {
        let plan = recipe.plan::<ReplaceOne>(50, 3, budget(1.0, 1e-6)).unwrap();
        let mut source = Asked(MemorySource::new(data(50, 3, 12), 1.0, 1.0), Vec::new());
        plan.train::<f64>(&mut source, &mut SeededRng::new(4), &mut Control::default()).unwrap();
        source.1
    };
    let usual = Scs13 { law: StepLaw::Gaussian, passes: 2, batch_size: 20, ..Scs13::new(LossKind::Logistic) };
    for (order, fresh) in [(OrderPolicy::Fixed, false), (OrderPolicy::Fresh, true)] {
        let asked = orders(Scs13 { order, ..usual.clone() });
        let keyed = |order: &Order| matches!(order, Order::Keyed { fresh_each_pass, .. } if *fresh_each_pass == fresh);
        assert!(asked.len() == 2 && asked.iter().all(keyed), "{asked:?}");
    }
    for declared in [Scs13 { declared_order: true, ..usual.clone() }, Scs13 { batch_size: 50, ..usual }] {
        assert!(orders(declared).iter().all(|order| *order == Order::Declared));
    }
}
