//! Any mechanism on a Poisson sample.
//!
//! A record takes part with probability `q`. With `P` the output law if it does and `Q` if it does not, the neighbours' output
//! laws are `(1-q) Q + q P` (the mixture) and `Q` (the base). At an integer order `a` the binomial theorem gives, with `e(l)` a
//! bound on the divergence of order `l`,
//!
//! ```text
//! E_Q[(1 - q + q P/Q)^a] <= (1-q)^(a-1) (a q - q + 1) + sum_(l=2..a) C(a,l) q^l (1-q)^(a-l) e^((l-1) e(l))      (1)
//!                         = 1 + sum_(l=2..a) C(a,l) q^l (1-q)^(a-l) (e^((l-1) e(l)) - 1).
//! ```
//!
//! **The other direction satisfies the same bound** for every mechanism, if `e(l)` covers both of its directions, so that no
//! factor 3 is needed. Put `r = P/Q`, `w = 1 - q + q r`, `s = 1 - q + q/r`, `t = 3(1-q)/(3 + 2(a-2)q)`, which lies in `[0, 1]`,
//! and
//!
//! ```text
//! h(r) = t w^a + (1-t) r s^a - w^(1-a),    h(1) = 0.
//! h''(r) / (a (a-1) q^2) = t w^(a-2) + (1-t) s^(a-2) r^-3 - w^(-a-1).
//! ```
//!
//! This is non-negative: by the inequality of arithmetic and geometric means it suffices that
//!
//! ```text
//! [t (a-2) + a + 1] ln w + (1-t)(a-2) ln s - 3 (1-t) ln r >= 0,
//! ```
//!
//! which is convex in `ln r`, with value 0 and, by the choice of `t`, slope 0 at `r = 1`. So `h` lies above its tangent
//! at 1, and taking the mean under `Q`, where `r` has mean 1,
//!
//! ```text
//! E_Q[w^(1-a)] <= t E_Q[w^a] + (1-t) E_P[s^a] :
//! ```
//!
//! the base against the mixture is at most the larger of (1) for `(P, Q)` and (1) for `(Q, P)`, at every real `a >= 2`.

use core::cell::RefCell;

use super::integer_orders::{LogFactorials, PositiveSum, read};
use super::prepared::Base;
use super::{convexity, poisson_gaussian, pure};
use crate::leaves::pure::pure_epsilon;
use crate::leaves::{Leaf, Leaves};
use crate::logspace::log_exp_m1;
use crate::params::{RdpOrder, SamplingRate};
use crate::rounding::{add_up, count_up, mul_up};

/// Returns the Renyi divergence of any mechanism on a Poisson sample, from a bound `curve` on its own divergence, in both
/// directions, at every integer order from 2 to the one above `order`.
///
/// # Formula
/// At an integer order `a`, with `q` the sampling rate, the least of (1) and of convexity's `(1 - q) + q e^((a-1) rdp)`:
///
/// ```text
/// rdp(a) = ln( 1 + sum_(l=2..a) C(a,l) q^l (1-q)^(a-l) (e^((l-1) curve(l)) - 1) ) / (a - 1)                     (1)
/// ```
///
/// and between integers the chord of `(a - 1) rdp(a)`. Up to order 2 it is the bound of order 2. The number of evaluations of
/// `curve` equals the order; event trees cache them.
///
/// # Privacy
/// One record added or removed, both directions. The curve's sensitivities are those of one record of the sample.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, SamplingRate, rdp};
/// // Noise of standard deviation 2: rdp = order / 8.
/// let sampled = rdp::poisson_sampled(RdpOrder::new(2.0)?, SamplingRate::new(0.01)?, |order| order / 8.0);
/// assert!((sampled / (1e-4 * 0.25f64.exp_m1()).ln_1p() - 1.0).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Zhu and Wang 2019, "Poisson subsampled Renyi differential privacy", Theorem 5 (with a factor 3 on the terms from
/// `l = 3`, see [`poisson_sampled_as_published`]) and Theorem 8; Steinke 2022, "Composition of differential privacy and privacy
/// amplification by subsampling", Theorem 32, arXiv:2210.00597; the source contains the proof that factor 1 always holds.
pub fn poisson_sampled(order: RdpOrder, sampling_rate: SamplingRate, curve: impl Fn(f64) -> f64) -> f64 {
    let (order, rate) = (order.get(), sampling_rate.get());
    if rate == 0.0 {
        return 0.0;
    }
    let own = curve(order);
    if rate == 1.0 {
        return own;
    }
    let table = RefCell::default();
    let sum = read(order, |integer| sum_at(integer, rate, &table, 1.0, &curve));
    sum.min(convexity::mixed_with_nothing(order, rate, own))
}

/// Returns the first published bound at an integer order, for comparison with papers: [`poisson_sampled`] is never larger.
///
/// # Formula
/// (1) of [`poisson_sampled`] with the terms `e^((l-1) curve(l))` from `l = 3` on multiplied by 3.
///
/// # References
/// Zhu and Wang 2019, "Poisson subsampled Renyi differential privacy", Theorem 5.
pub fn poisson_sampled_as_published(order: u32, sampling_rate: SamplingRate, curve: impl Fn(f64) -> f64) -> f64 {
    sum_at(f64::from(order.max(2)), sampling_rate.get(), &RefCell::default(), 3.0, &curve)
}

/// The cached values of the base: `(l - 1) curve(l)` for `l` from 2.
#[derive(Debug, Clone, Default)]
struct Table {
    exponents: Vec<f64>,
    log_factorials: LogFactorials,
}

/// Returns the sum (1) at an integer order, terms from 3 on multiplied by `factor`.
fn sum_at(order: f64, rate: f64, table: &RefCell<Table>, factor: f64, curve: &dyn Fn(f64) -> f64) -> f64 {
    let last = order as usize;
    let mut table = table.borrow_mut();
    for l in table.exponents.len() + 2..=last {
        let exponent = (l - 1) as f64 * curve(l as f64);
        table.exponents.push(exponent);
    }
    let Table { exponents, log_factorials } = &mut *table;
    let log_factorials = log_factorials.extend_to(last);
    let (log_rate, log_rest) = (rate.ln(), (-rate).ln_1p());
    let mut sum = PositiveSum::new();
    for (l, &exponent) in (2..=last).zip(exponents.iter()) {
        let (count, rest) = (l as f64, (last - l) as f64);
        let binomial = log_factorials[last] - log_factorials[l] - log_factorials[last - l];
        let weight = binomial + count * log_rate + rest * log_rest;
        let excess = if factor == 1.0 || l == 2 {
            log_exp_m1(exponent)
        } else {
            // e^x factor - 1 = (factor - 1) + factor (e^x - 1).
            crate::logspace::log_add((factor - 1.0).ln(), factor.ln() + log_exp_m1(exponent))
        };
        let size = log_factorials[last] - count * log_rate - rest * log_rest + exponent + excess.abs();
        sum.add(weight + excess, size);
    }
    sum.divergence(order)
}

/// A Poisson-sampled base, prepared for many orders.
#[derive(Debug, Clone)]
pub(super) struct Sampled<'a> {
    rate: f64,
    base: Base<'a>,
    /// `mu` of the Gaussian whose curve is the base's.
    gaussian_mu: Option<f64>,
    pure_epsilon: f64,
    /// Largest order of the sum.
    largest_order: f64,
    table: RefCell<Table>,
}

impl<'a> Sampled<'a> {
    pub(super) fn new(leaf: &'a Leaf, rate: f64, base: &'a Leaves, largest_order: f64) -> Self {
        Self {
            rate,
            base: Base::new(base),
            gaussian_mu: gaussian_mu(base),
            pure_epsilon: pure_epsilon(leaf),
            largest_order,
            table: RefCell::default(),
        }
    }

    /// Returns an upper bound on the Renyi divergence of order `order >= 1`.
    pub(super) fn rdp(&self, order: f64) -> f64 {
        let mut least = convexity::mixed_with_nothing(order, self.rate, self.base.at(order));
        if self.pure_epsilon.is_finite() {
            least = least.min(pure::rdp(order, self.pure_epsilon));
        }
        if let Some(mu) = self.gaussian_mu {
            // At integer orders (1) is the Gaussian's own sum.
            least.min(read(order, |integer| poisson_gaussian::rdp(integer, self.rate, mu)))
        } else if order <= self.largest_order {
            least.min(read(order, |integer| sum_at(integer, self.rate, &self.table, 1.0, &|l| self.base.at(l))))
        } else {
            least
        }
    }
}

/// Returns `mu` of the Gaussian with the same curve, if the base's is proportional to the order.
fn gaussian_mu(base: &Leaves) -> Option<f64> {
    let mut square = 0.0;
    for (leaf, count) in base {
        let term = match leaf {
            Leaf::Gaussian { mu } => mul_up(*mu, *mu),
            Leaf::Zcdp { rho } => 2.0 * rho,
            Leaf::DiscreteGaussian { scale, sensitivity, .. } => {
                let mu = crate::rounding::div_up(*sensitivity, *scale);
                mul_up(mu, mu)
            }
            _ => return None,
        };
        square = add_up(square, mul_up(count_up(*count), term));
    }
    Some(square.sqrt() * (1.0 + 2.0 * f64::EPSILON)).filter(|mu| *mu > 0.0 && mu.is_finite())
}

#[cfg(test)]
mod tests;
