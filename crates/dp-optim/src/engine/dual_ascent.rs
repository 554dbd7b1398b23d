//! Certified approximation of the minimiser of a regularised risk whose loss need not be differentiable.
//!
//! # Formula
//! For rows `x_i` with targets, a loss with bounded slopes and a centre `v`,
//! ```text
//! P(w) = (1/n) Σ ℓ(⟨w, x_i⟩, y_i) + (λ/2) ‖w - v‖²,      w(u) = v - (1/(λn)) Σ u_i x_i
//! (λ/2) ‖w(u) - w*‖² <= (1/n) Σ [ℓ(p_i) + ℓ*(u_i) - u_i p_i],     p_i = ⟨w(u), x_i⟩
//! ```
//! for any slopes `u` in the domain of the conjugate `ℓ*` ([`ProximalLoss`]). The right side is a sum of non-negative terms,
//! each computed to high accuracy, and is 0 at the minimiser. It certifies a point to far more digits than the difference of
//! the primal and dual objectives, which agree in most of their digits.
//!
//! The solver is coordinate ascent on the slopes, in a new random order for each round: each step solves for one record
//! exactly, without a step size. The certificate is computed every few rounds. If none has passed after a number of rounds
//! that depends on public numbers only, all slopes are moved at once by proximal gradient steps, whose average is certified by
//! the number of these steps.
//!
//! # Certificate by count
//! The dual, `max_u ⟨v, s⟩ - ‖s‖²/(2λ) - (1/n) Σ ℓ*(u_i)` with `s = (1/n) Σ u_i x_i`, has the gradient `p_i/n` in its smooth
//! part and curvature at most `M/n` there, `M = X²/λ` (rows of norm at most `X`). Let `A` be the length of the interval of
//! slopes, `δ` a bound on the error of each prediction and `e` a common shift of `w`. Then the steps
//! `u_i' = argmin_u ℓ*(u) - u p_i + (M/2)(u - u_i)²` satisfy, summed over `K`
//! rounds,
//! ```text
//! gap(ū) <= X²A²/(2λK) + δA + e √(2λ gap)    =>    gap(ū) <= X²A²/(λK) + 2δA + 2λe²
//! ```
//! by convexity (the shift enters through `λ ⟨e, w(u) - w*⟩`). With `K >= 8X²A²/(λτ)²`, `λτ² >= 16 δA` and `e <= τ/8`,
//! `‖w(ū) - w*‖ <= √(2 gap/λ) + e <= √(1/4 + 1/4 + 1/16) τ + τ/8 < τ`.
//!
//! # Privacy
//! The number of rounds, and so the running time, depends on the data and is not covered by the guarantee. It is neither
//! returned nor reported.
//!
//! # References
//! Shalev-Shwartz, Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization", JMLR 14, 2013.
//! Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008.

mod rows;
#[cfg(test)]
mod tests;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use dp_data::Block;
use dp_losses::{Loss, LossKind, ProximalLoss, ProximalVisitor, Real};
use nalgebra::convert;
use rand::seq::SliceRandom;

use super::control::Control;
use crate::error::{Error, positive};
use rows::RowOperations;

/// Rows whose multiples are summed before they are added to the total, which keeps the sum's rounding error small.
const CHUNK: usize = 256;

const UNIT: f64 = f64::EPSILON / 2.0;

/// The public numbers from which a point is certified.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    n: u64,
    dim: u64,
    modulus: f64,
    row_norm: f64,
    /// Length of the interval of slopes.
    slopes: f64,
    /// Magnitude of the numbers that predictions are compared with: targets and widths.
    offset: f64,
    tolerance: f64,
    /// Bound on the error of a point computed from slopes.
    point_error: f64,
}

/// Largest half width of a loss's parabola: beyond it the rounding analysis for slopes of size 1 does not hold.
const WIDEST: f64 = 16.0;

/// The properties of a loss that a certificate needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    /// Length of the interval of slopes.
    pub(crate) slopes: f64,
    /// Largest loss at prediction 0.
    pub(crate) at_zero: f64,
    /// As [`Terms::offset`].
    pub(crate) offset: f64,
}

impl Shape {
    /// Returns the shape of a loss for targets in `[-bound, bound]`; `recipe` is for messages.
    ///
    /// # Errors
    /// [`Error::NotProved`] for a loss whose slopes are not bounded; [`Error::OutOfRange`] for one with a wide parabola.
    pub(crate) fn of(loss: LossKind, bound: f64, recipe: &'static str) -> Result<Self, Error> {
        let width = match loss {
            LossKind::HuberSvm(loss) => loss.h(),
            LossKind::HuberRegression(loss) => loss.h(),
            _ => 0.0,
        };
        if !(width <= WIDEST) {
            return Err(Error::OutOfRange { name: "half width", value: width, range: "(0, 16]" });
        }
        let (slopes, at_zero) = loss.visit_proximal(AtZero { bound }).ok_or(Error::NotProved {
            recipe,
            why: "this loss's slopes are not bounded, or it has several outputs: use logistic, hinge, absolute or a loss of Huber",
        })?;
        Ok(Self { slopes, at_zero, offset: 1.0 + bound + width })
    }
}

struct AtZero {
    bound: f64,
}

impl ProximalVisitor<f64> for AtZero {
    type Output = (f64, f64);

    fn visit<L: ProximalLoss<f64>>(self, loss: L) -> (f64, f64) {
        let (low, high) = loss.dual_range();
        // Each is convex in the target.
        let at_zero = Loss::value(&loss, 0.0, self.bound).max(Loss::value(&loss, 0.0, -self.bound));
        (high - low, at_zero)
    }
}

/// The public numbers from which a certificate is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// n: number of rows.
    pub n: u64,
    /// d: number of weights.
    pub dim: u64,
    /// λ: strong convexity.
    pub modulus: f64,
    /// X: bound on the norm of the rows, at most 1.
    pub row_norm: f64,
    /// Length of the interval of slopes: 1 for binary losses, 2 for regression losses.
    pub slopes: f64,
    /// Magnitude of the numbers that predictions are compared with: 1 + targets + half width of a parabola.
    pub offset: f64,
    /// Bound on the norm of the centre.
    pub centre_norm: f64,
    /// Bound on the distance from the centre to the minimiser.
    pub reach: f64,
}

impl Terms {
    /// Bounds the error in norm of `v - (1/(λn)) Σ u_i x_i` as computed: the sum in two levels, one product each, and the
    /// difference. Slopes are at most 1.
    fn point_error(&self) -> f64 {
        let levels = CHUNK as f64 + self.n as f64 / CHUNK as f64 + 8.0;
        1.01 * UNIT * ((levels + 4.0) * self.row_norm / self.modulus + 2.0 * self.centre_norm)
    }

    /// Bounds the error of a prediction and of the number it is compared with, at points near the minimiser, and of a proximal
    /// step in units of the prediction.
    fn prediction_error(&self) -> f64 {
        // With slopes that are no worse than zero slopes, every point is within `reach` of the minimiser.
        let norm = self.centre_norm + 2.0 * self.reach;
        let step = self.row_norm * self.row_norm / self.modulus;
        1.01 * UNIT * ((self.dim as f64 + 64.0) * (norm * self.row_norm + self.offset) + 8.0 * step)
    }

    /// Returns the least tolerance that double precision can certify, with a margin.
    ///
    /// # Formula
    /// ```text
    /// max(√(16 δA/λ), 8e)        δ, e: errors of a prediction and of a point
    /// ```
    pub fn least_tolerance(&self) -> f64 {
        (16.0 * self.prediction_error() * self.slopes / self.modulus).sqrt().max(8.0 * self.point_error())
            * (1.0 + 1e-12)
    }

    /// Returns the certificate of points within `tolerance` of the minimiser.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a parameter outside its range; [`Error::NotProved`] for a tolerance below
    /// [`least_tolerance`](Self::least_tolerance).
    pub fn certificate(&self, tolerance: f64) -> Result<Certificate, Error> {
        positive("strong convexity", self.modulus)?;
        positive("row norm", self.row_norm)?;
        positive("length of the interval of slopes", self.slopes)?;
        positive("tolerance", tolerance)?;
        if !(self.dim as f64 * UNIT < 1e-3 && self.n as f64 * UNIT < 1e-3) {
            return Err(Error::Count { name: "dimension", value: self.dim, range: "below a thousandth of 1/roundoff" });
        }
        if !(tolerance >= self.least_tolerance()) {
            return Err(Error::NotProved {
                recipe: "certified minimiser",
                why: "the tolerance is below what double precision can certify; choose a larger one",
            });
        }
        Ok(Certificate {
            n: self.n,
            dim: self.dim,
            modulus: self.modulus,
            row_norm: self.row_norm,
            slopes: self.slopes,
            offset: self.offset,
            tolerance,
            point_error: self.point_error(),
        })
    }
}

impl Certificate {
    /// Returns the certified distance from the minimiser.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    fn accepts(&self, sum_of_gaps: f64) -> bool {
        let n = self.n as f64;
        // The terms are rounded a few times each, and their sum n times. The last summand is for the logistic loss, whose
        // slopes near 0 and 1 are accurate to a few units in the last place only.
        let gap = sum_of_gaps / n * (1.0 + 4.0 * (n + 32.0) * UNIT) + 256.0 * UNIT;
        let distance = (2.0 * gap / self.modulus).sqrt() + self.point_error;
        distance <= self.tolerance * (1.0 - 1e-12)
    }

    /// Bounds the error of predictions at a point of this norm.
    fn prediction_error(&self, norm: f64) -> f64 {
        1.01 * UNIT * (self.dim as f64 + 8.0) * (norm * self.row_norm + self.offset)
    }

    /// Returns the number of proximal gradient steps after which their average is certified.
    fn rounds(&self) -> u64 {
        let ratio = self.row_norm * self.slopes / (self.modulus * self.tolerance);
        ((8.0 * ratio * ratio * (1.0 + 1e-12)).ceil() as u64).saturating_add(1)
    }
}

/// Returns a point within the certificate's tolerance of the minimiser for these rows and this centre.
///
/// # Errors
/// [`Error::Shape`] for another number of rows or weights than planned; [`Error::Interrupted`].
pub fn certified<F: Real, L: ProximalLoss<F>>(
    loss: &L,
    rows: Block<'_, F>,
    centre: &[F],
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Vec<F>, Error> {
    let mut state = State::new(loss, rows, centre, certificate)?;
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    // The order need not be secret: any certified point will do.
    let mut generator = ChaCha20Rng::from_seed([0; 32]);
    let rounds = certificate.rounds();
    let (mut round, mut next_test) = (0u64, 1u64);
    while round < rounds {
        control.check()?;
        order.shuffle(&mut generator);
        state.ascend(&order);
        round += 1;
        if round >= next_test || round == rounds {
            state.refresh();
            if state.is_certified() {
                return Ok(state.point);
            }
            next_test = round + 1 + round / 4;
        }
    }
    state.by_count(control)
}

/// The slopes, in the loss's own units, and the point that they determine.
struct State<'s, F, L> {
    loss: &'s L,
    rows: Block<'s, F>,
    centre: &'s [F],
    certificate: &'s Certificate,
    duals: Vec<F>,
    /// Change of the row's own prediction per unit of slope, `‖x_i‖²/(λn)`.
    curvatures: Vec<F>,
    point: Vec<F>,
    /// Buffers for the sum of a chunk of rows and of all rows.
    chunk: Vec<F>,
    sum: Vec<F>,
}

impl<'s, F: Real, L: ProximalLoss<F>> State<'s, F, L> {
    fn new(loss: &'s L, rows: Block<'s, F>, centre: &'s [F], certificate: &'s Certificate) -> Result<Self, Error> {
        let shape = |name, planned, found| Err(Error::Shape { name, planned, found });
        if certificate.n != rows.len() as u64 || rows.len() > u32::MAX as usize {
            return shape("n", certificate.n, rows.len() as u64);
        }
        if certificate.dim != rows.dim() as u64 || centre.len() != rows.dim() {
            return shape("dim", certificate.dim, centre.len() as u64);
        }
        let start: F = {
            let (low, high) = loss.dual_range();
            convert(0.0f64.clamp(low, high))
        };
        let per_unit: F = convert(1.0 / (certificate.modulus * certificate.n as f64));
        let curvatures = (0..rows.len()).map(|row| per_unit * rows.rows.squared_norm(row)).collect();
        let zeros = || vec![F::zero(); centre.len()];
        let mut state = Self {
            loss,
            rows,
            centre,
            certificate,
            duals: vec![start; rows.len()],
            curvatures,
            point: centre.to_vec(),
            chunk: zeros(),
            sum: zeros(),
        };
        state.refresh();
        Ok(state)
    }

    fn counts(&self, row: usize) -> bool {
        self.rows.valid.is_none_or(|valid| valid[row])
    }

    /// Takes one exact step on each row's slope, in this order.
    fn ascend(&mut self, order: &[u32]) {
        let scale: F = convert(-1.0 / (self.certificate.modulus * self.certificate.n as f64));
        for &row in order {
            let row = row as usize;
            if !self.counts(row) {
                continue;
            }
            let target = self.rows.targets[row];
            let prediction = self.rows.rows.dot(row, &self.point);
            let before = self.duals[row];
            let after = self.loss.dual_step(before, prediction, target, self.curvatures[row]);
            if after != before {
                let moved = self.loss.slope(after, target) - self.loss.slope(before, target);
                self.rows.rows.add(row, scale * moved, &mut self.point);
                self.duals[row] = after;
            }
        }
    }

    /// Recomputes the point from the slopes, since the incrementally updated one accumulates rounding errors.
    fn refresh(&mut self) {
        self.sum.fill(F::zero());
        let rows = self.rows.len();
        for start in (0..rows).step_by(CHUNK) {
            self.chunk.fill(F::zero());
            for row in start..(start + CHUNK).min(rows) {
                if self.counts(row) {
                    let slope = self.loss.slope(self.duals[row], self.rows.targets[row]);
                    if slope != F::zero() {
                        self.rows.rows.add(row, slope, &mut self.chunk);
                    }
                }
            }
            self.sum.iter_mut().zip(&self.chunk).for_each(|(sum, &chunk)| *sum += chunk);
        }
        let scale: F = convert(-1.0 / (self.certificate.modulus * self.certificate.n as f64));
        for ((point, &sum), &centre) in self.point.iter_mut().zip(&self.sum).zip(self.centre) {
            *point = centre + scale * sum;
        }
    }

    /// Returns whether the point of the slopes, recomputed, is certified.
    fn is_certified(&self) -> bool {
        let squared: f64 = self.point.iter().fold(F::zero(), |sum, &w| sum + w * w).to_subset_unchecked();
        let norm = squared.sqrt() * (1.0 + (self.certificate.dim as f64 + 4.0) * f64::EPSILON);
        let error: F = convert(self.certificate.prediction_error(norm));
        let mut sum = 0.0f64;
        for row in (0..self.rows.len()).filter(|&row| self.counts(row)) {
            let (dual, target) = (self.duals[row], self.rows.targets[row]);
            let prediction = self.rows.rows.dot(row, &self.point);
            let below = self.loss.gap(dual, prediction - error, target);
            let above = self.loss.gap(dual, prediction + error, target);
            let gap: f64 = if below > above { below } else { above }.to_subset_unchecked();
            sum += gap;
        }
        self.certificate.accepts(sum)
    }

    /// Takes enough proximal gradient steps on all slopes at once to certify the average without a test. Not reached in
    /// practice.
    fn by_count(mut self, control: &Control<'_>) -> Result<Vec<F>, Error> {
        let certificate = self.certificate;
        let curvature: F = convert(certificate.row_norm * certificate.row_norm / certificate.modulus);
        // Compensated summation, so that the error of the average does not grow with the number of rounds.
        let mut sums = vec![(F::zero(), F::zero()); self.duals.len()];
        let rounds = certificate.rounds();
        for _ in 0..rounds {
            control.check()?;
            self.refresh();
            for row in (0..self.rows.len()).filter(|&row| self.rows.valid.is_none_or(|valid| valid[row])) {
                let prediction = self.rows.rows.dot(row, &self.point);
                let dual = self.loss.dual_step(self.duals[row], prediction, self.rows.targets[row], curvature);
                self.duals[row] = dual;
                let (sum, lost) = &mut sums[row];
                let term = dual - *lost;
                let next = *sum + term;
                *lost = (next - *sum) - term;
                *sum = next;
            }
        }
        let (low, high) = self.loss.dual_range();
        let (low, high, rounds): (F, F, F) = (convert(low), convert(high), convert(rounds as f64));
        for (dual, &(sum, _)) in self.duals.iter_mut().zip(&sums) {
            *dual = (sum / rounds).clamp(low, high);
        }
        self.refresh();
        Ok(self.point)
    }
}
