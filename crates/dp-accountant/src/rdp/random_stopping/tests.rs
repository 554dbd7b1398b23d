use super::*;
use crate::leaves::Leaf;

/// Probability generating function of the law, from its probabilities.
fn generating(probabilities: &[f64], x: f64) -> f64 {
    probabilities.iter().rev().fold(0.0, |sum, p| sum * x + p)
}

fn truncated_negative_binomial_law(eta: f64, gamma: f64, terms: usize) -> Vec<f64> {
    let scale = if eta == 0.0 { -1.0 / gamma.ln() } else { 1.0 / (gamma.powf(-eta) - 1.0) };
    // Product over l < k of (l + eta)/(l + 1); its first factor is eta, which is omitted if eta is 0.
    let mut law = vec![0.0];
    let mut term = scale * (1.0 - gamma) * if eta == 0.0 { 1.0 } else { eta };
    for k in 1..terms {
        law.push(term);
        term *= (1.0 - gamma) * (k as f64 + eta) / (k as f64 + 1.0);
    }
    law
}

fn poisson_law(mean: f64, terms: usize) -> Vec<f64> {
    let mut law = vec![(-mean).exp()];
    for k in 1..terms {
        law.push(law[k - 1] * mean / k as f64);
    }
    law
}

/// Returns the divergence of the best of a random number of outcomes, from the masses of outcomes in increasing order.
fn divergence_of_best(law: &[f64], p: &[f64], q: &[f64], order: f64) -> f64 {
    let best = |masses: &[f64]| {
        let mut below = 0.0;
        let mut found = vec![law[0]];
        for mass in masses {
            found.push(generating(law, below + mass) - generating(law, below));
            below += mass;
        }
        found
    };
    let moment: f64 =
        best(p).iter().zip(best(q)).filter(|(p, _)| **p > 0.0).map(|(p, q)| p.powf(order) * q.powf(1.0 - order)).sum();
    moment.ln() / (order - 1.0)
}

fn divergence(p: &[f64], q: &[f64], order: f64) -> f64 {
    let logs: Vec<f64> = p.iter().zip(q).map(|(p, q)| order * p.ln() + (1.0 - order) * q.ln()).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (largest + logs.iter().map(|log| (log - largest).exp()).sum::<f64>().ln()) / (order - 1.0)
}

#[test]
fn laws_add_up_and_have_the_stated_mean() {
    for (eta, gamma) in [(1.0, 0.1), (0.0, 0.2), (-0.5, 0.3), (2.5, 0.4)] {
        let law = truncated_negative_binomial_law(eta, gamma, 2000);
        let (sum, mean) = law.iter().enumerate().fold((0.0, 0.0), |(sum, mean), (k, p)| (sum + p, mean + k as f64 * p));
        assert!((sum - 1.0).abs() < 1e-12, "{eta} {gamma}: {sum}");
        assert!((mean_repetitions(eta, gamma).unwrap() / mean - 1.0).abs() < 1e-10, "{eta} {gamma}");
    }
    let small = mean_repetitions(1e-9, 0.2).unwrap() / mean_repetitions(0.0, 0.2).unwrap();
    assert!((small - 1.0).abs() < 1e-8);
}

proptest::proptest! {
    #[test]
    fn never_below_the_divergence_of_the_best(
        masses in proptest::collection::vec((0.05f64..1.0, -0.4f64..0.4), 2..6),
        eta in -0.9f64..3.0,
        gamma in 0.05f64..0.9,
        mean in 0.05f64..8.0,
        order in 1.05f64..12.0,
    ) {
        let normalised = |weights: Vec<f64>| {
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(|w| w / sum).collect::<Vec<_>>()
        };
        let p = normalised(masses.iter().map(|(mass, _)| *mass).collect());
        let q = normalised(masses.iter().map(|(mass, shift)| mass * shift.exp()).collect());
        // One repetition's exact curve in both directions, given by a dense list of points.
        let orders: Vec<f64> = (0..400).map(|i| 1.0 + (-5.0 + 0.03 * f64::from(i)).exp()).collect();
        let both = |a: &f64| divergence(&p, &q, *a).max(divergence(&q, &p, *a)).max(0.0);
        let divergences = orders.iter().map(both).collect();
        let event = crate::DpEvent::RenyiDp { orders, divergences };
        let base = crate::leaves::leaves(&event, 1).unwrap();
        for (law, repetitions) in [
            (truncated_negative_binomial_law(eta, gamma, 600), Repetitions::TruncatedNegativeBinomial { eta, gamma }),
            (poisson_law(mean, 60), Repetitions::Poisson { mean }),
        ] {
            let exact = divergence_of_best(&law, &p, &q, order);
            let bound = Stopping::new(repetitions, &base).rdp(order);
            proptest::prop_assert!(bound >= exact * (1.0 - 1e-6) - 1e-9, "{repetitions:?}: {bound} below {exact}");
        }
    }
}

#[test]
fn the_published_poisson_form_is_no_bound_for_few_repetitions() {
    let (p, q, order, mean) = ([0.5, 0.5], [0.45, 0.55], 2.0, 0.1);
    let exact = divergence_of_best(&poisson_law(mean, 30), &p, &q, order);
    let base = divergence(&p, &q, order);
    // With delta at most 1, the published form is below zero.
    assert!(base + mean + f64::ln(mean) / (order - 1.0) < 0.0 && exact > 0.0);
    let ours = poisson(mean, RdpOrder::new(order).unwrap(), base, 0.0).unwrap();
    assert!(ours >= exact, "{ours} {exact}");
}

#[test]
fn a_pure_base_gives_a_pure_bound() {
    let base = vec![(Leaf::Pure { epsilon: 0.5 }, 1)];
    let geometric = Repetitions::TruncatedNegativeBinomial { eta: 1.0, gamma: 1e-4 };
    let curve = Stopping::new(geometric, &base);
    for order in [1.0, 1.5, 4.0, 1e3, 1e9] {
        assert!(curve.rdp(order) <= pure::rdp(order, 1.5) * (1.0 + 1e-12));
    }
    assert!((curve.rdp(1e12) - 1.5).abs() < 1e-6);
}

#[test]
fn bounds_grow_with_the_order_and_are_no_larger_than_at_any_fixed_auxiliary_order() {
    let base = vec![(Leaf::Zcdp { rho: 0.01 }, 1)];
    let law = Repetitions::TruncatedNegativeBinomial { eta: 0.5, gamma: 0.05 };
    let curve = Stopping::new(law, &base);
    let mut before = 0.0;
    for step in 0..80 {
        let order = 1.0 + (-6.0 + 0.2 * f64::from(step)).exp();
        let value = curve.rdp(order);
        assert!(value >= before, "{order}");
        for auxiliary in [1.5, 4.0, 20.0, 100.0] {
            let at = |order: f64| RdpOrder::new(order).unwrap();
            let stated =
                truncated_negative_binomial(0.5, 0.05, at(order), 0.01 * order, at(auxiliary), 0.01 * auxiliary);
            assert!(value <= stated.unwrap() * (1.0 + 1e-9), "{order} {auxiliary}");
        }
        before = value;
    }
}
