//! The exact privacy curve of the L2 Laplace ball, in any dimension.
//!
//! Noise on R^d with density proportional to `exp(-|z|/b)`, added to a value of L2 sensitivity `D`. With `x = D/b` the loss
//! between neighbours at a distance of the full sensitivity is `L = (|z - D e| - |z|)/b`, between `-x` and `x`. In one dimension
//! this is Laplace noise. In many dimensions the loss concentrates near 0, where it is nearly Gaussian with mean `x²/(2d)` and
//! variance `x²/d`, so that a release costs far less than its pure `x`.
//!
//! **A full sensitivity is the worst shift.** Given the part of `z` orthogonal to the shift, which has the same law for both
//! neighbours, the density along it is log-concave; so each conditional pair has a monotone likelihood ratio, and its
//! hockey-stick divergence grows with the shift. Averaging over the orthogonal part preserves this. The pair dominates, also
//! under composition (Zhu, Dong and Wang 2022, Theorem 10), and it is symmetric.
//!
//! **The law of the loss has a closed form.** Take `u = (|z| + |z - D e|)/D >= 1` and `t = L/x` in `[-1, 1]`: elliptic
//! coordinates with foci at the two centres. The volume element is proportional to `(u² - t²) ((u² - 1)(1 - t²))^((d-3)/2)`, and
//! the density of the noise is proportional to `exp(-x(u - t)/2)`. So `u` and `t` separate, and `t` has density proportional to
//!
//! ```text
//! e^(x t/2) (1 - t²)^((d-3)/2) (m + 1 - t²),    m = E[u² - 1] = 2(d-1)/x K_(v+1)(x/2)/K_v(x/2),    v = d/2 - 1,
//! ```
//!
//! by the integral representation of the modified Bessel functions `K`. With `t = sin h` it is smooth: delta and the
//! tails of the loss are one-dimensional integrals of `e^(x/2 sin h) cos^(d-2) h (m + cos² h)`, and the moments are
//! modified Bessel functions `I` ([`rdp`]).
//!
//! # References
//! The noise: Chaudhuri, Monteleoni and Sarwate 2011; Wu et al. 2017, "Bolt-on differential privacy for scalable
//! stochastic gradient descent-based analytics". The curve is derived here.

mod bessel;
mod law;
mod moments;

use crate::bracket::{Bracket, Engine};
use crate::error::{Error, non_negative, positive};
use crate::laplace;
use crate::params::{Delta, RdpOrder};
use crate::quadrature::{Estimate, integrate};
use crate::root::{Tangent, least_safe};

pub(crate) use law::BallLaw;

/// Ratio of sensitivity to scale beyond which there is no protection, and the one-dimensional curve is used.
const LARGEST_RATIO: f64 = 1e6;

/// The integrand is dropped where its logarithm is this far below its maximum.
const DROPPED: f64 = 60.0;

/// Number of initial panels of the quadrature.
const PANELS: u32 = 10;

/// Target relative error of the quadrature.
const TOLERANCE: f64 = 1e-13;

/// Returns delta at `epsilon` of one release of the L2 Laplace ball in `dim` dimensions, `x` = L2 sensitivity / scale.
///
/// # Formula
/// With `h_0 = asin(epsilon/x)` and `w(h)` the density of the [module's page](self),
/// ```text
/// delta = int_(h_0)^(pi/2) w(h) (1 - e^(epsilon - x sin h)) dh  /  int_(-pi/2)^(pi/2) w(h) dh
/// ```
///
/// # Privacy
/// Holds under any relation under which `x` is computed; both directions of a pair have the same curve. The bracket accounts for
/// the error of the quadrature.
///
/// # Errors
/// `x` not positive, `dim` zero, or `epsilon` negative; any of them NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::laplace_ball;
/// // Pure 1-DP in 100 dimensions has almost no loss above 0.5.
/// let delta = laplace_ball::delta(1.0, 100, 0.5)?;
/// assert!((delta.upper / 9.196782947692696e-10 - 1.0).abs() < 1e-9 && delta.lower <= delta.upper);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn delta(x: f64, dim: u64, epsilon: f64) -> Result<Bracket, Error> {
    let ball = Ball::checked(x, dim)?;
    Ok(ball.delta(non_negative("epsilon", epsilon)?))
}

/// Returns epsilon at `delta` of one release of the L2 Laplace ball in `dim` dimensions, `x` = L2 sensitivity / scale.
///
/// # Errors
/// `x` not positive or `dim` zero; NaN or infinity.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, laplace_ball};
/// let epsilon = laplace_ball::epsilon(1.0, 100, Delta::new(1e-6)?)?;
/// assert!(epsilon.upper < 0.4 && epsilon.upper - epsilon.lower < 1e-9);
/// assert_eq!(laplace_ball::epsilon(1.0, 100, Delta::ZERO)?.upper, 1.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn epsilon(x: f64, dim: u64, delta: Delta) -> Result<Bracket, Error> {
    Ok(Ball::checked(x, dim)?.epsilon(delta.get()))
}

/// Returns the Renyi divergence of one release of the L2 Laplace ball in `dim` dimensions, `x` = L2 sensitivity / scale.
///
/// # Formula
/// With `a` the order, `v = d/2 - 1`, `k = K_(v+1)(x/2)/K_v(x/2)`, and `p(z) = z^-v I_v(z)`,
/// ```text
/// 1/(a-1) ln( G((a - 1/2) x)/G(x/2) ),    G(z) = p(z) ( 2k/x + I_(v+1)(z)/(z I_v(z)) );    x G'(x/2)/G(x/2) at a = 1
/// ```
///
/// # Errors
/// `x` not positive or `dim` zero; NaN or infinity.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, laplace_ball};
/// let divergence = laplace_ball::rdp(RdpOrder::new(8.0)?, 1.0, 100)?;
/// assert!((divergence / 0.03988998694718392 - 1.0).abs() < 1e-11);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn rdp(order: RdpOrder, x: f64, dim: u64) -> Result<f64, Error> {
    Ok(Ball::checked(x, dim)?.rdp(order.get()))
}

/// One release, with the values common to its integrals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ball {
    x: f64,
    dim: u64,
    /// `d - 2`, the power of the cosine.
    power: f64,
    /// Bounds on `1/m`.
    weight: (f64, f64),
    /// Sine and cosine of the density's mode, without the factor `m + cos²`.
    mode: (f64, f64),
}

impl Ball {
    fn checked(x: f64, dim: u64) -> Result<Self, Error> {
        let x = positive("x", x)?;
        if dim == 0 {
            return Err(Error::NotPositive { name: "dim", value: 0.0 });
        }
        Ok(Self::new(x, dim))
    }

    pub(crate) fn new(x: f64, dim: u64) -> Self {
        let power = dim.saturating_sub(2) as f64;
        if dim == 1 || x > LARGEST_RATIO {
            return Self { x, dim, power, weight: (0.0, 0.0), mode: (1.0, 0.0) };
        }
        let (low, high) = bessel::k_ratio(dim, 0.5 * x);
        let of_ratio = |k: f64| x / (2.0 * (power + 1.0) * k);
        // (x/2) cos² = (d - 2) sin at the mode.
        let sine = x / (power + power.hypot(x));
        let cosine = (2.0 * power * (sine / x)).sqrt();
        Self { x, dim, power, weight: (of_ratio(high), of_ratio(low)), mode: (sine, cosine) }
    }

    /// Returns whether the one-dimensional curve is used: exactly in one dimension, as a bound for extreme ratios.
    fn is_line(&self) -> bool {
        self.dim == 1 || self.x > LARGEST_RATIO
    }

    pub(crate) fn rdp(&self, order: f64) -> f64 {
        let line = crate::rdp::laplace::rdp(order, self.x);
        if self.is_line() { line } else { moments::divergence(self, order).min(line) }
    }

    /// Returns the logarithm of the density at an angle `from_mode` beyond the mode, minus that at the mode; without the factor
    /// `1 + cos²/m`. It is computed by differences, so that nothing cancels for large `d` or `x`.
    fn log_density(&self, from_mode: f64) -> f64 {
        let (sine, cosine) = self.mode;
        let (half_sine, half_cosine) = (0.5 * from_mode).sin_cos();
        let exponential = self.x * (cosine * half_cosine - sine * half_sine) * half_sine;
        if self.power == 0.0 {
            return exponential;
        }
        exponential + 0.5 * self.power * (-self.squared_sine_excess(from_mode) / (cosine * cosine)).max(-1.0).ln_1p()
    }

    /// Returns `sin²` at an angle beyond the mode minus `sin²` at the mode.
    fn squared_sine_excess(&self, from_mode: f64) -> f64 {
        let (sine, cosine) = self.mode;
        let (s, c) = from_mode.sin_cos();
        (2.0 * sine * cosine * c + (cosine - sine) * (cosine + sine) * s) * s
    }

    /// Returns the density relative to that at the mode, with `1/m` = `weight`.
    fn density(&self, from_mode: f64, weight: f64) -> f64 {
        let square = (self.mode.1 * self.mode.1 - self.squared_sine_excess(from_mode)).max(0.0);
        self.log_density(from_mode).exp() * (1.0 + weight * square)
    }

    /// Returns sine and cosine of the angle at which the loss is `epsilon`.
    fn sine_cosine(&self, epsilon: f64) -> (f64, f64) {
        (epsilon / self.x, ((self.x - epsilon) * (self.x + epsilon)).max(0.0).sqrt() / self.x)
    }

    /// Returns sine and cosine of the angle at which the loss is `epsilon`, and the difference of that angle to the mode.
    fn angle(&self, epsilon: f64) -> (f64, f64, f64) {
        let (sine, cosine) = self.sine_cosine(epsilon);
        let (mode_sine, mode_cosine) = self.mode;
        let angle = (sine * mode_cosine - cosine * mode_sine).atan2(cosine * mode_cosine + sine * mode_sine);
        (sine, cosine, angle)
    }

    /// Returns the distance from the mode to `pi/2`.
    fn end(&self) -> f64 {
        self.mode.1.atan2(self.mode.0)
    }

    /// Returns the point between `from` and `to` at which the logarithm of the density has fallen by `drop`; `to` if there is
    /// none.
    ///
    /// The logarithm is monotone on either side of the mode.
    fn cut(&self, from: f64, to: f64, drop: f64) -> f64 {
        let level = self.log_density(from) - drop;
        if self.log_density(to) >= level {
            return to;
        }
        let (mut inside, mut outside) = (from, to);
        for _ in 0..50 {
            let middle = 0.5 * (inside + outside);
            if self.log_density(middle) >= level {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        outside
    }

    /// Returns the integral of the density times `factor`, which is at most 2, over angles from `from >= -mode` on.
    fn integral(&self, from: f64, weight: f64, factor: impl Fn(f64) -> f64) -> Estimate {
        let end = self.end();
        let peak = from.max(0.0);
        let (low, high) = (self.cut(peak, from, DROPPED), self.cut(peak, end, DROPPED));
        let inside = integrate(low, high, PANELS, TOLERANCE, |h| self.density(h, weight) * factor(h));
        // Beyond either cut a concave logarithm falls at least as steeply as it did on average before the cut.
        let tail = |cut: f64, end: f64| {
            if cut == end { 0.0 } else { (cut - peak).abs() / DROPPED * (-DROPPED).exp() }
        };
        let dropped = (tail(low, from) + tail(high, end)) * self.log_density(peak).exp() * 2.0 * (1.0 + weight);
        let rounding = self.rounding(high - low) * inside.value;
        Estimate { error: inside.error + dropped + rounding, ..inside }
    }

    /// Returns the relative rounding error of the density, from the terms of its logarithm, which nearly cancel to first order.
    fn rounding(&self, width: f64) -> f64 {
        8.0 * f64::EPSILON * (16.0 + DROPPED + self.x * width)
    }

    /// Returns the integral over all angles, with both signs.
    fn total(&self, weight: f64) -> Estimate {
        let (_, _, zero) = self.angle(0.0);
        self.integral(zero, weight, |h| 1.0 + (-self.x * (h - zero).sin()).exp())
    }

    /// Returns delta without the rounding of the normaliser, for one of the two bounds on `1/m`.
    fn delta_with(&self, epsilon: f64, weight: f64) -> (Estimate, Estimate) {
        let (sine, cosine, start) = self.angle(epsilon);
        let numerator = self.integral(start, weight, |h| {
            let (half_sine, half_cosine) = (0.5 * (h - start)).sin_cos();
            -(-2.0 * self.x * (cosine * half_cosine - sine * half_sine).max(0.0) * half_sine).exp_m1()
        });
        // Near the end of the support the rounding of angles and of squared sines is large relative to the cosine.
        let excess = ((sine - self.mode.0) * (sine + self.mode.0)).max(0.0);
        let steepness = self.power * excess / (cosine * cosine) + 6.0 * start.abs() / cosine;
        let rounding = 16.0 * f64::EPSILON * steepness * numerator.value;
        (Estimate { error: numerator.error + rounding, ..numerator }, self.total(weight))
    }

    /// Returns bounds on delta, which decreases as `1/m` grows: small losses gain weight, by a monotone likelihood ratio.
    pub(crate) fn delta(&self, epsilon: f64) -> Bracket {
        let line = laplace::delta(self.x, epsilon);
        if self.is_line() || epsilon >= self.x {
            let lower = if self.dim == 1 { line * (1.0 - 16.0 * f64::EPSILON) } else { 0.0 };
            return Bracket { lower, upper: line, engine: Engine::ClosedForm };
        }
        let (upper_numerator, upper_total) = self.delta_with(epsilon, self.weight.0);
        let (lower_numerator, lower_total) = if self.weight.0 == self.weight.1 {
            (upper_numerator, upper_total)
        } else {
            self.delta_with(epsilon, self.weight.1)
        };
        let upper = (upper_numerator.upper() / upper_total.lower()).next_up();
        let lower = (lower_numerator.lower() / lower_total.upper()).next_down().max(0.0);
        // `min` would drop a NaN, but no accepted argument gives one.
        Bracket { lower: lower.min(line), upper: upper.min(line), engine: Engine::ClosedForm }
    }

    pub(crate) fn epsilon(&self, delta: f64) -> Bracket {
        let line = laplace::epsilon(self.x, delta);
        if self.is_line() || !(delta > 0.0) {
            let lower = if self.dim == 1 { line * (1.0 - 16.0 * f64::EPSILON) } else { 0.0 };
            return Bracket { lower, upper: line, engine: Engine::ClosedForm };
        }
        // Rounded down, so that delta at the result is below the requested one.
        let log_delta = delta.ln() - 4.0 * f64::EPSILON * (1.0 - delta.ln());
        // The slope of ln delta is -e^epsilon Q(L > epsilon)/delta; a secant of the curve itself is close enough.
        let search = |side: fn(&Bracket) -> f64| {
            least_safe(0.0, 0.5 * line, line, |epsilon| {
                let step = 1e-6 * self.x;
                let value = side(&self.delta(epsilon)).ln() - log_delta;
                let beyond = side(&self.delta(epsilon + step)).ln() - log_delta;
                Tangent { value, slope: (beyond - value) / step }
            })
        };
        if self.delta(0.0).upper <= delta {
            return Bracket { lower: 0.0, upper: 0.0, engine: Engine::ClosedForm };
        }
        let upper = search(|bracket| bracket.upper).min(line);
        let vanishes = self.delta(0.0).lower <= delta;
        let lower = if vanishes { 0.0 } else { search(|bracket| bracket.lower) * (1.0 - 1e-11) };
        Bracket { lower: lower.min(upper), upper, engine: Engine::ClosedForm }
    }
}

#[cfg(test)]
mod tests;
