//! A Renyi curve claimed at some orders.

use dp_accountant::{DpEvent, RdpOrder, rdp};

use crate::error::Error;

/// Upper bounds on the Renyi divergence at some orders, in both directions, interpolated conservatively.
///
/// # Formula
/// ```text
/// D(a_i) <= divergences[i]  at orders  1 < a_1 < a_2 < ...
/// ```
/// `(a - 1) D(a)` is convex in the order `a` and 0 at `a = 1`, so between two orders it lies below the chord; `D` does not
/// decrease, so a later point bounds an earlier order; beyond the last order there is no bound.
///
/// # Examples
/// ```
/// use dp_mechanisms::custom::RdpCurve;
/// let curve = RdpCurve::new(vec![2.0, 4.0], vec![0.2, 0.4])?;
/// assert_eq!(curve.at(4.0)?, 0.4);
/// assert!((curve.at(3.0)? - 0.35).abs() < 1e-12); // the chord: (0.2 + 1.2)/2 over 3 - 1
/// assert_eq!(curve.at(4.5)?, f64::INFINITY);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// T. van Erven, P. Harremoës, "Rényi divergence and Kullback-Leibler divergence", 2014, Theorem 3 and Corollary 2,
/// arXiv 1206.2459.
#[derive(Debug, Clone, PartialEq)]
pub struct RdpCurve {
    orders: Vec<f64>,
    divergences: Vec<f64>,
}

impl RdpCurve {
    /// Checks the points.
    ///
    /// # Errors
    /// [`Error::Accountant`] unless there are as many divergences as orders and at least one, the orders are finite, above 1 and
    /// increasing, and the divergences finite and non-negative.
    pub fn new(orders: Vec<f64>, divergences: Vec<f64>) -> Result<Self, Error> {
        let curve = Self { orders, divergences };
        curve.event().relations()?;
        Ok(curve)
    }

    /// Returns the bound at any order from 1 on; infinite beyond the last.
    ///
    /// # Errors
    /// [`Error::Accountant`] for an order that is not finite or below 1.
    pub fn at(&self, order: f64) -> Result<f64, Error> {
        Ok(rdp::RdpCurve::new(&self.event())?.at(RdpOrder::new(order)?))
    }

    /// Returns the orders.
    pub fn orders(&self) -> &[f64] {
        &self.orders
    }

    /// Returns the divergence claimed at each order.
    pub fn divergences(&self) -> &[f64] {
        &self.divergences
    }

    pub(super) fn event(&self) -> DpEvent {
        DpEvent::RenyiDp { orders: self.orders.clone(), divergences: self.divergences.clone() }
    }
}
