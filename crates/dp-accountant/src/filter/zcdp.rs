//! The zCDP filter.

use super::{Admitted, Filter, HEADROOM, Refused, admit, fraction};
use crate::accountant::Accountant;
use crate::adjacency::Adjacency;
use crate::calibrate::{Calibration, Evaluator};
use crate::error::Error;
use crate::event::DpEvent;
use crate::guarantee::Guarantee;
use crate::params::{Delta, Epsilon, Rho};
use crate::zcdp::{self, ZcdpAccountant};

/// Admits releases while the sum of their `rho` stays within a budget; see the [module](super).
///
/// # Privacy
/// The admitted releases are `rho`-zCDP with `rho` the budget, however they were chosen: the Renyi filter's theorem holds at
/// every order at once, since all costs are proportional to the order. The conversion to `(epsilon, delta)` is that of
/// [`zcdp::epsilon`], at the best order.
///
/// # Examples
/// ```
/// use dp_accountant::filter::{Filter, ZcdpFilter};
/// use dp_accountant::{Delta, DpEvent, Epsilon, ZeroOut};
/// let mut filter = ZcdpFilter::<ZeroOut>::new(Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
/// assert!((filter.rho() - 0.024356).abs() < 1e-6);
/// let release = DpEvent::Zcdp { rho: 0.015 };
/// assert!(filter.spend(&release, 1).is_ok() && filter.spend(&release, 1).is_err());
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Whitehouse, Ramdas, Rogers and Wu 2023, arXiv:2203.05481 (the filter for approximate zCDP, at failure 0); Feldman and
/// Zrnic 2021, arXiv:2008.11193, at every order.
#[derive(Debug, Clone, PartialEq)]
pub struct ZcdpFilter<A: Adjacency> {
    guarantee: Guarantee<A>,
    budget: f64,
    spent: f64,
}

impl<A: Adjacency> ZcdpFilter<A> {
    /// Creates a filter with the largest budget that gives `(epsilon, delta)`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for `delta` = 0, which no budget gives.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        let calibration = Calibration::new(epsilon, delta).with_evaluator(Evaluator::Zcdp);
        let scale = calibration.least_scale(|scale| DpEvent::Zcdp { rho: scale.recip() })?.value;
        Ok(Self { guarantee: Guarantee::new(epsilon, delta), budget: scale.recip(), spent: 0.0 })
    }

    /// Creates a filter with a budget of `rho`, and the best epsilon for it at `delta`.
    ///
    /// # Errors
    /// An epsilon that is not finite: `delta` = 0.
    pub fn with_budget(rho: Rho, delta: Delta) -> Result<Self, Error> {
        let epsilon = Epsilon::new(zcdp::epsilon(rho.get(), delta)?.max(Epsilon::MIN.get()))?;
        Ok(Self { guarantee: Guarantee::new(epsilon, delta), budget: rho.get(), spent: 0.0 })
    }

    /// Creates a filter whose budget just suffices for `plan`; the releases may then deviate from the plan.
    ///
    /// # Errors
    /// Those of [`zcdp::rho`]; a relation under which the plan does not hold; a plan without cost or without guarantee.
    pub fn for_plan(plan: &DpEvent, delta: Delta) -> Result<Self, Error> {
        Self::with_budget(Rho::new(cost::<A>(plan, 1)? * (1.0 + HEADROOM))?, delta)
    }

    /// Returns the budget.
    pub fn rho(&self) -> f64 {
        self.budget
    }

    /// Returns the amount spent.
    pub fn spent(&self) -> f64 {
        self.spent
    }
}

fn cost<A: Adjacency>(event: &DpEvent, count: u64) -> Result<f64, Error> {
    let mut accountant = ZcdpAccountant::<A>::new();
    accountant.compose(event, count)?;
    Ok(accountant.rho())
}

impl<A: Adjacency> Filter<A> for ZcdpFilter<A> {
    fn spend(&mut self, event: &DpEvent, count: u64) -> Result<Admitted, Refused> {
        self.spent = admit(self.spent, cost::<A>(event, count)?, self.budget)?;
        Ok(Admitted(()))
    }

    fn guarantee(&self) -> Guarantee<A> {
        self.guarantee.clone()
    }

    fn left(&self) -> f64 {
        1.0 - fraction(self.spent, self.budget)
    }
}
