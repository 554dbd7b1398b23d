//! The Renyi curve of all releases of an event tree.

use super::prepared::Term;
use super::{conversion, gaussian, leaf, order};
use crate::error::{Error, non_negative};
use crate::event::DpEvent;
use crate::gaussian::exp_up;
use crate::leaves::{Leaf, Leaves, leaves};
use crate::params::{Delta, RdpOrder};
use crate::rounding::{add_up, count_up, mul_up};
use crate::work;

/// Number of the latest kinds of release with which a new one is compared.
const MERGE_WITH_LAST: usize = 64;

/// Approximate number of steps of a term at one order.
const STEPS_PER_TERM: f64 = 3000.0;

/// An upper bound on the Renyi divergence between neighbours' outputs of an event tree, at every order.
///
/// Curves add up under composition, even if later mechanisms depend on earlier outcomes.
///
/// # Privacy
/// The relation is that under which the event's sensitivities hold. Both directions of each neighbouring pair are covered.
///
/// # Examples
/// ```
/// use dp_accountant::{DpEvent, Delta, RdpOrder, rdp::RdpCurve};
///
/// let step = DpEvent::Gaussian { std_dev: 20.0, sensitivity: 2.0 };
/// let curve = RdpCurve::new(&DpEvent::SelfComposed { event: Box::new(step), count: 50 })?;
/// assert!((curve.at(RdpOrder::new(8.0)?) - 2.0).abs() < 1e-12); // 50 * 8 * 0.1^2 / 2
/// assert!((curve.epsilon(Delta::new(1e-6)?) - 3.50).abs() < 0.1);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Mironov 2017, Proposition 1 (composition), arXiv:1702.07476.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RdpCurve {
    /// The part proportional to the order: Gaussians and zCDP.
    per_order: f64,
    /// The other releases, with their counts.
    terms: Vec<(Leaf, f64)>,
    /// True if something was released without a guarantee.
    infinite: bool,
}

impl RdpCurve {
    /// Creates the curve of an event tree.
    ///
    /// # Errors
    /// A number out of range, and [`Error::Unsupported`] for an approximate guarantee, which has no finite divergence.
    pub fn new(event: &DpEvent) -> Result<Self, Error> {
        Self::from_leaves(leaves(event, 1)?)
    }

    /// Creates the curve of these releases.
    pub(crate) fn from_leaves(leaves: Leaves) -> Result<Self, Error> {
        let mut curve = Self::default();
        for (leaf, count) in leaves {
            curve.add(leaf, count_up(count))?;
        }
        Ok(curve)
    }

    /// Adds another release, possibly chosen depending on this one's outcome.
    pub fn compose(&mut self, other: &Self) {
        self.per_order = add_up(self.per_order, other.per_order);
        self.infinite |= other.infinite;
        for (leaf, count) in &other.terms {
            self.add_term(leaf.clone(), *count);
        }
    }

    /// Adds `count` releases of one kind.
    pub(crate) fn add(&mut self, leaf: Leaf, count: f64) -> Result<(), Error> {
        leaf::check(&leaf)?;
        match leaf {
            Leaf::NonPrivate => self.infinite = true,
            Leaf::Gaussian { mu } => self.add_per_order(count, gaussian::rdp_per_order(mu)),
            Leaf::Zcdp { rho } => self.add_per_order(count, rho),
            _ => self.add_term(leaf, count),
        }
        Ok(())
    }

    fn add_per_order(&mut self, count: f64, per_order: f64) {
        self.per_order = add_up(self.per_order, mul_up(count, per_order));
    }

    fn add_term(&mut self, leaf: Leaf, count: f64) {
        // Merging saves time and does not change the result, so it need not be complete.
        match self.terms.iter_mut().rev().take(MERGE_WITH_LAST).find(|(term, _)| *term == leaf) {
            Some((_, times)) => *times = add_up(*times, count),
            None => self.terms.push((leaf, count)),
        }
    }

    /// Returns the divergence at one order.
    pub fn at(&self, order: RdpOrder) -> f64 {
        self.prepare()(order.get())
    }

    /// Returns the curve as a function that caches values between orders.
    fn prepare(&self) -> impl Fn(f64) -> f64 {
        let terms: Vec<_> = self.terms.iter().map(|(leaf, count)| (Term::new(leaf), *count)).collect();
        move |order| {
            if self.infinite {
                return f64::INFINITY;
            }
            work::charge(STEPS_PER_TERM * terms.len() as f64);
            terms
                .iter()
                .fold(order * self.per_order, |total, (term, count)| add_up(total, mul_up(*count, term.at(order))))
        }
    }

    /// Returns the least epsilon at `delta` over all orders above 1 and all conversions of [`conversion`]; infinite for `delta` =
    /// 0 unless nothing was released.
    pub fn epsilon(&self, delta: Delta) -> f64 {
        if self.infinite {
            return f64::INFINITY;
        }
        if self.is_zero() {
            return 0.0;
        }
        let log_delta = delta.get().ln();
        let divergence = self.prepare();
        if log_delta > conversion::log_total_variation(divergence(1.0)) {
            return 0.0;
        }
        order::minimise(|order| conversion::best_epsilon(order, divergence(order), log_delta))
    }

    /// Returns the least delta at `epsilon` over all orders above 1 and all conversions of [`conversion`].
    ///
    /// # Errors
    /// `epsilon` negative, NaN or infinite.
    pub fn delta(&self, epsilon: f64) -> Result<f64, Error> {
        Ok(exp_up(self.log_delta(epsilon)?))
    }

    /// Returns the natural logarithm of [`delta`](Self::delta), which is finite even if delta underflows; negative infinity if
    /// nothing was released.
    ///
    /// # Errors
    /// `epsilon` negative, NaN or infinite.
    pub fn log_delta(&self, epsilon: f64) -> Result<f64, Error> {
        let epsilon = non_negative("epsilon", epsilon)?;
        if self.infinite {
            return Ok(0.0);
        }
        if self.is_zero() {
            return Ok(f64::NEG_INFINITY);
        }
        let divergence = self.prepare();
        let log = order::minimise(|order| conversion::best_log_delta(order, divergence(order), epsilon));
        Ok(log.min(conversion::log_total_variation(divergence(1.0))).min(0.0))
    }

    fn is_zero(&self) -> bool {
        self.per_order == 0.0 && self.terms.is_empty() && !self.infinite
    }
}

#[cfg(test)]
mod tests;
