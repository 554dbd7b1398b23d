//! A bound on epsilon from the Renyi divergences spent at several orders, valid at any stopping time.
//!
//! **Theorem.** Let releases be chosen one by one depending on all earlier outcomes, the i-th with Renyi divergence at most
//! `e_i(a)` at order `a` *given* those outcomes. Let `S(a)` be the sum of the `e_i(a)` so far and `L` the privacy loss `ln(P/Q)`
//! of the outcomes so far. For orders `a` and weights `w(a)` fixed in advance, with sum at most 1, and any stopping time, the
//! epsilon that solves
//! ```text
//! epsilon = max_l { l + ln(1 - delta sum_a w(a) e^((a-1)(l - S(a)))) }
//! ```
//!
//! at that time satisfies `P(E) <= E_Q[1_E e^epsilon] + delta` for every set `E` of outcomes.
//!
//! Proof. Under `P`, `M(a) = e^((a-1)(L - S(a)))` is a supermartingale: a release multiplies it by
//! `e^((a-1)(l_i - e_i(a)))`, whose mean given the past is `E_Q'[(P'/Q')^a] e^(-(a-1) e_i(a)) <= 1`, with `P'`, `Q'` the
//! conditional laws; the chosen `e_i` are functions of the past. So at any stopping time `E_P[sum w(a) M(a)] <= 1`
//! (optional stopping for non-negative supermartingales). By the choice of epsilon,
//! `(1 - e^(epsilon - l))_+ <= delta sum w(a) e^((a-1)(l - S(a)))` for every `l`, hence
//! `P(E) - E_Q[1_E e^epsilon] = E_P[1_E (1 - e^(epsilon - L))] <= delta`. QED.
//!
//! For one order this is the improved conversion (Canonne, Kamath and Steinke 2020, Proposition 12), which costs no more than the
//! bound for costs fixed in advance. The supermartingale is that of Feldman and Zrnic 2021 (arXiv:2008.11193); mixing its orders
//! is the method of mixtures, as in Whitehouse, Ramdas, Rogers and Wu 2023 (arXiv:2203.05481). If nothing is spent, the loss is 0
//! and so is epsilon. If only pure guarantees are spent, their sum bounds `l` itself and may replace epsilon at that time.

use crate::error::Error;
use crate::logspace::log_add;
use crate::params::{Delta, RdpOrder};

/// Maximum number of Newton steps, which converge quadratically from the convex side.
const MAX_STEPS: u32 = 100;

/// Covers the rounding of the terms' exponents and of the sums.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// Orders with weights, fixed before anything is spent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderMixture {
    log_delta: f64,
    /// Each order with the logarithm of its weight.
    orders: Vec<(f64, f64)>,
}

impl OrderMixture {
    /// Creates a mixture with equal weights.
    pub(crate) fn new(delta: Delta, orders: &[RdpOrder]) -> Result<Self, Error> {
        if orders.is_empty() {
            return Err(Error::OutOfRange { name: "number of orders", value: 0.0, range: "[1, 2^64)" });
        }
        // Rounded down, so that the weights' sum does not exceed 1.
        let log_weight = -(orders.len() as f64).ln() * (1.0 + f64::EPSILON) - f64::EPSILON;
        let orders = orders.iter().map(|order| match order.get() {
            1.0 => Err(Error::OutOfRange { name: "order", value: 1.0, range: "(1, inf)" }),
            order => Ok((order, if orders.len() == 1 { 0.0 } else { log_weight })),
        });
        Ok(Self { log_delta: delta.get().ln(), orders: orders.collect::<Result<_, _>>()? })
    }

    pub(crate) fn orders(&self) -> impl ExactSizeIterator<Item = f64> {
        self.orders.iter().map(|(order, _)| *order)
    }

    /// Returns epsilon if `spent` is the divergence spent at each order.
    pub(crate) fn epsilon(&self, spent: impl Iterator<Item = f64>) -> f64 {
        let mut terms: Vec<Term> = Vec::with_capacity(self.orders.len());
        let mut nothing = true;
        for (&(order, log_weight), spent) in self.orders.iter().zip(spent) {
            nothing &= spent == 0.0;
            // An order with infinite cost does not affect the bounds of the others.
            if spent < f64::INFINITY {
                let excess = order - 1.0;
                let offset = log_weight + self.log_delta - excess * spent;
                terms.push(Term { excess, offset, size: log_weight.abs() + self.log_delta.abs() + excess * spent });
            }
        }
        if nothing {
            return 0.0;
        }
        if self.log_delta == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        // The maximiser: ln sum_a a e^(offset + (a-1) l) = 0. Each term alone has its zero at -(offset + ln a)/(a-1); the sum
        // reaches 0 no later than the first of them, and Newton's method for a convex increasing function converges to it from
        // the right.
        let start = terms.iter().map(Term::alone).fold(f64::INFINITY, f64::min);
        if !start.is_finite() {
            return f64::INFINITY;
        }
        let mut loss = start;
        for _ in 0..MAX_STEPS {
            let (mut value, mut slope) = (f64::NEG_INFINITY, 0.0);
            for term in &terms {
                value = log_add(value, term.log_at(loss) + term.excess.ln_1p());
            }
            for term in &terms {
                slope += term.excess * (term.log_at(loss) + term.excess.ln_1p() - value).exp();
            }
            let step = value / slope;
            if !(step.abs() > f64::EPSILON * (1.0 + loss.abs())) {
                break;
            }
            loss -= step;
        }
        // At a maximum an error of the maximiser has an effect of second order. The remaining error is the rounding of the
        // exponents, each weighted by its share in the sum.
        let failure = terms.iter().fold(f64::NEG_INFINITY, |sum, term| log_add(sum, term.log_at(loss)));
        let (mut error, mut slope) = (0.0, 0.0);
        for term in &terms {
            let share = (term.log_at(loss) - failure).exp();
            slope += share * term.excess;
            error += if share == 0.0 { 0.0 } else { share * (1.0 + term.size + term.excess * loss.abs()) };
        }
        let error = ROUNDING * error / slope;
        let epsilon = loss + (-failure.exp()).ln_1p() + error + ROUNDING * loss.abs();
        if epsilon.is_nan() { f64::INFINITY } else { epsilon.max(0.0) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Term {
    /// The order minus 1.
    excess: f64,
    offset: f64,
    /// The magnitude of the terms of the offset.
    size: f64,
}

impl Term {
    fn log_at(&self, loss: f64) -> f64 {
        self.offset + self.excess * loss
    }

    fn alone(&self) -> f64 {
        -(self.offset + self.excess.ln_1p()) / self.excess
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdp::conversion;

    fn orders(orders: &[f64]) -> Vec<RdpOrder> {
        orders.iter().map(|&order| RdpOrder::new(order).unwrap()).collect()
    }

    #[test]
    fn one_order_is_the_improved_conversion() {
        for order in [1.01, 1.5, 2.0, 17.0, 1000.0] {
            for delta in [1e-2, 1e-6, 1e-200] {
                for spent in [1e-6, 0.3, 40.0] {
                    let delta = Delta::new(delta).unwrap();
                    let mixture = OrderMixture::new(delta, &orders(&[order])).unwrap();
                    let got = mixture.epsilon(core::iter::once(spent));
                    let expected = conversion::epsilon_improved(RdpOrder::new(order).unwrap(), spent, delta).unwrap();
                    assert!(
                        (got - expected).abs() < 1e-11 * (1.0 + expected),
                        "{order} {delta} {spent}: {got} {expected}"
                    );
                }
            }
        }
    }

    /// The inequality of the proof, at losses around the maximiser and far from it.
    #[test]
    fn the_sum_dominates_the_hockey_stick_at_every_loss() {
        let delta = Delta::new(1e-6).unwrap();
        let list = [1.5, 2.0, 4.0, 16.0, 64.0, 500.0];
        let mixture = OrderMixture::new(delta, &orders(&list)).unwrap();
        for rho in [1e-4f64, 0.01, 0.3, 4.0] {
            let spent: Vec<f64> = list.iter().map(|order| order * rho).collect();
            let epsilon = mixture.epsilon(spent.iter().copied());
            let mut touches = false;
            for i in 1..4000 {
                let loss = epsilon + 0.0005 * f64::from(i);
                let sum: f64 = list
                    .iter()
                    .zip(&spent)
                    .map(|(order, spent)| 1e-6 / 6.0 * ((order - 1.0) * (loss - spent)).min(600.0).exp())
                    .sum();
                let stick = -(epsilon - loss).exp_m1();
                assert!(stick <= sum * (1.0 + 1e-9), "{rho} {loss}: {stick} {sum}");
                touches |= stick >= 0.98 * sum;
            }
            assert!(touches, "{rho}: not tight");
        }
    }

    #[test]
    fn mixing_beats_the_union_over_the_same_orders() {
        let delta = Delta::new(1e-6).unwrap();
        let list = [2.0, 3.0, 5.0, 9.0, 17.0, 33.0];
        let mixture = OrderMixture::new(delta, &orders(&list)).unwrap();
        let share = Delta::new(1e-6 / 6.0).unwrap();
        for rho in [0.01, 0.1, 1.0] {
            let union = list
                .iter()
                .map(|&order| conversion::epsilon_improved(RdpOrder::new(order).unwrap(), order * rho, share).unwrap())
                .fold(f64::INFINITY, f64::min);
            let mixed = mixture.epsilon(list.iter().map(|order| order * rho));
            assert!(mixed < union && mixed > 0.8 * union, "{rho}: {mixed} {union}");
        }
    }

    #[test]
    fn ends() {
        let delta = Delta::new(1e-6).unwrap();
        assert!(OrderMixture::new(delta, &[]).is_err());
        assert!(OrderMixture::new(delta, &orders(&[1.0, 2.0])).is_err());
        let two = OrderMixture::new(delta, &orders(&[2.0, 1e6])).unwrap();
        assert_eq!(two.epsilon([0.0, 0.0].into_iter()), 0.0);
        assert_eq!(two.epsilon([f64::INFINITY, f64::INFINITY].into_iter()), f64::INFINITY);
        assert!(two.epsilon([1.0, f64::INFINITY].into_iter()).is_finite());
        assert!(two.epsilon([1e-300, 1e300].into_iter()) < 20.0);
        let pure = OrderMixture::new(Delta::ZERO, &orders(&[2.0])).unwrap();
        assert_eq!(pure.epsilon([0.0].into_iter()), 0.0);
        assert_eq!(pure.epsilon([1.0].into_iter()), f64::INFINITY);
    }
}
