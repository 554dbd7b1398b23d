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
        let hurried = work::limited(limit, || epsilon(&event, delta));
        proptest::prop_assert_eq!(&hurried, &work::limited(limit, || epsilon(&event, delta)));
        let slack = 1.0 + 1e-12;
        let found = hurried.value.unwrap();
        proptest::prop_assert!(found.lower <= found.upper, "{:?}", found);
        proptest::prop_assert!(found.lower <= whole.upper * slack && whole.lower <= found.upper * slack,
            "{:?} {:?}", found, whole);
        let at = whole.upper.min(50.0);
        let (whole, found) = (super::delta(&event, at).unwrap(), work::limited(limit, || super::delta(&event, at)));
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
        let points = work::limited(f64::INFINITY, || TradeOff::new(delta_at, 400));
        assert!(points.value.is_ok() && points.spent < 2.0 * work::USUAL, "{kind}: {:e}", points.spent);
    }
}

/// A mixture of two Gaussians from a Poisson sample, whose rare losses are far above the usual ones.
fn sampled_mixture(rate: f64, std_dev: f64) -> DpEvent {
    let (sensitivities, weights) = (vec![1.284_27, 1.157_68], vec![0.683_86, 0.316_14]);
    let event = Box::new(DpEvent::GaussianMixture { std_dev, sensitivities, weights });
    DpEvent::PoissonSampled { sampling_rate: rate, event }
}

/// The upper end is near 4.894 by integration. The lower end was that of the other direction, 0.873: the lower law of each
/// mixture had lost all rare losses.
#[test]
fn rare_losses_of_few_releases_have_both_ends() {
    let sampled_laplace = Box::new(DpEvent::Laplace { scale: 8.124_02, sensitivity: 0.321_81 });
    let event = DpEvent::Composed {
        events: vec![
            repeated(sampled_mixture(0.003_35, 0.674_75), 2),
            DpEvent::Laplace { scale: 4.100_19, sensitivity: 1.146_84 },
            DpEvent::Gaussian { std_dev: 2.648_39, sensitivity: 0.311_385 },
            DpEvent::PoissonSampled { sampling_rate: 0.004_126_23, event: sampled_laplace },
        ],
    };
    let found = epsilon_of(&event, 3.728_1e-9);
    assert!(found.lower > 4.89 && (4.894..4.8965).contains(&found.upper), "{found:?}");
    let at = delta(&event, 4.894).unwrap();
    assert!(at.lower > 0.99 * at.upper && at.lower < 3.74e-9 && at.upper > 3.72e-9, "{at:?}");
}

/// The curve of a sampled mixture and a Laplace release under removal, by quadrature over the Gaussians of the Laplace curve at
/// the rest of epsilon. Under addition losses are smaller here.
#[test]
fn rare_losses_by_quadrature() {
    let (std_dev, x) = (0.674_75, 0.28);
    let laplace = |epsilon: f64| match epsilon {
        epsilon if epsilon >= x => 0.0,
        epsilon if epsilon <= -x => -epsilon.exp_m1(),
        epsilon => -(0.5 * (epsilon - x)).exp_m1(),
    };
    for (rate, target) in [(3e-3, 3e-8), (1e-5, 1e-9), (0.05, 1e-6)] {
        let mu = |sensitivity: f64| sensitivity / std_dev;
        let curve = |epsilon: f64| -> f64 {
            let parts = [(mu(1.284_27), 0.683_86), (mu(1.157_68), 0.316_14)];
            let step = 5e-4;
            let part = |&(mu, weight): &(f64, f64)| {
                let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * core::f64::consts::PI).sqrt();
                let at = |x: f64| {
                    let loss = (rate * (mu * x - 0.5 * mu * mu).exp_m1()).ln_1p();
                    (rate * density(x - mu) + (1.0 - rate) * density(x)) * laplace(epsilon - loss)
                };
                weight * step * (-20_000..40_000).map(|k| at(f64::from(k) * step)).sum::<f64>()
            };
            parts.iter().map(part).sum()
        };
        let laplace = DpEvent::Laplace { scale: 1.0, sensitivity: x };
        let event = DpEvent::Composed { events: vec![sampled_mixture(rate, std_dev), laplace] };
        let found = epsilon_of(&event, target);
        assert!(found.upper - found.lower <= WIDE * found.upper, "{rate}: {found:?}");
        // Kinks of the Laplace curve make the quadrature's error about the square of the step.
        let (below, above) = (curve(found.lower), curve(found.upper));
        assert!(below >= target * (1.0 - 1e-5) && above <= target * (1.0 + 1e-5), "{rate}: {found:?} {below} {above}");
        let at = delta(&event, found.upper).unwrap();
        assert!(at.lower <= above * (1.0 + 1e-5) && above <= at.upper * (1.0 + 1e-5), "{rate}: {at:?} {above}");
    }
}

/// An aligned grid that is too fine must not discard the results of coarser ones.
#[test]
fn a_grid_that_fails_costs_nothing() {
    let sampled = |sampling_rate, event| DpEvent::PoissonSampled { sampling_rate, event: Box::new(event) };
    let (sensitivities, weights) = (vec![0.154_254, 0.276_865], vec![0.183_655_270_946_574_2, 0.816_344_729_053_425_8]);
    let event = DpEvent::Composed {
        events: vec![
            repeated(sampled(6.369_03e-4, DpEvent::Laplace { scale: 5.655_19, sensitivity: 0.435_039 }), 80),
            DpEvent::Gaussian { std_dev: 2.558_15, sensitivity: 0.308_867 },
            sampled(0.509_495, DpEvent::GaussianMixture { std_dev: 1.106_58, sensitivities, weights }),
            repeated(sampled(0.021_451_8, DpEvent::DiscreteLaplace { scale: 6.100_2, sensitivity: 2 }), 4),
        ],
    };
    let at = delta(&event, 0.456_31).unwrap();
    assert!(at.lower > 0.98 * at.upper && (4.5e-4..4.7e-4).contains(&at.upper), "{at:?}");
}

/// Far below the mean loss delta is nearly 1, which a tilt for so small an epsilon does not show.
#[test]
fn delta_below_the_usual_losses_is_nearly_one() {
    let gaussian = DpEvent::Gaussian { std_dev: 0.5, sensitivity: 1.0 };
    let event =
        DpEvent::Composed { events: vec![repeated(gaussian, 30_000), repeated(sampled_mixture(0.07, 4.0), 300)] };
    for epsilon in [0.0, 1.0, 50.0] {
        let at = delta(&event, epsilon).unwrap();
        assert!(at.lower > 1.0 - 1e-6 && at.upper >= at.lower, "{epsilon}: {at:?}");
    }
}

/// Without a guarantee at delta both ends are infinite; losses too large for a grid are bounded by the Renyi curve.
#[test]
fn infinite_and_huge_losses_have_both_ends() {
    let pair = DpEvent::DominatingPair { p: vec![0.9, 0.1, 0.0], q: vec![0.5, 0.0, 0.5] };
    let gaussian = DpEvent::Gaussian { std_dev: 3.0, sensitivity: 1.0 };
    let revealing = DpEvent::Composed { events: vec![pair, gaussian.clone()] };
    assert_eq!(epsilon_of(&revealing, 0.05).lower, f64::INFINITY);
    assert!(epsilon_of(&revealing, 0.6).upper.is_finite());
    let laplace = Box::new(DpEvent::Laplace { scale: 1e-7, sensitivity: 1.0 });
    let huge = DpEvent::PoissonSampled { sampling_rate: 0.5, event: laplace };
    let found = epsilon_of(&DpEvent::Composed { events: vec![huge, gaussian] }, 1e-6);
    assert!(found.lower > 0.0 && found.upper > 9e6 && found.upper < 1.1e7, "{found:?}");
}

/// A fixed sequence of numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 * 2f64.powi(-53)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + (high / low).ln() * self.unit()).exp()
    }

    fn release(&mut self) -> DpEvent {
        let sensitivity = self.between(0.1, 2.0);
        match (self.unit() * 6.0) as u64 {
            0 => DpEvent::Gaussian { std_dev: self.between(0.4, 8.0), sensitivity },
            1 => DpEvent::Laplace { scale: self.between(0.4, 10.0), sensitivity },
            2 => DpEvent::DiscreteLaplace { scale: self.between(0.5, 10.0), sensitivity: 2 },
            3 => DpEvent::DiscreteGaussian { scale: self.between(0.6, 5.0), sensitivity: 1.0, dim: 1 },
            _ => {
                let (std_dev, share) = (self.between(0.4, 2.0), self.unit());
                let (sensitivities, weights) = (vec![sensitivity, 0.3], vec![share, 1.0 - share]);
                DpEvent::GaussianMixture { std_dev, sensitivities, weights }
            }
        }
    }

    fn composition(&mut self) -> DpEvent {
        let parts = 2 + (self.unit() * 3.0) as usize;
        let part = |numbers: &mut Self| {
            let event = numbers.release();
            let sampled = numbers.unit() < 0.7;
            let sampling_rate = numbers.between(1e-4, 0.1);
            let event = if sampled { DpEvent::PoissonSampled { sampling_rate, event: Box::new(event) } } else { event };
            let count = if numbers.unit() < 0.7 { 1 } else { numbers.between(2.0, 50.0) as u64 };
            repeated(event, count)
        };
        DpEvent::Composed { events: (0..parts).map(|_| part(self)).collect() }
    }
}

#[test]
fn both_ends_of_random_compositions_are_close() {
    let mut numbers = Numbers(1);
    for _ in 0..25 {
        let event = numbers.composition();
        let target = numbers.between(1e-12, 1e-3);
        let found = epsilon_of(&event, target);
        let width = found.upper - found.lower;
        assert!((0.0..=3e-3 * found.upper).contains(&width), "{target} {event:?}: {found:?}");
        let at = delta(&event, 0.9 * found.upper).unwrap();
        assert!(at.upper >= target && at.lower <= at.upper && at.upper <= at.lower * 1.1, "{target} {event:?}: {at:?}");
    }
}

/// Shifts of several releases with noise in a ball are covered by one shift as long as all of them together.
#[test]
fn a_ball_covers_shifts_that_are_spread_over_releases() {
    let ball = |sensitivity: f64, dim| DpEvent::LaplaceBall { scale: 1.0, sensitivity, dim };
    for dim in [1, 2, 3, 10, 100] {
        for shift in [0.1, 1.0, 4.0] {
            let whole = PrivacyCurve::new(&ball(shift, dim)).unwrap();
            for shares in [vec![0.5, 0.5], vec![0.9, 0.1], vec![0.25; 4]] {
                let events = shares.iter().map(|share| ball(share * shift, dim)).collect();
                let spread = PrivacyCurve::new(&DpEvent::Composed { events }).unwrap();
                for share in [0.0, 0.1, 0.3, 0.6, 0.9] {
                    let epsilon = share * shift * (6.0 / (dim as f64).sqrt()).min(1.0);
                    let (one, all) = (whole.delta(epsilon).unwrap(), spread.delta(epsilon).unwrap());
                    assert!(
                        all.lower <= one.upper * (1.0 + 1e-9),
                        "{dim} {shift} {shares:?} {epsilon}: {all:?} {one:?}"
                    );
                }
            }
        }
    }
}
