//! Privacy filters: a budget that holds although later privacy parameters depend on earlier outcomes.
//!
//! Plain composition, and every accountant of this crate, requires privacy parameters fixed in advance. If the noise of the next
//! release, or whether there is one, depends on earlier outcomes, adding up the privacy loss of the releases made is *not* a
//! proof. A filter gives one: its budget and its [`Guarantee`] are fixed when it is created, it is called *before* each
//! release, and a release that does not fit is refused and spends nothing. All admitted releases together satisfy the
//! guarantee, however they were chosen and whenever they stopped.
//!
//! | filter | spends | budget | loss compared with parameters fixed in advance |
//! |---|---|---|---|
//! | [`RdpFilter`] | the Renyi divergence at an order fixed in advance | converts at that order to `(epsilon, delta)` | none if that order is the best one |
//! | [`RdpFilter::with_orders`] | the same at several orders | the mixture's `(epsilon, delta)` | a little, because the best order is not known in advance |
//! | [`ZcdpFilter`] | `rho` | the largest `rho` that gives `(epsilon, delta)` | none |
//! | [`GdpFilter`] | `mu^2` of Gaussians | the exact Gaussian curve | none |
//!
//! **Validity of the first filter.** Let the total divergence spent at order `a` never exceed `B`, on any path of outcomes. The
//! mean under `Q` of `(P/Q)^a`, taken release by release from the last one backwards, is at most `e^((a-1) B)`: the last release
//! contributes at most `e^((a-1) e_n)` given the past, and `e_n + ... <= B`. So everything together has divergence at most `B` at
//! order `a`. For zCDP this holds at every order at once; for Gaussians the statement about all tests is a separate theorem.
//!
//! **What is not valid**: continuing while *some* order's budget is not yet exceeded, with the whole of delta for each order.
//! Which order survives depends on the outcomes, and the union over the orders must be paid for, as [`RdpFilter::with_orders`]
//! does. It is not valid either to continue while the tightest composition of the releases so far is below the target.
//!
//! # Examples
//! ```
//! use dp_accountant::filter::{Filter, Refused, ZcdpFilter};
//! use dp_accountant::{Delta, DpEvent, Epsilon, ReplaceOne};
//!
//! let mut filter = ZcdpFilter::<ReplaceOne>::new(Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
//! let mut std_dev = 20.0;
//! loop {
//!     match filter.spend(&DpEvent::Gaussian { std_dev, sensitivity: 1.0 }, 1) {
//!         Ok(_) => std_dev *= 0.9, // release; perhaps the answer was too noisy
//!         Err(Refused::Exceeded { .. }) => break,
//!         Err(Refused::Invalid(error)) => return Err(error),
//!     }
//! }
//! assert_eq!(filter.guarantee().to_string(), "(1.0, 1e-6)-DP, replace-one, unit: record");
//! # Ok::<(), dp_accountant::Error>(())
//! ```
//!
//! # References
//! Rogers, Roth, Ullman and Vadhan 2016, "Privacy odometers and filters", arXiv:1605.08294 (the definitions);
//! Feldman and Zrnic 2021, "Individual privacy accounting via a Renyi filter", arXiv:2008.11193 (Renyi);
//! Whitehouse, Ramdas, Rogers and Wu 2023, "Fully-adaptive composition in differential privacy", arXiv:2203.05481
//! (zCDP); Smith and Thakurta 2022, "Fully adaptive composition for Gaussian differential privacy", arXiv:2210.17520,
//! and Koskela, Tobaben and Honkela 2023, "Individual privacy accounting with Gaussian differential privacy",
//! arXiv:2209.15596 (Gaussians).

mod gdp;
mod rdp;
mod zcdp;

pub use gdp::GdpFilter;
pub use rdp::RdpFilter;
pub use zcdp::ZcdpFilter;

use crate::adjacency::Adjacency;
use crate::error::Error;
use crate::event::DpEvent;
use crate::guarantee::Guarantee;

/// Relative headroom of a filter made for a plan: the rounding of the plan's parts when spent one by one.
const HEADROOM: f64 = 1e-12;

/// A privacy budget under the relation `A`, fixed in advance, for adaptively chosen releases.
pub trait Filter<A: Adjacency> {
    /// Spends `count` releases of `event` if they fit the budget. Must be called *before* they are made.
    ///
    /// # Errors
    /// [`Refused`]: nothing is spent, and the releases must not be made. A cheaper release may still fit.
    fn spend(&mut self, event: &DpEvent, count: u64) -> Result<Admitted, Refused>;

    /// Returns the guarantee of everything admitted, now or later. It does not depend on the amount spent.
    fn guarantee(&self) -> Guarantee<A>;

    /// Returns the remaining fraction of the budget, from 1 to 0.
    fn left(&self) -> f64;
}

/// Permission to make the requested releases. Only a filter creates it.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted(());

/// The reason for which releases must not be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// They do not fit the budget.
    #[error("the release needs {needed} of the privacy budget, of which {left} is left")]
    Exceeded {
        /// The fraction of the whole budget that they need alone.
        needed: f64,
        /// The remaining fraction.
        left: f64,
    },
    /// They cannot be accounted for.
    #[error(transparent)]
    Invalid(#[from] Error),
}

/// Returns the total with `cost` added, if it stays within the budget.
fn admit(spent: f64, cost: f64, budget: f64) -> Result<f64, Refused> {
    let total = crate::rounding::add_up(spent, cost);
    if total <= budget {
        return Ok(total);
    }
    Err(Refused::Exceeded { needed: fraction(cost, budget), left: 1.0 - fraction(spent, budget) })
}

/// Returns `part / whole`, at least 0.
fn fraction(part: f64, whole: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
mod tests;
