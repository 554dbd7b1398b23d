//! One release beside Gaussian ones, as in a training whose centre and minimiser get Gaussian noise.
//!
//! Gaussian releases of ratio `g` together have the hockey-stick curve `h`, with `-h'(t) = K(t) = e^t P(Z > t/g + g/2)` for all
//! real `t`. Given the other release's loss `L`, delta is the Gaussian curve at `epsilon - L`, so that, by parts,
//!
//! ```text
//! delta(epsilon) = E_P h(epsilon - L) = int K(epsilon - l) P(L > l) dl
//! ```
//!
//! with the envelope's pair. The integrand is positive, and smooth between a few known ends.
//!
//! **Addition costs no more.** Let `f` be the pair's curve, `r` that of the reversed pair, and `d(t) = f(e^t) - r(e^t)`; then `d(-t)
//! = -e^-t d(t)`. With `p` the density of the Gaussian loss under `P`, removal costs
//!
//! ```text
//! int p(epsilon - u) d(u) du = int_(u > 0) d(u) e^-u p(epsilon + u) (e^(2 u epsilon/g²) - 1) du
//! ```
//!
//! more than addition. For `epsilon >= 0` this is not negative if `d(u) >= 0` for `u >= 0`. It is: from the point of contact of the
//! tangent on, `f` is the bound on removal, which is at least that on addition, and that at least `r`; between there and `x = 1`,
//! where `f = r`, `f` is linear and `r` convex.

use super::law::{LARGEST_MU, REACH, rounding};
use super::{Pair, epsilon_of};
use crate::normal::{density, mills_ratio, upper_tail};
use crate::quadrature::{panel_with_error, refine};

/// Range of the Gaussian releases' ratio: relative to the other release's, below which the rounding of losses matters; and absolute.
const LEAST_RATIO: f64 = 1e-6;
const LARGEST_RATIO: f64 = 30.0;

/// Width of a panel, in standard deviations of the law that varies fastest.
const PANEL: f64 = 4.0;

/// Largest width of a panel: `e^-l` is smooth across it.
const WIDEST: f64 = 8.0;

/// Number of standard deviations below zero from which on a normal tail is 1 to rounding.
pub(super) const CONSTANT: f64 = 8.5;

/// Number of standard deviations below zero from which on neither a tail nor its slope matters.
const CONSTANT_TAIL: f64 = 10.0;

/// Maximum number of panels.
const MAX_PANELS: f64 = 4000.0;

/// Target relative error of the quadrature.
const TOLERANCE: f64 = 1e-12;

/// Panels are omitted if bounds on all of them together are below this part of the whole.
const OMITTED: f64 = 1e-14;

/// Bound on the mass beyond the reach of both laws.
const TRUNCATED: f64 = 1e-300;

/// The tail of the losses under `P`.
pub(super) struct Tail<'a> {
    /// The losses between which it has one formula, each with whether the tail varies from the one before up to it. Beyond the last
    /// it varies.
    pub(super) ends: Vec<(f64, bool)>,
    /// An upper bound on `P(L > l)`, tight to rounding.
    pub(super) above: Box<dyn Fn(f64) -> f64 + 'a>,
    /// Ratio of sensitivity to noise: the standard deviation of the losses.
    pub(super) mu: f64,
    /// The loss from which on the tail is below 1e-300.
    pub(super) reach: f64,
    /// Bound on the error of a loss.
    pub(super) loss_error: f64,
}

/// Returns a bound on the relative error of `P(Z > x)` for an `x` that is a sum of terms up to `size`.
pub(super) fn tail_error(x: f64, size: f64) -> f64 {
    if x < -CONSTANT_TAIL { 8.0 * f64::EPSILON } else { rounding(size) }
}

/// One release, alone or beside Gaussian ones.
#[derive(Debug, Clone)]
pub(crate) struct BesideGaussians {
    pair: Pair,
    /// The ratio of the Gaussian ones together; 0 if there are none.
    others: f64,
}

impl BesideGaussians {
    /// Creates the composition from the release's pair and the ratio of the Gaussian releases together; `None` if the numbers
    /// are too extreme.
    pub(crate) fn new(pair: Pair, others: f64) -> Option<Self> {
        let has_tail = match &pair {
            Pair::Monotone(_) => true,
            Pair::Sided(pair) => pair.cancellation().is_finite(),
        };
        let own = pair.mu();
        let in_range = own <= LARGEST_MU && others <= LARGEST_RATIO && others >= LEAST_RATIO * own;
        (others == 0.0 || has_tail && in_range).then_some(Self { pair, others })
    }

    /// Returns epsilon at `delta`, rounded up; infinite for 0.
    pub(crate) fn epsilon(&self, delta: f64) -> f64 {
        epsilon_of(delta, self.pair.mu().hypot(self.others), |epsilon| self.delta(epsilon))
    }

    /// Returns an upper bound on delta at `epsilon >= 0`, in either direction.
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        if self.others == 0.0 {
            return self.pair.delta(epsilon);
        }
        let tail = match &self.pair {
            Pair::Monotone(pair) => pair.tail(),
            Pair::Sided(pair) => pair.tail(),
        };
        let delta = Gaussians { mu: self.others }.delta(&tail, epsilon);
        if delta < 1.0 { delta } else { 1.0 }
    }
}

/// Gaussian releases, by their ratio together.
#[derive(Debug, Clone, Copy)]
struct Gaussians {
    mu: f64,
}

/// A panel, with a bound on the integral over it.
struct Panel {
    from: f64,
    to: f64,
    bound: f64,
}

impl Gaussians {
    /// Returns `K(t)`.
    fn kernel(self, t: f64) -> f64 {
        let (near, far) = (t / self.mu - 0.5 * self.mu, t / self.mu + 0.5 * self.mu);
        if far >= 0.0 { density(near) * mills_ratio(far) } else { t.exp() * upper_tail(far) }
    }

    /// Returns a bound on the relative error of the kernel at `epsilon - loss`: that of a normal tail, and that of the difference.
    fn error(self, epsilon: f64, loss: f64) -> f64 {
        let (t, size) = (epsilon - loss, epsilon.abs() + loss.abs());
        let (far, extreme) = (t / self.mu + 0.5 * self.mu, t.abs() / self.mu + 0.5 * self.mu);
        // Far below zero it is an exponential.
        let slope = if far < -CONSTANT_TAIL { 1.0 } else { 1.0 + (extreme + 2.0) / self.mu };
        tail_error(far, extreme) + 4.0 * f64::EPSILON * size * slope
    }

    /// Returns a bound on `K(epsilon - l)` for `l` in a panel. `K` decreases from `mu²/2` on: there `K' = K - phi(t/mu - mu/2)/mu`
    /// is negative, as the Mills ratio at `x` is below `1/x`.
    fn largest_kernel(self, epsilon: f64, from: f64, to: f64) -> f64 {
        let least = epsilon - to;
        if least >= 0.5 * self.mu * self.mu {
            return self.kernel(least);
        }
        (epsilon - from).exp() * upper_tail(least / self.mu + 0.5 * self.mu)
    }

    /// Returns an upper bound on delta at `epsilon`.
    fn delta(self, tail: &Tail<'_>, epsilon: f64) -> f64 {
        let epsilon = epsilon - tail.loss_error;
        let Some(mut panels) = self.panels(tail, epsilon) else { return 1.0 };
        panels.sort_by(|a, b| b.bound.total_cmp(&a.bound));
        let integrand = |l: f64| self.kernel(epsilon - l) * (tail.above)(l) * (1.0 + self.error(epsilon, l));
        // The bound on each panel and all after it.
        let mut left = vec![0.0; panels.len() + 1];
        for (i, panel) in panels.iter().enumerate().rev() {
            left[i] = left[i + 1] + panel.bound;
        }
        let (mut taken, mut sum, mut omitted) = (Vec::new(), 0.0, 0.0);
        for (Panel { from, to, .. }, left) in panels.iter().zip(&left) {
            if *left <= OMITTED * sum {
                omitted = 2.0 * left;
                break;
            }
            let found = panel_with_error(*from, *to, integrand);
            sum += found.value;
            taken.push((*from, *to, found));
        }
        let whole = if taken.is_empty() { 0.0 } else { refine(taken, TOLERANCE, integrand).upper() };
        whole + omitted + TRUNCATED
    }

    /// Returns the panels; `None` if there are too many.
    fn panels(self, tail: &Tail<'_>, epsilon: f64) -> Option<Vec<Panel>> {
        let (first, last) = (epsilon - self.mu * (REACH + 0.5 * self.mu), tail.reach);
        // The kernel varies below this, and is an exponential above.
        let step = epsilon + CONSTANT * self.mu;
        let mut cuts: Vec<f64> = tail.ends.iter().map(|(end, _)| *end).chain([step, last]).collect();
        cuts.retain(|cut| *cut > first && *cut <= last);
        cuts.sort_by(f64::total_cmp);
        let mut panels = Vec::new();
        let mut from = first;
        for to in cuts {
            let varies = tail.ends.iter().find(|(end, _)| to <= *end).is_none_or(|(_, varies)| *varies);
            let of_tail = if varies { PANEL * tail.mu } else { WIDEST };
            let of_kernel = if to <= step { PANEL * self.mu } else { WIDEST };
            let number = ((to - from) / of_tail.min(of_kernel)).ceil();
            if !(number + panels.len() as f64 <= MAX_PANELS) {
                return None;
            }
            let end = |i: u32| if f64::from(i) == number { to } else { from + (to - from) / number * f64::from(i) };
            panels.extend((0..number as u32).map(|i| {
                let (from, to) = (end(i), end(i + 1));
                let bound = (to - from) * self.largest_kernel(epsilon, from, to) * (tail.above)(from);
                Panel { from, to, bound }
            }));
            from = to;
        }
        Some(panels)
    }
}
