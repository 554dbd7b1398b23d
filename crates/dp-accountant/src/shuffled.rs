//! The pair of laws that dominates shuffled answers of local randomisers.
//!
//! # Formula
//! With `n` records and `p = e^e0/(1 + e^e0)`, draw `C ~ Bin(n - 1, e^-e0)`, `A ~ Bin(C, 1/2)` and `D ~ Bernoulli(p)`. The
//! pair is
//!
//! ```text
//! (A + D, C - A + 1 - D)    against    (A + 1 - D, C - A + D).
//! ```
//!
//! **Proof.** Let the first record change from x to x'. By Kairouz, Oh and Viswanath there are laws `U, V` with `R(x) = p U +
//! (1-p) V` and `R(x') = (1-p) U + p V`. Any other record's answer has `R(y) >= e^-e0 R(x)` and `>= e^-e0 R(x')`, hence at least
//! their mean, `e^-e0 (U + V)/2`: with probability `e^-e0` it is a fair choice of U and V, and otherwise from its own law. Given
//! the numbers of answers from U and from V, the shuffled answers can be sampled without knowing which record changed; so they
//! are post-processing of the two counts. The randomiser may depend on earlier answers, if each is `e0`-DP.
//!
//! **Fewer clones reveal more**: given the counts for C clones, a fair coin adds one, so the pair given C dominates that given
//! C + 1. Replacing C by the least of a bucket of values thus gives an upper bound.
//!
//! The pair is an upper bound only: no randomiser need attain it. A lower bound is what randomised response reveals, with probability
//! `p` of the true bit: if all other bits are 0, the number of answers 1 is `Bin(n - 1, 1-p)` plus the first record's answer.
//!
//! # References
//! Feldman, McMillan and Talwar 2021, "Hiding among the clones", Theorem 3.1 and its proof, arXiv:2012.12803.

use crate::logspace::CompensatedSum;

/// Binomial probabilities below this fraction of the largest are omitted.
const NEGLIGIBLE: f64 = 1e-60;

/// Binomial probabilities around the mode.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Binomial {
    /// The number of successes of the first probability.
    pub(crate) first: u64,
    /// Probabilities of consecutive numbers.
    pub(crate) masses: Vec<f64>,
    /// Upper bound on the probability of the omitted numbers.
    pub(crate) lost: f64,
}

impl Binomial {
    /// Returns the law of the number of successes among `trials` with `odds` of success to failure; its relative error grows by
    /// `4 * 2^-53` for each step from the mode.
    pub(crate) fn new(trials: u64, odds: f64) -> Self {
        let n = trials as f64;
        let mode = ((n + 1.0) * (odds / (1.0 + odds))).floor().clamp(0.0, n) as u64;
        // Towards more successes, then towards fewer.
        let up = |k: u64| (trials - k) as f64 / (k + 1) as f64 * odds;
        let down = |k: u64| k as f64 / ((trials - k + 1) as f64 * odds);
        let (mut lost, mut mass, mut k) = (0.0, 1.0, mode);
        let mut above = vec![1.0];
        while k < trials {
            mass *= up(k);
            k += 1;
            if mass < NEGLIGIBLE {
                // The terms fall at least geometrically from here on.
                lost += mass / (1.0 - up(k).min(0.999_999_9)) * if up(k) < 0.999_999_9 { 1.0 } else { n };
                break;
            }
            above.push(mass);
        }
        let mut below = Vec::new();
        (mass, k) = (1.0, mode);
        while k > 0 {
            mass *= down(k);
            k -= 1;
            if mass < NEGLIGIBLE {
                lost += mass / (1.0 - down(k).min(0.999_999_9)) * if down(k) < 0.999_999_9 { 1.0 } else { n };
                break;
            }
            below.push(mass);
        }
        let first = mode - below.len() as u64;
        let mut masses: Vec<f64> = below.into_iter().rev().chain(above).collect();
        let mut sum = CompensatedSum::default();
        masses.iter().for_each(|mass| sum.add(*mass));
        masses.iter_mut().for_each(|mass| *mass /= sum.value());
        Self { first, masses, lost }
    }

    /// Returns a bound on the relative error of each probability.
    pub(crate) fn relative_error(&self) -> f64 {
        (4.0 + 2.0 * self.masses.len() as f64) * f64::EPSILON
    }
}

/// Returns numbers of clones with their probabilities, in at most `buckets` buckets, and the omitted probability. The fewest clones
/// of a bucket represent it.
pub(crate) fn clones(epsilon: f64, records: u64, buckets: usize) -> (Vec<(u64, f64)>, f64) {
    // e^-e0 to 1 - e^-e0.
    let law = Binomial::new(records.saturating_sub(1), 1.0 / epsilon.exp_m1());
    let width = law.masses.len().div_ceil(buckets.max(1));
    let bucket = |(index, masses): (usize, &[f64])| (law.first + (index * width) as u64, masses.iter().sum());
    (law.masses.chunks(width).enumerate().map(bucket).collect(), law.lost)
}

/// Calls `visit` with the probabilities under both laws of each number of answers from U, given the number of clones. Returns the
/// omitted probability and a bound on the relative error.
pub(crate) fn outcomes(epsilon: f64, clones: u64, visit: impl FnMut(f64, f64)) -> (f64, f64) {
    with_first(epsilon, &Binomial::new(clones, 1.0), visit)
}

/// Calls `visit` with the probabilities under both laws of each number of answers 1, for randomised response where all records but
/// the first are 0. Returns a bound on the relative error.
pub(crate) fn responses(epsilon: f64, records: u64, visit: impl FnMut(f64, f64)) -> f64 {
    with_first(epsilon, &Binomial::new(records.saturating_sub(1), (-epsilon).exp()), visit).1
}

/// Adds the first record's answer, which is 1 with probability `p` or `1-p`, to the number of the others.
fn with_first(epsilon: f64, others: &Binomial, mut visit: impl FnMut(f64, f64)) -> (f64, f64) {
    let (likely, unlikely) = (1.0 / (1.0 + (-epsilon).exp()), 1.0 / (1.0 + epsilon.exp()));
    let mut before = 0.0;
    for mass in others.masses.iter().copied().chain([0.0]) {
        visit(likely * before + unlikely * mass, unlikely * before + likely * mass);
        before = mass;
    }
    (others.lost, others.relative_error() + 8.0 * f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_probabilities_of_small_numbers() {
        let law = Binomial::new(4, 3.0);
        assert_eq!(law.first, 0);
        for (mass, expected) in law.masses.iter().zip([1.0, 12.0, 54.0, 108.0, 81.0]) {
            assert!((mass - expected / 256.0).abs() < 1e-15);
        }
        assert_eq!(Binomial::new(0, 2.0).masses, [1.0]);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let law = Binomial::new(1_000_000, 1e-3);
        assert!(law.first > 0 && law.masses.len() < 2000 && law.lost > 0.0 && law.lost < 1e-58);
        let mean: f64 = (law.first..).zip(&law.masses).map(|(k, mass)| k as f64 * mass).sum();
        assert!((mean / (1e6 * 1e-3 / 1.001) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn outcomes_are_a_law() {
        let (mut p, mut q) = (0.0, 0.0);
        let (lost, _) = outcomes(1.3, 7, |mass_p, mass_q| {
            p += mass_p;
            q += mass_q;
            assert!((mass_p / mass_q).ln().abs() <= 1.3 + 1e-12);
        });
        assert!((p - 1.0f64).abs() < 1e-15 && (q - 1.0f64).abs() < 1e-15 && lost == 0.0);
    }
}
