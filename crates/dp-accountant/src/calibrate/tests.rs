use super::*;
use crate::bound;
use crate::gaussian;
use crate::params::{NoiseMultiplier, SamplingRate};
use crate::work;

fn target(epsilon: f64, delta: f64) -> (Epsilon, Delta) {
    (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap())
}

fn gaussians(std_dev: f64, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 }), count }
}

#[test]
fn agrees_with_the_closed_forms() {
    for epsilon in [0.01, 0.1, 1.0, 10.0] {
        for delta in [1e-3, 1e-6, 1e-12] {
            let (epsilon, delta) = target(epsilon, delta);
            let scale = least_scale(epsilon, delta, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: 3.0 }).unwrap();
            let expected = 3.0 * gaussian::noise_multiplier(epsilon, delta).unwrap().get();
            assert!((scale / expected - 1.0).abs() < 1e-9, "{epsilon} {delta}: {scale} {expected}");
        }
        let (epsilon, delta) = target(epsilon, 0.0);
        let ball = |scale| DpEvent::LaplaceBall { scale, sensitivity: 0.07, dim: 9 };
        let scale = least_scale(epsilon, delta, ball).unwrap();
        assert!((scale * epsilon.get() / 0.07 - 1.0).abs() < 1e-9);
    }
}

#[test]
fn the_answer_meets_the_target_and_less_noise_does_not() {
    let sensitivities: Vec<f64> = (1..=200).map(|i| f64::from(i) / 200.0).collect();
    let events: [&dyn Fn(f64) -> DpEvent; 4] = [
        &|scale| DpEvent::Laplace { scale, sensitivity: 1.0 },
        &|scale| DpEvent::SelfComposed {
            event: Box::new(DpEvent::LaplaceBall { scale, sensitivity: 0.5, dim: 10 }),
            count: 300,
        },
        &|std_dev| DpEvent::GaussianMixture {
            std_dev,
            sensitivities: sensitivities.clone(),
            weights: vec![1.0 / 200.0; 200],
        },
        &|scale| DpEvent::Composed {
            events: vec![
                DpEvent::PureDp { epsilon: 0.001 },
                DpEvent::Zcdp { rho: 1e-6 },
                DpEvent::Gaussian { std_dev: scale, sensitivity: 1e4 },
            ],
        },
    ];
    for event in events {
        for epsilon in [0.05, 1.0] {
            let (epsilon, delta) = target(epsilon, 1e-7);
            let scale = least_scale(epsilon, delta, event).unwrap();
            assert!(bound::epsilon(&event(scale), delta).unwrap().value <= epsilon.get());
            assert!(bound::epsilon(&event(scale * (1.0 - 1e-8)), delta).unwrap().value > epsilon.get());
        }
    }
}

#[test]
fn unreachable_targets_and_bad_events_are_typed_errors() {
    let (epsilon, delta) = target(1.0, 1e-6);
    let fixed = least_scale(epsilon, delta, |_| DpEvent::PureDp { epsilon: 2.0 });
    assert!(matches!(fixed, Err(Error::Unreachable { .. })), "{fixed:?}");
    let free = least_scale(epsilon, delta, |_| DpEvent::NoOp);
    assert!(matches!(free, Err(Error::Unreachable { .. })), "{free:?}");
    let no_pure = least_scale(epsilon, Delta::ZERO, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: 1.0 });
    assert!(matches!(no_pure, Err(Error::Unreachable { .. })), "{no_pure:?}");
    let bad = least_scale(epsilon, delta, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: f64::NAN });
    assert!(matches!(bad, Err(Error::NotFinite { .. })), "{bad:?}");
    let rate = largest_rate(epsilon, delta, |_| DpEvent::NonPrivate);
    assert!(matches!(rate, Err(Error::Unreachable { .. })), "{rate:?}");
    let steps = most_steps(epsilon, delta, |_| DpEvent::NoOp);
    assert!(matches!(steps, Err(Error::Unreachable { .. })), "{steps:?}");
    let left = releases_left(epsilon, delta, &DpEvent::PureDp { epsilon: 1.5 }, &DpEvent::PureDp { epsilon: 0.1 });
    assert!(matches!(left, Err(Error::Unreachable { .. })), "{left:?}");
    let start = Calibration::new(epsilon, delta).near(f64::NAN).least_scale(|std_dev| gaussians(std_dev, 1));
    assert!(matches!(start, Err(Error::NotFinite { .. })), "{start:?}");
}

#[test]
fn counts_are_exact() {
    for (epsilon, delta, std_dev) in [(1.0, 1e-5, 30.0), (0.1, 1e-9, 1e4), (8.0, 1e-5, 0.9), (2.0, 1e-300, 1e5)] {
        let (epsilon, delta) = target(epsilon, delta);
        for evaluator in [Evaluator::Tightest, Evaluator::Renyi, Evaluator::Zcdp] {
            let calibration = Calibration::new(epsilon, delta).with_evaluator(evaluator);
            let found = calibration.most_steps(|steps| gaussians(std_dev, steps)).unwrap();
            let at = |steps| evaluator.epsilon(&gaussians(std_dev, steps), delta).unwrap();
            assert_eq!(at(found.value), found.epsilon);
            assert!(at(found.value) <= epsilon.get() && at(found.value + 1) > epsilon.get(), "{evaluator:?} {found:?}");
        }
    }
    let (epsilon, delta) = target(1.0, 0.0);
    assert_eq!(most_steps(epsilon, delta, |count| gaussians(1.0, count)).unwrap(), 0);
    let spent = DpEvent::PureDp { epsilon: 1.0 };
    assert_eq!(releases_left(epsilon, delta, &spent, &DpEvent::PureDp { epsilon: 0.1 }).unwrap(), 0);
}

#[test]
fn releases_left_joins_relations_and_respects_what_was_spent() {
    let (epsilon, delta) = target(2.0, 1e-6);
    let next = DpEvent::Gaussian { std_dev: 20.0, sensitivity: 1.0 };
    let fresh = releases_left(epsilon, delta, &DpEvent::NoOp, &next).unwrap();
    for spent in [1, fresh / 2, fresh] {
        let left = releases_left(epsilon, delta, &gaussians(20.0, spent), &next).unwrap();
        assert_eq!(left, fresh - spent);
    }
    let sampled = DpEvent::PoissonSampled { sampling_rate: 0.1, event: Box::new(next.clone()) };
    let local = DpEvent::RandomizedResponse { buckets: 2, noise: 0.9 };
    let mixed = releases_left(epsilon, delta, &local, &sampled);
    assert!(matches!(mixed, Err(Error::RelationsConflict { .. })), "{mixed:?}");
    let under = Calibration::new(epsilon, delta).under(AdjacencyKind::ReplaceOne).releases_left(&sampled, &next);
    assert!(matches!(under, Err(Error::NotUnderRelation { .. })), "{under:?}");
}

/// A sampling rate that enters as the sensitivity, so that the result is known in closed form.
#[test]
fn rates_over_nine_orders_of_magnitude() {
    let (epsilon, delta) = target(1.0, 1e-6);
    let multiplier = gaussian::noise_multiplier(epsilon, delta).unwrap().get();
    for rate in [1e-9, 1e-6, 1e-3, 0.3, 1.0] {
        let std_dev = rate * multiplier;
        let found = Calibration::new(epsilon, delta)
            .largest_rate(|rate| DpEvent::Gaussian { std_dev, sensitivity: rate })
            .unwrap();
        assert!(found.value <= rate * (1.0 + 1e-12) && found.value >= rate * (1.0 - 1e-9), "{rate}: {found:?}");
        assert!(found.epsilon <= 1.0 && found.evaluations <= 10, "{found:?}");
    }
}

#[test]
fn few_evaluations_in_the_typical_case() {
    let mut most = 0;
    let mut total = 0;
    let mut searches = 0;
    for epsilon in [0.1, 0.5, 1.0, 3.0, 8.0] {
        for delta in [1e-5, 1e-8] {
            let (epsilon, delta) = target(epsilon, delta);
            let calibration = Calibration::new(epsilon, delta);
            for count in [1, 50, 10_000] {
                for found in [
                    calibration.least_scale(|std_dev| gaussians(std_dev, count)).unwrap().evaluations,
                    calibration
                        .with_evaluator(Evaluator::Renyi)
                        .least_scale(|s| gaussians(s, count))
                        .unwrap()
                        .evaluations,
                ] {
                    (most, total, searches) = (most.max(found), total + found, searches + 1);
                }
            }
        }
    }
    assert!(most <= 9 && total <= 8 * searches, "at most {most}, {total} in {searches}");
}

#[test]
fn a_good_start_saves_evaluations_and_changes_nothing_else() {
    let (epsilon, delta) = target(1.0, 1e-5);
    let calibration = Calibration::new(epsilon, delta);
    let plain = calibration.least_scale(|std_dev| gaussians(std_dev, 100)).unwrap();
    let near = calibration.near(37.0).least_scale(|std_dev| gaussians(std_dev, 100)).unwrap();
    assert!((near.value / plain.value - 1.0).abs() < 1e-9 && near.evaluations < plain.evaluations);
}

#[test]
fn unsampled_training_is_plain_gaussians_in_every_direction() {
    let (epsilon, delta) = target(2.0, 1e-6);
    let calibration = Calibration::new(epsilon, delta).under(AdjacencyKind::AddRemoveOne);
    let one = SamplingRate::new(1.0).unwrap();
    let multiplier = gaussian::noise_multiplier(epsilon, delta).unwrap().get();
    let noise = calibration.dp_sgd_noise_multiplier(one, 400).unwrap().value;
    assert!((noise / (20.0 * multiplier) - 1.0).abs() < 1e-9);
    let enough = NoiseMultiplier::new(noise).unwrap();
    assert_eq!(calibration.dp_sgd_steps(enough, one).unwrap().value, 400);
    assert_eq!(calibration.dp_sgd_sampling_rate(enough, 400).unwrap().value, 1.0);
}

fn dp_sgd(noise: f64, rate: f64, steps: u64) -> DpEvent {
    let (noise_multiplier, sampling_rate) = (NoiseMultiplier::new(noise).unwrap(), SamplingRate::new(rate).unwrap());
    DpSgd { noise_multiplier, sampling_rate, steps }.event()
}

#[test]
fn sampled_training_round_trips_from_one_in_a_thousand_million_to_a_half() {
    for (epsilon, delta, rate, steps) in [
        (1.0, 1e-5, 0.01, 10_000),
        (0.1, 1e-8, 1e-4, 1_000_000),
        (3.0, 1e-6, 1e-9, 1_000_000_000),
        (1.0, 1e-300, 0.5, 10),
    ] {
        let (epsilon, delta) = target(epsilon, delta);
        let calibration = Calibration::new(epsilon, delta).with_evaluator(Evaluator::Renyi);
        let probability = SamplingRate::new(rate).unwrap();
        let noise = calibration.dp_sgd_noise_multiplier(probability, steps).unwrap();
        let enough = NoiseMultiplier::new(noise.value).unwrap();
        let largest = calibration.dp_sgd_sampling_rate(enough, steps).unwrap();
        let most = calibration.dp_sgd_steps(enough, probability).unwrap();
        assert!((largest.value / rate - 1.0).abs() < 1e-7, "{largest:?}");
        // The noise meets the target with a small margin, which may allow a few more steps in 1e9.
        assert!(most.value >= steps && most.value - steps <= steps / 1_000_000, "{most:?}");
        for (event, epsilon_found) in [
            (dp_sgd(noise.value, rate, steps), noise.epsilon),
            (dp_sgd(noise.value, largest.value, steps), largest.epsilon),
            (dp_sgd(noise.value, rate, most.value), most.epsilon),
        ] {
            let again = Evaluator::Renyi.epsilon(&event, delta).unwrap();
            assert!(again == epsilon_found && again <= epsilon.get(), "{again} {epsilon_found}");
        }
        for found in [noise.evaluations, largest.evaluations, most.evaluations] {
            assert!(found <= 9, "{found} evaluations");
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// For every searched quantity, the result meets the target when evaluated again, and 1e-6 beyond it misses it.
    #[test]
    fn answers_meet_the_target_and_are_the_best(
        log_epsilon in -4.0f64..4.0,
        log_delta in -60.0f64..-1.0,
        sensitivity in 1e-3f64..1e3,
        count in 1u64..100_000,
        pure in 0.0f64..0.5,
    ) {
        let (epsilon, delta) = target(log_epsilon.exp(), log_delta.exp());
        let event = |std_dev: f64, count: u64| DpEvent::Composed { events: vec![
            DpEvent::PureDp { epsilon: pure * epsilon.get() },
            DpEvent::SelfComposed { event: Box::new(DpEvent::Gaussian { std_dev, sensitivity }), count },
        ] };
        for evaluator in [Evaluator::Tightest, Evaluator::Renyi] {
            let calibration = Calibration::new(epsilon, delta).with_evaluator(evaluator);
            let cost = |std_dev, count| evaluator.epsilon(&event(std_dev, count), delta).unwrap();
            let noise = calibration.least_scale(|std_dev| event(std_dev, count)).unwrap();
            proptest::prop_assert!(cost(noise.value, count) <= epsilon.get());
            proptest::prop_assert!(cost(noise.value * (1.0 - 1e-6), count) > epsilon.get());
            let most = calibration.most_steps(|count| event(noise.value, count)).unwrap();
            proptest::prop_assert!(most.value >= count);
            proptest::prop_assert!(cost(noise.value, most.value) <= epsilon.get());
            proptest::prop_assert!(cost(noise.value, most.value + 1) > epsilon.get());
        }
    }
}

#[test]
fn noise_rate_and_steps_of_a_replaced_record() {
    let (epsilon, delta) = target(0.5, 1e-4);
    let run = |std_dev, sampling_rate, count| {
        let step = DpEvent::PoissonSampledReplacement { sampling_rate, std_dev, distance: 2.0, radius: 1.0 };
        DpEvent::SelfComposed { event: Box::new(step), count }
    };
    let calibration = Calibration::new(epsilon, delta).under(AdjacencyKind::ChangeListLabels);
    let noise = calibration.certifying().least_scale(|std_dev| run(std_dev, 0.01, 200)).unwrap();
    assert!(noise.epsilon <= 0.5 && noise.epsilon > 0.499_9, "{noise:?}");
    assert!(noise.beyond.unwrap().epsilon_lower > 0.498, "{noise:?}");
    let rate = calibration.largest_rate(|rate| run(noise.value, rate, 200)).unwrap();
    assert!((rate.value / 0.01 - 1.0).abs() < 1e-3, "{rate:?}");
    let steps = calibration.most_steps(|steps| run(noise.value, 0.01, steps)).unwrap();
    assert!(steps.value.abs_diff(200) <= 1, "{steps:?}");
    let refused = Calibration::new(epsilon, delta)
        .under(AdjacencyKind::AddRemoveOne)
        .least_scale(|std_dev| run(std_dev, 0.01, 200));
    assert!(matches!(refused, Err(Error::NotUnderRelation { .. })), "{refused:?}");
}

/// For an epsilon of a million, one evaluation takes a second or two; after the limit evaluations are coarse.
#[test]
fn a_long_search_ends_within_a_bounded_count_of_work_and_meets_its_target() {
    let (epsilon, delta) = target(1e6, 1e-5);
    let calibration = Calibration::new(epsilon, delta);
    let found = work::limited(0.1 * work::USUAL, || {
        calibration.dp_sgd_noise_multiplier(SamplingRate::new(0.01).unwrap(), 1000).unwrap()
    });
    assert!(found.is_short && found.spent < 0.5 * work::USUAL, "{:e}", found.spent);
    assert!(found.value.epsilon <= 1e6);
    let event = DpSgd {
        noise_multiplier: NoiseMultiplier::new(found.value.value).unwrap(),
        sampling_rate: SamplingRate::new(0.01).unwrap(),
        steps: 1000,
    };
    assert!(bound::epsilon(&event.event(), delta).unwrap().value <= 1e6);
}

#[test]
fn what_is_found_within_a_limit_holds_without_one() {
    let mut hurried = 0;
    for (rate, steps, delta) in [(0.01, 2_000, 1e-6), (1e-4, 50_000, 1e-7), (1e-3, 300, 1e-4)] {
        let (epsilon, delta) = target(1.0, delta);
        let calibration = Calibration::new(epsilon, delta);
        let search = || calibration.dp_sgd_noise_multiplier(SamplingRate::new(rate).unwrap(), steps).unwrap();
        let whole = search();
        assert_eq!(work::limited(1e15, search).value, whole);
        for limit in [1e5, 3e6, 3e7] {
            let found = work::limited(limit, search);
            let noise = found.value.value;
            let again = Evaluator::Tightest.epsilon(&dp_sgd(noise, rate, steps), delta).unwrap();
            assert!(again <= 1.0 && noise >= whole.value * (1.0 - 1e-6), "{rate} {limit}: {found:?}, {again}");
            hurried += u32::from(noise > whole.value);
        }
    }
    assert!(hurried >= 4, "{hurried}");
}

#[test]
fn evaluations_that_a_limit_changed_keep_a_margin() {
    let (epsilon, delta) = target(1.0, 1e-6);
    let rate = SamplingRate::new(0.01).unwrap();
    let (found, again) = work::limited(1e5, || {
        let found = Calibration::new(epsilon, delta).dp_sgd_noise_multiplier(rate, 2_000).unwrap();
        // The limit is reached, so that this evaluation has the same work as those of the search.
        (found, Evaluator::Tightest.epsilon(&dp_sgd(found.value, 0.01, 2_000), delta).unwrap())
    })
    .value;
    assert!((found.epsilon / again - (1.0 + 2e-3)).abs() < 1e-9, "{found:?} {again}");
}

/// What takes less than the usual limit is found as without one, and what takes a little more nearly so.
#[test]
fn the_usual_limit_changes_hardly_anything() {
    let check = |name: String, search: &dyn Fn() -> f64, most: f64| {
        let found = work::limited(work::USUAL, search);
        let off = found.value / search() - 1.0;
        assert!((-1e-9..most).contains(&off) && found.is_short == (most > 1e-6), "{name}: {found:?} {off:e}");
    };
    // The fourth takes more than the limit; the composition of pure guarantees does not.
    for (steps, delta, most) in
        [(2, 1e-9, 1e-9), (5, 1e-9, 1e-9), (10, 1e-6, 1e-9), (10, 1e-9, 2e-6), (100, 1e-9, 1e-9)]
    {
        let (epsilon, delta) = target(1.0, delta);
        let event_at = |scale| {
            let event = Box::new(DpEvent::Laplace { scale, sensitivity: 1.0 });
            DpEvent::SelfComposed { event, count: steps }
        };
        check(
            format!("laplace {steps}"),
            &|| Calibration::new(epsilon, delta).least_scale(event_at).unwrap().value,
            most,
        );
    }
    for (rate, steps, most) in [(0.5, 5, 1e-9), (0.05, 5, 1e-9), (0.01, 10, 1e-9), (1e-3, 100, 1e-3)] {
        let (epsilon, delta) = target(1.0, 1e-6);
        let rate = SamplingRate::new(rate).unwrap();
        let search = || Calibration::new(epsilon, delta).dp_sgd_noise_multiplier(rate, steps).unwrap().value;
        check(format!("{rate:?} {steps}"), &search, most);
    }
    let (epsilon, delta) = target(1.0, 1e-6);
    let steps = || {
        Calibration::new(epsilon, delta)
            .dp_sgd_steps(NoiseMultiplier::new(1.3).unwrap(), SamplingRate::new(0.05).unwrap())
            .unwrap()
            .value as f64
    };
    check("steps".to_owned(), &steps, 1e-9);
}

/// Epsilon is zero at the result of the coarse search, and says nothing about the distance: the search started anew from far away.
#[test]
fn a_second_search_begins_near_the_result_of_the_first() {
    let (epsilon, delta) = target(0.010_804_873_455, 0.006_696_321_020_7);
    let rate = SamplingRate::new(0.003_753_668_113_98).unwrap();
    let search = || Calibration::new(epsilon, delta).dp_sgd_noise_multiplier(rate, 15).unwrap().value;
    // 0.780498 without a limit.
    let found = work::limited(work::USUAL, search);
    assert!(found.value > 0.7804 && found.value < 0.7806, "{found:?}");
}

#[test]
fn the_last_evaluations_within_a_limit_are_not_the_coarsest() {
    let (epsilon, delta) = target(1e-3, 1e-15);
    let rate = SamplingRate::new(1e-6).unwrap();
    let search = || Calibration::new(epsilon, delta).dp_sgd_noise_multiplier(rate, 1_000_000).unwrap().value;
    // 6.5447 without a limit, and more than 28 if the first evaluations take all of it.
    let found = work::limited(work::USUAL, search);
    assert!(found.is_short && found.value < 6.6, "{found:?}");
}
