use proptest::prelude::*;

use super::*;
use crate::golden;

#[test]
fn golden_gradient_differences() {
    for case in golden::erm_cases("grad_diff_logistic") {
        let got = logistic_gradient_difference(case["in"]["radius"].as_f64().unwrap());
        golden::assert_close(&case["id"], "grad_diff", got, &case["out"]["grad_diff"], case["rtol"].as_f64().unwrap());
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn logistic_bound_is_the_maximum_over_the_angle_from_above() {
    for radius in [1e-12, 1e-8, 1e-3, 0.1, 1.0, 3.0, 20.0, 1e3, 1e6] {
        let bound = logistic_gradient_difference(radius);
        let mut best = 0.0_f64;
        for step in 0..=20_000 {
            // Dense near the right angle, where the maximum lies for a large radius.
            let cosine = (f64::from(step) / 20_000.0).powi(4);
            best = best.max(2.0 * (1.0 - cosine * cosine).sqrt() * sigmoid(radius * cosine));
        }
        assert!(best <= bound && best > bound * (1.0 - 1e-6), "radius {radius}: found {best}, bound {bound}");
    }
}

#[test]
fn ends_of_the_range_are_sound() {
    assert!(logistic_gradient_difference(0.0) >= 1.0);
    assert_eq!(logistic_gradient_difference(1e200), 2.0);
    assert_eq!(logistic_gradient_difference(f64::NAN), 2.0);
    assert!(logistic_gradient_difference(1e99) <= 2.0);
    assert_eq!(squared_gradient_difference(0.0, 0.0), 0.0);
    assert_eq!(squared_gradient_difference(f64::NAN, 1.0), f64::INFINITY);
    assert_eq!(squared_gradient_difference(1.0, f64::NAN), f64::INFINITY);
}

/// Returns a point of the unit ball, as its coordinate along `w` and orthogonal to it.
fn ball() -> impl Strategy<Value = (f64, f64)> {
    (0.0..1.0_f64, -core::f64::consts::PI..core::f64::consts::PI).prop_map(|(area, angle)| {
        // Half of all points lie on the sphere.
        let length = if area > 0.5 { 1.0 } else { (2.0 * area).sqrt() };
        (length * angle.cos(), length * angle.sin())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    // Both gradients may be assumed to lie in one half plane each, so that the plane is the general case except for the angle
    // between the half planes, for which 180 degrees is the worst case.
    #[test]
    fn no_pair_of_logistic_gradients_is_farther_apart(scale in -3.0..4.0_f64, u in ball(), v in ball()) {
        let radius = 10.0_f64.powf(scale);
        let f = |u: (f64, f64)| { let s = sigmoid(-radius * u.0); (s * u.0, s * u.1) };
        let (a, b) = (f(u), f(v));
        prop_assert!((a.0 - b.0).hypot(a.1 - b.1) <= logistic_gradient_difference(radius));
    }

    #[test]
    fn no_pair_of_squared_gradients_is_farther_apart(
        scale in -3.0..4.0_f64, u in ball(), v in ball(), signs in (-1.0..1.0_f64, -1.0..1.0_f64), extreme: bool, bound in 0.0..3.0_f64,
    ) {
        let radius = 10.0_f64.powf(scale);
        let f = |u: (f64, f64), sign: f64| {
            let y = bound * if extreme { sign.signum() } else { sign };
            let t = radius * u.0 - y;
            (t * u.0, t * u.1)
        };
        let (a, b) = (f(u, signs.0), f(v, signs.1));
        prop_assert!((a.0 - b.0).hypot(a.1 - b.1) <= squared_gradient_difference(radius, bound) * (1.0 + 1e-15));
    }

    #[test]
    fn differences_rise_with_the_radius(radius in 0.0..100.0_f64, more in 1e-6..10.0_f64, bound in 0.0..3.0_f64) {
        prop_assert!(logistic_gradient_difference(radius) <= logistic_gradient_difference(radius + more) * (1.0 + 1e-14));
        prop_assert!(
            squared_gradient_difference(radius, bound) <= squared_gradient_difference(radius + more, bound) * (1.0 + 1e-14)
        );
    }
}

#[test]
fn every_logistic_gradient_lies_in_the_ball_of_the_proof() {
    for radius in [0.01, 0.5, 1.0, 2.0, 10.0, 100.0, 1e4] {
        let diameter = logistic_gradient_difference(radius);
        // The centre: the height at which the gradient profile is widest.
        let mut centre = 0.0;
        let mut widest = 0.0_f64;
        for step in 0..=200_000 {
            let cosine = (f64::from(step) / 200_000.0).powi(3);
            let half = (1.0 - cosine * cosine).sqrt() * sigmoid(radius * cosine);
            if half > widest {
                (widest, centre) = (half, -cosine * sigmoid(radius * cosine));
            }
        }
        for step in 0..=200_000 {
            let along = -1.0 + f64::from(step) / 100_000.0;
            let s = sigmoid(-radius * along);
            let distance = (s * along - centre).hypot(s * (1.0 - along * along).sqrt());
            assert!(distance <= 0.5 * diameter * (1.0 + 1e-5), "radius {radius}, along {along}");
        }
    }
}
