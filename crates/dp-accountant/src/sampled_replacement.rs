//! Gaussian noise on a Poisson sample, where one record's contribution is replaced by another.
//!
//! A record takes part with probability q. The value is `v` without it, `v + a` with it, and `v + b` with its replacement. Only
//! `|a|, |b| <= radius` and `|a - b| <= distance` are known. In units of the distance, with `r` the radius (from 1/2 to 1) and s
//! the noise's standard deviation, the hockey-stick divergence of the two output laws is at most, at every `u >= 1`,
//!
//! ```text
//! F(u) = H_u( q N(r, s²) + (1-q) N(0, s²)  ||  q N(r-1, s²) + (1-q) N(0, s²) ),
//! F(u) = 1 - u + u F(1/u)    for u < 1,
//! ```
//!
//! in any dimension, and no smaller curve is valid: it is attained if `a` and `b` lie on one line through 0, `|a| = r`, `b = a -
//! a/|a|`.
//!
//! **Proof.** Given the other records of the sample, whose law is the same for both neighbours, let the outputs have the laws `q
//! N(a) + (1-q) N(0)` and `q N(b) + (1-q) N(0)`; their mean over the rest of the sample has no larger divergence, by joint
//! convexity. For `u >= 1` put `k = (u-1)(1-q)/q >= 0`. Then
//!
//! ```text
//! H_u / q = E (1 - X_1 - X_2)_+ ,    X_1 = u dN(b)/dN(a),  X_2 = k dN(0)/dN(a)    under N(a):
//! ```
//!
//! lognormal variables with means `u` and `k`, whose logarithms have the covariances `|a-b|²/s²`, `<a-b, a>/s²` and `|a|²/s²`.
//! The mean of a convex function `f(X_1 + X_2)` does not decrease if one covariance grows and the means are fixed (Kahane's
//! inequality: along a path of covariances C its derivative is `1/2 sum_ij C'_ij E X_i X_j f''(X_1 + X_2)`). Here `|a-b|² <= 1`,
//! `<a-b, a> <= |a-b| |a| <= r` and `|a|² <= r²`, and all three are equalities for `a = r`, `b = r - 1` on a line, where `|b| <=
//! r` because `r >= 1/2`. For `u < 1`: `H_u(A||B) = 1 - u + u H_(1/u)(B||A)`, and a and b change roles.
//!
//! **Composition.** As a supremum of convex functions of u, `F` is convex, so that it is the curve of a pair of laws, which
//! dominates the release and composes, even if a later step's `a` and `b` depend on earlier outcomes (Zhu, Dong and Wang 2022,
//! Theorem 10). At `r = 1/2`, the case of contributions clipped to half the distance, that pair is the one above, `q N(1/2) +
//! (1-q) N(0)` against its mirror image. For `r > 1/2` it is the half of that pair with positive loss, the mirror image of this
//! half, and the remaining mass at the loss 0; its composition is not the larger of both directions' own compositions (Lebeda,
//! Regehr, Kamath and Steinke 2024), which is only a lower bound.
//!
//! **Renyi divergence.** With A and B the two laws, L = ln dA/dB, and `x_0` its zero, both halves of that pair together have
//!
//! ```text
//! e^((α-1) D_α) = 1 + integral over (x_0, inf) of A(x) (e^((α-1) L(x)) - 1) (1 - e^(-α L(x))) dx,
//! ```
//!
//! in which nothing cancels.
//!
//! # References
//! Balle, Barthe and Gaboardi 2018, arXiv:1807.01647 (`r = 1`, when 0 may be one of the contributions); Kahane 1986, "Une
//! inégalité du type de Slepian et Gordon sur les processus gaussiens"; Zhu, Dong and Wang 2022, arXiv:2106.08567; Lebeda,
//! Regehr, Kamath and Steinke 2024, arXiv:2405.20769. The curve for other radii is derived here.

mod pair;

pub(crate) use pair::{Moments, Pair};

use crate::error::{Error, non_negative};
use crate::event::DpEvent;
use crate::exact::PrivacyCurve;
use crate::params::{Delta, RdpOrder};
use crate::rdp::RdpCurve;

/// Returns delta at `epsilon` of one release, rounded up; the parameters are those of [`DpEvent::PoissonSampledReplacement`].
///
/// # Privacy
/// For one record's contribution replaced by another, in either direction.
///
/// # Errors
/// A parameter out of range, `epsilon` negative.
///
/// # Examples
/// ```
/// use dp_accountant::sampled_replacement;
/// // Clipped to norm 1, so that two versions of one record are at most 2 apart; noise of standard deviation 2.
/// let clipped = sampled_replacement::delta(0.01, 2.0, 2.0, 1.0, 0.1)?;
/// let only_the_distance = sampled_replacement::delta(0.01, 2.0, 2.0, 2.0, 0.1)?;
/// assert!(clipped < 4.1e-9 && only_the_distance > 7.2e-5);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn delta(sampling_rate: f64, std_dev: f64, distance: f64, radius: f64, epsilon: f64) -> Result<f64, Error> {
    let event = DpEvent::PoissonSampledReplacement { sampling_rate, std_dev, distance, radius };
    Ok(PrivacyCurve::new(&event)?.delta(non_negative("epsilon", epsilon)?)?.upper)
}

/// Returns epsilon at `delta` of one release, rounded up; infinite for `delta` = 0. See [`delta`](fn@delta).
///
/// # Errors
/// A parameter out of range.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, sampled_replacement};
/// let epsilon = sampled_replacement::epsilon(0.01, 2.0, 2.0, 1.0, Delta::new(1e-5)?)?;
/// assert!(sampled_replacement::delta(0.01, 2.0, 2.0, 1.0, epsilon)? <= 1e-5);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn epsilon(sampling_rate: f64, std_dev: f64, distance: f64, radius: f64, delta: Delta) -> Result<f64, Error> {
    let event = DpEvent::PoissonSampledReplacement { sampling_rate, std_dev, distance, radius };
    Ok(PrivacyCurve::new(&event)?.epsilon(delta)?.upper)
}

/// Returns the Renyi divergence of one release, in both directions, rounded up; the parameters are those of
/// [`DpEvent::PoissonSampledReplacement`].
///
/// # Errors
/// A parameter out of range.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, sampled_replacement};
/// let order = RdpOrder::new(8.0)?;
/// // Every record takes part: the Gaussian mechanism.
/// assert!((sampled_replacement::rdp(order, 1.0, 4.0, 2.0, 1.0)? - 8.0 / 8.0).abs() < 1e-15);
/// assert!(sampled_replacement::rdp(order, 0.01, 4.0, 2.0, 1.0)? < 2e-4);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn rdp(order: RdpOrder, sampling_rate: f64, std_dev: f64, distance: f64, radius: f64) -> Result<f64, Error> {
    let event = DpEvent::PoissonSampledReplacement { sampling_rate, std_dev, distance, radius };
    Ok(RdpCurve::new(&event)?.at(order))
}
