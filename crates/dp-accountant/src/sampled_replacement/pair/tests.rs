use super::*;
use crate::error::Error;
use crate::event::DpEvent;
use crate::exact::PrivacyCurve;
use crate::exact::single_step;
use crate::loss_law::{Direction, Law, LossLaw};
use crate::params::{Delta, RdpOrder};
use crate::rounding::div_up;

fn pairs() -> Vec<(f64, f64, f64)> {
    let mut all = Vec::new();
    for rate in [1e-6, 0.01, 0.3, 0.5, 0.9, 1.0 - 1e-9] {
        for mu in [1e-3, 0.1, 0.7, 2.0, 9.0] {
            all.extend([0.5, 0.500_1, 0.607, 0.9, 1.0].map(|radius| (rate, mu, radius)));
        }
    }
    all
}

#[test]
fn places_are_where_the_loss_is_what_was_asked_for() {
    for (rate, mu, radius) in pairs() {
        let pair = Pair::new(rate, mu, radius);
        for loss in [0.0, 1e-9, 1e-3, 0.1, 1.0, 7.0, 30.0, 200.0] {
            let error = LossLaw::threshold_error(&pair, loss);
            assert!(error <= 1e-12 * (1.0 + loss + mu), "{pair:?} at {loss}: {error}");
            let at = LossLaw::tails(&pair, loss);
            assert!(
                (at.p_above + at.p_below - 1.0).abs() < 1e-14 && at.p_above >= at.q_above,
                "{pair:?} {loss}: {at:?}"
            );
        }
        // Both halves of the dominating law.
        let above = match pair.law() {
            Law::Known(law) | Law::Between { above: law, .. } => law,
            Law::Bounded(_) => panic!("a law is known"),
        };
        let positive = above.tails(0.0).p_above;
        assert!(positive + above.tails(-1e-300).p_below <= 1.0 + 1e-12, "no negative mass at the loss 0: {pair:?}");
        for loss in [1e-3, 0.2, 3.0] {
            let (here, there) = (above.tails(loss), above.tails(-loss));
            assert!((here.p_above - there.q_below).abs() <= 1e-15 + 1e-12 * here.p_above);
            assert!(here.p_above >= f64::exp(loss) * here.q_above * (1.0 - 1e-12), "{pair:?}: {here:?}");
        }
    }
}

/// The curve compared with an integral over the line without cancellation.
#[test]
fn the_curve_agrees_with_its_integral_and_its_ends_enclose_it() {
    for (rate, mu, radius) in pairs() {
        if mu < 0.01 {
            continue;
        }
        let pair = Pair::new(rate, mu, radius);
        for epsilon in [0.0, 0.03, 0.4, 2.0] {
            let ends = pair.log_delta(epsilon);
            let start = pair.place(epsilon);
            let found = crate::quadrature::integrate(start, (start + 12.0).max(pair.up + 12.0), 60, 1e-13, |x| {
                let Point { loss, log_above, .. } = pair.at(x);
                crate::normal::density(x) * log_above.exp() * -(epsilon - loss).min(0.0).exp_m1()
            });
            assert!(ends.lower <= found.upper().ln() + 1e-12, "{pair:?} at {epsilon}: {ends:?} {found:?}");
            assert!(ends.upper >= found.lower().ln() - 1e-12, "{pair:?} at {epsilon}: {ends:?} {found:?}");
            if found.value > 1e-14 {
                assert!(ends.upper - found.value.ln() < 1e-4, "{pair:?} at {epsilon}: {ends:?} {}", found.value.ln());
            }
            // It is at most the curve for a known distance alone, and it grows with the radius.
            assert!(ends.upper <= single_step::log_delta(rate, mu.next_up(), epsilon).upper + 1e-12);
            let wider = Pair::new(rate, mu, (1.1 * radius).min(1.0)).log_delta(epsilon).upper;
            assert!(ends.lower <= wider + 1e-12, "{pair:?}");
        }
    }
}

#[test]
fn epsilon_inverts_delta() {
    for (rate, mu, radius) in pairs() {
        let pair = Pair::new(rate, mu, radius);
        for log_delta in [-1.0, -5.0, -12.0, -40.0, -300.0f64] {
            let ends = pair.epsilon(log_delta, log_delta);
            assert!(ends.lower <= ends.upper && ends.upper.is_finite(), "{pair:?} at {log_delta}: {ends:?}");
            assert!(pair.log_delta(ends.upper).upper <= log_delta + 1e-9 * log_delta.abs(), "{pair:?} {ends:?}");
        }
    }
}

#[test]
fn the_least_orders_and_the_largest_are_no_exception() {
    for (rate, mu, radius) in pairs() {
        let pair = Pair::new(rate, mu, radius);
        let mut before = 0.0;
        for order in [1.0, 1.0 + 1e-9, 1.001, 1.5, 2.0, 8.0, 100.0, 1e4, 1e8] {
            let divergence = Moments::new(&pair).rdp(order);
            // The convexity bounds join the integral from above.
            assert!(divergence >= before * (1.0 - 1e-9), "{pair:?} at {order}: {divergence} after {before}");
            assert!(divergence <= 0.5 * order * mu * mu * (1.0 + 1e-12), "{pair:?} at {order}: {divergence}");
            before = divergence;
        }
    }
}

/// `E_B (A/B)^a` by fine sums; the curve prepared for many orders has the bits of single ones.
#[test]
fn orders_of_clipped_contributions() {
    let h = 1e-3;
    for (rate, mu, radius) in [(0.3, 1.7, 0.5), (0.01, 0.9, 0.5), (0.7, 0.3, 0.5), (0.2, 2.5, 0.8), (0.4, 1.0, 1.0)] {
        let pair = Pair::new(rate, mu, radius);
        let moments = Moments::new(&pair);
        for order in [7.0, 1.25, 2.0, 12.5, 1.0 + 1e-7, 3.0] {
            let excess = order - 1.0;
            // In this form orders near 1 have digits left.
            let mean_growth: f64 = (-20_000..=60_000)
                .map(|i| {
                    let x = f64::from(i) * h;
                    let Point { loss, log_above, .. } = pair.at(x);
                    let (log, growth) = (log_above - 0.5 * x * x - crate::normal::LN_SQRT_2_PI, excess * loss);
                    let grown = if growth < 30.0 { log.exp() * growth.exp_m1() } else { (log + growth).exp() };
                    grown / excess * h
                })
                .sum();
            let truth = (excess * mean_growth).ln_1p() / excess;
            let found = moments.rdp(order);
            assert!(found > truth * (1.0 - 1e-11), "{pair:?} {order}: {found} {truth}");
            // If B is not the mirror image of A, the curve is above that of the pair.
            assert!(found < truth * (1.0 + 1e-9) || radius > 0.5, "{pair:?} {order}: {found} {truth}");
            assert_eq!(found, Moments::new(&pair).rdp(order), "{pair:?} {order}");
        }
    }
}

#[test]
fn units() {
    let event = |std_dev: f64, distance: f64, radius: f64| DpEvent::PoissonSampledReplacement {
        sampling_rate: 0.01,
        std_dev,
        distance,
        radius,
    };
    let at = |event: &DpEvent| PrivacyCurve::new(event).unwrap().log_delta(0.1).unwrap().upper;
    // The same in other units; a radius below half the distance reduces the distance.
    assert_eq!(at(&event(3.0, 2.0, 1.0)), at(&event(1.5, 1.0, 0.5)));
    assert_eq!(at(&event(3.0, 2.0, 1.0)), at(&event(3.0, 100.0, 1.0)));
    assert!(matches!(PrivacyCurve::new(&event(3.0, 1.0, 1.1)), Err(Error::OutOfRange { name: "radius", .. })));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for event in [event(bad, 1.0, 1.0), event(1.0, bad, 1.0), event(1.0, 1.0, bad)] {
            assert!(PrivacyCurve::new(&event).is_err(), "{event:?}");
        }
    }
    // Rounded up.
    assert_eq!(Pair::new(0.5, div_up(1.0, 3.0), 1.0).mu(), (1.0f64 / 3.0).next_up());
}

#[test]
fn accountants_and_filters_take_it_in_place_and_where_they_know_it() {
    use crate::accountant::Accountant;
    use crate::adjacency::{AddRemoveOne, ChangeListLabels, ReplaceOne};
    use crate::exact::ExactAccountant;
    use crate::filter::{Filter, RdpFilter};
    use crate::params::Epsilon;
    use crate::rdp::RdpAccountant;
    use crate::zcdp::ZcdpAccountant;
    let step = DpEvent::PoissonSampledReplacement { sampling_rate: 0.01, std_dev: 1.5, distance: 1.0, radius: 0.8 };
    let delta = Delta::new(1e-4).unwrap();
    let (mut renyi, mut exact) = (RdpAccountant::<ChangeListLabels>::new(), ExactAccountant::<ChangeListLabels>::new());
    renyi.compose(&step, 200).unwrap();
    exact.compose(&step, 200).unwrap();
    let (loose, tight) = (renyi.epsilon(delta), exact.epsilon(delta));
    assert!(tight < loose && loose < 3.0 * tight, "{tight} {loose}");
    let mut filter =
        RdpFilter::<ReplaceOne>::new(Epsilon::new(2.0 * loose).unwrap(), delta, RdpOrder::new(20.0).unwrap()).unwrap();
    assert!(filter.spend(&step, 150).is_ok() && filter.spend(&step, 1_000_000).is_err());
    assert!(RdpAccountant::<AddRemoveOne>::new().compose(&step, 1).is_err());
    assert!(matches!(
        ZcdpAccountant::<ReplaceOne>::new().compose(&step, 1),
        Err(Error::Unsupported { event: "poisson-sampled-replacement", .. })
    ));
}

/// A threshold found once gives the tails and both errors that it gives when it is found for each: of the pair, of the dominating
/// pair, and of both reversed.
#[test]
fn thresholds_are_those_of_the_separate_questions() {
    for (rate, mu, radius) in pairs() {
        for direction in [Direction::Remove, Direction::Add] {
            let laws = match Pair::new(rate, mu, radius).law().directed(direction) {
                Law::Known(law) => vec![law],
                Law::Between { above, below, .. } => vec![above, below],
                Law::Bounded(_) => unreachable!("the pair is known"),
            };
            for law in laws {
                for loss in [-7.0, -1.0, -1e-3, 0.0, 1e-9, 0.1, 1.0, 30.0] {
                    let expected = (law.tails(loss), law.relative_error_at(loss), law.threshold_error(loss));
                    assert_eq!(law.threshold(loss), expected, "{law:?} at {loss}");
                }
            }
        }
    }
}
