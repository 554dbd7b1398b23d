use super::*;
use crate::leaves::Leaf;
use crate::params::RdpOrder;

fn order(value: f64) -> RdpOrder {
    RdpOrder::new(value).unwrap()
}

#[test]
fn gaussians_lose_nothing() {
    for size in [1, 2, 3, 10, 64] {
        for a in [1.0, 1.001, 1.5, 2.0, 30.0, 1e4] {
            let got = group_of(order(a), size, |order| 0.125 * order);
            let exact = 0.125 * a * (size * size) as f64;
            assert!((0.0..1e-12).contains(&(got / exact - 1.0)), "{size} {a}: {got} {exact}");
        }
    }
    // Large groups are bounded by runs of orders, which gives slightly more.
    let got = group_of(order(3.0), 1000, |order| 0.125 * order);
    assert!((1.0..1.05).contains(&(got / (0.375 * 1e6))), "{got}");
    assert!(group_of(order(3.0), u64::MAX, |order| 0.125 * order) >= 0.375 * 2f64.powi(128));
}

#[test]
fn is_no_more_than_the_weak_triangle_inequality_at_its_best() {
    let curve = |a: f64| super::super::laplace::rdp(a, 0.8);
    for a in [1.2f64, 2.0, 5.0, 50.0] {
        let mut best = f64::INFINITY;
        for i in 1..2000 {
            let p = 1.0 + (0.01 * f64::from(i) - 5.0).exp();
            let other = p / (p - 1.0) * (a - 1.0 / p);
            best = best.min((a - 1.0 / p) / (a - 1.0) * curve(p * a) + curve(other));
        }
        let ours = group_of(order(a), 2, curve);
        assert!(ours <= best * (1.0 + 1e-6), "{a}: {ours} {best}");
    }
}

/// Chains of three changes of a histogram's counts, by sums over the outcomes of discrete Laplace noise.
#[test]
fn holds_for_chains_of_discrete_laplace_noise() {
    let scale = 1.3f64;
    let log = |k: i32, shift: i32| -f64::from((k - shift).abs()) / scale;
    let normaliser: f64 = (-400..400).map(|k| log(k, 0).exp()).sum();
    let divergence = |a: f64, shift: i32| {
        let moment: f64 = (-300..300).map(|k| (a * log(k, shift) + (1.0 - a) * log(k, 0)).exp()).sum();
        (moment / normaliser).ln() / (a - 1.0)
    };
    for a in [1.3, 2.0, 4.0] {
        for size in [2, 3, 5] {
            let bound = group_of(order(a), size, |a| divergence(a, 1));
            let truth = divergence(a, size as i32);
            assert!(bound >= truth && bound <= 2.5 * truth, "{a} {size}: {bound} {truth}");
        }
    }
}

#[test]
fn a_pure_base_costs_at_most_its_pure_group() {
    let base: Leaves = vec![(Leaf::RandomizedResponse { buckets: 4, noise: 0.3 }, 1)];
    let group = Group::new(3, &base);
    for a in [1.5, 10.0, 1e6] {
        assert!(group.rdp(a) <= 3.0 * pure_epsilon_of_all(&base));
    }
}

#[test]
fn ends() {
    assert_eq!(group_of(order(2.0), 0, |order| order), 0.0);
    assert_eq!(group_of(order(2.0), 3, |order| if order > 3.0 { f64::INFINITY } else { 1.0 }), f64::INFINITY);
    assert_eq!(group_of(order(1.0), 3, |_| 0.0), 0.0);
}
