//! The Renyi divergence of one release.

use core::cell::RefCell;

use super::{Pair, Point};
use crate::logspace::log_add;
use crate::normal::LN_SQRT_2_PI;
use crate::quadrature::{POINTS, of_values, points, refine};
use crate::rdp::{mixed_with_nothing, rdp_per_order, sampled_gaussian_divergence};
use crate::rounding::mul_up;
use crate::work;

/// Least rate and `mu`: the divergence grows with both, so smaller ones are raised to these, and squares do not underflow.
const LEAST_RATE: f64 = 1e-60;
const LEAST_MU: f64 = 1e-75;

/// The omitted part at the upper end is below `e^-NEGLIGIBLE` of the whole.
const NEGLIGIBLE: f64 = 50.0;

/// Maximum number of panels; beyond it the bounds by other theorems are used.
const MAX_PANELS: f64 = 4000.0;

/// Number of steps of a node, and of a value of the integrand there.
const STEPS_PER_NODE: f64 = 160.0;
const STEPS_PER_VALUE: f64 = 90.0;

/// Relative tolerance of the integral.
const TOLERANCE: f64 = 1e-12;

/// The divergences of one release, prepared for many orders: the losses at the nodes of the integral do not depend on the order.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    pair: Pair,
    /// The point at which the loss is 0. The first panel begins there; each is one standard deviation wide.
    start: f64,
    panels: RefCell<Vec<[Node; POINTS]>>,
}

/// The loss at a point, and the logarithm of A's density there.
#[derive(Debug, Clone, Copy)]
struct Node {
    loss: f64,
    log_density: f64,
}

impl Node {
    /// Returns `A (e^((a-1) L) - 1)/(a-1) (1 - e^(-a L))`, divided by `e^reference`.
    fn value(self, order: f64, reference: f64) -> f64 {
        let (Self { loss, log_density }, excess) = (self, order - 1.0);
        if !(loss > 0.0) {
            return 0.0;
        }
        // (1 - e^-y)/(a-1), y = (a-1) L.
        let growth = if excess > 0.0 { -(-excess * loss).exp_m1() / excess } else { loss };
        (log_density + excess * loss - reference).exp() * growth * -(-order * loss).exp_m1()
    }
}

impl Moments {
    pub(crate) fn new(pair: &Pair) -> Self {
        let (up, down) = (pair.up.max(LEAST_MU), if pair.is_symmetric() { pair.down.max(LEAST_MU) } else { pair.down });
        let pair = Pair { rate: pair.rate.max(LEAST_RATE), up, down };
        Self { pair, start: pair.place(0.0), panels: RefCell::default() }
    }

    fn node(&self, x: f64) -> Node {
        let (log_above, loss) = self.pair.logs(x);
        Node { loss, log_density: log_above - 0.5 * x * x - LN_SQRT_2_PI }
    }

    fn end_of(&self, panels: usize) -> f64 {
        self.start + panels as f64
    }

    /// Returns an upper bound on the divergence of order `order >= 1`, in both directions.
    ///
    /// It is the integral of the [module](super), with its error, or one of two bounds that always hold:
    ///
    /// - convexity: the pair is a mixture of the Gaussian pair and of equal laws;
    /// - `B >= (1-q) N(0, 1)`: the moment beyond `x_0` is at most `(1-q)^(1-a)` times that of A against `N(0, 1)`, and the
    ///   rest at most 1.
    pub(crate) fn rdp(&self, order: f64) -> f64 {
        let pair = &self.pair;
        let cap = mixed_with_nothing(order, pair.rate, mul_up(order, rdp_per_order(pair.mu().next_up()).next_up()));
        let excess = order - 1.0;
        let against_base = sampled_gaussian_divergence(order, pair.rate, pair.up) - (-pair.rate).ln_1p().next_down();
        let other = log_add(0.0, excess * against_base) / excess * (1.0 + 8.0 * f64::EPSILON);
        let cap = if other < cap { other } else { cap };
        let own = self.integral(order).unwrap_or(f64::INFINITY);
        if own < cap { own } else { cap }
    }

    /// Returns the divergence by the integral, rounded up; `None` if its range is too long.
    ///
    /// **Range.** `A^a B^(1-a)` has the logarithmic derivative `-x + a up p_A(x) + (a-1) down p_B(x)`, with the posterior
    /// probabilities p that the record took part, `p_A <= 1` and `p_B` decreasing: so beyond `c = a up + (a-1) down p_B(a up)` it
    /// falls at least like a normal density about c. There the integrand is at most `L A^a B^(1-a)` and the loss's slope at most
    /// `mu`, so that the integral beyond `c + t` is at most `A^a B^(1-a) (L + mu/t)/t` at that end.
    fn integral(&self, order: f64) -> Option<f64> {
        // Once a limit on work is reached, the bounds that always hold are used.
        if work::is_exhausted() {
            work::cut_short();
            return None;
        }
        let (pair, excess) = (&self.pair, order - 1.0);
        let far = order * pair.up;
        let centre = far + excess * pair.down * pair.ratio(-pair.down, far).sampled;
        let smallness = -(pair.rate * pair.mu().min(1.0)).ln();
        let reach = (2.0 * (NEGLIGIBLE + 2.0 * smallness)).sqrt();
        let count = ((centre - self.start).max(0.0) + reach).ceil();
        if !(count <= MAX_PANELS) {
            return None;
        }
        let (count, mut panels) = (count as usize, self.panels.borrow_mut());
        while panels.len() < count {
            work::charge(STEPS_PER_NODE * POINTS as f64);
            let place = panels.len();
            panels.push(points(self.end_of(place), self.end_of(place + 1)).map(|x| self.node(x)));
        }
        let panels = panels.get(..count)?;
        // Approximately the largest value.
        let reference = panels
            .iter()
            .map(|[Node { loss, log_density }, ..]| log_density + excess * loss)
            .fold(f64::NEG_INFINITY, f64::max);
        work::charge(STEPS_PER_VALUE * (POINTS * count) as f64);
        let of_panel = |(place, nodes): (usize, &[Node; POINTS])| {
            let (low, high) = (self.end_of(place), self.end_of(place + 1));
            (low, high, of_values(low, high, &nodes.map(|node| node.value(order, reference))))
        };
        let found = refine(panels.iter().enumerate().map(of_panel).collect(), TOLERANCE, |x| {
            work::charge(STEPS_PER_NODE + STEPS_PER_VALUE);
            self.node(x).value(order, reference)
        });
        // At least `reach` beyond the centre.
        let end = self.end_of(count);
        let Point { loss, log_above, .. } = pair.at(end);
        let log_end = log_above + excess * loss - 0.5 * end * end - LN_SQRT_2_PI;
        let beyond = (log_end - reference).exp() * (loss + pair.mu() / reach) / reach;
        // The rounding of the logarithm of the integrand.
        let terms = end * end + order * (pair.mu() * (end + pair.mu()) - pair.rate.ln());
        let rounding = 1.0 + f64::EPSILON * (256.0 + 16.0 * terms);
        let sum = (found.upper() + beyond) * rounding;
        let divergence = if reference.abs() < 600.0 && excess * sum * reference.exp() < 1e280 {
            let integral = sum * reference.exp();
            if excess == 0.0 { integral } else { (excess * integral).ln_1p() / excess }
        } else {
            log_add(0.0, reference + sum.ln() + excess.ln()) / excess
        };
        (divergence > 0.0).then_some(divergence * (1.0 + 8.0 * f64::EPSILON))
    }
}
