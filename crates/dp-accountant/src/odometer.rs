//! Odometers: a running bound on the privacy loss when no budget is fixed in advance.
//!
//! A [filter](crate::filter) proves a guarantee that was fixed before anything was released. An odometer has no budget. Each
//! release is recorded, and at any time, and any number of times, the odometer gives an epsilon for everything so far, at a delta
//! fixed in advance. The theorem allows for inspecting it and for stopping because of its value.
//!
//! **Meaning of the number.** At any stopping time, by any rule that may depend on all outcomes, the epsilon then shown (a
//! function of the outcomes) satisfies
//!
//! ```text
//! P(E) <= E_Q[1_E e^epsilon] + delta     for every set E of outcomes.
//! ```
//!
//! If the rule ensures that it never exceeds a number fixed in advance, that number with delta is a guarantee. Otherwise it is a
//! statement about this run and not `(epsilon, delta)`-DP of the procedure: an odometer gives no [`Guarantee`].
//!
//! **Cost.** The Renyi order with the best conversion is not known in advance, so the orders of a grid share delta. This adds
//! about `ln(number of orders)` to `ln(1/delta)`, less the gain from mixing the supermartingales of neighbouring orders instead
//! of a union bound: at `delta = 1e-6`, 8 to 16 % of epsilon for `rho` between 10 and 1e-4.
//!
//! [`Guarantee`]: crate::Guarantee
//!
//! # Examples
//! ```
//! use dp_accountant::odometer::ZcdpOdometer;
//! use dp_accountant::{Delta, DpEvent, ReplaceOne};
//!
//! let mut odometer = ZcdpOdometer::<ReplaceOne>::new(Delta::new(1e-6)?)?;
//! assert_eq!(odometer.epsilon(), 0.0);
//! odometer.record(&DpEvent::Gaussian { std_dev: 10.0, sensitivity: 1.0 }, 4)?;
//! let early = odometer.epsilon();
//! odometer.record(&DpEvent::Gaussian { std_dev: 5.0, sensitivity: 1.0 }, 1)?; // in view of the outcomes
//! assert!(early > 0.9 && early < 1.2 && odometer.epsilon() > early);
//! # Ok::<(), dp_accountant::Error>(())
//! ```
//!
//! # References
//! Rogers, Roth, Ullman and Vadhan 2016, arXiv:1605.08294 (odometers); Feldman and Zrnic 2021, arXiv:2008.11193 (the
//! supermartingale); Whitehouse, Ramdas, Rogers and Wu 2023, arXiv:2203.05481 (bounds at all times by mixtures).

use core::marker::PhantomData;

use crate::accountant::Accountant;
use crate::adjacency::Adjacency;
use crate::error::Error;
use crate::event::DpEvent;
use crate::leaves::leaves_under;
use crate::leaves::pure::pure_epsilon_of_all;
use crate::order_mixture::OrderMixture;
use crate::params::{Delta, RdpOrder};
use crate::rdp::RdpCurve;
use crate::rounding::{add_up, mul_up};
use crate::zcdp::ZcdpAccountant;

/// The default orders are `1 + 2^(k/2)` for these `k`: from 1.5 to 2049.
const DEFAULT_ORDERS: core::ops::RangeInclusive<i32> = -2..=22;

/// A running bound on epsilon by Renyi divergences; see the [module](self).
///
/// # Examples
/// ```
/// use dp_accountant::odometer::RdpOdometer;
/// use dp_accountant::{Delta, DpEvent, ReplaceOne};
///
/// let mut odometer = RdpOdometer::<ReplaceOne>::new(Delta::new(1e-6)?)?;
/// odometer.record(&DpEvent::PureDp { epsilon: 0.01 }, 1)?;
/// assert!((odometer.epsilon() - 0.01).abs() < 1e-15); // a pure guarantee holds at any time as it is
/// odometer.record(&DpEvent::PureDp { epsilon: 0.01 }, 9_999)?;
/// assert!(odometer.epsilon() < 7.0); // not 100
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RdpOdometer<A: Adjacency> {
    mixture: OrderMixture,
    delta: Delta,
    /// Divergence spent at each order.
    spent: Vec<f64>,
    /// The sum of pure guarantees; infinite once a release has none.
    pure: f64,
    relation: PhantomData<A>,
}

impl<A: Adjacency> RdpOdometer<A> {
    /// Creates an odometer without any release, with orders from 1.5 to 2049.
    ///
    /// # Errors
    /// None for any `delta`; at 0 only pure guarantees give a finite epsilon.
    pub fn new(delta: Delta) -> Result<Self, Error> {
        Self::with_orders(delta, &default_orders()?)
    }

    /// Creates an odometer with orders of the caller's choice. A single order costs no more than a bound for costs fixed in
    /// advance, at that order.
    ///
    /// # Errors
    /// No orders, or the order 1.
    pub fn with_orders(delta: Delta, orders: &[RdpOrder]) -> Result<Self, Error> {
        let mixture = OrderMixture::new(delta, orders)?;
        Ok(Self { mixture, delta, spent: vec![0.0; orders.len()], pure: 0.0, relation: PhantomData })
    }

    /// Adds `count` releases of `event`. On an error nothing is added.
    ///
    /// # Errors
    /// A number out of range, an event without a Renyi divergence, or one that does not hold under `A`.
    pub fn record(&mut self, event: &DpEvent, count: u64) -> Result<(), Error> {
        let leaves = leaves_under(event, count, A::KIND)?;
        let pure = pure_epsilon_of_all(&leaves);
        let curve = RdpCurve::from_leaves(leaves)?;
        let total = self
            .mixture
            .orders()
            .zip(&self.spent)
            .map(|(order, spent)| Ok(add_up(*spent, curve.at(RdpOrder::new(order)?))));
        self.spent = total.collect::<Result<_, Error>>()?;
        self.pure = add_up(self.pure, pure);
        Ok(())
    }

    /// Returns epsilon of everything so far at [`delta`](Self::delta); infinite if there is none.
    pub fn epsilon(&self) -> f64 {
        self.mixture.epsilon(self.spent.iter().copied()).min(self.pure)
    }

    /// Returns the delta fixed in advance.
    pub fn delta(&self) -> Delta {
        self.delta
    }
}

/// A running bound on epsilon by zCDP; see the [module](self).
#[derive(Debug, Clone, PartialEq)]
pub struct ZcdpOdometer<A: Adjacency> {
    mixture: OrderMixture,
    delta: Delta,
    spent: ZcdpAccountant<A>,
}

impl<A: Adjacency> ZcdpOdometer<A> {
    /// Creates an odometer without any release.
    ///
    /// # Errors
    /// None for any `delta`; at 0 epsilon is infinite as soon as something is released.
    pub fn new(delta: Delta) -> Result<Self, Error> {
        let mixture = OrderMixture::new(delta, &default_orders()?)?;
        Ok(Self { mixture, delta, spent: ZcdpAccountant::new() })
    }

    /// Adds `count` releases of `event`. On an error nothing is added.
    ///
    /// # Errors
    /// A number out of range, an event without a `rho`, or one that does not hold under `A`.
    pub fn record(&mut self, event: &DpEvent, count: u64) -> Result<(), Error> {
        self.spent.compose(event, count)
    }

    /// Returns epsilon of everything so far at [`delta`](Self::delta); infinite if there is none.
    pub fn epsilon(&self) -> f64 {
        self.mixture.epsilon(self.mixture.orders().map(|order| mul_up(order, self.spent.rho())))
    }

    /// Returns the delta fixed in advance.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// Returns the `rho` of everything so far.
    pub fn rho(&self) -> f64 {
        self.spent.rho()
    }
}

fn default_orders() -> Result<Vec<RdpOrder>, Error> {
    DEFAULT_ORDERS.map(|k| RdpOrder::new(1.0 + (0.5 * f64::from(k)).exp2())).collect()
}

#[cfg(test)]
mod tests;
