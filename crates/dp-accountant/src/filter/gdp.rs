//! The filter for Gaussian differential privacy.

use super::{Admitted, Filter, HEADROOM, Refused, admit, fraction};
use crate::adjacency::Adjacency;
use crate::error::Error;
use crate::event::DpEvent;
use crate::gaussian;
use crate::guarantee::Guarantee;
use crate::leaves::{Leaf, leaves_under};
use crate::params::{Delta, Epsilon};
use crate::rounding::{add_up, count_up, mul_up};

/// Admits Gaussian releases while the sum of their `mu^2` stays within a budget; see the [module](super).
///
/// # Privacy
/// The admitted releases are `mu`-Gaussian-DP with `mu^2` the budget, and the exact curve of [`gaussian`] applies: adaptively
/// chosen noise costs nothing extra. Accepts Gaussians, [`DpEvent::Gdp`], and Gaussians of hidden random sensitivity (at their
/// largest sensitivity: to an attacker who knows the index, the release is a Gaussian of at most that).
///
/// # Examples
/// ```
/// use dp_accountant::filter::{Filter, GdpFilter};
/// use dp_accountant::{Delta, DpEvent, Epsilon, ReplaceOne};
/// let mut filter = GdpFilter::<ReplaceOne>::new(Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
/// assert!((filter.mu() - 1.0 / 3.730631634815942).abs() < 1e-11);
/// assert!(filter.spend(&DpEvent::Gaussian { std_dev: 4.0, sensitivity: 1.0 }, 1).is_ok());
/// assert!(filter.spend(&DpEvent::Gaussian { std_dev: 10.0, sensitivity: 1.0 }, 1).is_err());
/// assert!(filter.spend(&DpEvent::Gaussian { std_dev: 11.0, sensitivity: 1.0 }, 1).is_ok());
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Smith and Thakurta 2022, arXiv:2210.17520; Koskela, Tobaben and Honkela 2023, arXiv:2209.15596.
#[derive(Debug, Clone, PartialEq)]
pub struct GdpFilter<A: Adjacency> {
    guarantee: Guarantee<A>,
    /// The square of `mu`.
    budget: f64,
    spent: f64,
}

impl<A: Adjacency> GdpFilter<A> {
    /// Creates a filter with the largest budget that gives `(epsilon, delta)`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for `delta` = 0, which no budget gives.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        let mu = gaussian::noise_multiplier(epsilon, delta)?.get().recip();
        // The reciprocal and the square may each have rounded up.
        let budget = mu * mu * (1.0 - 4.0 * f64::EPSILON);
        Ok(Self { guarantee: Guarantee::new(epsilon, delta), budget, spent: 0.0 })
    }

    /// Creates a filter whose budget just suffices for `plan`; the releases may then deviate from the plan.
    ///
    /// # Errors
    /// A number out of range; a relation under which the plan does not hold; a part that is not Gaussian; a plan without
    /// cost or without guarantee, and `delta` = 0.
    pub fn for_plan(plan: &DpEvent, delta: Delta) -> Result<Self, Error> {
        let budget = cost::<A>(plan, 1)? * (1.0 + HEADROOM);
        let mu = budget.sqrt() * (1.0 + 2.0 * f64::EPSILON);
        let epsilon = Epsilon::new(gaussian::epsilon(mu, delta)?.max(Epsilon::MIN.get()))?;
        Ok(Self { guarantee: Guarantee::new(epsilon, delta), budget, spent: 0.0 })
    }

    /// Returns the budget, as the `mu` of one Gaussian release that would exhaust it.
    pub fn mu(&self) -> f64 {
        self.budget.sqrt()
    }
}

fn cost<A: Adjacency>(event: &DpEvent, count: u64) -> Result<f64, Error> {
    leaves_under(event, count, A::KIND)?.into_iter().try_fold(0.0, |total, (leaf, count)| {
        let mu = match leaf {
            Leaf::NonPrivate => f64::INFINITY,
            Leaf::Gaussian { mu } => mu,
            Leaf::Mixture(mixture) => mixture.largest_mu(),
            other => return Err(Error::Unsupported { accountant: "GDP", event: other.name() }),
        };
        Ok(add_up(total, mul_up(count_up(count), mul_up(mu, mu))))
    })
}

impl<A: Adjacency> Filter<A> for GdpFilter<A> {
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
