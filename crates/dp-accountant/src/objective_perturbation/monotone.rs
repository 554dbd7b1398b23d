//! A slope of one sign: the logistic loss and Huber's.
//!
//! With `a = (1 + w)/2`, `p = a(1 - a)`, `kappa = 1/lambda` and `q = 1 + kappa p`, the logistic maximiser `a` belongs to
//!
//! ```text
//! y(w) = w (kappa/q - v/2),    M - y = ln q - p v/2 - (1 - w) y/2,
//! ```
//!
//! for `w` from `w_0` (where `y = 0`) to 1 (where `y = kappa - v/2`, from which `M = y`); so integrals over `y` are smooth
//! integrals over `w`, without solving for the maximum. `w_0 = 0` unless the largest `ln q - p v/2` is at `p = 2/v - lambda`
//! below 1/4: then the maximiser jumps at `y = 0`, from `-w_0` to `w_0`. From `w_0` on the function of `a` is concave:
//! its second derivative `v + (ln q)''` grows towards the middle, and is not positive at `w_0`.
//!
//! All quantities are sums of the Gaussian mechanism's and of an excess, so that nothing cancels.

use super::beside::{CONSTANT, Tail, tail_error};
use super::{log_tilted_tail, log_upper_tail};
use crate::gaussian::{curve_point, exp_up};
use crate::normal::{density, upper_tail};
use crate::quadrature::{Estimate, integrate};

/// Number of standard deviations beyond which the normal density underflows.
const REACH: f64 = 39.0;

/// Target relative error of the quadrature.
const TOLERANCE: f64 = 1e-12;

/// Bound on the mass beyond the reach: `2 P(Z > 39)` for a factor of at most 1.
const TRUNCATED: f64 = 1e-300;

/// Largest width of a panel in standard deviations.
const PANEL: f64 = 4.0;
/// Maximum number of panels.
const MAX_PANELS: f64 = 3000.0;

/// Largest exponent that does not overflow, with room for a sum.
const LARGEST_EXPONENT: f64 = 600.0;

/// Factor that covers the rounding of a few dozen operations.
const ROUND_UP: f64 = 1.0 + 64.0 * f64::EPSILON;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Monotone {
    mu: f64,
    excess: Excess,
    /// `y*`, rounded down.
    start: f64,
    /// Upper bound on the mass that `Q` lacks because of this.
    surplus: f64,
}

/// The amount by which the loss exceeds the Gaussian mechanism's, where that is positive.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Excess {
    /// Zero: the Gaussian mechanism.
    Nothing,
    /// The logistic loss, with `kappa` and `w_0`.
    Logistic { kappa: f64, first: f64 },
    /// A constant.
    Shift(f64),
}

impl Monotone {
    pub(super) fn logistic(mu: f64, kappa: f64) -> Self {
        let variance = mu * mu;
        if !(kappa > 0.5 * variance) {
            return Self { mu, excess: Excess::Nothing, start: 0.0, surplus: 0.0 };
        }
        let jump = 2.0 / variance - kappa.recip();
        let first = if jump < 0.25 { (1.0 - 4.0 * jump).sqrt() } else { 0.0 };
        Self { mu, excess: Excess::Logistic { kappa, first }, start: 0.0, surplus: 1.0 }.with_start()
    }

    pub(super) fn shifted(mu: f64, shift: f64) -> Self {
        let excess = if shift > 0.0 { Excess::Shift(shift) } else { Excess::Nothing };
        Self { mu, excess, start: 0.0, surplus: 1.0 }.with_start()
    }

    /// Finds `y*`: the gain of the losses above it, `E[e^-y - e^-M; y > y*]`, equals the reduction of those below it, which are
    /// set to 0, `E[1 - e^-y; 0 < y <= y*]`.
    ///
    /// Any smaller `y*` gives `Q` a mass below 1, which only raises the curve.
    fn with_start(self) -> Self {
        if self.excess == Excess::Nothing {
            return Self { surplus: 0.0, ..self };
        }
        let both = |start: f64| {
            let gained = self.above(start, 0.0, |y, excess| -(-excess).exp_m1() * (-y).exp());
            (gained, self.below(start, |y| -(-y).exp_m1()))
        };
        let balance = |start: f64| {
            let (gained, lost) = both(start);
            gained.lower() - lost.upper()
        };
        // Newton's method: at y* the balance has the slope -(1 - e^-M) times the density.
        let (mut low, mut high) = (0.0, self.end().min(0.5 * self.mu * self.mu + REACH * self.mu));
        let mut start = 0.0;
        for _ in 0..90 {
            let value = balance(start);
            if value >= 0.0 {
                low = start;
            } else {
                high = start;
            }
            let slope = self.weight(start, 0.0) * (-start - self.excess_at(start)).exp_m1();
            let next = (start - value / slope) * (1.0 - 1e-14);
            if high - low <= 1e-13 * high || value >= 0.0 && (next - start).abs() <= 1e-13 * start {
                break;
            }
            start = if next > low && next < high { next } else { 0.5 * (low + high) };
        }
        let (gained, lost) = both(low);
        Self { start: low, surplus: (gained.upper() - lost.lower()).clamp(0.0, 1.0), ..self }
    }

    pub(super) fn half_variance(&self) -> f64 {
        0.5 * self.mu * self.mu
    }

    pub(super) fn mu(&self) -> f64 {
        self.mu
    }

    /// Returns `y*`.
    pub(super) fn start(&self) -> f64 {
        self.start
    }

    /// Returns the excess if it is constant.
    pub(super) fn shift(&self) -> Option<f64> {
        if let Excess::Shift(shift) = self.excess { Some(shift) } else { None }
    }

    /// Returns an upper bound on the largest term of the excess, other than two terms below 1 and one below `y`.
    fn excess_terms(&self) -> f64 {
        match self.excess {
            Excess::Nothing => 0.0,
            Excess::Shift(shift) => shift,
            Excess::Logistic { kappa, .. } => (0.25 * kappa).ln_1p() + 0.25 * self.half_variance(),
        }
    }

    /// Returns a bound on how far the loss of the mass without loss may be below 0, which is less than `ln(1 + m/p)`.
    pub(super) fn relative_surplus(&self) -> f64 {
        if self.surplus == 0.0 { 0.0 } else { self.surplus / self.least_mass_without_loss() }
    }

    /// Returns the parameter `w` at `y`, between 0 and the end of the excess; for the logistic loss only.
    pub(super) fn parameter(&self, y: f64) -> Option<f64> {
        let Excess::Logistic { kappa, first } = self.excess else { return None };
        Some(self.solve(kappa, first, y, |y, _| y))
    }

    /// Returns the parameter at a loss, between two parameters, for the logistic loss, by bracketed Newton's method.
    pub(super) fn parameter_of_loss(&self, loss: f64, mut low: f64, mut high: f64) -> f64 {
        let Excess::Logistic { kappa, .. } = self.excess else { return low };
        let mut w = 0.5 * (low + high);
        for _ in 0..70 {
            let (y, excess, slope) = self.point(kappa, w);
            let beyond = y + excess - loss;
            if beyond <= 0.0 {
                low = w;
            } else {
                high = w;
            }
            if beyond.abs() <= 2.0 * f64::EPSILON * loss {
                break;
            }
            let newton = w - beyond / (0.5 * (1.0 + w) * slope);
            w = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        }
        w
    }

    /// Returns the loss and `y` at the parameter `w`.
    pub(super) fn loss_at(&self, w: f64) -> (f64, f64) {
        let Excess::Logistic { kappa, .. } = self.excess else { return (0.0, 0.0) };
        let (y, excess, _) = self.point(kappa, w);
        (y + excess, y)
    }

    /// Returns the `y` at which the loss is `loss`, at least [`touches`](Self::touches).
    fn at_loss(&self, loss: f64) -> f64 {
        match self.excess {
            Excess::Logistic { first, .. } if loss < self.end() => {
                self.loss_at(self.parameter_of_loss(loss, first, 1.0)).1.max(self.start)
            }
            Excess::Shift(shift) => (loss - shift).max(self.start),
            _ => loss,
        }
    }

    /// Returns the tail of the losses.
    pub(super) fn tail(&self) -> Tail<'_> {
        let (mu, half, touches) = (self.mu, 0.5 * self.mu, self.touches());
        let mut ends = vec![(-CONSTANT * mu, false), (0.0, true), (touches, false)];
        ends.extend((self.end() > touches && self.end().is_finite()).then_some((self.end(), true)));
        let above = move |loss: f64| {
            let y = match loss {
                ..0.0 => loss,
                _ if loss < touches => self.start,
                _ => self.at_loss(loss),
            };
            let x = y / mu - half;
            upper_tail(x) * (1.0 + tail_error(x, y.abs() / mu + half))
        };
        let reach = mu * (REACH + half) + self.largest_excess();
        Tail { ends, above: Box::new(above), mu, reach, loss_error: self.loss_error(reach) }
    }

    /// Returns a bound on the error of a loss up to `loss`: the rounding of `y`, of the excess's three terms, the last two of which
    /// are below 1, and of the parameter `w`, by which the logistic loss has a derivative of about a quarter of its square.
    pub(super) fn loss_error(&self, loss: f64) -> f64 {
        let of_parameter = if let Excess::Logistic { .. } = self.excess { loss * loss } else { 0.0 };
        f64::EPSILON * (32.0 * (loss.abs() + 2.0 * self.half_variance() + self.excess_terms()) + of_parameter)
    }

    /// Returns the density of `Q` with respect to the parameter `w`.
    pub(super) fn q_density(&self, w: f64) -> f64 {
        let Excess::Logistic { kappa, .. } = self.excess else { return 0.0 };
        let (y, excess, slope) = self.point(kappa, w);
        self.weight(y, -1.0) * slope * (-excess).exp()
    }

    /// Returns the largest `M - max(0, y)`, which is at `y = 0`.
    pub(super) fn largest_excess(&self) -> f64 {
        match self.excess {
            Excess::Nothing => 0.0,
            Excess::Shift(shift) => shift,
            Excess::Logistic { kappa, first } => self.point(kappa, first).1 * ROUND_UP,
        }
    }

    /// Returns the `y` from which on the loss is the Gaussian mechanism's.
    pub(super) fn end(&self) -> f64 {
        match self.excess {
            Excess::Nothing => 0.0,
            Excess::Shift(_) => f64::INFINITY,
            Excess::Logistic { kappa, .. } => kappa - 0.5 * self.mu * self.mu,
        }
    }

    /// Returns `y`, `M - y` and `dy/dw` at `w`.
    fn point(&self, kappa: f64, w: f64) -> (f64, f64, f64) {
        let half_variance = 0.5 * self.mu * self.mu;
        let p = 0.25 * (1.0 - w) * (1.0 + w);
        let q = 1.0 + kappa * p;
        let factor = kappa / q - half_variance;
        let y = w * factor;
        let excess = (kappa * p).ln_1p() - p * half_variance - 0.5 * (1.0 - w) * y;
        let slope = factor + 0.5 * (kappa * w / q).powi(2);
        (y, excess.max(0.0), slope.max(0.0))
    }

    /// Returns the `w` at which `increasing(y, M - y)` reaches `level`.
    fn solve(&self, kappa: f64, first: f64, level: f64, increasing: impl Fn(f64, f64) -> f64) -> f64 {
        let (mut low, mut high) = (first, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            let (y, excess, _) = self.point(kappa, middle);
            if increasing(y, excess) <= level {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }

    /// Returns the normal density of `y`, tilted by `e^(t y)` and normalised.
    fn weight(&self, y: f64, tilt: f64) -> f64 {
        density(y / self.mu - (0.5 + tilt) * self.mu) / self.mu
    }

    /// Returns `M - y`.
    fn excess_at(&self, y: f64) -> f64 {
        match self.excess {
            Excess::Nothing => 0.0,
            Excess::Shift(shift) => shift,
            Excess::Logistic { kappa, first } => self.point(kappa, self.solve(kappa, first, y, |y, _| y)).1,
        }
    }

    /// Returns `int f(y, M - y)` over the density tilted by `tilt`, for `y` from `from` to the end of the excess.
    fn above(&self, from: f64, tilt: f64, f: impl Fn(f64, f64) -> f64) -> Estimate {
        self.between(from, f64::INFINITY, tilt, f)
    }

    fn between(&self, from: f64, to: f64, tilt: f64, f: impl Fn(f64, f64) -> f64) -> Estimate {
        // The weight times a function that grows no faster than e^(tilt M), which grows no faster than e^(tilt y).
        let reach = self.mu * ((0.5 + tilt.max(0.0)) * self.mu + REACH);
        let least = self.mu * (0.5 * self.mu - REACH);
        let to = to.min(self.end());
        if !(to > from) {
            return Estimate::default();
        }
        // A factor is at most 1 without a tilt, and decreases in y with one.
        let mut truncated = match from < least {
            true if tilt > 0.0 => f64::INFINITY,
            true => TRUNCATED,
            false => 0.0,
        };
        if to > reach {
            let y = reach.max(from);
            truncated += TRUNCATED * (1.0 + f(y, self.excess_at(y)));
        }
        let truncated = Estimate { value: 0.0, error: truncated };
        let (from, to) = (from.max(least), to.min(reach));
        if !(to > from) {
            return truncated;
        }
        let panels = ((to - from) / (PANEL * self.mu)).ceil() + 3.0;
        if !(panels < MAX_PANELS) {
            return Estimate { value: 0.0, error: f64::INFINITY };
        }
        let estimate = match self.excess {
            Excess::Nothing => Estimate::default(),
            Excess::Shift(shift) => {
                integrate(from, to, panels as u32, TOLERANCE, |y| self.weight(y, tilt) * f(y, shift))
            }
            Excess::Logistic { kappa, first } => {
                let at = |level: f64| self.solve(kappa, first, level, |y, _| y);
                let low = if from <= 0.0 { first } else { at(from) };
                let high = if to >= self.end() { 1.0 } else { at(to) };
                integrate(low, high, panels as u32, TOLERANCE, |w| {
                    let (y, excess, slope) = self.point(kappa, w);
                    self.weight(y, tilt) * slope * f(y, excess)
                })
            }
        };
        // The rounding of the density's argument, times its distance from the centre.
        let argument = from.abs().max(to.abs()) / self.mu + (0.5 + tilt.abs()) * self.mu;
        estimate + truncated + Estimate { value: 0.0, error: f64::EPSILON * REACH * argument * estimate.value }
    }

    /// Returns `int f(y)` over the density, for `y` from 0 to `to`, where `f` is at most 1.
    fn below(&self, to: f64, f: impl Fn(f64) -> f64) -> Estimate {
        let to = to.min(self.mu * (0.5 * self.mu + REACH));
        let from = (self.mu * (0.5 * self.mu - REACH)).max(0.0);
        let panels = ((to - from) / (PANEL * self.mu)).ceil() + 3.0;
        let estimate = integrate(from, to, panels as u32, TOLERANCE, |y| self.weight(y, 0.0) * f(y));
        let rounding = f64::EPSILON * REACH * (REACH + self.mu) * estimate.value;
        estimate + Estimate { value: 0.0, error: rounding + TRUNCATED }
    }

    /// Returns the loss `M` at `y*`, at which the tangent touches.
    pub(super) fn touches(&self) -> f64 {
        match self.excess {
            Excess::Nothing => 0.0,
            Excess::Shift(shift) => self.start + shift,
            Excess::Logistic { kappa, first } => {
                let (y, excess, _) = self.point(kappa, self.solve(kappa, first, self.start, |y, _| y));
                y + excess
            }
        }
    }

    pub(super) fn delta(&self, epsilon: f64) -> f64 {
        let gaussian = |epsilon: f64| exp_up(curve_point(self.mu, epsilon).log_delta);
        if epsilon >= self.end() {
            return gaussian(epsilon) * ROUND_UP;
        }
        if epsilon < self.touches() {
            // The tangent: P(y > y*) - e^epsilon Q, where Q = P(y > y*) - delta(0) of the Gaussian mechanism - surplus.
            let above = log_upper_tail(self.start / self.mu - 0.5 * self.mu).exp();
            let lowest = (gaussian(0.0) + self.surplus) * epsilon.exp() - above * epsilon.exp_m1();
            return lowest * ROUND_UP + 8.0 * f64::EPSILON * above;
        }
        match self.excess {
            Excess::Nothing => gaussian(epsilon) * ROUND_UP,
            Excess::Shift(shift) => gaussian(epsilon - shift) * ROUND_UP,
            Excess::Logistic { kappa, first } => {
                let start = self.solve(kappa, first, epsilon, |y, excess| y + excess);
                let start = self.point(kappa, start).0;
                let newly = self.between(start, epsilon, 0.0, |y, excess| -(epsilon - y - excess).min(0.0).exp_m1());
                let more = self.above(epsilon, 0.0, |y, excess| (epsilon - y).exp() * -(-excess).exp_m1());
                // The start has a rounding error, but the integrand vanishes there: an error of second order.
                (gaussian(epsilon) + newly.upper() + more.upper()) * ROUND_UP
            }
        }
    }

    pub(super) fn rdp(&self, order: f64) -> f64 {
        let excess_order = order - 1.0;
        let gaussian = 0.5 * order * self.mu * self.mu;
        if self.excess == Excess::Nothing {
            return gaussian * ROUND_UP;
        }
        // M <= max(0, y) + excess.
        let simple = gaussian + self.largest_excess() + core::f64::consts::LN_2 / excess_order;
        // If overflow gives NaN or infinity in one or both directions, the simple bound is used.
        if excess_order * self.largest_excess() > LARGEST_EXPONENT {
            return simple * ROUND_UP;
        }
        let (removal, addition) = (self.log_moment(excess_order), self.log_moment(-order));
        let largest = simple * excess_order;
        if removal < largest && addition < largest {
            removal.max(addition) / excess_order * ROUND_UP
        } else {
            simple * ROUND_UP
        }
    }

    /// Returns `ln E_P e^(t L)`, rounded up: `E e^(t y) - E[e^(t y) - 1; 0 < y <= y*] + E[e^(t M) - e^(t y); y > y*]`.
    fn log_moment(&self, t: f64) -> f64 {
        let variance = self.mu * self.mu;
        let log_gaussian = 0.5 * t * (t + 1.0) * variance;
        // Relative to the Gaussian moment, which is at least 1.
        let scale = (-log_gaussian).exp();
        let set_to_zero = if t > 0.0 {
            -self.tilted_below(t).lower()
        } else {
            (self.below(self.start, |y| -(t * y).exp_m1()).upper() + self.surplus_moment(-t)) * scale
        };
        let raised = match self.excess {
            Excess::Shift(shift) => {
                let tail = log_tilted_tail(self.mu, t, self.start) - log_gaussian;
                let factor = if t * shift > 1.0 {
                    (t * shift + tail).exp() - tail.exp()
                } else {
                    tail.exp() * (t * shift).exp_m1()
                };
                if t > 0.0 { factor * ROUND_UP } else { factor / ROUND_UP }
            }
            _ if t > 0.0 => self.above(self.start, t, |_, excess| (t * excess).exp_m1()).upper(),
            _ => -self.above(self.start, 0.0, |y, excess| -(t * y).exp() * (t * excess).exp_m1()).lower() * scale,
        };
        let relative = set_to_zero + raised;
        if log_gaussian < 1.0 {
            // 1 + (e^g - 1) + e^g relative, each small.
            (log_gaussian.exp_m1() + log_gaussian.exp() * relative).ln_1p() + 4.0 * f64::EPSILON * log_gaussian
        } else {
            log_gaussian + relative.ln_1p() + 4.0 * f64::EPSILON * log_gaussian
        }
    }

    /// Returns the contribution `E_Q e^((a-1)(-L)) - E_P 1` of the mass without loss, for the surplus: `p ((1 + m/p)^a - 1)`,
    /// decreasing in `p`.
    fn surplus_moment(&self, order: f64) -> f64 {
        let mass = self.least_mass_without_loss();
        if self.surplus == 0.0 { 0.0 } else { mass * (order * (self.surplus / mass).ln_1p()).exp_m1() }
    }

    /// Returns `P(0 < y <= y*)`, rounded down: the density is least at an end.
    fn least_mass_without_loss(&self) -> f64 {
        self.start * self.weight(0.0, 0.0).min(self.weight(self.start, 0.0)) * (1.0 - 1e-12)
    }

    /// Returns `E[e^(t y) - 1; 0 < y <= y*]` over the Gaussian moment, for `t > 0`.
    fn tilted_below(&self, t: f64) -> Estimate {
        let to = self.start.min(self.mu * ((0.5 + t) * self.mu + REACH));
        let panels = (to / (PANEL * self.mu)).ceil() + 3.0;
        if !(panels < MAX_PANELS) {
            return Estimate::default();
        }
        integrate(0.0, to, panels as u32, TOLERANCE, |y| self.weight(y, t) * -(-t * y).exp_m1())
    }
}
