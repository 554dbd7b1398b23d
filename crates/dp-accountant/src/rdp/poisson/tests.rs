use super::*;

fn order(value: f64) -> RdpOrder {
    RdpOrder::new(value).unwrap()
}

fn rate(value: f64) -> SamplingRate {
    SamplingRate::new(value).unwrap()
}

/// Returns the divergence of order `a` of finite laws.
fn divergence(a: f64, p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(p, q)| p.powf(a) * q.powf(1.0 - a)).sum::<f64>().ln() / (a - 1.0)
}

/// Both directions of finite pairs, including asymmetric ones, compared with the bound from their own larger curve.
#[test]
fn holds_in_both_directions_for_finite_pairs_and_is_attained() {
    let pairs: [([f64; 3], [f64; 3]); 4] = [
        ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]),
        ([0.98, 0.01, 0.01], [0.5, 0.25, 0.25]),
        ([0.01, 0.49, 0.5], [0.001, 0.001, 0.998]),
        ([0.3, 0.3, 0.4], [0.299, 0.301, 0.4]),
    ];
    for (p, q) in pairs {
        let curve = |a: f64| divergence(a, &p, &q).max(divergence(a, &q, &p));
        for sampled in [1e-4, 0.05, 0.5, 0.95] {
            for a in [1.5, 2.0, 2.3, 3.0, 7.5, 8.0, 31.0] {
                let bound = poisson_sampled(order(a), rate(sampled), curve);
                let mut largest = 0.0f64;
                for (record, none) in [(p, q), (q, p)] {
                    let mix: Vec<f64> =
                        record.iter().zip(&none).map(|(p, q)| (1.0 - sampled) * q + sampled * p).collect();
                    largest = largest.max(divergence(a, &mix, &none)).max(divergence(a, &none, &mix));
                }
                assert!(bound >= largest * (1.0 - 1e-9) - 1e-13, "{p:?} {q:?} {sampled} {a}: {bound} {largest}");
                let convex = convexity::mixed_with_nothing(a, sampled, curve(a));
                assert!(bound <= convex, "{a}");
            }
        }
    }
    // A symmetric pair attains it at integer orders.
    let (p, q) = ([0.8, 0.2], [0.2, 0.8]);
    let mix = [0.9 * 0.2 + 0.1 * 0.8, 0.9 * 0.8 + 0.1 * 0.2];
    let bound = poisson_sampled(order(5.0), rate(0.1), |a| divergence(a, &p, &q));
    assert!((bound / divergence(5.0, &mix, &q) - 1.0).abs() < 1e-12);
}

#[test]
fn a_gaussian_base_gives_the_gaussian_curve_at_integers_and_its_chord_between() {
    for (mu, sampled) in [(0.5, 0.01), (1.0, 0.2), (0.05, 1e-6)] {
        let curve = |a: f64| 0.5 * a * mu * mu;
        for a in [2.0, 3.0, 20.0, 150.0] {
            let exact = poisson_gaussian::rdp(a, sampled, mu);
            let bound = poisson_sampled(order(a), rate(sampled), curve);
            assert!((bound / exact - 1.0).abs() < 1e-11, "{mu} {sampled} {a}: {bound} {exact}");
            let between = poisson_sampled(order(a + 0.5), rate(sampled), curve);
            assert!(between >= poisson_gaussian::rdp(a + 0.5, sampled, mu) * (1.0 - 1e-12));
        }
    }
}

#[test]
fn never_above_the_published_form() {
    let curve = |a: f64| super::super::laplace::rdp(a, 0.4);
    for a in [2, 3, 10, 100] {
        let published = poisson_sampled_as_published(a, rate(0.05), curve);
        assert!(poisson_sampled(order(a.into()), rate(0.05), curve) <= published);
    }
}

#[test]
fn event_trees_take_the_same_bound() {
    let base: Leaves = vec![(Leaf::Laplace { x: 0.5 }, 2), (Leaf::Zcdp { rho: 0.1 }, 1)];
    let curve = |a: f64| 2.0 * super::super::laplace::rdp(a, 0.5) + 0.1 * a;
    let leaf = Leaf::Poisson { rate: 0.03, base: base.clone() };
    let sampled = Sampled::new(&leaf, 0.03, &base, 100.0);
    for a in [1.0, 1.5, 2.0, 9.3, 64.0, 99.5] {
        let expected = poisson_sampled(order(a), rate(0.03), curve);
        assert!((sampled.rdp(a) / expected - 1.0).abs() < 1e-12, "{a}");
    }
    // Beyond the largest sum the convexity bound is used, and the curve keeps growing.
    assert!(sampled.rdp(1000.0) >= sampled.rdp(99.0));
    // Linear curves of any origin equal Gaussian ones at any order.
    let base: Leaves = vec![(Leaf::Zcdp { rho: 1e-4 }, 1)];
    let leaf = Leaf::Poisson { rate: 0.001, base: base.clone() };
    let sampled = Sampled::new(&leaf, 0.001, &base, 100.0);
    let exact = poisson_gaussian::rdp(20_000.0, 0.001, 2e-4f64.sqrt());
    assert!((sampled.rdp(20_000.0) / exact - 1.0).abs() < 1e-9);
}

#[test]
fn ends() {
    let curve = |a: f64| a;
    assert_eq!(poisson_sampled(order(3.0), rate(0.0), curve), 0.0);
    assert_eq!(poisson_sampled(order(3.0), rate(1.0), curve), 3.0);
    assert_eq!(poisson_sampled(order(3.0), rate(0.5), |_| f64::INFINITY), f64::INFINITY);
    assert_eq!(poisson_sampled(order(3.0), rate(0.5), |_| 0.0), 0.0);
    // The Kullback-Leibler divergence is convex.
    assert!(poisson_sampled(order(1.0), rate(0.25), curve) <= 0.25 * (1.0 + 1e-14));
}
