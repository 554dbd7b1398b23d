//! Laws on a few outcomes, and random mechanisms on data sets of up to three binary records.

use dp_accountant::{DpEvent, bound};

/// Marsaglia's xorshift generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Returns a law on `outcomes` outcomes, with masses that differ by factors up to `e^(2 spread)`; sometimes one is zero.
    pub fn law(&mut self, outcomes: usize, spread: f64, zeros: f64) -> Vec<f64> {
        let mut masses: Vec<f64> = (0..outcomes).map(|_| self.between(-spread, spread).exp()).collect();
        if self.uniform() < zeros {
            masses[0] = 0.0;
        }
        let sum: f64 = masses.iter().sum();
        masses.iter().map(|mass| mass / sum).collect()
    }
}

/// Returns `sum (p - e^epsilon q)_+`.
pub fn delta(p: &[f64], q: &[f64], epsilon: f64) -> f64 {
    p.iter().zip(q).map(|(p, q)| (p - epsilon.exp() * q).max(0.0)).sum()
}

/// Returns the Renyi divergence, computed by logarithms, since bounds may use any order.
pub fn renyi(p: &[f64], q: &[f64], order: f64) -> f64 {
    if order > 1e9 {
        return largest_loss(p, q);
    }
    let logs = || p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| order * p.ln() + (1.0 - order) * q.ln());
    let largest = logs().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::INFINITY {
        return largest;
    }
    (largest + logs().map(|log| (log - largest).exp()).sum::<f64>().ln()) / (order - 1.0)
}

/// Returns the largest loss.
pub fn largest_loss(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| (p / q).ln()).fold(0.0, f64::max)
}

/// Returns the law of two independent outcomes.
pub fn product(p: &[f64], q: &[f64]) -> Vec<f64> {
    p.iter().flat_map(|p| q.iter().map(move |q| p * q)).collect()
}

/// Returns the mean of laws.
pub fn mixture(parts: &[(f64, Vec<f64>)]) -> Vec<f64> {
    let mut sum = vec![0.0; parts[0].1.len()];
    for (weight, law) in parts {
        for (sum, mass) in sum.iter_mut().zip(law) {
            *sum += weight * mass;
        }
    }
    sum
}

/// Pairs of output laws of neighbours, each in both orders.
#[derive(Debug, Clone, Default)]
pub struct Pairs(Vec<(Vec<f64>, Vec<f64>)>);

impl Pairs {
    pub fn add(&mut self, p: Vec<f64>, q: Vec<f64>) {
        self.0.push((p.clone(), q.clone()));
        self.0.push((q, p));
    }

    fn largest(&self, of: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
        self.0.iter().map(|(p, q)| of(p, q)).fold(0.0, f64::max)
    }

    pub fn delta(&self, epsilon: f64) -> f64 {
        self.largest(|p, q| delta(p, q, epsilon))
    }

    pub fn renyi(&self, order: f64) -> f64 {
        self.largest(|p, q| renyi(p, q, order))
    }

    pub fn pure(&self) -> f64 {
        self.largest(largest_loss)
    }

    /// Returns the guarantees of the pairs: the pure one if there is one, and an approximate one.
    pub fn events(&self, random: &mut Random) -> Vec<DpEvent> {
        let pure = self.pure();
        let epsilon = random.uniform() * if pure.is_finite() { pure } else { 3.0 };
        let approximate = DpEvent::ApproximateDp { epsilon, delta: self.delta(epsilon) };
        if pure.is_finite() { vec![DpEvent::PureDp { epsilon: pure }, approximate] } else { vec![approximate] }
    }
}

/// A mechanism on data sets of at most three binary records: one law for each pair of counts of the two values.
#[derive(Debug, Clone)]
pub struct Mechanism {
    laws: Vec<Vec<f64>>,
}

impl Mechanism {
    pub fn new(random: &mut Random, spread: f64, zeros: f64) -> Self {
        Self { laws: (0..16).map(|_| random.law(3, spread, zeros)).collect() }
    }

    pub fn law(&self, of_zero: usize, of_one: usize) -> &[f64] {
        &self.laws[4 * of_zero + of_one]
    }

    /// Returns all data sets that differ in at most `distance` records added or removed.
    pub fn add_remove(&self, distance: usize) -> Pairs {
        let mut pairs = Pairs::default();
        for (a, b) in data_sets(3) {
            for (c, d) in data_sets(3) {
                if a.abs_diff(c) + b.abs_diff(d) <= distance {
                    pairs.add(self.law(a, b).to_vec(), self.law(c, d).to_vec());
                }
            }
        }
        pairs
    }

    /// Returns all data sets of `size` records that differ in one record's value.
    pub fn replace_one(&self, size: usize) -> Pairs {
        let mut pairs = Pairs::default();
        for ones in 0..size {
            pairs.add(self.law(size - ones, ones).to_vec(), self.law(size - ones - 1, ones + 1).to_vec());
        }
        pairs
    }
}

/// Numbers of zeros and of ones with a sum of at most `size`.
pub fn data_sets(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..=size).flat_map(move |a| (0..=size - a).map(move |b| (a, b)))
}

pub fn choose(n: usize, k: usize) -> f64 {
    (1..=k).fold(1.0, |product, i| product * (n + 1 - i) as f64 / i as f64)
}

/// Checks enumerated pairs against their bounds, and records how close any came to its bound.
#[derive(Debug, Default)]
pub struct Checks {
    closest: f64,
}

impl Checks {
    pub fn at_most(&mut self, what: &str, truth: f64, bound: f64) {
        assert!(truth <= bound * (1.0 + 1e-9) + 1e-14, "{what}: {truth} > {bound}");
        if truth > 1e-9 && truth < 0.999 * f64::MAX {
            self.closest = self.closest.max(truth / bound);
        }
    }

    /// Checks delta of `pairs` at several epsilons against the bound of `event`, and epsilon at those deltas.
    pub fn curve(&mut self, what: &str, pairs: &Pairs, event: &DpEvent) {
        let top = pairs.pure().min(12.0);
        for fraction in [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.01] {
            let epsilon = fraction * top;
            let (truth, bound) = (pairs.delta(epsilon), bound::delta(event, epsilon).unwrap().value);
            self.at_most(&format!("{what}, delta at {epsilon} of {event:?}"), truth, bound);
            if truth > 1e-12 && truth < 1.0 {
                let target = dp_accountant::Delta::new(truth * (1.0 - 1e-9)).unwrap();
                let bound = bound::epsilon(event, target).unwrap().value;
                assert!(
                    bound >= epsilon * (1.0 - 1e-6),
                    "{what}, epsilon at {truth} of {event:?}: {epsilon} > {bound}"
                );
            }
        }
    }

    /// Asserts that some true value came this close to its bound.
    pub fn came_within(&self, ratio: f64) {
        assert!(self.closest >= ratio, "all bounds are loose: {}", self.closest);
    }
}
