//! Shuffled answers of local randomisers.

use core::cell::OnceCell;

use super::finite_pair::moment_excess;
use super::pure;
use crate::shuffled::{clones, outcomes};
use crate::work;

/// Number of buckets of the number of clones; each is charged as its least, which changes the loss by less than `n^-1/2`.
const BUCKETS: usize = 24;

/// Largest average number of clones; more records count as no more clones, since fewer clones reveal more.
const MANY_CLONES: f64 = 1e6;

/// Maximum number of atoms of a law.
const MOST_ATOMS: usize = 4096;

/// Elementary steps per outcome of a law that is made, and per atom of one that is evaluated.
const STEPS_PER_OUTCOME: f64 = 20.0;
const STEPS_PER_ATOM: f64 = 20.0;

/// Shuffled answers, prepared for many orders.
#[derive(Debug, Clone)]
pub(crate) struct Shuffled {
    epsilon: f64,
    records: u64,
    law: OnceCell<Law>,
}

/// The law of the ratio r of the pair's two laws under the second, with the number of clones revealed.
#[derive(Debug, Clone)]
struct Law {
    /// `r - 1` and its probability.
    atoms: Vec<(f64, f64)>,
    /// Omitted probability.
    lost: f64,
    /// Bound on the relative error of the probabilities.
    error: f64,
}

impl Law {
    fn new(epsilon: f64, records: u64) -> Self {
        let records = records.min((MANY_CLONES * epsilon.exp()).ceil() as u64);
        let (buckets, mut lost) = clones(epsilon, records, BUCKETS);
        let (mut atoms, mut ends, mut error) = (Vec::new(), Vec::new(), 0.0_f64);
        for (clones, weight) in buckets {
            let first = atoms.len();
            let (left_out, relative) = outcomes(epsilon, clones, |p, q| atoms.push(((p - q) / q, weight * q)));
            // The first and the last outcome have the ratios of one answer, far from those of the others.
            ends.extend(atoms.pop());
            if atoms.len() > first {
                ends.push(atoms.swap_remove(first));
            }
            lost += weight * left_out;
            error = error.max(relative);
        }
        work::charge(STEPS_PER_OUTCOME * (atoms.len() + ends.len()) as f64);
        let mut atoms = on_few(atoms);
        atoms.extend(ends);
        Self { atoms, lost, error }
    }
}

/// Returns atoms at equal distances in place of many: each is divided between its two neighbours so that its mean stays. Expectations
/// of convex functions do not decrease.
fn on_few(atoms: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if atoms.len() <= MOST_ATOMS {
        return atoms;
    }
    let (low, high) =
        atoms.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
    let last = MOST_ATOMS - 1;
    let distance = (high - low) / last as f64;
    let mut masses = vec![0.0; MOST_ATOMS];
    for (x, mass) in atoms {
        let place = (x - low) / distance;
        let left = (place as usize).min(last - 1);
        let share = (place - left as f64).clamp(0.0, 1.0);
        masses[left] += (1.0 - share) * mass;
        masses[left + 1] += share * mass;
    }
    masses.into_iter().enumerate().map(|(i, mass)| (low + i as f64 * distance, mass)).collect()
}

impl Shuffled {
    pub(crate) fn new(epsilon: f64, records: u64) -> Self {
        Self { epsilon, records, law: OnceCell::new() }
    }

    /// Returns an upper bound on the Renyi divergence of order `order >= 1`: that of the pair of [`crate::shuffled`], with the number
    /// of clones revealed; at most that of one record's answer.
    ///
    /// # Formula
    /// `1/(a-1) ln(1 + E_C E_Q [r^a - 1 - a (r - 1)])` with the ratio r of the two laws given C. The laws are exchanged if the two
    /// counts are, so that one direction suffices.
    pub(crate) fn rdp(&self, order: f64) -> f64 {
        let epsilon = self.epsilon;
        let alone = pure::rdp(order, epsilon);
        if order <= 1.0 || epsilon == 0.0 {
            return alone;
        }
        let Law { atoms, lost, error } = self.law.get_or_init(|| Law::new(epsilon, self.records));
        work::charge(STEPS_PER_ATOM * atoms.len() as f64);
        let excess: f64 = atoms.iter().map(|(x, mass)| mass * moment_excess(order, x.ln_1p())).sum();
        // The rounding of the binomial weights and of the sums, and the omitted part at the largest ratio.
        let excess = excess * (1.0 + 2.0 * error) * (1.0 + 1e-9);
        let bound = (excess + lost * ((order - 1.0) * epsilon).exp()).ln_1p() / (order - 1.0);
        // NaN and infinity fail the comparison.
        if bound < alone { bound } else { alone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rdp(order: f64, epsilon: f64, records: u64) -> f64 {
        Shuffled::new(epsilon, records).rdp(order)
    }

    /// Enumerates the pair over all numbers of clones, choices and answers.
    fn by_enumeration(order: f64, epsilon: f64, records: u32) -> f64 {
        let choose = |n: u32, k: u32| (1..=k).fold(1.0, |product, i| product * f64::from(n - k + i) / f64::from(i));
        let (clone, likely) = ((-epsilon).exp(), 1.0 / (1.0 + (-epsilon).exp()));
        let mut moment = 0.0;
        for clones in 0..records {
            let weight = choose(records - 1, clones)
                * clone.powi(clones as i32)
                * (1.0 - clone).powi((records - 1 - clones) as i32);
            let half = |a: i64| if a < 0 { 0.0 } else { choose(clones, a as u32) * 0.5f64.powi(clones as i32) };
            for a in 0..=i64::from(clones) + 1 {
                let (one, other) = (half(a - 1), if a > i64::from(clones) { 0.0 } else { half(a) });
                let p = likely * one + (1.0 - likely) * other;
                let q = (1.0 - likely) * one + likely * other;
                moment += weight * p.powf(order) * q.powf(1.0 - order);
            }
        }
        moment.ln() / (order - 1.0)
    }

    #[test]
    fn few_records_by_enumeration() {
        for (order, epsilon, records) in [(2.0, 1.0, 1), (2.0, 1.0, 8), (5.5, 0.3, 20), (1.2, 3.0, 12), (30.0, 2.0, 15)]
        {
            let (got, expected) = (rdp(order, epsilon, records), by_enumeration(order, epsilon, records as u32));
            assert!(got >= expected * (1.0 - 1e-12) && got <= expected * (1.0 + 1e-8), "{got} {expected}");
        }
    }

    #[test]
    fn many_records_amplify_and_buckets_cost_little() {
        // By the central limit: the loss is about twice tanh(1/2) times the share of answers from U, minus half, doubled.
        let expected = 4.0 * 0.5f64.tanh().powi(2) / (1e5 * (-1f64).exp());
        let got = rdp(2.0, 1.0, 100_000);
        assert!(got > 0.98 * expected && got < 1.05 * expected, "{got} {expected}");
        assert!(rdp(2.0, 1.0, 200_000) < got && rdp(2.0, 1.1, 100_000) > got);
    }

    /// Atoms on a grid cost next to nothing, and never less than the outcomes.
    #[test]
    fn a_grid_of_atoms_is_an_upper_bound() {
        for (epsilon, records) in [(0.3, 100_000), (1.0, 1_000_000), (4.0, 3_000_000)] {
            let (buckets, lost_clones) = clones(epsilon, records, BUCKETS);
            let law = Shuffled::new(epsilon, records);
            for order in [1.01, 2.0, 7.5, 64.0, 1000.0] {
                let (mut excess, mut lost) = (0.0, lost_clones);
                for (clones, weight) in &buckets {
                    let (left_out, _) = outcomes(epsilon, *clones, |p, q| {
                        excess += weight * q * moment_excess(order, ((p - q) / q).ln_1p());
                    });
                    lost += weight * left_out;
                }
                let moment = excess + lost * ((order - 1.0) * epsilon).exp();
                let of_outcomes = (moment.ln_1p() / (order - 1.0)).min(pure::rdp(order, epsilon));
                let found = law.rdp(order);
                assert_eq!(law.law.get().unwrap().atoms.len(), MOST_ATOMS + 2 * buckets.len());
                assert!(
                    found >= of_outcomes && found <= 1.0001 * of_outcomes,
                    "{epsilon} {order}: {found} {of_outcomes}"
                );
            }
        }
    }

    #[test]
    fn never_more_than_one_answer_alone() {
        for order in [1.0, 1.5, 10.0, 1e4, 1e6] {
            assert!(rdp(order, 2.0, 1000) <= pure::rdp(order, 2.0) * (1.0 + 1e-15));
        }
        assert_eq!(rdp(2.0, 0.0, 10), 0.0);
        // A larger number of records is counted as a smaller one.
        assert!(rdp(2.0, 0.5, u64::MAX) <= rdp(2.0, 0.5, 1_000_000));
    }
}
