//! Privacy filters: a budget that holds although what is spent is chosen in view of earlier outcomes.
//!
//! Plain composition, and every accountant of this crate, takes privacy parameters that were fixed in advance. Where
//! the noise of the next release, or whether there is one, depends on what came out before, adding up what happened to
//! be spent is *not* a proof. A filter is one: its budget and its [`Guarantee`] are fixed when it is made, it is asked
//! *before* each release, and a release that does not fit is refused and leaves no trace. Whatever was admitted then
//! satisfies the guarantee, however it was chosen and whenever it stopped.
//!
//! | filter | spends | budget | loses against parameters fixed in advance |
//! |---|---|---|---|
//! | [`RdpFilter`] | the Renyi divergence at an order fixed in advance | what that order converts to `(epsilon, delta)` | nothing, where that order is the best one |
//! | [`RdpFilter::with_orders`] | the same at several orders | the mixture's `(epsilon, delta)` | a little: the price of not knowing which order will be best |
//! | [`ZcdpFilter`] | `rho` | the largest `rho` that gives `(epsilon, delta)` | nothing |
//! | [`GdpFilter`] | `mu^2` of Gaussians | the exact Gaussian curve's | nothing |
//!
//! **Why the first is valid.** Let the spent divergences at order `a` never exceed `B` in total, on any path of outcomes.
//! The mean under `Q` of `(P/Q)^a`, taken release by release from the last one backwards, is at most
//! `e^((a-1) B)`: the last release contributes at most `e^((a-1) e_n)` given the past, and `e_n + ... <= B`. So
//! everything together has divergence at most `B` at order `a`. For zCDP this holds at every order at once; for Gaussians
//! the statement about all tests is a theorem of its own.
//!
//! **What is not valid**: going on while *some* order's budget is not yet exceeded, each order having the whole of
//! delta. Which order survives depends on the outcomes, and the union over the orders must be paid for:
//! [`RdpFilter::with_orders`] does. Nor is it valid to go on while the tightest composition of what was spent so far is
//! below the target.
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

/// How much a filter made for a plan has to spare, relatively: the rounding of the plan's parts, spent one by one.
const HEADROOM: f64 = 1e-12;

/// A budget under the relation `A`, fixed in advance, for releases that are not.
pub trait Filter<A: Adjacency> {
    /// Asks whether `count` releases of `event` still fit, and spends them if so. To be called *before* they are made.
    ///
    /// # Errors
    /// [`Refused`]: nothing is spent then, and the releases must not be made. Something cheaper may still fit.
    fn spend(&mut self, event: &DpEvent, count: u64) -> Result<Admitted, Refused>;

    /// What holds of everything admitted, whatever more is admitted later. It does not depend on what was spent.
    fn guarantee(&self) -> Guarantee<A>;

    /// The fraction of the budget that is left, from 1 to 0.
    fn left(&self) -> f64;
}

/// Leave to make the releases that were asked for. Only a filter gives it.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted(());

/// Why releases must not be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// They do not fit.
    #[error("the release needs {needed} of the privacy budget, of which {left} is left")]
    Exceeded {
        /// The fraction of the whole budget that they need, taken alone.
        needed: f64,
        /// The fraction that is left.
        left: f64,
    },
    /// They cannot be accounted for at all.
    #[error(transparent)]
    Invalid(#[from] Error),
}

/// The total with `cost` added, where that stays within the budget.
fn admit(spent: f64, cost: f64, budget: f64) -> Result<f64, Refused> {
    let total = crate::rounding::add_up(spent, cost);
    if total <= budget {
        return Ok(total);
    }
    Err(Refused::Exceeded { needed: fraction(cost, budget), left: 1.0 - fraction(spent, budget) })
}

/// `part / whole`, from 0.
fn fraction(part: f64, whole: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
mod tests;
