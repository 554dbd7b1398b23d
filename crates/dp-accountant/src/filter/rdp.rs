//! The Renyi filter.

use super::{Admitted, Filter, HEADROOM, Refused, fraction};
use crate::adjacency::Adjacency;
use crate::error::Error;
use crate::event::DpEvent;
use crate::guarantee::Guarantee;
use crate::leaves::leaves_under;
use crate::order_mixture::OrderMixture;
use crate::params::{Delta, Epsilon, RdpOrder};
use crate::rdp::{RdpCurve, conversion};
use crate::rounding::add_up;

/// Number of bisections of the bracket of a budget.
const BISECTIONS: u32 = 200;

/// Distance of the coarse scan's orders in `ln(order - 1)`, and their range.
const SCAN_STEP: f64 = 0.25;
const SCAN: (f64, f64) = (-7.0, 14.0);
const GOLDEN_STEPS: u32 = 30;
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// Admits releases while their Renyi divergences stay within a budget; see the [module](super).
///
/// Three budgets, each fixed in advance:
///
/// - [`new`](Self::new), [`for_plan`](Self::for_plan): one order. Nothing is lost if that order is the best for the releases
///   made; `for_plan` takes the best order of a plan.
/// - [`within`](Self::within): several orders, each with its own budget; a release is refused if *any* of the budgets would be
///   exceeded. The divergence bound then holds at every one of the orders, and everything admitted can be [composed
///   further](Self::to_event). For `(epsilon, delta)` alone one order always suffices.
/// - [`with_orders`](Self::with_orders): several orders that share delta, for releases whose best order is not known in advance.
///   A release is refused if the mixture of orders would exceed epsilon; single orders may be exhausted earlier.
///
/// # Examples
/// ```
/// use dp_accountant::filter::{Filter, RdpFilter};
/// use dp_accountant::{Delta, DpEvent, Epsilon, RdpOrder, ReplaceOne};
///
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let mut filter = RdpFilter::<ReplaceOne>::new(epsilon, delta, RdpOrder::new(25.0)?)?;
/// let release = DpEvent::PureDp { epsilon: 0.05 };
/// let mut admitted = 0;
/// while filter.spend(&release, 1).is_ok() {
///     admitted += 1;
/// }
/// assert!(admitted > 15 && filter.left() < 0.06);
/// assert_eq!(filter.guarantee().epsilon().get(), 1.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Feldman and Zrnic 2021, arXiv:2008.11193 (one order); this crate proves the mixture of orders from the same supermartingale.
#[derive(Debug, Clone, PartialEq)]
pub struct RdpFilter<A: Adjacency> {
    guarantee: Guarantee<A>,
    budget: Budget,
    /// Divergence spent at each of the budget's orders.
    spent: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Budget {
    /// Each order's divergence may not exceed its own budget.
    EachOrder(Vec<(RdpOrder, f64)>),
    /// The mixture's epsilon may not exceed the guarantee's.
    Mixture(OrderMixture),
}

impl<A: Adjacency> RdpFilter<A> {
    /// Creates a filter with the largest budget at `order` that gives `(epsilon, delta)`, by the better of the two conversions.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no divergence at that order gives `(epsilon, delta)`: `delta` is 0, or the order is 1.
    pub fn new(epsilon: Epsilon, delta: Delta, order: RdpOrder) -> Result<Self, Error> {
        let gives = |rdp: f64| at(order, rdp, delta).is_ok_and(|got| got <= epsilon.get());
        let (mut safe, mut beyond) = (0.0, epsilon.get() + 1.0);
        // Terminates: every conversion gives at least the divergence minus a constant of the order.
        while gives(beyond) {
            (safe, beyond) = (beyond, 2.0 * beyond);
        }
        for _ in 0..BISECTIONS {
            let middle = if safe > 0.0 { 0.5 * (safe + beyond) } else { 1e-3 * beyond };
            if gives(middle) {
                safe = middle;
            } else {
                beyond = middle;
            }
        }
        if !(safe > 0.0) {
            return Err(Error::Unreachable {
                what: "Renyi budget",
                why: "no divergence at that order gives epsilon at delta",
            });
        }
        Ok(Self::each_order(Guarantee::new(epsilon, delta), vec![(order, safe)]))
    }

    /// Creates a filter whose budget just suffices for `plan`, at the plan's best order; the releases may then deviate from the
    /// plan.
    ///
    /// # Errors
    /// Those of [`RdpCurve::new`]; a relation under which the plan does not hold; a plan without cost or without
    /// guarantee, and `delta` = 0.
    pub fn for_plan(plan: &DpEvent, delta: Delta) -> Result<Self, Error> {
        let curve = RdpCurve::from_leaves(leaves_under(plan, 1, A::KIND)?)?;
        let order = best_order(&curve, delta)?;
        Self::within(&[order], &[curve.at(order) * (1.0 + HEADROOM)], delta)
    }

    /// Creates a filter with a budget for each order, none of which may be exceeded; epsilon is the best over the orders.
    ///
    /// # Errors
    /// Lists of different lengths or empty; a budget that is negative or NaN; an epsilon that is not finite.
    pub fn within(orders: &[RdpOrder], divergences: &[f64], delta: Delta) -> Result<Self, Error> {
        if orders.len() != divergences.len() || orders.is_empty() {
            return Err(Error::LengthMismatch {
                left: "orders",
                left_length: orders.len(),
                right: "divergences",
                right_length: divergences.len(),
            });
        }
        let mut epsilon = f64::INFINITY;
        for (&order, &divergence) in orders.iter().zip(divergences) {
            epsilon = epsilon.min(at(order, divergence, delta)?);
        }
        let guarantee = Guarantee::new(Epsilon::new(epsilon.max(Epsilon::MIN.get()))?, delta);
        Ok(Self::each_order(guarantee, orders.iter().copied().zip(divergences.iter().copied()).collect()))
    }

    /// Creates a filter with several orders that share `delta` equally, for releases whose best order is not known in advance.
    ///
    /// # Formula
    /// A release is admitted while, with `S(a)` the divergence spent at order `a` and `m` orders,
    /// ```text
    /// max_l { l + ln(1 - delta/m sum_a e^((a-1)(l - S(a)))) } <= epsilon.
    /// ```
    ///
    /// # Errors
    /// No orders, or the order 1.
    pub fn with_orders(epsilon: Epsilon, delta: Delta, orders: &[RdpOrder]) -> Result<Self, Error> {
        let mixture = OrderMixture::new(delta, orders)?;
        let spent = vec![0.0; orders.len()];
        Ok(Self { guarantee: Guarantee::new(epsilon, delta), budget: Budget::Mixture(mixture), spent })
    }

    fn each_order(guarantee: Guarantee<A>, budgets: Vec<(RdpOrder, f64)>) -> Self {
        let spent = vec![0.0; budgets.len()];
        Self { guarantee, budget: Budget::EachOrder(budgets), spent }
    }

    /// Returns everything that this filter ever admits as one event with parameters fixed in advance, for further composition:
    /// the budgets as a Renyi curve, or the guarantee.
    pub fn to_event(&self) -> DpEvent {
        let mut budgets = match &self.budget {
            Budget::EachOrder(budgets) => budgets.clone(),
            Budget::Mixture(_) => Vec::new(),
        };
        budgets.retain(|(order, divergence)| order.get() > 1.0 && divergence.is_finite());
        budgets.sort_by(|left, right| left.0.get().total_cmp(&right.0.get()).then(left.1.total_cmp(&right.1)));
        budgets.dedup_by_key(|(order, _)| order.get());
        if budgets.is_empty() {
            let (epsilon, delta) = (self.guarantee.epsilon().get(), self.guarantee.delta().get());
            return DpEvent::ApproximateDp { epsilon, delta };
        }
        let (orders, divergences) = budgets.into_iter().map(|(order, divergence)| (order.get(), divergence)).unzip();
        DpEvent::RenyiDp { orders, divergences }
    }

    /// Returns the fraction of the budget that `spent` uses: the largest over the orders, or that of the mixture's epsilon.
    fn used(&self, spent: &[f64]) -> f64 {
        match &self.budget {
            Budget::EachOrder(budgets) => {
                budgets.iter().zip(spent).map(|((_, budget), spent)| fraction(*spent, *budget)).fold(0.0, f64::max)
            }
            Budget::Mixture(mixture) => mixture.epsilon(spent.iter().copied()) / self.guarantee.epsilon().get(),
        }
    }

    fn fits(&self, spent: &[f64]) -> bool {
        match &self.budget {
            Budget::EachOrder(budgets) => budgets.iter().zip(spent).all(|((_, budget), spent)| spent <= budget),
            Budget::Mixture(mixture) => mixture.epsilon(spent.iter().copied()) <= self.guarantee.epsilon().get(),
        }
    }

    fn orders(&self) -> Vec<f64> {
        match &self.budget {
            Budget::EachOrder(budgets) => budgets.iter().map(|(order, _)| order.get()).collect(),
            Budget::Mixture(mixture) => mixture.orders().collect(),
        }
    }
}

impl<A: Adjacency> Filter<A> for RdpFilter<A> {
    fn spend(&mut self, event: &DpEvent, count: u64) -> Result<Admitted, Refused> {
        let curve = RdpCurve::from_leaves(leaves_under(event, count, A::KIND)?)?;
        let mut costs = Vec::with_capacity(self.spent.len());
        for order in self.orders() {
            costs.push(curve.at(RdpOrder::new(order)?));
        }
        let total: Vec<f64> = self.spent.iter().zip(&costs).map(|(spent, cost)| add_up(*spent, *cost)).collect();
        if self.fits(&total) {
            self.spent = total;
            return Ok(Admitted(()));
        }
        Err(Refused::Exceeded { needed: self.used(&costs), left: self.left() })
    }

    fn guarantee(&self) -> Guarantee<A> {
        self.guarantee.clone()
    }

    fn left(&self) -> f64 {
        (1.0 - self.used(&self.spent)).max(0.0)
    }
}

/// Returns epsilon at `delta` by the better conversion at one order.
fn at(order: RdpOrder, rdp: f64, delta: Delta) -> Result<f64, Error> {
    let improved = conversion::epsilon_improved(order, rdp, delta)?;
    Ok(improved.min(conversion::epsilon_centred(order, rdp, delta)?))
}

/// Returns the order that gives a curve's least epsilon, by a coarse scan and golden-section search. Any order is sound.
fn best_order(curve: &RdpCurve, delta: Delta) -> Result<RdpOrder, Error> {
    let order_at = |y: f64| RdpOrder::new(1.0 + y.exp());
    let epsilon_at = |y: f64| -> Result<f64, Error> {
        let order = order_at(y)?;
        at(order, curve.at(order), delta)
    };
    let (mut best, mut least) = (SCAN.0, f64::INFINITY);
    for i in 0..=((SCAN.1 - SCAN.0) / SCAN_STEP) as u32 {
        let y = SCAN.0 + SCAN_STEP * f64::from(i);
        let epsilon = epsilon_at(y)?;
        if epsilon < least {
            (best, least) = (y, epsilon);
        }
    }
    let (mut low, mut high) = (best - SCAN_STEP, best + SCAN_STEP);
    for _ in 0..GOLDEN_STEPS {
        let (left, right) = (high - GOLDEN_RATIO * (high - low), low + GOLDEN_RATIO * (high - low));
        if epsilon_at(left)? < epsilon_at(right)? {
            high = right;
        } else {
            low = left;
        }
    }
    let refined = 0.5 * (low + high);
    order_at(if epsilon_at(refined)? < least { refined } else { best })
}
