use super::*;

fn steps(sampling_rate: f64, std_dev: f64, count: u64) -> RdpCurve {
    let step = DpEvent::Gaussian { std_dev, sensitivity: 1.0 };
    let sampled = DpEvent::PoissonSampled { sampling_rate, event: Box::new(step) };
    RdpCurve::new(&DpEvent::SelfComposed { event: Box::new(sampled), count }).unwrap()
}

fn at(curve: &RdpCurve, order: f64, delta: Delta) -> f64 {
    let order = RdpOrder::new(order).unwrap();
    let rdp = curve.at(order);
    let improved = conversion::epsilon_improved(order, rdp, delta).unwrap();
    improved.min(conversion::epsilon_centred(order, rdp, delta).unwrap())
}

/// Compared with a scan of 20,000 orders from 1.001 to 1e6: the search may exceed it by at most 1e-6, and may be below it by at
/// most what the scan's spacing of 0.1 % between orders allows.
#[test]
fn the_best_order_is_as_good_as_a_dense_scan() {
    for (rate, noise, count, delta) in [
        (0.01, 1.0, 10_000, 1e-5),
        (0.001, 0.6, 20_000, 1e-7),
        (1e-4, 0.8, 1_000_000, 1e-8),
        (0.01, 4.0, 10_000, 1e-10),
        (0.001, 100.0, 1_000, 1e-12),
        (0.3, 0.7, 3, 1e-3),
        (1e-6, 0.5, 1_000_000_000, 1e-6),
        (0.5, 1000.0, 10, 1e-300),
        (0.1, 0.05, 1, 1e-6),
    ] {
        let (curve, delta) = (steps(rate, noise, count), Delta::new(delta).unwrap());
        let scanned = (0..20_000)
            .map(|i| at(&curve, 1.0 + (-6.9 + 20.7 * f64::from(i) / 20_000.0).exp(), delta))
            .fold(f64::INFINITY, f64::min);
        let best = curve.epsilon(delta);
        assert!(best <= scanned * (1.0 + 1e-6), "{rate} {noise} {count}: {best} {scanned}");
        assert!(best >= scanned * (1.0 - 1e-4), "{rate} {noise} {count}: {best} {scanned}");
    }
}

/// The best order is near 19,000 here; a grid that stops at 1024 gives a value many times as large.
#[test]
fn high_best_orders_are_found() {
    let (curve, delta) = (steps(0.001, 100.0, 1000), Delta::new(1e-12).unwrap());
    let best = curve.epsilon(delta);
    assert!((best - 0.00183).abs() < 1e-5, "{best}");
    assert!(at(&curve, 1024.0, delta) > 5.0 * best);
    assert!(at(&curve, 19_000.0, delta) < 1.01 * best);
}

#[test]
fn delta_and_epsilon_are_inverse() {
    for (rate, noise, count) in [(0.01, 1.0, 10_000), (0.001, 100.0, 1000), (0.2, 3.0, 50)] {
        let curve = steps(rate, noise, count);
        for delta in [1e-3, 1e-9, 1e-30] {
            let epsilon = curve.epsilon(Delta::new(delta).unwrap());
            if epsilon == 0.0 {
                // Delta alone covers the total variation distance.
                assert!(curve.delta(0.0).unwrap() <= delta);
                continue;
            }
            let back = curve.delta(epsilon).unwrap();
            assert!((back / delta - 1.0).abs() < 1e-6, "{rate} {noise} {count}: {delta} {back}");
        }
    }
}

#[test]
fn curves_add_under_composition() {
    let (mut sum, other) = (steps(0.01, 1.0, 100), steps(0.02, 2.0, 50));
    let order = RdpOrder::new(7.5).unwrap();
    let expected = sum.at(order) + other.at(order);
    sum.compose(&other);
    assert!((sum.at(order) / expected - 1.0).abs() < 1e-15);
    let laplace = DpEvent::Laplace { scale: 2.0, sensitivity: 1.0 };
    let zcdp = DpEvent::Zcdp { rho: 0.1 };
    let both = RdpCurve::new(&DpEvent::Composed { events: vec![laplace.clone(), zcdp] }).unwrap();
    let alone = RdpCurve::new(&laplace).unwrap();
    assert!((both.at(order) - alone.at(order) - 0.75).abs() < 1e-15);
}
