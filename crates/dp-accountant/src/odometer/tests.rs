use super::*;
use crate::adjacency::{AddRemoveOne, ReplaceOne};
use crate::zcdp;

/// Returns the largest mean of `(1 - e^(shown - loss))_+` over all adversaries that adaptively choose releases from a menu and
/// stop at any time: by the theorem, at most delta.
fn worst(odometer: &RdpOdometer<ReplaceOne>, menu: &[f64], loss: f64, rounds: u32) -> f64 {
    let mut best = (-(odometer.epsilon() - loss).exp_m1()).max(0.0);
    if rounds == 0 {
        return best;
    }
    for &epsilon in menu {
        let mut after = odometer.clone();
        after.record(&DpEvent::PureDp { epsilon }, 1).unwrap();
        let p = epsilon.exp() / (1.0 + epsilon.exp());
        let value = p * worst(&after, menu, loss + epsilon, rounds - 1)
            + (1.0 - p) * worst(&after, menu, loss - epsilon, rounds - 1);
        best = best.max(value);
    }
    best
}

#[test]
fn no_adversary_beats_the_running_bound() {
    let orders = [2.0, 4.0, 8.0].map(|order| RdpOrder::new(order).unwrap());
    for delta in [0.3, 0.05] {
        let odometer = RdpOdometer::with_orders(Delta::new(delta).unwrap(), &orders).unwrap();
        let value = worst(&odometer, &[0.2, 0.5, 1.0], 0.0, 6);
        assert!(value <= delta && value > 0.0, "{delta}: {value}");
    }
}

#[test]
fn the_price_of_not_fixing_the_costs_is_as_stated() {
    let delta = Delta::new(1e-6).unwrap();
    for rho in [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0] {
        let mut odometer = ZcdpOdometer::<AddRemoveOne>::new(delta).unwrap();
        odometer.record(&DpEvent::Zcdp { rho }, 1).unwrap();
        let fixed = zcdp::epsilon(rho, delta).unwrap();
        let price = odometer.epsilon() / fixed - 1.0;
        assert!(price > 0.0 && price < 0.165, "{rho}: {price}");
    }
}

#[test]
fn renyi_and_zcdp_agree_on_gaussians() {
    let delta = Delta::new(1e-8).unwrap();
    let mut renyi = RdpOdometer::<ReplaceOne>::new(delta).unwrap();
    let mut concentrated = ZcdpOdometer::<ReplaceOne>::new(delta).unwrap();
    assert_eq!((renyi.epsilon(), concentrated.epsilon()), (0.0, 0.0));
    let mut before = 0.0;
    for std_dev in [50.0, 3.0, 20.0, 1.0, 0.1] {
        let event = DpEvent::Gaussian { std_dev, sensitivity: 1.0 };
        renyi.record(&event, 3).unwrap();
        concentrated.record(&event, 3).unwrap();
        let (left, right) = (renyi.epsilon(), concentrated.epsilon());
        assert!((left / right - 1.0).abs() < 1e-12 && left > before, "{left} {right} {before}");
        before = left;
    }
}

#[test]
fn what_cannot_be_recorded_leaves_no_trace_and_no_guarantee_is_infinite() {
    let mut odometer = RdpOdometer::<ReplaceOne>::new(Delta::new(1e-6).unwrap()).unwrap();
    odometer.record(&DpEvent::PureDp { epsilon: 0.5 }, 1).unwrap();
    let before = odometer.clone();
    assert!(odometer.record(&DpEvent::ApproximateDp { epsilon: 1.0, delta: 1e-9 }, 1).is_err());
    assert!(odometer.record(&DpEvent::PureDp { epsilon: f64::NAN }, 1).is_err());
    assert_eq!(odometer, before);
    assert_eq!(odometer.epsilon(), 0.5);
    odometer.record(&DpEvent::NonPrivate, 1).unwrap();
    assert_eq!(odometer.epsilon(), f64::INFINITY);
    let mut pure = RdpOdometer::<ReplaceOne>::new(Delta::ZERO).unwrap();
    pure.record(&DpEvent::PureDp { epsilon: 0.25 }, 4).unwrap();
    assert_eq!(pure.epsilon(), 1.0);
}
