//! The budget of a run, and the filter that enforces it.

use dp_accountant::filter::{Filter, RdpFilter, Refused, ZcdpFilter};
use dp_accountant::{Delta, DpEvent, RdpOrder, Rho, ZeroOut};

use super::{RECIPE, SearchedDescent};
use crate::error::{Error, positive};
use crate::line_search::Searcher;
use crate::recipes::recipe::{Budget, RecordAdjacency, least_scale};

/// The total budget of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum FilterBudget {
    /// A zCDP budget, for full batches.
    Zcdp {
        /// The budget.
        rho: f64,
    },
    /// A Renyi divergence at one order, for random batches.
    Renyi {
        /// The order.
        order: f64,
        /// The divergence.
        divergence: f64,
    },
}

/// The result of calibration: the budget of the filter that decides before each release. The amount spent is not part of it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SearchBudget {
    /// The filter's budget.
    pub budget: FilterBudget,
}

impl FilterBudget {
    pub(super) fn event(self) -> Result<DpEvent, Error> {
        Ok(match self {
            Self::Zcdp { rho } => DpEvent::Zcdp { rho: positive("rho", rho)? },
            Self::Renyi { order, divergence } => DpEvent::RenyiDp {
                orders: vec![positive("order", order)?],
                divergences: vec![positive("divergence", divergence)?],
            },
        })
    }

    /// Returns the maximum that each of `copies` runs may spend, and the initial cost of one gradient and of one search, in
    /// zCDP before amplification.
    pub(super) fn most(
        recipe: &SearchedDescent,
        n: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<(FilterBudget, f64), Error> {
        if recipe.batch_size.is_some() {
            return Self::of_samples(recipe, n, budget, copies);
        }
        let scale = least_scale(budget, copies, |scale| DpEvent::Zcdp { rho: scale.recip() })?;
        // The reciprocal of a reciprocal may be larger by an ulp.
        let rho = scale.recip() * (1.0 - 2.0 * f64::EPSILON);
        // Slightly below the quotient, so that the planned number fits.
        Ok((Self::Zcdp { rho }, rho / (2.0 * recipe.steps as f64) * (1.0 - 1e-9)))
    }

    /// Returns the filter's order and budget that just suffice for a run in which no search fails, with the least noise with
    /// which they stay within the budget. Batches are drawn under zero-out only.
    fn of_samples(recipe: &SearchedDescent, n: u64, budget: Budget, copies: u64) -> Result<(FilterBudget, f64), Error> {
        let filter_at = |multiplier: f64| -> Result<DpEvent, Error> {
            let share = 0.5 / (multiplier * multiplier);
            let gradient = DpEvent::Gaussian { std_dev: multiplier, sensitivity: 1.0 };
            let search = Searcher::<ZeroOut>::new(recipe.search, share)?.event();
            let step = DpEvent::Composed { events: vec![recipe.sampled(n, gradient)?, recipe.sampled(n, search)?] };
            let run = DpEvent::SelfComposed { event: Box::new(step), count: recipe.steps };
            Ok(RdpFilter::<ZeroOut>::for_plan(&run, budget.delta)?.to_event())
        };
        // Invalid events count as non-private.
        let multiplier = least_scale(budget, copies, |scale| filter_at(scale).unwrap_or(DpEvent::NonPrivate))?;
        let spent = match filter_at(multiplier)? {
            DpEvent::RenyiDp { orders, divergences } => match (&orders[..], &divergences[..]) {
                (&[order], &[divergence]) => Some(Self::Renyi { order, divergence }),
                _ => None,
            },
            _ => None,
        };
        let none = Error::NotProved { recipe: RECIPE, why: "no order of its divergence gives this budget" };
        Ok((spent.ok_or(none)?, 0.5 / (multiplier * multiplier) * (1.0 - 1e-9)))
    }
}

pub(super) enum BudgetFilter<A: RecordAdjacency> {
    Zcdp(ZcdpFilter<A>),
    Renyi(RdpFilter<A>),
}

impl<A: RecordAdjacency> BudgetFilter<A> {
    pub(super) fn new(budget: FilterBudget, delta: Delta) -> Result<Self, Error> {
        Ok(match budget {
            FilterBudget::Zcdp { rho } => Self::Zcdp(ZcdpFilter::with_budget(Rho::new(rho)?, delta)?),
            FilterBudget::Renyi { order, divergence } => {
                Self::Renyi(RdpFilter::within(&[RdpOrder::new(order)?], &[divergence], delta)?)
            }
        })
    }

    pub(super) fn admits(&mut self, event: &DpEvent) -> Result<bool, Error> {
        let answer = match self {
            Self::Zcdp(filter) => filter.spend(event, 1),
            Self::Renyi(filter) => filter.spend(event, 1),
        };
        match answer {
            Ok(_) => Ok(true),
            Err(Refused::Exceeded { .. }) => Ok(false),
            Err(Refused::Invalid(error)) => Err(error.into()),
        }
    }
}
