//! Groups, disjoint parts, and composition of approximate guarantees.

use dp_accountant::{DpEvent, RdpOrder, bound, rdp};

use super::finite::{Checks, Mechanism, Pairs, Random, mixture, product};

#[test]
fn groups() {
    let mut random = Random::new(4);
    let mut checks = Checks::default();
    for round in 0..60 {
        let spread = random.between(0.05, 1.5);
        let base = Mechanism::new(&mut random, spread, if round % 3 == 0 { 0.3 } else { 0.0 });
        let neighbours = base.add_remove(1);
        for size in [2, 3, 5] {
            let pairs = base.add_remove(size);
            for order in [1.2, 2.0, 4.5, 16.0] {
                let bound = rdp::group_of(RdpOrder::new(order).unwrap(), size as u64, |order| neighbours.renyi(order));
                checks.at_most("group, Renyi", pairs.renyi(order), bound);
            }
            for event in neighbours.events(&mut random) {
                let event = DpEvent::Group { size: size as u64, event: Box::new(event) };
                checks.curve("group", &pairs, &event);
            }
        }
        for event in neighbours.events(&mut random) {
            let mut pairs = Pairs::default();
            for (a, b) in super::finite::data_sets(2) {
                pairs.add(base.law(a + 1, b).to_vec(), base.law(a, b + 1).to_vec());
            }
            checks.curve("replacement", &pairs, &DpEvent::AddRemoveTwice { event: Box::new(event) });
        }
    }
    checks.came_within(0.7);
}

/// A chain of laws whose steps fail with probability `delta` and are `epsilon`-DP otherwise. It ends in a law that lacks an
/// outcome of mass `delta (1 + e^epsilon)` in the first law: twice the failure probability is no bound.
#[test]
fn failures_of_a_group_are_not_added_up_apart_from_the_rest() {
    let (epsilon, delta) = (1.0f64, 1e-3);
    let law = |mass: f64| vec![mass, 1.0 - mass];
    let (first, middle, last) = (law(delta * (1.0 + epsilon.exp())), law(delta), law(0.0));
    let mut two = Pairs::default();
    two.add(first.clone(), last.clone());
    let claim = DpEvent::ApproximateDp { epsilon, delta };
    let mut checks = Checks::default();
    // The same guarantee, whole and in parts.
    let fails = DpEvent::ApproximateDp { epsilon: 0.0, delta };
    let parts = DpEvent::Composed { events: vec![fails.clone(), DpEvent::PureDp { epsilon }] };
    let parallel = DpEvent::Parallel { events: vec![claim.clone(), DpEvent::PureDp { epsilon: 0.5 * epsilon }] };
    for event in [claim.clone(), parts, parallel] {
        checks.curve("group", &two, &DpEvent::Group { size: 2, event: Box::new(event.clone()) });
        checks.curve("replacement", &two, &DpEvent::AddRemoveTwice { event: Box::new(event) });
    }
    // The claim on a Poisson sample: one record removed, another added.
    for rate in [0.7, 0.9, 0.99] {
        let mut sampled = Pairs::default();
        let sample = |with| mixture(&[(rate, with), (1.0 - rate, middle.clone())]);
        sampled.add(sample(first.clone()), sample(last.clone()));
        let step = DpEvent::PoissonSampled { sampling_rate: rate, event: Box::new(claim.clone()) };
        checks.curve("sampled replacement", &sampled, &DpEvent::AddRemoveTwice { event: Box::new(step) });
    }
    checks.came_within(0.99);
    // Releases without a pure guarantee together with failures have no theorem.
    let event = Box::new(DpEvent::Composed { events: vec![fails, DpEvent::Zcdp { rho: 0.5 }] });
    assert!(bound::delta(&DpEvent::Group { size: 2, event: event.clone() }, 3.0).is_err());
    assert!(bound::delta(&DpEvent::Group { size: 1, event }, 3.0).is_ok());
}

/// Chains of laws whose every step has the same loss, which the group's bound must cover without slack.
#[test]
fn groups_of_randomised_responses() {
    let mut checks = Checks::default();
    for epsilon in [0.1f64, 0.7, 2.0] {
        for size in [2u64, 3, 6] {
            // Geometric laws on a line: shifting by one changes each mass by at most e^epsilon.
            let law = |shift: f64| {
                let masses: Vec<f64> = (-400..400).map(|k| (-epsilon * (f64::from(k) - shift).abs()).exp()).collect();
                let sum: f64 = masses.iter().sum();
                masses.iter().map(|mass| mass / sum).collect::<Vec<_>>()
            };
            let (mut one, mut all) = (Pairs::default(), Pairs::default());
            one.add(law(0.0), law(1.0));
            all.add(law(0.0), law(size as f64));
            for order in [1.5, 3.0, 9.0] {
                let bound = rdp::group_of(RdpOrder::new(order).unwrap(), size, |order| one.renyi(order));
                checks.at_most("steps", all.renyi(order), bound);
            }
            let event = DpEvent::Group { size, event: Box::new(DpEvent::PureDp { epsilon }) };
            checks.curve("steps", &all, &event);
            let event = DpEvent::Group {
                size,
                event: Box::new(DpEvent::DiscreteLaplace { scale: epsilon.recip(), sensitivity: 1 }),
            };
            checks.curve("steps", &all, &event);
        }
    }
    checks.came_within(0.9);
}

/// Part 0 holds the records of values 0 and 1, part 1 those of 2 and 3.
#[test]
fn disjoint_parts() {
    let mut random = Random::new(5);
    let mut checks = Checks::default();
    for _ in 0..60 {
        let spread = random.between(0.05, 1.5);
        let parts = [0.0, 0.3].map(|zeros| Mechanism::new(&mut random, spread, zeros));
        let (mut one, mut two) = (Pairs::default(), Pairs::default());
        // Each part by itself.
        let mut alone = [Pairs::default(), Pairs::default()];
        for (pairs, part) in alone.iter_mut().zip(&parts) {
            for (n, m) in super::finite::data_sets(2) {
                pairs.add(part.law(n, m).to_vec(), part.law(n + 1, m).to_vec());
                pairs.add(part.law(n, m).to_vec(), part.law(n, m + 1).to_vec());
            }
        }
        let [first, second] = alone;
        let law = |a: (usize, usize), b: (usize, usize)| product(parts[0].law(a.0, a.1), parts[1].law(b.0, b.1));
        let with_one_more = |(n, m): (usize, usize)| [(n + 1, m), (n, m + 1)];
        for a in super::finite::data_sets(1) {
            for b in super::finite::data_sets(1) {
                let ([a0, a1], [b0, b1]) = (with_one_more(a), with_one_more(b));
                for more in [a0, a1] {
                    one.add(law(a, b), law(more, b));
                    two.add(law(more, b), law(a, b0));
                    two.add(law(more, b), law(a, b1));
                }
                for more in [b0, b1] {
                    one.add(law(a, b), law(a, more));
                }
                // Within one part.
                two.add(law(a0, b), law(a1, b));
                two.add(law(a, b0), law(a, b1));
            }
        }
        for first in first.events(&mut random) {
            for second in second.events(&mut random) {
                let events = vec![first.clone(), second];
                checks.curve("one part", &one, &DpEvent::Parallel { events: events.clone() });
                checks.curve("two parts", &two, &DpEvent::ParallelByValue { events });
            }
        }
    }
    checks.came_within(0.95);
}

/// A coin with the same law for both neighbours chooses the mechanism; it is published, or not.
#[test]
fn one_of_two_mechanisms() {
    let mut random = Random::new(8);
    let mut checks = Checks::default();
    for round in 0..60 {
        let spread = random.between(0.05, 1.5);
        let either = [0.0, 0.3].map(|zeros| Mechanism::new(&mut random, spread, zeros));
        let weight = [0.5, 0.9, 1.0][round % 3];
        let (mut published, mut hidden) = (Pairs::default(), Pairs::default());
        let neighbours = either.each_ref().map(|mechanism| mechanism.add_remove(1));
        for (a, b) in super::finite::data_sets(2) {
            let law = |i: usize, a: usize, b: usize| either[i].law(a, b).to_vec();
            let scaled = |i, a, b, by: f64| law(i, a, b).into_iter().map(move |mass| by * mass);
            let known = |a: usize, b: usize| -> Vec<f64> {
                scaled(0, a, b, weight).chain(scaled(1, a, b, 1.0 - weight)).collect()
            };
            let mixed = |a: usize, b: usize| mixture(&[(weight, law(0, a, b)), (1.0 - weight, law(1, a, b))]);
            published.add(known(a, b), known(a + 1, b));
            published.add(known(a, b), known(a, b + 1));
            hidden.add(mixed(a, b), mixed(a + 1, b));
            hidden.add(mixed(a, b), mixed(a, b + 1));
        }
        let [first, second] = neighbours;
        for first in first.events(&mut random) {
            for second in second.events(&mut random) {
                let event = DpEvent::OneOf { events: vec![first.clone(), second] };
                checks.curve("published", &published, &event);
                checks.curve("hidden", &hidden, &event);
            }
        }
    }
    checks.came_within(0.9);
}

#[test]
fn approximate_guarantees_compose() {
    let mut random = Random::new(6);
    let mut checks = Checks::default();
    for _ in 0..8 {
        let spread = random.between(0.05, 1.5);
        let mut law = || random.law(3, spread, 0.4);
        let laws = [law(), law(), law(), law()];
        let (mut first, mut second, mut both) = (Pairs::default(), Pairs::default(), Pairs::default());
        let [a, b, c, d] = laws;
        both.add(product(&a, &c), product(&b, &d));
        first.add(a, b);
        second.add(c, d);
        for first in first.events(&mut random) {
            for second in second.events(&mut random) {
                checks.curve("composed", &both, &DpEvent::Composed { events: vec![first.clone(), second] });
            }
        }
    }
    checks.came_within(0.95);
}
