//! Objective perturbation: a convex objective with a random linear term, minimised exactly.
//!
//! The released `w` minimises `sum_i loss(w; z_i) + lambda |w|²/2 + <b, w>`, `b ~ N(0, s² I)`, over rows of norm at most 1.
//! For an output `w`, `b` is a function of `w` and of the data, so the densities of `w` under two data sets are those of two
//! values of `b`, times the ratio of two determinants. Let one additional record change the summed gradient by `-a y`, `|y| <=
//! 1`. With `v = 1/s²`, under the law from which `b` was drawn, `u = <b, y>/s²` is normal with variance at most `v`, for every
//! `w`, and
//!
//! ```text
//! loss of privacy = a u + a² v/2 + ln(determinant ratio).
//! ```
//!
//! The determinant ratio is at most `1 + curvature/lambda` when the record is removed, and at most 1 when it is added. The number
//! of records is not used. The slope `a` depends on `w`, so the loss is bounded by its largest value over `a`, a function `M` of
//! `u` alone, whose law is known exactly:
//!
//! - [`Logistic`](MarginLoss::Logistic): `a` in [0, 1] has one sign, and the curvature is `a(1 - a)` of the same `a`. With
//!   `y = u + v/2`, the loss of the Gaussian mechanism, removal has
//!   `M(y) = max_a ( a y + ln(1 + a(1-a)/lambda) - a(1-a) v/2 )`, and addition `max(0, y)`: the Gaussian mechanism.
//! - [`HuberSvm`](MarginLoss::HuberSvm): the same without the relation of slope and curvature, `M(y) = max(0, y) + ln(1 + 1/(2
//!   width lambda))`. The loss is twice differentiable except on hyperplanes, whose image under a Lipschitz map has measure 0.
//! - [`BoundedSlope`](MarginLoss::BoundedSlope): the slope has either sign, so `M = slope |u| + slope² v/2`, plus `ln(1 +
//!   curvature/lambda)` for removal.
//! - [`LogCosh`](MarginLoss::LogCosh): either sign too, and the curvature is `(1 - a²)/width` of the same `a`. With `k = 1/(width
//!   lambda)` removal has `M = max_a ( a|u| + a² v/2 + ln(1 + (1 - a²) k) )`. As `ln(1 + (1 - a²) k) <= (1 - a²) k`, the sum is
//!   at most a parabola with its maximum at `|u|/(2k - v)`. From `|u| = 2k - v` on, `M` is attained at `a = 1` and is the
//!   Gaussian mechanism's `|u| + v/2`. Below, it is at most the parabola's value there, `2k - v/2`, and at most `|u| + v/2 + ln(1
//!   + k)`. So from `epsilon = 2k` on the curvature costs nothing.
//! - [`Softmax`](MarginLoss::Softmax): the gradient of a record of class `c` is `sum_(j != c) p_j (e_j - e_c) ⊗ x`, a point of
//!   the simplex of 0 and `C - 1` vectors of length at most `sqrt 2`, whose directions depend on the record and not on the
//!   weights. `<b, g>/s² + |g|² v/2` is convex in it, so largest at a vertex: `M = max(0, max_j u_j + v)` with `C - 1` normal
//!   `u_j` of variance at most `2v`; each `u_j + v` is a Gaussian mechanism's loss at sensitivity `sqrt 2`, and delta is at most
//!   `C - 1` times its delta. Removal adds `(C - 1) ln(1 + 1/(C lambda))`.
//!
//! With noise of density proportional to `exp(-|b|/s)` instead, the privacy loss is bounded: [`pure_epsilon`].
//!
//! **Composition: by the envelope of both directions, not by the law of `M`.** That law dominates each direction, but `M >= 0`,
//! whereas a privacy loss averages out: `k` releases would cost like `k` and not like `sqrt k`. Each direction's hockey-stick
//! curve determines the other's: `H_x(P|Q) = 1 - x + x H_(1/x)(Q|P)`. So the removal curve is at most `E(1 - x e^-M)_+` of
//! removal for `x >= 1`, at most the mirror image of that of addition for `x <= 1`, and, being convex, at most the lower convex
//! envelope of the two together. That envelope is the curve of a pair, which dominates both directions. For a monotone loss it
//! has a simple form: with `y ~ N(v/2, v)` under `P`,
//!
//! ```text
//! L(y) = y (y <= 0),   0 (0 < y <= y*),   M(y) (y > y*),    y* such that E_P e^-L = 1:
//! ```
//!
//! the tangent from the Gaussian curve's point at `x = 1` to the removal curve touches it at `e^M(y*)`. If `y*` is slightly too
//! small, `Q` lacks a mass m, which is added to the outcomes of `P` without loss: their loss becomes slightly negative, and the
//! curve rises by at most `m x`, between 1 and `e^M(y*)` only.
//!
//! **Cost compared with one Gaussian release of the same noise.** `M(y) = y` from `1/lambda - v/2` on, so delta at any `epsilon
//! >= 1/lambda` is exactly the Gaussian's.
//!
//! # References
//! Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012 (the mechanism); Redberg, Koskela and Wang
//! 2023, "Improving the privacy and practicality of objective perturbation" ([`published_rdp`]). The bounds are derived
//! here.

mod beside;
mod law;
mod monotone;
mod pure;
mod sided;

use core::cell::Cell;

use crate::error::{Error, non_negative, positive};
use crate::event::MarginLoss;
use crate::gaussian::{curve_point, epsilon_at};
use crate::normal::{LN_SQRT_2_PI, mills_ratio, upper_tail};
use crate::params::{Delta, RdpOrder};
use crate::root::{Tangent, least_safe};
pub(crate) use beside::BesideGaussians;
pub(crate) use law::{law, least_mu};
use monotone::Monotone;
pub use pure::pure_epsilon;
use sided::Sided;

/// Least order whose divergence is computed; it is used for smaller orders too, whose divergence is smaller.
const LEAST_ORDER: f64 = 1.0 + 1e-5;

/// Largest epsilon of a search.
const LARGEST_EPSILON: f64 = 1e12;

/// Returns delta at `epsilon` of one release; `std_dev` and `regularization` as in
/// [`DpEvent::ObjectivePerturbation`](crate::DpEvent::ObjectivePerturbation).
///
/// # Privacy
/// For one record more or fewer, in either direction; the minimiser must be exact. The bound covers quadrature errors.
///
/// # Errors
/// A parameter not positive or not finite, `epsilon` negative.
///
/// # Examples
/// ```
/// use dp_accountant::{MarginLoss, gaussian, objective_perturbation};
/// // With a regulariser above 1/epsilon it costs what one Gaussian release costs.
/// let delta = objective_perturbation::delta(4.0, 1.5, MarginLoss::Logistic, 1.0)?;
/// assert!((delta / gaussian::delta(0.25, 1.0)? - 1.0).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn delta(std_dev: f64, regularization: f64, loss: MarginLoss, epsilon: f64) -> Result<f64, Error> {
    Ok(Pair::checked(std_dev, regularization, loss)?.delta(non_negative("epsilon", epsilon)?))
}

/// Returns epsilon at `delta` of one release, rounded up; infinite for `delta` = 0. See [`delta`](fn@delta).
///
/// # Errors
/// A parameter not positive or not finite.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, MarginLoss, gaussian, objective_perturbation};
/// let delta = Delta::new(1e-6)?;
/// let epsilon = objective_perturbation::epsilon(4.0, 0.5, MarginLoss::Logistic, delta)?;
/// assert!(epsilon < 1.05 * 1.2 && epsilon >= gaussian::epsilon(0.25, delta)?);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn epsilon(std_dev: f64, regularization: f64, loss: MarginLoss, delta: Delta) -> Result<f64, Error> {
    let pair = Pair::checked(std_dev, regularization, loss)?;
    Ok(epsilon_of(delta.get(), pair.mu(), |epsilon| pair.delta(epsilon)))
}

/// Returns the Renyi divergence of one release, in the worse direction, from the envelope of both.
///
/// # Errors
/// A parameter not positive or not finite.
///
/// # Examples
/// ```
/// use dp_accountant::{MarginLoss, RdpOrder, objective_perturbation};
/// let order = RdpOrder::new(8.0)?;
/// let ours = objective_perturbation::rdp(order, 20.0, 1.0, MarginLoss::Logistic)?;
/// let published = objective_perturbation::published_rdp(order, 20.0, 1.0, 0.25, 1.0)?;
/// assert!(ours > 0.045 && ours < 0.0451 && published > 0.33);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn rdp(order: RdpOrder, std_dev: f64, regularization: f64, loss: MarginLoss) -> Result<f64, Error> {
    Ok(Pair::checked(std_dev, regularization, loss)?.rdp(order.get()))
}

/// Returns `rho` of zero-concentrated differential privacy for one release: an upper bound on the supremum over orders of the
/// divergence divided by the order.
///
/// # Errors
/// A parameter not positive or not finite.
pub fn rho(std_dev: f64, regularization: f64, loss: MarginLoss) -> Result<f64, Error> {
    Ok(Pair::checked(std_dev, regularization, loss)?.rho())
}

/// Returns the published Renyi bound, which requires a regularisation above the curvature; [`rdp`] is smaller.
///
/// # Formula
/// ```text
/// -ln(1 - curvature/regularization) + slope²/(2 std_dev²)
///     + 1/(order - 1) ln E exp((order - 1) |N(0, slope²/std_dev²)|)
/// ```
///
/// # Errors
/// A parameter not positive or not finite; `regularization` not above `curvature`; an order of 1.
///
/// # References
/// Redberg, Koskela and Wang 2023, Theorem 3.2.
pub fn published_rdp(
    order: RdpOrder,
    std_dev: f64,
    regularization: f64,
    curvature: f64,
    slope: f64,
) -> Result<f64, Error> {
    let (std_dev, regularization) = (positive("std_dev", std_dev)?, positive("regularization", regularization)?);
    let (curvature, slope) = (positive("curvature", curvature)?, positive("slope", slope)?);
    if !(regularization > curvature) {
        return Err(Error::OutOfRange { name: "regularization", value: regularization, range: "(curvature, inf)" });
    }
    let excess_order = order.get() - 1.0;
    if excess_order == 0.0 {
        return Err(Error::OutOfRange { name: "order", value: 1.0, range: "(1, inf)" });
    }
    let mu = slope / std_dev;
    // E e^(t |N(0, mu²)|) = 2 e^(t² mu²/2) P(N < t mu).
    let log_moment = core::f64::consts::LN_2 + 0.5 * (excess_order * mu).powi(2) + log_upper_tail(-excess_order * mu);
    let total = -(-curvature / regularization).ln_1p() + 0.5 * mu * mu + log_moment / excess_order;
    Ok(total * (1.0 + 16.0 * f64::EPSILON))
}

/// Returns `ln P(N(0,1) > x)`.
pub(crate) fn log_upper_tail(x: f64) -> f64 {
    if x < -1.0 {
        (-upper_tail(-x)).ln_1p()
    } else if x < 5.0 {
        upper_tail(x).ln()
    } else {
        mills_ratio(x).ln() - 0.5 * x * x - LN_SQRT_2_PI
    }
}

/// The pair of laws that dominates one release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pair {
    /// Logistic and Huber losses.
    Monotone(Monotone),
    /// A slope of either sign, or one of several classes.
    Sided(Sided),
}

/// Checks the numbers of a release.
pub(crate) fn check(std_dev: f64, regularization: f64, loss: MarginLoss) -> Result<(), Error> {
    positive("std_dev", std_dev)?;
    positive("regularization", regularization)?;
    match loss {
        MarginLoss::Logistic => Ok(()),
        MarginLoss::HuberSvm { width } | MarginLoss::LogCosh { width } => positive("width", width).map(|_| ()),
        MarginLoss::BoundedSlope { slope, curvature } => {
            positive("slope", slope)?;
            non_negative("curvature", curvature).map(|_| ())
        }
        MarginLoss::Softmax { classes } if classes >= 2 => Ok(()),
        MarginLoss::Softmax { classes } => {
            Err(Error::OutOfRange { name: "classes", value: f64::from(classes), range: "[2, 2^32)" })
        }
    }
}

impl Pair {
    fn checked(std_dev: f64, regularization: f64, loss: MarginLoss) -> Result<Self, Error> {
        check(std_dev, regularization, loss)?;
        Ok(Self::new(std_dev, regularization, loss))
    }

    /// Creates the pair for checked parameters.
    pub(crate) fn new(std_dev: f64, regularization: f64, loss: MarginLoss) -> Self {
        let inverse = std_dev.recip().next_up();
        match loss {
            MarginLoss::Logistic => Self::Monotone(Monotone::logistic(inverse, regularization.recip().next_up())),
            MarginLoss::HuberSvm { width } => {
                Self::Monotone(Monotone::shifted(inverse, log_one_plus(0.5 / (width * regularization))))
            }
            MarginLoss::BoundedSlope { slope, curvature } => {
                Self::Sided(Sided::new(2.0, (slope * inverse).next_up(), log_one_plus(curvature / regularization)))
            }
            MarginLoss::LogCosh { width } => {
                let kappa = (width * regularization).recip() * (1.0 + 2.0 * f64::EPSILON);
                let level = (2.0 * kappa - 0.5 * std_dev.powi(-2)) + 4.0 * f64::EPSILON * (kappa + std_dev.powi(-2));
                let level = if level.is_finite() { level } else { f64::INFINITY };
                Self::Sided(Sided::tied(2.0, inverse, log_one_plus(kappa), level))
            }
            MarginLoss::Softmax { classes } => {
                let others = f64::from(classes.max(2) - 1);
                let mu = (core::f64::consts::SQRT_2.next_up() * inverse).next_up();
                Self::Sided(Sided::new(others.max(2.0), mu, softmax_determinant(classes, regularization)))
            }
        }
    }

    /// Returns an upper bound on delta at `epsilon >= 0` of one release, in either direction.
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        let delta = match self {
            Self::Monotone(pair) => pair.delta(epsilon),
            Self::Sided(pair) => pair.delta(epsilon),
        };
        if delta < 1.0 { delta } else { 1.0 }
    }

    /// Returns an upper bound on the Renyi divergence of order `order >= 1`, in both directions.
    pub(crate) fn rdp(&self, order: f64) -> f64 {
        let order = order.max(LEAST_ORDER);
        let divergence = match self {
            Self::Monotone(pair) => pair.rdp(order),
            Self::Sided(pair) => pair.rdp(order),
        };
        if divergence.is_nan() { f64::INFINITY } else { divergence }
    }

    /// Returns the ratio of sensitivity to noise.
    fn mu(&self) -> f64 {
        match self {
            Self::Monotone(pair) => pair.mu(),
            Self::Sided(pair) => pair.mu(),
        }
    }

    /// Returns `v/2`, the limit of the divergence over the order at large orders, and the amount by which a loss exceeds the
    /// positive part of the Gaussian one.
    fn gaussian_part(&self) -> (f64, f64) {
        match self {
            Self::Monotone(pair) => (pair.half_variance(), pair.largest_excess()),
            Self::Sided(pair) => (pair.half_variance(), pair.largest_excess()),
        }
    }

    /// Returns an upper bound on the divergence divided by the order, over all orders.
    ///
    /// `K(a) = (a - 1) D_a` is convex. On an interval `[b, c]` of orders it lies below its chord, and `a(a - 1)` above its own
    /// chord minus `(c - b)²/4`; so `K/(a(a-1))` is at most the larger of its end values, times `1 + (c-b)²/(4 b(b-1))`. Moreover
    /// `D_a <= a v/2 + excess + ln 2/(a - 1)`, which divided by the order decreases: once it is below the largest value found so
    /// far, no larger order matters.
    pub(crate) fn rho(&self) -> f64 {
        // Makes the chords' slack 1e-3, and a step at most a factor of five.
        const RATIO: f64 = 0.06;
        const LARGEST_RATIO: f64 = 4.0;
        let (limit, excess) = self.gaussian_part();
        let mut order = LEAST_ORDER;
        let mut divergence = self.rdp(order);
        // Below the first order the divergence is no larger, and the order at least 1.
        let mut largest = divergence.max(limit);
        let last = (2e3 * (excess + core::f64::consts::LN_2) / limit).clamp(10.0, 1e12);
        let beyond = |order: f64| limit + (excess + core::f64::consts::LN_2 / (order - 1.0)) / order;
        while order < last && beyond(order) > largest {
            let ratio = (RATIO * (order / (order - 1.0)).sqrt()).min(LARGEST_RATIO);
            let next = 1.0 + (order - 1.0) * (1.0 + ratio);
            let at_next = self.rdp(next);
            let slack = 1.0 + ratio * ratio * (order - 1.0) / (4.0 * order) * (1.0 + 1e-9);
            largest = largest.max((divergence / order).max(at_next / next) * slack);
            (order, divergence) = (next, at_next);
        }
        largest.max(beyond(order) * (1.0 + 8.0 * f64::EPSILON))
    }
}

/// Returns the least epsilon at which `delta_at` is at most `delta`, rounded up; infinite for 0. The search starts from the
/// Gaussian mechanism of ratio `mu`, which costs a little less; slopes are those through the last two points.
fn epsilon_of(delta: f64, mu: f64, delta_at: impl Fn(f64) -> f64) -> f64 {
    if !(delta > 0.0) {
        return f64::INFINITY;
    }
    let log_delta = delta.ln() - 4.0 * f64::EPSILON * (1.0 - delta.ln());
    let at = |epsilon: f64| delta_at(epsilon).ln() - log_delta;
    let least = if mu > 0.0 && mu.is_finite() { epsilon_at(mu, log_delta).min(LARGEST_EPSILON) } else { 0.0 };
    let (mut low, mut high, mut step) = ((0.0, f64::NAN), (least, at(least)), 0.02 * least + 1e-9);
    while high.1 > 0.0 && high.0 < LARGEST_EPSILON {
        low = high;
        let next = high.0 + step;
        (high, step) = ((next, at(next)), 4.0 * step);
    }
    if high.0 == 0.0 {
        return 0.0;
    }
    let (before, first) = (Cell::new(low), curve_point(mu, high.0).by_epsilon);
    least_safe(low.0, high.0, high.0, |epsilon| {
        let value = if epsilon == high.0 { high.1 } else { at(epsilon) };
        let (other, at_other) = before.replace((epsilon, value));
        // The first point may be the only one.
        let slope = if at_other.is_nan() { first } else { (value - at_other) / (epsilon - other) };
        Tangent { value, slope: if slope < 0.0 { slope } else { f64::NAN } }
    })
}

/// Returns the largest logarithm of the determinants' ratio for one record of a softmax: `(C - 1) ln(1 + 1/(C lambda))`.
///
/// Its curvature is `(diag p - p pᵀ) ⊗ x xᵀ`, of rank `C - 1` and trace `1 - |p|² <= 1 - 1/C`; `sum ln(1 + e_i/lambda)` is
/// concave in the eigenvalues, so it is largest if all are `1/C`, at the uniform `p`.
fn softmax_determinant(classes: u32, regularization: f64) -> f64 {
    let classes = f64::from(classes.max(2));
    ((classes - 1.0) * log_one_plus((1.0 / (classes * regularization)).next_up())).next_up()
}

/// Returns `ln(1 + x)`, rounded up.
fn log_one_plus(x: f64) -> f64 {
    x.next_up().ln_1p() * (1.0 + 4.0 * f64::EPSILON)
}

/// Returns `ln E[e^(t y); y > from]` for `y ~ N(mu²/2, mu²)`.
fn log_tilted_tail(mu: f64, t: f64, from: f64) -> f64 {
    0.5 * t * (t + 1.0) * mu * mu + log_upper_tail(from / mu - (0.5 + t) * mu)
}

#[cfg(test)]
mod tests;
