//! The best of a random number of repetitions, by the law of the best outcome.

use dp_accountant::{DpEvent, Repetitions};

use super::finite::{Checks, Pairs, Random, largest_loss, renyi};

/// Returns the probability generating function of the number of repetitions.
fn generating(repetitions: Repetitions, x: f64) -> f64 {
    match repetitions {
        Repetitions::Poisson { mean } => (mean * (x - 1.0)).exp(),
        Repetitions::TruncatedNegativeBinomial { eta: 0.0, gamma } => (1.0 - (1.0 - gamma) * x).ln() / gamma.ln(),
        Repetitions::TruncatedNegativeBinomial { eta, gamma } => {
            ((1.0 - (1.0 - gamma) * x).powf(-eta) - 1.0) / (gamma.powf(-eta) - 1.0)
        }
        _ => unreachable!("a law of repetitions that this test does not know"),
    }
}

/// Returns the law of the best outcome, where later outcomes are better; the first entry is the probability of none.
fn best(repetitions: Repetitions, law: &[f64]) -> Vec<f64> {
    let mut below = 0.0;
    let mut before = generating(repetitions, 0.0);
    let mut masses = vec![before];
    for mass in law {
        below = f64::min(below + mass, 1.0);
        let now = generating(repetitions, below);
        masses.push((now - before).max(0.0));
        before = now;
    }
    masses
}

#[test]
fn the_best_of_many() {
    let mut random = Random::new(7);
    let mut checks = Checks::default();
    for round in 0..150 {
        let spread = random.between(0.02, 1.0);
        let (p, q) = (random.law(3, spread, 0.0), random.law(3, spread, 0.0));
        let gamma = random.between(0.005, 0.9);
        let repetitions = match round % 5 {
            0 => Repetitions::Poisson { mean: random.between(0.1, 50.0) },
            1 => Repetitions::TruncatedNegativeBinomial { eta: 0.0, gamma },
            2 => Repetitions::TruncatedNegativeBinomial { eta: 1.0, gamma },
            3 => Repetitions::TruncatedNegativeBinomial { eta: random.between(-0.9, -0.1), gamma },
            _ => Repetitions::TruncatedNegativeBinomial { eta: random.between(0.1, 3.0), gamma },
        };
        let mut pairs = Pairs::default();
        pairs.add(best(repetitions, &p), best(repetitions, &q));
        let epsilon = largest_loss(&p, &q).max(largest_loss(&q, &p));
        let orders: Vec<f64> = (1..400).map(|i| 1.0 + 0.1 * f64::from(i)).collect();
        let divergences = orders.iter().map(|&order| renyi(&p, &q, order).max(renyi(&q, &p, order))).collect();
        for event in [
            DpEvent::PureDp { epsilon },
            DpEvent::RenyiDp { orders, divergences },
            DpEvent::DominatingPair { p: p.clone(), q: q.clone() },
        ] {
            checks.curve("best", &pairs, &DpEvent::RandomStopping { repetitions, event: Box::new(event) });
        }
    }
    checks.came_within(0.5);
}
