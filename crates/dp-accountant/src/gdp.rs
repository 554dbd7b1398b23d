//! Gaussian differential privacy: a single parameter `mu`, whose squares add under composition, and an exact curve.
//!
//! A release is `mu`-GDP if no test distinguishes neighbours better than `N(0, 1)` from `N(mu, 1)`. This module covers only
//! events for which this is known (Gaussian noise and [`DpEvent::Gdp`], composed or read as groups). For sampled Gaussians `mu`
//! is a central limit and not a bound, so this accountant refuses them.

use core::marker::PhantomData;

use crate::accountant::Accountant;
use crate::adjacency::Adjacency;
use crate::error::Error;
use crate::event::DpEvent;
use crate::gaussian;
use crate::leaves::{Leaf, Leaves, leaves, leaves_under};
use crate::params::{Delta, NoiseMultiplier, SamplingRate};
use crate::rounding::{add_up, count_up, mul_up};

/// Returns the least `mu` of an event tree, rounded up; infinite if something was released without a guarantee.
///
/// # Formula
/// ```text
/// mu = sqrt(sum_i mu_i^2)
/// ```
///
/// # Errors
/// A number out of range, and [`Error::Unsupported`] for events that are not known to be Gaussian-DP.
///
/// # Examples
/// ```
/// use dp_accountant::{DpEvent, gdp};
/// let release = DpEvent::Gaussian { std_dev: 2.0, sensitivity: 1.0 };
/// let mu = gdp::mu(&DpEvent::SelfComposed { event: Box::new(release), count: 100 })?;
/// assert!((mu - 5.0).abs() < 1e-14);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Dong, Roth and Su 2022, "Gaussian differential privacy", Corollary 3.3, arXiv:1905.02383.
pub fn mu(event: &DpEvent) -> Result<f64, Error> {
    leaves(event, 1).and_then(|leaves| mu_of_all(&leaves))
}

fn mu_of_all(leaves: &Leaves) -> Result<f64, Error> {
    // A single release keeps its own mu; the root of a sum is rounded up.
    if let [(Leaf::Gaussian { mu }, 1)] = leaves.as_slice() {
        return Ok(*mu);
    }
    let mut square = 0.0;
    for (leaf, count) in leaves {
        square = match leaf {
            Leaf::NonPrivate => f64::INFINITY,
            Leaf::Gaussian { mu } => add_up(square, mul_up(count_up(*count), mul_up(*mu, *mu))),
            other => return Err(Error::Unsupported { accountant: "GDP", event: other.name() }),
        };
    }
    Ok(square.sqrt() * (1.0 + 2.0 * f64::EPSILON))
}

/// Returns the central-limit `mu` of noisy gradient descent on Poisson samples, for many steps at a small sampling rate. **Not a
/// bound**: epsilon can be far larger than that of a `mu`-GDP release. Only for comparison with papers.
///
/// # Formula
/// ```text
/// mu = q sqrt( T (e^(1/sigma^2) - 1) ),    q = sampling rate, T = steps, sigma = noise multiplier
/// ```
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, NoiseMultiplier, SamplingRate, gaussian, gdp};
/// let mu = gdp::central_limit_approximation(SamplingRate::new(0.001)?, NoiseMultiplier::new(0.6)?, 20_000);
/// let suggested = gaussian::epsilon(mu, Delta::new(1e-7)?)?;
/// assert!((suggested - 2.76).abs() < 0.01); // the truth is 4.4513
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Bu, Dong, Long and Su 2020, "Deep learning with Gaussian differential privacy", Theorem 4, arXiv:1911.11607.
pub fn central_limit_approximation(sampling_rate: SamplingRate, noise_multiplier: NoiseMultiplier, steps: u64) -> f64 {
    let growth = noise_multiplier.get().powi(-2).exp_m1();
    sampling_rate.get() * (steps as f64 * growth).sqrt()
}

/// Composes Gaussian-DP releases under the relation `A`; its curve is exact.
///
/// # Examples
/// ```
/// use dp_accountant::{Accountant, Delta, DpEvent, ZeroOut, gdp::GdpAccountant};
/// let mut accountant = GdpAccountant::<ZeroOut>::new();
/// accountant.compose(&DpEvent::Gaussian { std_dev: 10.0, sensitivity: 1.0 }, 100)?;
/// assert!((accountant.mu() - 1.0).abs() < 1e-14);
/// assert!((accountant.epsilon(Delta::new(1e-6)?) - 4.886554117462212).abs() < 1e-11);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GdpAccountant<A: Adjacency> {
    mu: f64,
    relation: PhantomData<A>,
}

impl<A: Adjacency> Default for GdpAccountant<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Adjacency> GdpAccountant<A> {
    /// Creates an accountant without any release.
    pub fn new() -> Self {
        Self { mu: 0.0, relation: PhantomData }
    }

    /// Returns the parameter of everything composed so far; infinite if there is no guarantee.
    pub fn mu(&self) -> f64 {
        self.mu
    }
}

impl<A: Adjacency> Accountant<A> for GdpAccountant<A> {
    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), Error> {
        let mu = mu_of_all(&leaves_under(event, count, A::KIND)?)?;
        self.mu = match (self.mu, mu) {
            (0.0, mu) | (mu, 0.0) => mu,
            (before, mu) => add_up(mul_up(before, before), mul_up(mu, mu)).sqrt() * (1.0 + 2.0 * f64::EPSILON),
        };
        Ok(())
    }

    fn epsilon(&self, delta: Delta) -> f64 {
        gaussian::epsilon(self.mu, delta).unwrap_or(f64::INFINITY)
    }

    fn delta(&self, epsilon: f64) -> Result<f64, Error> {
        let of_nothing = gaussian::delta(0.0, epsilon)?;
        if self.mu == 0.0 { Ok(of_nothing) } else { Ok(gaussian::delta(self.mu, epsilon).unwrap_or(1.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjacency::{ReplaceOne, ZeroOut};

    #[test]
    fn squares_add_and_order_does_not_matter() {
        let (small, large) = (DpEvent::Gdp { mu: 0.3 }, DpEvent::Gaussian { std_dev: 1.0, sensitivity: 0.4 });
        let tree = DpEvent::Composed { events: vec![small.clone(), large.clone()] };
        assert!((mu(&tree).unwrap() - 0.5).abs() < 1e-15 && mu(&tree).unwrap() >= 0.5);
        let mut accountant = GdpAccountant::<ZeroOut>::new();
        accountant.compose(&large, 1).unwrap();
        accountant.compose(&small, 1).unwrap();
        assert!((accountant.mu() - 0.5).abs() < 1e-15 && accountant.mu() >= 0.5);
        assert_eq!(mu(&DpEvent::NoOp).unwrap(), 0.0);
    }

    #[test]
    fn nothing_costs_nothing_and_no_guarantee_is_infinite() {
        let mut accountant = GdpAccountant::<ReplaceOne>::new();
        assert_eq!((accountant.epsilon(Delta::ZERO), accountant.delta(0.0).unwrap()), (0.0, 0.0));
        accountant.compose(&DpEvent::NonPrivate, 1).unwrap();
        accountant.compose(&DpEvent::Gdp { mu: 1.0 }, 1).unwrap();
        assert_eq!(accountant.epsilon(Delta::new(0.9).unwrap()), f64::INFINITY);
        assert_eq!(accountant.delta(100.0).unwrap(), 1.0);
        assert!(accountant.delta(f64::NAN).is_err());
    }

    #[test]
    fn what_is_gaussian_in_the_limit_only_is_refused_and_leaves_no_trace() {
        let sampled = DpEvent::PoissonSampled { sampling_rate: 0.1, event: Box::new(DpEvent::Gdp { mu: 1.0 }) };
        let mut accountant = GdpAccountant::<ZeroOut>::new();
        accountant.compose(&DpEvent::Gdp { mu: 1.0 }, 1).unwrap();
        let before = accountant.clone();
        let tree = DpEvent::Composed { events: vec![DpEvent::Gdp { mu: 1.0 }, sampled] };
        assert!(matches!(accountant.compose(&tree, 3), Err(Error::Unsupported { .. })));
        assert_eq!(accountant, before);
    }
}
