//! Sampling, by enumeration of all samples.

use dp_accountant::{DpEvent, RdpOrder, SamplingRate, rdp};

use super::finite::{Checks, Mechanism, Pairs, Random, choose, data_sets, mixture, product};

const ORDERS: [f64; 7] = [1.3, 2.0, 2.5, 3.0, 5.0, 8.3, 20.0];

/// The output law by the numbers of zeros and of ones.
type Law<'a> = dyn Fn(usize, usize) -> Vec<f64> + 'a;

/// Returns the output law for a Poisson sample of `a` zeros and `b` ones.
fn poisson_law(rate: f64, a: usize, b: usize, law: &Law<'_>) -> Vec<f64> {
    let binomial = |n: usize, k: usize| choose(n, k) * rate.powi(k as i32) * (1.0 - rate).powi((n - k) as i32);
    let parts: Vec<_> = (0..=a)
        .flat_map(|i| (0..=b).map(move |j| (i, j)))
        .map(|(i, j)| (binomial(a, i) * binomial(b, j), law(i, j)))
        .collect();
    mixture(&parts)
}

fn poisson_pairs(rate: f64, law: &Law<'_>) -> Pairs {
    let mut pairs = Pairs::default();
    for (a, b) in data_sets(2) {
        for (c, d) in [(a + 1, b), (a, b + 1)] {
            pairs.add(poisson_law(rate, a, b, law), poisson_law(rate, c, d, law));
        }
    }
    pairs
}

#[test]
fn poisson_samples() {
    let mut random = Random::new(1);
    let mut checks = Checks::default();
    for round in 0..24 {
        let spread = random.between(0.1, 2.0);
        let base = Mechanism::new(&mut random, spread, if round % 3 == 0 { 0.3 } else { 0.0 });
        let (rate, neighbours) = (random.uniform(), base.add_remove(1));
        let pairs = poisson_pairs(rate, &|a, b| base.law(a, b).to_vec());
        for order in ORDERS {
            let (at, q) = (RdpOrder::new(order).unwrap(), SamplingRate::new(rate).unwrap());
            let bound = rdp::poisson_sampled(at, q, |order| neighbours.renyi(order));
            checks.at_most("Poisson sample, Renyi", pairs.renyi(order), bound);
        }
        for event in neighbours.events(&mut random) {
            let event = DpEvent::PoissonSampled { sampling_rate: rate, event: Box::new(event) };
            checks.curve("Poisson sample", &pairs, &event);
        }
    }
    checks.came_within(0.95);
}

/// A pure and an approximate release on the same sample, and samples of samples.
#[test]
fn several_releases_about_one_poisson_sample() {
    let mut random = Random::new(2);
    let mut checks = Checks::default();
    for round in 0..16 {
        let spread = random.between(0.1, 1.5);
        let first = Mechanism::new(&mut random, spread, 0.0);
        let second = Mechanism::new(&mut random, spread, 0.3);
        let rate = random.uniform();
        let both = |a, b| product(first.law(a, b), second.law(a, b));
        let mut events = vec![DpEvent::PureDp { epsilon: first.add_remove(1).pure() }];
        events.extend(second.add_remove(1).events(&mut random).pop());
        let inner = DpEvent::Composed { events };
        let (law, event): (Box<Law<'_>>, _) = if round % 2 == 0 {
            (Box::new(both), inner)
        } else {
            let outer = random.uniform();
            let inner = DpEvent::PoissonSampled { sampling_rate: outer, event: Box::new(inner) };
            (Box::new(move |a, b| poisson_law(outer, a, b, &both)), inner)
        };
        let event = DpEvent::PoissonSampled { sampling_rate: rate, event: Box::new(event) };
        checks.curve("two releases", &poisson_pairs(rate, &*law), &event);
    }
    checks.came_within(0.5);
}

#[test]
fn samples_of_fixed_size() {
    let mut random = Random::new(3);
    let mut checks = Checks::default();
    for round in 0..30 {
        let spread = random.between(0.05, 2.0);
        let base = Mechanism::new(&mut random, spread, if round % 3 == 0 { 0.3 } else { 0.0 });
        for size in [1, 2] {
            let rate = size as f64 / 3.0;
            let neighbours = base.replace_one(size);
            // `ones` of three records are ones.
            let law = |ones: usize| {
                let least = size.saturating_sub(3 - ones);
                let parts: Vec<_> = (least..=ones.min(size))
                    .map(|k| {
                        let weight = choose(ones, k) * choose(3 - ones, size - k) / choose(3, size);
                        (weight, base.law(size - k, k).to_vec())
                    })
                    .collect();
                mixture(&parts)
            };
            let mut pairs = Pairs::default();
            (0..3).for_each(|ones| pairs.add(law(ones), law(ones + 1)));
            for order in ORDERS {
                let (at, q) = (RdpOrder::new(order).unwrap(), SamplingRate::new(rate).unwrap());
                let bound = rdp::without_replacement(at, q, neighbours.pure(), |order| neighbours.renyi(order));
                checks.at_most("fixed size, Renyi", pairs.renyi(order), bound);
            }
            for event in neighbours.events(&mut random) {
                let event = DpEvent::SampledWithoutReplacement { sampling_rate: rate, event: Box::new(event) };
                checks.curve("fixed size", &pairs, &event);
            }
        }
    }
    checks.came_within(0.9);
}
