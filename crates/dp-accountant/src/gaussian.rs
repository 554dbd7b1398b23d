//! The exact privacy curve of the Gaussian mechanism, its inverse, and the least noise that meets a target.
//!
//! All functions depend on one number, `mu` = L2 sensitivity / noise standard deviation (the parameter of Gaussian DP). Several
//! Gaussian releases of the same data are exactly equivalent to one with the [`compose_mu`] of their `mu`.
//!
//! Results are rounded towards claiming less privacy: `delta` and `epsilon` are never below the true value, and a noise
//! multiplier is re-evaluated until it meets its target.

use crate::error::{Error, non_negative, positive};
use crate::normal::{LN_SQRT_2_PI, density, mills_ratio, upper_tail};
use crate::params::{Delta, Epsilon, NoiseMultiplier};
use crate::root::{Tangent, least_safe};

/// Below this `mu` the difference of two Mills ratios is summed as a series instead of subtracted.
const SERIES_BELOW: f64 = 0.05;

/// The curve at one point: the logarithm of delta (rounded up) and its two partial derivatives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CurvePoint {
    pub(crate) log_delta: f64,
    /// The logarithm of delta rounded down.
    pub(crate) log_delta_down: f64,
    pub(crate) by_epsilon: f64,
    by_mu: f64,
}

/// Returns the natural logarithm of the least delta for which the Gaussian mechanism is `(epsilon, delta)`-DP.
///
/// # Formula
/// ```text
/// delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)
///       = phi(x) (R(x) - R(x + mu)),   x = epsilon/mu - mu/2,
/// ```
/// with `phi` the normal density and `R` the Mills ratio, because `e^epsilon phi(x + mu) = phi(x)`. To avoid cancellation, the
/// difference is computed by a series of positive terms for small `mu`, and `1 - delta` is computed if `x < 0`. Accurate to about
/// 1e-12 (absolute, in the logarithm) or 1e-15 relative, whichever is larger, and rounded up.
///
/// # Privacy
/// Holds under any neighbouring relation under which the sensitivity holds, for real arithmetic in the mechanism.
///
/// # Errors
/// `mu` or `epsilon` negative, NaN or infinite.
///
/// # Examples
/// ```
/// let log_delta = dp_accountant::gaussian::log_delta(1.0, 200.0)?;
/// assert!((log_delta + 19911.640642010814).abs() < 1e-9);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy", Theorem 8, arXiv:1805.06530.
pub fn log_delta(mu: f64, epsilon: f64) -> Result<f64, Error> {
    let (mu, epsilon) = (non_negative("mu", mu)?, non_negative("epsilon", epsilon)?);
    if mu == 0.0 {
        return Ok(f64::NEG_INFINITY);
    }
    Ok(curve_point(mu, epsilon).log_delta)
}

/// Returns the least delta for which the Gaussian mechanism is `(epsilon, delta)`-DP, rounded up; see [`log_delta`].
///
/// # Errors
/// `mu` or `epsilon` negative, NaN or infinite.
///
/// # Examples
/// ```
/// let delta = dp_accountant::gaussian::delta(1.0, 1.0)?;
/// assert!((delta - 0.12693673750664394).abs() < 1e-14);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn delta(mu: f64, epsilon: f64) -> Result<f64, Error> {
    log_delta(mu, epsilon).map(exp_up)
}

/// Returns the least epsilon for which the Gaussian mechanism is `(epsilon, delta)`-DP, rounded up.
///
/// Zero if `delta` is at least the total variation distance, infinite if `delta` is 0 (and `mu` is not). Uses Newton's method on
/// the logarithm of delta, which is concave in epsilon, so that every step stays on the safe side.
///
/// # Errors
/// `mu` negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, gaussian};
/// let epsilon = gaussian::epsilon(1.0, Delta::new(1e-6)?)?;
/// assert!((epsilon - 4.886554117462212).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Balle and Wang 2018, Theorem 8, arXiv:1805.06530.
pub fn epsilon(mu: f64, delta: Delta) -> Result<f64, Error> {
    let mu = non_negative("mu", mu)?;
    if mu == 0.0 {
        return Ok(0.0);
    }
    if delta.get() == 0.0 {
        return Ok(f64::INFINITY);
    }
    Ok(epsilon_at(mu, safe_log(delta)))
}

/// Returns the least epsilon at which the logarithm of delta is at most `target`, for `mu > 0`; rounded up.
pub(crate) fn epsilon_at(mu: f64, target: f64) -> f64 {
    if curve_point(mu, 0.0).log_delta <= target {
        return 0.0;
    }
    // zCDP's simple conversion is an upper bound: Bun and Steinke 2016, Proposition 1.3.
    let safe = 0.5 * mu * mu + mu * (-2.0 * target).sqrt();
    if !safe.is_finite() {
        return f64::INFINITY;
    }
    least_safe(0.0, safe, safe, |epsilon| {
        let point = curve_point(mu, epsilon);
        Tangent { value: point.log_delta - target, slope: point.by_epsilon }
    })
}

/// Returns the least noise multiplier (standard deviation / sensitivity) with which the Gaussian mechanism is `(epsilon,
/// delta)`-DP.
///
/// The result meets the target as [`delta`] evaluates it, and is within 1e-12 of the least that does.
///
/// # Errors
/// [`Error::Unreachable`] for `delta` = 0: no Gaussian noise gives pure differential privacy.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, gaussian};
/// let multiplier = gaussian::noise_multiplier(Epsilon::new(1.0)?, Delta::new(1e-5)?)?.get();
/// assert!((multiplier - 3.730631634815942).abs() < 1e-10);
/// assert!(gaussian::delta(1.0 / multiplier, 1.0)? <= 1e-5);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Balle and Wang 2018, Algorithm 1, arXiv:1805.06530.
pub fn noise_multiplier(epsilon: Epsilon, delta: Delta) -> Result<NoiseMultiplier, Error> {
    let unreachable = |why| Error::Unreachable { what: "Gaussian noise multiplier", why };
    if delta.get() == 0.0 {
        return Err(unreachable("Gaussian noise never gives delta = 0"));
    }
    let (epsilon, target) = (epsilon.get(), safe_log(delta));
    // The multiplier at which zCDP's simple conversion gives epsilon suffices; it solves 1/(2 s^2) + sqrt(2 ln(1/delta))/s =
    // epsilon.
    let root = (-2.0 * target).sqrt();
    let safe = (root + (2.0 * epsilon - 2.0 * target).sqrt()) / (2.0 * epsilon);
    let multiplier = least_safe(0.0, safe, safe, |multiplier| {
        let mu = multiplier.recip();
        let point = curve_point(mu, epsilon);
        Tangent { value: point.log_delta - target, slope: -mu * mu * point.by_mu }
    });
    NoiseMultiplier::new(multiplier).map_err(|_| unreachable("the target lies outside the range of floating point"))
}

/// Returns the classical noise multiplier `sqrt(2 ln(1.25/delta)) / epsilon`, for `epsilon < 1` only; for comparison with papers
/// that use it. [`noise_multiplier`] is always smaller.
///
/// # Errors
/// `epsilon >= 1`, for which the theorem does not hold, and `delta` = 0.
///
/// # References
/// Dwork and Roth 2014, "The algorithmic foundations of differential privacy", Theorem A.1.
pub fn classical_noise_multiplier(epsilon: Epsilon, delta: Delta) -> Result<NoiseMultiplier, Error> {
    if !(epsilon.get() < 1.0) {
        return Err(Error::OutOfRange { name: "epsilon", value: epsilon.get(), range: "(0, 1)" });
    }
    NoiseMultiplier::new((2.0 * (1.25 / positive("delta", delta.get())?).ln()).sqrt() / epsilon.get())
}

/// Returns the `mu` of the composition of Gaussian releases: the root of the sum of squares.
///
/// # Errors
/// A `mu` that is negative, NaN or infinite.
///
/// # References
/// Dong, Roth and Su 2022, "Gaussian differential privacy", Corollary 3.3, arXiv:1905.02383.
pub fn compose_mu(mus: &[f64]) -> Result<f64, Error> {
    mus.iter().try_fold(0.0, |total: f64, &mu| Ok(total.hypot(non_negative("mu", mu)?)))
}

/// Returns `e^x` rounded up and capped at 1; a finite logarithm never gives 0.
pub(crate) fn exp_up(log: f64) -> f64 {
    if log == f64::NEG_INFINITY {
        return 0.0;
    }
    (log.exp() * (1.0 + 2.0 * f64::EPSILON)).next_up().min(1.0)
}

/// Returns a logarithm slightly below that of `delta`, so that [`exp_up`] of it does not exceed `delta`.
pub(crate) fn safe_log(delta: Delta) -> f64 {
    let log = delta.get().ln();
    log - f64::EPSILON * (4.0 + log.abs())
}

/// Computes the curve at `mu > 0`, `epsilon >= 0`, both finite.
///
/// The margin by which `log_delta` is rounded up covers the error of `x` (one unit of `epsilon/mu`), multiplied by the
/// derivatives of `x^2/2` and of the Mills ratios; and the error of each Mills ratio, amplified by their subtraction.
pub(crate) fn curve_point(mu: f64, epsilon: f64) -> CurvePoint {
    let half = 0.5 * mu;
    let centre = epsilon / mu;
    let (near, far) = (centre - half, centre + half);
    let far_ratio = mills_ratio(far);
    // `difference` is R(near) - R(far); `loss` is the factor by which the subtraction amplified rounding errors.
    let (log_delta, difference, loss) = if mu < SERIES_BELOW {
        let difference = mills_difference(centre, half);
        (log_density(near) + difference.ln(), difference, 1.0)
    } else if near >= 0.0 {
        let near_ratio = mills_ratio(near);
        let difference = near_ratio - far_ratio;
        (log_density(near) + difference.ln(), difference, near_ratio / difference)
    } else {
        let shortfall = upper_tail(-near) + density(near) * far_ratio;
        let delta = 1.0 - shortfall;
        ((-shortfall).ln_1p(), delta / density(near), shortfall / delta)
    };
    let margin = f64::EPSILON * (8.0 + 4.0 * (near.abs() + 1.0) * far + 8.0 * loss + 2.0 * log_delta.abs());
    let down = log_delta - margin;
    let log_delta_down = if down.is_nan() { f64::NEG_INFINITY } else { down.min(0.0) };
    let log_delta = log_delta + margin;
    // If x^2 overflows, delta is zero for all purposes; but the result must be neither zero nor NaN.
    let log_delta = if log_delta.is_nan() { f64::MIN } else { log_delta.clamp(f64::MIN, 0.0) };
    CurvePoint { log_delta, log_delta_down, by_epsilon: -far_ratio / difference, by_mu: difference.recip() }
}

fn log_density(x: f64) -> f64 {
    -0.5 * x * x - LN_SQRT_2_PI
}

/// Returns `R(centre - half) - R(centre + half)` for `centre >= 0` and small `half`, without cancellation.
///
/// With `M_n = integral t^n exp(-centre t - t^2/2) dt` over `t > 0`, which is `(-1)^n` times the n-th derivative of `R`, the
/// difference is `2 sum h^n M_n / n!` over odd n. The moments satisfy `M_(n+1) = n M_(n-1) - centre M_n`, used forwards for small
/// `centre` and as the continued fraction `M_n / M_(n-1) = n / (centre + M_(n+1) / M_n)` otherwise, whose error falls like
/// `exp(-2 centre sqrt(terms))` once `terms` exceeds `centre`; the number of terms makes it at most `e^-40`. Four terms of the
/// sum leave `h^8 M_9 / (9! M_1) < 1e-15` at `half = 0.025`.
fn mills_difference(centre: f64, half: f64) -> f64 {
    let zeroth = mills_ratio(centre);
    let mut moments = [zeroth; 8];
    if centre < 2.0 {
        moments[1] = 1.0 - centre * zeroth;
        for n in 1..7 {
            moments[n + 1] = n as f64 * moments[n - 1] - centre * moments[n];
        }
    } else {
        let terms = 24 + (400.0 / (centre * centre)) as usize;
        let mut ratio = 0.5 * ((centre * centre + 4.0 * terms as f64).sqrt() - centre);
        let mut ratios = [0.0; 8];
        for n in (1..terms).rev() {
            ratio = n as f64 / (centre + ratio);
            if n < 8 {
                ratios[n] = ratio;
            }
        }
        for n in 1..8 {
            moments[n] = moments[n - 1] * ratios[n];
        }
    }
    let square = half * half;
    let series = moments[1] + square / 6.0 * (moments[3] + square / 20.0 * (moments[5] + square / 42.0 * moments[7]));
    2.0 * half * series
}

#[cfg(test)]
mod tests;
