use super::*;
use crate::gaussian;
use crate::normal::upper_tail;
use core::cell::{Cell, RefCell};

/// Returns the exact pairs of errors of `N(0, 1)` against `N(mu, 1)`, by the test with threshold `t`.
fn gaussian_errors(mu: f64, threshold: f64) -> (f64, f64) {
    (upper_tail(threshold), upper_tail(mu - threshold))
}

#[test]
fn the_gaussian_curve_is_met_from_below() {
    for mu in [0.05, 0.4, 1.0, 3.0, 8.0] {
        for i in -16..=24 {
            let (type_one, exact) = gaussian_errors(mu, 0.25 * f64::from(i));
            let evaluations = Cell::new(0);
            let got = type_two_error(type_one, |epsilon| {
                evaluations.set(evaluations.get() + 1);
                gaussian::delta(mu, epsilon)
            })
            .unwrap();
            assert!(got <= exact * (1.0 + 1e-12) + 1e-15, "{mu} {type_one}: {got} above {exact}");
            assert!(got >= exact - 1e-9 * (1.0 - exact).min(exact) - 1e-14, "{mu} {type_one}: {got} {exact}");
            assert!(evaluations.get() < 60, "{}", evaluations.get());
        }
    }
}

#[test]
fn one_pair_gives_the_known_polygon() {
    let (epsilon, delta): (f64, f64) = (0.7, 0.01);
    let curve = TradeOff::from_pairs(&[(epsilon, delta)]).unwrap();
    let corner = (1.0 - delta) / (1.0 + epsilon.exp());
    for (type_one, expected) in [
        (0.0, 1.0 - delta),
        (0.1, 1.0 - delta - 0.1 * epsilon.exp()),
        (corner, corner),
        (0.9, (1.0 - delta - 0.9) * (-epsilon).exp()),
        (1.0, 0.0),
    ] {
        let got = curve.type_two_error(type_one).unwrap();
        assert!((got - expected).abs() < 1e-14 && got <= expected, "{type_one}: {got} {expected}");
    }
}

/// If a delta that does not decrease is close to 1, the curve is still above zero.
/// What fails with some probability keeps a delta at every epsilon: the range of the curve ends where delta stops falling.
#[test]
fn a_curve_with_a_failure_is_met_from_below() {
    for (epsilon, delta) in [(1.0f64, 0.01), (1.0, 1e-8), (3.0, 1e-4)] {
        let curve = TradeOff::new(|at| Ok(delta + (1.0 - delta) * pure_delta(epsilon, at)), 400).unwrap();
        for i in 1..20 {
            let type_one = f64::from(i) / 20.0;
            let steep = 1.0 - delta - epsilon.exp() * type_one;
            let exact = steep.max((1.0 - delta - type_one) * (-epsilon).exp()).max(0.0);
            let found = curve.type_two_error(type_one).unwrap();
            assert!(found <= exact * (1.0 + 1e-12) && found >= exact - 6e-3, "{epsilon} {type_one}: {found} {exact}");
        }
    }
    let gaussian = TradeOff::new(|at| Ok(1e-8 + (1.0 - 1e-8) * gaussian::delta(1.0, at)?), 400).unwrap();
    let (type_one, exact) = gaussian_errors(1.0, 0.5);
    assert!((gaussian.type_two_error(type_one).unwrap() - exact).abs() < 1e-3);
}

/// Delta of randomised response.
fn pure_delta(epsilon: f64, at: f64) -> f64 {
    ((epsilon.exp() - at.exp()) / (1.0 + epsilon.exp())).max(0.0)
}

#[test]
fn a_delta_that_never_falls_leaves_the_whole_polygon() {
    let (epsilon, delta): (f64, f64) = (0.3, 0.01);
    let delta_at = |at: f64| Ok(if at >= epsilon { delta } else { 1.0 });
    for type_one in [0.95, 0.985, 0.9878, 0.9899] {
        let expected = (1.0 - delta - type_one) * (-epsilon).exp();
        let found = type_two_error(type_one, delta_at).unwrap();
        assert!(found <= expected && found >= expected * (1.0 - 1e-6) - 1e-15, "{type_one}: {found}, {expected}");
    }
    for type_one in [0.99, 0.995, 1.0] {
        assert_eq!(type_two_error(type_one, delta_at).unwrap(), 0.0);
    }
}

#[test]
fn a_sampled_curve_is_below_the_searched_one_and_near() {
    let delta_at = |epsilon| gaussian::delta(1.3, epsilon);
    let curve = TradeOff::new(delta_at, 400).unwrap();
    let mut before = 1.0;
    for point in curve.points(101).unwrap() {
        let exact = type_two_error(point.type_one, delta_at).unwrap();
        assert!(point.type_two <= exact + 1e-12 && point.type_two >= exact - 2e-5, "{point:?} {exact}");
        assert!(point.type_two <= before, "{point:?}");
        before = point.type_two;
    }
}

#[test]
fn ends_and_refusals() {
    let nothing = |_| Ok(0.0);
    let everything = |_| Ok(1.0);
    for type_one in [0.0, 1e-300, 0.3, 1.0] {
        let got = type_two_error(type_one, nothing).unwrap();
        assert!((got - (1.0 - type_one)).abs() < 1e-5 && got <= 1.0 - type_one, "{type_one}: {got}");
        assert_eq!(type_two_error(type_one, everything).unwrap(), 0.0);
        assert_eq!(type_two_error(type_one, |_| Ok(f64::NAN)).unwrap(), 0.0);
    }
    assert!(type_two_error(-0.1, nothing).is_err() && type_two_error(f64::NAN, nothing).is_err());
    assert!(type_two_error(0.1, |_| Err(Error::TooDeep { limit: 1 })).is_err());
    assert!(TradeOff::from_pairs(&[]).is_err() && TradeOff::from_pairs(&[(f64::NAN, 0.0)]).is_err());
    assert!(TradeOff::from_pairs(&[(1.0, 1.5)]).is_err() && TradeOff::from_pairs(&[(-1.0, 0.5)]).is_err());
    assert_eq!(TradeOff::from_pairs(&[(f64::INFINITY, 0.0)]).unwrap().type_two_error(0.5).unwrap(), 0.0);
    assert!(TradeOff::new(nothing, 0).is_err() && TradeOff::new(nothing, 1).unwrap().points(1).is_err());
}

/// Every value of a search is valid, so that a search cut short by the limit gives a bound, though a weaker one.
#[test]
fn searches_end_with_the_work_and_what_they_found_holds() {
    let calls = Cell::new(0);
    let delta_at = |epsilon: f64| {
        calls.set(calls.get() + 1);
        work::charge(1e6);
        gaussian::delta(1.0, epsilon)
    };
    let mut ended = 0;
    for rate in [1e-6, 1e-3, 0.05, 0.2, 0.6] {
        let whole = type_two_error(rate, delta_at).unwrap();
        let all = calls.replace(0);
        let short = work::limited(1.0, || type_two_error(rate, delta_at).unwrap());
        let few = calls.replace(0);
        assert!(short.is_short == (few < all) && few <= all && few <= FEWEST_STEPS + 6, "{few} of {all}");
        ended += u32::from(few < all);
        assert!(short.value <= whole && short.value >= whole - 0.1, "{} {whole}", short.value);
    }
    for factor in [0.5, 3.0] {
        let whole = crate::semantics::of_curve::odds_beyond(factor, delta_at).unwrap();
        let short = work::limited(1.0, || crate::semantics::of_curve::odds_beyond(factor, delta_at).unwrap());
        assert!(short.value >= whole && short.value <= 2.0 * whole, "{} {whole}", short.value);
        ended += u32::from(short.is_short);
    }
    assert!(ended >= 3, "{ended}");
}

/// The range of a curve is found by bisection, in few evaluations, and agrees with the range found by doubling.
#[test]
fn the_range_of_a_curve_is_found_in_few_evaluations() {
    for mu in [1e-3, 0.1, 1.0, 30.0, 1000.0] {
        let asked = RefCell::new(Vec::new());
        let delta_at = |epsilon: f64| {
            asked.borrow_mut().push(epsilon);
            gaussian::delta(mu, epsilon)
        };
        TradeOff::new(delta_at, 2).unwrap();
        let mut end = 1e-6;
        while end < LARGEST_EPSILON && gaussian::delta(mu, end).unwrap() > 1e-9 {
            end *= 2.0;
        }
        let asked = asked.into_inner();
        assert!(asked.len() <= 8 && asked.last() == Some(&end), "{mu}: {asked:?}, {end}");
    }
}
