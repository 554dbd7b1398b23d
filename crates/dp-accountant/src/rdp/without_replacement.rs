//! Any mechanism on a sample of fixed size, under replace-one.
//!
//! With `q` the sampling rate and `e(j)` a bound on the base's divergence of order `j`, in both directions, the
//! three-point argument of Wang, Balle and Kasiviswanathan bounds the binomial expansion term by term:
//!
//! ```text
//! e^((a-1) rdp(a)) <= 1 + sum_(j=2..a) q^j C(a,j) z(j)                                                        (1)
//! z(2) = min{ 4 (e^e(2) - 1), e^e(2) min(2, (e^E - 1)^2) }
//! z(j) = e^((j-1) e(j)) min(2, (e^E - 1)^j),    j >= 3,
//! ```
//!
//! with `E` the base's pure epsilon, infinite if it has none. If one pair `(P, Q)` dominates the base in both directions, its
//! even central moments `B(l) = E_Q[(P/Q - 1)^l]` can be used too:
//!
//! ```text
//! z(j) <= 4 sqrt( B(2 floor(j/2)) B(2 ceil(j/2)) ).
//! ```
//!
//! (Both are f-divergences of a convex f, which are no smaller for a dominating pair.) The published formula for `B` is an
//! alternating sum of exponentials of `e`, which cancels completely in floating point; here they are integrals and sums of
//! positive terms.

mod moments;

use core::cell::RefCell;

use super::integer_orders::{LogFactorials, PositiveSum, read};
use super::prepared::Base;
use super::{convexity, pure};
use crate::leaves::pure::{pure_epsilon, pure_epsilon_of_all};
use crate::leaves::{Leaf, Leaves};
use crate::logspace::log_exp_m1;
use crate::params::{RdpOrder, SamplingRate};
use moments::Pair;

/// Returns the Renyi divergence of any mechanism on a sample of fixed size, from a bound `curve` on its own divergence, in both
/// directions, at every integer order from 2 to the one above `order`, and from its `pure_epsilon`, infinite if it has none.
///
/// # Formula
/// At an integer order `a`, with `q` the sampling rate, the least of convexity's `(1 - q) + q e^((a-1) curve(a))` and of
///
/// ```text
/// rdp(a) = ln( 1 + sum_(j=2..a) q^j C(a,j) z(j) ) / (a - 1),    z(2) = min{ 4 (e^c(2) - 1), e^c(2) min(2, (e^E - 1)^2) }
/// z(j) = e^((j-1) c(j)) min(2, (e^E - 1)^j),    c = curve,    E = pure_epsilon,
/// ```
///
/// and between integers the chord of `(a - 1) rdp(a)`. Up to order 2 it is the bound of order 2. An event tree also uses the
/// moments of its noise, which are smaller.
///
/// # Privacy
/// One record replaced by any other, both directions. The curve's sensitivities are those of one such replacement.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, SamplingRate, rdp};
/// let (order, rate) = (RdpOrder::new(8.0)?, SamplingRate::new(0.01)?);
/// let sampled = rdp::without_replacement(order, rate, f64::INFINITY, |order| order / 32.0);
/// assert!(sampled < 0.01 && 0.25 / sampled > 25.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Wang, Balle and Kasiviswanathan 2019, "Subsampled Renyi differential privacy and analytical moments accountant",
/// Theorem 9, arXiv:1808.00087.
pub fn without_replacement(
    order: RdpOrder,
    sampling_rate: SamplingRate,
    pure_epsilon: f64,
    curve: impl Fn(f64) -> f64,
) -> f64 {
    let (order, rate) = (order.get(), sampling_rate.get());
    if rate == 0.0 {
        return 0.0;
    }
    let own = curve(order);
    if rate == 1.0 {
        return own;
    }
    let table = RefCell::default();
    let sum = read(order, |integer| sum_at(integer, rate, &table, pure_epsilon, &[], &curve));
    sum.min(convexity::mixed_with_nothing(order, rate, own))
}

/// Returns the published bound at an integer order, for comparison with papers: [`without_replacement`] is never larger.
///
/// # Formula
/// The formula of [`without_replacement`] without the convexity bound; with `pure_epsilon` infinite, the form without it.
///
/// # References
/// Wang, Balle and Kasiviswanathan 2019, Theorem 9, arXiv:1808.00087.
pub fn without_replacement_as_published(
    order: u32,
    sampling_rate: SamplingRate,
    pure_epsilon: f64,
    curve: impl Fn(f64) -> f64,
) -> f64 {
    sum_at(f64::from(order.max(2)), sampling_rate.get(), &RefCell::default(), pure_epsilon, &[], &curve)
}

/// The cached values of the base: `ln z(j)` for `j` from 2, with the size of its parts.
#[derive(Debug, Clone, Default)]
struct Table {
    log_terms: Vec<(f64, f64)>,
    /// The least of the pairs' `ln B(2 m)` for `m` from 1, up to where they are useful.
    log_moments: Vec<f64>,
    /// True if further moments are not useful.
    moments_are_large: bool,
    log_factorials: LogFactorials,
}

impl Table {
    fn extend_to(&mut self, last: usize, pure_epsilon: f64, pairs: &[Pair], curve: &dyn Fn(f64) -> f64) {
        let log_loss = log_exp_m1(pure_epsilon);
        let ln_2 = core::f64::consts::LN_2;
        for j in self.log_terms.len() + 2..=last {
            let count = j as f64;
            let exponent = (count - 1.0) * curve(count);
            let ratio = ln_2.min(count * log_loss);
            let mut log = exponent + ratio;
            if j == 2 {
                log = log.min(2.0 * ln_2 + log_exp_m1(exponent));
            }
            let m = j.div_ceil(2);
            if !pairs.is_empty() && !self.moments_are_large && self.log_moments.len() < m {
                let moments = pairs.iter().map(|pair| pair.log_even_moment(2 * m as u32));
                self.log_moments.push(moments.fold(f64::INFINITY, f64::min));
            }
            if let (Some(low), Some(high)) = (self.log_moments.get(j / 2 - 1), self.log_moments.get(m - 1)) {
                let by_moments = 2.0 * ln_2 + 0.5 * (low + high);
                // Once the base's loss is large, both are about the moment of order j, and this one is at least twice as large.
                self.moments_are_large |= by_moments > log + 0.5 && exponent > 10.0;
                log = log.min(by_moments);
            }
            self.log_terms.push((log, exponent + log.abs() + ratio.abs().min(log.abs() + 1.0)));
        }
    }
}

/// Returns the sum (1) at an integer order.
fn sum_at(
    order: f64,
    rate: f64,
    table: &RefCell<Table>,
    pure_epsilon: f64,
    pairs: &[Pair],
    curve: &dyn Fn(f64) -> f64,
) -> f64 {
    let last = order as usize;
    let mut table = table.borrow_mut();
    table.extend_to(last, pure_epsilon, pairs, curve);
    let Table { log_terms, log_factorials, .. } = &mut *table;
    let log_factorials = log_factorials.extend_to(last);
    let log_rate = rate.ln();
    let mut sum = PositiveSum::new();
    for (j, &(log, size)) in (2..=last).zip(log_terms.iter()) {
        let binomial = log_factorials[last] - log_factorials[j] - log_factorials[last - j];
        let power = j as f64 * log_rate;
        sum.add(binomial + power + log, log_factorials[last] - power + size);
    }
    sum.divergence(order)
}

/// A base on a sample of fixed size, prepared for many orders.
#[derive(Debug, Clone)]
pub(super) struct Sampled<'a> {
    rate: f64,
    base: Base<'a>,
    pairs: Vec<Pair>,
    base_pure_epsilon: f64,
    pure_epsilon: f64,
    /// Largest order of the sum.
    largest_order: f64,
    table: RefCell<Table>,
}

impl<'a> Sampled<'a> {
    pub(super) fn new(leaf: &Leaf, rate: f64, base: &'a Leaves, largest_order: f64) -> Self {
        Self {
            rate,
            base: Base::new(base),
            pairs: Pair::of(base),
            base_pure_epsilon: pure_epsilon_of_all(base),
            pure_epsilon: pure_epsilon(leaf),
            largest_order: largest_order.min(2048.0),
            table: RefCell::default(),
        }
    }

    /// Returns an upper bound on the Renyi divergence of order `order >= 1`.
    pub(super) fn rdp(&self, order: f64) -> f64 {
        let at = |order: f64| self.base.at(order);
        let mut least = convexity::mixed_with_nothing(order, self.rate, at(order));
        if self.pure_epsilon.is_finite() {
            least = least.min(pure::rdp(order, self.pure_epsilon));
        }
        if order > self.largest_order {
            return least;
        }
        // Any bound on the divergence at an integer may enter the chord.
        let capped = |integer: f64| {
            let sum = sum_at(integer, self.rate, &self.table, self.base_pure_epsilon, &self.pairs, &at);
            sum.min(convexity::mixed_with_nothing(integer, self.rate, at(integer)))
        };
        least.min(read(order, capped))
    }
}

#[cfg(test)]
mod tests;
