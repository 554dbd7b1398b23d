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

mod curve;
mod law;
mod moments;
#[cfg(test)]
mod tests;

use crate::error::{Error, non_negative};
use crate::event::DpEvent;
use crate::exact::PrivacyCurve;
use crate::logspace::log_mixed;
use crate::params::{Delta, RdpOrder};
use crate::rdp::RdpCurve;
use crate::rounding::mul_up;

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

/// The two laws `A = q N(up, 1) + (1-q) N(0, 1)` and `B = q N(-down, 1) + (1-q) N(0, 1)`, in standard deviations of the
/// noise, whose curve at `u >= 1` is [`F`](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// q, strictly between 0 and 1.
    rate: f64,
    /// `r mu`.
    up: f64,
    /// `(1-r) mu`, at most `up`.
    down: f64,
}

/// Both laws at one point.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// `ln dA/dB`.
    loss: f64,
    /// The derivative of the loss.
    slope: f64,
    /// `ln dA/dN(0, 1)`.
    log_above: f64,
    /// Bound on the rounding error of the loss.
    error: f64,
}

/// One law's ratio to `N(0, 1)`.
struct Ratio {
    log: f64,
    /// The posterior probability that the record took part.
    sampled: f64,
    error: f64,
}

/// Number of standard deviations from its mean beyond which a normal law has no mass above 1e-300.
const REACH: f64 = 40.0;

/// Exponents beyond this are factored out of the logarithm.
const LARGE: f64 = 600.0;

/// Maximum number of steps of the search for a loss; each halves the bracket or is a Newton step.
const MAX_STEPS: u32 = 300;

impl Pair {
    /// Returns the sampling rate.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Creates the pair for `0 < rate < 1`, `mu` = distance / standard deviation, `radius` in units of the distance. The
    /// covariances of the proof, `mu²`, `up mu` and `up²`, are rounded up.
    pub(crate) fn new(rate: f64, mu: f64, radius: f64) -> Self {
        let up = mul_up(radius, mu);
        let down = mu - up;
        Self { rate, up, down: if down > 0.0 && down + up < mu { down.next_up() } else { down.max(0.0) } }
    }

    /// Returns whether B is the mirror image of A.
    fn is_symmetric(&self) -> bool {
        self.up == self.down
    }

    /// Returns the sampling rate and the mean of the sampled part, in standard deviations, if B is the mirror image of A.
    pub(crate) fn symmetric(&self) -> Option<(f64, f64)> {
        self.is_symmetric().then_some((self.rate, self.up))
    }

    fn mu(&self) -> f64 {
        self.up + self.down
    }

    /// Returns the ratio at `x` of the law whose sampled part has mean `shift`.
    fn ratio(&self, shift: f64, x: f64) -> Ratio {
        let Self { rate, .. } = *self;
        let y = shift * (x - 0.5 * shift);
        // The rounding of y; the difference is exact if it is small.
        let own = f64::EPSILON * shift.abs() * (x - 0.5 * shift).abs();
        if y > LARGE {
            let sampled = (1.0 + (1.0 - rate) * (-y - rate.ln()).exp()).recip();
            let log = log_mixed(rate, y);
            return Ratio { log, sampled, error: 2.0 * (sampled * own + f64::EPSILON * (log.abs() - rate.ln())) };
        }
        let excess = rate * y.exp_m1();
        if excess < -0.5 {
            // Sums of positive terms.
            let part = rate * y.exp();
            let whole = (1.0 - rate) + part;
            let sampled = part / whole;
            let log = whole.ln();
            return Ratio { log, sampled, error: 2.0 * (sampled * own + f64::EPSILON * (4.0 + log.abs())) };
        }
        let sampled = rate * y.exp() / (1.0 + excess);
        let log = excess.ln_1p();
        // The product has an error of a few units, the logarithm a relative one.
        let of_excess = 3.0 * f64::EPSILON * excess.abs() / (1.0 + excess);
        Ratio { log, sampled, error: 2.0 * (sampled * own + of_excess + f64::EPSILON * log.abs()) }
    }

    fn at(&self, x: f64) -> Point {
        let (above, below) = (self.ratio(self.up, x), self.ratio(-self.down, x));
        let loss = above.log - below.log;
        Point {
            loss,
            slope: self.up * above.sampled + self.down * below.sampled,
            log_above: above.log,
            error: above.error + below.error + f64::EPSILON * loss.abs(),
        }
    }

    /// Returns the ends beyond which both laws have no mass.
    fn reach(&self) -> (f64, f64) {
        (-REACH - self.down, REACH + self.up)
    }

    /// Returns the `x` at which the loss, which grows with x, is about `loss`, or the end of the [`reach`](Self::reach) on that
    /// side.
    ///
    /// At `r = 1/2` it has a closed form: with `m = up`,
    ///
    /// ```text
    /// m x = loss/2 + arsinh( (1-q)/q e^(m²/2) sinh(loss/2) ).
    /// ```
    fn place(&self, loss: f64) -> f64 {
        let Self { rate, up, .. } = *self;
        let (mut low, mut high) = self.reach();
        if self.is_symmetric() {
            let half = 0.5 * loss;
            let log = ((1.0 - rate) / rate).ln() + 0.5 * up * up + log_sinh(half.abs());
            let arsinh = if log > 40.0 { log + core::f64::consts::LN_2 } else { log.exp().asinh() };
            return ((half + arsinh.copysign(half)) / up).clamp(low, high);
        }
        // The place if B were N(0, 1), which is farther out.
        let own = (loss.exp_m1() / rate).ln_1p();
        let guess = if loss > 40.0 { (loss - rate.ln()) / up + 0.5 * up } else { own / up + 0.5 * up };
        let mut x = guess;
        if !(guess > low && guess < high) {
            if self.at(low).loss >= loss {
                return low;
            }
            if self.at(high).loss <= loss {
                return high;
            }
            x = 0.5 * (low + high);
        }
        for _ in 0..MAX_STEPS {
            let Point { loss: value, slope, .. } = self.at(x);
            if value <= loss {
                low = x;
            } else {
                high = x;
            }
            let newton = x - (value - loss) / slope;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if !((next - x).abs() > 2.0 * f64::EPSILON * x.abs().max(f64::EPSILON)) {
                break;
            }
            x = next;
        }
        x
    }

    /// Returns a bound on the difference between `loss` and the loss at the [`place`](Self::place) for it.
    fn place_error(&self, loss: f64) -> f64 {
        let x = self.place(loss);
        let (low, high) = self.reach();
        let point = self.at(x);
        // Beyond the reach all tails are as at its end.
        if x <= low || x >= high { 0.0 } else { (point.loss - loss).abs() + point.error }
    }
}

/// Returns `ln sinh x` for `x >= 0`.
fn log_sinh(x: f64) -> f64 {
    if x > LARGE { x - core::f64::consts::LN_2 } else { x.sinh().ln() }
}
