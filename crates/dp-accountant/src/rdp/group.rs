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
//! For `k = 2` this is the weak triangle inequality of Mironov 2017, Proposition 11, with `t_0 = 1/p`; the bound is convex in
//! `t_0`, a sum of perspectives of the convex function `c`, and the best weight is computed. For larger groups the weights are
//! from the family in which `A_j^(-s)` is evenly spaced from `a^(-s)` to `(a-1)^(-s)`. At `s = 1` the orders are `b = k(a-1) + 1,
//! ..., k a` and
//!
//! ```text
//! D_a <= k a sum_b D_b / b,
//! ```
//!
//! which is exact for Gaussians: `k^2 a mu^2/2`. For groups of three and four other exponents are tried too.

use super::prepared::Base;
use super::pure;
use crate::leaves::Leaves;
use crate::leaves::pure::pure_epsilon_of_all;
use crate::rounding::{add_up, count_up, mul_up};

/// Number of runs of orders for larger groups; each run is bounded by its largest order.
const RUNS: u64 = 64;

const ROUND_UP: f64 = 1.0 + 16.0 * f64::EPSILON;

/// A group's curve, prepared for many orders.
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

    /// Returns an upper bound on the Renyi divergence of order `order >= 1`.
    pub(super) fn rdp(&self, order: f64) -> f64 {
        let least = of_chain(order, self.size, |order| self.base.at(order));
        if self.pure_epsilon.is_finite() { least.min(pure::rdp(order, self.pure_epsilon)) } else { least }
    }
}

/// Returns the Renyi divergence between data sets that differ in `size` records, from a bound `curve` on that of one record, at
/// every order.
///
/// # Formula
/// ```text
/// rdp(a) <= k a sum_b curve(b)/b,    b = k(a-1) + 1, k(a-1) + 2, ..., k a,    k = size,
/// ```
///
/// exact for Gaussian noise; for at most four records it is the best of a family of such inequalities.
///
/// # Privacy
/// Under the relation of the curve, which covers both directions, for `size` changes of one record each.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, rdp};
/// // Gaussian noise: the same as one record of three times the sensitivity.
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
    let least = evenly(order, size, &curve);
    // Any choice of weights is sound. At order 1 the others have a limit of 0/0.
    match size {
        2 if order > 1.0 => least.min(of_two(order, &curve)),
        3 | 4 if order > 1.0 => {
            let others = [-30.0, -10.0, -3.0, -1.0, 0.0, 2.0, 4.0, 10.0, 30.0];
            others.iter().fold(least, |least, &s| least.min(weighted(order, size, s, &curve)))
        }
        _ => least,
    }
}

/// Returns the bound with the best weights `t, 1 - t`: it is convex in `t`, a sum of perspectives of the convex `c`.
fn of_two(order: f64, curve: impl Fn(f64) -> f64) -> f64 {
    let excess = order - 1.0;
    let at = |t: f64| {
        let rest = 1.0 - t;
        if !(t > 0.0 && rest > 0.0) {
            return f64::INFINITY;
        }
        let (first, second) = (order / t * ROUND_UP, (order - t) / rest * ROUND_UP);
        let bound = ((order - t) * curve(first) + excess * curve(second)) / excess * ROUND_UP;
        if bound.is_nan() { f64::INFINITY } else { bound }
    };
    let logistic = |y: f64| at((1.0 + (-y).exp()).recip());
    // Starts from the weights that are best for Gaussians.
    let start = order - order * excess / (order - 0.5);
    super::order::minimise_from((start / (1.0 - start)).ln(), logistic)
}

/// Returns the bound with exponent 1, in runs if the group is large.
fn evenly(order: f64, size: u64, curve: impl Fn(f64) -> f64) -> f64 {
    let times = count_up(size);
    let runs = size.min(RUNS);
    let start = times * (order - 1.0);
    let mut sum = 0.0;
    let mut before = 0;
    for run in 1..=runs {
        let last = (u128::from(size) * u128::from(run) / u128::from(runs)) as u64;
        let (from, to, members) = (start + before as f64, start + last as f64, (last - before) as f64);
        // The sum of 1/b over the run is at most its integral from `from`, and at most the count times its first term.
        let reciprocals = if last - before == 1 {
            to.recip()
        } else {
            (members / (from + 1.0)).min(if from > 0.0 { (to / from).ln() } else { f64::INFINITY })
        };
        sum = add_up(sum, curve(to) * reciprocals);
        before = last;
    }
    let bound = times * order * sum * ROUND_UP;
    if bound.is_nan() { f64::INFINITY } else { bound }
}

/// Returns the bound with exponent `s`. The rounded weights are a valid choice too: neighbouring `A_j` differ exactly, or up to
/// rounding if they are far apart.
fn weighted(order: f64, size: u64, s: f64, curve: impl Fn(f64) -> f64) -> f64 {
    let times = count_up(size);
    let (log_first, log_last) = (order.ln(), (order - 1.0).ln());
    let part = |j: u64| {
        if j == 0 {
            return order;
        }
        if j == size {
            return order - 1.0;
        }
        let share = j as f64 / times;
        if s == 0.0 {
            (log_first + share * (log_last - log_first)).exp()
        } else {
            ((1.0 - share) * (-s * log_first).exp() + share * (-s * log_last).exp()).powf(-1.0 / s)
        }
    };
    let mut sum = 0.0;
    let mut before = part(0);
    for j in 1..=size {
        let next = part(j);
        let weight = before - next;
        if !(weight > 0.0 && next.is_finite()) {
            return f64::INFINITY;
        }
        // The order rounded up: divergences do not decrease with the order.
        let along = before / weight * ROUND_UP;
        // t (b - 1) = A_j - t = A_(j+1)
        sum = add_up(sum, next * curve(along));
        before = next;
    }
    let bound = sum / (order - 1.0) * ROUND_UP;
    if bound.is_nan() { f64::INFINITY } else { bound }
}

#[cfg(test)]
mod tests;
