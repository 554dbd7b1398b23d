//! Groups of records.
//!
//! Let `P_0, ..., P_k` be the output laws along a chain of `k` changes of one record. Write, for `t_j > 0` with sum 1,
//! `A_j = a - sum_(i<j) t_i` (so `A_0 = a`, `A_k = a - 1`) and `b_j = A_j/t_j`. The exponents of each `P_j` in
//!
//! ```text
//! P_0^a P_k^(1-a) = prod_j ( P_j^(b_j) P_(j+1)^(1-b_j) )^(t_j),    j = 0..k-1,
//! ```
//!
//! agree, since `t_j b_j = A_j` and `t_(j-1) (1 - b_(j-1)) = -A_j`. Hoelder's inequality gives, for `c(b) = (b-1) D_b`,
//!
//! ```text
//! (a-1) D_a(P_0 || P_k) <= sum_j t_j c(b_j).
//! ```
//!
//! For `k = 2` this is the weak triangle inequality of Mironov 2017, Proposition 11. Two choices of the weights use the
//! same `k` orders, `b = k(a-1) + 1, ..., k a`:
//!
//! ```text
//! A_j = a (a-1)/(a - 1 + j/k):     D_a <= k a sum_b D_b / b,               exact for Gaussians: k^2 a mu^2/2;
//! t_j = 1/k:                       D_a <= sum_b (b - 1) D_b / (k (a - 1)),   less for curves that are flat.
//! ```

use super::prepared::Base;
use super::pure;
use crate::leaves::Leaves;
use crate::leaves::pure::pure_epsilon_of_all;
use crate::rounding::{add_up, count_up, mul_up};

/// Larger groups are read in this many runs of orders, each by its largest.
const RUNS: u64 = 64;

/// A group's curve, ready for many orders.
#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    size: u64,
    base: Base<'a>,
    pure_epsilon: f64,
}

impl<'a> Group<'a> {
    pub(super) fn new(size: u64, base: &'a Leaves) -> Self {
        let pure_epsilon = mul_up(count_up(size), pure_epsilon_of_all(base));
        Self { size, base: Base::new(base), pure_epsilon }
    }

    /// An upper bound of the Renyi divergence of order `order >= 1`.
    pub(super) fn rdp(&self, order: f64) -> f64 {
        let least = of_chain(order, self.size, |order| self.base.at(order));
        if self.pure_epsilon.is_finite() { least.min(pure::rdp(order, self.pure_epsilon)) } else { least }
    }
}

/// The Renyi divergence between data sets that differ in `size` records, from a bound `curve` on that of one record, at
/// every order.
///
/// # Formula
/// ```text
/// rdp(a) = min{ k a sum_b curve(b)/b,  sum_b (b - 1) curve(b) / (k (a - 1)) },    b = k(a-1) + 1, ..., k a,   k = size
/// ```
///
/// # Privacy
/// Under the relation of the curve, which covers both directions, for `size` changes of one record each.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, rdp};
/// // Gaussian noise: as one record of three times the sensitivity.
/// let three = rdp::group_of(RdpOrder::new(4.0)?, 3, |order| 0.5 * order);
/// assert!((three - 18.0).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Mironov 2017, Proposition 11 (two records); the chain by Hoelder's inequality is derived in the source.
pub fn group_of(order: crate::params::RdpOrder, size: u64, curve: impl Fn(f64) -> f64) -> f64 {
    if size == 0 { 0.0 } else { of_chain(order.get(), size, curve) }
}

fn of_chain(order: f64, size: u64, curve: impl Fn(f64) -> f64) -> f64 {
    let times = count_up(size);
    let runs = size.min(RUNS);
    let start = times * (order - 1.0);
    // Orders b with weights: proportional to 1/b, and to b - 1.
    let (mut harmonic, mut flat) = (0.0, 0.0);
    let mut before = 0;
    for run in 1..=runs {
        let last = (u128::from(size) * u128::from(run) / u128::from(runs)) as u64;
        let (from, to, members) = (start + before as f64, start + last as f64, (last - before) as f64);
        let divergence = curve(to);
        // The sum of 1/b over the run is at most its integral from `from`, and than all at the first.
        let reciprocals = (members / (from + 1.0)).min(if from > 0.0 { (to / from).ln() } else { f64::INFINITY });
        let reciprocals = if members == 1.0 { to.recip() } else { reciprocals };
        harmonic = add_up(harmonic, divergence * reciprocals);
        flat = add_up(flat, divergence * members * (to - 1.0));
        before = last;
    }
    let round_up = 1.0 + 16.0 * f64::EPSILON;
    let harmonic = times * order * harmonic * round_up;
    let flat = flat / (times * (order - 1.0)) * round_up;
    // NaN fails the comparison.
    let least = if flat < harmonic { flat } else { harmonic };
    if least.is_nan() { f64::INFINITY } else { least }
}

#[cfg(test)]
mod tests;
