//! Moment functions that are sums over finitely many losses, computed on a whole line at once.
//!
//! For a law of the loss with weight `p_k` on `loss_k`,
//!
//! ```text
//! M(z) = 1 + z D + sum_k p_k g(z loss_k),   g(s) = e^s - 1 - s,   D = sum_k p_k g(-loss_k),
//! ```
//!
//! because `sum p_k = sum p_k e^-loss_k = 1`: the law under the other hypothesis has total mass 1 as well. In this form all terms
//! are of second order in the losses. If the losses are small, `M` is close to 1, and after a million-fold composition the result
//! depends on `M - 1`, which this form gives to full relative precision: rounding costs `K` a relative error, whatever the number
//! of compositions.
//!
//! At the points `z_j = c + i j h` the terms satisfy, with `r = e^(i h loss)`,
//!
//! ```text
//! g(z_(j+1) loss) = r g(z_j loss) + (r - 1 - i h loss) + (r - 1) z_j loss,
//! ```
//!
//! two complex products per node and point. The factors `r - 1 - i theta` and `r - 1` are formed without cancellation.
//!
//! **Rounding.** Let `m = max(1, e^(c loss))` and `s = z loss`, and for a node let `omega = 1 + |ln p| + (c + t)|loss| +` (the
//! argument from which the loss was computed): the exponents of the computed exponentials, and the phase. Weight and loss have
//! relative errors of a few `u omega`; a relative error `x` of the loss, here or in the angle `theta`, changes the term by `x |s
//! (e^s - 1)|`. Both this and the term itself are at most `m min(|s|^2, 2 + 2|s|)`, so that forming the terms costs a few `u sum
//! p m omega min(|s|^2, 4)`, at most `min(|z|^2 G_2, 4 G_0)`. A step of the recurrence rounds quantities of the size of the term,
//! which is at most `min(m |s|^2 / 2, m + 1 + |s|)`, and multiplies earlier errors by a number of modulus 1; summing `N` nodes,
//! four at a time, rounds `N / 4` times. So at the point number `j` these add `u (C j + N/4) sum p min(m |s|^2, 2m + |s|)`, at
//! most `min(|z|^2 H_2, 2 H_0 + |z| H_1)`. These sums are formed once per line, separately for classes of losses of different
//! size: if many small losses and few large ones both contribute, one minimum for all would be far from the sum of minima.

use crate::exact::complex::{Complex, exp_excess};

/// Rounding units per node for forming weight, loss and term.
const UNITS_PER_TERM: f64 = 24.0;

/// Rounding units per step of the recurrence.
const UNITS_PER_STEP: f64 = 8.0;

/// Exponents beyond this are scaled down before the exponential.
const LARGE_EXPONENT: f64 = 300.0;

/// Number of nodes processed side by side.
const LANES: usize = 4;

/// Number of points along which a node is moved in one pass.
const TILE: usize = 8;

/// One node: the logarithm of its weight, its loss, and the size of the argument from which the loss was computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Node {
    pub(super) log_weight: f64,
    pub(super) loss: f64,
    pub(super) argument: f64,
}

/// A law as nodes, with bounds on the difference between the nodes' moment function and that of the law.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    /// The omitted nodes.
    pub(super) left_out: LeftOut,
    /// The error of replacing an integral by the sum, relative to `e^(log_discretisation)`, at each `t`.
    pub(super) discretisation: Option<Discretisation>,
}

/// The weight of the omitted nodes, times the largest of 1 and both exponentials, and the same times the loss; both divided by
/// `e^log_scale`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeftOut {
    pub(super) log_scale: f64,
    pub(super) weight: f64,
    pub(super) weighted_loss: f64,
}

impl Node {
    /// Returns the logarithm of its weight times the largest of 1 and the two exponentials in the moment.
    pub(super) fn size(&self, c: f64) -> f64 {
        self.log_weight + (c * self.loss).max(-self.loss).max(0.0)
    }
}

impl LeftOut {
    /// Drops the nodes whose size is below `keep`, and adds them to the omitted ones; `largest` is the logarithm of the scale.
    pub(super) fn drop_from(&mut self, nodes: &mut Vec<Node>, c: f64, largest: f64, keep: f64) {
        nodes.retain(|node| {
            let size = node.size(c);
            if size < keep {
                let weight = (size - largest).exp();
                self.weight += weight;
                self.weighted_loss += weight * node.loss.abs();
            }
            size >= keep
        });
    }
}

/// Error of the trapezoid rule: `e^base (e^(log_moment + slope t) + 1 + 2|z|)`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Discretisation {
    pub(super) base: f64,
    pub(super) log_growth: f64,
    pub(super) slope: f64,
}

/// Four nodes of the recurrence, each field an array of lanes.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    term_re: [f64; LANES],
    term_im: [f64; LANES],
    turn_re: [f64; LANES],
    turn_im: [f64; LANES],
    constant_re: [f64; LANES],
    constant_im: [f64; LANES],
    linear_re: [f64; LANES],
    linear_im: [f64; LANES],
}

/// The moment function along a line, computed point by point.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    blocks: Vec<Block>,
    c: f64,
    step: f64,
    point: usize,
    /// The sums over all nodes at the current point and the next ones, in its tile.
    tile: [Complex; TILE],
    /// All values are scaled by `e^-scale`.
    scale: f64,
    drift: f64,
    bounds: [Bounds; CLASSES],
    bound_drift: f64,
    left_out: LeftOut,
    discretisation: Option<Discretisation>,
}

/// Number of classes of losses. The losses of a class are within a factor of 4; the last class holds all smaller ones.
const CLASSES: usize = 16;

/// The sums over the nodes of a class for the rounding bounds.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// Sum of `p m omega`, and of the same times the squared loss.
    forming: (f64, f64),
    /// Sums of `p m`, `p |loss|` and `p m loss^2`.
    size: (f64, f64, f64),
}

impl Bounds {
    /// Returns the class of a loss.
    fn class(loss: f64, largest: f64) -> usize {
        let ratio = largest / loss.abs();
        // Zero, and losses too small for a quotient, belong to the last class.
        if ratio.is_finite() { (0.5 * ratio.log2()).clamp(0.0, (CLASSES - 1) as f64) as usize } else { CLASSES - 1 }
    }

    /// Adds a node of this weight; `large` is `p m`.
    fn add(&mut self, weight: f64, large: f64, loss: f64, omega: f64) {
        let square = loss * loss;
        self.forming.0 += large * omega;
        self.forming.1 += large * omega * square;
        self.size.0 += large;
        self.size.1 += weight * loss.abs();
        self.size.2 += large * square;
    }

    /// Returns bounds on the error of forming all terms at `|z| = norm`, and on their size.
    fn at(&self, norm: f64) -> (f64, f64) {
        let square = norm * norm;
        let forming = (square * self.forming.1).min(4.0 * self.forming.0);
        (forming, (square * self.size.2).min(2.0 * self.size.0 + norm * self.size.1))
    }
}

/// The logarithm of a moment function and its error: `|M| = |e^log| (1 + x)` with `|ln(1 + x)| <= error`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogMoment {
    pub(super) log: Complex,
    pub(super) error: f64,
}

impl Nodes {
    /// Returns the moment function on `c + i j step`, `j = 0, 1, ...` up to `points` of them.
    pub(super) fn walk(&self, c: f64, step: f64, points: usize) -> Walk {
        let largest = self.nodes.iter().map(|node| node.log_weight + (c * node.loss).max(0.0)).fold(0.0, f64::max);
        let scale = if largest > LARGE_EXPONENT { largest } else { 0.0 };
        let largest_loss = self.nodes.iter().map(|node| node.loss.abs()).fold(0.0, f64::max);
        let t_max = step * points as f64;
        let mut walk = Walk {
            blocks: vec![Block::default(); self.nodes.len().div_ceil(LANES)],
            c,
            step,
            point: 0,
            tile: [Complex::default(); TILE],
            scale,
            drift: 0.0,
            bounds: [Bounds::default(); CLASSES],
            bound_drift: 0.0,
            left_out: self.left_out,
            discretisation: self.discretisation,
        };
        for (index, node) in self.nodes.iter().enumerate() {
            let Node { log_weight, loss, argument } = *node;
            let s = c * loss;
            let log_weight = log_weight - scale;
            let weight = log_weight.exp();
            let term = weighted_excess(log_weight, weight, s);
            let omega = 1.0 + log_weight.abs() + scale + argument + (c + t_max) * loss.abs();
            walk.bounds[Bounds::class(loss, largest_loss)].add(weight, (log_weight + s.max(0.0)).exp(), loss, omega);
            let drift = weighted_excess(log_weight, weight, -loss);
            walk.drift += drift;
            walk.bound_drift += drift * omega;

            let theta = step * loss;
            let half = (0.5 * theta).sin();
            // r - 1 = -2 sin^2(theta/2) + i sin(theta)
            let turn = Complex::new(-2.0 * half * half, theta.sin());
            let excess = Complex::new(turn.re, sine_excess(theta));
            let (block, lane) = (&mut walk.blocks[index / LANES], index % LANES);
            let linear = turn.scale(weight * loss);
            block.term_re[lane] = term;
            block.turn_re[lane] = 1.0 + turn.re;
            block.turn_im[lane] = turn.im;
            block.constant_re[lane] = weight * excess.re + linear.re * c;
            block.constant_im[lane] = weight * excess.im + linear.im * c;
            block.linear_re[lane] = linear.re;
            block.linear_im[lane] = linear.im;
        }
        walk
    }

    /// Returns `ln M` and its first and second derivative at `c`, for a search, without error bounds.
    pub(super) fn cumulant(&self, c: f64) -> [f64; 3] {
        let largest = self.nodes.iter().map(|node| node.log_weight + c * node.loss).fold(0.0, f64::max);
        let scale = if largest > LARGE_EXPONENT { largest } else { 0.0 };
        let (mut drift, mut excess, mut first, mut second) = (0.0, 0.0, 0.0, 0.0);
        for node in &self.nodes {
            let log_weight = node.log_weight - scale;
            let weight = log_weight.exp();
            let s = c * node.loss;
            let term = weighted_excess(log_weight, weight, s);
            let tilted = term + weight * (1.0 + s);
            drift += weighted_excess(log_weight, weight, -node.loss);
            excess += term;
            first += node.loss * (tilted - weight);
            second += node.loss * node.loss * tilted;
        }
        let one = (-scale).exp();
        let small = excess + c * drift;
        let moment = one + small;
        let log = if scale == 0.0 { small.ln_1p() } else { scale + moment.ln() };
        let mean = (first + drift) / moment;
        [log, mean, (second / moment - mean * mean).max(0.0)]
    }
}

impl Walk {
    /// Returns the moment function at the current point and advances to the next.
    pub(super) fn next(&mut self) -> LogMoment {
        if self.point.is_multiple_of(TILE) {
            self.move_on();
        }
        let t = self.point as f64 * self.step;
        let z = Complex::new(self.c, t);
        let sum = self.tile[self.point % TILE];
        let excess = sum + z.scale(self.drift);
        let error = self.error(z.norm(), t);
        self.point += 1;
        log_moment(excess, self.scale, error)
    }

    /// Computes the sums of a tile: moves each node along all its points.
    fn move_on(&mut self) {
        let mut sum_re = [[0.0; LANES]; TILE];
        let mut sum_im = [[0.0; LANES]; TILE];
        let t: [f64; TILE] = core::array::from_fn(|point| (self.point + point) as f64 * self.step);
        for block in &mut self.blocks {
            let (mut term_re, mut term_im) = (block.term_re, block.term_im);
            for ((sum_re, sum_im), t) in sum_re.iter_mut().zip(&mut sum_im).zip(t) {
                for lane in 0..LANES {
                    let (re, im) = (term_re[lane], term_im[lane]);
                    sum_re[lane] += re;
                    sum_im[lane] += im;
                    let (turn_re, turn_im) = (block.turn_re[lane], block.turn_im[lane]);
                    term_re[lane] =
                        (re * turn_re - im * turn_im) + (block.constant_re[lane] - block.linear_im[lane] * t);
                    term_im[lane] =
                        (re * turn_im + im * turn_re) + (block.constant_im[lane] + block.linear_re[lane] * t);
                }
            }
            (block.term_re, block.term_im) = (term_re, term_im);
        }
        for ((tile, re), im) in self.tile.iter_mut().zip(sum_re).zip(sum_im) {
            *tile = Complex::new(re.iter().sum(), im.iter().sum());
        }
    }

    /// Returns a bound on the error of the (scaled) moment at `z`, whose imaginary part is `t`.
    fn error(&self, norm: f64, t: f64) -> f64 {
        let steps = UNITS_PER_STEP * self.point as f64 + self.blocks.len() as f64;
        let (mut forming, mut size) = (0.0, 0.0);
        for bounds in &self.bounds {
            let (forms, sizes) = bounds.at(norm);
            forming += forms;
            size += sizes;
        }
        let drift = norm * (UNITS_PER_TERM * self.bound_drift + self.blocks.len() as f64 * self.drift);
        let rounding = f64::EPSILON * (UNITS_PER_TERM * forming + steps * size + drift);
        let LeftOut { log_scale, weight, weighted_loss } = self.left_out;
        let left_out = 2.0 * ((1.0 + norm) * weight + norm * weighted_loss) * (log_scale - self.scale).exp();
        let discretisation = self.discretisation.map_or(0.0, |rule| {
            (rule.base + rule.log_growth + rule.slope * t - self.scale).exp()
                + (rule.base - self.scale).exp() * (1.0 + 2.0 * norm)
        });
        rounding + left_out + discretisation
    }
}

/// Returns the logarithm of `e^scale (e^-scale + excess)`, where the bracket has an error of at most `error`.
pub(super) fn log_moment(excess: Complex, scale: f64, error: f64) -> LogMoment {
    let one = (-scale).exp();
    let norm = Complex::new(one + excess.re, excess.im).norm();
    if !(norm > error) {
        // The disc contains 0: the value returned has modulus `error`, which is within a factor of three of all its points.
        return LogMoment { log: Complex::new(error.ln() + scale, 0.0), error: 4f64.ln() };
    }
    let log = if scale == 0.0 {
        excess.ln_one_plus()
    } else {
        Complex::new(norm.ln() + scale, excess.im.atan2(one + excess.re))
    };
    let size = if scale == 0.0 { (2.0 * excess.norm()).min(1.0 + log.norm()) } else { 1.0 + log.norm() };
    LogMoment { log, error: (error / norm).ln_1p() + 8.0 * f64::EPSILON * size }
}

/// Returns `p (e^s - 1 - s)` without overflow where the weight is small.
fn weighted_excess(log_weight: f64, weight: f64, s: f64) -> f64 {
    if s > 1.0 { (log_weight + s).exp() - weight * (1.0 + s) } else { weight * exp_excess(s) }
}

/// Returns `sin(theta) - theta` without cancellation.
fn sine_excess(theta: f64) -> f64 {
    if theta.abs() < 0.7 {
        let square = theta * theta;
        let mut sum = 1.0;
        for n in (2..=8).rev() {
            let n = f64::from(n);
            sum = 1.0 - square * sum / (2.0 * n * (2.0 * n + 1.0));
        }
        -theta * square / 6.0 * sum
    } else {
        theta.sin() - theta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two outcomes of randomised response.
    fn pure(epsilon: f64) -> Nodes {
        let truth = 1.0 / (1.0 + (-epsilon).exp());
        let node = |weight: f64, loss| Node { log_weight: weight.ln(), loss, argument: 0.0 };
        Nodes { nodes: vec![node(truth, epsilon), node(1.0 - truth, -epsilon)], ..Nodes::default() }
    }

    #[test]
    fn the_walk_is_the_moment_function() {
        for (epsilon, c, step) in [(1e-6, 3.0, 0.7), (0.3, 12.0, 0.4), (5.0, 0.2, 0.01), (2.0, 400.0, 0.3)] {
            let nodes = pure(epsilon);
            let mut walk = nodes.walk(c, step, 40);
            for j in 0..40 {
                let z = Complex::new(c, f64::from(j) * step);
                let got = walk.next();
                // The plain formula, relative to its largest term.
                let truth = 1.0 / (1.0 + (-epsilon).exp());
                let shift = c * epsilon;
                let plus = Complex::new(0.0, z.im * epsilon).exp().scale(truth);
                let minus = Complex::new(-2.0 * shift, -z.im * epsilon).exp().scale(1.0 - truth);
                let expected = plus + minus;
                let back = Complex::new(got.log.re - shift, got.log.im).exp();
                let error = (back - expected).norm();
                let allowed = expected.norm() * got.error.exp_m1() + 1e-13;
                assert!(error <= allowed, "{epsilon} {c} {j}: {error} > {allowed}");
                assert!(got.error < 1e-8, "{epsilon} {c} {j}: {}", got.error);
            }
        }
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let (p, q) = ([0.6, 0.399, 0.001], [0.5, 0.49, 0.01]);
        let node = |(p, q): (f64, f64)| Node { log_weight: p.ln(), loss: (p / q).ln(), argument: 0.0 };
        let nodes: Vec<Node> = p.into_iter().zip(q).map(node).collect();
        let (c, step) = (2.0, 0.7);
        let last = nodes[2];
        let weight = (last.log_weight + (c * last.loss).max(-last.loss).max(0.0)).exp();
        let left_out = LeftOut { log_scale: 0.0, weight, weighted_loss: weight * last.loss.abs() };
        let cut = Nodes { nodes: nodes[..2].to_vec(), left_out, ..Nodes::default() };
        let (mut all, mut cut) = (Nodes { nodes, ..Nodes::default() }.walk(c, step, 20), cut.walk(c, step, 20));
        for j in 0..20 {
            let (all, cut) = (all.next(), cut.next());
            let difference = (all.log.exp() - cut.log.exp()).norm();
            let allowed = cut.log.re.exp() * cut.error.exp_m1();
            assert!(difference > 1e-4 && difference <= allowed + 1e-12, "{j}: {difference} {allowed}");
        }
    }

    #[test]
    fn a_small_loss_keeps_the_relative_precision_of_the_cumulant() {
        // K = ln(cosh((c + 1/2) e) / cosh(e/2)) = c (c + 1) e^2 / 2 to leading order.
        let mut walk = pure(1e-7).walk(3.0, 1.0, 2);
        let at_c = walk.next();
        assert!((at_c.log.re / 6e-14 - 1.0).abs() < 1e-11 && at_c.error < 1e-24, "{at_c:?}");
        // z (z + 1) = 11 + 7i at z = 3 + i
        let next = walk.next();
        assert!((next.log.re / 5.5e-14 - 1.0).abs() < 1e-11 && (next.log.im / 3.5e-14 - 1.0).abs() < 1e-11);
    }

    #[test]
    fn the_search_values_are_derivatives() {
        let nodes = pure(0.8);
        for c in [1e-3, 1.0, 30.0, 2000.0] {
            let [value, slope, curvature] = nodes.cumulant(c);
            let s = (c + 0.5) * 0.8;
            let expected = s + (0.5 * (1.0 + (-2.0 * s).exp())).ln() - 0.4f64.cosh().ln();
            assert!((value - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{c}: {value} {expected}");
            assert!((slope - 0.8 * s.tanh()).abs() < 1e-12 && (curvature - (0.8 / s.cosh()).powi(2)).abs() < 1e-12);
        }
    }
}
