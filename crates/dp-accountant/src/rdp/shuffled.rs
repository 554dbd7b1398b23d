//! Shuffled answers of local randomisers.

use super::finite_pair::moment_excess;
use super::pure;
use crate::shuffled::{Bound, clones, outcomes};

/// Number of buckets of the number of clones; each is charged as its least, which changes the loss by less than `n^-1/2`.
const BUCKETS: usize = 24;

/// Largest average number of clones; more records count as no more clones, since fewer clones reveal more.
const MANY_CLONES: f64 = 1e6;

/// Returns an upper bound on the Renyi divergence of order `order >= 1`: that of the pair of [`crate::shuffled`], with the number
/// of clones revealed; at most that of one record's answer.
///
/// # Formula
/// `1/(a-1) ln(1 + E_C E_Q [r^a - 1 - a (r - 1)])` with the ratio r of the two laws given C. The laws are exchanged if the two
/// counts are, so that one direction suffices.
pub(crate) fn rdp(order: f64, epsilon: f64, records: u64) -> f64 {
    let alone = pure::rdp(order, epsilon);
    if order <= 1.0 || epsilon == 0.0 {
        return alone;
    }
    let records = records.min((MANY_CLONES * epsilon.exp()).ceil() as u64);
    let (buckets, mut lost) = clones(epsilon, records, BUCKETS, Bound::Upper);
    let mut excess = 0.0;
    for (clones, weight) in buckets {
        let mut given_clones = 0.0;
        let (left_out, error) = outcomes(epsilon, clones, |p, q| {
            given_clones += q * moment_excess(order, ((p - q) / q).ln_1p());
        });
        excess += weight * given_clones * (1.0 + 2.0 * error);
        lost += weight * left_out;
    }
    // The rounding of the binomial weights and of the sums, and the omitted part at the largest ratio.
    excess *= 1.0 + 1e-9;
    let bound = (excess + lost * ((order - 1.0) * epsilon).exp()).ln_1p() / (order - 1.0);
    // NaN and infinity fail the comparison.
    if bound < alone { bound } else { alone }
}

#[cfg(test)]
mod tests {
    use super::rdp;

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

    #[test]
    fn never_more_than_one_answer_alone() {
        for order in [1.0, 1.5, 10.0, 1e4, 1e6] {
            assert!(rdp(order, 2.0, 1000) <= super::pure::rdp(order, 2.0) * (1.0 + 1e-15));
        }
        assert_eq!(rdp(2.0, 0.0, 10), 0.0);
        // A larger number of records is counted as a smaller one.
        assert!(rdp(2.0, 0.5, u64::MAX) <= rdp(2.0, 0.5, 1_000_000));
    }
}
