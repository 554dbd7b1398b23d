//! Gaussian differential privacy: a single parameter `mu`, whose squares add under composition, and an exact curve.
//!
//! A release is `mu`-GDP if no test distinguishes neighbours better than `N(0, 1)` from `N(mu, 1)`. This accountant covers only
//! events for which this is known without loss (Gaussian noise and [`DpEvent::Gdp`], composed or read as groups). For sampled
//! Gaussians `mu` is a central limit and not a bound, so it refuses them.
//!
//! Pure guarantees have a `mu`, too: [`mu_of_pure`] and [`mu_of_bounded_range`]. It makes them one release with the Gaussian noise
//! on the same Poisson sample, whose curve is known exactly; [`bound`](crate::bound) uses it there.

use core::marker::PhantomData;

use crate::accountant::Accountant;
use crate::adjacency::Adjacency;
use crate::error::{Error, non_negative};
use crate::event::DpEvent;
use crate::gaussian;
use crate::leaves::pure::pure_epsilon;
use crate::leaves::{Leaf, Leaves, leaves, leaves_under};
use crate::logspace::log_one_plus_exp;
use crate::normal;
use crate::params::{Delta, NoiseMultiplier, SamplingRate};
use crate::root::{Tangent, least_safe};
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

/// Returns the least `mu` for which every release whose privacy loss has a range of at most `epsilon` is `mu`-GDP, rounded up;
/// infinite from 1200 on.
///
/// # Formula
/// ```text
/// mu = 2 Phi^-1( 1 / (1 + e^(-epsilon/2)) ),    about 0.627 epsilon for small epsilon
/// ```
///
/// For two neighbours with losses between `t - epsilon` and `t`, no test is better than for two outcomes with these losses, of
/// probabilities `p` and `q` with `logit p - logit q = epsilon`. A threshold on `N(mu, 1)` against `N(0, 1)` gives such a pair
/// if `mu = Phi^-1(p) - Phi^-1(q)`. The slope of `Phi^-1` at `1/(1 + e^-x)` as a function of `x` falls on both sides of 0, so that
/// the symmetric pair has the largest `mu`.
///
/// # Errors
/// `epsilon` negative, NaN or infinite.
///
/// # Examples
/// ```
/// let mu = dp_accountant::gdp::mu_of_bounded_range(0.5)?;
/// assert!((mu - 0.31298).abs() < 1e-5);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Dong, Durfee and Rogers 2020, "Optimal differential privacy composition for exponential mechanisms", Lemma 3.2 (the pair);
/// Dong, Roth and Su 2022, "Gaussian differential privacy", arXiv:1905.02383.
pub fn mu_of_bounded_range(epsilon: f64) -> Result<f64, Error> {
    non_negative("epsilon", epsilon).map(of_bounded_range)
}

/// Returns the least `mu` for which every `epsilon`-DP release is `mu`-GDP, rounded up: its loss has a range of `2 epsilon`.
/// Infinite from 600 on.
///
/// # Formula
/// ```text
/// mu = 2 Phi^-1( 1 / (1 + e^-epsilon) ),    about 1.253 epsilon for small epsilon
/// ```
///
/// # Errors
/// `epsilon` negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::gdp;
/// assert_eq!(gdp::mu_of_pure(0.5)?, gdp::mu_of_bounded_range(1.0)?);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn mu_of_pure(epsilon: f64) -> Result<f64, Error> {
    non_negative("epsilon", epsilon).map(|epsilon| of_bounded_range(2.0 * epsilon))
}

/// Range of the loss from which on no `mu` is computed; there the tail of the less likely outcome underflows.
const LARGEST_RANGE: f64 = 1200.0;

fn of_bounded_range(epsilon: f64) -> f64 {
    let half = 0.5 * epsilon;
    if half == 0.0 || half >= 0.5 * LARGEST_RANGE {
        return if half == 0.0 { 0.0 } else { f64::INFINITY };
    }
    // The slope is at most sqrt(2 pi)/4 = 0.6267 ..., at 0.
    let (start, most) = (0.62 * half, 0.63 * half);
    let found = if half < 1.0 {
        // Distances from 1/2: erf(z/sqrt 2) >= tanh(half/2).
        let wanted = (0.5 * half).tanh();
        least_safe(0.0, start, most, |z| Tangent {
            value: wanted - libm::erf(z * core::f64::consts::FRAC_1_SQRT_2),
            slope: -2.0 * normal::density(z),
        })
    } else {
        // Logarithms of tails: P(N > z) <= 1/(1 + e^half).
        let wanted = -log_one_plus_exp(half);
        least_safe(0.0, start.min(half.sqrt()), most, |z| {
            let tail = normal::upper_tail(z);
            Tangent { value: tail.ln() - wanted, slope: -normal::density(z) / tail }
        })
    };
    // A few roundings of erf, its argument and the logarithms, each relative to a slope of at least one half in z.
    2.0 * found * (1.0 + 64.0 * f64::EPSILON)
}

/// Returns the `mu` of Gaussian releases and pure guarantees together; infinite if one of them has none.
pub(crate) fn mu_of_mixed(leaves: &Leaves) -> f64 {
    let square = leaves.iter().fold(0.0, |square, (leaf, count)| {
        let mu = match leaf {
            Leaf::Gaussian { mu } => *mu,
            Leaf::BoundedRange { epsilon } => of_bounded_range(*epsilon),
            pure => of_bounded_range(2.0 * pure_epsilon(pure)),
        };
        add_up(square, mul_up(count_up(*count), mul_up(mu, mu)))
    });
    square.sqrt() * (1.0 + 2.0 * f64::EPSILON)
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

    /// The quantile of the normal law by bisection on its tail.
    fn quantile(p: f64) -> f64 {
        let (mut low, mut high) = (-40.0, 40.0);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if normal::upper_tail(-middle) < p { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    #[test]
    fn a_range_of_losses_is_least_private_where_it_is_symmetric() {
        for range in [1e-3, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0] {
            let found = mu_of_bounded_range(range).unwrap();
            let of_pair = |high: f64| {
                let probability = |loss: f64| 1.0 / (1.0 + (-loss).exp());
                quantile(probability(high)) - quantile(probability(high - range))
            };
            let symmetric = of_pair(0.5 * range);
            assert!((found / symmetric - 1.0).abs() < 1e-11 / range.min(1.0), "{range}: {found} {symmetric}");
            // All losses with a mean of likelihood ratios of 1: high from 0 to the range, and beyond.
            for i in -40..=80 {
                let high = range * f64::from(i) / 40.0;
                if high.abs() < 30.0 && (high - range).abs() < 30.0 {
                    assert!(of_pair(high) <= found * (1.0 + 1e-10), "{range} {high}");
                }
            }
        }
    }

    /// The hockey-stick divergence of the pair is at most that of the Gaussian, and touches it.
    #[test]
    fn the_gaussian_dominates_every_pair_with_the_range_and_no_smaller_one_does() {
        for range in [0.01f64, 0.3, 1.0, 1.9, 2.1, 4.0, 30.0, 300.0] {
            let mu = mu_of_bounded_range(range).unwrap();
            let mut least_room = f64::INFINITY;
            for i in 1..40 {
                let high = range * f64::from(i) / 40.0;
                // q e^high + (1 - q) e^(high - range) = 1.
                let q = (-(high - range).exp_m1()) / (high.exp() - (high - range).exp());
                for j in -60..=60 {
                    let epsilon = range * f64::from(j) / 60.0;
                    let of = |mass: f64, loss: f64| (mass * (loss.exp() - epsilon.exp())).max(0.0);
                    let pair = of(q, high) + of(1.0 - q, high - range);
                    let below = if epsilon >= 0.0 {
                        gaussian::delta(mu, epsilon).unwrap()
                    } else {
                        1.0 - epsilon.exp() + epsilon.exp() * gaussian::delta(mu, -epsilon).unwrap()
                    };
                    assert!(pair <= below * (1.0 + 1e-12) + 1e-15, "{range} {high} {epsilon}: {pair} {below}");
                    if epsilon.abs() < 0.4 * range && below > 1e-3 {
                        least_room = least_room.min((below - pair) / below);
                    }
                }
            }
            if range <= 4.0 {
                assert!(least_room < 0.01, "{range}: {least_room}");
            }
        }
    }

    #[test]
    fn the_mu_of_a_range_is_monotone_and_rounded_up() {
        let mut before = 0.0;
        for i in 0..4000 {
            let range = 1e-12 * (0.0086 * f64::from(i)).exp();
            let found = mu_of_bounded_range(range).unwrap();
            assert!(found > before && found <= 0.626_66 * range, "{range}: {found} {before}");
            // By tails, whose error relative to a small mu is large.
            let mass = normal::upper_tail(0.5 * found) * (0.5 * range).exp() / normal::upper_tail(-0.5 * found);
            assert!(mass <= 1.0 + 1e-15, "{range}: {mass}");
            before = found;
        }
        assert_eq!(mu_of_bounded_range(0.0).unwrap(), 0.0);
        assert_eq!(mu_of_bounded_range(1200.0).unwrap(), f64::INFINITY);
        assert!(mu_of_bounded_range(1199.0).unwrap() > 60.0);
        assert!(mu_of_pure(-1.0).is_err() && mu_of_bounded_range(f64::NAN).is_err());
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
