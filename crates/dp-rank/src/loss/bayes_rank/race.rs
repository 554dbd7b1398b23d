//! The expected gain as an integral over the finishing times of an exponential race.
//!
//! Let document `i` finish after an exponential time with rate `exp(s_i)`, independently; the order of finishing is
//! Plackett–Luce. With `z = e^y`, `F_j = 1 - exp(-e^(s_j) z)` the probability that `j` has finished by `z`, and
//! `D_i = e^(s_i) z exp(-e^(s_i) z)` the density of the finishing time of `i` in `y`,
//! ```text
//! V = ∫ Σ_i c_i D_i(y) Σ_{t <= k} d_t P[exactly t-1 of the others have finished by e^y] dy
//! ```
//! The integrand is analytic and decays at both ends, so the trapezoidal rule converges faster than any power. At each node the
//! integrand is the value of a Markov chain over documents with states (number finished, whether `i` was met). One backward pass
//! gives its derivatives in all `F_j` and `D_j`: `O(n k)` for value and gradient.

use super::discount;
use crate::loss::LossBuffers;

/// The cost of a document and position, in units of an enumerated prefix.
pub(super) const COST_PER_DOCUMENT_AND_POSITION: f64 = 1600.0;
/// The distance between nodes, in `y`.
const STEP: f64 = 0.125;
/// Before `y = -s_i - LEFT - log n`, document `i` has finished with probability below `e^-LEFT / n`.
const LEFT: f64 = 38.0;
/// After `y = -s_i + RIGHT`, document `i` is unfinished with probability below `exp(-e^RIGHT) < 1e-20`.
const RIGHT: f64 = 4.0;

pub(super) fn expected_gain(
    scores: &[f64],
    coefficients: &[f64],
    k: usize,
    buffers: &mut LossBuffers,
    gradient: &mut [f64],
) -> f64 {
    let n = scores.len();
    let LossBuffers { weights, levels, order, .. } = buffers;
    order.clear();
    order.extend(0..n);
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    levels.resize((n + 2) * 2 * k, 0.0);
    weights.resize(3 * n, 0.0);

    let left = LEFT + (n as f64).ln();
    let mut value = 0.0;
    // Once the k best have finished, the gain is 0. Between documents with distant scores the integrand is negligible: each run
    // of overlapping intervals [-s_i - left, -s_i + RIGHT] is integrated on a separate grid, in times relative to its first
    // document.
    let mut at = 0;
    while at < k {
        let first = scores[order[at]];
        let mut end = RIGHT;
        at += 1;
        while at < k && first - scores[order[at]] - left <= end {
            end = first - scores[order[at]] + RIGHT;
            at += 1;
        }
        let nodes = ((end + left) / STEP).ceil() as usize;
        for node in 0..=nodes {
            let time = end - node as f64 * STEP;
            let chain = Chain::new(scores, coefficients, k, weights, |score| (score - first) + time);
            value += STEP * chain.add_gradient(levels, STEP, gradient);
        }
    }
    value
}

/// The documents at one node, as a Markov chain.
struct Chain<'a> {
    coefficients: &'a [f64],
    k: usize,
    finished: &'a [f64],
    densities: &'a [f64],
    /// The derivative of `D_j` in `s_j`.
    slopes: &'a [f64],
}

impl<'a> Chain<'a> {
    fn new(
        scores: &[f64],
        coefficients: &'a [f64],
        k: usize,
        weights: &'a mut [f64],
        log_mean: impl Fn(f64) -> f64,
    ) -> Self {
        let n = scores.len();
        let (finished, rest) = weights.split_at_mut(n);
        let (densities, slopes) = rest.split_at_mut(n);
        for (i, &score) in scores.iter().enumerate() {
            // Beyond 20 the document has finished to working precision.
            let mean = log_mean(score).min(20.0).exp();
            let running = (-mean).exp();
            finished[i] = -(-mean).exp_m1();
            densities[i] = mean * running;
            slopes[i] = densities[i] * (1.0 - mean);
        }
        Self { coefficients, k, finished, densities, slopes: &slopes[..n] }
    }

    /// Returns the integrand and adds `scale` times its gradient.
    fn add_gradient(&self, levels: &mut [f64], scale: f64, gradient: &mut [f64]) -> f64 {
        let (n, k) = (self.finished.len(), self.k);
        // Forward pass: before document j, P[c finished] and the expected gain with c of the others finished.
        let (forward, backward) = levels.split_at_mut((n + 1) * 2 * k);
        forward[..2 * k].fill(0.0);
        forward[0] = 1.0;
        for j in 0..n {
            let (before, after) = forward[2 * k * j..2 * k * (j + 2)].split_at_mut(2 * k);
            let (f, met) = (self.finished[j], self.coefficients[j] * self.densities[j]);
            for c in 0..k {
                let (count, gain) = if c > 0 { (before[c - 1], before[k + c - 1]) } else { (0.0, 0.0) };
                after[c] = before[c] * (1.0 - f) + count * f;
                after[k + c] = before[k + c] * (1.0 - f) + gain * f + before[c] * met;
            }
        }
        let value = (0..k).map(|c| discount(c) * forward[2 * k * n + k + c]).sum();

        // Backward pass: the value of one unit in each state after document j.
        for c in 0..k {
            backward[c] = 0.0;
            backward[k + c] = discount(c);
        }
        for j in (0..n).rev() {
            let before = &forward[2 * k * j..2 * k * (j + 1)];
            let (f, met) = (self.finished[j], self.coefficients[j] * self.densities[j]);
            let (mut in_f, mut in_met) = (0.0, 0.0);
            for c in 0..k {
                let (count, gain) = if c + 1 < k { (backward[c + 1], backward[k + c + 1]) } else { (0.0, 0.0) };
                in_f += before[c] * (count - backward[c]) + before[k + c] * (gain - backward[k + c]);
                in_met += before[c] * backward[k + c];
                backward[c] = backward[c] * (1.0 - f) + count * f + backward[k + c] * met;
                backward[k + c] = backward[k + c] * (1.0 - f) + gain * f;
            }
            gradient[j] += scale * (in_f * self.densities[j] + in_met * self.coefficients[j] * self.slopes[j]);
        }
        value
    }
}
