//! The exact curve as a whole.

use super::*;
use crate::rdp::RdpCurve;

fn repeated(event: DpEvent, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(event), count }
}

fn sampled(sampling_rate: f64, std_dev: f64, count: u64) -> DpEvent {
    let event = Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 });
    repeated(DpEvent::PoissonSampled { sampling_rate, event }, count)
}

fn epsilon_of(event: &DpEvent, delta: f64) -> Bracket {
    epsilon(event, Delta::new(delta).unwrap()).unwrap()
}

#[test]
fn each_tree_has_its_engine() {
    let gaussian = DpEvent::Gaussian { std_dev: 3.0, sensitivity: 1.0 };
    let laplace = DpEvent::Laplace { scale: 10.0, sensitivity: 1.0 };
    let pure = DpEvent::PureDp { epsilon: 0.1 };
    let mixed = DpEvent::Composed { events: vec![repeated(gaussian.clone(), 5), repeated(laplace.clone(), 3)] };
    let unlike = DpEvent::Composed { events: vec![repeated(pure.clone(), 9), DpEvent::PureDp { epsilon: 0.234 }] };
    for (event, engine) in [
        (repeated(gaussian, 7), Engine::ClosedForm),
        (laplace, Engine::ClosedForm),
        (repeated(pure, 100), Engine::ClosedForm),
        (sampled(0.1, 2.0, 1), Engine::ClosedForm),
        (sampled(0.01, 1.0, 10_000), Engine::Contour),
        (mixed, Engine::Contour),
        (unlike, Engine::LossDistribution),
    ] {
        let bracket = epsilon_of(&event, 1e-6);
        assert_eq!(bracket.engine, engine, "{event:?}");
        assert!(bracket.lower <= bracket.upper && bracket.upper - bracket.lower < 1e-3 * bracket.upper, "{bracket:?}");
        let renyi = RdpCurve::new(&event).unwrap().epsilon(Delta::new(1e-6).unwrap());
        assert!(bracket.lower <= renyi, "{event:?}: {bracket:?} {renyi}");
        let delta = delta(&event, bracket.upper).unwrap();
        assert!(delta.lower <= 1e-6 * (1.0 + 1e-9) && delta.upper >= 1e-6 * (1.0 - 1e-2), "{event:?}: {delta:?}");
    }
}

#[test]
fn failures_are_added_to_the_rest() {
    let approximate = DpEvent::ApproximateDp { epsilon: 0.5, delta: 1e-6 };
    // Its exact curve: (e^0.5 - e^0.2) over (1 + e^0.5), and the failure.
    let d = 1e-6;
    let expected = d + (1.0 - d) * (0.5f64.exp() - 0.2f64.exp()) / (1.0 + 0.5f64.exp());
    let got = delta(&approximate, 0.2).unwrap();
    assert!(got.lower <= expected && expected <= got.upper && got.upper - got.lower < 1e-12, "{got:?} {expected}");
    // Infinite below its delta, its epsilon at its delta, smaller above it.
    assert_eq!(epsilon_of(&approximate, 0.9e-6).lower, f64::INFINITY);
    let at = epsilon_of(&approximate, 1e-6);
    assert!(at.upper <= 0.5 * (1.0 + 1e-12) && at.upper >= 0.5, "{at:?}");
    assert!(epsilon_of(&approximate, 1e-2).upper < 0.5);
    // Together with many sampled Gaussians.
    let both = DpEvent::Composed { events: vec![sampled(0.01, 2.0, 1000), approximate] };
    let (alone, together) = (epsilon_of(&sampled(0.01, 2.0, 1000), 1e-5), epsilon_of(&both, 1e-5));
    assert!(together.lower > alone.upper && together.upper < alone.upper + 0.6, "{alone:?} {together:?}");
    assert!(together.upper - together.lower < 1e-8, "{together:?}");
}

#[test]
fn the_edges() {
    let zero = Delta::ZERO;
    for event in [DpEvent::NoOp, repeated(DpEvent::PureDp { epsilon: 0.0 }, 9)] {
        let curve = PrivacyCurve::new(&event).unwrap();
        assert_eq!(curve.epsilon(zero).unwrap().upper, 0.0);
        assert_eq!(curve.delta(0.0).unwrap().upper, 0.0);
    }
    let curve = PrivacyCurve::new(&DpEvent::NonPrivate).unwrap();
    assert_eq!(curve.epsilon(Delta::new(0.5).unwrap()).unwrap().lower, f64::INFINITY);
    assert_eq!(curve.delta(5.0).unwrap().lower, 1.0);
    for epsilon in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(curve.delta(epsilon).is_err());
    }
    assert_eq!(epsilon_of(&sampled(0.1, 1.0, 100), 0.0).upper, f64::INFINITY);
    let laplace = repeated(DpEvent::Laplace { scale: 8.0, sensitivity: 1.0 }, 40);
    let at_zero = epsilon_of(&laplace, 0.0);
    assert!((at_zero.upper - 5.0).abs() < 1e-9 && at_zero.lower <= 5.0, "{at_zero:?}");
    assert_eq!(delta(&laplace, 5.1).unwrap().upper, 0.0);
    assert!(matches!(PrivacyCurve::new(&DpEvent::Zcdp { rho: 0.1 }), Err(Error::Unsupported { event: "zcdp", .. })));
    // At epsilon = 0, delta is the total variation distance.
    let none = delta(&sampled(0.5, 2.0, 60), 0.0).unwrap();
    assert!(none.upper - none.lower < 1e-9 && none.upper < 1.0 && none.lower > 0.1, "{none:?}");
}

#[test]
fn many_unlike_steps_and_their_order() {
    let steps: Vec<DpEvent> =
        (0..200u32).map(|i| sampled(0.01 + 1e-5 * f64::from(i), 1.0 + 0.01 * f64::from(i), 20)).collect();
    let backwards = steps.iter().rev().cloned().collect();
    let (one, two) = (DpEvent::Composed { events: steps }, DpEvent::Composed { events: backwards });
    let (one, two) = (epsilon_of(&one, 1e-6), epsilon_of(&two, 1e-6));
    assert_eq!((one.lower, one.upper), (two.lower, two.upper));
    assert!(one.upper - one.lower < 1e-9 * one.upper, "{one:?}");
}

#[test]
fn a_schedule_of_one_kind_is_that_kind() {
    let parts = DpEvent::Composed { events: vec![sampled(0.02, 1.3, 400), sampled(0.02, 1.3, 600)] };
    let (split, whole) = (epsilon_of(&parts, 1e-6), epsilon_of(&sampled(0.02, 1.3, 1000), 1e-6));
    assert!((split.upper - whole.upper).abs() < 1e-11, "{split:?} {whole:?}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    #[test]
    fn never_above_the_renyi_bound(
        log_rate in -7.0f64..-0.1, log_sigma in -0.7f64..3.0, count in 100u64..100_000, log_delta in -60.0f64..-1.0,
    ) {
        let event = sampled(log_rate.exp(), log_sigma.exp(), count);
        let delta = Delta::new(log_delta.exp()).unwrap();
        let renyi = RdpCurve::new(&event).unwrap().epsilon(delta);
        let contour = Contour::new(&leaves(&event, 1).unwrap()).unwrap();
        let log_delta = delta.get().ln();
        if let Some(ends) = contour.epsilon(log_delta, log_delta) {
            proptest::prop_assert!(ends.lower <= renyi * (1.0 + 1e-9) + 1e-12, "{:?} {}", ends, renyi);
            // The line's own Chernoff bound caps the upper end; the Renyi bound searches for a better line.
            let capped = ends.upper <= renyi * 1.2 + 1e-2;
            proptest::prop_assert!(capped, "{:?} {}", ends, renyi);
        }
    }
}

/// Few steps at a small rate, rare losses, little noise: the Renyi curve bounds what the engines leave open.
#[test]
fn no_upper_end_is_above_the_renyi_bound() {
    for (rate, std_dev, count, delta) in [
        (1e-9, 0.3, 3, 1e-12),
        (1e-3, 0.5, 2, 1e-7),
        (0.5, 0.02, 2, 1e-5),
        (0.3, 0.01, 50, 1e-9),
        (1e-3, 100.0, 1000, 1e-12),
    ] {
        let event = sampled(rate, std_dev, count);
        let bracket = epsilon_of(&event, delta);
        let renyi = RdpCurve::new(&event).unwrap().epsilon(Delta::new(delta).unwrap());
        assert!(bracket.upper <= renyi * (1.0 + 1e-12), "{rate} {std_dev} {count}: {bracket:?} {renyi}");
        assert!(bracket.lower <= bracket.upper);
    }
}

proptest::proptest! {
    // A tenth of the usual number: the second engine takes up to a second each time.
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(
        proptest::prelude::ProptestConfig::default().cases / 10 + 1
    ))]

    /// Two independently implemented engines: their intervals intersect, and the Renyi bound is above both lower ends.
    #[test]
    fn the_engines_agree(
        log_rate in -16.0f64..-0.1,
        log_std_dev in -1.2f64..3.0,
        log_count in 0.7f64..9.0,
        log_delta in -40.0f64..-3.0,
    ) {
        let event = sampled(log_rate.exp(), log_std_dev.exp(), log_count.exp() as u64);
        let leaves = leaves(&event, 1).unwrap();
        let renyi = renyi_epsilon(&leaves, log_delta).upper;
        let contour = Contour::new(&leaves).unwrap().epsilon(log_delta, log_delta);
        let contour = contour.unwrap_or(Ends { lower: 0.0, upper: f64::INFINITY });
        let (lower, upper) = Composed::new(&leaves).unwrap().epsilon(log_delta);
        let slack = 1.0 + 1e-12;
        proptest::prop_assert!(lower <= upper * slack, "{lower} {upper}");
        proptest::prop_assert!(contour.lower <= upper * slack && lower <= contour.upper * slack,
            "{contour:?} {lower} {upper}");
        proptest::prop_assert!(lower <= renyi * slack && contour.lower <= renyi * slack, "{contour:?} {lower} {renyi}");
    }
}

/// Many releases of one of several laws.
fn of_kind(kind: usize, size: f64, count: u64) -> DpEvent {
    match kind {
        0 => sampled(0.02, size, count),
        1 => repeated(DpEvent::Laplace { scale: 4.0 * size, sensitivity: 1.0 }, count),
        2 => repeated(DpEvent::LaplaceBall { scale: size, sensitivity: 1.0, dim: 30 }, count),
        3 => repeated(DpEvent::DiscreteGaussian { scale: 3.0 * size, sensitivity: 1.0, dim: 1 }, count),
        4 => repeated(DpEvent::Shuffled { epsilon: 1.0, records: 5000 }, count),
        _ => DpEvent::Composed {
            events: vec![sampled(0.1, size, count), repeated(DpEvent::PureDp { epsilon: 0.3 / size }, 2)],
        },
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(
        proptest::prelude::ProptestConfig::default().cases / 10 + 1
    ))]

    /// For every limit, the interval contains the unlimited one, and the same limit gives the same interval.
    #[test]
    fn a_limit_widens_and_stays_certain(
        kind in 0usize..6, size in 0.7f64..4.0, count in 1u64..40, log_limit in 0.0f64..19.0, log_delta in -25.0f64..-1.0,
    ) {
        let event = of_kind(kind, size, count);
        let delta = Delta::new(log_delta.exp()).unwrap();
        let limit = if log_limit < 1.0 { 0.0 } else { log_limit.exp() };
        let whole = epsilon(&event, delta).unwrap();
        let hurried = crate::work::limited(limit, || epsilon(&event, delta));
        proptest::prop_assert_eq!(&hurried, &crate::work::limited(limit, || epsilon(&event, delta)));
        let slack = 1.0 + 1e-12;
        let found = hurried.value.unwrap();
        proptest::prop_assert!(found.lower <= found.upper, "{:?}", found);
        proptest::prop_assert!(found.lower <= whole.upper * slack && whole.lower <= found.upper * slack,
            "{:?} {:?}", found, whole);
        let at = whole.upper.min(50.0);
        let (whole, found) = (super::delta(&event, at).unwrap(), crate::work::limited(limit, || super::delta(&event, at)));
        let found = found.value.unwrap();
        proptest::prop_assert!(found.lower <= whole.upper * slack && whole.lower <= found.upper * slack,
            "{:?} {:?}", found, whole);
    }
}

/// Results of one curve, the later of which use cached compositions, compared with those of fresh curves.
#[test]
fn later_questions_about_a_curve_are_answered_as_fresh_ones() {
    for (kind, size, count) in [(0, 1.0, 3), (1, 2.5, 10), (2, 2.0, 10)] {
        let event = of_kind(kind, size, count);
        let curve = PrivacyCurve::new(&event).unwrap();
        // Enough fresh compositions to exceed the patience.
        for i in 1..=12 {
            curve.delta(0.03 * f64::from(i)).unwrap();
        }
        for at in [0.045, 0.1, 0.21, 0.33] {
            let (kept, fresh) = (curve.delta(at).unwrap(), delta(&event, at).unwrap());
            assert!(kept.lower <= fresh.upper && fresh.lower <= kept.upper, "{kind} {at}: {kept:?} {fresh:?}");
            assert!(kept.upper <= fresh.upper * (1.0 + 1e-2), "{kind} {at}: {kept:?} {fresh:?}");
        }
        for log_delta in [-12.0, -9.1, -7.7, -5.0] {
            let delta = Delta::new(f64::exp(log_delta)).unwrap();
            let (kept, fresh) = (curve.epsilon(delta).unwrap(), epsilon(&event, delta).unwrap());
            assert!(kept.lower <= fresh.upper && fresh.lower <= kept.upper, "{kind} {log_delta}: {kept:?} {fresh:?}");
        }
    }
}

/// Evaluations that took tens of seconds when each point of a curve was composed anew.
#[test]
fn curves_take_a_bounded_count_of_work() {
    use crate::trade_off::TradeOff;
    for (kind, size, count) in [(0, 1.0, 3), (1, 2.5, 10)] {
        let curve = PrivacyCurve::new(&of_kind(kind, size, count)).unwrap();
        let delta_at = |epsilon: f64| curve.delta(epsilon).map(|delta| delta.upper.min(1.0));
        let points = crate::work::limited(f64::INFINITY, || TradeOff::new(delta_at, 400));
        assert!(points.value.is_ok() && points.spent < 2.0 * crate::work::USUAL, "{kind}: {:e}", points.spent);
    }
}
