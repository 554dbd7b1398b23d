//! Zero-concentrated differential privacy: a single parameter, `rho`, that adds under composition.
//!
//! An event is `rho`-zCDP if its Renyi divergence is at most `rho order` at every order above 1. For the following events the
//! least such `rho` is known:
//!
//! | event | rho | source |
//! |---|---|---|
//! | Gaussian, `mu` = sensitivity / std | `mu^2 / 2` | Bun and Steinke 2016, Proposition 1.6 |
//! | `epsilon`-DP | `epsilon tanh(epsilon/2)` | below |
//! | Laplace, `x` = sensitivity / scale | `x + e^-x - 1` | below |
//! | L2 ball, likewise | the divergence at order 1, about `x^2/(2 (dim + 1))` | [`crate::laplace_ball`] |
//! | Gaussian of hidden random sensitivity | `max mu^2 / 2` | the curve's slope at large orders |
//! | loss of range `r` | `r/2 coth(r/2) - 1 + ln(sinh(r/2)/(r/2))`, below `r^2 / 8` | [`crate::rdp::bounded_range`] |
//! | objective perturbation | within 1e-3 of the supremum over orders | [`crate::objective_perturbation`] |
//! | sparse vector technique | the bound's value at order 1 | [`crate::rdp::above_threshold_laplace`] |
//!
//! **The Kullback-Leibler divergence is the least `rho` for pure guarantees and Laplace.** With `s = order - 1/2`, the exponents
//! `(order - 1) D` of randomised response and of the Laplace pair are, up to a constant,
//!
//! ```text
//! ln cosh(s epsilon)     and     ln( cosh(s x) + sinh(s x)/(2 s) ),
//! ```
//!
//! and `order (order - 1) = s^2 - 1/4`. As functions of `v = s^2` both are concave: the arguments of the logarithms
//! are entire in `v`, of order 1/2, and all their zeros are real and negative (those of `cos`, and the eigenvalues of
//! the self-adjoint problem `u'' = v u`, `u(0) = 0`, `u'(x) + u(x)/2 = 0`), so by Hadamard's product each is a sum of
//! terms `ln(1 + v/z)` with `z > 0`. Hence `D / order`, the slope of the chord from `v = 1/4` (order 1), is
//! decreasing in the order, and its supremum is the limit at order 1, the Kullback-Leibler divergence.

use core::marker::PhantomData;

use crate::accountant::Accountant;
use crate::adjacency::Adjacency;
use crate::error::{Error, non_negative};
use crate::event::DpEvent;
use crate::laplace_ball::Ball;
use crate::leaves::{Leaf, Leaves, leaves, leaves_under};
use crate::objective_perturbation::Pair;
use crate::params::{Delta, NoiseMultiplier, Rho};
use crate::rdp::{self, RdpCurve};
use crate::rounding::{add_up, count_up, mul_up};

/// Factor that covers the rounding of one elementary function.
const ROUND_UP: f64 = 1.0 + 8.0 * f64::EPSILON;

/// Returns the least known `rho` of an event tree; infinite if something was released without a guarantee.
///
/// # Errors
/// A number out of range, and [`Error::Unsupported`] for an approximate guarantee.
///
/// # Examples
/// ```
/// use dp_accountant::{DpEvent, zcdp};
/// assert_eq!(zcdp::rho(&DpEvent::Gaussian { std_dev: 2.0, sensitivity: 1.0 })?, 0.125);
/// assert!((zcdp::rho(&DpEvent::PureDp { epsilon: 1.0 })? - 0.46211715726).abs() < 1e-10);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn rho(event: &DpEvent) -> Result<f64, Error> {
    rho_of_all(leaves(event, 1)?)
}

fn rho_of_all(leaves: Leaves) -> Result<f64, Error> {
    let mut total = 0.0;
    for (leaf, count) in leaves {
        total = add_up(total, mul_up(count_up(count), rho_of(&leaf)?));
    }
    Ok(total)
}

fn rho_of(leaf: &Leaf) -> Result<f64, Error> {
    Ok(match leaf {
        Leaf::NonPrivate => f64::INFINITY,
        Leaf::Gaussian { mu } => 0.5 * mu * mu,
        Leaf::Laplace { x } => rdp::laplace::rdp(1.0, *x) * ROUND_UP,
        Leaf::LaplaceBall { x, dim } => Ball::new(*x, *dim).rdp(1.0) * ROUND_UP,
        Leaf::Pure { epsilon } => epsilon * (0.5 * epsilon).tanh() * ROUND_UP,
        Leaf::Zcdp { rho } => *rho,
        Leaf::Mixture(mixture) => 0.5 * mixture.largest_mu() * mixture.largest_mu(),
        // Canonne, Kamath and Steinke 2020, Theorem 4: the same as the continuous law, in any dimension.
        Leaf::DiscreteGaussian { scale, sensitivity, .. } => 0.5 * (sensitivity / scale).powi(2) * ROUND_UP,
        Leaf::BoundedRange { epsilon } => rdp::bounded_range::kullback_leibler(*epsilon),
        Leaf::AboveThresholdLaplace { threshold, query } => rdp::above_threshold::rho_laplace(*threshold, *query),
        Leaf::AboveThresholdGaussian(mechanism) => mechanism.rho(),
        Leaf::ObjectivePerturbation { std_dev, regularization, loss } => {
            Pair::new(*std_dev, *regularization, *loss).rho()
        }
        other => return Err(Error::Unsupported { accountant: "zCDP", event: other.name() }),
    })
}

/// Returns epsilon of `rho`-zCDP at `delta` by the simple conversion; [`epsilon`] is never larger.
///
/// # Formula
/// ```text
/// epsilon = rho + 2 sqrt(rho ln(1/delta))
/// ```
///
/// # Errors
/// `rho` negative, NaN or infinite.
///
/// # References
/// Bun and Steinke 2016, Proposition 1.3, arXiv:1605.02065.
pub fn epsilon_simple(rho: f64, delta: Delta) -> Result<f64, Error> {
    let rho = non_negative("rho", rho)?;
    if rho == 0.0 {
        return Ok(0.0);
    }
    Ok((rho + 2.0 * (-rho * delta.get().ln()).sqrt()) * (1.0 + 4.0 * f64::EPSILON))
}

/// Returns epsilon of `rho`-zCDP at `delta`: the best conversion at the best order.
///
/// For a Gaussian, [`gaussian::epsilon`](crate::gaussian::epsilon) is exact and smaller.
///
/// # Errors
/// `rho` negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, zcdp};
/// let delta = Delta::new(1e-10)?;
/// assert!((zcdp::epsilon_simple(0.5, delta)? - 7.2861404243).abs() < 1e-9);
/// assert!(zcdp::epsilon(0.5, delta)? < 6.8393294132);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Canonne, Kamath and Steinke 2020, Proposition 12, arXiv:2004.00010; [`crate::rdp::conversion`].
pub fn epsilon(rho: f64, delta: Delta) -> Result<f64, Error> {
    Ok(curve(rho)?.epsilon(delta))
}

/// Returns delta of `rho`-zCDP at `epsilon`: the best conversion at the best order.
///
/// # Errors
/// `rho` or `epsilon` negative, NaN or infinite.
pub fn delta(rho: f64, epsilon: f64) -> Result<f64, Error> {
    curve(rho)?.delta(epsilon)
}

/// Returns the natural logarithm of [`delta`], which is finite even if delta underflows.
///
/// # Errors
/// `rho` or `epsilon` negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::zcdp;
/// let log_delta = zcdp::log_delta(1e-5, 2.0)?;
/// assert!((log_delta + 100_011.5).abs() < 1.0);
/// assert_eq!(zcdp::delta(1e-5, 2.0)?, 5e-324);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn log_delta(rho: f64, epsilon: f64) -> Result<f64, Error> {
    curve(rho)?.log_delta(epsilon)
}

fn curve(rho: f64) -> Result<RdpCurve, Error> {
    RdpCurve::new(&DpEvent::Zcdp { rho })
}

/// Returns the Gaussian noise multiplier that is exactly `rho`-zCDP: `1 / sqrt(2 rho)`.
///
/// # Errors
/// A `rho` so small or large that the multiplier leaves the range of floating point.
///
/// # References
/// Bun and Steinke 2016, Proposition 1.6, arXiv:1605.02065.
pub fn noise_multiplier(rho: Rho) -> Result<NoiseMultiplier, Error> {
    NoiseMultiplier::new((2.0 * rho.get()).sqrt().recip())
}

/// Adds up `rho` under the relation `A`.
///
/// # Examples
/// ```
/// use dp_accountant::{Accountant, DpEvent, ZeroOut, zcdp::ZcdpAccountant};
/// let mut accountant = ZcdpAccountant::<ZeroOut>::new();
/// accountant.compose(&DpEvent::Gaussian { std_dev: 10.0, sensitivity: 1.0 }, 100)?;
/// assert!((accountant.rho() - 0.5).abs() < 1e-15);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ZcdpAccountant<A: Adjacency> {
    rho: f64,
    relation: PhantomData<A>,
}

impl<A: Adjacency> Default for ZcdpAccountant<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Adjacency> ZcdpAccountant<A> {
    /// Creates an accountant without any release.
    pub fn new() -> Self {
        Self { rho: 0.0, relation: PhantomData }
    }

    /// Returns the zCDP parameter of everything composed so far; infinite if there is no guarantee.
    pub fn rho(&self) -> f64 {
        self.rho
    }
}

impl<A: Adjacency> Accountant<A> for ZcdpAccountant<A> {
    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), Error> {
        self.rho = add_up(self.rho, rho_of_all(leaves_under(event, count, A::KIND)?)?);
        Ok(())
    }

    fn epsilon(&self, delta: Delta) -> f64 {
        epsilon(self.rho, delta).unwrap_or(f64::INFINITY)
    }

    fn delta(&self, epsilon: f64) -> Result<f64, Error> {
        let epsilon = non_negative("epsilon", epsilon)?;
        if self.rho.is_finite() { delta(self.rho, epsilon) } else { Ok(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::RdpOrder;

    /// The claim of the module: the curve over the order never exceeds rho, and reaches it at order 1.
    #[test]
    fn no_curve_is_above_its_line_and_none_leaves_a_gap() {
        for x in [1e-4, 0.03, 0.5, 1.0, 3.0, 12.0, 80.0] {
            for event in [
                DpEvent::PureDp { epsilon: x },
                DpEvent::Laplace { scale: 1.0, sensitivity: x },
                DpEvent::LaplaceBall { scale: 1.0, sensitivity: x, dim: 3 },
                DpEvent::Gaussian { std_dev: 1.0, sensitivity: x },
            ] {
                let rho = rho(&event).unwrap();
                let curve = RdpCurve::new(&event).unwrap();
                let mut before = rho * (1.0 + 1e-12);
                for order in [1.0, 1.000_001, 1.01, 1.3, 2.0, 5.0, 33.0, 1e3, 1e6] {
                    let per_order = curve.at(RdpOrder::new(order).unwrap()) / order;
                    assert!(per_order <= before * (1.0 + 1e-9), "{event:?} at {order}: {per_order} > {before}");
                    before = per_order;
                }
                let at_one = curve.at(RdpOrder::new(1.0).unwrap());
                assert!((at_one / rho - 1.0).abs() < 1e-12, "{event:?}: {at_one} {rho}");
            }
        }
    }

    #[test]
    fn a_mixture_costs_its_largest_sensitivity() {
        let event = DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![1.0, 0.5], weights: vec![0.01, 0.99] };
        assert_eq!(rho(&event).unwrap(), 0.5);
        let curve = RdpCurve::new(&event).unwrap();
        assert!(curve.at(RdpOrder::new(1e5).unwrap()) / 1e5 > 0.4999);
    }

    /// Compared with the improved conversion at its best order, in 50-digit arithmetic.
    #[test]
    fn deltas_below_the_least_double_have_a_logarithm() {
        for (rho, epsilon, improved) in [(1e-5, 2.0, -100_011.512_930_464_95), (0.01, 2.0, -104.610_153_663_529_85)] {
            let exact = crate::gaussian::log_delta((2.0f64 * rho).sqrt(), epsilon).unwrap();
            let found = log_delta(rho, epsilon).unwrap();
            assert!(found <= improved * (1.0 - 1e-12) && found >= exact, "{rho} {epsilon}: {exact} {found}");
        }
        assert_eq!(delta(1e-5, 2.0).unwrap(), 5e-324);
        assert_eq!((log_delta(0.0, 2.0).unwrap(), delta(0.0, 2.0).unwrap()), (f64::NEG_INFINITY, 0.0));
        assert!(log_delta(-1.0, 2.0).is_err() && log_delta(1.0, f64::NAN).is_err());
    }

    #[test]
    fn noise_for_a_rho_gives_it_back() {
        let multiplier = noise_multiplier(Rho::new(0.3).unwrap()).unwrap().get();
        let event = DpEvent::Gaussian { std_dev: multiplier, sensitivity: 1.0 };
        assert!((rho(&event).unwrap() - 0.3).abs() < 1e-15);
    }
}
